// perhaps explain: why a filter answers *perhaps* or *no* to a key, bit by bit.
#include "any/explain.h"

#include <algorithm>
#include <optional>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "json_fields.h"
#include "keys.h"
#include "little_endian.h"
#include "options.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace explaining {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  OpenArgs open;
  FormatArgs format;
  bool json = false;
};

std::string json_of(const std::string& key, const Explanation& e) {
  Json json;
  json.add("key", key);
  add_explanation(json, e);
  return json.text();
}

std::string verdict_of(const Check& check, std::string_view rule) {
  if (check.what == "bit") return check.holds ? "set" : "not set";
  if (check.what == "counter") return fmt::format("{}{}", check.found, check.holds ? "" : ": none");
  if (check.what == "column")
    return fmt::format("parity {}, wanted {}{}", check.found, check.wanted, check.holds ? "" : ": differs");
  if (check.what == "cell")
    return fmt::format("generations {:08b}{}", check.found, check.holds ? "" : ": none in common");
  if (rule == "xor") return fmt::format("{}", check.found);
  if (check.what == "slot" && check.found == 0 && !check.holds) return "empty";
  return check.holds ? "the same" : "another";
}

void print(Out& out, const ExplainedPart& part) {
  const std::string indent = part.name.empty() ? "  " : "    ";
  if (!part.name.empty()) out.write(fmt::format("  {}: {}\n", part.name, part.perhaps ? "perhaps" : "no"));
  for (const auto& [name, value] : part.steps) out.write(fmt::format("{}{:<13}  {}\n", indent, name, value));
  if (part.checks.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const Check& check : part.checks) {
    rows.push_back({indent + std::string(check.what), fmt::format("{}", check.at),
                    fmt::format("byte {}, bit {}", check.at / 8, check.at % 8), verdict_of(check, part.rule)});
  }
  out.write(table(rows, "lrll"));
}

std::string why(const Explanation& e) {
  std::size_t failed = 0;
  std::size_t all = 0;
  std::uint64_t together = 0;
  std::string_view rule = "none";
  for (const ExplainedPart& part : e.parts) {
    if (part.rule != "none") rule = part.rule;
    all += part.checks.size();
    for (const Check& check : part.checks) {
      failed += !check.holds;
      together ^= check.found;
    }
  }
  if (e.parts.size() != 1 || rule == "none") return "";
  if (rule == "xor")
    return fmt::format(": XORed, they are {}the fingerprint", e.perhaps ? "" : fmt::format("{}, not ", together));
  if (rule == "any") return e.perhaps ? ": the fingerprint is there" : ": the fingerprint is in none of them";
  return e.perhaps ? fmt::format(": all {} hold", all) : fmt::format(": {} of {} fail", failed, all);
}

void print(Out& out, const std::string& key, const Explanation& e) {
  out.write(bold(key) + "\n");
  out.write(fmt::format("  {:<13}  {}\n", "family", e.family));
  if (e.digest) {
    out.write(fmt::format("  {:<13}  {}\n", e.hash, hex(*e.digest)));
    if (e.word != e.digest) out.write(fmt::format("  {:<13}  {}\n", "word", hex(*e.word)));
  }
  for (const ExplainedPart& part : e.parts) print(out, part);
  const auto unshown = [](const ExplainedPart& part) { return part.rule == "none" && part.steps.empty(); };
  if (!e.digest && std::ranges::all_of(e.parts, unshown)) {
    out.write(e.family == name_of(Kind::exact)
                  ? "  a set in parts: only its answer is shown\n"
                  : "  another system's format, not a classic Bloom filter: only its answers are shown\n");
  }
  out.write(fmt::format("  {:<13}  {}{}\n", "answer", e.perhaps ? "perhaps" : "no", why(e)));
}

int run(Options& options) {
  const AnyFile file(options.filter, options.open, options.format);
  if (file.own && file.own->header().kind == Kind::range) {
    fail("{}: a range filter has places instead of bits; use perhaps query", options.filter);
  }
  const AnyFilter& filter = file.filter();
  const auto described = filter.digests() == nullptr ? std::optional(file.opened.whole->describe()) : std::nullopt;
  options.keys.choice.asks_digests = true;
  options.keys.adopt(recipe_of(file.record(), options.filter), options.filter);
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);
  Progress quiet("explaining", 0, true);
  Out out;
  bool any = false;
  keys.for_each(
      quiet,
      [&](const Batch& batch, const Source*) {
        for (const Bytes key : batch.keys) {
          const bool number = options.keys.number();
          const std::uint64_t value = number ? load_little_endian<std::uint64_t>(key.data()) : 0;
          if (number && filter.digests() == nullptr)
            fail("{}: this format hashes bytes: it has no integers", options.filter);
          const Explanation e = filter.digests() == nullptr
                                    ? explain_foreign(file.opened, *described, key)
                                    : explain(filter, number ? digest_for(filter, value) : digest_for(filter, key));
          const std::string shown =
              number ? std::to_string(value) : std::string(reinterpret_cast<const char*>(key.data()), key.size());
          any |= e.perhaps;
          options.json ? out.write(json_of(shown, e) + "\n") : print(out, shown, e);
        }
        return true;
      },
      [&] { out.flush(); });
  return any ? kYes : kNo;
}

}  // namespace
}  // namespace explaining

Command::Run explain_command(CLI::App& app) {
  auto options = std::make_shared<explaining::Options>();
  app.add_option("filter", options->filter, "The filter file, of any format")->type_name("FILTER")->required();
  app.add_flag("--json", options->json, "Print JSON, for programs: one object per key");
  declare_open(app, options->open);
  declare_format(app, options->format);
  declare_keys(app, options->keys);
  declare_recipe(app, options->keys);
  return [options] { return explaining::run(*options); };
}

}  // namespace perhaps::cli
