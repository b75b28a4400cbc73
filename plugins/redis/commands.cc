// The whole surface in one table, and what happens when a server loads it.
#include "redis/commands.h"

#include <deque>
#include <utility>
#include <vector>

#include "redis/values.h"

#ifndef PERHAPS_REDIS_VERSION
#define PERHAPS_REDIS_VERSION 80800  // the RedisBloom with this surface; clients compare it
#endif

namespace perhaps::redis {
namespace {

enum Keys : std::uint8_t { reads, writes, inserts, erases, merges };

struct Command {
  const char* name;  // in lower case, as errors name it
  CommandFunction function;
  int arity;          // -n: n words or more
  const char* flags;  // as the server names them; `fast` only if the time does not depend on the filter or the items
  Keys keys;          // what it does with its key
  const char* since;
  const char* summary;
  const char* complexity;
  const char* syntax;  // after the name, see Syntax
};

// Summaries and complexities of RedisBloom's commands are part of its interface: clients print them.
constexpr const char* kProbes = "O(k), where k is the number of hash functions used by the last sub-filter";
constexpr const char* kProbesItems = "O(k * n), where k is the number of hash functions and n is the number of items";
constexpr const char* kCapacity = "O(n), where n is the capacity";
constexpr const char* kFilters = "O(k), where k is the number of sub-filters";
constexpr const char* kFiltersItems = "O(k * n), where k is the number of sub-filters and n is the number of items";
constexpr const char* kEvictions = "O(k + i), where k is the number of sub-filters and i is maxIterations";
constexpr const char* kEvictionsItems =
    "O(n * (k + i)), where n is the number of items, k is the number of sub-filters and i is maxIterations";

constexpr Command kCommands[] = {
    {"bf.add", bf_add, 3, "write deny-oom", inserts, "1.0.0", "Adds an item to a Bloom Filter", kProbes, "key item"},
    {"bf.advance", bf_advance, 3, "write fast", writes, "8.8.0", "Tells a window by time what time it is", "O(1)",
     "key milliseconds:integer"},
    {"bf.card", bf_card, 2, "readonly fast", reads, "2.4.4", "Returns the cardinality of a Bloom filter", "O(1)",
     "key"},
    {"bf.debug", bf_debug, 2, "readonly", reads, "1.0.0", "Describes each sub-filter of a Bloom filter", kFilters,
     "key"},
    {"bf.exists", bf_exists, 3, "readonly fast", reads, "1.0.0", "Checks whether an item exists in a Bloom Filter",
     kProbes, "key item"},
    {"bf.info", bf_info, -2, "readonly", reads, "1.0.0", "Returns information about a Bloom Filter", "O(1)",
     "key [single_value=CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION|ERROR|TIGHTENING|MAXSCALEDCAPACITY|FPR|HEADROOM]"},
    {"bf.insert", bf_insert, -4, "write deny-oom", inserts, "1.0.0",
     "Adds one or more items to a Bloom Filter. A filter will be created if it does not exist", kProbesItems,
     "key [CAPACITY capacity:integer] [ERROR error:double] [EXPANSION expansion:integer] [NOCREATE] "
     "[nonscaling=NONSCALING|VALIDATESCALETO scale_to:integer] ITEMS item..."},
    {"bf.load", bf_load, 3, "write deny-oom", inserts, "8.8.0",
     "Restores a filter from what valkey-bloom writes to an append-only file", kCapacity, "key data"},
    {"bf.loadchunk", bf_loadchunk, 4, "write deny-oom", inserts, "1.0.0",
     "Restores a filter previously saved using SCANDUMP", kCapacity, "key iterator:integer data"},
    {"bf.madd", bf_madd, -3, "write deny-oom", inserts, "1.0.0",
     "Adds one or more items to a Bloom Filter. A filter will be created if it does not exist", kProbesItems,
     "key item..."},
    {"bf.merge", bf_merge, -4, "write deny-oom getkeys-api", merges, "8.8.0",
     "Stores the union of Bloom filters that have the same shape", "O(n), where n is the size of all filters",
     "destination:key numkeys:integer source:key..."},
    {"bf.mexists", bf_mexists, -3, "readonly", reads, "1.0.0",
     "Checks whether one or more items exist in a Bloom Filter", kProbesItems, "key item..."},
    {"bf.reserve", bf_reserve, -4, "write deny-oom fast", inserts, "1.0.0", "Creates a new Bloom Filter", "O(1)",
     "key error_rate:double capacity:integer [EXPANSION expansion:integer] "
     "[nonscaling=NONSCALING|LAYOUT LINE|LAYOUT GROWING|WINDOW window:integer [SECONDS]]"},
    {"bf.scandump", bf_scandump, 3, "readonly", reads, "1.0.0", "Begins an incremental save of the bloom filter",
     kCapacity, "key iterator:integer"},
    {"cf.add", cf_add, 3, "write deny-oom", inserts, "1.0.0", "Adds an item to a Cuckoo Filter", kEvictions,
     "key item"},
    {"cf.addnx", cf_addnx, 3, "write deny-oom", inserts, "1.0.0",
     "Adds an item to a Cuckoo Filter if the item did not exist previously.", kEvictions, "key item"},
    {"cf.compact", cf_compact, 2, "write", writes, "1.0.0", "Moves items of a cuckoo filter to older sub-filters",
     kCapacity, "key"},
    {"cf.count", cf_count, 3, "readonly fast", reads, "1.0.0",
     "Return the number of times an item might be in a Cuckoo Filter", kFilters, "key item"},
    {"cf.debug", cf_debug, 2, "readonly", reads, "1.0.0", "Describes a cuckoo filter in one line", "O(1)", "key"},
    {"cf.del", cf_del, 3, "write", erases, "1.0.0", "Deletes an item from a Cuckoo Filter", kFilters, "key item"},
    {"cf.exists", cf_exists, 3, "readonly fast", reads, "1.0.0",
     "Checks whether one or more items exist in a Cuckoo Filter", kFilters, "key item"},
    {"cf.info", cf_info, 2, "readonly fast", reads, "1.0.0", "Returns information about a Cuckoo Filter", "O(1)",
     "key"},
    {"cf.insert", cf_insert, -4, "write deny-oom", inserts, "1.0.0",
     "Adds one or more items to a Cuckoo Filter. A filter will be created if it does not exist", kEvictionsItems,
     "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."},
    {"cf.insertnx", cf_insertnx, -4, "write deny-oom", inserts, "1.0.0",
     "Adds one or more items to a Cuckoo Filter if the items did not exist previously. A filter will be created if it "
     "does not exist",
     kEvictionsItems, "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item..."},
    {"cf.loadchunk", cf_loadchunk, 4, "write deny-oom", inserts, "1.0.0",
     "Restores a filter previously saved using SCANDUMP", kCapacity, "key iterator:integer data"},
    {"cf.mexists", cf_mexists, -3, "readonly", reads, "1.0.0",
     "Checks whether one or more items exist in a Cuckoo Filter", kFiltersItems, "key item..."},
    {"cf.reserve", cf_reserve, -3, "write deny-oom fast", inserts, "1.0.0", "Creates a new Cuckoo Filter", "O(1)",
     "key capacity:integer [BUCKETSIZE bucketsize:integer] [MAXITERATIONS maxiterations:integer] "
     "[EXPANSION expansion:integer]"},
    {"cf.scandump", cf_scandump, 3, "readonly", reads, "1.0.0", "Begins an incremental save of the bloom filter",
     kCapacity, "key iterator:integer"},
};

// The arguments that COMMAND DOCS shows, from the syntax of a command:
//   key             the key; also name:key      name            a string; also name:integer, name:double
//   TOKEN           a word as it is             TOKEN name      a word that announces a value
//   name...         one or more                 [..]            optional
//   [name=a|b c]    optional, one of these
// The server copies them; until then the texts and lists live here.
class Syntax {
 public:
  CommandArgument* arguments(std::string_view syntax) { return ended(parse(syntax)); }

