// perhaps-bench: ratios, from one interleaved run.
//
// All contenders of a table are alive at once and take turns, so that whatever the machine does meanwhile happens to
// all of them; a ratio is the median over the rounds of the ratio within a round. One thread, pinned, except where a
// table says threads. Before a round a contender is asked once, untimed, so that its table is in the cache as far as it
// fits; no two calls in a row get the same keys, so that a large table is never in the cache because of the last call.
//
// No speed without correctness: every key must be found, every form of a lookup must give the same answers, and
// the measured false-positive rate must be that of the model (five standard deviations).
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <stdexcept>
#include <thread>

#include "contender.h"
#include "fpr.h"
#include "kernel/table.h"
#include "number.h"
#include "perhaps/hash.h"
#include "perhaps/quotient.h"
#include "report.h"
#include "route.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

constexpr const char* kUsage =
    R"(perhaps-bench [options]        speeds, as ratios
perhaps-bench fpr [--seed S]   false-positive rates, theory beside measurement

  --keys LIST          sizes, e.g. 1e5,1e6 (default 1e5,1e6,1e7,1e8)
  --rounds N           rounds (default 15; 7 at 1e8, of builds 3)
  --quick              a few minutes: up to 1e7 keys (static, mutable, merge: 1e6), 5 rounds, absent keys only
  --only REGEX         only the tables whose title matches: "^lookup", "^static build", "^mutable", "^route" ..
  --contenders REGEX   only the contenders whose name matches
  --isa NAME           kernels to use (portable, sse4, avx2 ...)
  --cpu N              the CPU to stay on (default: the last)
  --load FILE          a module of further contenders
  --json FILE, --svg FILE
  --list               tables, contenders and kernels
)";

struct Options {
  std::vector<std::uint64_t> keys{100'000, 1'000'000, 10'000'000, 100'000'000};
  bool keys_given = false;
  std::uint64_t rounds = 0;
  bool quick = false;
  bool list = false;
  bool fpr = false;
  std::uint64_t seed = 1;
  std::string only = ".";
  std::string contenders = ".";
  std::string isa;
  std::string json;
  std::string svg;
  std::vector<std::string> modules;
  int cpu = -1;
};

std::uint64_t number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::invalid_argument("not a number: " + text);
  }
  return static_cast<std::uint64_t>(value);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
      return argv[++i];
    };
    if (name == "fpr") {
      options.fpr = true;
    } else if (name == "--keys") {
      options.keys_given = true;
      options.keys.clear();
      const std::string list = value();
      for (std::size_t from = 0; from <= list.size();) {
        const std::size_t to = std::min(list.find(',', from), list.size());
        options.keys.push_back(number(list.substr(from, to - from)));
        from = to + 1;
      }
    } else if (name == "--rounds") {
      options.rounds = number(value());
    } else if (name == "--quick") {
      options.quick = true;
    } else if (name == "--only") {
      options.only = value();
    } else if (name == "--contenders") {
      options.contenders = value();
    } else if (name == "--isa") {
      options.isa = value();
    } else if (name == "--cpu") {
      options.cpu = static_cast<int>(number(value()));
    } else if (name == "--load") {
      options.modules.push_back(value());
    } else if (name == "--json") {
      options.json = value();
    } else if (name == "--svg") {
      options.svg = value();
    } else if (name == "--list") {
      options.list = true;
    } else if (name == "--seed") {
      options.seed = number(value());
    } else if (name == "--help" || name == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    } else {
      throw std::invalid_argument("unknown argument: " + name);
    }
  }
  if (options.quick && !options.keys_given) options.keys.pop_back();
  return options;
}

constexpr std::uint64_t kAbsent = std::uint64_t{1} << 40;  // Numbers of absent keys begin here,
constexpr std::uint64_t kNeverAsked = kAbsent << 1;        // those that only measure the rate here.

template <class Key>
class KeyList;

template <>
class KeyList<std::uint64_t> {
 public:
  template <class Number>
  KeyList(std::uint64_t count, Number number) : keys_(count) {
    for (std::uint64_t i = 0; i < count; ++i) keys_[i] = key_number(number(i));
  }
  std::span<const std::uint64_t> keys() const { return keys_; }

 private:
  std::vector<std::uint64_t> keys_;
};

