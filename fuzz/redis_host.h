// A host for the Redis module instead of a server: the functions of the module interface that the module uses, which
// check what they are given, and memory that runs out when the fuzzer says so. Included by redis_fuzz.cc.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "redis/redis_api.h"

namespace perhaps::redis {

using FindFunction = int (*)(const char*, void**);

struct Context {
  FindFunction find;
};
struct String {
  std::string text;
};
struct DataType {
  TypeMethods methods;
  int encoding;
};
struct Key {
  std::string name;
};
struct CommandHandle {};
struct ServerInfo {};
struct DigestSink {
  std::string text;
};
struct DefragContext {
  unsigned long cursor = 0;
};
// The stream of one value: input of rdb_load, or output of rdb_save.
struct Io {
  std::string_view in;
  bool failed = false;
  std::string out{};
  std::string rewritten{};  // the key that aof_rewrite makes

  std::uint64_t word(std::size_t bytes) {
    if (in.size() < bytes) {
      failed = true;
      return 0;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, in.data(), bytes);
    in.remove_prefix(bytes);
    return value;
  }
  void put(std::uint64_t value, std::size_t bytes) { out.append(reinterpret_cast<const char*>(&value), bytes); }
};

// Apart from the names of the module.
namespace fuzz {

inline void demand(bool truth) {
  if (!truth) std::abort();
}

struct Value {
  DataType* type;
  void* at;
};

struct Host {
  Context context{};
  std::map<std::string, DataType*> types;
  std::vector<std::pair<std::string, CommandFunction>> commands;
  std::map<std::string, Value> keys;
  std::size_t allocated = 0;
  std::size_t blocks = 0;
  int flags = 0;
  long long now = 1'000'000;
  std::string last_bulk;
  std::string last_number = "0";

  // Unfinished replies: how many elements they have, or -1, and how many came.
  struct Open {
    long size;
    long seen;
  };
  std::vector<Open> open;
  int replies = 0;

  void reply(long elements = 0) {
    if (open.empty()) ++replies;
    if (!open.empty()) ++open.back().seen;
    if (elements != 0) open.push_back({elements, 0});
    close();
  }
  void close() {
    while (!open.empty() && open.back().seen == open.back().size) open.pop_back();
    demand(open.empty() || open.back().size < 0 || open.back().seen < open.back().size);
  }
  void set_length(long size) {
    demand(!open.empty() && open.back().size < 0 && open.back().seen == size);
    open.pop_back();
    close();
  }