 private:
  using List = std::vector<CommandArgument>;

  List parse(std::string_view syntax) {
    List list;
    const char* token = nullptr;
    const auto token_alone = [&] {
      if (token != nullptr) list.push_back(named_token(std::exchange(token, nullptr)));
    };
    while (!syntax.empty()) {
      if (syntax.starts_with('[')) {
        token_alone();
        const std::size_t end = closing(syntax);
        for (CommandArgument inner : optional(syntax.substr(1, end - 1))) {
          inner.flags |= CommandArgument::kOptional;
          list.push_back(inner);
        }
        syntax.remove_prefix(std::min(end + 2, syntax.size()));
        continue;
      }
      const std::string_view word = syntax.substr(0, syntax.find(' '));
      syntax.remove_prefix(std::min(word.size() + 1, syntax.size()));
      if (word[0] >= 'A' && word[0] <= 'Z') {
        token_alone();
        token = text(word);
      } else {
        CommandArgument argument = value(word);
        // `ITEMS item...`: the token once, then the values.
        if ((argument.flags & CommandArgument::kMultiple) != 0) token_alone();
        argument.token = std::exchange(token, nullptr);
        list.push_back(argument);
      }
    }
    token_alone();
    return list;
  }

  List optional(std::string_view inner) {
    const std::size_t equals = inner.find('=');
    if (equals == inner.npos) return parse(inner);
    CommandArgument choice;
    choice.name = text(inner.substr(0, equals));
    choice.type = CommandArgument::kOneOf;
    List alternatives;
    for (inner.remove_prefix(equals + 1); !inner.empty();) {
      const std::string_view one = inner.substr(0, inner.find('|'));
      inner.remove_prefix(std::min(one.size() + 1, inner.size()));
      List parts = parse(one);
      if (parts.size() == 1) {
        alternatives.push_back(parts[0]);
      } else {
        CommandArgument block;
        block.name = parts[0].name;
        block.type = CommandArgument::kBlock;
        block.parts = ended(std::move(parts));
        alternatives.push_back(block);
      }
    }
    choice.parts = ended(std::move(alternatives));
    return {choice};
  }

