#include "sizing.h"

#include "perhaps/sizing.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

template <class Shape>
Row measured(const char* name, std::uint64_t keys, std::uint64_t rounds) {
  constexpr std::uint64_t kCalls = 100;
  Row row;
  row.about = {.name = name, .kind = Kind::ours};
  const auto shape = Shape::for_keys({.keys = keys, .bits_per_key = 10});
  row.bytes = shape.bytes();
  row.bits_per_key = 8.0 * static_cast<double>(row.bytes) / static_cast<double>(keys);
  row.fpr = row.fpr_model = shape.fpr(static_cast<double>(keys));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto timed = [&](const char* column, auto call) {
      const double time = seconds([&] {
        for (std::uint64_t i = 0; i < kCalls; ++i) keep(call(keys + i).bytes());
      });
      row.ns[column].push_back(1e9 * time / kCalls);
    };
    timed("fpr, a call", [](std::uint64_t n) { return Shape::for_keys({.keys = n, .fpr = 0.01}); });
    timed("bits_per_key, a call", [](std::uint64_t n) { return Shape::for_keys({.keys = n, .bits_per_key = 10}); });
  }
  return row;
}

}  // namespace

Table sizing_table(std::uint64_t n) {
  return {.group = "",
          .section = "sizing",
          .keys = n,
          .mix = {},
          .columns = {"fpr, a call", "bits_per_key, a call"},
          .rows = {}};
}

void run_sizing(Table& table, std::uint64_t rounds) {
  table.rows.push_back(measured<LineShape>("line", table.keys, rounds));
  table.rows.push_back(measured<BlockShape>("block", table.keys, rounds));
  table.rows.push_back(measured<BloomShape>("classic", table.keys, rounds));
  print(table);
}

}  // namespace perhaps::bench
