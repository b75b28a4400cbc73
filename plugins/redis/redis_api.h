// The module interface of Redis and Valkey, as far as this module uses it.
//
// A server calls RedisModule_OnLoad(context, argv, argc). The first word of the context is the address of a function
// that finds all others by name; a function that the server does not have stays null. Functions are only ever added,
// and structs that may grow carry a version, so what is written here holds for every server since 7.0.
#pragma once
#include <cstddef>
#include <cstdint>

namespace perhaps::redis {

struct Context;
struct String;
struct Key;
struct Io;
struct DigestSink;
struct DefragContext;
struct InfoContext;
struct DataType;
struct CommandHandle;
struct ServerInfo;

inline constexpr int kOk = 0;
inline constexpr int kError = 1;
inline constexpr long kLengthLater = -1;

inline constexpr int kReadKey = 1 << 0;
inline constexpr int kWriteKey = 1 << 1;
inline constexpr int kEmptyKey = 0;
inline constexpr int kModuleKey = 6;

// Flags of a context.
inline constexpr int kReplica = 1 << 3;
inline constexpr int kReplicated = 1 << 12;  // the command came from the primary
inline constexpr int kLoading = 1 << 13;
inline constexpr int kResp3 = 1 << 22;

inline constexpr int kHandleIoErrors = 1 << 0;
inline constexpr int kNotifyGeneric = 1 << 2;
inline constexpr unsigned kConfigHidden = 1 << 4;
inline constexpr unsigned kConfigUnprefixed = 1 << 9;  // Redis 8

using CommandFunction = int (*)(Context*, String**, int);

struct TypeMethods {
  std::uint64_t version = 3;
  void* (*rdb_load)(Io*, int encoding);
  void (*rdb_save)(Io*, void*);
  void (*aof_rewrite)(Io*, String* key, void*);
  std::size_t (*mem_usage)(const void*);
  void (*digest)(DigestSink*, void*);
  void (*free)(void*);
  int (*aux_load)(Io*, int, int) = nullptr;
  void (*aux_save)(Io*, int) = nullptr;
  int aux_save_triggers = 0;
  std::size_t (*free_effort)(String* key, const void*);
  void (*unlink)(String* key, const void*) = nullptr;
  void* (*copy)(String* from, String* to, const void*);
  int (*defrag)(DefragContext*, String* key, void**);
};

struct CommandHistory {
  const char* since;
  const char* changes;
};

struct CommandKeySpec {
  static constexpr std::uint64_t kReadOnly = 1 << 0, kReadWrite = 1 << 1, kOverwrite = 1 << 2;
  static constexpr std::uint64_t kAccess = 1 << 4, kUpdate = 1 << 5, kInsert = 1 << 6, kDelete = 1 << 7;
  static constexpr int kByIndex = 2, kRange = 2, kCounted = 3;

  struct Index {
    int position;
  };
  struct Keyword {
    const char* keyword;
    int start;
  };
  struct Range {
    int last;
    int step;
    int limit;
  };
  struct Counted {
    int count_index;
    int first;
    int step;
  };

  const char* notes = nullptr;
  std::uint64_t flags = 0;
  int begin = 0;
  union {
    Index index;
    Keyword keyword;
  };
  int find = 0;
  union {
    Range range;
    Counted counted;
  };
};

struct CommandArgument {
  enum Type : int { kString, kInteger, kDouble, kKey, kPattern, kTime, kToken, kOneOf, kBlock };
  static constexpr int kOptional = 1 << 0, kMultiple = 1 << 1;

