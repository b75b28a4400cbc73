#include "advise_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "json.h"
#include "print.h"

namespace perhaps::cli::advise {
namespace {

// Of a month, in the currency of the prices.
std::string price_text(double price) { return price > 0 && price < 0.001 ? "less than 0.001" : expected(price); }

std::string duration_text(double ns) {
  const double size = std::abs(ns);
  if (size < 99.95) return fmt::format("{:.1f} ns", ns);
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  if (size < 999.5e3) return fmt::format("{:.3g} us", ns / 1e3);
  if (size < 999.5e6) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.3g} s", ns / 1e9);
}

std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./,:=+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// keys.txt -> keys.perhaps, here.
std::string output_name(const KeyOptions& keys) {
  std::string stem = "keys";
  if (!keys.files.empty() && keys.files[0] != "-") stem = std::filesystem::path(keys.files[0]).stem().string();
  if (stem.starts_with('-')) stem = "./" + stem;
  std::string name = stem + ".perhaps";
  while (std::find(keys.files.begin(), keys.files.end(), name) != keys.files.end()) name += ".perhaps";
  return name;
}

std::string compared(double mine, double other, std::string_view what) {
  const double ratio = mine / other;
  if (ratio > 0.98 && ratio < 1.02) return fmt::format("as much {}", what);
  if (ratio >= 2) return fmt::format("{:.1f} times the {}", ratio, what);
  return fmt::format("{:.0f} % {} {}", std::abs(ratio - 1) * 100, ratio > 1 ? "more" : "less", what);
}

// The average time that the filter saves per query; without --queries, per query for an absent key.
double gain(const Options& options, const Questions& questions, const Candidate& c) {
  return questions.negative_share().value_or(1) * (1 - c.fpr()) * options.saves - c.batch_ns;
}

std::string json_of(const Candidate& c) {
  Json json;
  json.add("family", c.family->name);
  if (c.arity != 0) json.add("arity", c.arity);
  json.add("add", c.family->inserts).add("delete", c.family->erases).add("merge", c.family->merges);
  json.add("grow", c.family->grows).add("summary", c.family->summary);
  if (!c.reason.empty()) return json.add("reason", c.reason).text();
  json.add("bytes", c.bytes).add("bits_per_key", c.bits_per_key);
  json.add("fpr", c.fpr()).add("fpr_measured", c.fpr_measured).add("fpr_model", c.fpr_model);
  json.add("fpr_is_measured", c.measurable).add("single_ns", c.single_ns).add("batch_ns", c.batch_ns);
  json.add("build_seconds", c.build_seconds).add("build_bytes", c.build_bytes);
  json.add("cost_ns", c.cost).add("total_ns", c.total);
  return json.text();
}

}  // namespace

