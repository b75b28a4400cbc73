// perhaps dedup: the lines of a stream that were not seen before, in their order, in little memory.
//
//   --window N   a window filter of the last N lines                         memory: fixed
//   --for 10m    a window filter of the last ten minutes, by arrival         memory: fixed, for --keys-expected lines
//   otherwise    a scalable filter of everything                             memory: 3.2 bytes per distinct line at
// 1e-6
//                files   read twice: the first time mapped, by several threads, to estimate the number of distinct
//                        lines, so that the chain has one link of the right size; the second time in order
//                pipes   the chain grows with the input: about twice the memory. (A growing filter would take 4.1 bytes
//                        per line at 1e6 to 1e7 lines where the chain takes 5.8 to 6.8, and 5 times its time.)
//
// Lines are hashed under a secret that is drawn for each run. Under a public hash, anyone who can write to the stream
// could first write a line that makes a chosen later one look seen (test/cli/attack_test.py).
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>

#include "command.h"
#include "dedup_more.h"
#include "dedup_write.h"
#include "distinct.h"
#include "interrupt.h"
#include "json.h"
#include "keys.h"
#include "memory_check.h"
#include "options.h"
#include "perhaps/scalable_bloom.h"
#include "perhaps/window.h"
#include "print.h"
#include "progress.h"
#include "row_bloom.h"

namespace perhaps::cli {
namespace dedup {
namespace {

using Options = DedupArgs;

using Column = std::span<const Digest<KeyedHash>>;

// What has been seen, by one of the two filters.
class Memory {
 public:
  virtual ~Memory() = default;
  // Which keys were seen before? Afterwards all of them have been.
  virtual void check(Column digests, std::span<std::uint64_t> answers) = 0;
  // Can the keys of one check() be mistaken for each other?
  virtual bool one_by_one() const noexcept = 0;
  virtual double fpr() const = 0;  // now, by the model; takes some microseconds
  virtual std::uint64_t bytes() const = 0;
  virtual std::string text() const = 0;
};

class Everything : public Memory {
 public:
  Everything(const Growth& growth, const KeyedHash& hasher) : filter_(growth, hasher) {}
  void check(Column digests, std::span<std::uint64_t> answers) override { filter_.insert(digests, answers); }
  bool one_by_one() const noexcept override { return false; }
  double fpr() const override { return filter_.fpr(); }
  std::uint64_t bytes() const override { return filter_.byte_size(); }
  std::string text() const override { return "everything"; }

 private:
  Scalable<RowBloom> filter_;
};

class Recent : public Memory {
 public:
  Recent(WindowShape shape, std::string text, const KeyedHash& hasher)
      : filter_(shape, hasher), text_(std::move(text)) {}
  void check(Column digests, std::span<std::uint64_t> answers) override {
    if (filter_.shape().by_time != 0) {
      const auto passed = std::chrono::steady_clock::now() - begin_;
      const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(passed).count();
      advance(filter_, static_cast<std::uint64_t>(now));
    }
    insert(filter_, digests, answers);
  }
  bool one_by_one() const noexcept override { return true; }
  double fpr() const override { return state_of(filter_).fpr; }
  std::uint64_t bytes() const override { return filter_.byte_size(); }
  std::string text() const override { return text_; }

 private:
  BasicWindow<KeyedHash> filter_;
  std::string text_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// The expected number of new lines that were dropped: the sum of the rates that the new lines met. The rate is computed
// whenever there are 1 % more new lines, or 5000, and interpolated in between. If lines are checked a column at a time,
// they meet the rate before their column.
class Wrong {
 public:
  explicit Wrong(const Memory& memory) : memory_(memory) {}
  void see(std::uint64_t fresh) {
    ++columns_;
    pending_ += fresh;
    seen_ += fresh;
    if (pending_ > std::min<std::uint64_t>(seen_ / 100, 5000)) settle();
  }
  double expected() {
    settle();
    return expected_;
  }