  void erase(const std::string& name) {
    const auto found = keys.find(name);
    if (found == keys.end()) return;
    demand(found->second.type->methods.free_effort(nullptr, found->second.at) > 0);
    found->second.type->methods.free(found->second.at);
    keys.erase(found);
  }
  std::string digest(const Value& value) const {
    DigestSink sink;
    value.type->methods.digest(&sink, value.at);
    demand(value.type->methods.mem_usage(value.at) > 0);
    return sink.text;
  }
  void call(std::size_t command, const std::vector<std::string>& words) {
    std::vector<String> strings;
    for (const std::string& word : words) strings.push_back({word});
    std::vector<String*> argv;
    for (String& string : strings) argv.push_back(&string);
    replies = 0;
    commands[command].second(&context, argv.data(), static_cast<int>(argv.size()));
    demand(open.empty() && replies == 1);
  }
  std::size_t command_named(std::string_view name) const {
    for (std::size_t i = 0; i < commands.size(); ++i)
      if (commands[i].first == name) return i;
    std::abort();
  }
};
inline Host host;

// Inputs are small: only a number that was believed without a check asks for more.
inline constexpr std::size_t kMaxMemory = std::size_t{2} << 20;
inline constexpr std::size_t kFront = 16;

inline void* take(std::size_t size, bool may_fail) {
  if (may_fail && (size > kMaxMemory || host.allocated + size > kMaxMemory)) return nullptr;
  auto* const at = static_cast<std::byte*>(std::malloc(size + kFront));
  demand(at != nullptr);
  std::memcpy(at, &size, sizeof size);
  host.allocated += size;
  ++host.blocks;
  std::memset(at + kFront, 0xa5, size);
  return at + kFront;
}
inline void give(void* at) {
  if (at == nullptr) return;
  std::byte* const block = static_cast<std::byte*>(at) - kFront;
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof size);
  host.allocated -= size;
  --host.blocks;
  std::free(block);
}

inline void emit(Io* io, const char* command, const char* format, ...) {
  std::vector<std::string> words = {command};
  va_list list;
  va_start(list, format);
  for (const char* at = format; *at != 0; ++at) {
    if (*at == 's') {
      va_arg(list, String*);
      words.push_back(io->rewritten);
    } else if (*at == 'l') {
      words.push_back(std::to_string(va_arg(list, long long)));
    } else {
      demand(*at == 'b');
      const char* const text = va_arg(list, const char*);
      words.emplace_back(text, va_arg(list, std::size_t));
    }
  }
  va_end(list);
  std::string name = command;
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  host.call(host.command_named(name), words);
}

inline void ignore_log(Context*, const char*, const char*, ...) {}
inline int ignore_replication(Context*, const char*, const char*, ...) { return kOk; }

using Functions = std::map<std::string_view, void*>;
template <class F>
void* pointer(F function) {
  return reinterpret_cast<void*>(+function);
}

inline const Functions& functions() {
  static const Functions all = {
      {"IsModuleNameBusy", pointer([](const char*) { return 0; })},
      {"SetModuleAttribs", pointer([](Context*, const char*, int, int) {})},
      {"SetModuleOptions", pointer([](Context*, int) {})},
      {"GetServerVersion", pointer([] { return 0x070000; })},
      {"Log", pointer(&ignore_log)},
      {"Alloc", pointer([](std::size_t size) { return take(size, false); })},
      {"TryAlloc", pointer([](std::size_t size) { return take(size, true); })},
      {"Calloc", pointer([](std::size_t count, std::size_t size) {
         void* const at = take(count * size, true);
         return at == nullptr ? at : std::memset(at, 0, count * size);
       })},
      {"Free", pointer(&give)},
      {"StringPtrLen", pointer([](const String* string, std::size_t* size) {
         *size = string->text.size();
         return string->text.data();
       })},
      {"StringToLongLong", pointer([](const String* string, long long* value) {
         const char* const end = string->text.data() + string->text.size();
         const auto [at, error] = std::from_chars(string->text.data(), end, *value);
         return error == std::errc() && at == end ? kOk : kError;
       })},
      {"StringToDouble", pointer([](const String* string, double* value) {
         char* end = nullptr;
         *value = std::strtod(string->text.c_str(), &end);
         const bool whole = end == string->text.c_str() + string->text.size() && !string->text.empty();
         return whole && !std::isnan(*value) ? kOk : kError;
       })},
      {"CreateString",
       pointer([](Context*, const char* text, std::size_t size) { return new String{std::string(text, size)}; })},
      {"FreeString", pointer([](Context*, String* string) { delete string; })},
      {"CreateCommand", pointer([](Context*, const char* name, CommandFunction function, const char*, int, int, int) {
         host.commands.emplace_back(name, function);
         return kOk;
       })},
      {"GetCommand", pointer([](Context*, const char*) {
         static CommandHandle handle;
         return &handle;
       })},
      {"SetCommandInfo", pointer([](CommandHandle*, const CommandInfo*) { return kOk; })},
      {"IsKeysPositionRequest", pointer([](Context*) { return 0; })},
      {"KeyAtPos", pointer([](Context*, int) {})},
      {"WrongArity", pointer([](Context*) { return host.reply(), kOk; })},
      {"ReplyWithError", pointer([](Context*, const char*) { return host.reply(), kOk; })},
      {"ReplyWithSimpleString", pointer([](Context*, const char*) { return host.reply(), kOk; })},
      {"ReplyWithStringBuffer", pointer([](Context*, const char* text, std::size_t size) {
         host.last_bulk.assign(text, size);
         return host.reply(), kOk;
       })},
      {"ReplyWithLongLong", pointer([](Context*, long long number) {
         host.last_number = std::to_string(number);
         return host.reply(), kOk;
       })},
      {"ReplyWithDouble", pointer([](Context*, double) { return host.reply(), kOk; })},
      {"ReplyWithBool", pointer([](Context*, int) { return host.reply(), kOk; })},
      {"ReplyWithNull", pointer([](Context*) { return host.reply(), kOk; })},
      {"ReplyWithArray", pointer([](Context*, long size) { return host.reply(size), kOk; })},
      {"ReplyWithMap", pointer([](Context*, long size) { return host.reply(2 * size), kOk; })},
      {"ReplySetArrayLength", pointer([](Context*, long size) { host.set_length(size); })},
      {"GetContextFlags", pointer([](Context*) { return host.flags; })},
      {"OpenKey", pointer([](Context*, String* name, int mode) -> Key* {
         if ((mode & kWriteKey) == 0 && !host.keys.contains(name->text)) return nullptr;
         return new Key{name->text};
       })},
      {"CloseKey", pointer([](Key* key) { delete key; })},
      {"KeyType",
       pointer([](Key* key) { return key != nullptr && host.keys.contains(key->name) ? kModuleKey : kEmptyKey; })},
      {"DeleteKey", pointer([](Key* key) { return host.erase(key->name), kOk; })},
      {"ModuleTypeSetValue", pointer([](Key* key, DataType* type, void* value) {
         host.erase(key->name);
         host.keys[key->name] = {type, value};
         return kOk;
       })},
      {"ModuleTypeGetType", pointer([](Key* key) -> DataType* {
         const auto held = key == nullptr ? host.keys.end() : host.keys.find(key->name);
         return held == host.keys.end() ? nullptr : held->second.type;
       })},
      {"ModuleTypeGetValue", pointer([](Key* key) { return host.keys.at(key->name).at; })},
      {"NotifyKeyspaceEvent", pointer([](Context*, int, const char*, String*) { return kOk; })},
      {"CreateDataType", pointer([](Context*, const char* name, int encoding, TypeMethods* methods) {
         return host.types[name] = new DataType{*methods, encoding};
       })},
      {"SaveUnsigned", pointer([](Io* io, std::uint64_t value) { io->put(value, 8); })},
      {"LoadUnsigned", pointer([](Io* io) { return io->word(8); })},
      {"SaveDouble", pointer([](Io* io, double value) { io->put(std::bit_cast<std::uint64_t>(value), 8); })},
      {"LoadDouble", pointer([](Io* io) { return std::bit_cast<double>(io->word(8)); })},
      {"SaveStringBuffer", pointer([](Io* io, const char* text, std::size_t size) {
         io->put(size, 4);
         io->out.append(text, size);
       })},
      {"LoadStringBuffer", pointer([](Io* io, std::size_t* size) -> char* {
         *size = io->word(4);
         if (io->failed || io->in.size() < *size) {
           io->failed = true;
           return nullptr;
         }
         auto* const at = static_cast<char*>(take(*size, false));
         std::memcpy(at, io->in.data(), *size);
         io->in.remove_prefix(*size);
         return at;
       })},
      {"IsIOError", pointer([](Io* io) { return int{io->failed}; })},
      {"EmitAOF", pointer(&emit)},
      {"DigestAddStringBuffer",
       pointer([](DigestSink* sink, const char* text, std::size_t size) { sink->text.append(text, size); })},
      {"DigestAddLongLong", pointer([](DigestSink* sink, long long n) { sink->text += std::to_string(n); })},
      {"DigestEndSequence", pointer([](DigestSink*) {})},
      {"DefragAlloc", pointer([](DefragContext*, void* at) -> void* {
         if (at == nullptr) return nullptr;
         std::size_t size = 0;
         std::memcpy(&size, static_cast<std::byte*>(at) - kFront, sizeof size);
         void* const now = take(size, true);
         if (now == nullptr) return nullptr;
         std::memcpy(now, at, size);
         give(at);
         return now;
       })},
      {"DefragShouldStop", pointer([](DefragContext*) { return 1; })},
      {"DefragCursorSet", pointer([](DefragContext* context, unsigned long cursor) {
         context->cursor = cursor;
         return kOk;
       })},
      {"DefragCursorGet", pointer([](DefragContext* context, unsigned long* cursor) {
         *cursor = context->cursor;
         return kOk;
       })},
      {"Replicate", pointer(&ignore_replication)},
      {"ReplicateVerbatim", pointer([](Context*) { return kOk; })},
      {"Milliseconds", pointer([] { return host.now; })},
      {"RegisterStringConfig", pointer([](Context*, const char*, const char*, unsigned, ConfigGetString,
                                          ConfigSetString, ConfigApply, void*) { return kOk; })},
      {"LoadConfigs", pointer([](Context*) { return kOk; })},
      {"RegisterInfoFunc", pointer([](Context*, void (*)(InfoContext*, int)) { return kOk; })},
      {"GetServerInfo", pointer([](Context*, const char*) {
         static ServerInfo info;
         return &info;
       })},
      {"FreeServerInfo", pointer([](Context*, ServerInfo*) {})},
      {"ServerInfoGetFieldC", pointer([](ServerInfo*, const char*) { return "noeviction"; })},
      {"ServerInfoGetFieldUnsigned", pointer([](ServerInfo*, const char* name, int* error) {
         *error = kOk;
         return static_cast<unsigned long long>(std::string_view(name) == "total_system_memory" ? kMaxMemory
                                                                                                : std::size_t{0});
       })},
  };
  return all;
}

}  // namespace fuzz
}  // namespace perhaps::redis
