// perhaps size: what each family needs, and how far that is from the theoretical minimum.
//
// A filter has five numbers: keys, rate, bytes, bits per key, probes. Some are given, the others follow:
//
//   keys and one of rate, bytes, bits per key      the other two, and the best number of probes
//   bytes and one of rate, bits per key            how many keys fit
//   rate, or bits per key, alone                   the other one, for a million keys: their number hardly matters
//   probes, beside any of these                    the same with that number, where the family leaves a choice
#include <algorithm>
#include <cmath>
#include <optional>

#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "options.h"
#include "perhaps/counting_bloom.h"
#include "perhaps/file/writer.h"
#include "print.h"
#include "size_plot.h"

namespace perhaps::cli {
namespace size {
namespace {

constexpr std::uint64_t kTypicalKeys = 1'000'000;
// Where a search for a number of keys, lines or bits ends.
constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

struct Options {
  std::uint64_t keys = 0;  // 0: not given, as the others
  double fpr = 0;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  std::uint32_t probes = 0;
  std::string plot;
  bool json = false;

  bool finds_keys() const noexcept { return keys == 0 && max_bytes != 0; }
};

struct Row {
  const Family* family;
  std::uint64_t keys;
  FamilySize size;
};

// What can be done with it once it is built.
std::string abilities(const Family& family) {
  std::string text = family.inserts ? "add" : "query only";
  if (family.erases) text += " remove";
  if (family.merges) text += " merge";
  return text;
}

// The largest n from 1 on for which `holds`, which is true up to there; 0 if it is not even true for 1.
template <class Holds>
std::uint64_t largest(Holds holds) {
  std::uint64_t low = 0;
  std::uint64_t high = 1;
  while (high < kMost && holds(high)) low = high, high *= 2;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

// `shape_of(n)` has n lines, or bits, and the number of probes that is given.
template <class ShapeOf>
std::optional<FamilySize> with_probes(Kind kind, const Request& request, double unit_bits, ShapeOf shape_of) {
  if (!shape_of(1).valid()) return std::nullopt;
  const auto keys = static_cast<double>(request.keys);
  std::uint64_t units = 0;
  if (request.max_bytes != 0) {
    units = static_cast<std::uint64_t>(8 * static_cast<double>(request.max_bytes) / unit_bits);
  } else if (request.bits_per_key != 0) {
    units = static_cast<std::uint64_t>(std::ceil(keys * request.bits_per_key / unit_bits));
  } else {
    units = largest([&](std::uint64_t n) { return shape_of(n).fpr(keys) > request.fpr; }) + 1;
  }
  if (units == 0 || units >= kMost / 2) return std::nullopt;
  const auto shape = shape_of(units);
  return FamilySize{.kind = kind,
                    .bytes = shape.bytes(),
                    .bits = static_cast<std::uint64_t>(static_cast<double>(units) * unit_bits),
                    .probes = shape.probes,
                    .fpr = shape.fpr(keys)};
}

std::optional<FamilySize> sized(Kind kind, const Request& request, std::uint32_t probes) {
  if (probes != 0 && kind == Kind::classic)
    return with_probes(kind, request, 1, [&](std::uint64_t n) { return BloomShape{.bits = n, .probes = probes}; });
  if (probes != 0 && kind == Kind::line)
    return with_probes(kind, request, 512, [&](std::uint64_t n) { return LineShape{.lines = n, .probes = probes}; });
  if (probes != 0 && kind == Kind::counting)
    return with_probes(kind, request, 512,
                       [&](std::uint64_t n) { return CountingShape{.lines = n, .probes = probes}; });
  const auto size = size_of(kind, request);
  if (!size || (probes != 0 && size->probes != probes)) return std::nullopt;
  if (request.max_bytes != 0 && size->bytes > request.max_bytes) return std::nullopt;  // its smallest is too large
  return *size;
}

std::optional<Row> row_of(const Options& options, const Family& family) {
  Request request{
      .keys = options.keys, .fpr = options.fpr, .bits_per_key = options.bits_per_key, .max_bytes = options.max_bytes};
  if (options.finds_keys() && options.bits_per_key != 0) {
    request.keys = static_cast<std::uint64_t>(8 * static_cast<double>(options.max_bytes) / options.bits_per_key);
    request.bits_per_key = 0;
  } else if (options.finds_keys()) {
    request.max_bytes = 0;
    request.keys = largest([&](std::uint64_t keys) {
      request.keys = keys;
      const auto size = sized(family.kind, request, options.probes);
      return size && size->bytes <= options.max_bytes && size->fpr <= 1.01 * options.fpr;
    });
  } else if (options.keys == 0) {
    request.keys = kTypicalKeys;
  }
  if (request.keys == 0 || (options.finds_keys() && request.keys + 1 >= kMost)) return std::nullopt;
  const auto size = sized(family.kind, request, options.probes);
  if (!size) return std::nullopt;
  return Row{&family, request.keys, *size};
}

std::string json_of(const Row& row, double bits_per_key, double limit, double above) {
  const auto& [family, keys, size] = row;
  Json json;
  json.add("family", family->name).add("keys", keys).add("bits", size.bits).add("bytes", size.bytes);
  json.add("bits_per_key", bits_per_key).add("probes", size.probes).add("fpr", size.fpr);
  json.add("bits_per_key_limit", limit).add("above_limit", above);
  json.add("summary", family->summary).add("kind", static_cast<std::uint32_t>(family->kind));
  json.add("add", family->inserts).add("remove", family->erases).add("merge", family->merges);
  return json.add("grow", family->grows).text();
}

// Exactly so many of the numbers are given that the others follow.
void check_given(Options& options) {
  const bool rate = options.fpr != 0;
  const bool bits = options.bits_per_key != 0;
  const bool bytes = options.max_bytes != 0;
  if (options.keys == 0 && !rate && !bits && !bytes)
    fail("some of --keys, --fpr, --max-bytes, --bits-per-key are needed; the others follow from them");
  if (int{rate} + int{bits} + int{bytes} + int{options.keys != 0} > 2)
    fail("two of --keys, --fpr, --max-bytes and --bits-per-key are enough; the others follow from them");
  if (options.finds_keys() && options.max_bytes > kMostBytes)
    fail("--max-bytes {}: keys can be found for 1Pi at most", options.max_bytes);
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
  for (const Family& family : families()) {
    const auto row = row_of(options, family);
    if (!row) continue;
    const FamilySize& size = row->size;
    const double bits_per_key = static_cast<double>(size.bits) / static_cast<double>(row->keys);
    const double limit = bits_per_key_limit(size.fpr);
    const double above = limit > 0 ? bits_per_key / limit - 1 : 0;
    if (above < 0) continue;  // impossible: its largest table does not hold so many keys
    marks.push_back({size.fpr, bits_per_key});
    if (options.json) objects.push_back(json_of(*row, bits_per_key, limit, above));
    rows.push_back({std::string(family.name), grouped(row->keys), size.probes == 0 ? "-" : std::to_string(size.probes),
                    fmt::format("{:.2f}", bits_per_key), grouped(size.bytes), percent(size.fpr),
                    limit > 0.01 ? fmt::format("+{:.{}f} %", above * 100, above < 0.0995 ? 1 : 0) : "-",
                    abilities(family)});
  }
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
  out.write(dim("over: the limit; no filter needs fewer than log2(1/fpr) bits per key") + "\n");
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
  app.add_option("--plot", options->plot, "Draw the bits per key of all families over the rate")->type_name("FILE.svg");
  declare_json(app, options->json);
  return [options] { return size::run(*options); };
}

}  // namespace perhaps::cli
