#include "merge.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "key_list.h"
#include "number.h"
#include "perhaps/quotient.h"
#include "stopwatch.h"

namespace perhaps::bench {

Table merge_table(std::uint64_t n) {
  return {.group = "",
          .section = "merge",
          .keys = n,
          .mix = {},
          .columns = {"merge", "ascending", "any order"},
          .rows = {}};
}

bool run_merge(Table& table, std::uint64_t rounds) {
  bool agree = true;
  for (const std::uint64_t keys : {table.keys, 2 * table.keys}) {
    Row row;
    row.about = {.name = "quotient, 2 x " + short_number(keys), .kind = Kind::ours};
    const auto shape = QuotientShape::for_keys({.keys = keys, .fpr = 0.002});
    const auto filled = [&](std::uint64_t from) {
      const KeyList<std::uint64_t> list(keys, [&](std::uint64_t i) { return from + i; });
      std::vector<Digest<Hash>> digests(keys);
      digests_of(Hash(), list.keys(), std::span(digests));
      auto built = build_quotient(shape, std::span<const Digest<Hash>>(digests), Hash());
      if (!built) throw std::runtime_error(built.error().detail);
      return std::pair(*std::move(built), std::move(digests));
    };
    const Quotient a = filled(0).first;
    const auto second = filled(kAbsent);
    const Quotient& b = second.first;
    const std::span<const Digest<Hash>> digests = second.second;
    std::vector<std::uint64_t> ascending;
    ascending.reserve(keys);
    for_each_fingerprint(b.view(), [&](std::uint64_t f) { ascending.push_back(f); });
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto timed = [&](const char* column, auto work) {
        row.ns[column].push_back(1e9 * seconds(work) / static_cast<double>(keys));
      };
      std::optional<Result<Quotient>> both;
      timed("merge", [&] { both.emplace(merge(a.view(), b.view())); });
      if (!*both) throw std::runtime_error(both->error().detail);
      const Quotient& merged = **both;
      const auto roomy = resize(a.view(), merged.shape());
      if (!roomy) throw std::runtime_error(roomy.error().detail);
      Quotient one = *roomy;
      timed("ascending", [&] {
        for (const std::uint64_t f : ascending)
          detail::kernels().quotient_insert_one(one.shape(), one.writable_bytes().data(), f);
      });
      Quotient other = *roomy;
      timed("any order", [&] { keep(other.insert(digests)); });
      if (!std::ranges::equal(one.bytes(), merged.bytes()) || !std::ranges::equal(other.bytes(), merged.bytes())) {
        row.refused = "merging and inserting end with different bytes";
        agree = false;
      }
      if (round == 0) {
        const KeyList<std::uint64_t> absent(1 << 18, [](std::uint64_t i) { return kNeverAsked + i; });
        std::vector<std::uint64_t> answers(absent.keys().size() / kBatch);
        merged.may_contain(absent.keys(), answers);
        for (const std::uint64_t word : answers) row.fpr += std::popcount(word) / double{1 << 18};
        row.fpr_model = merged.shape().fpr(2 * static_cast<double>(keys));
      }
      row.bytes = merged.byte_size();
      row.bits_per_key = 8.0 * static_cast<double>(row.bytes) / static_cast<double>(2 * keys);
    }
    table.rows.push_back(std::move(row));
  }
  print(table);
  const auto& once = table.rows[0].ns;
  const auto& twice = table.rows[1].ns;
  if (table.rows[0].refused.empty() && table.rows[1].refused.empty()) {
    std::printf(
        "  merging is %.1f times as fast as inserting in ascending order, %.1f in any; twice the keys take %.2f "
        "times the time\n",
        ratio(once.at("ascending"), once.at("merge")), ratio(once.at("any order"), once.at("merge")),
        2 * ratio(twice.at("merge"), once.at("merge")));
  }
  return agree;
}

}  // namespace perhaps::bench
