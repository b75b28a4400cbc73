// perhaps query: which of these keys are perhaps in the filter? With the habits of grep.
#include <unistd.h>

#include <array>
#include <bit>

#include "any_file.h"
#include "command.h"
#include "keys.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  OpenArgs open;
  FormatArgs format;
  bool seek = false;
  bool invert = false;
  bool count = false;
  bool quiet = false;
  bool numbers = false;
  bool json = false;
  std::uint64_t most = UINT64_MAX;
};

int run(Options& options) {
  if (options.numbers && (options.keys.as == KeysAs::len32 || options.keys.as == KeysAs::u64)) {
    fail("-n: binary records (--keys-as len32 or u64) have no line to put a number on");
  }
  const AnyFile file(options.filter, options.open, options.format);  // before a pipe is waited for
  if (options.seek && file.opened.seek == nullptr) fail("{}: has no prefix filter (--seek)", options.filter);
  const AnyFilter& filter = options.seek ? *file.opened.seek : file.filter();
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);
  const bool prints = !options.quiet && !options.count && !options.json;
  const bool with_name = options.numbers && options.keys.files.size() > 1;

  std::uint64_t asked = 0;
  std::uint64_t selected = 0;
  std::uint64_t number = 0;  // of the record, in its source
  const Source* current = nullptr;
  Out out;
  std::array<std::uint64_t, Parser::kColumn / 64> answers;
  const auto use = [&](const Batch& batch, const Source* source) {
    if (source != current) current = source, number = 0;
    ask(filter, options.keys.as, batch.keys, answers);
    asked += batch.keys.size();
    for (std::size_t word = 0; word * 64 < batch.keys.size(); ++word) {
      const std::size_t left = batch.keys.size() - word * 64;
      const std::uint64_t all = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
      std::uint64_t hits = (options.invert ? ~answers[word] : answers[word]) & all;
      while (hits != 0) {
        const auto first = static_cast<std::size_t>(std::countr_zero(hits));
        std::size_t run = options.numbers ? 1 : static_cast<std::size_t>(std::countr_one(hits >> first));
        run = static_cast<std::size_t>(std::min<std::uint64_t>(run, options.most - selected));
        if (run == 0) return false;
        selected += run;
        if (options.quiet) return false;
        hits &= ~(((run == 64 ? 0 : std::uint64_t{1} << run) - 1) << first);
        if (!prints) continue;
        const std::size_t i = word * 64 + first;
        if (options.numbers) {
          if (with_name) out.write((source == nullptr ? "-e" : source->name()) + ":");
          out.write(fmt::format("{}:", number + i + 1));
        }
        write_records(out, options.keys.as, batch.records.subspan(i, run), source == nullptr);
      }
    }
    number += batch.keys.size();
    return selected < options.most;
  };
  if (options.most != 0) {
    // Whoever types or tails sees an answer as soon as there is one.
    Progress progress("asking", keys.stored_bytes(), prints && is_terminal(STDOUT_FILENO));
    keys.for_each(progress, use, [&] {
      if (current != nullptr && !current->mapped()) out.flush();
    });
  }
  if (options.json) {
    Json json;
    json.add("keys", asked).add("selected", selected).add("inverted", options.invert);
    if (!options.quiet) out.write(json.text() + "\n");
  } else if (options.count && !options.quiet) {
    out.write(fmt::format("{}\n", selected));
  }
  return selected != 0 ? kYes : kNo;
}

}  // namespace

Command::Run query_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("filter", options->filter, "The filter file, of any format")->type_name("FILTER")->required();
  app.add_flag("-v,--invert-match", options->invert, "Select the keys that are certainly not in the filter");
  app.add_flag("-c,--count", options->count, "Print only how many are selected");
  app.add_flag("-q,--quiet", options->quiet, "Print nothing and stop at the first: the exit code tells");
  app.add_flag("-n,--line-number", options->numbers, "Print the number of each record in its file before it");
  add_count(app, "-m,--max-count", options->most, "NUM", "Stop after NUM are selected", 0);
  app.add_flag("--seek", options->seek, "Ask as a seek to a key does, where the file of an engine has a prefix filter");
  declare_json(app, options->json);
  declare_open(app, options->open);
  declare_format(app, options->format);
  declare_keys(app, options->keys);
  return [options] { return run(*options); };
}

}  // namespace perhaps::cli
