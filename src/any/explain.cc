#include "any/explain.h"

#include <array>
#include <cstdio>

#include "any/exact.h"
#include "any/flat.h"
#include "any/scalable.h"
#include "build/ribbon_dense.h"
#include "format/bit_positions.h"

namespace perhaps {
namespace {

std::string hex(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%016llx", static_cast<unsigned long long>(value));
  return text.data();
}
std::string of(std::uint64_t place, std::uint64_t count) {
  return std::to_string(place) + " of " + std::to_string(count);
}
unsigned bit_at(const std::byte* table, std::uint64_t bit) {
  return std::to_integer<unsigned>(table[bit / 8]) >> (bit % 8) & 1u;
}
void check_bit(ExplainedPart& part, const std::byte* table, std::uint64_t bit) {
  const unsigned found = bit_at(table, bit);
  part.checks.push_back({.what = "bit", .at = bit, .bits = 1, .wanted = 1, .found = found, .holds = found == 1});
}

// One function for each shape. A family that has none does not compile.
void show(const BloomShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  part.rule = "all";
  Multiplicative plan(h, shape.bits);
  for (std::uint32_t i = 0; i < shape.probes; ++i) check_bit(part, table, plan.next());
}

// In the order of words, not of probes.
void show(const LineShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  part.rule = "all";
  const std::uint64_t line = LineLayout::line_of(shape, h);
  part.steps.emplace_back("line", of(line, shape.lines));
  const auto mask = LineLayout::mask_of(shape, h);
  for (std::uint32_t word = 0; word < mask.size(); ++word) {
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      if ((mask[word] >> bit & 1) != 0) check_bit(part, table, line * 512 + word * 32 + bit);
    }
  }
}

void show(const BlockShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  part.rule = "all";
  const std::uint64_t block = BlockLayout::block_of(shape, h);
  part.steps.emplace_back("block", of(block, shape.blocks));
  for (std::uint32_t word = 0; word < 8; ++word) {
    const auto bit = static_cast<unsigned>(std::countr_zero(BlockLayout::mask_of(h, word)));
    check_bit(part, table, block * 256 + word * 32 + bit);
  }
}

void show(const CountingShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  part.rule = "all";
  const std::uint64_t line = CountingLayout::line_of(shape, h);
  part.steps.emplace_back("line", of(line, shape.lines));
  const std::uint64_t line_bytes = std::uint64_t{16} * shape.counter_bits;
  const std::byte* const from = table + line * line_bytes;
  const CountingLayout::Probes probes(h);
  for (std::uint32_t i = 0; i < shape.probes; ++i) {
    const std::uint32_t at = probes[i];
    const unsigned found =
        shape.counter_bits == 4 ? CountingLayout::get<4>(from, at) : CountingLayout::get<1>(from, at);
    part.checks.push_back({.what = "counter",
                           .at = line * line_bytes * 8 + std::uint64_t{at} * shape.counter_bits,
                           .bits = shape.counter_bits,
                           .wanted = 1,
                           .found = found,
                           .holds = found != 0});
  }
}

void show(const CuckooShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  part.rule = "any";
  const CuckooLayout::Place place = CuckooLayout::place_of(shape, h);
  part.steps.emplace_back("fingerprint", std::to_string(place.fingerprint));
  part.steps.emplace_back("first bucket", of(place.first, shape.buckets));
  part.steps.emplace_back("second bucket", of(place.second, shape.buckets));
  const auto bucket = [&](std::uint64_t i) {
    CuckooLayout::with_words(shape, [&](auto buckets) {
      const auto word = buckets.get(table + kLineBytes, i);
      for (unsigned slot = 0; slot < CuckooShape::kSlots; ++slot) {
        const std::uint64_t found = buckets.lane(word, slot);
        part.checks.push_back({.what = "slot",
                               .at = 8 * kLineBytes + (i * CuckooShape::kSlots + slot) * shape.fingerprint_bits,
                               .bits = shape.fingerprint_bits,
                               .wanted = place.fingerprint,
                               .found = found,
                               .holds = found == place.fingerprint});
      }
    });
  };
  bucket(place.first);
  if (place.second != place.first) bucket(place.second);
  for (std::uint64_t i = 0; i < CuckooLayout::stashed(table); ++i) {
    const std::uint64_t found = CuckooLayout::stash(table, i);
    part.checks.push_back({.what = "stash",
                           .at = 8 * (CuckooLayout::kStashAt + 8 * i),
                           .bits = 64,
                           .wanted = h,
                           .found = found,
                           .holds = found == h});
  }
}

// The slots of a key decide together: a single one says nothing.
void show(const FuseShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  const std::uint64_t from = detail::shard_offset(shape.shard_bits, table, h);
  const auto geometry = detail::FuseGeometry::at(table + from);
  part.steps.emplace_back("shard", of(detail::shard_of(shape.shard_bits, h), std::uint64_t{1} << shape.shard_bits));
  if (geometry.segments == 0) {
    part.steps.emplace_back("segments", "none: this shard answers perhaps to every key");
    return;
  }
  part.rule = "xor";
  const detail::FuseProbe<4> probe(geometry, shape.shard_bits, h);
  const std::uint64_t fingerprint = detail::FuseBits::fingerprint(probe.mixed, shape.bits);
  part.steps.emplace_back("fingerprint", std::to_string(fingerprint));
  part.steps.emplace_back("first segment",
                          of(probe.slot[0] / geometry.length, std::uint64_t{geometry.segments} + shape.arity - 1));
  std::uint64_t together = 0;
  for (std::uint32_t i = 0; i < shape.arity; ++i) {
    const std::uint64_t at = detail::FuseBits::place(from + 8, probe.slot[i], shape.bits);
    const std::uint64_t found = detail::FuseBits::at(table, at) & ((std::uint64_t{1} << shape.bits) - 1);
    together ^= found;
    part.checks.push_back({.what = "slot", .at = at, .bits = shape.bits, .wanted = fingerprint, .found = found});
  }
  for (Check& check : part.checks) check.holds = together == fingerprint;
}

// Quotient and growing filters: is the bucket in use, and if it is, which of its slots has the fingerprint? A lookup
// reads no further than that.
template <class RunOf, class CheckOf>
void show_run(ExplainedPart& part, const std::byte* table, std::uint64_t occupied_at, RunOf run_of, CheckOf check_of) {
  if (bit_at(table, occupied_at) == 0) {
    part.rule = "all";
    part.steps.emplace_back("bucket", "not in use");
    check_bit(part, table, occupied_at);
    return;
  }
  const auto run = run_of();
  if (!run.found()) {
    part.steps.emplace_back("run", "none: the bytes contradict themselves, so the answer is perhaps");
    return;
  }
  part.rule = "any";
  part.steps.emplace_back("run", "slots " + std::to_string(run.first) + " to " + std::to_string(run.last));
  for (std::uint64_t slot = run.first; slot <= run.last; ++slot) {
    part.checks.push_back(check_of(slot));
    if (part.checks.back().holds) return;
  }
}

std::uint64_t bits_before(const std::byte* table, const std::byte* at) {
  return static_cast<std::uint64_t>(at - table) * 8;
}
using PlainBits = detail::isa::WordBits<detail::isa::Portable>;

void show(const QuotientShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  const detail::QuotientTable<PlainBits> t(shape, table);
  const std::uint64_t fingerprint = QuotientLayout::fingerprint_of(shape, h);
  const std::uint64_t quotient = fingerprint >> shape.width();
  const std::uint64_t remainder = (fingerprint & t.slot_mask()) >> shape.guard_bits;
  part.steps.emplace_back("quotient", of(quotient, shape.buckets));
  part.steps.emplace_back("remainder", std::to_string(remainder));
  const std::uint64_t occupied_at =
      bits_before(table, t.block(quotient / 64)) + std::uint64_t{64} * shape.width() + quotient % 64;
  show_run(
      part, table, occupied_at, [&] { return t.run_of(quotient); },
      [&](std::uint64_t slot) {
        const std::uint64_t found = t.slot(slot) >> shape.guard_bits;
        return Check{.what = "slot",
                     .at = bits_before(table, t.block(slot / 64)) + slot % 64 * shape.width(),
                     .bits = shape.width(),
                     .wanted = remainder,
                     .found = found,
                     .holds = found == remainder};
      });
}

// Fingerprints are of several lengths, and the lowest set bit of a slot ends its own.
void show(const GrowingShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  const std::uint64_t mixed = GrowingLayout::mixed(h);
  const detail::GrowingGrid grid = GrowingLayout::grid_of(shape, table, mixed);
  const std::uint64_t bucket = mixed >> (64 - grid.bucket_bits);
  const std::uint64_t sought = detail::growing_sought(grid, mixed);
  const detail::GrowingPart<PlainBits> t(grid, GrowingLayout::part_of(grid, table, bucket));
  const std::uint64_t in_part = bucket % (64 * detail::GrowingGrid::kBlocksPerPart);
  part.steps.emplace_back("bucket", of(bucket, std::uint64_t{1} << grid.bucket_bits));
  part.steps.emplace_back("fingerprint", std::to_string(sought >> 1) + ", " + std::to_string(grid.width - 1) + " bits");
  const std::uint64_t occupied_at = (detail::growing_offset(grid, mixed) + grid.block_bytes - 9) * 8 + bucket % 64;
  show_run(
      part, table, occupied_at, [&] { return t.run_of(in_part); },
      [&](std::uint64_t slot) {
        const std::uint64_t found = t.slot(slot);
        const std::uint64_t block = t.block_of(slot);
        return Check{.what = "slot",
                     .at = bits_before(table, t.block(block)) + (slot - block * t.per_block()) * grid.width,
                     .bits = grid.width,
                     .wanted = sought,
                     .found = found,
                     .holds = detail::agree(found, sought)};
      });
}

// A generation that saw the key has its bit in every cell.
void show(const WindowShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  part.rule = "all";
  const std::uint64_t generation = WindowLayout::generation_of(table);
  part.steps.emplace_back("generation", std::to_string(generation));
  std::uint64_t common = 0xff;
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    const std::uint64_t x = WindowLayout::row_digest(row, h);
    const std::uint64_t line_at = WindowLayout::line_at(shape, row, x);
    part.steps.emplace_back("line of row " + std::to_string(row), of(detail::scale(x, shape.lines), shape.lines));
    const std::uint32_t live = WindowLayout::live(generation, table[line_at + WindowLayout::kStamp]);
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      const std::uint64_t at = line_at + WindowLayout::cell_of(x, i, shape.probes);
      const std::uint64_t found = std::to_integer<std::uint64_t>(table[at]) & live;
      part.checks.push_back(
          {.what = "cell", .at = 8 * at, .bits = 8, .wanted = common, .found = found, .holds = (found & common) != 0});
      common &= found;
    }
  }
}

