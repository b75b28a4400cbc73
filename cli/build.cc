// perhaps build: keys -> a filter file.
//
//   files        mapped; counted in parallel, then parsed, hashed and inserted in parallel: no memory but the filter
//   pipes, .gz   cannot be read twice: the digests are kept, 8 bytes per key, and inserted once their number is known;
//                with --keys-expected or --max-bytes the size is known beforehand, and nothing is kept
//   --on-disk    the bits are set in the new file itself, mapped, for filters that do not fit into memory
//
// Families that need the whole set first (any_filter.h) always keep the digests; fuse and ribbon keep those beyond
// --memory in a temporary file.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include "build_format.h"
#include "build_keys.h"
#include "build_target.h"
#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "perhaps/file/shards.h"
#include "print.h"
#include "ranges.h"

namespace perhaps::cli {
namespace build {
namespace {

constexpr std::string_view kSmallest = "smallest";  // of all families: the ribbon

// Warns if the guard bits wanted are out of reach.
void warn_if_missed(const BuildArgs& options, const Description& d) {
  if (!options.sizing.by_fpr()) return;
  const double wrong = std::ldexp(options.sizing.fpr, -static_cast<int>(options.guard_bits));
  if (options.guard_bits != 0 && d.wrong_erase.value_or(0) > 1.01 * wrong) {
    warn(
        fmt::format("--guard-bits {} are out of reach: one in {} keys that were never added removes another key, "
                    "instead of one in {}",
                    options.guard_bits, grouped(1 / *d.wrong_erase), grouped(1 / wrong)));
  }
}

// Of a range filter: the bound is proportional to the numbers in a range.
double range_fpr(const BuildArgs& options, const Description& d) {
  return std::min(1.0, d.fpr * static_cast<double>(options.range_size));
}

void report(const BuildArgs& options, const Keys& keys, const Built& built, const Description& d, double seconds) {
  const auto count = static_cast<double>(built.record.keys);
  const double bits_per_key = count == 0 ? 0 : static_cast<double>(d.bits) / count;
  if (options.json) {
    Json json;
    json.add("file", options.output).add("family", d.family).add("hash", d.hash).add("keys", built.record.keys);
    json.add("keys_distinct", d.keys_estimated).add("bits", d.bits).add("bytes", d.bytes).add("probes", d.probes);
    json.add("bits_per_key", count == 0 ? std::optional<double>() : bits_per_key).add("fill", d.fill).add("fpr", d.fpr);
    json.add("capacity", built.record.capacity)
        .add("fpr_at_capacity", d.fpr_at_capacity)
        .add("threads", built.threads)
        .add("seconds", seconds);
    if (options.range_size != 0) json.add("range_size", options.range_size).add("range_fpr", range_fpr(options, d));
    json.add("keys_per_second", seconds > 0 ? count / seconds : 0);
    Out().write(json.text() + "\n");
    return;
  }
  Out out;
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<9}  {}\n", label, text));
  };
  out.write(bold(options.output) + "\n");
  const ShardChoice shard = options.keys.shard;
  row("keys", fmt::format("{}, about {} distinct{}, from {}{}", grouped(built.record.keys), grouped(d.keys_estimated),
                          built.repeats ? ", for which it is sized" : "", keys.names(),
                          shard.count == 0 ? "" : fmt::format(", shard {} of {}", shard.index, shard.count)));
  const std::string probes = d.probes == 0 ? "" : fmt::format(", {} probe{}", d.probes, d.probes == 1 ? "" : "s");
  row("filter", fmt::format("{}{}, {}", d.family, probes, d.hash));
  row("size", fmt::format("{} bytes{}", grouped(d.bytes),
                          count == 0 ? "" : fmt::format(", {:.2f} bits per key", bits_per_key)));
  if (options.range_size != 0) {
    row("fpr",
        fmt::format("{} at most, of empty ranges of {}", percent(range_fpr(options, d)), grouped(options.range_size)));
  } else {
    row("fpr", fmt::format("{} predicted", percent(d.fpr)));
  }
  row("time", fmt::format("{}, {} keys/s, {} thread{}", seconds_text(seconds),
                          rate_text(count / std::max(seconds, 1e-9)), built.threads, built.threads == 1 ? "" : "s"));
}

// The general options that were given, for formats that have their own names for them.
std::vector<Wish> wishes_of(const BuildArgs& options, const CLI::App& app) {
  using Means = format::Param::Means;
  std::vector<Wish> wishes;
  const auto wish = [&](Means means, std::string value) {
    const std::string_view option = option_for(means);
    if (app.count(std::string(option)) != 0) wishes.push_back({means, option, std::move(value)});
  };
  wish(Means::fpr, fmt::format("{}", options.sizing.fpr));
  wish(Means::bits_per_key, fmt::format("{}", options.sizing.bits_per_key));
  wish(Means::keys, fmt::format("{}", options.keys_expected));
  return wishes;
}

// "3/64"
ShardChoice parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_u64(text.substr(0, slash));
  const std::uint64_t count = slash == std::string::npos ? 0 : parse_u64(text.substr(slash + 1)).value_or(0);
  if (!index || count == 0 || count > kMaxShards || *index >= count)
    fail("--shard {}: must be i/N, i from 0 to N-1, N at most {}", text, kMaxShards);
  return {.index = *index, .count = count};
}

