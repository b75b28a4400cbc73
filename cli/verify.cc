// perhaps verify: no key may be missing, and the measured false-positive rate stands beside the predicted one.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>

#include "any_file.h"
#include "certificate.h"
#include "command.h"
#include "exact_verify.h"
#include "filter_file.h"
#include "interval.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "print.h"
#include "progress.h"
#include "ranges.h"
#include "redis_filter.h"

namespace perhaps::cli {
namespace verify {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  KeyOptions absent;
  ExactLists exact;
  std::uint64_t absent_count = 1'000'000;
  std::uint64_t absent_seed = 1;
  std::uint64_t range_size = 0;  // not given
  OpenArgs open;
  FormatArgs format;
  RedisAccess access;
  std::string certificate;
  std::string check;
  bool json = false;
};

std::string shown(Bytes record, KeysAs as) {
  constexpr std::size_t kMax = 60;
  std::string text;
  if (as == KeysAs::u64) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < record.size(); ++i) value |= std::to_integer<std::uint64_t>(record[i]) << (8 * i);
    return std::to_string(value);
  }
  for (const std::byte b : record.first(std::min(kMax, record.size()))) {
    const auto c = std::to_integer<unsigned char>(b);
    text += c >= 0x20 && c != 0x7f ? std::string(1, static_cast<char>(c)) : fmt::format("\\x{:02x}", c);
  }
  return record.size() > kMax ? text + ".." : text;
}

struct Tally {
  std::uint64_t asked = 0;
  std::uint64_t perhaps = 0;
};

struct Generator {  // splitmix64
  std::uint64_t state;
  std::uint64_t operator()() noexcept {
    std::uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
};

// Random keys of 16 bytes (numbers for u64). The probability that a given one equals a given key of the list is at most
// 2^-64.
Tally ask_random(const AnyFilter& filter, const Options& options) {
  Tally tally;
  Generator random{options.absent_seed};
  const std::size_t size = options.keys.as == KeysAs::u64 ? 8 : 16;
  std::array<std::array<std::byte, 16>, Parser::kColumn> keys;
  std::array<Bytes, Parser::kColumn> views;
  std::array<std::uint64_t, Parser::kColumn / 64> answers;
  Progress progress("absent", options.absent_count);
  while (tally.asked < options.absent_count) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(Parser::kColumn, options.absent_count - tally.asked));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t words[2] = {random(), random()};
      std::memcpy(keys[i].data(), words, sizeof words);
      views[i] = Bytes(keys[i]).first(size);
    }
    query(filter, options.keys.as, std::span(views).first(count), answers);
    for (std::size_t i = 0; i < (count + 63) / 64; ++i)
      tally.perhaps += static_cast<std::uint64_t>(std::popcount(answers[i]));
    tally.asked += count;
    progress.advance(count, count);
  }
  return tally;
}

Tally ask_all(const AnyFilter& filter, Keys& keys, KeysAs as, const char* label, std::vector<std::string>* missing) {
  Tally tally;
  std::array<std::uint64_t, Parser::kColumn / 64> answers;
  Progress progress(label, keys.stored_bytes());
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    query(filter, as, batch.keys, answers);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      const bool perhaps = (answers[i / 64] >> (i % 64) & 1) != 0;
      tally.perhaps += perhaps;
      if (!perhaps && missing != nullptr && missing->size() < 5) missing->push_back(shown(batch.records[i], as));
    }
    tally.asked += batch.keys.size();
    return true;
  });
  return tally;
}

struct Outcome {
  Tally present;
  Tally others;
  std::vector<std::string> missing;  // the first few
  Interval possible;
  double fpr_model;
  bool own;
  bool bound = false;  // fpr_model is not the rate but an upper bound of it
  RangeTally ranges{};
  double range_fpr_most = 0;

