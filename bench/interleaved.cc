#include "interleaved.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "grow.h"
#include "key_list.h"
#include "maps.h"
#include "merge.h"
#include "peak_memory.h"
#include "perhaps/hash.h"
#include "ranges.h"
#include "route.h"
#include "sizing.h"
#include "stopwatch.h"

namespace perhaps::bench {

template <class Key>
std::vector<Table> Bench::plan(std::uint64_t n, const std::string& group, bool quick) {
  const bool text = std::same_as<Key, std::string_view>;
  std::vector<Table> result;
  if (!text) {
    Table build{.group = group, .section = "build", .keys = n, .mix = {}, .columns = {"1 thread"}, .rows = {}};
    if (group == "mutable") {
      build.columns.insert(build.columns.end(), {"insert", "erase"});
    } else {
      build.columns.insert(build.columns.end(), {"1 thread, wall", "2 threads, wall", "2 threads, cpu"});
      build.columns.emplace_back(group == "static" ? "peak, B/key" : "insert");
    }
    result.push_back(build);
  }
  for (const char* mix : {"absent", "mixed", "present"}) {
    if (quick && std::strcmp(mix, "absent") != 0) continue;
    Table table{
        .group = group, .section = text ? "strings" : "lookup", .keys = n, .mix = mix, .columns = {}, .rows = {}};
    for (const char* form : kFormNames) {
      if (!text || (std::strcmp(form, "chain") != 0 && std::strcmp(form, "digests") != 0)) {
        table.columns.emplace_back(form);
      }
    }
    result.push_back(table);
  }
  return result;
}

template <class Key>
void Bench::build(Table* table, std::vector<Alive<Key>>& alive, std::span<const Key> keys) {
  const std::uint64_t all = table == nullptr             ? 1
                            : keys.size() >= 100'000'000 ? std::min<std::uint64_t>(3, rounds(keys.size()))
                                                         : rounds(keys.size());
  for (std::uint64_t round = 0; round < all; ++round) {
    for (auto& one : alive) {
      if (one.about->slow_build && round != 0) continue;
      const auto timed = [&](const char* column, unsigned threads, clockid_t clock) {
        one.contender->clear();
        const double time = seconds([&] { one.contender->build(keys, threads); }, clock);
        one.row.ns[column].push_back(1e9 * time / static_cast<double>(keys.size()));
      };
      // One thread last: the filter that is asked later is the one that it built.
      if (table != nullptr && one.about->kind == Kind::ours && one.about->headline && pin_.cpus() > 1) {
        pin_.up();
        timed("1 thread, wall", 1, CLOCK_MONOTONIC);
        timed("2 threads, wall", 2, CLOCK_MONOTONIC);
        timed("2 threads, cpu", 2, CLOCK_PROCESS_CPUTIME_ID);
        pin_.down();
      }
      if (table != nullptr && one.contender->inserts()) {
        one.contender->clear();
        const double time = seconds([&] { one.contender->insert_each(keys); });
        one.row.ns["insert"].push_back(1e9 * time / static_cast<double>(keys.size()));
      }
      std::optional<PeakMemory> peak;
      if (table != nullptr && table->group == "static") {
        one.contender->clear();
        peak.emplace();
      }
      timed("1 thread", 1, CLOCK_THREAD_CPUTIME_ID);
      if (peak) one.row.ns["peak, B/key"].push_back(peak->bytes() / static_cast<double>(keys.size()));
      if (table != nullptr && one.contender->erases()) {
        const auto some = keys.first((keys.size() + 3) / 4);
        const double time = seconds([&] { one.contender->erase(some); });
        one.row.ns["erase"].push_back(1e9 * time / static_cast<double>(some.size()));
        one.contender->build(some, 1);
      }
    }
  }
}

template <class Key>
void Bench::verify(Alive<Key>& one, std::span<const Key> keys) {
  const bool ours = one.about->kind == Kind::ours || one.about->kind == Kind::native;
  Row& row = one.row;
  row.bytes = one.contender->bytes();
  row.bits_per_key = 8.0 * static_cast<double>(row.bytes) / static_cast<double>(keys.size());
  if (one.about->kind == Kind::limit) return;

  const Form form = one.contender->has(Form::batch) ? Form::batch : Form::single;
  const auto inserted = ours ? keys : keys.first(std::min<std::size_t>(keys.size(), 1'000'000));
  const std::uint64_t found = one.contender->query(form, inserted);
  if (found != inserted.size()) row.refused = std::to_string(inserted.size() - found) + " false negatives";

  const std::uint64_t questions = ours ? (options_.quick ? 2'000'000 : 10'000'000) : 1'000'000;
  constexpr std::uint64_t kPart = 1 << 18;
  std::uint64_t perhaps = 0;
  std::uint64_t asked = 0;
  for (; asked < questions; asked += kPart) {
    const KeyList<Key> absent(kPart, [&](std::uint64_t i) { return kNeverAsked + asked + i; });
    perhaps += one.contender->query(form, absent.keys());
    if (asked != 0 || !row.refused.empty()) continue;
    for (const Form other : {Form::single, Form::mask}) {
      if (one.contender->has(other) && one.contender->query(other, absent.keys()) != perhaps) {
        row.refused = std::string(kFormNames[static_cast<std::size_t>(other)]) + " and batch give different answers";
      }
    }
  }
  row.fpr = static_cast<double>(perhaps) / static_cast<double>(asked);
  row.fpr_model = one.contender->fpr(keys.size());
  if (const double spread = one.contender->fpr_spread(keys.size()); spread > 0 && row.refused.empty()) {
    const double sigma =
        std::hypot(spread, std::sqrt(row.fpr_model * (1 - row.fpr_model) / static_cast<double>(asked)));
    if (std::abs(row.fpr - row.fpr_model) > 5 * sigma) {
      char text[160];
      std::snprintf(text, sizeof text, "FPR %.5f %% of %llu, by the model %.5f %% (%.1f sigma)", 100 * row.fpr,
                    static_cast<unsigned long long>(asked), 100 * row.fpr_model, (row.fpr - row.fpr_model) / sigma);
      row.refused = text;
    }
  }
  refused_ |= !row.refused.empty();
}

template <class Key>
void Bench::query(Table& table, std::vector<Alive<Key>>& alive, std::span<const Key> keys) {
  const std::uint64_t window = keys.size() > 1'000'000 ? 1 << 19 : 1 << 17;
  constexpr std::uint64_t kWindows = 8;
  const KeyList<Key> pool(window * kWindows, [&](std::uint64_t i) {
    const std::uint64_t dice = key_number(i + (kNeverAsked << 1));
    const bool present = table.mix == "present" || (table.mix == "mixed" && dice >> 63 != 0);
    return present ? dice % keys.size() : kAbsent + i;
  });
  std::vector<std::uint64_t> digests;
  if constexpr (std::same_as<Key, std::uint64_t>) {
    for (const std::uint64_t key : pool.keys()) digests.push_back(Hash()(key).value);
  }
  for (std::uint64_t round = 0; round < rounds(keys.size()); ++round) {
    for (std::size_t turn = 0; turn < alive.size(); ++turn) {
      auto& one = alive[(turn + round) % alive.size()];
      std::uint64_t call = round;
      const auto next = [&](Form form) -> std::span<const Key> {
        const std::uint64_t from = call++ % kWindows * window;
        if constexpr (std::same_as<Key, std::uint64_t>) {
          if (form == Form::digests) return std::span(digests).subspan(from, window);
        }
        return pool.keys().subspan(from, window);
      };
      keep(one.contender->query(one.contender->has(Form::batch) ? Form::batch : Form::single, next(Form::batch)));
      for (const Form form : kForms) {
        const std::string column = kFormNames[static_cast<std::size_t>(form)];
        const auto questions = next(form);
        if (!one.contender->has(form) ||
            std::find(table.columns.begin(), table.columns.end(), column) == table.columns.end()) {
          continue;
        }
        const double time = seconds([&] { keep(one.contender->query(form, questions)); });
        one.row.ns[column].push_back(1e9 * time / static_cast<double>(questions.size()));
      }
    }
  }
}

template <class Key>
void Bench::run(std::uint64_t n, const std::string& group, const std::vector<Entry<Key>>& entries) {
  std::vector<Table> planned = plan<Key>(n, group, options_.quick);
  std::erase_if(planned, [&](const Table& table) { return !wanted(table); });
  if (planned.empty()) return;

  const KeyList<Key> list(n, [](std::uint64_t i) { return i; });
  std::vector<Alive<Key>> alive;
  for (const auto& entry : entries) {
    if (!wanted(entry, group, n)) continue;
    alive.push_back({&entry.about, entry.make(n), {}});
    alive.back().row.about = entry.about;
  }
  const auto finish = [&](Table& table) {
    for (auto& one : alive) {
      table.rows.push_back(one.row);
      one.row.ns.clear();
    }
    print(table);
    tables_.push_back(std::move(table));
  };
  const bool building = planned.front().section == "build";
  build(building ? &planned.front() : nullptr, alive, list.keys());
  for (auto& one : alive) verify(one, list.keys());
  for (Table& table : planned) {
    if (table.section != "build") {
      for (auto& one : alive) one.row.ns.clear();
      query(table, alive, list.keys());
    }
    finish(table);
  }
}

template std::vector<Table> Bench::plan<std::uint64_t>(std::uint64_t, const std::string&, bool);
template std::vector<Table> Bench::plan<std::string_view>(std::uint64_t, const std::string&, bool);
template void Bench::run(std::uint64_t, const std::string&, const std::vector<Entry<std::uint64_t>>&);
template void Bench::run(std::uint64_t, const std::string&, const std::vector<Entry<std::string_view>>&);

void Bench::run_grow(std::uint64_t n) {
  Table table = grow_table(n);
  if (!wanted(table)) return;
  refused_ |= !bench::run_grow(table, std::min<std::uint64_t>(rounds(n), 5));
  tables_.push_back(std::move(table));
}

void Bench::run_maps(std::uint64_t n) {
  Table table = maps_table(n);
  if (!wanted(table)) return;
  refused_ |= !bench::run_maps(table, std::min<std::uint64_t>(rounds(n), 5));
  tables_.push_back(std::move(table));
}

void Bench::run_merge(std::uint64_t n) {
  Table table = merge_table(n);
  if (!wanted(table)) return;
  refused_ |= !bench::run_merge(table, std::min<std::uint64_t>(rounds(n), 5));
  tables_.push_back(std::move(table));
}

void Bench::run_sizing(std::uint64_t n) {
  Table table = sizing_table(n);
  if (!wanted(table)) return;
  bench::run_sizing(table, rounds(n));
  tables_.push_back(std::move(table));
}

void Bench::run_route(std::uint64_t n) {
  Table table = route_table(n);
  if (!wanted(table)) return;
  refused_ |= !bench::run_route(table, std::min<std::uint64_t>(rounds(n), 5));
  tables_.push_back(std::move(table));
}

void Bench::run_ranges(std::uint64_t n) {
  std::vector<Table> tables = range_tables(n);
  std::erase_if(tables, [&](const Table& table) { return !wanted(table); });
  if (tables.empty()) return;
  refused_ |= !bench::run_ranges(tables, std::min<std::uint64_t>(rounds(n), 5));
  tables_.insert(tables_.end(), tables.begin(), tables.end());
}

}  // namespace perhaps::bench