// The union of the filters of all shards must equal the filter of all keys.
void check_shard(const BuildArgs& options, const Keys& keys, bool size_is_known) {
  if (!options.about->merges || options.about->in_order) {
    fail("--shard: {} filters cannot be merged into the filter of all keys", options.family);
  }
  if (!keys.all_mapped() && !size_is_known)
    fail("--shard: from a pipe it needs --keys-expected, of all shards together");
}

void fail_if_empty(const BuildArgs& options, const Keys& keys, const Built& built) {
  if (built.record.keys == 0 && !options.allow_empty)
    fail("no keys came from {}, and a filter of none answers no to everything (--allow-empty makes one)", keys.names());
}

int run_range(BuildArgs& options, std::chrono::steady_clock::time_point begin) {
  const auto refuse = [](bool given, std::string_view option) {
    if (given) fail("{}: a range filter is built in memory, from all of its keys, without a secret", option);
  };
  refuse(options.on_disk, "--on-disk");
  refuse(options.guard_bits != 0, "--guard-bits");
  refuse(options.arity != 0, "--arity");
  refuse(options.memory != 0, "--memory");
  refuse(!options.keyed.path.empty(), "--keyed");
  refuse(options.keys.shard.count != 0, "--shard");
  if (options.keys.hash != KeyHash::none) fail("--hash: the order of keys is lost, and ranges with it");
  if (options.range_size == 0) options.range_size = RangeRequest{}.range_size;
  if (options.code_bits != 0 && options.keys.number()) fail("--code-bits: numbers have no code");
  if (options.code_bits == 0) options.code_bits = RangeRequest{}.code_bits;
  if (options.code_bits > 64) fail("--code-bits {}: must be a number from 1 to 64", options.code_bits);
  const AnyHasher hasher = hasher_of(options.keyed, options.seed);
  read_stdin_if_none(options.keys);
  check_not_an_input(options.output, options.keys.files);
  Keys keys(options.keys);
  Built built;
  const Description d = build_range(options, keys, std::get<Hash>(hasher).seed(), built);
  fail_if_empty(options, keys, built);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  report(options, keys, built, d, seconds.count());
  return kYes;
}

int run(BuildArgs& options, const std::vector<Wish>& wishes) {
  const auto begin = std::chrono::steady_clock::now();
  check_output(options.output);
  if (options.only) {
    if (*options.only >= options.shards) fail("--only {}: there are shards 0 to {}", *options.only, options.shards - 1);
    options.keys.shard = {.index = *options.only, .count = options.shards};
  }
  if (!options.format.format.empty()) {
    read_stdin_if_none(options.keys);
    check_not_an_input(options.output, options.keys.files);
    return build_format(
        {options.format, wishes, options.keys, options.output, options.shards, options.allow_empty, options.json});
  }
  if (options.family == name_of(Kind::range)) return run_range(options, begin);
  if (options.range_size != 0 || options.code_bits != 0)
    fail("--range-size and --code-bits: only a range filter answers ranges (--filter range)");
  if (options.family == kSmallest) options.family = name_of(Kind::ribbon);
  options.about = find_family(*kind_named(options.family));
  check_room(options.sizing, options.about->kind);
  if (options.on_disk && !options.about->sets_bits) fail("--on-disk: a {} filter is built in memory", options.family);
  if (options.guard_bits != 0 && !options.about->takes_guard)
    fail("--guard-bits: a {} filter {}", options.family, options.about->erases ? "has none" : "does not erase");
  if (options.guard_bits > GuardedRequest::kMaxGuardBits)
    fail("--guard-bits {}: must be a number from 1 to {}", options.guard_bits, GuardedRequest::kMaxGuardBits);
  if (options.memory != 0 && options.about->inserts) {
    fail("--memory: a {} filter is built in memory; {} can use a temporary file", options.family,
         families_text([](const Family& f) { return !f.inserts; }));
  }
  if (options.arity != 0 && !options.about->takes_arity) fail("--arity: a {} filter has none", options.family);
  const AnyHasher hasher = hasher_of(options.keyed, options.seed);
  read_stdin_if_none(options.keys);
  check_not_an_input(options.output, options.keys.files);
  Keys keys(options.keys);
  const bool size_is_known = options.keys_expected != 0 || options.sizing.max_bytes != 0;
  if (options.keys.shard.count != 0) {
    check_shard(options, keys, size_is_known);
    // Sized for the keys of all shards.
    if (!size_is_known) options.keys_expected = keys.count(threads_for(options, keys.stored_bytes() >> 20));
  }
  const Built built = build_from(options, keys, hasher, size_is_known);
  fail_if_empty(options, keys, built);
  if (options.about->sized_first && !options.about->in_order && options.keys_expected != 0 &&
      built.record.keys > options.keys_expected) {
    warn(fmt::format("{} keys came, {} were expected: the false-positive rate is higher than wanted",
                     grouped(built.record.keys), grouped(options.keys_expected)));
  }
  const Description d = built.filter->save(built.record);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  report(options, keys, built, d, seconds.count());
  warn_if_missed(options, d);
  return kYes;
}

}  // namespace
}  // namespace build

