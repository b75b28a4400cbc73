// perhaps exact: a set that is right for every key of a known universe, and updates of it.
//
//   build   members, then the universe: files are counted and read once more, and nothing of them is kept but what
//           passes the filter; what cannot be read twice is kept, past --memory in a temporary file
//   diff    the keys of the universe for which two sets differ are a set themselves: the update
//   apply   the old set and the update, one above the other
#include <chrono>
#include <cmath>

#include "command.h"
#include "exact_keys.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "perhaps/file/exact_file.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace exact {
namespace {

constexpr std::string_view kUpdateOf = "update-of";      // fingerprint of the set that an update is for
constexpr std::string_view kUpdateKeys = "update-keys";  // members afterwards

struct Options {
  std::string action;
  std::vector<std::string> files;
  std::string output;
  std::vector<std::string> members;
  std::vector<std::string> universe;
  std::uint32_t partition = 0;
  std::string partition_delimiter;
  std::uint32_t threads = 0;
  std::uint64_t memory = 0;
  std::string seed;
  Keyed keyed;
  KeyOptions keys;
  std::string note;
  bool allow_empty = false;
  bool json = false;
};

ExactParts parts_of(const Options& options) {
  ExactParts parts{.field = options.partition};
  if (options.partition == 0) return parts;
  if (options.keys.as == KeysAs::u64) fail("--partition: numbers have no fields");
  const std::string& text = options.partition_delimiter;
  if (text.empty()) return parts;
  if (text.size() != 1) fail("--partition-delimiter {}: one character is needed", text);
  parts.delimiter = text[0];
  return parts;
}

BuildOptions build_options(const Options& options) {
  BuildOptions result;
  result.threads = options.threads;
  result.memory = options.memory;
  return result;
}

// Calls use(keys) for all keys, from several threads where the input can be shared out; returns how many there were.
template <class Use>
std::uint64_t read_all(const Options& options, Keys& keys, const char* label, Use use) {
  Progress progress(label, keys.stored_bytes());
  std::atomic<std::uint64_t> count{0};
  const auto use_batch = [&](const Batch& batch) {
    count.fetch_add(batch.keys.size(), std::memory_order_relaxed);
    with_typed(options.keys.as, batch.keys, use);
  };
  if (keys.all_mapped()) {
    keys.for_each_parallel(options.threads, progress, [&](unsigned, const Batch& batch) { use_batch(batch); });
  } else {
    keys.for_each(progress, [&](const Batch& batch, const Source*) {
      use_batch(batch);
      return true;
    });
  }
  return count;
}

struct Report {
  std::uint64_t members = 0;
  std::uint64_t universe = 0;
  ExactFigures figures;
};

void print_report(const Options& options, const Report& report, double seconds) {
  const ExactFigures& f = report.figures;
  const double bits = 8 * static_cast<double>(f.bytes);
  const double per_member = f.members == 0 ? 0 : bits / static_cast<double>(f.members);
  const double times = f.limit_bits > 0 ? bits / f.limit_bits : 0;  // 0: one of the sides is empty
  Out out;
  if (options.json) {
    Json json;
    json.add("file", options.output).add("family", "exact").add("members", f.members).add("universe", f.universe);
    json.add("members_read", report.members).add("universe_read", report.universe).add("bytes", f.bytes);
    json.add("bits_per_member", per_member)
        .raw("times_limit", times > 0 ? fmt::format("{}", times) : "null")
        .add("parts", f.parts)
        .add("seconds", seconds);
    out.write(json.text() + "\n");
    return;
  }
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<9}  {}\n", label, text));
  };
  out.write(bold(options.output) + "\n");
  row("members", fmt::format("{} of a universe of {}", grouped(f.members), grouped(f.universe)));
  row("size", fmt::format("{} bytes, {:.2f} bits per member{}", grouped(f.bytes), per_member,
                          times > 0 ? fmt::format(", {:.3f} times the least possible", times) : ""));
  if (f.parts != 0) row("parts", fmt::format("{} with a density of their own", grouped(f.parts)));
  row("answers", "in or out, right for every key of the universe; any other answer means nothing");
  row("time", seconds_text(seconds));
}

