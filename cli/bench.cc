// perhaps bench: a quick look at the families on this machine: ns per key, the best of a few rounds. `make bench` in
// the source tree also measures limits and other libraries.
#include <chrono>
#include <vector>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "memory_check.h"
#include "options.h"
#include "perhaps/perhaps.h"
#include "print.h"

namespace perhaps::cli {
namespace bench {
namespace {

struct Options {
  std::uint64_t keys = 1'000'000;
  Sizing sizing;
  std::uint32_t threads = 1;
  bool json = false;
};

struct Row {
  std::string family;
  std::uint64_t bytes;
  double build, single, batch;  // ns per key
  double fpr;
};

template <class Work>
double best_ns(std::uint64_t keys, Work work) {
  double best = 1e300;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 7; ++round) {
    const auto from = std::chrono::steady_clock::now();
    work();
    const auto to = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double, std::nano>(to - from).count());
    check_interrupt();
    if (round >= 2 && to - begin > std::chrono::seconds(2)) break;
  }
  return best / static_cast<double>(keys);
}

template <class F>
Row measure(const Options& options, std::span<const Digest<Hash>> present, std::span<const Digest<Hash>> absent) {
  F filter(options.sizing.request(options.keys));
  Row row{std::string(F::layout::family), filter.byte_size(), 0, 0, 0, 0};
  row.build = best_ns(options.keys, [&] {
    filter.clear();
    insert_parallel(filter, present, options.threads);
  });
  std::uint64_t hits = 0;
  row.single = best_ns(options.keys, [&] {
    hits = 0;
    for (const auto d : absent) hits += filter.may_contain(d);
  });
  std::vector<std::uint64_t> answers((absent.size() + 63) / 64);
  row.batch = best_ns(options.keys, [&] { filter.may_contain(absent, answers); });
  row.fpr = static_cast<double>(hits) / static_cast<double>(options.keys);
  return row;
}

int run(const Options& options) {
  check_room(options.sizing, Kind::line);
  check_memory(options.keys > UINT64_MAX / 32 ? UINT64_MAX : options.keys * 24, "the benchmark");
  std::vector<Digest<Hash>> present(options.keys);
  std::vector<Digest<Hash>> absent(options.keys);
  const Hash hash;  // the filters' own
  for (std::uint64_t i = 0; i < options.keys; ++i) {
    present[i] = hash(i);
    absent[i] = hash(i + options.keys);
  }
  std::vector<Row> measured;
  const auto add = [&]<class L>() {
    if constexpr (BitLayout<L>) measured.push_back(measure<Flat<L, Hash>>(options, present, absent));
  };
#define PERHAPS_FAMILY(name, number, Type, summary) add.template operator()<Type>();
  PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
  Out out;
  if (options.json) {
    std::vector<std::string> objects;
    for (const Row& row : measured) {
      Json json;
      json.add("family", row.family).add("keys", options.keys).add("bytes", row.bytes).add("threads", options.threads);
      json.add("build_ns", row.build).add("single_ns", row.single).add("batch_ns", row.batch).add("fpr", row.fpr);
      objects.push_back(json.text());
    }
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  std::vector<std::vector<std::string>> rows = {{"family", "size", "build ns", "single ns", "batch ns", "fpr"}};
  for (const Row& row : measured) {
    rows.push_back({row.family, bytes_text(static_cast<double>(row.bytes)), fmt::format("{:.2f}", row.build),
                    fmt::format("{:.2f}", row.single), fmt::format("{:.2f}", row.batch), percent(row.fpr)});
  }
  out.write(table(rows, "lrrrrr"));
  out.write(dim(fmt::format("{} keys; nanoseconds a key, hashing apart; lookups of absent keys; build with {} thread{}",
                            grouped(options.keys), options.threads, options.threads == 1 ? "" : "s")) +
            "\n");
  return kYes;
}

}  // namespace
}  // namespace bench

Command::Run bench_command(CLI::App& app) {
  auto options = std::make_shared<bench::Options>();
  add_count(app, "--keys", options->keys, "N", "How many keys; default: 1M");
  declare_sizing(app, options->sizing);
  declare_threads(app, options->threads);
  declare_json(app, options->json);
  return [options] { return bench::run(*options); };
}

}  // namespace perhaps::cli