// A key that every front and layer of a ribbon bumps: its equations go over all slots of the dense part.
void show_dense(const RibbonShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  const ribbon::DenseLookup lookup(shape, table, 0, h);
  if (lookup.every || lookup.dense.slots == 0) {
    part.steps.emplace_back("part", lookup.every ? "dense: it answers perhaps to every key" : "dense: it has no keys");
    return;
  }
  part.rule = "all";
  part.steps.emplace_back("part", "dense: each equation goes over all of its slots");
  part.steps.emplace_back("slots", std::to_string(lookup.dense.slots));
  const std::uint64_t from = bits_before(table, lookup.bytes.data());
  const std::uint32_t fingerprint = RibbonLayout::fingerprint_of(lookup.mixed);
  const auto column = [&](std::uint32_t j, std::uint64_t at, std::uint64_t slots, std::uint32_t parity) {
    const std::uint32_t wanted = fingerprint >> j & 1;
    const auto bits = std::min<std::uint64_t>(64, slots);
    part.checks.push_back({.what = "column",
                           .at = from + at,
                           .bits = static_cast<std::uint32_t>(bits),
                           .wanted = wanted,
                           .found = parity,
                           .holds = parity == wanted,
                           .content = ribbon::bits_at(lookup.bytes, at, bits)});
  };
  for (std::uint32_t j = 0; j < shape.columns; ++j)
    column(j, lookup.dense.column_bit(shape.columns, 0, j), lookup.dense.slots, lookup.column(shape, j));
  if (lookup.has_extra(shape)) {
    column(shape.columns, lookup.dense.extra_bit(shape.columns, 0), lookup.dense.extra, lookup.extra_column(shape));
  }
}