template <Hasher H>
void build_with(const Options& options, const H& hasher) {
  const auto begin = std::chrono::steady_clock::now();
  const KeyOptions member_options = keys_in(options.keys, options.members);
  KeyOptions universe_options = keys_in(options.keys, options.universe);
  universe_options.frugal = options.memory != 0;
  Keys members(member_options);
  Keys universe(universe_options);
  const ExactRequest request{.parts = parts_of(options)};
  const bool twice = members.all_mapped() && universe.all_mapped();
  std::uint64_t expected = twice ? universe.count(options.threads) : 0;
  Report report;
  std::optional<BasicExact<H>> set;
  for (bool again = false;; again = true) {
    BasicExactBuilder<H> builder(request, build_options(options), hasher);
    report.members = read_all(options, members, "members", [&](auto keys) { builder.add_members(keys); });
    if (twice) {
      if (request.parts) read_all(options, universe, "counting", [&](auto keys) { builder.count(keys); });
      builder.begin(expected);
    }
    report.universe = read_all(options, universe, "universe", [&](auto keys) {
      if (!builder.add(keys)) check_interrupt();
    });
    const char* const other = "and the set would have the same answer for every key (--allow-empty makes one)";
    if (report.members == 0 && !options.allow_empty) fail("no members came from {}, {}", members.names(), other);
    if (report.universe == 0 && !options.allow_empty) fail("no keys came from {}, {}", universe.names(), other);
    set.emplace(take(builder.finish()));
    // Keys repeat: fewer columns are enough.
    if (again || !twice || builder.advice() == 0) break;
    expected = builder.advice();
  }
  check_interrupt();
  report.figures = set->figures();
  const Record record{.keys = report.figures.members,
                      .capacity = report.figures.members,
                      .about = about_new(options.keys, options.note)};
  {
    const Saving saving;
    take(save(options.output, *set, record));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print_report(options, report, seconds.count());
}

int build(Options& options) {
  if (!options.files.empty()) fail("{}: build takes --members and --universe", options.files[0]);
  if (options.members.empty() || options.universe.empty()) fail("build needs --members and --universe");
  check_output(options.output);
  check_not_an_input(options.output, options.members);
  check_not_an_input(options.output, options.universe);
  check_stdin_once(options.members, std::count(options.universe.begin(), options.universe.end(), "-"));
  check_key_format(options.keys);
  std::visit([&](const auto& hasher) { build_with(options, hasher); }, hasher_of(options.keyed, options.seed));
  return kYes;
}

// A file that must be an exact set.
File open_exact(const std::string& path, const Options& options) {
  auto file = File::open(path, {.secret = options.keyed.read()});
  if (!file) {
    throw Failure(file.error().detail +
                  (file.error().code == Errc::bad_key && options.keyed.path.empty() ? " (--keyed)" : ""));
  }
  if (file->header().kind != Kind::exact) {
    fail("{}: holds a {} filter, not an exact set", path, name_of(file->header().kind));
  }
  return *std::move(file);
}

// Tells sets apart: of the numbers and of all tables.
std::string fingerprint_of(const File& file) {
  std::uint64_t sum = 0;
  for (const std::uint64_t number : file.header().params) sum = digest_of(Hash(sum), number).value;
  for (const auto& section : file.header().sections) sum = digest_of(Hash(sum), section.bytes).value;
  return fmt::format("{:016x}", sum);
}

// Keys of both must be asked for in one way.
void check_recipes(const Options& options, const File& a, const File& b) {
  const auto ours = recipe_of(a.header().record, options.files[0]);
  const auto theirs = recipe_of(b.header().record, options.files[1]);
  if (!ours || !theirs || ours->same_key(*theirs)) return;
  fail("{} and {}: their keys were made by the recipes '{}' and '{}'", options.files[0], options.files[1], ours->text(),
       theirs->text());
}

struct Change {
  std::uint64_t changed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t whole = 0;
};

void print_change(const Options& options, const Change& change, bool written) {
  Out out;
  if (options.json) {
    Json json;
    json.add("file", options.output).add("changed", change.changed).add("bytes", change.bytes);
    json.add("whole_bytes", change.whole).add("written", written);
    out.write(json.text() + "\n");
  } else if (written) {
    out.write(fmt::format("{}: {} answers change, {} bytes instead of {}\n", options.output, grouped(change.changed),
                          grouped(change.bytes), grouped(change.whole)));
  }
}

template <Hasher H>
int diff_with(const Options& options, const File& old_file, const File& new_file) {
  const auto before = take(exact_in<H>(old_file));
  const auto after = take(exact_in<H>(new_file));
  if (!(before.hasher() == after.hasher())) {
    fail("{} and {} were built with different seeds or keys", options.files[0], options.files[1]);
  }
  const KeyOptions universe_options = keys_in(options.keys, options.universe);
  Keys universe(universe_options);
  if (!universe.all_mapped()) fail("{}: diff reads the universe twice: name files", universe.names());
  BasicExactBuilder<H> builder({}, build_options(options), before.hasher());
  std::atomic<std::uint64_t> changed{0};
  const std::uint64_t count = read_all(options, universe, "comparing", [&]<class K>(std::span<const K> keys) {
    std::array<std::uint64_t, Parser::kColumn / 64> was;
    std::array<std::uint64_t, Parser::kColumn / 64> is;
    before.contains(keys, was);
    after.contains(keys, is);
    std::vector<K> different;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (((was[i / 64] ^ is[i / 64]) >> (i % 64) & 1) != 0) different.push_back(keys[i]);
    }
    changed += different.size();
    builder.add_members(std::span<const K>(different));
  });
  if (count == 0) fail("no keys came from {}", universe.names());
  builder.begin(count);
  read_all(options, universe, "building", [&](auto keys) { builder.add(keys); });
  const auto update = take(builder.finish());
  const Change change{.changed = update.figures().members, .bytes = update.byte_size(), .whole = after.byte_size()};
  if (change.bytes >= change.whole) {
    print_change(options, change, false);
    say("", fmt::format("{}: not written: {} answers change, so the update would have {} bytes and the whole set has "
                        "{}: send {} instead",
                        options.output, grouped(change.changed), grouped(change.bytes), grouped(change.whole),
                        options.files[1]));
    return kNo;
  }
  Record record{.keys = change.changed, .capacity = change.changed, .about = about_new(options.keys, options.note)};
  record.about.emplace_back(kUpdateOf, fingerprint_of(old_file));
  record.about.emplace_back(kUpdateKeys, fmt::format("{}", new_file.header().record.keys));
  {
    const Saving saving;
    take(save(options.output, update, record));
  }
  print_change(options, change, true);
  return kYes;
}

