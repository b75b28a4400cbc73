// perhaps map: a value for each key. `map build` reads keys and values, `map get` looks keys up.
//
// Values go into the builder as they come: numbers as they are, words as the order of their first appearance, which the
// file keeps (--text). A word is one of at most kMaxTexts.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>

#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "perhaps/any_map.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace mapping {
namespace {

constexpr std::size_t kMaxTexts = std::size_t{1} << 16;

struct Options {
  std::string action;
  std::vector<std::string> files;
  std::string output;
  std::string key_field;
  std::string value_field;
  std::uint32_t check_bits = 0;
  std::uint64_t memory = 0;
  std::uint32_t threads = 1;
  bool text = false;
  bool allow_empty = false;
  bool coded = false;
  bool json = false;
  std::string note;
  KeyOptions keys;
  OpenArgs open;
};

std::string_view text_of(Bytes bytes) noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The words of --text, numbered as they come.
class Texts {
 public:
  std::uint64_t number_of(std::string_view text) {
    const auto [at, is_new] = numbers_.try_emplace(std::string(text), numbers_.size());
    if (is_new) {
      if (numbers_.size() > kMaxTexts) fail("--text: more than {} different values", grouped(std::uint64_t{kMaxTexts}));
      all_.push_back(at->first);
    }
    return at->second;
  }
  const std::vector<std::string>& all() const noexcept { return all_; }

 private:
  std::unordered_map<std::string, std::uint64_t> numbers_;
  std::vector<std::string> all_;
};

std::uint64_t number_in(Bytes value, const Source& source, Bytes record) {
  const auto number = parse_u64(std::string(text_of(value)));
  if (!number) {
    fail("{}: the value '{}' is not a number of 64 bits; words need --text", source.place(record.data()),
         text_of(value));
  }
  return *number;
}

// The records whose key has this digest, for the message that two of them disagree.
std::string conflict_text(const Options& options, Keys& keys, const KeyOptions& values, const AnyHasher& hasher,
                          std::uint64_t digest) {
  std::vector<std::string> places;
  std::string key;
  Progress progress("looking for the key", keys.stored_bytes());
  std::array<std::uint64_t, Parser::kColumn> digests;
  keys.for_each_pair(progress, values, [&](const Batch& batch, const Batch& value, const Source& source, auto) {
    digest_keys(hasher, options.keys.as, batch.keys, digests);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      if (digests[i] != digest) continue;
      if (places.size() == 1 && places[0].ends_with(fmt::format("'{}'", text_of(value.keys[i])))) continue;
      if (places.size() < 2) {
        places.push_back(fmt::format("{} has '{}'", source.place(batch.records[i].data()), text_of(value.keys[i])));
      }
      key = text_of(batch.keys[i]);
    }
  });
  return fmt::format("the key '{}' has two values: {}", key, fmt::join(places, ", "));
}

// The report about a map that was built.
struct Summary {
  std::string_view family;
  std::string_view hash;
  std::uint64_t records;
  std::uint64_t distinct;
  std::uint64_t bytes;
  std::uint32_t value_bits;
  std::uint64_t texts;
};

int report(const Options& options, const Keys& keys, const Summary& s) {
  const double per_key = static_cast<double>(s.bytes * 8) / static_cast<double>(std::max<std::uint64_t>(s.distinct, 1));
  Out out;
  if (options.json) {
    Json json;
    json.add("file", options.output).add("family", s.family).add("hash", s.hash).add("keys", s.records);
    json.add("bytes", s.bytes).add("bits_per_key", s.distinct == 0 ? std::nullopt : std::optional(per_key));
    json.add("value_bits", s.value_bits).add("check_bits", options.check_bits);
    out.write(json.add("texts", s.texts).text() + "\n");
    return kYes;
  }
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<6}  {}\n", label, text));
  };
  out.write(bold(options.output) + "\n");
  row("keys", fmt::format("{}, {} distinct, from {}", grouped(s.records), grouped(s.distinct), keys.names()));
  row("values", options.text ? fmt::format("{} different words", grouped(s.texts))
                             : fmt::format("numbers of up to {} bit{}", s.value_bits, s.value_bits == 1 ? "" : "s"));
  row("size", fmt::format("{} bytes, {:.2f} bits per key", grouped(s.bytes), per_key));
  row("absent", options.check_bits == 0
                    ? "get some value (--check B finds them only once in 2^B times)"
                    : fmt::format("1 in {} is found all the same", grouped(std::uint64_t{1} << options.check_bits)));
  return kYes;
}