  CommandArgument value(std::string_view word) {
    CommandArgument argument;
    if (word.ends_with("...")) {
      argument.flags |= CommandArgument::kMultiple;
      word.remove_suffix(3);
    }
    const std::string_view type = word.find(':') == word.npos ? "" : word.substr(word.find(':') + 1);
    argument.type = type == "integer"                ? CommandArgument::kInteger
                    : type == "double"               ? CommandArgument::kDouble
                    : type == "key" || word == "key" ? CommandArgument::kKey
                                                     : CommandArgument::kString;
    if (argument.type == CommandArgument::kKey) argument.key_spec = keys_++;
    argument.name = text(word.substr(0, word.find(':')));
    return argument;
  }

  CommandArgument named_token(const char* token) {
    CommandArgument argument;
    argument.type = CommandArgument::kToken;
    argument.token = token;
    std::string lower = token;
    for (char& c : lower) c = static_cast<char>(c | 32);
    argument.name = text(lower);
    return argument;
  }

  static std::size_t closing(std::string_view syntax) {
    int depth = 0;
    for (std::size_t i = 0; i < syntax.size(); ++i) {
      depth += (syntax[i] == '[') - (syntax[i] == ']');
      if (depth == 0) return i;
    }
    return syntax.size();
  }
  const char* text(std::string_view word) { return texts_.emplace_back(word).c_str(); }
  CommandArgument* ended(List list) {
    list.push_back({});
    return lists_.emplace_back(std::move(list)).data();
  }