  std::uint64_t false_negatives() const noexcept { return present.asked - present.perhaps; }
  double fpr() const noexcept {
    return others.asked == 0 ? 0 : static_cast<double>(others.perhaps) / static_cast<double>(others.asked);
  }
  bool agrees() const noexcept {
    if (!bound) return fpr_model >= possible.low && fpr_model <= possible.high;
    return fpr_model >= possible.low && range_fpr_most >= wilson(ranges.perhaps, ranges.asked, 5).low;
  }
  // Names and values, for --json and the certificate.
  std::vector<std::pair<std::string, std::string>> fields() const {
    const auto text = [](auto value) { return fmt::format("{}", value); };
    std::vector<std::pair<std::string, std::string>> all = {{"keys", text(present.asked)},
                                                            {"false_negatives", text(false_negatives())},
                                                            {"absent", text(others.asked)},
                                                            {"false_positives", text(others.perhaps)},
                                                            {"fpr", text(fpr())},
                                                            {"fpr_low", text(possible.low)},
                                                            {"fpr_high", text(possible.high)},
                                                            {"fpr_model", text(fpr_model)},
                                                            {"model_agrees", text(agrees())}};
    if (bound) {
      all.emplace_back("range_size", text(ranges.size));
      all.emplace_back("ranges", text(ranges.asked));
      all.emplace_back("ranges_perhaps", text(ranges.perhaps));
      all.emplace_back("range_fpr_most", text(range_fpr_most));
    }
    return all;
  }
};

// Resolves options.keys to the recipe that the filter has.
Outcome measure(Options& options) {
  check_stdin_once(options.keys.files, std::count(options.absent.files.begin(), options.absent.files.end(), "-"));
  const LocalCopy copy(options.filter, options.access);  // before waiting for a pipe
  options.filter = copy.name();
  const AnyFile file(copy.path(), options.open, options.format);
  if (file.own && file.own->header().kind == Kind::exact)
    fail("{}: is an exact set: --members and --universe prove that it has no error", options.filter);
  if (options.range_size != 0 && !(file.own && file.own->header().kind == Kind::range))
    fail("--range-size: {} does not answer ranges (build --filter range)", options.filter);
  options.keys.adopt(recipe_of(file.record(), options.filter), options.filter);
  check_key_format(options.keys);
  Keys keys(options.keys);
  std::vector<std::string> absent_files = std::move(options.absent.files);
  options.absent = options.keys;
  options.absent.files = std::move(absent_files);
  Keys absent(options.absent);
  Outcome outcome{};
  outcome.own = file.own.has_value();
  outcome.fpr_model = file.filter().describe().fpr;
  outcome.present = ask_all(file.filter(), keys, options.keys.as, "present", &outcome.missing);
  outcome.others = options.absent.files.empty() ? ask_random(file.filter(), options)
                                                : ask_all(file.filter(), absent, options.keys.as, "absent", nullptr);
  if (file.own && file.own->header().kind == Kind::range) {
    const RangeView filter = take(range_in(*file.own));
    check_coding(filter, options.keys, options.filter);
    if (options.range_size == 0) options.range_size = RangeRequest{}.range_size;
    if (!keys.all_mapped()) fail("{}: the keys of a range filter are read twice: name plain files", keys.names());
    RangeKeys numbers(options.keys);
    numbers.read(keys, "keys");
    outcome.bound = true;
    outcome.range_fpr_most = filter.fpr(static_cast<double>(options.range_size));
    outcome.ranges =
        ask_ranges(filter, numbers.numbers(filter), options.range_size, options.absent_count, options.absent_seed);
  }
  // The interval that is printed decides: 5 sigma, or one filter in twenty would seem to disagree. The model of another
  // system's filter is itself a measurement (format/codec.h), with an error of its own, by which the interval is wider.
  const bool sampled = !outcome.own && is_sample(outcome.fpr_model);
  const double spread = sampled ? std::sqrt(1 + static_cast<double>(outcome.others.asked) / kModelSample) : 1;
  outcome.possible = wilson(outcome.others.perhaps, outcome.others.asked, 5 * spread);
  return outcome;
}

void print(const Options& options, const Outcome& outcome) {
  Out out;
  if (options.json) {
    Json json;
    for (const auto& [name, value] : outcome.fields()) json.raw(name, value);
    out.write(json.text() + "\n");
    return;
  }
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<8}  {}\n", label, text));
  };
  const std::uint64_t lost = outcome.false_negatives();
  out.write(bold(options.filter) + "\n");
  row("keys", lost == 0 ? fmt::format("{}, none missing", grouped(outcome.present.asked))
                        : fmt::format("{}, {} MISSING", grouped(outcome.present.asked), grouped(lost)));
  row("absent", fmt::format("{}, {} answered perhaps", grouped(outcome.others.asked), grouped(outcome.others.perhaps)));
  if (outcome.bound) {
    const double rate = outcome.ranges.asked == 0
                            ? 0
                            : static_cast<double>(outcome.ranges.perhaps) / static_cast<double>(outcome.ranges.asked);
    row("ranges", fmt::format("{} empty ones of {}, {} answered perhaps", grouped(outcome.ranges.asked),
                              grouped(outcome.ranges.size), grouped(outcome.ranges.perhaps)));
    row("fpr", fmt::format("{} measured, {} at most by the theorem: {}", percent(rate), percent(outcome.range_fpr_most),
                           outcome.agrees() ? "it holds" : "it does NOT hold"));
    return;
  }
  if (outcome.others.asked == 0) return;
  row("fpr", fmt::format("{} measured ({} at 5 sigma)", percent(outcome.fpr()), text_of(outcome.possible)));
  const std::string model = outcome.own ? percent(outcome.fpr_model) + " predicted" : model_text(outcome.fpr_model);
  row("model", fmt::format("{}: {}", model, outcome.agrees() ? "they agree" : "outside of that interval"));
}

