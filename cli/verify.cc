// perhaps verify: no key may be missing, and the measured false-positive rate stands beside the predicted one.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "interval.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace verify {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  KeyOptions absent;
  std::uint64_t absent_count = 1'000'000;
  std::uint64_t absent_seed = 1;
  OpenArgs open;
  FormatArgs format;
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

int run(Options& options) {
  check_stdin_once(options.keys.files, std::count(options.absent.files.begin(), options.absent.files.end(), "-"));
  const AnyFile file(options.filter, options.open, options.format);  // before waiting for a pipe
  options.keys.adopt(recipe_of(file.record(), options.filter), options.filter);
  check_key_format(options.keys);
  Keys keys(options.keys);
  std::vector<std::string> absent_files = std::move(options.absent.files);
  options.absent = options.keys;
  options.absent.files = std::move(absent_files);
  Keys absent(options.absent);
  const Description d = file.filter().describe();

  std::vector<std::string> missing;
  const Tally present = ask_all(file.filter(), keys, options.keys.as, "present", &missing);
  const Tally others = options.absent.files.empty()
                           ? ask_random(file.filter(), options)
                           : ask_all(file.filter(), absent, options.keys.as, "absent", nullptr);
  const std::uint64_t false_negatives = present.asked - present.perhaps;
  const double fpr = others.asked == 0 ? 0 : static_cast<double>(others.perhaps) / static_cast<double>(others.asked);
  // The interval that is printed decides: 5 sigma, or one filter in twenty would seem to disagree. The model of another
  // system's filter is itself a measurement (format/codec.h), with an error of its own, by which the interval is wider.
  const double spread = file.codec == nullptr ? 1 : std::sqrt(1 + static_cast<double>(others.asked) / kModelSample);
  const Interval possible = wilson(others.perhaps, others.asked, 5 * spread);
  const bool agrees = d.fpr >= possible.low && d.fpr <= possible.high;

  Out out;
  if (options.json) {
    Json json;
    json.add("keys", present.asked).add("false_negatives", false_negatives).add("absent", others.asked);
    json.add("false_positives", others.perhaps)
        .add("fpr", fpr)
        .add("fpr_low", possible.low)
        .add("fpr_high", possible.high);
    json.add("fpr_model", d.fpr).add("model_agrees", agrees);
    out.write(json.text() + "\n");
  } else {
    const auto row = [&](std::string_view label, const std::string& text) {
      out.write(fmt::format("  {:<8}  {}\n", label, text));
    };
    out.write(bold(options.filter) + "\n");
    row("keys", false_negatives == 0 ? fmt::format("{}, none missing", grouped(present.asked))
                                     : fmt::format("{}, {} MISSING", grouped(present.asked), grouped(false_negatives)));
    row("absent", fmt::format("{}, {} answered perhaps", grouped(others.asked), grouped(others.perhaps)));
    if (others.asked != 0) {
      row("fpr", fmt::format("{} measured ({} to {} at 5 sigma)", percent(fpr), percent(possible.low),
                             percent(possible.high)));
      row("model", fmt::format("{}{} predicted: {}", file.codec == nullptr ? "" : "about ", percent(d.fpr),
                               agrees ? "they agree" : "outside of that interval"));
    }
  }
  if (false_negatives == 0) return kYes;
  out.flush();
  for (const std::string& key : missing) say("missing", key);
  if (false_negatives > missing.size())
    say("missing", fmt::format("and {} more", grouped(false_negatives - missing.size())));
  return kNo;
}

}  // namespace
}  // namespace verify

Command::Run verify_command(CLI::App& app) {
  auto options = std::make_shared<verify::Options>();
  app.add_option("filter", options->filter, "The filter file, of any format")->type_name("FILTER")->required();
  app.add_option("--keys", options->keys.files, "Keys that must be in the filter; - is standard input; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->required();
  auto* files = app.add_option("--absent", options->absent.files, "Keys that are not in the filter; may be repeated")
                    ->type_name("FILE")
                    ->allow_extra_args(false);
  add_count(app, "--absent-count", options->absent_count, "N", "How many random keys to query otherwise; default: 1M",
            0)
      ->excludes(files);
  add_count(app, "--absent-seed", options->absent_seed, "S", "Where the random keys begin; default: 1", 0)
      ->excludes(files);
  declare_json(app, options->json);
  declare_open(app, options->open);
  declare_format(app, options->format);
  declare_key_format(app, options->keys);
  declare_recipe(app, options->keys);
  return [options] { return verify::run(*options); };
}

}  // namespace perhaps::cli