  std::deque<std::string> texts_;
  std::deque<List> lists_;
  int keys_ = 0;
};

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
  Syntax syntax;
  auto specs = key_specs_of(command.keys);
  const CommandInfoVersion version;
  const auto is = [&](auto... functions) { return ((command.function == functions) || ...); };
  const bool volatile_reply = is(bf_info, cf_info, bf_debug, cf_debug, bf_scandump, cf_scandump);
  const CommandInfo description{&version,      command.summary, command.complexity,
                                command.since, nullptr,         volatile_reply ? "dont_cache" : nullptr,
                                command.arity, specs.data(),    syntax.arguments(command.syntax)};
  if (api::SetCommandInfo(handle, &description) != kOk) return false;
  if (api::SetCommandACLCategories != nullptr && api::AddACLCategory != nullptr) {
    std::string categories = name.starts_with("bf") || name.starts_with("BF") ? "bloom" : "cuckoo";
    const std::string_view flags = command.flags;
    categories += flags.starts_with("write") ? " write" : " read";
    if (flags.ends_with("fast")) categories += " fast";
    if (api::SetCommandACLCategories(handle, categories.c_str()) != kOk) return false;
  }
  return true;
}

void info(InfoContext* to, int) noexcept {
  const auto count = [&](const char* name, const std::atomic<std::uint64_t>& value) {
    api::InfoAddFieldULongLong(to, name, value.load());
  };
  const auto section = [&](const std::string& kind, const Totals& totals) {
    api::InfoAddSection(to, kind.c_str());
    count((kind + "_objects").c_str(), totals.objects);
    count((kind + "_bytes").c_str(), totals.bytes);
    count((kind + "_filters").c_str(), totals.filters);
    count((kind + "_items").c_str(), totals.items);
    count((kind + "_capacity").c_str(), totals.capacity);
    count((kind + "_growths").c_str(), totals.growths);
    const double objects = static_cast<double>(std::max<std::uint64_t>(1, totals.objects.load()));
    api::InfoAddFieldDouble(to, (kind + "_false_positive_rate").c_str(),
                            static_cast<double>(totals.rate.load()) * Share::kRateUnit / objects);
    count((kind + "_defrag_moved").c_str(), totals.moved);
  };
  section("bloom", Bloom::totals);
  section("cuckoo", Cuckoo::totals);
  section("line", Line::totals);
  section("window", Window::totals);
  section("growing", Growing::totals);
  section("valkey", Valkey::totals);
  // Under valkey-bloom's own names.
  api::InfoAddSection(to, "bloom_core_metrics");
  count("bloom_total_memory_bytes", Valkey::totals.bytes);
  count("bloom_num_objects", Valkey::totals.objects);
  count("bloom_num_filters_across_objects", Valkey::totals.filters);
  count("bloom_num_items_across_objects", Valkey::totals.items);
  count("bloom_capacity_across_objects", Valkey::totals.capacity);
  api::InfoAddSection(to, "bloom_defrag_metrics");
  count("bloom_defrag_hits", Valkey::totals.moved);
  api::InfoAddSection(to, "refused");
  count("refused_over_limit", refusals.over_limit);
  count("refused_no_memory", refusals.no_memory);
  count("refused_full", refusals.full);
  count("refused_bad_data", refusals.bad_data);
}

bool load(Context* context, String** argv, int argc) {
  constexpr const char* kName = "bf";
  if (api::IsModuleNameBusy(kName) != 0) {
    api::Log(context, "warning", "another module named %s is loaded: RedisBloom or valkey-bloom", kName);
    return false;
  }
  api::SetModuleAttribs(context, kName, PERHAPS_REDIS_VERSION, 1);
  if (api::TryAlloc == nullptr || api::SetCommandInfo == nullptr || api::RegisterStringConfig == nullptr) {
    api::Log(context, "warning", "the server is older than 7.0");
    return false;
  }
  api::SetModuleOptions(context, kHandleIoErrors);
  if (!create_types(context)) {
    api::Log(context, "warning", "another module has registered the types of Bloom or cuckoo filters");
    return false;
  }
  if (api::AddACLCategory != nullptr) {
    api::AddACLCategory(context, "bloom");
    api::AddACLCategory(context, "cuckoo");
  }
  if (!read_arguments(context, argv, argc)) return false;
  for (Command command : kCommands) {
    std::string upper = command.name;
    if (settings.valkey) {
      // As valkey-bloom registers them. BF.INSERT needs no items there; the server counts words before we do.
      for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
      command.name = upper.c_str();
      if (command.function == bf_insert) command.arity = -2;
    }
    if (create_command(context, command)) continue;
    api::Log(context, "warning", "cannot create the command %s", command.name);
    return false;
  }
  api::RegisterInfoFunc(context, info);
  return register_settings(context);
}

}  // namespace
}  // namespace perhaps::redis

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(perhaps::redis::Context* context,
                                                                         perhaps::redis::String** argv, int argc) {
  perhaps::redis::api::bind(context);
  return perhaps::redis::load(context, argv, argc) ? perhaps::redis::kOk : perhaps::redis::kError;
}
