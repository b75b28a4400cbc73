// perhaps advise: which family for these keys? Every candidate is built and queried on this machine, and ranked by the
// total cost of a lookup.
//
//   cost   = lookup + fpr * saves            of an absent key; `saves`: the time of the work that a *no* avoids
//   total  = cost + bits/key * bit price     what the table is ranked by
//
// The bit price. Most families cannot hit a rate exactly, and one that spends twice the memory on half the rate is not
// better. In an ideal filter one more bit per key halves the rate: d(2^-b saves)/db = -ln 2 * fpr * saves. Whoever
// chooses the rate fpr, and neither a lower nor a higher one, implies that a bit is worth exactly that much. So
// that is the price of a bit. If the memory is given (--max-bytes, --bits-per-key), bits have no price.
//
// The rate, if it is not given but prices are. A month costs bytes * memory price + lookups * fpr * wrong price. One
// more bit per key of n keys adds n/8 bytes and halves the rate, so in an ideal filter the sum is least where
//
//   fpr = n/8 * memory price / (ln 2 * lookups * wrong price)
#include <algorithm>
#include <cmath>
#include <utility>

#include "advise_report.h"
#include "command.h"
#include "keys.h"
#include "memory_check.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace advise {
namespace {

constexpr Need kNeeds[] = {
    {"add", [](const Family& f) { return f.inserts; },
     [](const Family&) -> std::string { return "is built once and takes no more keys"; }},
    {"delete", [](const Family& f) { return f.erases; },
     [](const Family&) -> std::string { return "cannot forget a key"; }},
    {"merge", [](const Family& f) { return f.merges; },
     [](const Family&) -> std::string { return "cannot be merged with another"; }},
    {"grow", [](const Family& f) { return f.grows; },
     [](const Family& f) -> std::string {
       if (!f.inserts) return "is built once and takes no more keys";
       if (f.forgets) return "forgets its oldest keys when more come";
       if (f.fills_up) return "is full at the number of keys it was made for";
       return "answers perhaps too often past the number of keys it was made for";
     }},
};

// At this rate a filter hardly avoids anything.
constexpr double kHighestRate = 0.5;

void check_options(const Options& options) {
  const Prices& prices = options.prices;
  if (prices.any() && !prices.given())
    fail("--wrong-price, --memory-price and --lookups: all three together give the rate");
  if (options.imagined == 0) return;
  if (!options.keys.files.empty() || !options.keys.literals.empty())
    fail("--keys {}: is for keys that do not exist yet; no files of keys can be named beside it", options.imagined);
  if (!options.queries.files.empty())
    fail("--keys {}: --queries needs the keys, to know which of them are absent", options.imagined);
}

CLI::Option* add_price(CLI::App& app, const std::string& name, double& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& given) {
            const auto parsed = parse_share(given);
            if (!parsed || !(*parsed > 0 && *parsed < 1e15) || given.ends_with('%'))
              fail("{} {}: must be a number above 0, in any currency", name, given);
            value = *parsed;
          },
          text)
      ->type_name("MONEY");
}

int run(Options& options) {
  check_options(options);
  if (options.imagined == 0) read_stdin_if_none(options.keys);
  check_stdin_once(options.keys.files, std::count(options.queries.files.begin(), options.queries.files.end(), "-"));
  std::vector<std::string> query_files = std::move(options.queries.files);
  options.keys.for_filter = false;  // no filter is kept
  options.queries = options.keys;
  options.queries.literals.clear();
  options.queries.files = std::move(query_files);
  Keys keys(options.keys);
  Keys queries(options.queries);

  const Sample sample = options.imagined != 0 ? imagined_keys(options.imagined, options.sample)
                                              : read_keys(keys, options.keys.as, options.sample);
  if (sample.given() == 0) fail("no keys: there is nothing to advise on");
  if (options.prices.given()) {
    const double best = std::clamp(options.prices.best_rate(sample.distinct()), kLeastFpr, kHighestRate);
    options.sizing.fpr = std::stod(fmt::format("{:.2e}", best));  // three digits say enough
  }
  check_memory(sample.size() * 64, "the measurement", "; --sample takes fewer keys");
  const Questions questions = read_queries(queries, options.queries.as, sample);
  std::vector<Candidate> candidates = candidates_for(options, sample);
  measure(options, sample, questions, candidates);
  conclude(options, sample, questions, candidates);

  const bool any = candidates[0].reason.empty();
  const Candidate* second = candidates[1].reason.empty() ? &candidates[1] : nullptr;
  const std::string command = any ? command_for(options, sample, candidates[0]) : "";
  const std::string reason = any ? why(options, candidates[0], second) : "no family can do all of it";
  if (options.json) {
    print_json(options, sample, questions, candidates, command, reason);
  } else {
    print_text(options, sample, questions, candidates, command, reason);
  }
  if (!any) say("", reason);
  return any ? kYes : kNo;
}

void parse_needs(std::string_view list, std::vector<const Need*>& needs) {
  for (std::string_view rest = list;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view given = rest.substr(0, comma);
    const std::string_view word = given == "remove" ? "delete" : given;  // the command's name
    const auto* need = std::find_if(std::begin(kNeeds), std::end(kNeeds), [&](auto& n) { return n.word == word; });
    if (need == std::end(kNeeds)) fail("--needs {}: '{}' is none of add, delete, merge, grow", list, given);
    needs.push_back(need);
    if (comma == rest.size()) return;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace
}  // namespace advise

Command::Run advise_command(CLI::App& app) {
  auto options = std::make_shared<advise::Options>();
  app.add_option(
         "--queries", options->queries.files,
         "The queries to expect, written as the keys are; - is standard input; may be repeated. Default: random "
         "absent keys")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--needs", [options](const std::string& given) { advise::parse_needs(given, options->needs); },
         "What the filter must be able to do, some of add (more keys later), delete, merge, grow (past the keys it was "
         "made for: scalable and growing filters keep their rate then, that of a quotient filter grows with it), "
         "separated by commas")
      ->type_name("LIST");
  app.add_option_function<std::string>(
         "--saves",
         [options](const std::string& given) {
           const auto parsed = parse_time(given);
           if (!parsed) fail("--saves {}: not a time, such as 500ns, 100us, 2ms or 1s", given);
           options->saves = *parsed;
           options->saves_given = true;
         },
         "The time of the work that a no avoids: 500ns, 100us, 2ms, 1s; default: 100us, a read from disk")
      ->type_name("TIME");
  declare_sizing(app, options->sizing);
  add_count(app, "--keys", options->imagined, "N", "Without keys: advise for N random ones");
  std::vector<CLI::Option*> prices = {
      advise::add_price(app, "--wrong-price", options->prices.wrong,
                        "What a million wrong answers perhaps cost; with the next two, the rate is chosen"),
      advise::add_price(app, "--memory-price", options->prices.memory, "What a gigabyte of memory costs for a month"),
      add_count(app, "--lookups", options->prices.lookups, "N", "Lookups of absent keys in a second")};
  for (CLI::Option* price : prices) {
    for (const char* const size : {"--fpr", "--bits-per-key", "--max-bytes"}) price->excludes(app.get_option(size));
  }
  add_count(app, "--sample", options->sample, "N", "Measure with at most N distinct keys, 1000 or more; default: 2M",
            advise::kFewest);
  declare_json(app, options->json);
  declare_keys(app, options->keys);
  return [options] { return advise::run(*options); };
}

}  // namespace perhaps::cli
