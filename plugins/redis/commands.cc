// The whole surface in one table, and what happens when a server loads it.
#include "redis/commands.h"

#include <deque>
#include <vector>

#include "redis/values.h"

#ifndef PERHAPS_REDIS_VERSION
#define PERHAPS_REDIS_VERSION 80800  // of the RedisBloom whose surface this is: what clients ask it for
#endif

namespace perhaps::redis {
namespace {

enum Keys : std::uint8_t { reads, writes, inserts, erases, merges };

struct Command {
  const char* name;  // in small letters, as errors name it
  CommandFunction function;
  int arity;          // -n: n words or more
  const char* flags;  // as the server names them
  Keys keys;          // what it does with its key
  const char* since;
  const char* summary;
  const char* complexity;
  const char* syntax;  // after the name: `key`, TOKENS, name:integer, [optional], name... many
};

constexpr Command kCommands[] = {
    {"bf.add", bf_add, 3, "write deny-oom", inserts, "1.0.0", "Adds an item to a Bloom filter", "O(k)", "key item"},
    {"bf.advance", bf_advance, 3, "write fast", writes, "8.8.0", "Tells a window by time what time it is", "O(1)",
     "key milliseconds:integer"},
    {"bf.card", bf_card, 2, "readonly fast", reads, "2.4.4", "Number of items that were added", "O(1)", "key"},
    {"bf.debug", bf_debug, 2, "readonly", reads, "1.0.0", "What each sub-filter is made of", "O(n)", "key"},
    {"bf.exists", bf_exists, 3, "readonly fast", reads, "1.0.0", "Is an item perhaps in a Bloom filter?", "O(k)",
     "key item"},
    {"bf.info", bf_info, -2, "readonly fast", reads, "1.0.0", "What a Bloom filter is made of", "O(1), FPR: O(n)",
     "key [field]"},
    {"bf.insert", bf_insert, -4, "write deny-oom", inserts, "1.0.0",
     "Adds items to a Bloom filter, which is created if it is not there", "O(k * n)",
     "key [CAPACITY capacity:integer] [ERROR error:double] [EXPANSION expansion:integer] [NOCREATE] [NONSCALING] "
     "[VALIDATESCALETO capacity:integer] ITEMS item..."},
    {"bf.loadchunk", bf_loadchunk, 4, "write deny-oom", inserts, "1.0.0", "Restores a part of a dumped Bloom filter",
     "O(n)", "key iterator:integer data"},
    {"bf.madd", bf_madd, -3, "write deny-oom", inserts, "1.0.0", "Adds items to a Bloom filter", "O(k * n)",
     "key item..."},
    {"bf.merge", bf_merge, -4, "write deny-oom getkeys-api", merges, "8.8.0",
     "Stores the union of Bloom filters of one shape", "O(n)", "destination:key numkeys:integer source:key..."},
    {"bf.mexists", bf_mexists, -3, "readonly fast", reads, "1.0.0", "Are items perhaps in a Bloom filter?", "O(k * n)",
     "key item..."},
    {"bf.reserve", bf_reserve, -4, "write deny-oom fast", inserts, "1.0.0", "Creates an empty Bloom filter", "O(1)",
     "key error_rate:double capacity:integer [EXPANSION expansion:integer] [NONSCALING] [LAYOUT layout] "
     "[WINDOW window:integer] [SECONDS]"},
    {"bf.scandump", bf_scandump, 3, "readonly", reads, "1.0.0", "The next part of a Bloom filter", "O(n)",
     "key iterator:integer"},
    {"cf.add", cf_add, 3, "write deny-oom", inserts, "1.0.0", "Adds an item to a cuckoo filter", "O(k + i)",
     "key item"},
    {"cf.addnx", cf_addnx, 3, "write deny-oom", inserts, "1.0.0",
     "Adds an item to a cuckoo filter unless it is perhaps there", "O(k + i)", "key item"},
    {"cf.compact", cf_compact, 2, "write", writes, "1.0.0", "Moves items into older sub-filters", "O(n)", "key"},
    {"cf.count", cf_count, 3, "readonly fast", reads, "1.0.0", "How often an item is perhaps in a cuckoo filter",
     "O(k)", "key item"},
    {"cf.debug", cf_debug, 2, "readonly", reads, "1.0.0", "What a cuckoo filter is made of", "O(1)", "key"},
    {"cf.del", cf_del, 3, "write fast", erases, "1.0.0", "Removes an item once", "O(k)", "key item"},
    {"cf.exists", cf_exists, 3, "readonly fast", reads, "1.0.0", "Is an item perhaps in a cuckoo filter?", "O(k)",
     "key item"},
    {"cf.info", cf_info, 2, "readonly fast", reads, "1.0.0", "What a cuckoo filter is made of", "O(1)", "key"},
    {"cf.insert", cf_insert, -4, "write deny-oom", inserts, "1.0.0",
     "Adds items to a cuckoo filter, which is created if it is not there", "O(n * (k + i))",
     "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."},
    {"cf.insertnx", cf_insertnx, -4, "write deny-oom", inserts, "1.0.0",
     "Adds those items to a cuckoo filter that are not perhaps there", "O(n * (k + i))",
     "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."},
    {"cf.loadchunk", cf_loadchunk, 4, "write deny-oom", inserts, "1.0.0", "Restores a part of a dumped cuckoo filter",
     "O(n)", "key iterator:integer data"},
    {"cf.mexists", cf_mexists, -3, "readonly fast", reads, "1.0.0", "Are items perhaps in a cuckoo filter?", "O(k * n)",
     "key item..."},
    {"cf.reserve", cf_reserve, -3, "write deny-oom fast", inserts, "1.0.0", "Creates an empty cuckoo filter", "O(1)",
     "key capacity:integer [BUCKETSIZE bucketsize:integer] [MAXITERATIONS maxiterations:integer] "
     "[EXPANSION expansion:integer]"},
    {"cf.scandump", cf_scandump, 3, "readonly", reads, "1.0.0", "The next part of a cuckoo filter", "O(n)",
     "key iterator:integer"},
};

// The arguments that COMMAND DOCS tells, from the syntax. The server copies them; the texts live as long as `words`.
std::vector<CommandArgument> arguments_of(std::string_view syntax, std::deque<std::string>& words) {
  std::vector<CommandArgument> arguments;
  CommandArgument next;
  int keys = 0;
  bool optional = false;
  const auto text = [&](std::string_view word) { return words.emplace_back(word).c_str(); };
  const auto token_alone = [&] {
    if (next.token == nullptr) return;
    next.type = CommandArgument::kToken;
    std::string lower = next.token;
    for (char& c : lower) c = static_cast<char>(c | 32);
    next.name = text(lower);
    arguments.push_back(next);
    next = {};
  };
  while (!syntax.empty()) {
    std::string_view word = syntax.substr(0, syntax.find(' '));
    syntax.remove_prefix(std::min(word.size() + 1, syntax.size()));
    if (word.starts_with('[')) {
      optional = true;
      word.remove_prefix(1);
    }
    const bool ends = word.ends_with(']');
    if (ends) word.remove_suffix(1);
    next.flags = optional ? CommandArgument::kOptional : 0;
    if (word[0] >= 'A' && word[0] <= 'Z') {
      next.token = text(word);
    } else {
      if (word.ends_with("...")) {
        next.flags |= CommandArgument::kMultiple;
        word.remove_suffix(3);
      }
      const std::string_view type = word.find(':') == word.npos ? "" : word.substr(word.find(':') + 1);
      next.type = type == "integer"                ? CommandArgument::kInteger
                  : type == "double"               ? CommandArgument::kDouble
                  : type == "key" || word == "key" ? CommandArgument::kKey
                                                   : CommandArgument::kString;
      if (next.type == CommandArgument::kKey) next.key_spec = keys++;
      next.name = text(word.substr(0, word.find(':')));
      arguments.push_back(next);
      next = {};
    }
    if (ends) token_alone();
    optional = optional && !ends;
  }
  arguments.push_back({});
  return arguments;
}

std::vector<CommandKeySpec> key_specs_of(Keys keys) {
  using Spec = CommandKeySpec;
  Spec first;
  first.flags = keys == reads     ? Spec::kReadOnly | Spec::kAccess
                : keys == inserts ? Spec::kReadWrite | Spec::kInsert
                : keys == erases  ? Spec::kReadWrite | Spec::kDelete
                                  : Spec::kReadWrite | Spec::kUpdate;
  first.begin = Spec::kByIndex;
  first.index = {1};
  first.find = Spec::kRange;
  first.range = {0, 1, 0};
  std::vector<Spec> specs{first};
  if (keys == merges) {
    Spec sources;
    sources.flags = Spec::kReadOnly | Spec::kAccess;
    sources.begin = Spec::kByIndex;
    sources.index = {2};
    sources.find = Spec::kCounted;
    sources.counted = {0, 1, 1};
    specs.push_back(sources);
  }
  Spec end;
  end.index = {0};
  end.range = {0, 0, 0};
  specs.push_back(end);
  return specs;
}

bool create_command(Context* context, const Command& command) {
  if (api::CreateCommand(context, command.name, command.function, command.flags, 1, 1, 1) != kOk) return false;
  CommandHandle* const handle = api::GetCommand(context, command.name);
  if (handle == nullptr) return false;
  const std::string_view name = command.name;
  std::deque<std::string> words;
  auto arguments = arguments_of(command.syntax, words);
  auto specs = key_specs_of(command.keys);
  const CommandInfoVersion version;
  const bool volatile_reply = name.ends_with("info") || name.ends_with("debug") || name.ends_with("scandump");
  const CommandInfo info{&version,      command.summary, command.complexity,
                         command.since, nullptr,         volatile_reply ? "dont_cache" : nullptr,
                         command.arity, specs.data(),    arguments.data()};
  if (api::SetCommandInfo(handle, &info) != kOk) return false;
  if (api::SetCommandACLCategories != nullptr && api::AddACLCategory != nullptr) {
    std::string categories = name.starts_with("bf") ? "bloom" : "cuckoo";
    const std::string_view flags = command.flags;
    categories += flags.starts_with("write") ? " write" : " read";
    if (flags.ends_with("fast")) categories += " fast";
    if (api::SetCommandACLCategories(handle, categories.c_str()) != kOk) return false;
  }
  return true;
}

void info(InfoContext* to, int) noexcept {
  const auto section = [&](const char* name, const Totals& totals) {
    api::InfoAddSection(to, name);
    const auto field = [&](const char* field_name, const std::atomic<std::uint64_t>& value) {
      api::InfoAddFieldULongLong(to, (std::string(name) + "_" + field_name).c_str(), value.load());
    };
    field("objects", totals.objects);
    field("bytes", totals.bytes);
    field("filters", totals.filters);
    field("items", totals.items);
    field("capacity", totals.capacity);
    field("defrag_moved", totals.moved);
  };
  section("bloom", Bloom::totals);
  section("cuckoo", Cuckoo::totals);
  section("line", Line::totals);
  section("window", Window::totals);
}

bool load(Context* context, String** argv, int argc) {
  constexpr const char* kName = "bf";
  if (api::IsModuleNameBusy(kName) != 0) {
    api::Log(context, "warning", "another module has the name %s: RedisBloom or valkey-bloom", kName);
    return false;
  }
  api::SetModuleAttribs(context, kName, PERHAPS_REDIS_VERSION, 1);
  if (api::TryAlloc == nullptr || api::SetCommandInfo == nullptr || api::RegisterStringConfig == nullptr) {
    api::Log(context, "warning", "this server is older than 7.0");
    return false;
  }
  api::SetModuleOptions(context, kHandleIoErrors);
  if (!create_types(context)) {
    api::Log(context, "warning", "another module has the types of Bloom and cuckoo filters");
    return false;
  }
  if (api::AddACLCategory != nullptr) {
    api::AddACLCategory(context, "bloom");
    api::AddACLCategory(context, "cuckoo");
  }
  for (const Command& command : kCommands) {
    if (create_command(context, command)) continue;
    api::Log(context, "warning", "%s could not be created", command.name);
    return false;
  }
  api::RegisterInfoFunc(context, info);
  return load_settings(context, argv, argc);
}

}  // namespace
}  // namespace perhaps::redis

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(perhaps::redis::Context* context,
                                                                         perhaps::redis::String** argv, int argc) {
  perhaps::redis::api::bind(context);
  return perhaps::redis::load(context, argv, argc) ? perhaps::redis::kOk : perhaps::redis::kError;
}
