// perhaps query: which of these keys are perhaps in the filter? Options and exit codes are grep's.
#include <unistd.h>

#include <bit>
#include <optional>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "print.h"
#include "progress.h"
#include "redis_filter.h"

namespace perhaps::cli {
namespace querying {
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

// The filter, in a file or on a server.
class Target {
 public:
  explicit Target(Options& options) : as_(options.keys.as) {
    if (options.redis.empty()) {
      if (options.filter.empty()) fail("filter is required (see perhaps query --help)");
      file_.emplace(options.filter, options.open, options.format);
      if (options.seek && file_->opened.seek == nullptr) fail("{}: has no prefix filter (--seek)", options.filter);
      filter_ = options.seek ? file_->opened.seek.get() : &file_->filter();
    } else {
      remote_.emplace(RedisUrl(options.redis), options.shards);
      if (!options.filter.empty()) options.keys.files.insert(options.keys.files.begin(), options.filter);
    }
  }

  bool remote() const noexcept { return remote_.has_value(); }
  void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) {
    remote_ ? remote_->may_contain(keys, answers) : query(*filter_, as_, keys, answers);
  }

 private:
  KeysAs as_;
  std::optional<AnyFile> file_;
  std::optional<RedisFilter> remote_;
  const AnyFilter* filter_ = nullptr;
};

// Larger for a server than for a file: the round trip is long, and keys of one block stay in place.
constexpr std::size_t kRemoteBatch = 16 * Parser::kColumn;

// Queries batches, and prints or counts the records that are wanted.
class Selection {
 public:
  Selection(const Options& options, Target& target, Out& out)
      : options_(options),
        target_(target),
        out_(out),
        answers_((target.remote() ? kRemoteBatch : Parser::kColumn) / 64) {}

  bool prints() const noexcept { return !options_.quiet && !options_.count && !options_.json; }
  std::uint64_t queried() const noexcept { return queried_; }
  std::uint64_t selected() const noexcept { return selected_; }
  const Source* source() const noexcept { return source_; }

  // False: enough.
  bool use(const Batch& batch, const Source* source) {
    if (source != source_) source_ = source, number_ = 0;
    target_.may_contain(batch.keys, answers_);
    queried_ += batch.keys.size();
    for (std::size_t word = 0; word * 64 < batch.keys.size(); ++word) {
      const std::size_t left = batch.keys.size() - word * 64;
      const std::uint64_t all = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
      std::uint64_t hits = (options_.invert ? ~answers_[word] : answers_[word]) & all;
      while (hits != 0) {
        const auto first = static_cast<std::size_t>(std::countr_zero(hits));
        std::size_t run = options_.numbers ? 1 : static_cast<std::size_t>(std::countr_one(hits >> first));
        run = static_cast<std::size_t>(std::min<std::uint64_t>(run, options_.most - selected_));
        if (run == 0) return false;
        selected_ += run;
        if (options_.quiet) return false;
        hits &= ~(((run == 64 ? 0 : std::uint64_t{1} << run) - 1) << first);
        if (prints()) print(batch, word * 64 + first, run);
      }
    }
    number_ += batch.keys.size();
    return selected_ < options_.most;
  }

 private:
  void print(const Batch& batch, std::size_t i, std::size_t run) {
    if (options_.numbers) {
      if (options_.keys.files.size() > 1) out_.write((source_ == nullptr ? "-e" : source_->name()) + ":");
      out_.write(fmt::format("{}:", number_ + i + 1));
    }
    write_records(out_, options_.keys.as, batch.records.subspan(i, run), source_ == nullptr);
  }

  const Options& options_;
  Target& target_;
  Out& out_;
  std::vector<std::uint64_t> answers_;
  const Source* source_ = nullptr;
  std::uint64_t number_ = 0;  // of the record, in its source
  std::uint64_t queried_ = 0;
  std::uint64_t selected_ = 0;
};

void select(const Options& options, Keys& keys, const Target& target, Selection& selection, Out& out) {
  Progress progress("querying", keys.stored_bytes(), selection.prints() && is_terminal(STDOUT_FILENO));
  std::vector<Bytes> gathered;  // records of `from`, and their keys, for one large batch
  const Source* from = nullptr;
  bool more = true;
  const auto use_gathered = [&] {
    if (!gathered.empty()) more = selection.use({gathered, gathered}, from);
    gathered.clear();
    return more;
  };
  keys.for_each(
      progress,
      [&](const Batch& batch, const Source* source) {
        if (!target.remote() || source == nullptr || !source->mapped() || !options.keys.key_is_record())
          return selection.use(batch, source);
        from = source;
        gathered.insert(gathered.end(), batch.records.begin(), batch.records.end());
        return more && (gathered.size() + Parser::kColumn <= kRemoteBatch || use_gathered());
      },
      [&] {
        use_gathered();
        // At a terminal or behind `tail -f`, an answer appears as soon as there is one.
        if (selection.source() != nullptr && !selection.source()->mapped()) out.flush();
      });
}

int run(Options& options) {
  if (options.numbers && (options.keys.as == KeysAs::len32 || options.keys.as == KeysAs::u64)) {
    fail("-n: binary records (--keys-as len32 or u64) have no line to put a number on");
  }
  Target target(options);  // before waiting for a pipe
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);
  Out out;
  Selection selection(options, target, out);
  if (options.most != 0) select(options, keys, target, selection, out);
  if (options.json) {
    Json json;
    json.add("keys", selection.queried()).add("selected", selection.selected()).add("inverted", options.invert);
    if (!options.quiet) out.write(json.text() + "\n");
  } else if (options.count && !options.quiet) {
    out.write(fmt::format("{}\n", selection.selected()));
  }
  return selection.selected() != 0 ? kYes : kNo;
}

}  // namespace
}  // namespace querying

Command::Run query_command(CLI::App& app) {
  auto options = std::make_shared<querying::Options>();
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
  return [options] { return querying::run(*options); };
}

}  // namespace perhaps::cli