std::string command_for(const Options& options, const Sample& sample, const Candidate& best) {
  std::vector<std::string> words = {
      "perhaps", "build", "-o", output_name(options.keys), "--filter", std::string(best.family->name)};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (best.arity == 4) add({"--arity", "4"});
  if (options.sizing.max_bytes != 0) {
    add({"--max-bytes", fmt::format("{}", options.sizing.max_bytes)});
  } else if (options.sizing.bits_per_key != 0) {
    add({"--bits-per-key", plain(options.sizing.bits_per_key)});
  } else {
    add({"--fpr", plain(options.sizing.fpr)});
  }
  if (best.family->forgets) add({"--keys-expected", fmt::format("{}", sample.given())});
  const KeyOptions& keys = options.keys;
  if (options.imagined != 0) add({"keys.txt"});
  for (std::string& word : options_of(keys)) words.push_back(std::move(word));
  for (const std::string& literal : keys.literals) add({"-e", literal});
  if (std::any_of(keys.files.begin(), keys.files.end(), [](auto& f) { return f != "-" && f.starts_with('-'); }))
    add({"--"});
  words.insert(words.end(), keys.files.begin(), keys.files.end());
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

std::string why(const Options& options, const Candidate& best, const Candidate* second) {
  if (second == nullptr) return fmt::format("{}: the only family that does what is needed", best.name());
  const double ahead = second->total / best.total - 1;
  return fmt::format(
      "{}: the least {}cost, {}. The next, {}, takes {} and {}", best.name(), options.by_fpr() ? "total " : "",
      ahead < 0.01 ? "by less than 1 %, which may be chance" : fmt::format("by {:.0f} %", ahead * 100), second->name(),
      compared(second->bytes, best.bytes, "memory"), compared(second->batch_ns, best.batch_ns, "time per lookup"));
}

void print_json(const Options& options, const Sample& sample, const Questions& questions,
                const std::vector<Candidate>& candidates, const std::string& command, const std::string& reason) {
  std::vector<std::string> ranked;
  std::vector<std::string> others;
  for (const Candidate& c : candidates) (c.reason.empty() ? ranked : others).push_back(json_of(c));
  Json json;
  json.add("keys", sample.given()).add("keys_distinct", sample.distinct());
  json.add("keys_measured", sample.size());
  json.add("queries", questions.queries).add("queries_absent", questions.negative_share());
  json.add("asked", std::uint64_t{questions.asked.size()}).add("asked_are_queries", questions.real_asked);
  json.add("absent", std::uint64_t{questions.absent.size()}).add("absent_are_queries", questions.real_absent);
  json.add("saves_ns", options.saves).add("bit_price_ns", options.bit_price());
  if (options.prices.given()) {
    json.add("fpr_chosen", options.sizing.fpr).add("price_without", options.prices.of_lookups(1));
    if (!ranked.empty()) {
      json.add("price_memory", options.prices.of_memory(candidates[0].bytes));
      json.add("price_wrong", options.prices.of_lookups(candidates[0].fpr()));
    }
  }
  if (!ranked.empty()) json.add("gain_ns", gain(options, questions, candidates[0]));
  json.raw("ranked", Json::array(ranked)).raw("not_ranked", Json::array(others));
  json.add("why", reason);
  json.add("command", ranked.empty() ? std::optional<std::string>() : std::optional(command));
  Out().write(json.text() + "\n");
}

void print_text(const Options& options, const Sample& sample, const Questions& questions,
                const std::vector<Candidate>& candidates, const std::string& command, const std::string& reason) {
  Out out;
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("{:<8} {}\n", label, text));
  };
  const std::string measured =
      sample.whole() ? "all of them were measured" : fmt::format("a sample of {} was measured", grouped(sample.size()));
  row("keys", options.imagined != 0
                  ? fmt::format("{} random ones; {}", grouped(sample.given()), measured)
                  : fmt::format("{}, {}{} distinct; {}", grouped(sample.given()), sample.whole() ? "" : "about ",
                                grouped(sample.distinct()), measured));
  if (options.prices.given())
    row("rate", fmt::format("{}: where one more bit per key costs as much as the wrong answers that it avoids",
                            percent(options.sizing.fpr)));
  if (questions.queries != 0) {
    const auto share = questions.negative_share();
    row("queries", fmt::format("{}; {}", grouped(questions.queries),
                               share ? fmt::format("{} of them are not among the keys", percent(*share))
                                     : "too few to say how many are among the keys"));
  }
  const auto asked = [](std::uint64_t count, bool real, std::string_view what) {
    return fmt::format("{} {}", grouped(count), real ? what : "random absent keys");
  };
  row("asked",
      fmt::format("{} for times, {} for the fpr", asked(questions.asked.size(), questions.real_asked, "of the queries"),
                  asked(questions.absent.size(), questions.real_absent, "absent queries")));
  out.write("\n");
  std::vector<std::vector<std::string>> rows = {
      {"family", "bits/key", "fpr", "ns", "single", "size", "build", "peak", "cost", "total", "can"}};
  if (!options.by_fpr()) rows[0][9] = "";
  for (const Candidate& c : candidates) {
    if (!c.reason.empty()) continue;
    rows.push_back({c.name(), fmt::format("{:.2f}", c.bits_per_key), (c.measurable ? "" : "~") + percent(c.fpr()),
                    fmt::format("{:.1f}", c.batch_ns), fmt::format("{:.1f}", c.single_ns), bytes_text(c.bytes),
                    seconds_text(c.build_seconds), c.build_bytes ? bytes_text(*c.build_bytes) : "-",
                    duration_text(c.cost), options.by_fpr() ? duration_text(c.total) : "", c.can()});
  }
  if (rows.size() > 1) out.write(table(rows, "lrrrrrrrrrl"));
  bool first = true;
  for (const Candidate& c : candidates) {
    if (c.reason.empty()) continue;
    if (std::exchange(first, false)) out.write("\nnot ranked\n");
    out.write(fmt::format("  {:<8}  {}\n", c.name(), c.reason));
  }
  out.write("\n");
  if (rows.size() == 1) return;
  const auto note = [&](const std::string& text) { out.write(dim(text) + "\n"); };
  note("ns: nanoseconds for a lookup, in batches of 1024; single: in batches of one; hashing apart");
  if (!sample.whole()) {
    note(fmt::format(
        "  measured on filters of {} keys; one of all keys is larger, and slower once it is out of the caches",
        grouped(sample.size())));
  }
  note(fmt::format("build, peak: {}time with one thread and memory, the filter's included; reading apart",
                   sample.whole() ? "" : "for all keys, about; "));
  note(fmt::format("cost: of querying an absent key: ns + fpr x {}, the work that a no avoids{}",
                   duration_text(options.saves), options.saves_given ? "" : " (default of --saves: a read from disk)"));
  if (options.by_fpr()) {
    note(fmt::format(
        "total: cost + bits/key x {}, the value of one more bit per key if the rate wanted is {}: ln 2 x fpr x saves",
        duration_text(options.bit_price()), percent(options.sizing.fpr)));
  }
  if (std::any_of(candidates.begin(), candidates.end(),
                  [](const Candidate& c) { return c.reason.empty() && !c.measurable; })) {
    note("~: too rare to measure with so few absent keys; predicted by the model");
  }
  const Candidate& best = candidates[0];
  const double won = gain(options, questions, best);
  const std::string per = questions.negative_share() ? "query, on average" : "query for an absent key";
  out.write("\n");
  row("gain", won > 0 ? fmt::format("{} per {}", duration_text(won), per)
                      : fmt::format("none: a lookup takes longer than the work it saves, by {} per {}",
                                    duration_text(-won), per));
  if (options.prices.given()) {
    const Prices& prices = options.prices;
    const double memory = prices.of_memory(best.bytes);
    const double wrong = prices.of_lookups(best.fpr());
    const double without = prices.of_lookups(1);
    row("price", fmt::format("{} a month: {} for memory, {} for wrong answers; {} without a filter{}",
                             price_text(memory + wrong), price_text(memory), price_text(wrong), price_text(without),
                             memory + wrong < without ? "" : ", which is less"));
  }
  row("best", reason);
  row("run", bold(command));
}

}  // namespace perhaps::cli::advise