// One parity per column.
void show(const RibbonShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  const RibbonLayout::Place place = RibbonLayout::place_from(shape, table, 0, h);
  if (place.block == nullptr) return show_dense(shape, table, h, part);
  part.rule = "all";
  const auto [coefficients, fingerprint] = place.equation;
  const std::uint64_t block_at = bits_before(table, place.block);
  part.steps.emplace_back("block", "at byte " + std::to_string(block_at / 8) + " of " + std::to_string(shape.bytes()));
  part.steps.emplace_back("slot", of(place.slot, 64));
  part.steps.emplace_back("coefficients", hex(coefficients));
  for (std::uint32_t j = 0; j < place.width; ++j) {
    const auto low = detail::load<std::uint64_t>(place.block + 8 * j);
    const auto high = detail::load<std::uint64_t>(place.next() + 8 * j);
    const std::uint64_t content = low >> place.slot | (place.slot == 0 ? 0 : high << (64 - place.slot));
    const auto parity = static_cast<std::uint64_t>(std::popcount(content & coefficients) & 1);
    const std::uint64_t wanted = fingerprint >> j & 1;
    part.checks.push_back({.what = "column",
                           .at = block_at + 64 * j + place.slot,
                           .bits = 64,
                           .wanted = wanted,
                           .found = parity,
                           .holds = parity == wanted,
                           .content = content});
  }
}

