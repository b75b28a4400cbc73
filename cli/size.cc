// perhaps size: what each family needs, and how far that is from the theoretical minimum.
//
// size_rows.h has the question and its answers.
#include <algorithm>
#include <cmath>

#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "options.h"
#include "perhaps/file/writer.h"
#include "perhaps/range.h"
#include "print.h"
#include "size_plot.h"
#include "size_rows.h"

namespace perhaps::cli {
namespace size {
namespace {

struct Options : SizeQuestion {
  std::uint64_t range_size = 0;  // not given
  std::string plot;
  bool json = false;
};

// The row of --range-size, where the rate is of empty ranges.
constexpr Family kRange = {.kind = Kind::range,
                           .name = name_of(Kind::range),
                           .summary = "answers ranges of keys; the rate is of empty ones",
                           .merges = true,
                           .takes_any_size = true};
SizeRow range_row(const Options& options) {
  const std::uint64_t keys = options.keys == 0 ? kTypicalKeys : options.keys;
  const RangeShape shape = RangeShape::for_keys({.keys = keys,
                                                 .fpr = options.fpr,
                                                 .bits_per_key = options.bits_per_key,
                                                 .max_bytes = options.max_bytes,
                                                 .range_size = options.range_size});
  return {&kRange, keys,
          FamilySize{.kind = Kind::range,
                     .bytes = shape.bytes(),
                     .bits = shape.bytes() * 8,
                     .probes = 0,
                     .fpr = shape.fpr(static_cast<double>(options.range_size))}};
}

// What can be done with it once it is built.
std::string abilities(const Family& family) {
  std::string text = family.inserts ? "add" : "query only";
  if (family.erases) text += " remove";
  if (family.merges) text += " merge";
  return text;
}

std::string json_of(const SizeRow& row, double bits_per_key, double limit, double above) {
  const auto& [family, keys, size] = row;
  Json json;
  json.add("family", family->name).add("keys", keys).add("bits", size.bits).add("bytes", size.bytes);
  json.add("bits_per_key", bits_per_key).add("probes", size.probes).add("fpr", size.fpr);
  json.add("bits_per_key_limit", limit).add("above_limit", above);
  json.add("summary", family->summary).add("kind", static_cast<std::uint32_t>(family->kind));
  json.add("add", family->inserts).add("remove", family->erases).add("merge", family->merges);
  return json.add("grow", family->grows).text();
}

// Checks that exactly as many numbers are given as fix the others.
void check_given(Options& options) {
  const bool rate = options.fpr != 0;
  const bool bits = options.bits_per_key != 0;
  const bool bytes = options.max_bytes != 0;
  if (options.keys == 0 && !rate && !bits && !bytes)
    fail("some of --keys, --fpr, --max-bytes, --bits-per-key are needed; the others follow from them");
  if (int{rate} + int{bits} + int{bytes} + int{options.keys != 0} > 2)
    fail("two of --keys, --fpr, --max-bytes and --bits-per-key are enough; the others follow from them");
  if (options.finds_keys() && options.max_bytes > kMaxBytes)
    fail("--max-bytes {}: keys can be found for 1Pi at most", options.max_bytes);
  if (options.range_size != 0 && options.finds_keys()) fail("--range-size: needs --keys, not --max-bytes alone");
  if (rate && bits) fail("--fpr and --bits-per-key: one follows from the other");
  if (!rate && !bits && (options.keys == 0 || !bytes)) options.fpr = 0.01;
}

int run(Options& options) {
  check_given(options);
  if (!options.plot.empty()) check_output(options.plot);
  std::vector<std::string> objects;
  std::vector<std::vector<std::string>> rows = {
      {"family", "keys", "probes", "bits/key", "bytes", "fpr", "over", "then"}};
  std::vector<plot::Point> marks;
  const auto add = [&](const std::optional<SizeRow>& row) {
    if (!row) return;
    const Family& family = *row->family;
    const FamilySize& size = row->size;
    const double bits_per_key = row->bits_per_key();
    // A filter that answers all ranges of L numbers needs log2(L) bits more of each key.
    const bool ranges = family.kind == Kind::range;
    const double limit = row->limit() + (ranges ? std::log2(static_cast<double>(options.range_size)) : 0);
    const double above = limit > 0 ? bits_per_key / limit - 1 : 0;
    if (!ranges) marks.push_back({size.fpr, bits_per_key});
    if (options.json) objects.push_back(json_of(*row, bits_per_key, limit, above));
    rows.push_back({std::string(family.name), grouped(row->keys), size.probes == 0 ? "-" : std::to_string(size.probes),
                    fmt::format("{:.2f}", bits_per_key), grouped(size.bytes), percent(size.fpr),
                    limit > 0.01 ? fmt::format("+{:.{}f} %", above * 100, above < 0.0995 ? 1 : 0) : "-",
                    abilities(family)});
  };
  for (const Family& family : families()) add(size_row(options, family));
  if (options.range_size != 0) add(range_row(options));
  if (options.probes != 0 && marks.empty()) fail("--probes {}: no family can do that", options.probes);
  if (!options.plot.empty()) {
    const std::uint64_t keys = options.keys == 0 ? kTypicalKeys : options.keys;
    const std::string picture = plot::picture(740, 550, plot::size_panel(keys, marks));
    take(write_file(options.plot, bytes_of(picture)));
  }
  Out out;
  if (options.json) {
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  if (!options.finds_keys()) {
    for (auto& row : rows) row.erase(row.begin() + 1);
  }
  out.write(table(rows, options.finds_keys() ? "lrrrrrrl" : "lrrrrrl"));
  out.write(dim("over: above the limit; every filter needs at least log2(1/fpr) bits per key") + "\n");
  if (options.keys == 0 && !options.finds_keys())
    out.write(dim(fmt::format("for {} keys, as --keys is not given", grouped(kTypicalKeys))) + "\n");
  return kYes;
}

}  // namespace
}  // namespace size

Command::Run size_command(CLI::App& app) {
  auto options = std::make_shared<size::Options>();
  add_count(app, "--keys", options->keys, "N", "For how many keys");
  add_rate(app, options->fpr, "The false-positive rate; default if nothing else says it: 0.01");
  add_bits_per_key(app, options->bits_per_key, "Bits per key");
  add_count(app, "--max-bytes", options->max_bytes, "SIZE", "The memory of the filter (64M, 1Gi)");
  app.add_option_function<std::string>(
         "--probes",
         [options](const std::string& given) {
           const auto parsed = parse_u64(given);
           if (!parsed || *parsed < 1 || *parsed > BloomShape::kMaxProbes)
             fail("--probes {}: must be a number from 1 to {}", given, BloomShape::kMaxProbes);
           options->probes = static_cast<std::uint32_t>(*parsed);
         },
         "So many probes per key instead of the best number; families that have another number are left out")
      ->type_name("K");
  add_count(app, "--range-size", options->range_size, "L",
            "Also what a range filter needs, where the rate is of empty ranges of L numbers");
  app.add_option("--plot", options->plot, "Draw the bits per key of all families over the rate")->type_name("FILE.svg");
  declare_json(app, options->json);
  return [options] { return size::run(*options); };
}

}  // namespace perhaps::cli
