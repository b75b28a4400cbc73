// Which of 512 sets may have a key? The bit-sliced index against 512 filters, one key at a time and in batches; ns per
// key, for all sets.
#include "route.h"

#include <bit>
#include <memory>
#include <stdexcept>

#include "number.h"
#include "perhaps/engine/filter_set.h"
#include "perhaps/engine/set_index.h"
#include "perhaps/line_bloom.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

constexpr std::uint64_t kSets = 512;
constexpr std::uint64_t kQueries = 8192;
constexpr std::uint64_t kAbsent = std::uint64_t{1} << 40;

std::uint64_t key_of(std::uint64_t set, std::uint64_t i) { return key_number(set << 24 | i); }
std::uint64_t digest_of_key(std::uint64_t key) {
  return Hash()(bytes_of({reinterpret_cast<const char*>(&key), 8})).value;
}

struct Queries {
  std::vector<std::uint64_t> keys;
  std::vector<Bytes> bytes;
  explicit Queries(std::uint64_t from) : keys(kQueries), bytes(kQueries) {
    for (std::uint64_t i = 0; i < kQueries; ++i) keys[i] = key_number(from + i);
    for (std::uint64_t i = 0; i < kQueries; ++i) bytes[i] = std::as_bytes(std::span(&keys[i], 1));
  }
};

// The same sets, three times.
struct Sets {
  explicit Sets(std::uint64_t n) : index(Request{.keys = n, .fpr = 0.01}, Hash()) {
    for (std::uint64_t from = 0; from < kSets; from += 64) add_64(from, n);
    for (const auto& line : lines) {
      if (auto added = set.add(*line); !added) throw std::runtime_error(added.error().detail);
    }
  }

  void add_64(std::uint64_t from, std::uint64_t n) {
    std::vector<Bloom> filters;
    std::vector<SetIndex::Column> columns;
    filters.reserve(64);
    for (std::uint64_t s = from; s < from + 64; ++s) {
      std::vector<Digest<Hash>> digests(n);
      for (std::uint64_t i = 0; i < n; ++i) digests[i] = Digest<Hash>::made_by(Hash(), digest_of_key(key_of(s, i)));
      filters.emplace_back(index.shape().column).insert(std::span<const Digest<Hash>>(digests));
      columns.push_back({std::to_string(s), n, filters.back().bytes()});
      auto line = make_any(perhaps::Kind::line, {.keys = n, .fpr = 0.01}, Hash());
      std::vector<std::uint64_t> words(n);
      for (std::uint64_t i = 0; i < n; ++i) words[i] = digests[i].value;
      if (!line || (*line)->insert_digests(words) != n) throw std::runtime_error("route: a filter that is full");
      lines.push_back(*std::move(line));
      typed.emplace_back(Request{.keys = n, .fpr = 0.01}).insert(std::span<const Digest<Hash>>(digests));
    }
    if (auto added = index.add(columns); !added) throw std::runtime_error(added.error().detail);
  }

  SetIndex index;
  std::vector<std::unique_ptr<AnyMutable>> lines;
  std::vector<LineBloom> typed;
  FilterSet set;
};

Row row_of(const char* name, std::uint64_t bytes, std::uint64_t n) {
  Row row;
  row.about = {.name = name, .kind = Kind::ours};
  row.bytes = bytes;
  row.bits_per_key = 8.0 * static_cast<double>(bytes) / static_cast<double>(kSets * n);
  return row;
}

bool finds_all(const SetIndex& index, std::uint64_t n) {
  std::vector<std::uint64_t> answers(index.words());
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t key = key_of(i % kSets, i % n);
    index.may_contain(std::as_bytes(std::span(&key, 1)), answers);
    if ((answers[i % kSets / 64] >> i % 64 & 1) == 0) return false;
  }
  return true;
}

}  // namespace

Table route_table(std::uint64_t n) {
  return {.group = "", .section = "route", .keys = n, .mix = "512 sets", .columns = {"single", "batch"}, .rows = {}};
}