Command::Run build_command(CLI::App& app) {
  auto options = std::make_shared<BuildArgs>();
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  auto words = family_names();
  words.emplace_back(build::kSmallest);
  words.emplace_back(name_of(Kind::range));
  std::string meanings;
  for (const Family& family : families()) meanings += fmt::format("{}: {}. ", family.name, family.summary);
  meanings +=
      fmt::format("{} is another name for ribbon. range: is there any key from A to B? perhaps size compares them",
                  build::kSmallest);
  auto* const filter = add_words(app, "--filter", options->family, words, meanings);
  declare_sizing(app, options->sizing);
  add_count(
      app, "--keys-expected", options->keys_expected, "N",
      "Make room for N keys: nothing is counted or kept beforehand, and filters made for the same N can be merged");
  declare_threads(app, options->threads);
  add_count(app, "--guard-bits", options->guard_bits, "G",
            families_text([](const Family& f) { return f.takes_guard; }) +
                ": store G bits more of each key, 1 to 16, which only remove compares: a key that was never added then "
                "removes another one 2^G times less often");
  add_choice<std::uint32_t>(app, "--arity", options->arity, {{"3", 3}, {"4", 4}},
                            "fuse: slots per key; 4 is 5 % smaller and slower; default: 3");
  add_count(
      app, "--range-size", options->range_size, "L",
      "range: --fpr is of empty ranges of L numbers (or codes of text); default: 100. Half the size, half the rate");
  add_count(app, "--code-bits", options->code_bits, "B",
            "range, of text: tell 2^B strings apart, counted from the front, 1 to 64; default: 64. Fewer for long "
            "ranges, such as all keys with a prefix");
  add_count(app, "--memory", options->memory, "BYTES",
            families_text([](const Family& f) { return !f.inserts; }) +
                ": keep at most BYTES of digests in memory, the others in a temporary file (TMPDIR); default: 8 bytes "
                "per key, all in memory");
  app.add_flag("--on-disk", options->on_disk,
               "Fill the filter in its file instead of in memory; automatic above 80 % of memory");
  app.add_flag("--allow-empty", options->allow_empty,
               "Write a filter even if there are no keys; without it that is an error, and the old file stays");
  app.add_option("--seed", options->seed, "Seed of the hash; default: one of our own")->type_name("S");
  declare_keyed(app, options->keyed);
  declare_note(app, options->note);
  auto* const format = add_format_name(
      app, "--format", options->format.format,
      "Write the file that another system would write of these keys (perhaps formats lists them); --fpr, "
      "--bits-per-key and --keys-expected stand for the parameters of its own that mean the same");
  add_sets(app, "--set", options->format.sets, "A parameter of that format; may be repeated")->needs(format);
  auto* const shard =
      app.add_option_function<std::string>(
             "--shard", [options](const std::string& text) { options->keys.shard = build::parse_shard(text); },
             "Take only the keys of shard i of N, by a hash, into a filter that is sized for all of them (by counting, "
             "or by --keys-expected): merge of all N is the filter of all keys. For " +
                 families_text([](const Family& f) { return f.merges && !f.in_order; }) + " filters")
          ->type_name("I/N");
  shard->excludes(format);
  auto* const shards =
      add_count(app, "--shards", options->shards, "N",
                "With --format: a file of N filters, each of the keys of one shard, for a set that no single node has "
                "room for (perhaps push); --keys-expected is of all of them")
          ->needs(format);
  app.add_option("--only", options->only, "With --shards: only shard I; merge puts the files of all together")
      ->type_name("I")
      ->needs(shards);
  format->excludes(filter);
  for (const char* const own : {"--max-bytes", "--guard-bits", "--arity", "--range-size", "--code-bits", "--memory",
                                "--on-disk", "--seed", "--keyed", "--note"})
    format->excludes(app.get_option(own));
  declare_json(app, options->json);
  declare_keys(app, options->keys);
  return [options, &app] { return build::run(*options, build::wishes_of(*options, app)); };
}

}  // namespace perhaps::cli
