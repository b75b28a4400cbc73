// perhaps bench: a quick look at every family on this machine: ns per key, the median of some rounds. `make bench` in
// the source tree also measures limits and other libraries. `perhaps bench hash` is in bench_hash.cc.
//
// Every family takes part in every round, so that a busy moment of the machine affects all of them alike.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "bench_hash.h"
#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "memory_check.h"
#include "options.h"
#include "perhaps/file/writer.h"
#include "perhaps/perhaps.h"
#include "print.h"
#include "size_plot.h"

namespace perhaps::cli {
namespace bench {
namespace {

using Digests = std::span<const Digest<Hash>>;

// A filter of one family, known at compile time: single lookups are inlined, as in a program that uses it.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual void build(Digests keys, unsigned threads) = 0;
  virtual std::uint64_t single(Digests keys) const = 0;  // how many answer *perhaps*
  virtual void batch(Digests keys, std::span<std::uint64_t> answers) const = 0;
  virtual std::uint64_t bytes() const = 0;
};

template <class F>
class Typed : public Contender {
 public:
  explicit Typed(const Request& request) : request_(request) {}

  void build(Digests keys, unsigned threads) override {
    if constexpr (requires { F(Growth{}); }) {
      filter_.emplace(Growth{.fpr = request_.fpr});
      filter_->insert(keys);
    } else if constexpr (requires { F::build(keys, request_, BuildOptions{}); }) {
      filter_.emplace(take(F::build(keys, request_, {.threads = threads})));
    } else if constexpr (BitLayout<typename F::layout>) {
      cleared();
      insert_parallel(*filter_, keys, threads);
    } else if constexpr (FillingLayout<typename F::layout>) {
      cleared();
      if (filter_->insert(keys) != keys.size()) fail("{}: full before all keys were inserted", F::layout::family);
    } else {
      cleared();
      filter_->insert(keys);
    }
  }
  std::uint64_t single(Digests keys) const override {
    std::uint64_t hits = 0;
    for (const auto d : keys) hits += filter_->may_contain(d);
    return hits;
  }
  void batch(Digests keys, std::span<std::uint64_t> answers) const override { filter_->may_contain(keys, answers); }
  std::uint64_t bytes() const override { return filter_->byte_size(); }

