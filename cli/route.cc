// perhaps route: which of many sets may have a key? One index of all of them answers at once.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "keys.h"
#include "lock.h"
#include "options.h"
#include "perhaps/engine/set_index.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace route {
namespace {

enum class Action : std::uint8_t { ask, build, add, remove };

struct Options {
  std::string index;
  KeyOptions keys;  // what follows INDEX: keys to look up, or the sets to change
  OpenArgs open;
  bool build = false;
  bool add = false;
  bool remove = false;
  double fpr = 0.01;
  std::uint64_t keys_expected = 0;
  bool json = false;
};

Action action_of(const Options& options) {
  if (options.build + options.add + options.remove > 1) fail("--build, --add and --remove exclude each other");
  return options.build ? Action::build : options.add ? Action::add : options.remove ? Action::remove : Action::ask;
}

struct NamedKeys {
  std::string name;
  KeyOptions keys;
};
// "eu=eu.txt": the name of a set and the file of its keys.
std::vector<NamedKeys> sets_of(const Options& options) {
  std::vector<NamedKeys> sets;
  for (const std::string& text : options.keys.files) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) fail("{}: a set is given as NAME=FILE", text);
    NamedKeys set{text.substr(0, equals), options.keys};
    // Answers have a tab before the names, commas between them, and one key per line.
    if (std::ranges::any_of(set.name, [](unsigned char c) { return c == ',' || c < ' ' || c == 0x7f; })) {
      fail("{}: a name has no comma and no control character", Json::quoted(set.name));
    }
    set.keys.files = {text.substr(equals + 1)};
    set.keys.has_literals = false;
    sets.push_back(std::move(set));
  }
  if (sets.empty()) fail("no sets: give them as NAME=FILE");
  std::vector<std::string> files;
  for (const NamedKeys& set : sets) files.push_back(set.keys.files[0]);
  check_stdin_once(files);
  return sets;
}

