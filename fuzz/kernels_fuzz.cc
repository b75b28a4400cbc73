// Promise: the kernels of every instruction set equal the reference in the header of the layout, bit for bit, for
// queries and inserts, digests and integers, any shape, any count, any alignment, and touch no byte outside the table.
// Would notice: one wrong bit, one wrong answer, one byte out of place (AddressSanitizer guards the ends).
//
// input: 16 bytes of choices, then 8 bytes per digest
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernel/instruction_set.h"
#include "perhaps/block_bloom.h"
#include "perhaps/line_bloom.h"

namespace {

using namespace perhaps;

struct Choices {
  std::uint16_t units;
  std::uint8_t probes;
  std::uint8_t offset;    // of the table, for its alignment
  std::uint8_t inserted;  // share of the digests, in 1/256
  std::uint8_t flags;
  std::uint8_t rounds;  // the digests are repeated with changes, so that short inputs make long batches
  std::uint8_t unused;
  std::uint64_t seed;
};
static_assert(sizeof(Choices) == 16);

[[noreturn]] void differ(const kernel::InstructionSet& row, const char* what) {
  std::fprintf(stderr, "kernel row '%s' differs from the reference: %s\n", row.name, what);
  std::abort();
}

// One allocation of `offset` bytes and the table, with nothing after it, so that both ends are guarded.
class Table {
 public:
  Table(std::uint64_t bytes, std::size_t offset) : offset_(offset), memory_(offset + bytes) {}
  std::byte* data() { return memory_.data() + offset_; }
  friend bool operator==(const Table&, const Table&) = default;

 private:
  std::size_t offset_;
  std::vector<std::byte> memory_;
};

template <class L>
void compare(const kernel::InstructionSet& row, typename L::Shape shape, const Choices& choices,
             const std::vector<std::uint64_t>& words) {
  const bool ahead = choices.flags & 1;
  const bool integers = choices.flags & 2;
  const Hash hash(choices.seed);
  const std::size_t inserted = words.size() * choices.inserted / 256;
  const auto digest = [&](std::size_t i) { return integers ? hash(words[i]).word() : words[i]; };

  Table reference(shape.bytes(), choices.offset % 64);
  for (std::size_t i = 0; i < inserted; ++i)
    detail::insert_one<L, detail::isa::Portable>(shape, reference.data(), digest(i));
  Table table(shape.bytes(), choices.offset % 64);
  detail::Batch<> batch{.words = words.data(), .count = inserted, .ahead = ahead, .hash = integers ? &hash : nullptr};
  (row.*L::insert_kernel)(shape, table.data(), batch);
  if (!(table == reference)) differ(row, "insert");

  // One word more than needed: nothing may be written past the answers.
  constexpr std::uint64_t kGuard = 0x5a5a5a5a5a5a5a5a;
  std::vector<std::uint64_t> answers((words.size() + 63) / 64 + 1, kGuard);
  batch.count = words.size();
  (row.*L::query_kernel)(shape, table.data(), batch, answers.data());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool expected = L::template may_contain<detail::isa::Portable>(shape, reference.data(), digest(i));
    if (i < inserted && !expected) differ(row, "the reference lost a key");
    if ((answers[i / 64] >> i % 64 & 1) != expected) differ(row, "query");
    if (L::template may_contain<detail::isa::Here>(shape, table.data(), digest(i)) != expected) differ(row, "single");
  }
  if (words.size() % 64 != 0 && answers[words.size() / 64] >> words.size() % 64 != 0) differ(row, "unused bits");
  if (answers.back() != kGuard) differ(row, "wrote past the answers");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices;
  if (size < sizeof choices) return 0;
  std::memcpy(&choices, data, sizeof choices);
  std::vector<std::uint64_t> words((size - sizeof choices) / 8);
  if (!words.empty()) std::memcpy(words.data(), data + sizeof choices, words.size() * 8);
  const std::size_t given = words.size();
  for (std::size_t round = 1; round <= choices.rounds % 32u; ++round) {
    for (std::size_t i = 0; i < given; ++i) words.push_back((words[i] + round) * 0x9e3779b97f4a7c15);
  }

  const LineShape line{choices.units % 1000u + 1u, choices.probes % LineShape::kMaxProbes + 1u};
  const BlockShape block{choices.units % 1000u + 1u};
  for (const kernel::InstructionSet* row : kernel::instruction_sets()) {
    compare<LineLayout>(*row, line, choices, words);
    compare<BlockLayout>(*row, block, choices, words);
  }
  return 0;
}