template <Hasher H>
int build_with(Options& options, const H& hasher) {
  KeyOptions values = options.keys;
  values.part = Part::value;
  values.lower = values.hex = false;
  values.hash = KeyHash::none;
  options.keys.part = Part::key;
  options.keys.has_literals = false;
  Keys keys(options.keys);
  const BuildOptions how{.threads = options.threads, .memory = options.memory};
  BasicRibbonMapBuilder<H> builder({.value_bits = 0, .check_bits = options.check_bits}, how, hasher);
  std::vector<Digest<H>> all_digests;  // of --coded
  std::vector<std::uint64_t> all_values;
  Texts texts;
  std::uint64_t records = 0;
  std::uint64_t bits = 1;
  {
    auto lane = builder.lane();
    Progress progress("building", keys.stored_bytes());
    std::array<std::uint64_t, Parser::kColumn> digests;
    std::array<std::uint64_t, Parser::kColumn> numbers;
    std::array<Digest<H>, Parser::kColumn> typed;
    keys.for_each_pair(progress, values, [&](const Batch& batch, const Batch& value, const Source& source, auto) {
      const std::size_t count = batch.keys.size();
      digest_keys(hasher, options.keys.as, batch.keys, digests);
      for (std::size_t i = 0; i < count; ++i) {
        typed[i] = Digest<H>::made_by(hasher, digests[i]);
        numbers[i] =
            options.text ? texts.number_of(text_of(value.keys[i])) : number_in(value.keys[i], source, batch.records[i]);
        bits |= numbers[i];
      }
      if (options.coded) {
        all_digests.insert(all_digests.end(), typed.begin(), typed.begin() + static_cast<std::ptrdiff_t>(count));
        all_values.insert(all_values.end(), numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count));
      } else {
        lane.insert(std::span<const Digest<H>>(typed.data(), count),
                    std::span<const std::uint64_t>(numbers.data(), count));
      }
      records += count;
    });
  }
  if (records == 0 && !options.allow_empty)
    fail("no keys came from {}, and a map of none finds nothing (--allow-empty makes one)", keys.names());
  Recipe recipe = options.keys;
  if (!recipe.fields.empty()) recipe.fields.pop_back();
  const Record record{.keys = records, .capacity = 0, .about = about_new(recipe, options.note)};
  const auto finish = [&](auto map, const std::optional<Digest<H>>& conflict, std::string_view family) {
    if (!map && conflict && keys.all_mapped()) {
      fail("{}", conflict_text(options, keys, values, hasher, conflict->value));
    }
    if (!map) fail("{}", map.error().detail);
    {
      const Saving saving;
      take(save(options.output, *map, record, texts.all()));
    }
    return report(options, keys,
                  {family, H::name, records, map->keys(), map->byte_size(),
                   static_cast<std::uint32_t>(std::bit_width(bits)), texts.all().size()});
  };
  if (options.coded) {
    std::optional<Digest<H>> conflict;
    auto map = BasicCodedMap<H>::build(std::span<const Digest<H>>(all_digests), all_values, options.check_bits, how,
                                       hasher, &conflict);
    return finish(std::move(map), conflict, name_of(Kind::coded));
  }
  auto map = builder.finish();
  const auto conflict = builder.conflict();
  return finish(std::move(map), conflict, name_of(Kind::map));
}

int build(Options& options) {
  if (options.output.empty()) fail("map build: -o FILE says where the map goes");
  if (options.key_field.empty() || options.value_field.empty()) {
    fail("map build: --key and --value say which fields of a record they are");
  }
  if (options.check_bits > RibbonMapShape::kMaxCheckBits) {
    fail("--check {}: must be a number from 1 to {}", options.check_bits, RibbonMapShape::kMaxCheckBits);
  }
  if (!options.keys.literals.empty()) fail("map build: -e names a key to get");
  if (options.keys.missing != Missing::fail) fail("--missing: each record of a map needs its key and its value");
  check_output(options.output);
  options.keys.files = options.files;
  options.keys.fields = {options.key_field, options.value_field};
  options.keys.choice.records = true;
  read_stdin_if_none(options.keys);
  check_not_an_input(options.output, options.keys.files);
  if (const auto secret = options.open.keyed.read()) return build_with(options, *secret);
  return build_with(options, Hash());
}

