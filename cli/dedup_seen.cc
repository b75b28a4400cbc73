// perhaps dedup --seen FILE: what was seen is kept in a filter file, so that the next run goes on where this one ended.
//
// Lines are written before the file is saved: if the program is killed, those since the last save are written again by
// the next run, and none is lost.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <unordered_set>

#include "command.h"
#include "dedup_more.h"
#include "dedup_write.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "keys.h"
#include "lock.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace {

// The file, or a new filter if there is none yet; locked until the end.
class SeenFilter {
 public:
  explicit SeenFilter(DedupArgs& options) : path_(options.seen) {
    struct stat there {};
    if (::stat(path_.c_str(), &there) == 0) {
      changing_.emplace(path_, options.keyed, /*erases=*/false);
      options.keys.adopt(recipe_of(changing_->record, path_), path_);
      record_ = changing_->record;
      filter_ = std::move(changing_->filter);
      hasher_ = changing_->hasher;
      const Family& family = *find_family(*kind_named(filter_->describe().family));
      forgets_ = family.forgets;
      grows_ = family.grows;
      check_shape(options);
      return;
    }
    check_output(path_);
    if (const auto secret = options.keyed.read()) hasher_ = *secret;
    const Kind kind = options.window != 0 ? Kind::window : Kind::scalable;
    const std::uint64_t first = options.window != 0 ? options.window : options.keys_expected;
    filter_ = take(make_any(kind, {.keys = first, .fpr = options.fpr}, hasher_));
    forgets_ = kind == Kind::window;
    record_.capacity = filter_->record().capacity;
    record_.about = about_new(options.keys, "");
  }

  const AnyHasher& hasher() const noexcept { return hasher_; }
  Description describe() const { return filter_->describe(); }
  std::uint64_t keys() const noexcept { return record_.keys; }

  // Which keys were seen before, in the file or in this column? Afterwards all of them have been.
  void check(std::span<const std::uint64_t> digests, std::span<std::uint64_t> seen) {
    filter_->digests()->may_contain(digests, seen);
    column_.clear();
    fresh_.clear();
    for (std::size_t i = 0; i < digests.size(); ++i) {
      std::uint64_t& word = seen[i / 64];
      const std::uint64_t bit = std::uint64_t{1} << i % 64;
      if ((word & bit) != 0) continue;
      if (column_.insert(digests[i]).second) {
        fresh_.push_back(digests[i]);
      } else {
        word |= bit;
      }
    }
    // A window remembers longer what comes again; other families would keep a second copy.
    const std::span<const std::uint64_t> wanted = forgets_ ? digests : fresh_;
    if (const std::size_t in = filter_->insert_digests(wanted); in < wanted.size())
      fail("{}: full after {} keys; it stays as last saved. Build a larger one", path_, grouped(record_.keys + in));
    record_.keys += wanted.size();
  }
  void save() {
    record_.capacity = std::max(record_.capacity, filter_->record().capacity);
    save_filter(*filter_, path_, record_);
  }

 private:
  // The options that made the file may be given again: a job that runs every day has one command line.
  void check_shape(const DedupArgs& options) const {
    if (options.window != 0 && (!forgets_ || options.window != record_.capacity)) {
      fail("{}: is there, and keeps the shape it was made with: {}, not the last {} (--window)", path_,
           forgets_ ? fmt::format("the last {} keys", grouped(record_.capacity)) : "it forgets nothing",
           grouped(options.window));
    }
    if (options.keys_expected == 0) return;
    if (forgets_) {
      fail(
          "{}: is there, and keeps the shape it was made with: the last {} keys, which --keys-expected does not "
          "change",
          path_, grouped(record_.capacity));
    }
    if (record_.capacity != 0 && !grows_ && options.keys_expected > record_.capacity) {
      fail("{}: is there, and keeps the shape it was made with: {} keys, not {} (--keys-expected)", path_,
           grouped(record_.capacity), grouped(options.keys_expected));
    }
  }

  std::string path_;
  std::optional<Changing> changing_;
  bool forgets_ = false;
  bool grows_ = false;
  Record record_;
  AnyHasher hasher_;
  std::unique_ptr<AnyMutable> filter_;
  std::unordered_set<std::uint64_t> column_;
  std::vector<std::uint64_t> fresh_;
};

}  // namespace

int dedup_seen(DedupArgs& options) {
  const auto begin = std::chrono::steady_clock::now();
  SeenFilter filter(options);
  read_stdin_if_none(options.keys);
  SideFile dropped("--suspects", options.suspects, options.keys);
  Keys keys(options.keys);
  dropped.begin();
  DedupWriter writer(options.keys, dropped);
  std::array<std::uint64_t, Parser::kColumn> digests;
  std::array<std::uint64_t, Parser::kColumn / 64> seen;
  std::uint64_t saved = 0;
  double wrong = 0;  // expected number of false drops
  double rate = filter.describe().fpr;
  std::uint64_t rated = 0;
  const auto save = [&] {
    writer.flush();
    filter.save();
    saved = writer.read();
  };
  const auto rate_now = [&] {
    const double now = filter.describe().fpr;
    wrong += static_cast<double>(writer.written() - rated) * (rate + now) / 2;
    rate = now;
    rated = writer.written();
  };
  const auto end = [&] {
    rate_now();
    save();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const Description d = filter.describe();
    const std::uint64_t gone = writer.read() - writer.written();
    if (options.json) {
      Json json;
      json.add("lines", writer.read()).add("out", writer.written()).add("dropped", gone).add("expected_wrong", wrong);
      json.add("fpr", writer.written() == 0 ? 0 : wrong / static_cast<double>(writer.written()));
      json.add("fpr_wanted", options.fpr).add("remembers", options.seen).add("bytes", d.bytes);
      write_error(json.add("seconds", seconds.count()).text() + "\n");
    } else if (!options.quiet) {
      say("", fmt::format("{} lines read, {} written, {} dropped as seen before (expected false drops: {})",
                          grouped(writer.read()), grouped(writer.written()), grouped(gone),
                          wrong < 1e-6 ? "fewer than 1 in a million" : expected(wrong)));
      say("",
          fmt::format("{}: {} key{} in {}, {} of new lines would be dropped now", options.seen, grouped(filter.keys()),
                      filter.keys() == 1 ? "" : "s", bytes_text(static_cast<double>(d.bytes)), percent(d.fpr)));
    }
    if (d.fpr > 0.01 && d.fpr > 10 * d.fpr_at_capacity) {
      warn(fmt::format("{}: full: {} of new lines are taken for seen and lost. Make a larger one", options.seen,
                       percent(d.fpr)));
    }
  };
  try {
    Progress progress("reading", keys.stored_bytes(), is_terminal(STDOUT_FILENO));
    keys.for_each(
        progress,
        [&](const Batch& batch, const Source* source) {
          digest_keys(filter.hasher(), options.keys.as, batch.keys, digests);
          filter.check(std::span(digests).first(batch.keys.size()), seen);
          writer.write(batch, source, seen);
          if (writer.written() - rated > rated / 8 + 10'000) rate_now();
          if (writer.read() - saved >= options.save_every) save();
          return true;
        },
        [&] { writer.block_done(); });
  } catch (const Interrupted&) {  // the usual end of an endless stream
    forget_interrupt();
    end();
    throw;
  }
  end();
  return kYes;
}

}  // namespace perhaps::cli
