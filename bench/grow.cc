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

// What one filter is like while it grows, at every power of two and half-way: its bits, its rate, and the slowest
// insert since the line before, with what the clock itself takes.
void print_points(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> absent) {
  std::printf("  %-12s %14s %10s %14s %16s\n", "growing at", "bits per key", "rate", "ns per insert", "slowest, ms");
  Growing filter(Request{.keys = 0, .fpr = kRate});
  std::vector<std::uint64_t> answers(absent.size() / kBatch);
  double most_bits = 0;
  double worst = 0;
  std::uint64_t from = 0;
  for (std::uint64_t to = 1024; from < keys.size(); to = std::has_single_bit(to) ? to / 2 * 3 : to / 3 * 4) {
    const auto some = keys.subspan(from, std::min<std::uint64_t>(to, keys.size()) - from);
    double slowest = 0;
    double all = 0;
    for (const std::uint64_t key : some) {
      const double time = seconds([&] { static_cast<void>(filter.insert(key)); });
      slowest = std::max(slowest, time);
      all += time;
    }
    from += some.size();
    filter.may_contain(absent, std::span(answers));
    std::uint64_t wrong = 0;
    for (const std::uint64_t word : answers) wrong += static_cast<std::uint64_t>(std::popcount(word));
    const double bits = 8.0 * static_cast<double>(filter.byte_size()) / static_cast<double>(from);
    most_bits = std::max(most_bits, bits);
    worst = std::max(worst, slowest);
    std::printf("  %-12llu %14.2f %9.4f%% %14.1f %16.3f\n", static_cast<unsigned long long>(from), bits,
                100.0 * static_cast<double>(wrong) / static_cast<double>(absent.size()),
                1e9 * all / static_cast<double>(some.size()), 1e3 * slowest);
  }
  std::printf("  at these points at most %.2f bits per key; the slowest insert took %.3f ms\n", most_bits, 1e3 * worst);
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
    const KeyList<std::uint64_t> absent(kQueries, [](std::uint64_t i) { return kNeverAsked + i; });
    print_points(keys.keys(), absent.keys());
  }
  return !refused;
}

}  // namespace perhaps::bench
