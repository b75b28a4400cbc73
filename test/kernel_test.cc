// Promise: the batch kernels of every instruction set (src/kernel) equal the layout in its header bit
// for bit, in answers and in tables, at any alignment, count and probe count, with and without prefetching. Would
// notice: one wrong bit, one word written outside the table or past the answers, one that PERHAPS_ISA cannot select.
#if defined(__x86_64__) || defined(__i386__)
#define PERHAPS_AVX2_FORMS 1  // of detail/isa.h, whatever this file is compiled for
#endif
#include "kernel/instruction_set.h"

#include <array>
#include <cstdlib>

#include "perhaps/engine/dense.h"
#include "perhaps/engine/packed.h"
#include "support/families.h"
#include "support/kernels.h"
#include "support/keys.h"

namespace perhaps::test {
namespace {

constexpr std::byte kGuard{0xa5};
constexpr std::uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;

// A table at any alignment with guards on both sides.
struct Guarded {
  std::vector<std::byte> storage;
  std::size_t size;
  std::size_t offset;

  Guarded(std::size_t bytes, std::size_t misaligned) : storage(bytes + 192, kGuard), size(bytes), offset(misaligned) {
    std::ranges::fill(table(), std::byte{0});
  }
  std::span<std::byte> table() {
    std::byte* at = storage.data() + 64;
    while (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) ++at;
    return {at + offset % 64, size};
  }
  bool guards_are_whole() {
    const auto inside = table();
    return std::all_of(storage.data(), inside.data(), [](std::byte b) { return b == kGuard; }) &&
           std::all_of(inside.data() + size, storage.data() + storage.size(), [](std::byte b) { return b == kGuard; });
  }
};

using Classic = BloomLayout<Multiplicative>;

std::vector<std::uint64_t> some_digests(std::uint64_t seed, std::size_t count) {
  std::vector<std::uint64_t> digests(count);
  for (std::size_t i = 0; i < count; ++i) digests[i] = Stream{seed}.at(i);
  // The ends of the range map to the first and the last unit.
  if (count > 2) digests[0] = 0, digests[1] = UINT64_MAX;
  return digests;
}

// A table in which about half of all lookups are answered *perhaps*.
template <class L>
void half_full(typename L::Shape shape, std::span<std::byte> table, const std::vector<std::uint64_t>& digests) {
  for (std::size_t i = 0; i < digests.size(); i += 2) set_all(shape, table, digests[i]);
}

// The three forms of a kernel: from words, from digests that it spreads, and from integer keys that it hashes itself.
enum class From { words, digests, integers };
constexpr std::uint64_t kSpread = Hash::kSpread;

template <class L>
void expect_equal(typename L::Shape shape, From from, std::size_t count, bool ahead, std::size_t misaligned) {
  const Hash hash(count);
  const auto input = some_digests(count * 31 + misaligned, count);
  auto digests = input;
  if (from == From::digests) std::ranges::transform(input, digests.begin(), [&](auto d) { return d * kSpread; });
  if (from == From::integers) std::ranges::transform(input, digests.begin(), [&](auto k) { return hash(k).word(); });

  Guarded table(shape.bytes(), misaligned);
  half_full<L>(shape, table.table(), digests);
  Guarded built(shape.bytes(), misaligned);
  std::vector<std::uint64_t> answers(count / kBatch + 2, kUntouched);
  const detail::Batch<> batch{.words = input.data(),
                              .count = count,
                              .ahead = ahead,
                              .hash = from == From::integers ? &hash : nullptr,
                              .spread = from == From::digests ? kSpread : 1};
  detail::query_batch<L>(shape, table.table().data(), batch, answers.data());
  ASSERT_EQ(detail::insert_batch<L>(shape, built.table().data(), batch), count);

  std::vector<std::uint64_t> wanted((count + kBatch - 1) / kBatch);
  for (std::size_t i = 0; i < count; ++i) {
    wanted[i / kBatch] |= std::uint64_t{covers(shape, table.table(), digests[i])} << i % kBatch;
  }
  for (std::size_t word = 0; word < answers.size(); ++word) {
    ASSERT_EQ(answers[word], word < wanted.size() ? wanted[word] : kUntouched) << "word " << word;
  }
  Guarded reference(shape.bytes(), misaligned);
  for (const std::uint64_t h : digests) set_all(shape, reference.table(), h);
  ASSERT_TRUE(same_bytes(built.table(), reference.table()));
  ASSERT_TRUE(built.guards_are_whole());
}

template <class L>
void every_count(typename L::Shape shape) {
  with_every_kernel([&](const kernel::InstructionSet& row) {
    for (std::size_t count = 0; count <= 200; ++count) {
      for (const bool ahead : {false, true}) {
        SCOPED_TRACE(std::string(row.name) + ", " + std::to_string(count) + " keys" + (ahead ? ", prefetched" : ""));
        ASSERT_NO_FATAL_FAILURE(expect_equal<L>(shape, From::words, count, ahead, count % 64));
        ASSERT_NO_FATAL_FAILURE(expect_equal<L>(shape, From::digests, count, ahead, count % 64));
        ASSERT_NO_FATAL_FAILURE(expect_equal<L>(shape, From::integers, count, ahead, count % 64));
      }
    }
  });
}

TEST(Kernel, LineEqualsTheLayoutAtEveryProbeCount) {
  for (std::uint32_t probes = 1; probes <= LineShape::kMaxProbes; ++probes) {
    SCOPED_TRACE(std::to_string(probes) + " probes");
    const std::uint64_t lines[] = {1, 2, 3, 7, 13, 64};
    ASSERT_NO_FATAL_FAILURE(every_count<LineLayout>({.lines = lines[probes % 6], .probes = probes}));
  }
}

TEST(Kernel, BlockEqualsTheLayout) {
  for (const std::uint64_t blocks : {1, 2, 3, 7, 64, 101}) {
    SCOPED_TRACE(std::to_string(blocks) + " blocks");
    ASSERT_NO_FATAL_FAILURE(every_count<BlockLayout>({.blocks = blocks}));
  }
}

TEST(Kernel, ClassicEqualsTheLayoutAtEveryProbeCount) {
  for (std::uint32_t probes = 1; probes <= BloomShape::kMaxProbes; ++probes) {
    const BloomShape shape{.bits = 1 + 331 * std::uint64_t{probes}, .probes = probes};
    for (std::size_t count = 0; count <= 200; count += 13) {
      for (const bool ahead : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(expect_equal<Classic>(shape, From::digests, count, ahead, count % 8));
        ASSERT_NO_FATAL_FAILURE(expect_equal<Classic>(shape, From::integers, count, ahead, count % 8));
      }
    }
  }
}

// The kernel drops keys in rounds, in groups of 256, and stops doing so where most keys survive: tables from nearly
// empty to nearly full, and counts around whole groups.
TEST(Kernel, ClassicEqualsTheLayoutHoweverManyKeysSurvive) {
  for (const std::uint64_t bits_per_key : {1, 2, 4, 8, 20}) {
    for (const std::size_t count : {255, 256, 257, 512, 700}) {
      SCOPED_TRACE(std::to_string(bits_per_key) + " bits per key, " + std::to_string(count) + " keys");
      const BloomShape shape{.bits = bits_per_key * count + 1, .probes = 7};
      for (const bool ahead : {false, true}) {
        ASSERT_NO_FATAL_FAILURE(expect_equal<Classic>(shape, From::words, count, ahead, count % 64));
        ASSERT_NO_FATAL_FAILURE(expect_equal<Classic>(shape, From::integers, count, ahead, count % 64));
      }
    }
  }
}

// Many units, so that every line of a table beyond the L2 cache can be hit.
TEST(Kernel, RowsAgreeOnALargeTable) {
  const LineShape line{.lines = 50'021, .probes = 8};
  const BlockShape block{.blocks = 100'003};
  with_every_kernel([&](const kernel::InstructionSet& row) {
    SCOPED_TRACE(row.name);
    for (const From from : {From::digests, From::integers}) {
      ASSERT_NO_FATAL_FAILURE(expect_equal<LineLayout>(line, from, 60'000, true, 0));
      ASSERT_NO_FATAL_FAILURE(expect_equal<BlockLayout>(block, from, 60'000, true, 32));
    }
  });
}

// From 64 MiB on, the loops prefetch each place twice.
TEST(Kernel, RowsAgreeBeyondTheCaches) {
  const LineShape line{.lines = 1'048'583, .probes = 8};
  const BlockShape block{.blocks = 2'097'169};
  with_every_kernel([&](const kernel::InstructionSet& row) {
    SCOPED_TRACE(row.name);
    ASSERT_NO_FATAL_FAILURE(expect_equal<LineLayout>(line, From::digests, 1'000, true, 0));
    ASSERT_NO_FATAL_FAILURE(expect_equal<BlockLayout>(block, From::integers, 1'000, true, 32));
  });
}

// The inlined single lookups, in both forms that the compiler flags of this file allow, and the shared ones.
template <class L>
void expect_single_equal(typename L::Shape shape) {
  const auto digests = some_digests(9, 2000);
  std::vector<std::uint64_t> words(shape.bytes() / 8 + 1);
  std::vector<std::uint64_t> shared_words(words.size());
  const auto table = std::as_writable_bytes(std::span(words));
  const auto shared = std::as_writable_bytes(std::span(shared_words));
  for (std::size_t i = 0; i < digests.size() / 8; ++i) {
    const bool fresh = !covers(shape, table, digests[i]);
    EXPECT_EQ(L::insert_shared(shape, shared.data(), digests[i]) == Inserted::added, fresh);
    set_all(shape, table, digests[i]);
    ASSERT_EQ(L::insert(shape, table.data(), digests[i]), Inserted::present) << "all bits were set already";
  }
  ASSERT_TRUE(same_bytes(table, shared));
  std::size_t perhaps = 0;
  for (const std::uint64_t h : digests) {
    const bool wanted = covers(shape, table, h);
    perhaps += wanted;
    ASSERT_EQ(L::template may_contain<detail::isa::Portable>(shape, table.data(), h), wanted);
    ASSERT_EQ(L::template may_contain<detail::isa::Here>(shape, table.data(), h), wanted);
    ASSERT_EQ(L::may_contain_shared(shape, table.data(), h), wanted);
  }
  EXPECT_GE(perhaps, digests.size() / 8);
  EXPECT_LT(perhaps, digests.size());
}

// One form of the single lookups and inserts, at any alignment.
template <class L, class Isa>
void expect_form_equal(typename L::Shape shape) {
  const auto digests = some_digests(17, 700);
  for (const std::size_t misaligned : {0, 1, 32, 63}) {
    Guarded table(shape.bytes(), misaligned);
    Guarded reference(shape.bytes(), misaligned);
    std::size_t added = 0;
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const bool there = covers(shape, reference.table(), digests[i]);
      ASSERT_EQ(L::template may_contain<Isa>(shape, table.table().data(), digests[i]), there) << "key " << i;
      if (i % 3 != 0) continue;
      added += !there;
      ASSERT_EQ(L::template insert<Isa>(shape, table.table().data(), digests[i]),
                there ? Inserted::present : Inserted::added)
          << "key " << i;
      set_all(shape, reference.table(), digests[i]);
      ASSERT_TRUE(same_bytes(table.table(), reference.table())) << "key " << i;
    }
    ASSERT_TRUE(table.guards_are_whole());
    ASSERT_GT(added, 10u);
    ASSERT_LT(added, digests.size() / 3) << "no insert was told that its key is present";
  }
}
template <class Isa>
void expect_forms_equal(const char* form) {
  SCOPED_TRACE(form);
  for (std::uint32_t probes = 1; probes <= LineShape::kMaxProbes; ++probes) {
    SCOPED_TRACE(std::to_string(probes) + " probes");
    ASSERT_NO_FATAL_FAILURE((expect_form_equal<LineLayout, Isa>({.lines = 3, .probes = probes})));
  }
  expect_form_equal<BlockLayout, Isa>({.blocks = 5});
}

TEST(Kernel, SingleFormsOfEveryInstructionSetEqualTheLayout) {
  expect_forms_equal<detail::isa::Portable>("portable");
  expect_forms_equal<detail::isa::Here>("as this file is compiled");
#if defined(__SSE2__)
  expect_forms_equal<detail::isa::Sse2>("SSE2");
#endif
#if defined(PERHAPS_AVX2_FORMS)
  if (__builtin_cpu_supports("avx2")) expect_forms_equal<detail::isa::Avx2Eight>("AVX2");
#endif
}

TEST(Kernel, SingleLookupsEqualTheLayout) {
  for (std::uint32_t probes = 1; probes <= LineShape::kMaxProbes; ++probes) {
    SCOPED_TRACE(std::to_string(probes) + " probes");
    expect_single_equal<LineLayout>({.lines = 37, .probes = probes});
  }
  for (std::uint32_t probes = 1; probes <= BloomShape::kMaxProbes; ++probes) {
    SCOPED_TRACE(std::to_string(probes) + " probes");
    expect_single_equal<BloomLayout<Multiplicative>>({.bits = 12'345, .probes = probes});
  }
  expect_single_equal<BlockLayout>({.blocks = 61});
}

// Dense filters and groups of them, of all sizes, and bytes that are none but for their head: every kernel answers as
// the form in the header does, which is compiled for the baseline.
TEST(Kernel, DenseLookupsEqualTheHeader) {
  const auto compare = [](Bytes filter, std::uint64_t seed) {
    std::array<std::uint64_t, 150> digests;
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = Stream{seed}.at(i);
    const bool groups = filter.back() == std::byte{DenseGroups::kTag};
    test::with_every_kernel([&](const kernel::InstructionSet& set) {
      const kernel::DenseQuery& query = groups ? set.dense_groups_query : set.dense_query;
      std::array<std::uint64_t, 3> answers;
      answers.fill(~std::uint64_t{0});
      query.many(filter, digests, answers.data());
      for (std::size_t i = 0; i < 64 * answers.size(); ++i) {
        const bool answer = (answers[i / 64] >> i % 64 & 1) != 0;
        if (i >= digests.size()) {
          ASSERT_FALSE(answer) << set.name;
          continue;
        }
        const std::uint64_t word = digests[i] * detail::kSpread;
        const bool wanted = groups ? DenseGroups::may_contain(filter, word) : Dense::may_contain(filter, word);
        ASSERT_EQ(answer, wanted) << set.name << ", " << filter.size() << " bytes";
        ASSERT_EQ(query.one(filter, word), wanted) << set.name << ", " << filter.size() << " bytes";
      }
    });
  };
  std::uint64_t seed = 0;
  int dense = 0, groups = 0;
  for (const double bits : {1.5, 4.0, 8.0, 10.0, 16.7, 33.0}) {
    for (std::size_t keys = 1; keys <= 2000; keys += keys < 66 ? 1 : 157) {
      std::vector<std::uint64_t> digests(keys);
      ++seed;
      // Half of those that are looked up, if there are so many.
      for (std::size_t i = 0; i < keys; ++i) digests[i] = Stream{seed}.at(2 * i);
      auto filter = pack(Kind::dense, digests, bits);
      if (std::to_integer<unsigned>(filter.back()) < DenseGroups::kTag) continue;  // a ribbon
      ++(keys > Dense::kMaxKeys ? groups : dense);
      ASSERT_NO_FATAL_FAILURE(compare(filter, seed));
      if (keys > Dense::kMaxKeys) continue;
      for (std::size_t i = 0; i + 2 < filter.size(); ++i) filter[i] ^= static_cast<std::byte>(Stream{~seed}.at(i));
      ASSERT_NO_FATAL_FAILURE(compare(filter, seed));
      filter[0] = filter[filter.size() - 2], filter[1] = filter.back();
      filter.resize(2);
      ASSERT_NO_FATAL_FAILURE(compare(filter, seed));
    }
  }
  EXPECT_GE(dense, 6 * 60);
  EXPECT_GE(groups, 5 * 10);
}

// Against elimination of one system after the other. Those with a row that is the sum of two others have no solution.
TEST(Kernel, DenseSystemsAreRegularOrNot) {
  const auto rank = [](std::vector<std::uint64_t> rows) {
    std::size_t found = 0;
    for (std::size_t bit = 0; bit < 64; ++bit) {
      const auto pivot = std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(found), rows.end(),
                                      [&](std::uint64_t row) { return (row >> bit & 1) != 0; });
      if (pivot == rows.end()) continue;
      std::swap(*pivot, rows[found]);
      for (std::size_t i = found + 1; i < rows.size(); ++i) rows[i] ^= (rows[i] >> bit & 1) * rows[found];
      ++found;
    }
    return found;
  };
  test::with_every_kernel([&](const kernel::InstructionSet& set) {
    if (set.dense_regular == nullptr) return;
    for (std::size_t n = 1; n <= 64; ++n) {
      for (std::uint64_t round = 0; round < 10; ++round) {
        alignas(64) std::uint64_t rows[64 * kernel::kDenseSeeds];
        for (std::size_t i = 0; i < n * kernel::kDenseSeeds; ++i) rows[i] = Stream{n * 100 + round}.at(i) >> (64 - n);
        const auto at = [&](std::size_t row) { return rows + row * kernel::kDenseSeeds + round % kernel::kDenseSeeds; };
        if (n >= 3) *at(n - 1) = *at(0) ^ *at(n / 2);
        std::uint32_t wanted = 0;
        for (std::size_t s = 0; s < kernel::kDenseSeeds; ++s) {
          std::vector<std::uint64_t> system(n);
          for (std::size_t i = 0; i < n; ++i) system[i] = rows[i * kernel::kDenseSeeds + s];
          wanted |= std::uint32_t{rank(system) == n} << s;
        }
        ASSERT_EQ(set.dense_regular(rows, n), wanted) << set.name << ", " << n << " unknowns";
      }
    }
  });
}

TEST(Kernel, RowZeroIsTheReferenceAndNamesAreDistinct) {
  ASSERT_FALSE(kernel::instruction_sets().empty());
  EXPECT_STREQ(kernel::instruction_sets()[0]->name, "portable");
  for (std::size_t i = 0; i < kernel::instruction_sets().size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_STRNE(kernel::instruction_sets()[i]->name, kernel::instruction_sets()[j]->name);
  }
}

// A separate process for each name, because the choice is made once per process.
TEST(KernelDeathTest, EnvironmentSelectsTheRow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto row_with = [](const char* wanted) {
    wanted == nullptr ? unsetenv("PERHAPS_ISA") : setenv("PERHAPS_ISA", wanted, 1);
    return std::string_view(kernel::active().name);
  };
  for (const kernel::InstructionSet* row : kernel::instruction_sets()) {
    EXPECT_EXIT(std::exit(row_with(row->name) == row->name ? 0 : 1), ::testing::ExitedWithCode(0), "") << row->name;
  }
  EXPECT_EXIT(std::exit(row_with("no such thing") == "portable" ? 0 : 1), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(row_with(nullptr) == kernel::instruction_sets().back()->name ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace perhaps::test