bool run_route(Table& table, std::uint64_t rounds) {
  const std::uint64_t n = table.keys;
  const Sets sets(n);
  const SetIndex& index = sets.index;
  const FilterSet& set = sets.set;
  const std::vector<LineBloom>& typed = sets.typed;
  Row sliced = row_of("sliced index", index.byte_size(), n);
  Row many = row_of("512 line filters", kSets * sets.lines[0]->byte_size(), n);
  Row inlined = row_of("512 line filters, inlined", many.bytes, n);

  // No false negative, and the rate of the model: absent keys are said to be in as many sets.
  if (!finds_all(index, n)) sliced.refused = "a false negative";
  std::vector<std::uint64_t> answers(std::max(kQueries * index.words(), kSets));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Queries queries(kAbsent + round * kQueries);
    const auto timed = [&](Row& row, const char* column, auto work) {
      row.ns[column].push_back(1e9 * seconds(work) / static_cast<double>(kQueries));
    };
    std::uint64_t named = 0;
    std::uint64_t line_named = 0;
    timed(sliced, "single", [&] {
      for (const Bytes key : queries.bytes) {
        index.may_contain(key, answers);
        for (std::size_t w = 0; w < index.words(); ++w) named += static_cast<unsigned>(std::popcount(answers[w]));
      }
    });
    timed(many, "single", [&] {
      for (const Bytes key : queries.bytes) {
        set.may_contain(key, answers);
        for (std::size_t w = 0; w < set.words(); ++w) line_named += static_cast<unsigned>(std::popcount(answers[w]));
      }
    });
    timed(inlined, "single", [&] {
      std::uint64_t perhaps = 0;
      for (const Bytes key : queries.bytes) {
        const Digest<Hash> digest = Hash()(key);
        for (std::size_t s = 0; s < kSets; ++s) {
          typed[(s + 16) % kSets].prefetch(digest);
          perhaps += typed[s].may_contain(digest);
        }
      }
      keep(perhaps);
    });
    timed(sliced, "batch", [&] {
      std::array<std::uint64_t, kBatch> digests;
      for (std::size_t from = 0; from < kQueries; from += kBatch) {
        hash_many(Hash(), std::span<const Bytes>(queries.bytes).subspan(from, kBatch), digests);
        index.may_contain(std::span<const std::uint64_t>(digests), answers);
        keep(answers[0]);
      }
    });
    timed(many, "batch", [&] {
      for (std::size_t from = 0; from < kQueries; from += kBatch) {
        set.may_contain(std::span<const Bytes>(queries.bytes).subspan(from, kBatch), answers);
        keep(answers[0]);
      }
    });
    sliced.fpr += static_cast<double>(named) / static_cast<double>(kQueries * kSets * rounds);
    many.fpr += static_cast<double>(line_named) / static_cast<double>(kQueries * kSets * rounds);
  }
  sliced.fpr_model = index.false_sets() / kSets;
  many.fpr_model = typed[0].shape().fpr(static_cast<double>(n));
  inlined.fpr = many.fpr;
  inlined.fpr_model = many.fpr_model;
  // The filters are samples of their own; 2 % covers their spread at 1e4 keys and more.
  if (std::abs(sliced.fpr / sliced.fpr_model - 1) > 0.02) sliced.refused = "a rate outside the model";
  const bool refused = !sliced.refused.empty();
  table.rows = {sliced, many, inlined};
  print(table);
  if (!refused) {
    std::printf("  the index is %.1f times as fast as 512 filters, %.1f inlined; %.1f in batches\n",
                ratio(many.ns.at("single"), sliced.ns.at("single")),
                ratio(inlined.ns.at("single"), sliced.ns.at("single")),
                ratio(many.ns.at("batch"), sliced.ns.at("batch")));
  }
  return !refused;
}

}  // namespace perhaps::bench