int get(Options& options) {
  for (const auto& [given, name] : {std::pair(!options.output.empty(), "-o"),
                                    {!options.key_field.empty(), "--key"},
                                    {!options.value_field.empty(), "--value"},
                                    {options.check_bits != 0, "--check"},
                                    {options.text, "--text"},
                                    {options.coded, "--coded"},
                                    {options.allow_empty, "--allow-empty"},
                                    {!options.note.empty(), "--note"},
                                    {options.memory != 0, "--memory"}}) {
    if (given) fail("{}: an option of map build", name);
  }
  if (options.files.empty()) fail("map get: name the map");
  const std::string path = options.files[0];
  options.keys.files.assign(options.files.begin() + 1, options.files.end());
  const Opened opened = open_filter(path, options.open);
  auto map = map_in(opened.file);
  if (!map) fail("{}: {}", path, map.error().detail);
  options.keys.adopt(recipe_of(opened.file.header().record, path), path);
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);
  const auto texts = (*map)->texts();
  std::uint64_t found_count = 0;
  Out out;
  const Source* current = nullptr;
  Progress progress("looking up", keys.stored_bytes());
  std::array<std::uint64_t, Parser::kColumn> digests;
  std::array<std::uint64_t, Parser::kColumn> values;
  std::array<std::uint64_t, Parser::kColumn / kBatch> found;
  keys.for_each(
      progress,
      [&](const Batch& batch, const Source* source) {
        current = source;
        digest_keys((*map)->hasher(), options.keys.as, batch.keys, digests);
        (*map)->find_digests(std::span<const std::uint64_t>(digests.data(), batch.keys.size()), values, found);
        for (std::size_t i = 0; i < batch.keys.size(); ++i) {
          // Of an absent key the value may be none of the words.
          const bool there = (found[i / 64] >> i % 64 & 1) != 0 && (texts.empty() || values[i] < texts.size());
          found_count += there;
          const std::string key =
              options.keys.number()
                  ? std::to_string(load_little_endian<std::uint64_t>(batch.keys[i].data()))
                  : std::string(
                        text_of(source != nullptr && !options.keys.fields.empty() ? batch.keys[i] : batch.records[i]));
          if (options.json) {
            Json json;
            json.add("key", key).add("found", there);
            json.add("value", there ? std::optional(values[i]) : std::nullopt);
            if (there && !texts.empty()) json.add("text", texts[values[i]]);
            out.write(json.text() + "\n");
          } else if (there) {
            out.write(key + "\t");
            out.write(texts.empty() ? std::to_string(values[i]) : std::string(texts[values[i]]));
            out.write('\n');
          }
        }
        return true;
      },
      [&] {
        if (current != nullptr && !current->mapped()) out.flush();
      });
  return found_count != 0 ? kYes : kNo;
}

int run(Options& options) { return options.action == "build" ? build(options) : get(options); }

}  // namespace
}  // namespace mapping

Command::Run map_command(CLI::App& app) {
  auto options = std::make_shared<mapping::Options>();
  add_words(app, "what", options->action, {"build", "get"}, "Make a map, or look keys up in one")->required();
  app.add_option("files", options->files,
                 "build: files of records; get: the map, and then files of keys. - is standard input, which is also "
                 "read if no file of records and no -e is given")
      ->type_name("FILE");
  app.add_option("-o,--output", options->output, "build: the file to write")->type_name("FILE");
  app.add_option("--key", options->key_field, "build: the field of a record that is its key, by number or name")
      ->type_name("N|NAME");
  app.add_option("--value", options->value_field, "build: the field that is its value")->type_name("N|NAME");
  app.add_flag("--coded", options->coded,
               "build: take as many bits as the entropy of the values, for values of which few are frequent; "
               "needs 16 bytes of memory per key");
  app.add_flag("--text", options->text,
               "build: values are words, at most 65,536 different ones, which the file keeps; default: numbers from 0 "
               "to 2^64 - 1");
  add_count(app, "--check", options->check_bits, "B",
            "build: B bits more per key, 1 to 32, so that an absent key is found only once in 2^B times");
  add_count(app, "--memory", options->memory, "BYTES",
            "build: keep at most BYTES of digests and values in memory, the others in a temporary file (TMPDIR); "
            "default: 16 bytes per key, all in memory");
  declare_threads(app, options->threads);
  app.add_flag("--allow-empty", options->allow_empty, "build: a map of no keys, too, instead of an error");
  declare_note(app, options->note);
  declare_json(app, options->json);
  declare_open(app, options->open);
  app.add_option("-e", options->keys.literals, "get: this key; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->group("Keys");
  options->keys.has_literals = true;
  declare_key_format(app, options->keys);
  declare_recipe(app, options->keys);
  return [options] { return mapping::run(*options); };
}

}  // namespace perhaps::cli
