// What every command needs: settings, totals, arguments and replies.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

#include "redis/budget.h"

namespace perhaps::redis {

// ------------------------------------------------------------------------------------------------------- settings

// The limits for clients. A primary or an append-only file of RedisBloom 2 may exceed them, and is obeyed.
inline constexpr long long kMaxCapacity = 1 << 30;
inline constexpr long long kMaxExpansion = 32768;
inline constexpr double kMaxRate = 0.25;  // higher rates are capped

struct Settings {
  double bf_error_rate = 0.01;
  long long bf_initial_size = 100;
  long long bf_expansion_factor = 2;
  long long cf_bucket_size = 2;
  long long cf_initial_size = 1024;
  long long cf_max_iterations = 20;
  long long cf_expansion_factor = 1;
  long long cf_max_expansions = 32;
  long long bf_max_bytes_per_key = 0;  // 0: only the limits of the server (budget.h)
  long long bf_replay_version = 2;     // of the RedisBloom that wrote the stream: 8 caps rates, 2 does not
  bool valkey = false;                 // bf-compat valkey: make valkey-bloom's filters and reply as it does
  // valkey-bloom's own, in force with bf-compat valkey.
  long long bloom_capacity = 100;
  long long bloom_expansion = 2;
  double bloom_fp_rate = 0.01;
  double bloom_tightening_ratio = 0.5;
  long long bloom_memory_usage_limit = 128 << 20;
  bool bloom_use_random_seed = true;
  bool bloom_defrag_enabled = true;
  bool prefetch = true;  // off: items one by one, to measure what batches gain
};
inline Settings settings;

// From the arguments of `loadmodule`, then from the configuration file and CONFIG SET. False: refuse to load; the log
// says why.
bool read_arguments(Context* context, String** argv, int argc) noexcept;
bool register_settings(Context* context) noexcept;

// --------------------------------------------------------------------------------------------------------- totals

// What one value adds to the totals that INFO shows.
struct Share {
  std::uint64_t bytes = 0;
  std::uint64_t filters = 0;
  std::uint64_t items = 0;
  std::uint64_t capacity = 0;
  std::uint64_t rate = 0;  // estimated false-positive rate, in units of 2^-32: a sum of them must come back to 0

  static constexpr double kRateUnit = 0x1p-32;
};

// The totals of a type. Atomic, because another thread frees values.
struct Totals {
  std::atomic<std::uint64_t> objects{0}, bytes{0}, filters{0}, items{0}, capacity{0}, rate{0}, growths{0}, moved{0};
  void replace(const Share& before, const Share& now) noexcept {
    // Most changes concern the items only, and each addition costs a locked instruction.
    const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t difference) {
      if (difference != 0) to.fetch_add(difference, std::memory_order_relaxed);
    };
    add(bytes, now.bytes - before.bytes);
    add(filters, now.filters - before.filters);
    add(items, now.items - before.items);
    add(capacity, now.capacity - before.capacity);
    add(rate, now.rate - before.rate);
    if (before.filters == 0) return;
    if (now.filters > before.filters) add(growths, now.filters - before.filters);
    // In place, as the growing filter does.
    if (now.filters == before.filters && now.capacity > before.capacity) add(growths, 1);
  }
};

// What was refused, of all types.
struct Refusals {
  std::atomic<std::uint64_t> over_limit{0};  // by a memory limit (budget.h)
  std::atomic<std::uint64_t> no_memory{0};   // by the allocator
  std::atomic<std::uint64_t> full{0};        // items for a filter that may not grow
  std::atomic<std::uint64_t> bad_data{0};    // headers, chunks and dumps
};
inline Refusals refusals;

// ---------------------------------------------------------------------------------------------- arguments, replies

// One command that is being executed.
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
  // Letter `at` of word i, in lower case; 0 past its end.
  char letter(int i, std::size_t at) const noexcept;
  bool integer(int i, long long& value) const noexcept { return api::StringToLongLong(argv[i], &value) == kOk; }
  bool real(int i, double& value) const noexcept { return api::StringToDouble(argv[i], &value) == kOk; }
  String* key() const noexcept { return argv[1]; }

  bool resp3() const noexcept { return (api::GetContextFlags(context) & kResp3) != 0; }
  // The command came from a primary or from the append-only file. It was accepted there, so it is carried out.
  bool obeyed() const noexcept { return (api::GetContextFlags(context) & (kReplicated | kLoading)) != 0; }

  int arity() const noexcept { return api::WrongArity(context); }
  int error(const char* text) const noexcept { return api::ReplyWithError(context, text); }
  int ok() const noexcept { return api::ReplyWithSimpleString(context, "OK"); }
  int number(std::uint64_t value) const noexcept {
    return api::ReplyWithLongLong(context, static_cast<long long>(value));
  }
  int signed_number(long long value) const noexcept { return api::ReplyWithLongLong(context, value); }
  int real(double value) const noexcept { return api::ReplyWithDouble(context, value); }
  // A boolean in RESP3, 0 or 1 in RESP2 and from valkey-bloom.
  int truth(bool value) const noexcept {
    return settings.valkey ? signed_number(value) : api::ReplyWithBool(context, value);
  }
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

// An open key, closed by the destructor.
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

// The shortest text that reads back as the same number.
std::string text_of(double value);

}  // namespace perhaps::redis