template <class L>
ExplainedPart part_of(const FlatView<L, EitherHash>& view, Digest<EitherHash> digest, std::string name) {
  ExplainedPart part;
  part.name = std::move(name);
  show(view.shape(), view.bytes().data(), digest.word(), part);
  part.perhaps = view.may_contain(digest);
  return part;
}

template <class L>
void find_flat(const DigestProbe& probe, std::uint64_t digest, Explanation& to) {
  const auto* const typed = dynamic_cast<const FlatProbe<L>*>(&probe);
  if (typed == nullptr) return;
  const auto made = Digest<EitherHash>::made_by(typed->view().hasher(), digest);
  to.word = made.word();
  to.family = L::family;
  to.parts.push_back(part_of(typed->view(), made, ""));
}

// Newest first, as they are queried.
template <class L>
void find_chain(const DigestProbe& probe, std::uint64_t digest, Explanation& to) {
  const auto* const typed = dynamic_cast<const ScalableProbe<L>*>(&probe);
  if (typed == nullptr) return;
  const auto made = Digest<EitherHash>::made_by(typed->chain().hasher(), digest);
  to.word = made.word();
  to.family = name_of(Kind::scalable);
  const auto links = typed->chain().links();
  for (std::size_t i = links.size(); i-- > 0;) {
    to.parts.push_back(part_of(links[i], made, "link " + std::to_string(i)));
  }
}

}  // namespace

Explanation explain(const AnyFilter& filter, std::uint64_t digest) {
  const DigestProbe& probe = *filter.digests();
  Explanation to;
  to.hash = name_of(probe.hasher());
  to.digest = digest;
  for_each_layout([&]<class L>() { find_flat<L>(probe, digest, to); });
  for_each_link_layout([&]<class L>() { find_chain<L>(probe, digest, to); });
  if (to.parts.empty()) to.family = filter.describe().family;  // a file of many sets, an exact set
  if (dynamic_cast<const ExactProbe*>(&probe) != nullptr) to.word = digest * EitherHash::kSpread;
  to.perhaps = probe.may_contain(std::span(&digest, 1)) != 0;
  return to;
}

Explanation explain_foreign(const format::Opened& opened, const Description& described, Bytes key) {
  Explanation to;
  to.family = described.family;
  to.hash = described.hash;
  for (const format::Entry& entry : opened.entries) {
    ExplainedPart part;
    part.name = entry.name;
    part.perhaps = entry.filter->may_contain(key);
    if (const auto* const classic = dynamic_cast<const format::BitPositions*>(entry.filter.get())) {
      if (const auto positions = classic->positions(key)) {
        part.rule = "all";
        for (const std::uint64_t at : *positions) check_bit(part, classic->table().data(), at);
      } else {
        part.steps.emplace_back("key", "one that this system never adds");
      }
    }
    to.parts.push_back(std::move(part));
  }
  to.perhaps = opened.whole->may_contain(key);
  return to;
}

std::uint64_t digest_for(const AnyFilter& filter, Bytes key) {
  return digest_of(EitherHash(filter.digests()->hasher()), key).value;
}
std::uint64_t digest_for(const AnyFilter& filter, std::uint64_t integer) {
  return digest_of(EitherHash(filter.digests()->hasher()), integer).value;
}

}  // namespace perhaps