std::vector<std::uint64_t> digests_of(const NamedKeys& set, const AnyHasher& hasher) {
  Keys keys(set.keys);
  std::vector<std::uint64_t> digests;
  Progress progress("reading " + set.name, keys.stored_bytes());
  keys.for_each(
      progress,
      [&](const Batch& batch, const Source*) {
        const std::size_t had = digests.size();
        digests.resize(had + batch.keys.size());
        digest_keys(hasher, set.keys.as, batch.keys, std::span(digests).subspan(had));
        return true;
      },
      [] {});
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

// Fills the columns of the sets, 64 sets in one pass over the matrix.
void add_sets(SetIndex& index, const std::vector<NamedKeys>& sets, std::vector<std::vector<std::uint64_t>> digests) {
  for (std::size_t from = 0; from < sets.size(); from += 64) {
    const std::size_t to = std::min(sets.size(), from + 64);
    std::vector<Bloom> filters;
    std::vector<SetIndex::Column> columns;
    filters.reserve(to - from);
    for (std::size_t i = from; i < to; ++i) {
      if (digests[i].empty()) digests[i] = digests_of(sets[i], index.hasher());
      // The bits depend on the digests alone.
      Bloom& filter = filters.emplace_back(index.shape().column);
      for (const std::uint64_t digest : digests[i]) filter.insert(Digest<Hash>::made_by(Hash(), digest));
      columns.push_back({sets[i].name, digests[i].size(), filter.bytes()});
      if (!digests[i].empty() && index.shape().column.fpr(static_cast<double>(digests[i].size())) > 0.5) {
        warn(fmt::format("{}: {} keys are too many for an index of this size", sets[i].name,
                         grouped(std::uint64_t{digests[i].size()})));
      }
      digests[i] = {};
    }
    take(index.add(columns));
  }
}

int report(const Options& options, const SetIndex& index) {
  std::uint64_t sets = 0;
  std::uint64_t keys = 0;
  for (const auto& set : index.sets()) {
    sets += !set.name.empty();
    keys += set.keys;
  }
  Out out;
  if (options.json) {
    Json json;
    json.add("file", options.index).add("sets", sets).add("keys", keys).add("bytes", index.byte_size());
    json.add("slots", index.shape().slots).add("probes", index.shape().column.probes);
    json.add("false_sets", index.false_sets());
    out.write(json.text() + "\n");
  } else {
    out.write(fmt::format("{}: {} set{}, {} keys, {}; a key of none is routed to {} of them\n", options.index,
                          grouped(sets), sets == 1 ? "" : "s", grouped(keys),
                          bytes_text(static_cast<double>(index.byte_size())), expected(index.false_sets())));
  }
  return kYes;
}

// An index has a column for each of at least 64 sets, all as long as the largest set needs.
void warn_if_costly(const Options& options, const SetIndex& index) {
  std::uint64_t sets = 0;
  double apart = 0;
  for (const auto& set : index.sets()) {
    if (set.name.empty()) continue;
    ++sets;
    apart += static_cast<double>(BloomShape::for_keys({.keys = set.keys, .fpr = options.fpr}).bytes());
  }
  const double times = static_cast<double>(index.byte_size()) / apart;
  if (times > 2 && index.byte_size() > 1'000'000) {
    warn(fmt::format(
        "{}: {:.0f} times the memory of {} filter{} of these sets: all {} columns of the index are as long as the "
        "largest set needs. It pays for many sets of similar size; for few, build one filter each",
        options.index, times, grouped(sets), sets == 1 ? "" : "s", grouped(index.shape().slots)));
  }
}

int build(const Options& options) {
  const std::vector<NamedKeys> sets = sets_of(options);
  check_output(options.index);
  const auto secret = options.open.keyed.read();
  const AnyHasher hasher = secret ? AnyHasher(*secret) : AnyHasher(Hash());
  // The largest set decides the size, so all are read before the first is inserted, unless it is known.
  std::uint64_t largest = options.keys_expected;
  std::vector<std::vector<std::uint64_t>> digests(sets.size());
  for (std::size_t i = 0; i < sets.size() && options.keys_expected == 0; ++i) {
    digests[i] = digests_of(sets[i], hasher);
    largest = std::max<std::uint64_t>(largest, digests[i].size());
  }
  SetIndex index(Request{.keys = std::max<std::uint64_t>(largest, 1), .fpr = options.fpr}, hasher);
  index.set_about(about_new(options.keys, ""));
  add_sets(index, sets, std::move(digests));
  {
    const Saving saving;
    take(index.save(options.index));
  }
  warn_if_costly(options, index);
  return report(options, index);
}

int change(Options& options, Action action) {
  check_replaceable(options.index);
  const FileLock lock(options.index);
  SetIndex index = [&] {
    const File file = take(File::open(options.index, {.secret = options.open.keyed.read()}));
    options.keys.adopt(recipe_of(file.header().record, options.index), options.index);
    return SetIndex(take(SetIndexView::over(file)));
  }();
  if (action == Action::add) {
    const auto sets = sets_of(options);
    add_sets(index, sets, std::vector<std::vector<std::uint64_t>>(sets.size()));
  } else {
    if (options.keys.files.empty()) fail("which sets? give their names");
    for (const std::string& name : options.keys.files) {
      if (!index.remove(name)) fail("{}: there is no set '{}'", options.index, name);
    }
  }
  {
    const Saving saving;
    take(index.save(options.index));
  }
  return report(options, index);
}

// Calls use(name) for the sets of an answer.
template <class Use>
void for_each_set(const SetIndexView& index, std::span<const std::uint64_t> words, Use use) {
  for (std::size_t word = 0; word < words.size(); ++word) {
    for (std::uint64_t rest = words[word]; rest != 0; rest &= rest - 1) {
      use(std::string_view(index.sets()[word * 64 + static_cast<std::size_t>(std::countr_zero(rest))].name));
    }
  }
}

void write_line(Out& out, const SetIndexView& index, Bytes record, std::span<const std::uint64_t> words) {
  out.write(record);
  char before = '\t';
  for_each_set(index, words, [&](std::string_view name) {
    out.write(std::exchange(before, ','));
    out.write(name);
  });
  out.write('\n');
}

void write_json(Out& out, const SetIndexView& index, Bytes record, std::span<const std::uint64_t> words) {
  std::vector<std::string> names;
  for_each_set(index, words, [&](std::string_view name) { names.push_back(Json::quoted(name)); });
  const std::string_view text(reinterpret_cast<const char*>(record.data()), record.size());
  out.write(Json().add("record", text).raw("sets", Json::array(names)).text() + "\n");
}

int look_up(Options& options) {
  const File file =
      take(File::open(options.index, {.verify = !options.open.no_verify, .secret = options.open.keyed.read()}));
  const SetIndexView index = take(SetIndexView::over(file));
  options.keys.adopt(recipe_of(file.header().record, options.index), options.index);
  read_stdin_if_none(options.keys);
  if (options.keys.as == KeysAs::len32 || options.keys.as == KeysAs::u64) {
    fail("--keys-as len32 and u64: a binary key has no line to put names behind");
  }
  Keys keys(options.keys);
  std::array<std::uint64_t, 64> digests;
  std::vector<std::uint64_t> answers(digests.size() * index.words());
  std::uint64_t routed = 0;
  Out out;
  const Source* current = nullptr;
  Progress progress("querying", keys.stored_bytes());
  keys.for_each(
      progress,
      [&](const Batch& batch, const Source* source) {
        current = source;
        for (std::size_t from = 0; from < batch.keys.size(); from += digests.size()) {
          const auto some = batch.keys.subspan(from, std::min(digests.size(), batch.keys.size() - from));
          digest_keys(index.hasher(), options.keys.as, some, digests);
          index.may_contain(std::span<const std::uint64_t>(digests.data(), some.size()), answers);
          for (std::size_t i = 0; i < some.size(); ++i) {
            const auto words = std::span(answers).subspan(i * index.words(), index.words());
            routed += std::ranges::any_of(words, [](std::uint64_t word) { return word != 0; });
            options.json ? write_json(out, index, batch.records[from + i], words)
                         : write_line(out, index, batch.records[from + i], words);
          }
        }
        return true;
      },
      [&] {
        if (current != nullptr && !current->mapped()) out.flush();
      });
  return routed != 0 ? kYes : kNo;
}

int run(Options& options) {
  switch (const Action action = action_of(options); action) {
    case Action::ask:
      return look_up(options);
    case Action::build:
      return build(options);
    case Action::add:
    case Action::remove:
      return change(options, action);
  }
  return kError;
}

}  // namespace
}  // namespace route

Command::Run route_command(CLI::App& app) {
  auto options = std::make_shared<route::Options>();
  app.add_option("index", options->index, "The index")->type_name("INDEX")->required();
  auto* const build = app.add_flag("--build", options->build, "Make the index, of sets given as NAME=FILE");
  auto* const add = app.add_flag("--add", options->add, "Add sets, given as NAME=FILE");
  auto* const remove = app.add_flag("--remove", options->remove, "Take out sets, given by their names");
  add_rate(app, options->fpr, "With --build: the false-positive rate of the largest set (0.01)")->needs(build);
  add_count(app, "--keys-expected", options->keys_expected, "N",
            "With --build: keys of the largest set to come; counted if not given")
      ->needs(build);
  declare_json(app, options->json);
  declare_open(app, options->open);
  declare_keys(app, options->keys);
  declare_recipe(app, options->keys);
  for (const char* asks : {"--key", "--no-verify"}) {
    app.get_option(asks)->excludes(build)->excludes(add)->excludes(remove);
  }
  return [options] { return route::run(*options); };
}

}  // namespace perhaps::cli
