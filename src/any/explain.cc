#include "any/explain.h"

#include <array>
#include <cstdio>

#include "any/exact.h"
#include "any/flat.h"
#include "any/scalable.h"

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

// Every family that is shown has a function here; the others are answered without steps.
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

// One parity per column. A key that every front and layer bumps is in the dense part, which is not shown.
void show(const RibbonShape& shape, const std::byte* table, std::uint64_t h, ExplainedPart& part) {
  const RibbonLayout::Place place = RibbonLayout::place_from(shape, table, 0, h);
  if (place.block == nullptr) {
    part.steps.emplace_back("part", "dense: one equation over all of its slots");
    return;
  }
  part.rule = "all";
  const auto [coefficients, fingerprint] = place.equation;
  const std::uint64_t block_at = static_cast<std::uint64_t>(place.block - table) * 8;
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

template <class Shape>
void show(const Shape&, const std::byte*, std::uint64_t, ExplainedPart&) {}

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

// Newest first, as they are asked.
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

Explanation explain_foreign(const format::Opened& opened, Bytes key) {
  Explanation to;
  const Description d = opened.whole->describe();
  to.family = d.family;
  to.hash = d.hash;
  for (const format::Entry& entry : opened.entries) {
    ExplainedPart part;
    part.name = entry.name;
    part.perhaps = entry.filter->may_contain(key);
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