constexpr std::array<std::string_view, 3> kMissing = {"fail", "skip", "empty"};  // in the order of Missing

std::vector<Certificate::Listed> listed(const std::vector<std::string>& files) {
  std::vector<Certificate::Listed> all;
  for (const std::string& file : files) {
    if (file == "-") fail("standard input cannot be read again, so it cannot be certified: name a file");
    all.push_back(Certificate::listed(file));
  }
  return all;
}

// The files, before they are queried.
Certificate certificate_of(const Options& options) {
  Certificate one;
  one.filter = Certificate::listed(options.filter);
  one.keys = listed(options.keys.files);
  one.absent = listed(options.absent.files);
  return one;
}

void complete(Certificate& certificate, const Options& options, const Outcome& outcome) {
  certificate.format = options.format.format;
  certificate.sets = options.format.sets;
  certificate.keyed = !options.open.keyed.path.empty();
  certificate.recipe = options.keys.text();
  certificate.missing = kMissing[static_cast<std::size_t>(options.keys.missing)];
  certificate.count = options.absent.files.empty() || outcome.bound ? options.absent_count : 0;
  certificate.seed = options.absent_seed;
  certificate.range_size = outcome.bound ? options.range_size : 0;
  certificate.result = outcome.fields();
}

// What was proved, again. Files that are named on the command line stand for those of the certificate.
int check(Options& options) {
  const Certificate recorded = Certificate::read(options.check);
  if (recorded.keyed && options.open.keyed.path.empty())
    fail("{}: the filter has a secret (--keyed)", recorded.filter.file);
  const auto names = [](std::vector<std::string>& files, const std::vector<Certificate::Listed>& all) {
    if (!files.empty()) return;
    for (const Certificate::Listed& one : all) files.push_back(one.file);
  };
  if (options.filter.empty()) options.filter = recorded.filter.file;
  names(options.keys.files, recorded.keys);
  names(options.absent.files, recorded.absent);
  options.format = {.format = recorded.format, .sets = recorded.sets};
  static_cast<Recipe&>(options.keys) = Recipe::parse(recorded.recipe);
  options.keys.choice.given = true;
  const auto missing = std::ranges::find(kMissing, recorded.missing);
  if (missing == kMissing.end())
    fail("{}: missing: '{}' is none of fail, skip, empty", options.check, recorded.missing);
  options.keys.missing = static_cast<Missing>(missing - kMissing.begin());
  options.absent_count = recorded.count;
  options.absent_seed = recorded.seed;
  if (recorded.range_size != 0) options.range_size = recorded.range_size;
  Certificate found = certificate_of(options);
  complete(found, options, measure(options));

  const auto differences = recorded.differences(found);
  Out out;
  if (options.json) {
    std::vector<std::string> objects;
    for (const auto& [name, then, now] : differences)
      objects.push_back(Json().add("name", name).add("recorded", then).add("found", now).text());
    Json json;
    json.add("certificate", options.check).add("same", differences.empty());
    out.write(json.raw("differences", Json::array(objects)).text() + "\n");
  } else if (differences.empty()) {
    out.write(fmt::format("{}: the same files, the same numbers\n", options.check));
  } else {
    std::vector<std::vector<std::string>> rows = {{"differs", "in the certificate", "now"}};
    for (const auto& [name, then, now] : differences) rows.push_back({name, then, now});
    out.write(table(rows, "lrr"));
  }
  return differences.empty() ? kYes : kNo;
}

// Throws Failure if the certificate would replace what it is about.
void check_certificate(const Options& options) {
  if (is_redis_url(options.filter))
    fail("--certificate {}: records files, and {} is not one; pull it first", options.certificate,
         RedisUrl(options.filter).shown());
  check_output(options.certificate);
  std::vector<std::string> files = {options.filter};
  files.insert(files.end(), options.keys.files.begin(), options.keys.files.end());
  files.insert(files.end(), options.absent.files.begin(), options.absent.files.end());
  for (const std::string& file : files) {
    std::error_code none;
    if (std::filesystem::equivalent(file, options.certificate, none))
      fail("--certificate {}: would replace {}", options.certificate, file);
  }
}