// 16 to 32 bytes, the first 8 of which are the number.
template <>
class KeyList<std::string_view> {
 public:
  template <class Number>
  KeyList(std::uint64_t count, Number number) : text_(count * 24 + count / 4 + 64), keys_(count) {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = key_number(number(i));
      const std::size_t size = 16 + key_number(first) % 17;
      if (at + 32 > text_.size()) throw std::length_error("strings longer than expected");
      std::uint64_t word = first;
      for (std::size_t j = 0; j < 32; j += 8, word = key_number(word)) std::memcpy(&text_[at + j], &word, 8);
      keys_[i] = {&text_[at], size};
      at += size;
    }
  }
  std::span<const std::string_view> keys() const { return keys_; }

 private:
  std::vector<char> text_;
  std::vector<std::string_view> keys_;
};

class Pin {
 public:
  explicit Pin(int cpu) {
    sched_getaffinity(0, sizeof all_, &all_);
    cpu_ = cpu;
    for (int i = 0; cpu_ < 0 || i < CPU_SETSIZE; ++i) {
      if (i == CPU_SETSIZE) break;
      if (cpu < 0 && CPU_ISSET(i, &all_)) cpu_ = i;
    }
    down();
  }
  void down() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu_, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) std::fprintf(stderr, "warning: cannot stay on CPU %d\n", cpu_);
  }
  void up() const { sched_setaffinity(0, sizeof all_, &all_); }
  int cpu() const { return cpu_; }
  int cpus() const { return CPU_COUNT(&all_); }

 private:
  cpu_set_t all_;
  int cpu_;
};

// Twice as many are merged as well.
constexpr std::uint64_t kMaxMerged = 10'000'000;

Table merge_table(std::uint64_t n) {
  return {.group = "",
          .section = "merge",
          .keys = n,
          .mix = {},
          .columns = {"merge", "ascending", "any order"},
          .rows = {}};
}

class Bench {
 public:
  Bench(const Options& options, const Pin& pin)
      : options_(options), pin_(pin), only_(options.only), contenders_(options.contenders) {}

  template <class Key>
  void run(std::uint64_t n, const std::string& group, const std::vector<Entry<Key>>& entries);
  void run_merge(std::uint64_t n);
  void run_route(std::uint64_t n);

  bool wanted(const Table& table) const { return std::regex_search(table.title(), only_); }
  template <class Key>
  bool wanted(const Entry<Key>& entry, const std::string& group, std::uint64_t n) const {
    return entry.about.group == group && n <= (options_.quick ? entry.about.max_quick_keys : entry.about.max_keys) &&
           std::regex_search(entry.about.name, contenders_);
  }
  const std::vector<Table>& tables() const { return tables_; }
  bool refused() const { return refused_; }

