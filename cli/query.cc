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
#include "prompt.h"
#include "ranges.h"
#include "redis_filter.h"
#include "side_file.h"

namespace perhaps::cli {
namespace querying {
namespace {

struct Options {
  std::string filter;
  std::string redis;
  RedisAccess access;
  std::uint64_t shards = 0;
  KeyOptions keys;
  OpenArgs open;
  FormatArgs format;
  std::string rest;
  std::vector<std::string> more_files;
  bool seek = false;
  bool invert = false;
  bool count = false;
  bool names = false;
  bool quiet = false;
  bool numbers = false;
  bool answers = false;
  bool prompt = false;
  bool json = false;
  std::uint64_t most = UINT64_MAX;
  RangeQuestions ranges;

  // The key is a part of the record.
  bool key_is_part() const noexcept { return !keys.fields.empty(); }
};

// The filter, in a file or on a server.
class Target {
 public:
  explicit Target(Options& options) : as_(options.keys.as) {
    if (options.redis.empty()) {
      if (options.filter.empty()) fail("FILTER is required (see perhaps query --help)");
      file_.emplace(options.filter, options.open, options.format);
      if (options.seek && file_->opened.seek == nullptr) fail("{}: has no prefix filter (--seek)", options.filter);
      if (file_->own && (file_->own->header().kind == Kind::map || file_->own->header().kind == Kind::coded)) {
        fail("{}: a map, not a filter: perhaps map get {} looks keys up", options.filter, options.filter);
      }
      filter_ = options.seek ? file_->opened.seek.get() : &file_->filter();
      options.keys.adopt(recipe_of(file_->record(), options.filter), options.filter);
      as_ = options.keys.as;
    } else {
      remote_.emplace(RedisUrl(options.redis), options.access, options.shards);
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

// The counts of one input.
struct Tally {
  std::string name;
  std::uint64_t keys = 0;
  std::uint64_t selected = 0;
};

// Queries batches, and prints or counts the records that are wanted.
class Selection {
 public:
  Selection(const Options& options, Target& target, Out& out, SideFile& rest)
      : options_(options),
        target_(target),
        out_(out),
        rest_(rest),
        answers_((target.remote() ? kRemoteBatch : Parser::kColumn) / 64) {}

  // Records, as grep does.
  bool prints() const noexcept {
    return !options_.quiet && !options_.count && !options_.names && !options_.json && !options_.answers;
  }
  // An answer for each key.
  bool answers() const noexcept { return !options_.quiet && !options_.count && (options_.answers || options_.json); }
  std::uint64_t selected() const noexcept { return selected_; }
  const Source* source() const noexcept { return source_; }
  const std::vector<Tally>& tallies() const noexcept { return tallies_; }

  // False: enough.
  bool use(const Batch& batch, const Source* source) {
    if (tallies_.empty() || source != source_) begin(source);
    target_.may_contain(batch.keys, answers_);
    Tally& tally = tallies_.back();
    tally.keys += batch.keys.size();
    if (answers()) {
      answer_all(batch);
    } else if (!select(batch)) {
      return false;
    }
    if (rest_.wanted()) write_rest(batch);
    number_ += batch.read;
    return selected_ < options_.most;
  }

 private:
  void begin(const Source* source) {
    source_ = source;
    number_ = 0;
    tallies_.push_back({.name = source == nullptr ? "-e" : source->name()});
    // Output stays CSV: the header of the first file comes first.
    if (source == nullptr || source->header().empty() || headed_) return;
    headed_ = true;
    if (prints()) write_line(out_, source->header());
    if (rest_.wanted()) write_line(rest_, source->header());
  }
  template <class Sink>
  static void write_line(Sink& sink, Bytes line) {
    sink.write(line);
    sink.write('\n');
  }

  bool is_perhaps(std::size_t i) const noexcept { return (answers_[i / 64] >> (i % 64) & 1) != 0; }

  bool select(const Batch& batch) {
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
        tallies_.back().selected += run;
        if (options_.quiet) return false;
        hits &= ~(((run == 64 ? 0 : std::uint64_t{1} << run) - 1) << first);
        if (prints()) print(batch, word * 64 + first, run);
      }
    }
    return true;
  }

  void answer_all(const Batch& batch) {
    for (std::size_t i = 0; i < batch.keys.size() && selected_ < options_.most; ++i) {
      const bool perhaps = is_perhaps(i);
      selected_ += perhaps != options_.invert;
      tallies_.back().selected += perhaps != options_.invert;
      const std::string_view answer = perhaps ? "perhaps" : "no";
      if (options_.prompt) {  // what was typed must not be seen
        out_.write(answer);
        out_.write('\n');
      } else if (options_.json) {
        Json json;
        json.add("key", shown(batch, i)).add("answer", answer).add("file", tallies_.back().name);
        out_.write(json.add("line", number_ + batch.places[i] + 1).text() + "\n");
      } else {
        out_.write(answer);
        out_.write('\t');
        const Bytes text = options_.key_is_part() && source_ != nullptr ? batch.keys[i] : batch.records[i];
        options_.keys.number() ? out_.write(shown(batch, i)) : out_.write(text);
        out_.write(options_.keys.as == KeysAs::nul ? '\0' : '\n');
      }
    }
  }
  std::string shown(const Batch& batch, std::size_t i) const {
    if (options_.keys.number()) return std::to_string(load_little_endian<std::uint64_t>(batch.keys[i].data()));
    const Bytes text = options_.key_is_part() && source_ != nullptr ? batch.keys[i] : batch.records[i];
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  void write_rest(const Batch& batch) {
    for (std::size_t i = 0; i < batch.keys.size();) {
      if (is_perhaps(i) != options_.invert) {
        ++i;
        continue;
      }
      std::size_t to = i + 1;
      while (to < batch.keys.size() && is_perhaps(to) == options_.invert) ++to;
      write_records(rest_, options_.keys.as, batch.records.subspan(i, to - i), source_ == nullptr);
      i = to;
    }
  }

  void print(const Batch& batch, std::size_t i, std::size_t run) {
    if (options_.numbers) {
      if (options_.keys.files.size() > 1) out_.write(tallies_.back().name + ":");
      out_.write(fmt::format("{}:", number_ + batch.places[i] + 1));
    }
    write_records(out_, options_.keys.as, batch.records.subspan(i, run), source_ == nullptr);
  }

  const Options& options_;
  Target& target_;
  Out& out_;
  SideFile& rest_;
  std::vector<std::uint64_t> answers_;
  const Source* source_ = nullptr;
  std::uint64_t number_ = 0;  // of the record, in its source
  std::uint64_t selected_ = 0;
  std::vector<Tally> tallies_;
  bool headed_ = false;
};

void select(const Options& options, Keys& keys, const Target& target, Selection& selection, Out& out, SideFile& rest) {
  Progress progress("querying", keys.stored_bytes(), selection.prints() && is_terminal(STDOUT_FILENO));
  std::vector<Bytes> gathered;  // records of `from`, and their keys, for one large batch
  std::vector<std::uint32_t> places(kRemoteBatch);
  for (std::uint32_t i = 0; i < kRemoteBatch; ++i) places[i] = i;
  const Source* from = nullptr;
  bool more = true;
  const auto use_gathered = [&] {
    if (!gathered.empty()) more = selection.use({gathered, gathered, places, gathered.size()}, from);
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
        // At a terminal, behind `tail -f` or to a program that waits, an answer appears as soon as there is one.
        if (selection.source() == nullptr || selection.source()->mapped()) return;
        out.flush();
        if (rest.wanted()) rest.flush();
      });
}

void report(const Options& options, const Selection& selection, Out& out) {
  if (options.quiet) return;
  if (options.names) {
    for (const Tally& tally : selection.tallies()) {
      if (tally.selected != 0) out.write(tally.name + "\n");
    }
  } else if (options.count && options.json) {
    std::vector<std::string> objects;
    for (const Tally& tally : selection.tallies()) {
      Json json;
      json.add("file", tally.name).add("keys", tally.keys).add("selected", tally.selected);
      objects.push_back(json.add("inverted", options.invert).text());
    }
    out.write(Json::array(objects) + "\n");
  } else if (options.count) {
    if (options.keys.files.size() < 2) return out.write(fmt::format("{}\n", selection.selected()));
    for (const Tally& tally : selection.tallies()) out.write(fmt::format("{}:{}\n", tally.name, tally.selected));
  }
}

int run_ranges(Options& options) {
  if (options.filter.empty()) fail("FILTER is required (see perhaps query --help)");
  const auto refuse = [](bool given, std::string_view option) {
    if (given) fail("{}: is for single keys, not for ranges (--range, --ranges)", option);
  };
  refuse(!options.keys.files.empty() || !options.more_files.empty(), "FILES");
  refuse(!options.keys.literals.empty(), "-e");
  refuse(!options.rest.empty(), "--rest");
  refuse(options.names, "-l");
  refuse(options.numbers, "-n");
  refuse(options.prompt, "--prompt");
  refuse(options.seek, "--seek");
  const AnyFile file(options.filter, options.open, options.format);
  options.keys.adopt(recipe_of(file.record(), options.filter), options.filter);
  options.ranges.invert = options.invert;
  options.ranges.count = options.count;
  options.ranges.quiet = options.quiet;
  options.ranges.answers = options.answers;
  options.ranges.json = options.json;
  options.ranges.most = options.most;
  return query_ranges(options.ranges, file, options.filter, options.keys);
}

int run(Options& options) {
  if (options.ranges.any()) return run_ranges(options);
  if (options.numbers && (options.keys.as == KeysAs::len32 || options.keys.as == KeysAs::u64)) {
    fail("-n: binary records (--keys-as len32 or u64) have no line to put a number on");
  }
  options.keys.choice.asks_digests = true;
  options.keys.files.insert(options.keys.files.end(), options.more_files.begin(), options.more_files.end());
  Target target(options);  // before waiting for a pipe
  if (options.prompt) {
    options.keys.literals.push_back(read_without_echo("key: "));
    options.answers = true;
  }
  read_stdin_if_none(options.keys);
  SideFile rest("--rest", options.rest, options.keys);
  options.keys.goes_on = true;
  Keys keys(options.keys);
  rest.begin();
  Out out;
  Selection selection(options, target, out, rest);
  if (options.most != 0) select(options, keys, target, selection, out, rest);
  report(options, selection, out);
  if (rest.wanted()) rest.flush();
  if (keys.failed()) return kError;
  return selection.selected() != 0 ? kYes : kNo;
}

}  // namespace
}  // namespace querying

Command::Run query_command(CLI::App& app) {
  auto options = std::make_shared<querying::Options>();
  app.add_option("filter", options->filter, "The filter file, of any format; not with --redis")->type_name("FILTER");
  auto* const redis =
      app.add_option("--redis", options->redis,
                     "Query a server: redis://[[user]:password@]host[:port]/key, rediss:// with TLS, or "
                     "redis-cluster:// and rediss-cluster:// to find all nodes from one; the key may be "
                     "the name that shards were pushed under")
          ->type_name("URL");
  add_count(app, "--shards", options->shards, "N", "With --redis: the filter is in N keys; default: as the server says")
      ->needs(redis);
  app.add_flag("-v,--invert-match", options->invert, "Select the keys that are certainly not in the filter");
  auto* const count =
      app.add_flag("-c,--count", options->count, "Print only how many are selected, for each of several files");
  auto* const names =
      app.add_flag("-l,--files-with-matches", options->names, "Print only the names of files with selected records")
          ->excludes(count);
  app.add_flag("-q,--quiet", options->quiet, "Print nothing and stop at the first: the exit code tells");
  auto* const numbers =
      app.add_flag("-n,--line-number", options->numbers, "Print the number of each record in its file before it");
  add_count(app, "-m,--max-count", options->most, "NUM", "Stop after NUM are selected", 0);
  app.add_flag("--answers", options->answers,
               "Print an answer for every key, as soon as there is one: perhaps or no, a tab, and the key")
      ->excludes(count)
      ->excludes(names)
      ->excludes(numbers);
  auto* const range =
      app.add_option(
             "--range", options->ranges.ranges,
             "Is there any key from A to B, both included? Of a range filter; without A or B, from the first or "
             "to the last key. Prints the ranges that perhaps hold a key; may be repeated")
          ->type_name("A..B")
          ->allow_extra_args(false);
  auto* const ranges =
      app.add_option("--ranges", options->ranges.file,
                     "The same for each line of this file: A..B, or A, a tab and B; - is standard input")
          ->type_name("FILE");
  for (auto* const option : {range, ranges}) redis->excludes(option);
  app.add_option("--rest", options->rest, "Write the records that are not selected to this file, in the same pass")
      ->type_name("FILE")
      ->excludes(app.get_option("--quiet"))  // both stop early: what comes after would be in neither
      ->excludes(app.get_option("--max-count"));
  app.add_flag("--prompt", options->prompt,
               "Ask for one key at the terminal, without showing it, and print perhaps or no");
  app.add_flag("--seek", options->seek, "Query as a seek to a key does, if the file of an engine has a prefix filter");
  app.add_flag(
         "--json", options->json,
         "Print JSON, for programs: one object per key, with its answer, file and line; with -c one list of counts")
      ->excludes(names);
  declare_redis(app, options->access);
  declare_open(app, options->open);
  declare_format(app, options->format);
  for (const char* const local : {"--seek", "--keyed", "--no-verify", "--format"})
    redis->excludes(app.get_option(local));
  declare_keys(app, options->keys);
  declare_recipe(app, options->keys);
  app.add_flag("-i,--ignore-case", options->keys.lower, "Short for --lower")->group("Keys");
  app.add_option("-f,--file", options->more_files, "Another file of keys, as in grep; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group("Keys");
  return [options] { return querying::run(*options); };
}

}  // namespace perhaps::cli