int diff(Options& options) {
  if (options.files.size() != 2) fail("diff takes two files: perhaps exact diff OLD NEW --universe FILE -o UPDATE");
  if (options.universe.empty()) fail("diff needs --universe: the files do not hold the keys that they differ in");
  check_output(options.output);
  const File old_file = open_exact(options.files[0], options);
  const File new_file = open_exact(options.files[1], options);
  check_recipes(options, old_file, new_file);
  check_not_an_input(options.output, options.universe);
  options.keys.adopt(recipe_of(new_file.header().record, options.files[1]), options.files[1]);
  check_key_format(options.keys);
  return std::visit([&]<class H>(const H&) { return diff_with<H>(options, old_file, new_file); }, new_file.hasher());
}

template <Hasher H>
int apply_with(const Options& options, const File& old_file, const File& update_file) {
  const auto before = take(exact_in<H>(old_file));
  const auto update = take(exact_in<H>(update_file));
  const auto after = take(before.updated(update));
  const Record& said = update_file.header().record;
  const auto keys = parse_u64(said.find(kUpdateKeys) == nullptr ? "" : *said.find(kUpdateKeys));
  if (!keys) fail("{}: does not say how many members there are afterwards", options.files[1]);
  Record record = old_file.header().record;
  record.keys = record.capacity = *keys;
  {
    const Saving saving;
    take(save(options.output, after, record));
  }
  print_change(options, {.changed = said.keys, .bytes = update.byte_size(), .whole = after.byte_size()}, true);
  return kYes;
}

int apply(Options& options) {
  if (options.files.size() != 2) fail("apply takes two files: perhaps exact apply OLD UPDATE -o NEW");
  check_output(options.output);
  const File old_file = open_exact(options.files[0], options);
  const File update_file = open_exact(options.files[1], options);
  const std::string* const wanted = update_file.header().record.find(kUpdateOf);
  if (wanted == nullptr) fail("{}: is a set, not an update (perhaps exact diff makes one)", options.files[1]);
  if (*wanted != fingerprint_of(old_file)) {
    fail("{}: is an update of another set than {}", options.files[1], options.files[0]);
  }
  check_recipes(options, old_file, update_file);
  return std::visit([&]<class H>(const H&) { return apply_with<H>(options, old_file, update_file); },
                    old_file.hasher());
}

int run(Options& options) {
  if (options.action == "build") return build(options);
  return options.action == "diff" ? diff(options) : apply(options);
}

}  // namespace
}  // namespace exact

Command::Run exact_command(CLI::App& app) {
  auto options = std::make_shared<exact::Options>();
  add_words(app, "action", options->action, {"build", "diff", "apply"},
            "build: a set from its members and the universe. diff: the update from one set to another. apply: the old "
            "set, updated")
      ->required();
  app.add_option("files", options->files, "diff: OLD NEW. apply: OLD UPDATE")->type_name("FILE");
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  app.add_option("--members", options->members, "Keys that are in the set; - is standard input; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--universe", options->universe,
                 "All keys that will ever be asked about; members may be among them or not; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto* const partition = add_count(app, "--partition", options->partition, "N",
                                    "Keys differ in density by field N of the key, counted from 1: each value of it "
                                    "is stored at its own density. Fields of a key are separated by tabs, as --field "
                                    "1,3 joins them");
  app.add_option("--partition-delimiter", options->partition_delimiter, "What separates the fields of a key instead")
      ->type_name("C")
      ->needs(partition);
  declare_threads(app, options->threads);
  add_count(app, "--memory", options->memory, "BYTES",
            "Keep at most BYTES of what cannot be read twice in memory, the rest in a temporary file (TMPDIR)");
  app.add_flag("--allow-empty", options->allow_empty,
               "Write a set even if there are no members or no universe; without it that is an error");
  app.add_option("--seed", options->seed, "Seed of the hash; default: one of our own")->type_name("S");
  declare_keyed(app, options->keyed);
  declare_note(app, options->note);
  declare_json(app, options->json);
  declare_key_format(app, options->keys);
  return [options] { return exact::run(*options); };
}

}  // namespace perhaps::cli