  template <class Key>
  static std::vector<Table> plan(std::uint64_t n, const std::string& group, bool quick) {
    const bool text = std::same_as<Key, std::string_view>;
    std::vector<Table> result;
    if (!text) {
      Table build{.group = group, .section = "build", .keys = n, .mix = {}, .columns = {"1 thread"}, .rows = {}};
      if (group == "mutable") {
        build.columns.emplace_back("erase");
      } else {
        build.columns.insert(build.columns.end(), {"1 thread, wall", "2 threads, wall", "2 threads, cpu"});
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

 private:
  template <class Key>
  struct Alive {
    const About* about;
    std::unique_ptr<Contender<Key>> contender;
    Row row;
  };

  std::uint64_t rounds(std::uint64_t n) const {
    if (options_.rounds != 0) return options_.rounds;
    return options_.quick ? 5 : n >= 100'000'000 ? 7 : 15;
  }

  template <class Key>
  void build(Table* table, std::vector<Alive<Key>>& alive, std::span<const Key> keys);
  template <class Key>
  void verify(Alive<Key>& one, std::span<const Key> keys);
  template <class Key>
  void ask(Table& table, std::vector<Alive<Key>>& alive, std::span<const Key> keys);

  const Options& options_;
  const Pin& pin_;
  std::regex only_;
  std::regex contenders_;
  std::vector<Table> tables_;
  bool refused_ = false;
};

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
      timed("1 thread", 1, CLOCK_THREAD_CPUTIME_ID);
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
  const std::uint64_t found = one.contender->ask(form, inserted);
  if (found != inserted.size()) row.refused = std::to_string(inserted.size() - found) + " false negatives";

  const std::uint64_t questions = ours ? (options_.quick ? 2'000'000 : 10'000'000) : 1'000'000;
  constexpr std::uint64_t kPart = 1 << 18;
  std::uint64_t perhaps = 0;
  std::uint64_t asked = 0;
  for (; asked < questions; asked += kPart) {
    const KeyList<Key> absent(kPart, [&](std::uint64_t i) { return kNeverAsked + asked + i; });
    perhaps += one.contender->ask(form, absent.keys());
    if (asked != 0 || !row.refused.empty()) continue;
    for (const Form other : {Form::single, Form::mask}) {
      if (one.contender->has(other) && one.contender->ask(other, absent.keys()) != perhaps) {
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
void Bench::ask(Table& table, std::vector<Alive<Key>>& alive, std::span<const Key> keys) {
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
      keep(one.contender->ask(one.contender->has(Form::batch) ? Form::batch : Form::single, next(Form::batch)));
      for (const Form form : kForms) {
        const std::string column = kFormNames[static_cast<std::size_t>(form)];
        const auto questions = next(form);
        if (!one.contender->has(form) ||
            std::find(table.columns.begin(), table.columns.end(), column) == table.columns.end()) {
          continue;
        }
        const double time = seconds([&] { keep(one.contender->ask(form, questions)); });
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
      ask(table, alive, list.keys());
    }
    finish(table);
  }
}

// Two quotient filters of n keys each become one: merged, or the fingerprints of the second inserted into a copy of the
// first that has room for them, in their order and in that of the keys. ns for a key of the second; all three end with
// the same bytes, or no speed is printed. Merging is charged with the memory of its result, page faults and zeroing
// included; inserting is given the copy, which is made and touched before the clock starts. To charge it with the copy
// as well would flatter merging: resize() alone takes half as long as merge().
void Bench::run_merge(std::uint64_t n) {
  Table table = merge_table(n);
  if (!wanted(table)) return;
  for (const std::uint64_t keys : {n, 2 * n}) {
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
    for (std::uint64_t round = 0; round < std::min<std::uint64_t>(rounds(n), 5); ++round) {
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
        for (const std::uint64_t f : ascending) detail::quotient_insert(one.shape(), one.writable_bytes().data(), f);
      });
      Quotient other = *roomy;
      timed("any order", [&] { keep(other.insert(digests)); });
      if (!std::ranges::equal(one.bytes(), merged.bytes()) || !std::ranges::equal(other.bytes(), merged.bytes())) {
        row.refused = "merging and inserting end with different bytes";
        refused_ = true;
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
  tables_.push_back(std::move(table));
}

void Bench::run_route(std::uint64_t n) {
  Table table = route_table(n);
  if (!wanted(table)) return;
  refused_ |= !bench::run_route(table, std::min<std::uint64_t>(rounds(n), 5));
  tables_.push_back(std::move(table));
}

std::string first_line(const char* path, const std::string& prefix) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(prefix)) continue;
    const std::size_t colon = line.find(':');
    return prefix.empty() || colon == std::string::npos ? line : line.substr(line.find_first_not_of(" \t", colon + 1));
  }
  return "unknown";
}

template <class Key>
void append(std::vector<Entry<Key>>& all, const std::vector<Entry<Key>>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::string folder_of_program() {
  std::array<char, 4096> path;
  const auto size = readlink("/proc/self/exe", path.data(), path.size());
  const std::string whole(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return whole.substr(0, whole.rfind('/') + 1);
}

int run(const Options& options) {
  if (!options.isa.empty()) {
    const auto rows = kernel::rows();
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto* row) { return row->isa == options.isa; });
    if (found == rows.end()) throw std::invalid_argument("this CPU or this build has no kernels named " + options.isa);
    setenv("PERHAPS_ISA", options.isa.c_str(), 1);  // For modules, which have kernels of their own.
    kernel::use(**found);
  }
  auto& numbers = registry<std::uint64_t>();
  auto& strings = registry<std::string_view>();
  std::vector<std::string> missing;
  std::vector<std::string> modules = options.modules;
  for (const char* beside : {"perhaps-bench-native.so", "perhaps-bench-contenders.so"}) {
    const std::string path = folder_of_program() + beside;
    if (access(path.c_str(), R_OK) == 0) modules.push_back(path);
  }
  for (const std::string& path : modules) {
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* entry = module == nullptr ? nullptr : dlsym(module, "perhaps_bench_contenders");
    if (entry == nullptr) throw std::runtime_error(std::string("cannot load contenders: ") + dlerror());
    const Contenders more = reinterpret_cast<Contenders (*)()>(entry)();
    append(numbers, *more.numbers);
    append(strings, *more.strings);
  }
  std::stable_sort(numbers.begin(), numbers.end(),
                   [](const auto& a, const auto& b) { return a.about.kind < b.about.kind; });
  std::stable_sort(strings.begin(), strings.end(),
                   [](const auto& a, const auto& b) { return a.about.kind < b.about.kind; });
  if (!PERHAPS_BENCH_LEVELDB) missing.emplace_back("libleveldb-dev");
  if (!PERHAPS_BENCH_LIBBLOOM) missing.emplace_back("libbloom-dev");
  if (!PERHAPS_BENCH_ABSL) missing.emplace_back("libabsl-dev");

  const std::uint64_t text_keys = options.quick ? 1'000'000 : 10'000'000;
  if (options.list) {
    for (const auto* row : kernel::rows()) std::printf("kernels    %s\n", row->isa);
    for (const auto& entry : numbers) std::printf("contender  %s\n", entry.about.name.c_str());
    for (const auto& entry : strings) std::printf("contender  %s (strings)\n", entry.about.name.c_str());
    for (const std::uint64_t n : options.keys) {
      for (const char* group : kGroups) {
        for (const auto& table : Bench::plan<std::uint64_t>(n, group, options.quick))
          std::printf("table      %s\n", table.title().c_str());
      }
      if (n <= kMaxMerged) std::printf("table      %s\n", merge_table(n).title().c_str());
      if (n <= kMaxRouted) std::printf("table      %s\n", route_table(n).title().c_str());
    }
    for (const auto& table : Bench::plan<std::string_view>(text_keys, "", options.quick))
      std::printf("table      %s\n", table.title().c_str());
    return 0;
  }

  const Pin pin(options.cpu);
  const std::map<std::string, std::string> about{
      {"cpu", first_line("/proc/cpuinfo", "model name")},
      {"pinned to", std::to_string(pin.cpu()) + " of " + std::to_string(pin.cpus())},
      {"L2 bytes", std::to_string(sysconf(_SC_LEVEL2_CACHE_SIZE))},
      {"L3 bytes", std::to_string(sysconf(_SC_LEVEL3_CACHE_SIZE))},
      {"huge pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled", "")},
      {"kernels", kernel::active().isa},
      {"compiler", __VERSION__},
      {"load before", first_line("/proc/loadavg", "")},
  };
  for (const auto& [name, value] : about) std::printf("%-12s %s\n", name.c_str(), value.c_str());
  for (const auto& package : missing) {
    std::printf("\n*** NOT MEASURED: %s was not there when this was configured ***\n", package.c_str());
  }
  std::printf(
      "\nA ratio is the median over the rounds of the ratio within one round. \"Times as fast\" compares the same "
      "form;\n"
      "a ' marks a peer without it, asked one key at a time (or building with one thread). ! = a peer's measured rate\n"
      "is more than 1.5 times its own formula.\n");

  Bench bench(options, pin);
  for (const std::uint64_t n : options.keys) {
    if (n == 0) throw std::invalid_argument("--keys: at least one");
    bench.run<std::uint64_t>(n, kGroups[0], numbers);
    // They build slowly, and a quick look is to stay one.
    if (options.quick && !options.keys_given && n > 1'000'000) continue;
    for (std::size_t i = 1; i < kGroups.size(); ++i) bench.run<std::uint64_t>(n, kGroups[i], numbers);
    if (n <= kMaxMerged) bench.run_merge(n);
    if (n <= kMaxRouted) bench.run_route(n);
  }
  bench.run<std::string_view>(text_keys, "", strings);
  if (!options.json.empty()) write_json(options.json, about, bench.tables());
  if (!options.svg.empty()) write_svg(options.svg, bench.tables(), measured_rates(options.seed));
  return bench.refused() ? 1 : 0;
}

}  // namespace
}  // namespace perhaps::bench

int main(int argc, char** argv) {
  try {
    const auto options = perhaps::bench::parse(argc, argv);
    return options.fpr ? perhaps::bench::print_rates(options.seed) : perhaps::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perhaps-bench: %s\n", error.what());
    return 2;
  }
}
