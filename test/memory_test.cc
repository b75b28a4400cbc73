// Promise: the memory of a filter is zeroed, aligned and a value, and throws bad_alloc if there is not enough. Would
// notice: a table that is not aligned to a cache line or a huge page, that is not zero, that is shared with its copy,
// or that is smaller than it claims.
#include "perhaps/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "perhaps/line_bloom.h"

namespace perhaps {
namespace {

bool zeroed(const Memory& m) {
  return std::ranges::all_of(m.bytes(), [](std::byte b) { return b == std::byte{0}; });
}
std::uintptr_t address(const Memory& m) { return reinterpret_cast<std::uintptr_t>(m.data()); }

TEST(Memory, IsZeroedAlignedAndWritableToItsEnd) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{63}, std::uint64_t{64},
                                   std::uint64_t{65}, std::uint64_t{100'000}, Memory::kHugeFrom - 1, Memory::kHugeFrom,
                                   Memory::kHugeFrom + 1, std::uint64_t{9'000'001}}) {
    // Twice, so that the second may get the memory that the first has written to.
    for (int turn = 0; turn < 2; ++turn) {
      Memory m(size);
      ASSERT_EQ(m.size(), size);
      EXPECT_EQ(address(m) % 64, 0u);
      EXPECT_TRUE(zeroed(m)) << size;
      EXPECT_TRUE(size < Memory::kHugeFrom || address(m) % (2 << 20) == 0) << size;
      std::ranges::fill(m.bytes(), std::byte{0xff});
    }
  }
}

TEST(Memory, OfZeroBytesIsEmpty) {
  Memory m(0);
  EXPECT_EQ(m.size(), 0u);
  EXPECT_EQ(Memory(m).size(), 0u);
  EXPECT_EQ(Memory().data(), nullptr);
}

TEST(Memory, CopiesAreEqualAndIndependent) {
  for (const std::uint64_t size : {std::uint64_t{1000}, Memory::kHugeFrom + 77}) {
    Memory a(size);
    for (std::uint64_t i = 0; i < size; ++i) a.data()[i] = static_cast<std::byte>(i * 31);
    Memory b = a;
    ASSERT_NE(a.data(), b.data());
    EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes()));
    b.data()[0] = std::byte{99};
    EXPECT_EQ(a.data()[0], std::byte{0});
    const std::byte* where = b.data();
    Memory c = std::move(b);
    EXPECT_EQ(c.data(), where);
    EXPECT_EQ(b.data(), nullptr);  // NOLINT(bugprone-use-after-move): promised to be empty
    EXPECT_EQ(b.size(), 0u);
    a = std::move(c);
    EXPECT_EQ(a.data(), where);
    const Memory& same = a;
    a = same;
    EXPECT_EQ(a.data()[0], std::byte{99});
  }
}

TEST(Memory, ResizingKeepsBytesAndZeroesNewOnes) {
  constexpr std::uint64_t kHuge = Memory::kHugeFrom;
  const std::uint64_t sizes[] = {
      0,         1000,  5000,  300'000,           301'000,           900'000,    500'000,           501'000,
      5'000'000, 4'000, 4'001, kHuge + 5'000'000, kHuge + 5'000'001, kHuge + 77, kHuge + 8'000'000, 900,
      kHuge,     0,     10};
  Memory m;
  std::uint64_t written = 0;
  for (const std::uint64_t size : sizes) {
    m.resize(size);
    ASSERT_EQ(m.size(), size);
    EXPECT_EQ(address(m) % 64, 0u);
    EXPECT_TRUE(size < kHuge || address(m) % (2 << 20) == 0) << size;
    for (std::uint64_t i = 0; i < size; ++i) {
      ASSERT_EQ(m.data()[i], i < written ? static_cast<std::byte>(i * 31) : std::byte{0}) << size << ", byte " << i;
    }
    for (std::uint64_t i = 0; i < size; ++i) m.data()[i] = static_cast<std::byte>(i * 31);
    written = size;
  }
}

TEST(Memory, TooMuchIsBadAlloc) {
  for (const std::uint64_t size :
       {UINT64_MAX, UINT64_MAX / 2, UINT64_MAX - 4096, std::uint64_t{1} << 62, std::uint64_t{1} << 50}) {
    EXPECT_THROW(Memory{size}, std::bad_alloc) << size;
  }
  EXPECT_THROW(LineBloom(LineShape{.lines = UINT64_MAX / 512, .probes = 8}), std::bad_alloc);
  EXPECT_THROW(LineBloom({.keys = std::uint64_t{1} << 60, .fpr = 0.01}), std::bad_alloc);
}

}  // namespace
}  // namespace perhaps
