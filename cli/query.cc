// perhaps query: which of these keys are perhaps in the filter? With the habits of grep.
#include <unistd.h>

#include <bit>
#include <optional>

#include "any_file.h"
#include "command.h"
#include "keys.h"
#include "options.h"
#include "print.h"
#include "redis_filter.h"

namespace perhaps::cli {
namespace {

struct Options {
  std::string filter;
  std::string redis;
  std::uint64_t shards = 0;
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

// A server is asked for more keys at once than a file, where those of one block stay in place: the way there is long.
constexpr std::size_t kRemoteBatch = 16 * Parser::kColumn;
struct Gathered {
  std::vector<Bytes> records;  // keys too
  const Source* source = nullptr;
};

int run(Options& options) {
  if (options.numbers && (options.keys.as == KeysAs::len32 || options.keys.as == KeysAs::u64)) {
    fail("-n: binary records (--keys-as len32 or u64) have no line to put a number on");
  }
  std::optional<AnyFile> file;
  std::optional<RedisFilter> remote;
  const AnyFilter* filter = nullptr;
  if (options.redis.empty()) {  // before a pipe is waited for
    if (options.filter.empty()) fail("filter is required (see perhaps query --help)");
    file.emplace(options.filter, options.open, options.format);
    if (options.seek && file->opened.seek == nullptr) fail("{}: has no prefix filter (--seek)", options.filter);
    filter = options.seek ? file->opened.seek.get() : &file->filter();
  } else {
    remote.emplace(RedisUrl(options.redis), options.shards);
    if (!options.filter.empty()) options.keys.files.insert(options.keys.files.begin(), options.filter);
  }
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);
  const bool prints = !options.quiet && !options.count && !options.json;
  const bool with_name = options.numbers && options.keys.files.size() > 1;

  std::uint64_t asked = 0;
  std::uint64_t selected = 0;
  std::uint64_t number = 0;  // of the record, in its source
  const Source* current = nullptr;
  Out out;
  std::vector<std::uint64_t> answers((remote ? kRemoteBatch : Parser::kColumn) / 64);
  const auto use = [&](const Batch& batch, const Source* source) {
    if (source != current) current = source, number = 0;
    if (remote) {
      remote->may_contain(batch.keys, answers);
    } else {
      ask(*filter, options.keys.as, batch.keys, answers);
    }
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
    Gathered gathered;
    bool more = true;
    const auto ask_gathered = [&] {
      if (!gathered.records.empty()) more = use({gathered.records, gathered.records}, gathered.source);
      gathered.records.clear();
      return more;
    };
    keys.for_each(
        progress,
        [&](const Batch& batch, const Source* source) {
          if (!remote || source == nullptr || !source->mapped() || !options.keys.key_is_record())
            return use(batch, source);
          gathered.source = source;
          gathered.records.insert(gathered.records.end(), batch.records.begin(), batch.records.end());
          return more && (gathered.records.size() + Parser::kColumn <= kRemoteBatch || ask_gathered());
        },
        [&] {
          ask_gathered();
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
  app.add_option("filter", options->filter, "The filter file, of any format; not with --redis")->type_name("FILTER");
  auto* const redis = app.add_option("--redis", options->redis,
                                     "Ask a server: redis://[[user]:password@]host[:port]/key, or redis-cluster:// to "
                                     "find all nodes from one; the key may be the name that shards were pushed under")
                          ->type_name("URL");
  add_count(app, "--shards", options->shards, "N", "With --redis: the filter is in N keys; default: as the server says")
      ->needs(redis);
  app.add_flag("-v,--invert-match", options->invert, "Select the keys that are certainly not in the filter");
  app.add_flag("-c,--count", options->count, "Print only how many are selected");
  app.add_flag("-q,--quiet", options->quiet, "Print nothing and stop at the first: the exit code tells");
  app.add_flag("-n,--line-number", options->numbers, "Print the number of each record in its file before it");
  add_count(app, "-m,--max-count", options->most, "NUM", "Stop after NUM are selected", 0);
  app.add_flag("--seek", options->seek, "Ask as a seek to a key does, where the file of an engine has a prefix filter");
  declare_json(app, options->json);
  declare_open(app, options->open);
  declare_format(app, options->format);
  for (const char* const local : {"--seek", "--keyed", "--no-verify", "--format"})
    redis->excludes(app.get_option(local));
  declare_keys(app, options->keys);
  return [options] { return run(*options); };
}

}  // namespace perhaps::cli