 private:
  void settle() {
    if (pending_ == 0) return;
    const double rate = memory_.fpr();
    double mean = (last_ + rate) / 2;
    if (!memory_.one_by_one()) mean -= (rate - last_) / 2 / columns_;
    expected_ += static_cast<double>(pending_) * mean;
    pending_ = 0;
    columns_ = 0;
    last_ = rate;
  }
  const Memory& memory_;
  int columns_ = 0;
  std::uint64_t pending_ = 0;
  std::uint64_t seen_ = 0;
  double last_ = 0;
  double expected_ = 0;
};

template <class H>
void digest_column(const H& hash, KeysAs as, std::span<const Bytes> keys,
                   std::type_identity_t<std::span<Digest<H>>> out) noexcept {
  if (as != KeysAs::u64) return digests_of(hash, keys, out);
  std::array<std::uint64_t, Parser::kColumn> words;
  digest_keys(hash, as, keys, words);
  for (std::size_t i = 0; i < keys.size(); ++i) out[i] = Digest<H>::made_by(hash, words[i]);
}

// The number of distinct keys in mapped files.
std::uint64_t estimate_distinct(const Options& options, Keys& keys) {
  const Hash hasher(KeyedHash(KeyedHash::new_secret()).check_value());
  const auto threads = static_cast<unsigned>(std::clamp<std::uint64_t>(keys.stored_bytes() >> 20, 1, options.threads));
  std::vector<Distinct> counts(threads);
  Progress progress("counting", keys.stored_bytes());
  keys.for_each_parallel(threads, progress, [&](unsigned thread, const Batch& batch) {
    std::array<Digest<Hash>, Parser::kColumn> digests;
    digest_column(hasher, options.keys.as, batch.keys, digests);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) counts[thread].add(digests[i].value);
  });
  for (unsigned i = 1; i < threads; ++i) counts[0].add(counts[i]);
  // Three standard errors more, so that the chain grows only once in a thousand times.
  return static_cast<std::uint64_t>(counts[0].estimate() * (1 + 3 * Distinct::kError)) + 100;
}

// Every line meets the rate of the lines before it, so the first lines are safe and the last one meets the highest
// rate. If the last one meets the rate that this returns, the share `mean` of `keys` new lines is dropped. At 1e-6 it
// is some twelve times `mean`, which saves an eighth of the memory.
double last_rate(std::uint64_t keys, double mean) {
  double last = mean;
  for (int step = 0; step < 3; ++step) {
    const RowShape shape = RowShape::for_keys({.keys = keys, .fpr = last});
    constexpr int kPoints = 64;
    double sum = 0;
    for (int i = 0; i < kPoints; ++i) sum += shape.fpr((i + 0.5) / kPoints * static_cast<double>(keys)) / kPoints;
    last = std::clamp(last * mean / sum, mean, 0.5);
  }
  return last;
}

std::unique_ptr<Memory> memory_for(const Options& options, const KeyedHash& hasher, Keys& keys) {
  if (options.window != 0 || options.milliseconds != 0) {
    const bool by_time = options.milliseconds != 0;
    const std::uint64_t expected = !by_time                     ? options.window
                                   : options.keys_expected != 0 ? options.keys_expected
                                                                : 1'000'000;
    const Request request{.keys = expected, .fpr = options.fpr};
    const WindowShape shape =
        by_time ? WindowShape::for_ticks(options.milliseconds, request) : WindowShape::for_keys(request);
    check_memory(shape.bytes(), fmt::format("a window of {} lines", grouped(expected)));
    const double seconds = static_cast<double>(options.milliseconds) / 1e3;
    return std::make_unique<Recent>(shape,
                                    by_time ? fmt::format("the last {}", seconds_text(seconds))
                                            : fmt::format("the last {} lines", grouped(expected)),
                                    hasher);
  }
  // If the estimate can be trusted, the first link may have nearly all of the rate.
  Growth growth{.fpr = options.fpr, .spread = 1.0 / 32};
  if (options.keys_expected != 0) {
    growth.first = options.keys_expected;
  } else if (keys.all_mapped()) {
    growth.first = estimate_distinct(options, keys);
    growth.fpr = last_rate(growth.first, options.fpr);
  } else {
    growth = {.fpr = options.fpr, .factor = 1.5, .first = 1'000'000};
  }
  const std::uint64_t bytes = RowShape::for_keys({.keys = growth.first, .fpr = growth.share(0)}).bytes();
  check_memory(bytes, fmt::format("a filter of {} lines", grouped(growth.first)), "; --window N bounds it");
  return std::make_unique<Everything>(growth, hasher);
}

struct Count {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  double wrong = 0;  // expected number of false drops
  double share() const noexcept { return out == 0 ? 0 : wrong / static_cast<double>(out); }
};

void report(const Options& options, const Memory& memory, const Count& count, double seconds) {
  const std::uint64_t dropped = count.in - count.out;
  if (options.json) {
    Json json;
    json.add("lines", count.in).add("out", count.out).add("dropped", dropped).add("expected_wrong", count.wrong);
    json.add("fpr", count.share()).add("fpr_wanted", options.fpr).add("remembers", memory.text());
    json.add("bytes", memory.bytes()).add("seconds", seconds);
    const std::string text = json.text() + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  say("", fmt::format("{} lines read, {} written, {} dropped as {} (expected false drops: {}){}", grouped(count.in),
                      grouped(count.out), grouped(dropped), dropped == 1 ? "a duplicate" : "duplicates",
                      count.wrong < 1e-6 ? "fewer than 1 in a million" : expected(count.wrong),
                      options.suspects.empty() ? "" : fmt::format("; they are in {}", options.suspects)));
  say("",
      fmt::format("remembered {} in {}; {}, {} lines/s", memory.text(), bytes_text(static_cast<double>(memory.bytes())),
                  seconds_text(seconds), rate_text(static_cast<double>(count.in) / std::max(seconds, 1e-9))));
}

// The options that a way of remembering does not have.
void check_way(const Options& options, const CLI::App& app) {
  const auto refuse = [&](const char* way, std::initializer_list<const char*> others) {
    for (const char* const other : others) {
      if (app.count(other) != 0) fail("{} excludes {}", way, other);
    }
  };
  if (options.exact) refuse("--exact", {"--seen", "--ngrams", "--window", "--for", "--fpr", "--keyed"});
  if (!options.seen.empty()) refuse("--seen", {"--ngrams", "--for"});
  if (options.ngrams != 0) refuse("--ngrams", {"--window", "--for", "--keyed"});
  if (options.seen.empty()) {
    if (app.count("--save-every") != 0) fail("--save-every: nothing is saved without --seen");
    if (app.count("--keyed") != 0) fail("--keyed: only --seen keeps a file");
  }
  if (options.ngrams == 0 && app.count("--threshold") != 0) fail("--threshold: needs --ngrams");
}

int run(Options& options) {
  options.keys.for_filter = !options.seen.empty();  // no other command reads what the others remember
  if (options.exact) return dedup_exact(options);
  if (!options.seen.empty()) return dedup_seen(options);
  if (options.ngrams != 0) return dedup_corpus(options);
  const auto begin = std::chrono::steady_clock::now();
  if (options.window != 0 && options.keys_expected != 0)
    fail("--keys-expected: --window {} already says how many lines to remember", options.window);
  read_stdin_if_none(options.keys);
  options.keys.frugal = true;
  SideFile suspects("--suspects", options.suspects, options.keys);
  Keys keys(options.keys);
  const KeyedHash hasher(KeyedHash::new_secret());
  const auto memory = memory_for(options, hasher, keys);
  keys.unmap();
  suspects.begin();

  Count count;
  Wrong wrong(*memory);
  DedupWriter writer(options.keys, suspects);
  std::array<Digest<KeyedHash>, Parser::kColumn> digests;
  std::array<std::uint64_t, Parser::kColumn / 64> seen;
  const auto end = [&] {
    writer.flush();
    count.in = writer.read();
    count.out = writer.written();
    count.wrong = wrong.expected();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (!options.quiet || options.json) report(options, *memory, count, seconds.count());
  };
  try {
    Progress progress("reading", keys.stored_bytes(), is_terminal(STDOUT_FILENO));
    keys.for_each(
        progress,
        [&](const Batch& batch, const Source* source) {
          const std::size_t size = batch.keys.size();
          const std::uint64_t before = writer.written();
          digest_column(hasher, options.keys.as, batch.keys, digests);
          memory->check(Column(digests.data(), size), seen);
          writer.write(batch, source, seen);
          wrong.see(writer.written() - before);
          return true;
        },
        [&] { writer.block_done(); });
  } catch (const Interrupted&) {  // the usual end of an endless stream
    end();
    throw;
  }
  end();
  if (count.share() > 2 * options.fpr) {
    const std::string reason = options.milliseconds != 0 ? "more lines came than were expected (--keys-expected)"
                                                         : fmt::format("--fpr {} is out of reach", plain(options.fpr));
    warn(fmt::format("{}: {} of the new lines are dropped instead of {}", reason, percent(count.share()),
                     percent(options.fpr)));
  }
  return kYes;
}

}  // namespace
}  // namespace dedup

Command::Run dedup_command(CLI::App& app) {
  auto options = std::make_shared<dedup::Options>();
  declare_record_files(app, options->keys);
  auto* window = add_count(app, "--window", options->window, "N", "Remember the last N lines only, in fixed memory");
  app.add_option_function<std::string>(
         "--for", [o = options.get()](const std::string& text) { o->milliseconds = parse_duration("--for", text); },
         "Remember lines for this long, counted from their arrival: 500ms, 90s, 10m, 2h, 7d")
      ->type_name("TIME")
      ->excludes(window);
  add_rate(app, options->fpr, "The share of new lines that may be dropped by mistake; default: 1e-6");
  add_count(app, "--keys-expected", options->keys_expected, "N",
            "Make room for N distinct lines (with --for: in that time; default: 1M). Files are then read once");
  app.add_option("--suspects", options->suspects, "Write every line that is dropped to this file, for an exact check")
      ->type_name("FILE");
  app.add_flag("--exact", options->exact,
               "Lose no line: suspects are compared with the lines themselves, in the file or in a temporary one "
               "(TMPDIR). 10 bytes per distinct line");
  app.add_option("--seen", options->seen,
                 "What was seen is in this filter file, made if it is missing, and is saved at the end: the next run "
                 "goes on from there. With --window the file is made to remember the last N lines")
      ->type_name("FILE");
  add_count(app, "--save-every", options->save_every, "N",
            "With --seen: save after every N lines, too; if the program is killed, only those since are written again; "
            "default: 1M");
  add_count(app, "--ngrams", options->ngrams, "N",
            "Keys are documents: drop those most of whose runs of N words were seen (--json-lines --field text)");
  app.add_option_function<std::string>(
         "--threshold",
         [o = options.get()](const std::string& text) {
           const auto parsed = parse_share(text);
           if (!parsed || !(*parsed > 0 && *parsed <= 1)) fail("--threshold {}: must be above 0 and at most 1", text);
           o->threshold = *parsed;
         },
         "With --ngrams: the share that must have been seen; default: 0.8")
      ->type_name("P");
  declare_keyed(app, options->keyed);
  app.add_flag("-q,--quiet", options->quiet, "No report on standard error");
  declare_json(app, options->json);
  declare_threads(app, options->threads);
  declare_key_format(app, options->keys);
  declare_recipe(app, options->keys);
  return [options, &app] {
    dedup::check_way(*options, app);
    return dedup::run(*options);
  };
}

}  // namespace perhaps::cli
