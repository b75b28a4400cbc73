#include "grow.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "key_list.h"
#include "perhaps/growing.h"
#include "perhaps/quotient.h"
#include "perhaps/scalable_bloom.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

constexpr double kRate = 0.01;
constexpr std::size_t kColumn = 512;
constexpr std::uint64_t kQueries = 1 << 20;

double model(const ScalableBloom& filter, std::uint64_t) { return filter.fpr(); }
template <class F>
double model(const F& filter, std::uint64_t keys) {
  return filter.shape().fpr(static_cast<double>(keys));
}

// One round of one filter, made anew for each way to insert.
template <class Make>
void take_turn(Row& row, std::span<const std::uint64_t> keys, std::span<const std::uint64_t> absent, Make make) {
  const auto count = static_cast<double>(keys.size());
  auto filter = make();
  row.ns["insert"].push_back(1e9 / count * seconds([&] {
                               filter = make();
                               for (std::size_t i = 0; i < keys.size(); i += kColumn)
                                 static_cast<void>(filter.insert(keys.subspan(i, std::min(kColumn, keys.size() - i))));
                             }));
  std::vector<std::uint64_t> answers(absent.size() / kBatch);
  row.ns["lookup"].push_back(1e9 / static_cast<double>(absent.size()) *
                             seconds([&] { filter.may_contain(absent, std::span(answers)); }));
  std::uint64_t wrong = 0;
  for (const std::uint64_t word : answers) wrong += static_cast<std::uint64_t>(std::popcount(word));
  row.fpr = static_cast<double>(wrong) / static_cast<double>(absent.size());
  row.fpr_model = model(filter, keys.size());
  row.bytes = filter.byte_size();
  row.bits_per_key = 8.0 * static_cast<double>(row.bytes) / count;
  const bool all = std::ranges::all_of(keys, [&](std::uint64_t key) { return filter.may_contain(key); });
  if (!all) row.refused = "a false negative";

  filter = make();
  double worst = 0;
  for (const std::uint64_t key : keys) worst = std::max(worst, seconds([&] { static_cast<void>(filter.insert(key)); }));
  row.ns["worst"].push_back(1e9 * worst);
}

Row named(const char* name) {
  Row row;
  row.about = {.name = name, .kind = Kind::ours};
  return row;
}

}  // namespace

Table grow_table(std::uint64_t n) {
  return {.group = "",
          .section = "grow",
          .keys = n,
          .mix = "from nothing",
          .columns = {"insert", "worst", "lookup"},
          .rows = {}};
}

bool run_grow(Table& table, std::uint64_t rounds) {
  const std::uint64_t n = table.keys;
  const KeyList<std::uint64_t> keys(n, [](std::uint64_t i) { return i; });
  Row growing = named("growing");
  Row quotient = named("quotient, sized");
  Row chain = named("scalable");
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const KeyList<std::uint64_t> absent(kQueries, [&](std::uint64_t i) { return kAbsent + round * kQueries + i; });
    take_turn(growing, keys.keys(), absent.keys(), [] { return Growing(Request{.keys = 0, .fpr = kRate}); });
    take_turn(quotient, keys.keys(), absent.keys(), [&] { return Quotient(Request{.keys = n, .fpr = kRate}); });
    take_turn(chain, keys.keys(), absent.keys(), [] { return ScalableBloom(); });
  }
  table.rows = {growing, quotient, chain};
  print(table);
  const bool refused = !growing.refused.empty() || !quotient.refused.empty() || !chain.refused.empty();
  if (!refused) {
    std::printf(
        "  beside the quotient filter: inserting %.2f times as long, looking up %.2f; the worst insert %.2f ms\n",
        ratio(growing.ns.at("insert"), quotient.ns.at("insert")),
        ratio(growing.ns.at("lookup"), quotient.ns.at("lookup")), 1e-6 * median(growing.ns.at("worst")));
  }
  return !refused;
}

}  // namespace perhaps::bench