  const char* name = nullptr;
  Type type = kString;
  int key_spec = -1;
  const char* token = nullptr;
  const char* summary = nullptr;
  const char* since = nullptr;
  int flags = 0;
  const char* deprecated_since = nullptr;
  CommandArgument* parts = nullptr;
  const char* display = nullptr;
};

struct CommandInfoVersion {
  int version = 1;
  std::size_t history_bytes = sizeof(CommandHistory);
  std::size_t key_spec_bytes = sizeof(CommandKeySpec);
  std::size_t argument_bytes = sizeof(CommandArgument);
};

struct CommandInfo {
  const CommandInfoVersion* version;
  const char* summary;
  const char* complexity;
  const char* since;
  const CommandHistory* history;
  const char* tips;
  int arity;
  CommandKeySpec* key_specs;
  CommandArgument* arguments;
};

using ConfigGetString = String* (*)(const char* name, void*);
using ConfigSetString = int (*)(const char* name, String*, void*, String** error);
using ConfigApply = int (*)(Context*, void*, String** error);

// name, result, parameters
#define PERHAPS_REDIS_FUNCTIONS(F)                                                                        \
  F(SetModuleAttribs, void, (Context*, const char*, int, int))                                            \
  F(IsModuleNameBusy, int, (const char*))                                                                 \
  F(SetModuleOptions, void, (Context*, int))                                                              \
  F(GetServerVersion, int, ())                                                                            \
  F(Log, void, (Context*, const char*, const char*, ...))                                                 \
  F(Alloc, void*, (std::size_t))                                                                          \
  F(Calloc, void*, (std::size_t, std::size_t))                                                            \
  F(Free, void, (void*))                                                                                  \
  F(TryAlloc, void*, (std::size_t))                                                                       \
  F(TryCalloc, void*, (std::size_t, std::size_t))                                                         \
  F(StringPtrLen, const char*, (const String*, std::size_t*))                                             \
  F(StringToLongLong, int, (const String*, long long*))                                                   \
  F(StringToDouble, int, (const String*, double*))                                                        \
  F(CreateString, String*, (Context*, const char*, std::size_t))                                          \
  F(FreeString, void, (Context*, String*))                                                                \
  F(CreateCommand, int, (Context*, const char*, CommandFunction, const char*, int, int, int))             \
  F(GetCommand, CommandHandle*, (Context*, const char*))                                                  \
  F(SetCommandInfo, int, (CommandHandle*, const CommandInfo*))                                            \
  F(AddACLCategory, int, (Context*, const char*))                                                         \
  F(SetCommandACLCategories, int, (CommandHandle*, const char*))                                          \
  F(IsKeysPositionRequest, int, (Context*))                                                               \
  F(KeyAtPos, void, (Context*, int))                                                                      \
  F(WrongArity, int, (Context*))                                                                          \
  F(ReplyWithError, int, (Context*, const char*))                                                         \
  F(ReplyWithSimpleString, int, (Context*, const char*))                                                  \
  F(ReplyWithStringBuffer, int, (Context*, const char*, std::size_t))                                     \
  F(ReplyWithLongLong, int, (Context*, long long))                                                        \
  F(ReplyWithDouble, int, (Context*, double))                                                             \
  F(ReplyWithBool, int, (Context*, int))                                                                  \
  F(ReplyWithNull, int, (Context*))                                                                       \
  F(ReplyWithArray, int, (Context*, long))                                                                \
  F(ReplyWithMap, int, (Context*, long))                                                                  \
  F(ReplySetArrayLength, void, (Context*, long))                                                          \
  F(GetContextFlags, int, (Context*))                                                                     \
  F(OpenKey, Key*, (Context*, String*, int))                                                              \
  F(CloseKey, void, (Key*))                                                                               \
  F(KeyType, int, (Key*))                                                                                 \
  F(DeleteKey, int, (Key*))                                                                               \
  F(ModuleTypeSetValue, int, (Key*, DataType*, void*))                                                    \
  F(ModuleTypeGetType, DataType*, (Key*))                                                                 \
  F(ModuleTypeGetValue, void*, (Key*))                                                                    \
  F(NotifyKeyspaceEvent, int, (Context*, int, const char*, String*))                                      \
  F(CreateDataType, DataType*, (Context*, const char*, int, TypeMethods*))                                \
  F(SaveUnsigned, void, (Io*, std::uint64_t))                                                             \
  F(LoadUnsigned, std::uint64_t, (Io*))                                                                   \
  F(SaveDouble, void, (Io*, double))                                                                      \
  F(LoadDouble, double, (Io*))                                                                            \
  F(SaveStringBuffer, void, (Io*, const char*, std::size_t))                                              \
  F(LoadStringBuffer, char*, (Io*, std::size_t*))                                                         \
  F(IsIOError, int, (Io*))                                                                                \
  F(EmitAOF, void, (Io*, const char*, const char*, ...))                                                  \
  F(DigestAddStringBuffer, void, (DigestSink*, const char*, std::size_t))                                 \
  F(DigestAddLongLong, void, (DigestSink*, long long))                                                    \
  F(DigestEndSequence, void, (DigestSink*))                                                               \
  F(DefragAlloc, void*, (DefragContext*, void*))                                                          \
  F(DefragShouldStop, int, (DefragContext*))                                                              \
  F(DefragCursorSet, int, (DefragContext*, unsigned long))                                                \
  F(DefragCursorGet, int, (DefragContext*, unsigned long*))                                               \
  F(Replicate, int, (Context*, const char*, const char*, ...))                                            \
  F(ReplicateVerbatim, int, (Context*))                                                                   \
  F(Milliseconds, long long, ())                                                                          \
  F(RegisterStringConfig, int,                                                                            \
    (Context*, const char*, const char*, unsigned, ConfigGetString, ConfigSetString, ConfigApply, void*)) \
  F(LoadConfigs, int, (Context*))                                                                         \
  F(RegisterInfoFunc, int, (Context*, void (*)(InfoContext*, int)))                                       \
  F(InfoAddSection, int, (InfoContext*, const char*))                                                     \
  F(InfoAddFieldULongLong, int, (InfoContext*, const char*, unsigned long long))                          \
  F(InfoAddFieldDouble, int, (InfoContext*, const char*, double))                                         \
  F(GetServerInfo, ServerInfo*, (Context*, const char*))                                                  \
  F(FreeServerInfo, void, (Context*, ServerInfo*))                                                        \
  F(ServerInfoGetFieldC, const char*, (ServerInfo*, const char*))                                         \
  F(ServerInfoGetFieldUnsigned, unsigned long long, (ServerInfo*, const char*, int*))

namespace api {
#define PERHAPS_REDIS_DECLARE(name, result, parameters) inline result(*name) parameters = nullptr;
PERHAPS_REDIS_FUNCTIONS(PERHAPS_REDIS_DECLARE)
#undef PERHAPS_REDIS_DECLARE

// Call this once, before anything else.
inline void bind(Context* context) noexcept {
  using Find = int (*)(const char*, void**);
  const auto find = *reinterpret_cast<Find*>(context);
#define PERHAPS_REDIS_FIND(name, result, parameters) find("RedisModule_" #name, reinterpret_cast<void**>(&name));
  PERHAPS_REDIS_FUNCTIONS(PERHAPS_REDIS_FIND)
#undef PERHAPS_REDIS_FIND
}
}  // namespace api

}  // namespace perhaps::redis
