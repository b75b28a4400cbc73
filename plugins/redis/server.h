// What every command needs of the server: memory with a limit, settings, totals, arguments and replies.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

#include "format/redisbloom.h"
#include "redis/redis_api.h"

namespace perhaps::redis {

// ------------------------------------------------------------------------------------------------------- settings

inline constexpr long long kMostCapacity = 1 << 30;
inline constexpr long long kMostExpansion = 32768;
inline constexpr double kMostRate = 0.25;  // higher ones are taken for it

struct Settings {
  double bf_error_rate = 0.01;
  long long bf_initial_size = 100;
  long long bf_expansion_factor = 2;
  long long cf_bucket_size = 2;
  long long cf_initial_size = 1024;
  long long cf_max_iterations = 20;
  long long cf_expansion_factor = 1;
  long long cf_max_expansions = 32;
  long long bf_max_bytes_per_key = 0;  // 0: what is free under maxmemory, or of the machine
  long long bf_clock = 0;              // not 0: the time in milliseconds, so that a test need not wait for it
  bool prefetch = true;                // off: items one by one, only to measure what batches are worth
};
inline Settings settings;

// From the arguments of `loadmodule` and from CONFIG. False: refuse to load; the log says why.
bool load_settings(Context* context, String** argv, int argc) noexcept;

// --------------------------------------------------------------------------------------------------------- memory

// The server's allocator, so that maxmemory, MEMORY USAGE, INFO and defragmentation see every table.
extern const redisbloom::Memory kServer;

// While it lives, kServer gives a key no more than it may have: what a client asks for must not take the server down.
// What is loaded, replicated or read from the log was accepted before.
class Budget {
 public:
  Budget(Context* context, std::uint64_t bytes_in_use) noexcept;
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  bool refused() const noexcept { return refused_; }
  std::uint64_t left() const noexcept;
  bool grants(std::uint64_t bytes) noexcept;

 private:
  Context* context_;
  std::uint64_t in_use_;
  bool refused_ = false;
};

inline constexpr const char* kOverLimit = "ERR operation exceeds bloom object memory limit";

// --------------------------------------------------------------------------------------------------------- totals

// What one value adds to the totals that INFO shows.
struct Share {
  std::uint64_t bytes = 0;
  std::uint64_t filters = 0;
  std::uint64_t items = 0;
  std::uint64_t capacity = 0;
};

// Of a type. Values are freed by another thread.
struct Totals {
  std::atomic<std::uint64_t> objects{0}, bytes{0}, filters{0}, items{0}, capacity{0}, moved{0};
  void replace(const Share& before, const Share& now) noexcept {
    // Most changes are of the items only, and each costs a locked instruction.
    const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t difference) {
      if (difference != 0) to.fetch_add(difference, std::memory_order_relaxed);
    };
    add(bytes, now.bytes - before.bytes);
    add(filters, now.filters - before.filters);
    add(items, now.items - before.items);
    add(capacity, now.capacity - before.capacity);
  }
};

// ---------------------------------------------------------------------------------------------- arguments, replies

// One command being carried out.
struct Call {
  Context* context;
  String** argv;
  int argc;

  Bytes bytes(int i) const noexcept {
    std::size_t size = 0;
    const char* const text = api::StringPtrLen(argv[i], &size);
    return {reinterpret_cast<const std::byte*>(text), size};
  }
  bool is(int i, std::string_view upper_case) const noexcept;
  bool integer(int i, long long& value) const noexcept { return api::StringToLongLong(argv[i], &value) == kOk; }
  bool real(int i, double& value) const noexcept { return api::StringToDouble(argv[i], &value) == kOk; }
  String* key() const noexcept { return argv[1]; }

  bool resp3() const noexcept { return (api::GetContextFlags(context) & kResp3) != 0; }
  // The command came from a primary or from the log: its limits were checked there.
  bool obeyed() const noexcept { return (api::GetContextFlags(context) & (kReplicated | kLoading)) != 0; }

  int arity() const noexcept { return api::WrongArity(context); }
  int error(const char* text) const noexcept { return api::ReplyWithError(context, text); }
  int ok() const noexcept { return api::ReplyWithSimpleString(context, "OK"); }
  int number(std::uint64_t value) const noexcept {
    return api::ReplyWithLongLong(context, static_cast<long long>(value));
  }
  int signed_number(long long value) const noexcept { return api::ReplyWithLongLong(context, value); }
  int real(double value) const noexcept { return api::ReplyWithDouble(context, value); }
  // A boolean in RESP3, 0 or 1 in RESP2.
  int truth(bool value) const noexcept { return api::ReplyWithBool(context, value); }
  int array(std::uint64_t size) const noexcept { return api::ReplyWithArray(context, static_cast<long>(size)); }
  int map(long size) const noexcept { return api::ReplyWithMap(context, size); }
  int null() const noexcept { return api::ReplyWithNull(context); }
  int bulk(std::string_view text) const noexcept {
    return api::ReplyWithStringBuffer(context, text.data(), text.size());
  }
  int bulk(Bytes raw) const noexcept { return bulk({reinterpret_cast<const char*>(raw.data()), raw.size()}); }
  int word(const char* text) const noexcept { return api::ReplyWithSimpleString(context, text); }
  void field(const char* name, std::uint64_t value) const noexcept {
    word(name);
    number(value);
  }
  void event(const char* name) const noexcept { api::NotifyKeyspaceEvent(context, kNotifyGeneric, name, argv[1]); }
};

inline constexpr const char* kWrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr const char* kNotFound = "ERR not found";
inline constexpr const char* kExists = "ERR item exists";
inline constexpr const char* kNoMemoryToCreate = "ERR Insufficient memory to create filter";

// An open key, closed with this.
class OpenedKey {
 public:
  OpenedKey(Context* context, String* name, int mode) noexcept : key_(api::OpenKey(context, name, mode)) {}
  OpenedKey(const Call& call, int mode) noexcept : OpenedKey(call.context, call.key(), mode) {}
  ~OpenedKey() {
    if (key_ != nullptr) api::CloseKey(key_);
  }
  OpenedKey(const OpenedKey&) = delete;
  OpenedKey& operator=(const OpenedKey&) = delete;

  bool missing() const noexcept { return key_ == nullptr || api::KeyType(key_) == kEmptyKey; }
  // Null if it is missing or of another type.
  template <class Value>
  Value* get() const noexcept {
    return api::ModuleTypeGetType(key_) == Value::type ? static_cast<Value*>(api::ModuleTypeGetValue(key_)) : nullptr;
  }
  template <class Value>
  void set(Value* value) noexcept {
    api::ModuleTypeSetValue(key_, Value::type, value);
  }

 private:
  Key* key_;
};

// Shortest text that reads back as the same number.
std::string text_of(double value);

}  // namespace perhaps::redis