 private:
  // Memory that was touched before: a build is not charged for the pages of the first round.
  void cleared() {
    if (filter_) {
      filter_->clear();
    } else {
      filter_.emplace(request_);
    }
  }
  Request request_;
  std::optional<F> filter_;
};

template <class L>
std::unique_ptr<Contender> contender(const Request& request) {
  if constexpr (std::same_as<L, ScalableBloom>) {
    return std::make_unique<Typed<ScalableBloom>>(request);
  } else if constexpr (StaticLayout<L>) {
    return std::make_unique<Typed<StaticFilter<L, Hash>>>(request);
  } else {
    return std::make_unique<Typed<Flat<L, Hash>>>(request);
  }
}

std::unique_ptr<Contender> contender_of(Kind kind, const Request& request) {
  switch (kind) {
#define PERHAPS_FAMILY(name, number, Type, summary) \
  case Kind::name:                                  \
    return contender<Type>(request);
    PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
    default:
      return nullptr;
  }
}

struct Row {
  const Family* family;
  std::unique_ptr<Contender> filter;
  Times build;
  Times single;
  Times batch;
  double fpr = 0;
};

// Those that can honour the request; one that was named must.
std::vector<Row> rows_of(const Options& options, const Request& request) {
  std::vector<Row> rows;
  std::uint64_t bytes = 0;
  for (const Family& family : families()) {
    const bool named = std::ranges::find(options.filters, family.name) != options.filters.end();
    if (!named && !options.filters.empty()) continue;
    const auto size = size_of(family.kind, request);
    if (!size && named) fail("{}", size.error().detail);
    if (!size || (request.max_bytes != 0 && size->bytes > request.max_bytes)) continue;
    bytes += size->bytes;
    rows.push_back(
        {.family = &family, .filter = contender_of(family.kind, request), .build = {}, .single = {}, .batch = {}});
  }
  check_memory(options.keys > (UINT64_MAX - bytes) / 64 ? UINT64_MAX : options.keys * 24 + bytes, "the benchmark");
  return rows;
}

void measure(const Options& options, std::vector<Row>& rows) {
  std::vector<Digest<Hash>> present(options.keys);
  std::vector<Digest<Hash>> absent(options.keys);
  const Hash hash;  // the filters' own
  for (std::uint64_t i = 0; i < options.keys; ++i) {
    present[i] = hash(i);
    absent[i] = hash(i + options.keys);
  }
  const auto keys = static_cast<double>(options.keys);
  std::vector<std::uint64_t> answers((absent.size() + 63) / 64);
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds; ++round) {
    for (Row& row : rows) {
      std::uint64_t hits = 0;
      row.build.add(
          keys, [&] { row.filter->build(present, options.threads); },
          options.threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
      row.single.add(keys, [&] { hits = row.filter->single(absent); });
      row.batch.add(keys, [&] { row.filter->batch(absent, answers); });
      row.fpr = static_cast<double>(hits) / keys;
      check_interrupt();
    }
    if (round >= 2 && std::chrono::steady_clock::now() - begin > std::chrono::seconds(10)) break;
  }
}

// Time over memory, with the spread of the rounds.
std::string panel_of(const Options& options, const std::vector<Row>& rows, const Times Row::*times, double left,
                     const std::string& title) {
  std::vector<plot::Line> lines;
  double most_bits = 1;
  double least = 1e9;
  double most = 0;
  for (const Row& row : rows) {
    const Times& ns = row.*times;
    const double bits = 8 * static_cast<double>(row.filter->bytes()) / static_cast<double>(options.keys);
    plot::Line& line = plot::line_named(lines, std::string(row.family->name));
    line.points.push_back({bits, ns.median()});
    line.dots = true;
    most_bits = std::max(most_bits, bits);
    least = std::min(least, ns.low());
    most = std::max(most, ns.high());
  }
  const std::size_t families = lines.size();
  for (std::size_t i = 0; i < families; ++i) {
    const double bits = lines[i].points[0].x;
    const Times& ns = rows[i].*times;
    lines.push_back(
        {.label = {}, .colour = lines[i].colour, .style = {}, .points = {{bits, ns.low()}, {bits, ns.high()}}});
  }
  plot::Panel::Axis x{
      .from = 0, .to = std::ceil(most_bits / 10) * 10, .logarithmic = false, .ticks = {}, .title = "bits per key"};
  for (double bits = 0; bits <= x.to; bits += x.to / 5) x.ticks.push_back({bits, fmt::format("{:.0f}", bits)});
  plot::Panel::Axis y{.from = least / 1.5, .to = most * 1.5, .logarithmic = true, .ticks = {}, .title = "ns per key"};
  for (const double ns : {0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0}) {
    if (ns >= y.from && ns <= y.to) y.ticks.push_back({ns, fmt::format("{:g}", ns)});
  }
  const plot::Panel panel(left, 80, 300, 380, std::move(x), std::move(y));
  return panel.frame(title) + panel.draw(lines);
}

std::string svg_of(const Options& options, const std::vector<Row>& rows) {
  return plot::picture(1380, 540,
                       panel_of(options, rows, &Row::build, 80, "Build") +
                           panel_of(options, rows, &Row::single, 510, "Single lookups of absent keys") +
                           panel_of(options, rows, &Row::batch, 940, "Batches of absent keys"));
}

int run_families(const Options& options) {
  const Request request = options.sizing.request(options.keys);
  std::vector<Row> measured = rows_of(options, request);
  if (measured.empty()) fail("--max-bytes {}: no filter is so small", options.sizing.max_bytes);
  measure(options, measured);
  if (!options.svg.empty()) take(write_file(options.svg, bytes_of(svg_of(options, measured))));
  Out out;
  if (options.json) {
    std::vector<std::string> objects;
    for (const Row& row : measured) {
      Json json;
      json.add("family", row.family->name).add("keys", options.keys).add("bytes", row.filter->bytes());
      json.add("threads", options.threads).add("rounds", row.single.rounds());
      row.build.add_to(json, "build_ns");
      row.single.add_to(json, "single_ns");
      row.batch.add_to(json, "batch_ns");
      objects.push_back(json.add("fpr", row.fpr).text());
    }
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  std::vector<std::vector<std::string>> rows = {{"family", "size", "build ns", "single ns", "batch ns", "fpr"}};
  for (const Row& row : measured) {
    rows.push_back({std::string(row.family->name), bytes_text(static_cast<double>(row.filter->bytes())),
                    row.build.text(), row.single.text(), row.batch.text(), percent(row.fpr)});
  }
  out.write(table(rows, "lrrrrr"));
  const auto note = [&](const std::string& text) { out.write(dim(text) + "\n"); };
  note(fmt::format("{} keys; nanoseconds of CPU time per key, hashing apart; lookups of absent keys",
                   grouped(options.keys)));
  note(fmt::format("median of {} rounds ± half the distance between their quartiles", measured[0].single.rounds()));
  if (options.threads > 1)
    note(fmt::format("build: elapsed time, with up to {} threads where the family can use them", options.threads));
  return kYes;
}

int run(const Options& options) {
  if (!options.svg.empty()) check_output(options.svg);
  if (options.what == "families") return run_families(options);
  if (!options.filters.empty()) fail("--filter: bench hash measures no families");
  return run_hash(options);
}

}  // namespace
}  // namespace bench

Command::Run bench_command(CLI::App& app) {
  auto options = std::make_shared<bench::Options>();
  add_words(app, "what", options->what, {"families", "hash"},
            "What to measure: the families (default), or hashes of keys by their length");
  add_count(app, "--keys", options->keys, "N", "How many keys; default: 1M");
  const auto names = family_names();
  app.add_option_function<std::vector<std::string>>(
         "--filter",
         [options, names](const std::vector<std::string>& given) {
           for (const std::string& name : given) {
             if (std::ranges::find(names, name) == names.end())
               fail("--filter {}: must be one of {}", name, fmt::join(names, "|"));
           }
           options->filters = given;
         },
         "Only this family; may be repeated")
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->allow_extra_args(false);
  declare_sizing(app, options->sizing);
  declare_threads(app, options->threads);
  app.add_option("--svg", options->svg, "Draw it")->type_name("FILE.svg");
  declare_json(app, options->json);
  return [options] { return bench::run(*options); };
}

}  // namespace perhaps::cli