// Every key of a known universe.
int check_exact(Options& options) {
  if (options.exact.members.empty() || options.exact.universe.empty())
    fail("an exact set is proved by both --members and --universe");
  check_stdin_once(options.exact.members,
                   std::count(options.exact.universe.begin(), options.exact.universe.end(), "-"));
  const AnyFile file(options.filter, options.open, options.format);
  if (!file.own || file.own->header().kind != Kind::exact)
    fail("{}: is not an exact set, and has false positives (--keys and --absent measure them)", options.filter);
  options.keys.adopt(recipe_of(file.record(), options.filter), options.filter);
  check_key_format(options.keys);
  return verify_exact(file.filter(), options.filter, options.keys, options.exact, options.json);
}

int run(Options& options) {
  if (!options.check.empty()) return check(options);
  if (options.filter.empty()) fail("a filter is required (or --check FILE)");
  if (!options.exact.members.empty() || !options.exact.universe.empty()) return check_exact(options);
  if (options.keys.files.empty()) fail("--keys is required (or --check FILE)");
  Certificate certificate;
  if (!options.certificate.empty()) {
    check_certificate(options);
    certificate = certificate_of(options);
  }
  const Outcome outcome = measure(options);
  print(options, outcome);
  if (outcome.false_negatives() != 0) {
    for (const std::string& key : outcome.missing) say("missing", key);
    if (outcome.false_negatives() > outcome.missing.size())
      say("missing", fmt::format("and {} more", grouped(outcome.false_negatives() - outcome.missing.size())));
    if (!options.certificate.empty())
      say("", fmt::format("{}: not written, because keys are missing", options.certificate));
    return kNo;
  }
  if (!options.certificate.empty()) {
    complete(certificate, options, outcome);
    certificate.write(options.certificate);
  }
  return kYes;
}

}  // namespace
}  // namespace verify

Command::Run verify_command(CLI::App& app) {
  auto options = std::make_shared<verify::Options>();
  app.add_option("filter", options->filter, "The filter file, of any format, or a redis:// address")
      ->type_name("FILTER");
  app.add_option("--keys", options->keys.files, "Keys that must be in the filter; - is standard input; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto* files = app.add_option("--absent", options->absent.files, "Keys that are not in the filter; may be repeated")
                    ->type_name("FILE")
                    ->allow_extra_args(false);
  for (const auto& [name, list, text] :
       {std::tuple("--members", &options->exact.members, "Of an exact set: the keys that are in it; may be repeated"),
        std::tuple("--universe", &options->exact.universe,
                   "Of an exact set: all keys that can be queried; may be repeated")}) {
    app.add_option(name, *list, text)
        ->type_name("FILE")
        ->allow_extra_args(false)
        ->excludes(files)
        ->excludes(app.get_option("--keys"));
  }
  add_count(app, "--absent-count", options->absent_count, "N", "How many random keys to query otherwise; default: 1M",
            0)
      ->excludes(files);
  add_count(app, "--absent-seed", options->absent_seed, "S", "Where the random keys begin; default: 1", 0)
      ->excludes(files);
  add_count(app, "--range-size", options->range_size, "L",
            "Of a range filter: also query empty ranges of L numbers (or codes of text); default: 100");
  declare_json(app, options->json);
  declare_open(app, options->open);
  declare_format(app, options->format);
  declare_redis(app, options->access);
  declare_key_format(app, options->keys);
  declare_recipe(app, options->keys);
  app.add_option("--certificate", options->certificate,
                 "Write what was proved: checksums of the files, counts, seed, the rate and its interval, as JSON")
      ->type_name("FILE");
  auto* check = app.add_option("--check", options->check,
                               "Prove it again as this certificate says, and compare. Files that are named here stand "
                               "for its own")
                    ->type_name("FILE");
  // Everything else is in the certificate.
  constexpr std::array<std::string_view, 8> kBeside = {"filter",  "--keys",      "--absent", "--json",
                                                       "--keyed", "--no-verify", "--check",  "--help"};
  for (CLI::Option* option : app.get_options()) {
    if (std::ranges::find(kBeside, option->get_name()) == kBeside.end()) check->excludes(option);
  }
  return [options] { return verify::run(*options); };
}

}  // namespace perhaps::cli
