// The C API over the run-time interface: handles, statuses, structs that may grow. No filter, hash or format is here.
#include "perhaps.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "any/own_filter.h"
#include "c/handle.h"
#include "file/container_header.h"
#include "perhaps/any_filter.h"
#include "perhaps/detail/threads.h"
#include "perhaps/file/container.h"
#include "perhaps/file/mapping.h"
#include "perhaps/file/shards.h"
#include "perhaps/file/writer.h"
#include "perhaps/format/format.h"
#include "perhaps/memory.h"

using perhaps::AnyFilter;
using perhaps::Bytes;
using perhaps::Result;

namespace perhaps {
namespace {

// ------------------------------------------------------------------------------------------------- failures, structs

// Not a string: saying that there is no memory must not need any.
thread_local std::array<char, 1024> last_error{};

perhaps_status failed(perhaps_status status, std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), last_error.size() - 1);
  std::memcpy(last_error.data(), text.data(), size);
  last_error[size] = 0;
  return status;
}

constexpr perhaps_status status_of(Errc code) noexcept {
  return static_cast<perhaps_status>(static_cast<int>(code) + 1);
}
static_assert(status_of(Errc::truncated) == PERHAPS_TRUNCATED && status_of(Errc::bad_magic) == PERHAPS_BAD_MAGIC &&
              status_of(Errc::bad_version) == PERHAPS_BAD_VERSION &&
              status_of(Errc::bad_checksum) == PERHAPS_BAD_CHECKSUM &&
              status_of(Errc::bad_parameter) == PERHAPS_BAD_PARAMETER && status_of(Errc::bad_key) == PERHAPS_BAD_KEY &&
              status_of(Errc::mismatch) == PERHAPS_MISMATCH && status_of(Errc::full) == PERHAPS_FULL &&
              status_of(Errc::unsupported) == PERHAPS_UNSUPPORTED && status_of(Errc::io) == PERHAPS_IO);

// Runs what may fail or throw. Nothing is thrown past this.
template <class Work>
perhaps_status guarded(Work work) noexcept {
  try {
    const Result<void> done = work();
    if (done) return PERHAPS_OK;
    return failed(status_of(done.error().code), done.error().detail);
  } catch (const std::bad_alloc&) {
    return failed(PERHAPS_NO_MEMORY, "not enough memory");
  } catch (const std::exception& e) {
    return failed(PERHAPS_INTERNAL, e.what());
  } catch (...) {
    return failed(PERHAPS_INTERNAL, "an unknown exception");
  }
}

Error refused(std::string what) { return {Errc::unsupported, std::move(what)}; }
Error out_of_range(std::string what) { return {Errc::bad_parameter, std::move(what)}; }

// The caller's struct as this library knows it: what an older caller lacks is zero, what a newer one adds must be.
template <class Struct>
Result<Struct> read(const Struct* from, const char* name) {
  Struct known{};
  const std::size_t given = from->size;
  if (given < sizeof given) return out_of_range(std::string(name) + ": size is not set");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  std::copy_n(bytes, std::min(given, sizeof known), reinterpret_cast<unsigned char*>(&known));
  for (std::size_t i = sizeof known; i < given; ++i) {
    if (bytes[i] != 0) return refused(std::string(name) + ": has a field that this version of the library lacks");
  }
  return known;
}
template <class Struct>
Result<Struct> read_or_default(const Struct* from, const char* name) {
  return from == nullptr ? Result<Struct>(Struct{}) : read(from, name);
}

// As much of it as the caller has room for.
template <class Struct>
Result<void> answer(Struct value, Struct* to, const char* name) {
  const std::size_t room = to->size;
  if (room < sizeof room) return out_of_range(std::string(name) + ": size is not set");
  value.size = room;
  std::memcpy(to, &value, std::min(room, sizeof value));
  return {};
}

template <std::size_t N>
void put(char (&to)[N], std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

// ------------------------------------------------------------------------------------------------------------ options

KeyedHash keyed(const unsigned char* secret) {
  KeyedHash::Secret bytes;
  std::memcpy(bytes.data(), secret, bytes.size());
  return KeyedHash(bytes);
}

struct Plan {
  Kind kind{};
  AnyRequest request;
  AnyHasher hasher;
  unsigned threads = 1;
};

Result<Plan> plan_of(const perhaps_options& options) {
  Plan plan;
  const std::string_view name = options.family == nullptr ? "line" : options.family;
  const auto kind = kind_named(name);
  if (!kind || find_family(*kind) == nullptr) {
    std::string all;
    for (const Family& family : families()) all += (all.empty() ? "" : ", ") + std::string(family.name);
    return out_of_range("'" + std::string(name) + "' is no family; there are " + all);
  }
  plan.kind = *kind;
  plan.request = {.keys = options.keys,
                  .fpr = options.fpr == 0 ? AnyRequest{}.fpr : options.fpr,
                  .bits_per_key = options.bits_per_key,
                  .max_bytes = options.max_bytes,
                  .guard_bits = options.guard_bits,
                  .arity = options.arity};
  if (options.secret != nullptr) {
    if (options.seed != nullptr) return out_of_range("seed: a keyed hash has a secret and no seed");
    plan.hasher = keyed(options.secret);
  } else {
    plan.hasher = options.seed == nullptr ? Hash() : Hash(*options.seed);
  }
  plan.threads = std::max(options.threads, 1u);
  return plan;
}

Result<const format::Codec*> codec_named(std::string_view name) {
  if (const format::Codec* const codec = format::find(name)) return codec;
  return out_of_range("'" + std::string(name) + "' is no format");
}

// "name=value name=value"
Result<format::Params> params_of(const format::Codec& codec, const char* text) {
  format::Params params(codec);
  std::string_view left = text == nullptr ? "" : text;
  while (!left.empty()) {
    const std::string_view one = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) return out_of_range("'" + std::string(one) + "' is not name=value");
    if (params.given(one.substr(0, equals))) return out_of_range(std::string(one) + ": set twice");
    if (auto done = params.set(one.substr(0, equals), one.substr(equals + 1)); !done) return done.error();
  }
  return params;
}

// A number of the options for the parameter that has this meaning.
Result<void> apply(const format::Codec& codec, format::Params& params, format::Param::Means means, const char* field,
                   const std::string& value) {
  const auto param =
      std::find_if(codec.params.begin(), codec.params.end(), [&](const auto& p) { return p.means == means; });
  if (param == codec.params.end())
    return refused(std::string(codec.name) + ": " + field + ": the format has no such parameter");
  if (params.given(param->name))
    return out_of_range(std::string(codec.name) + ": " + field + " and " + std::string(param->name) + " are the same");
  return params.set(param->name, value);
}

std::string shortest(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

Result<format::Params> params_of(const format::Codec& codec, const perhaps_options& options) {
  using Means = format::Param::Means;
  auto params = params_of(codec, options.parameters);
  if (!params) return params;
  const std::pair<const char*, bool> ours[] = {
      {"family", options.family != nullptr},   {"max_bytes", options.max_bytes != 0},
      {"guard_bits", options.guard_bits != 0}, {"arity", options.arity != 0},
      {"seed", options.seed != nullptr},       {"secret", options.secret != nullptr}};
  for (const auto& [field, given] : ours) {
    if (given) return refused(std::string(codec.name) + ": " + field + ": only our own filters have it");
  }
  Result<void> done;
  if (done && options.fpr != 0) done = apply(codec, *params, Means::fpr, "fpr", shortest(options.fpr));
  if (done && options.bits_per_key != 0)
    done = apply(codec, *params, Means::bits_per_key, "bits_per_key", shortest(options.bits_per_key));
  if (done && options.keys != 0) done = apply(codec, *params, Means::keys, "keys", std::to_string(options.keys));
  if (!done) return done.error();
  return params;
}

// -------------------------------------------------------------------------------------------------------------- keys

constexpr std::size_t kChunk = 1024;
constexpr std::size_t words_of(std::size_t keys) noexcept { return (keys + kBatch - 1) / kBatch; }

Bytes bytes_of(const perhaps_key& key) noexcept { return {static_cast<const std::byte*>(key.data), key.size}; }

// Hands keys to `use` as spans of at most kChunk, until it returns false. The caller's array is not one of Bytes, and
// is translated on the stack.
template <class Use>
bool in_chunks(std::span<const perhaps_key> keys, Use use) {
  std::array<Bytes, kChunk> chunk;
  for (std::size_t from = 0; from < keys.size(); from += kChunk) {
    const std::size_t count = std::min(kChunk, keys.size() - from);
    for (std::size_t i = 0; i < count; ++i) chunk[i] = bytes_of(keys[from + i]);
    if (!use(std::span<const Bytes>(chunk.data(), count))) return false;
  }
  return true;
}
// The same as digests.
template <class Key, class Use>
bool in_digests(const AnyHasher& hasher, std::span<const Key> keys, Use use) {
  std::array<std::uint64_t, kChunk> digests;
  if constexpr (std::same_as<Key, perhaps_key>) {
    return in_chunks(keys, [&](std::span<const Bytes> chunk) {
      hash_many(hasher, chunk, digests);
      return use(std::span<const std::uint64_t>(digests.data(), chunk.size()));
    });
  } else {
    for (std::size_t from = 0; from < keys.size(); from += kChunk) {
      const auto chunk = keys.subspan(from, std::min(kChunk, keys.size() - from));
      std::visit(
          [&](const auto& h) {
            for (std::size_t i = 0; i < chunk.size(); ++i) digests[i] = digest_of(h, chunk[i]).value;
          },
          hasher);
      if (!use(std::span<const std::uint64_t>(digests.data(), chunk.size()))) return false;
    }
    return true;
  }
}

// ------------------------------------------------------------------------------------------------------------ handles

void hold(perhaps_filter& handle, std::unique_ptr<AnyFilter> filter) {
  handle.filter = filter.get();
  handle.ours = own_filter_of(*filter);
  handle.owner = dynamic_cast<AnyOwner*>(filter.get());
  handle.changing = dynamic_cast<AnyMutable*>(filter.get());
  handle.own = std::move(filter);
}

std::unique_ptr<perhaps_filter> handle_of(std::unique_ptr<AnyFilter> filter) {
  auto handle = std::make_unique<perhaps_filter>();
  hold(*handle, std::move(filter));
  return handle;
}

struct Reading {
  bool copy = false;  // so that the filter can be changed and depends on nothing
  bool verify = true;
  std::optional<KeyedHash> secret;
  std::string name;  // for messages
};

// Over our own bytes, which `handle` keeps, borrows or copies.
Result<void> open_own(perhaps_filter& handle, Bytes bytes, const Reading& reading) {
  const OpenOptions options{.verify = reading.verify, .secret = reading.secret};
  auto file = File::over(bytes, options, reading.name);
  if (!file) return std::move(file).error();
  if (reading.copy) {
    const Family* const family = find_family(file->header().kind);
    if (family != nullptr && family->inserts) {
      auto loaded = file->load();
      if (!loaded) return std::move(loaded).error();
      hold(handle, *std::move(loaded));
      return {};
    }
    handle.copied = Memory(bytes.size());
    std::memcpy(handle.copied.data(), bytes.data(), bytes.size());
    bytes = handle.copied.bytes();
    file = File::over(bytes, {.verify = false, .secret = reading.secret}, reading.name);
    if (!file) return std::move(file).error();
  }
  handle.source = bytes;
  handle.file = *std::move(file);
  hold(handle, handle.file->any());
  return {};
}

// Over the bytes of another system.
Result<void> open_foreign(perhaps_filter& handle, Bytes bytes, bool copy) {
  if (copy) {
    handle.copied = Memory(bytes.size());
    if (!bytes.empty()) std::memcpy(handle.copied.data(), bytes.data(), bytes.size());
    bytes = handle.copied.bytes();
  }
  const format::Source source{.bytes = bytes, .file_name = handle.file_name};
  auto opened = handle.codec->open(source, *handle.params);
  if (!opened) return std::move(opened).error();
  handle.source = bytes;
  handle.opened = *std::move(opened);
  handle.filter = handle.opened.whole.get();
  return {};
}

Result<void> open_any(perhaps_filter& handle, Bytes bytes, const perhaps_open_options& options, const std::string& name,
                      std::string file_name, bool copy) {
  if ((options.flags & ~unsigned{PERHAPS_BORROW | PERHAPS_NO_VERIFY}) != 0)
    return refused("perhaps_open_options: flags has a bit that this version of the library lacks");
  if (options.format == nullptr && is_container(bytes)) {
    if (options.parameters != nullptr) return refused(name + ": our own file has no parameters");
    Reading reading{.copy = copy, .verify = (options.flags & PERHAPS_NO_VERIFY) == 0, .secret = {}, .name = name};
    if (options.secret != nullptr) reading.secret = keyed(options.secret);
    return open_own(handle, bytes, reading);
  }
  if (options.format == nullptr && is_shards(bytes)) return refused(name + ": a file of shards: open them one by one");
  handle.file_name = std::move(file_name);
  auto codec = options.format != nullptr ? codec_named(options.format)
                                         : format::detect({.bytes = bytes, .file_name = handle.file_name});
  if (!codec) return std::move(codec).error();
  if (options.secret != nullptr)
    return Error{Errc::bad_key, name + ": " + std::string((*codec)->name) + ": its hash has no secret"};
  handle.codec = *codec;
  auto params = params_of(*handle.codec, options.parameters);
  if (!params) return std::move(params).error();
  handle.params = *std::move(params);
  return open_foreign(handle, bytes, copy);
}

// REQUIRES: it has an owner
Header header_of(const perhaps_filter& filter) {
  return filter.ours.header(*filter.filter->digests(), filter.filter->record());
}

// The bytes of its file, in memory of its own.
Result<Memory> file_of(const perhaps_filter& filter) {
  const Header header = header_of(filter);
  const auto size = container_size(header);
  if (!size) return size.error();
  Memory bytes(*size);
  if (auto done = write_container(bytes.bytes(), header); !done) return done.error();
  return bytes;
}

Result<std::unique_ptr<perhaps_filter>> copy_of(const perhaps_filter& from) {
  auto copy = std::make_unique<perhaps_filter>();
  Result<void> done;
  if (from.codec != nullptr) {
    copy->codec = from.codec;
    copy->params = from.params;
    copy->file_name = from.file_name;
    done = open_foreign(*copy, from.source, true);
  } else {
    Reading reading{.copy = true, .verify = false, .secret = {}, .name = "copy"};
    if (const DigestProbe* const probe = from.filter->digests()) {  // a range filter has none, and no secret
      const AnyHasher hasher = probe->hasher();
      if (const auto* secret = std::get_if<KeyedHash>(&hasher)) reading.secret = *secret;
    }
    if (from.owner != nullptr) {
      const auto bytes = file_of(from);
      if (!bytes) return bytes.error();
      done = open_own(*copy, bytes->bytes(), reading);
    } else {
      done = open_own(*copy, from.source, reading);
    }
  }
  if (!done) return done.error();
  return copy;
}

Result<AnyMutable*> changing(perhaps_filter& filter) {
  if (filter.changing != nullptr) return filter.changing;
  const std::string family = filter.filter->describe().family;
  const auto kind = kind_named(family);
  const Family* const about = kind ? find_family(*kind) : nullptr;
  if (filter.codec != nullptr) return refused(std::string(filter.codec->name) + ": read-only");
  if (about != nullptr && about->inserts) return refused("read-only, as it was opened: copy it to change it");
  return refused("a " + family + " filter cannot be changed: build another");
}

// -------------------------------------------------------------------------------------------------------------- verbs

template <class Key>
Result<std::unique_ptr<perhaps_filter>> built(const Plan& plan, std::span<const Key> keys) {
  auto builder = make_builder(plan.kind, plan.request, plan.hasher, {.threads = plan.threads});
  if (!builder) return std::move(builder).error();
  {
    auto lanes = (*builder)->lanes(plan.threads);
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < lanes.size(); i = next++) {
        const std::size_t from = keys.size() * i / lanes.size();
        const auto part = keys.subspan(from, keys.size() * (i + 1) / lanes.size() - from);
        in_digests(plan.hasher, part, [&](auto digests) { return lanes[i]->insert_digests(digests); });
      }
    };
    const detail::Threads others(static_cast<unsigned>(lanes.size()) - 1, work);
    work();
  }
  auto filter = (*builder)->finish();
  if (!filter) return std::move(filter).error();
  return handle_of(*std::move(filter));
}

Result<std::unique_ptr<perhaps_filter>> built_foreign(const perhaps_options& options,
                                                      std::span<const perhaps_key> keys) {
  auto codec = codec_named(options.format);
  if (!codec) return std::move(codec).error();
  if ((*codec)->build == nullptr) return refused(std::string((*codec)->name) + ": is read, but cannot be built");
  auto params = params_of(**codec, options);
  if (!params) return std::move(params).error();
  std::vector<Bytes> all;
  all.reserve(keys.size());
  for (const perhaps_key& key : keys) all.push_back(bytes_of(key));
  const auto bytes = (*codec)->build(all, *params);
  if (!bytes) return bytes.error();
  auto handle = std::make_unique<perhaps_filter>();
  handle->codec = *codec;
  handle->params = *std::move(params);
  if (auto done = open_foreign(*handle, *bytes, true); !done) return done.error();
  return handle;
}

template <class Key>
perhaps_status build(const perhaps_options* given, std::span<const Key> keys, perhaps_filter** filter) noexcept {
  return guarded([&]() -> Result<void> {
    const auto options = read(given, "perhaps_options");
    if (!options) return options.error();
    Result<std::unique_ptr<perhaps_filter>> made = refused("formats of other systems are built from bytes only");
    if (options->format == nullptr) {
      if (options->parameters != nullptr) return refused("parameters: only formats of other systems have them");
      const auto plan = plan_of(*options);
      if (!plan) return plan.error();
      made = built(*plan, keys);
    } else if constexpr (std::same_as<Key, perhaps_key>) {
      made = built_foreign(*options, keys);
    }
    if (!made) return made.error();
    *filter = made->release();
    return {};
  });
}

template <class Key>
perhaps_status insert(perhaps_filter* filter, std::span<const Key> keys, std::size_t* inserted) noexcept {
  return guarded([&]() -> Result<void> {
    const auto to = changing(*filter);
    if (!to) return to.error();
    std::size_t count = 0;
    in_digests((*to)->digests()->hasher(), keys, [&](auto digests) {
      const std::size_t went_in = (*to)->insert_digests(digests);
      count += went_in;
      return went_in == digests.size();
    });
    if (inserted != nullptr) *inserted = count;
    if (count == keys.size()) return {};
    return Error{Errc::full, "full after " + std::to_string(count) + " of " + std::to_string(keys.size()) + " keys"};
  });
}

template <class Key>
perhaps_status erase(perhaps_filter* filter, std::span<const Key> keys, perhaps_erased* erased) noexcept {
  return guarded([&]() -> Result<void> {
    const auto from = changing(*filter);
    if (!from) return from.error();
    Result<ErasedCounts> counts = (*from)->erase_digests({});  // refuses, where the family cannot
    if (!counts) return counts.error();
    ErasedCounts all;
    in_digests((*from)->digests()->hasher(), keys, [&](auto digests) {
      counts = (*from)->erase_digests(digests);
      if (!counts) return false;
      all.removed += counts->removed;
      all.absent += counts->absent;
      all.kept += counts->kept;
      return true;
    });
    if (!counts) return counts.error();
    if (erased == nullptr) return {};
    return answer({.size = 0, .removed = all.removed, .absent = all.absent, .kept = all.kept}, erased,
                  "perhaps_erased");
  });
}

// With itself, a filter is combined as with a copy.
template <class Combine>
perhaps_status combine(perhaps_filter* filter, const perhaps_filter* other, Combine with) noexcept {
  return guarded([&]() -> Result<void> {
    const auto to = changing(*filter);
    if (!to) return to.error();
    if (filter != other) return with(**to, *other->filter);
    const auto copy = copy_of(*other);
    if (!copy) return copy.error();
    return with(**to, *(*copy)->filter);
  });
}

Result<void> write_entry(const perhaps_entry& entry, perhaps_entry* to) { return answer(entry, to, "perhaps_entry"); }

}  // namespace
}  // namespace perhaps

// ------------------------------------------------------------------------------------------------------- the functions

using namespace perhaps;  // NOLINT(google-build-using-namespace): the names of the C API are not in it

const char* perhaps_version(void) { return PERHAPS_VERSION; }

const char* perhaps_last_error(void) { return last_error.data(); }

perhaps_status perhaps_new(const perhaps_options* options, perhaps_filter** filter) {
  return guarded([&]() -> Result<void> {
    const auto known = read(options, "perhaps_options");
    if (!known) return known.error();
    if (known->format != nullptr || known->parameters != nullptr)
      return refused("a format of another system is built from all of its keys at once");
    const auto plan = plan_of(*known);
    if (!plan) return plan.error();
    auto made = make_any(plan->kind, plan->request, plan->hasher);
    if (!made) return made.error();
    *filter = handle_of(*std::move(made)).release();
    return {};
  });
}

perhaps_status perhaps_build(const perhaps_options* options, const perhaps_key* keys, size_t count,
                             perhaps_filter** filter) {
  return build(options, std::span(keys, count), filter);
}

perhaps_status perhaps_build_integers(const perhaps_options* options, const uint64_t* integers, size_t count,
                                      perhaps_filter** filter) {
  return build(options, std::span(integers, count), filter);
}

perhaps_status perhaps_open(const char* path, const perhaps_open_options* options, perhaps_filter** filter) {
  return guarded([&]() -> Result<void> {
    const auto known = read_or_default(options, "perhaps_open_options");
    if (!known) return known.error();
    if (known->file_name != nullptr) return refused("perhaps_open: file_name: the path has it");
    auto handle = std::make_unique<perhaps_filter>();
    const bool verify = (known->flags & PERHAPS_NO_VERIFY) == 0;
    auto mapping = Mapping::open(path, verify ? Mapping::Access::sequential : Mapping::Access::normal);
    if (!mapping) return mapping.error();
    handle->mapping = *std::move(mapping);
    const std::string_view whole = path;
    auto done = open_any(*handle, handle->mapping.bytes(), *known, path,
                         std::string(whole.substr(whole.find_last_of('/') + 1)), /*copy=*/false);
    if (!done) return done;
    handle->mapping.expect(Mapping::Access::random);
    *filter = handle.release();
    return {};
  });
}

perhaps_status perhaps_from_bytes(const void* bytes, size_t size, const perhaps_open_options* options,
                                  perhaps_filter** filter) {
  return guarded([&]() -> Result<void> {
    const auto known = read_or_default(options, "perhaps_open_options");
    if (!known) return known.error();
    auto handle = std::make_unique<perhaps_filter>();
    const std::string name = known->file_name == nullptr ? "" : known->file_name;
    auto done = open_any(*handle, {static_cast<const std::byte*>(bytes), size}, *known, name.empty() ? "bytes" : name,
                         name, (known->flags & PERHAPS_BORROW) == 0);
    if (!done) return done;
    *filter = handle.release();
    return {};
  });
}

perhaps_status perhaps_copy(const perhaps_filter* filter, perhaps_filter** copy) {
  return guarded([&]() -> Result<void> {
    auto made = copy_of(*filter);
    if (!made) return made.error();
    *copy = made->release();
    return {};
  });
}

perhaps_status perhaps_insert(perhaps_filter* filter, const perhaps_key* keys, size_t count, size_t* inserted) {
  return insert(filter, std::span(keys, count), inserted);
}

perhaps_status perhaps_insert_integers(perhaps_filter* filter, const uint64_t* integers, size_t count,
                                       size_t* inserted) {
  return insert(filter, std::span(integers, count), inserted);
}

perhaps_status perhaps_query(const perhaps_filter* filter, const perhaps_key* keys, size_t count, uint64_t* answers) {
  if (count == 1) {
    *answers = filter->filter->may_contain(bytes_of(*keys)) ? 1 : 0;
    return PERHAPS_OK;
  }
  in_chunks(std::span(keys, count), [&](std::span<const Bytes> chunk) {
    filter->filter->may_contain(chunk, std::span(answers, words_of(chunk.size())));
    answers += words_of(chunk.size());
    return true;
  });
  return PERHAPS_OK;
}

perhaps_status perhaps_query_integers(const perhaps_filter* filter, const uint64_t* integers, size_t count,
                                      uint64_t* answers) {
  const DigestProbe* const probe = filter->filter->digests();
  if (filter->ours.may_contain_integers != nullptr) {
    filter->ours.may_contain_integers(*probe, std::span(integers, count), std::span(answers, words_of(count)));
    return PERHAPS_OK;
  }
  if (probe == nullptr) return failed(PERHAPS_UNSUPPORTED, "this format hashes bytes: it has no integers");
  in_digests(probe->hasher(), std::span(integers, count), [&](auto digests) {
    probe->may_contain(digests, std::span(answers, words_of(digests.size())));
    answers += words_of(digests.size());
    return true;
  });
  return PERHAPS_OK;
}

perhaps_status perhaps_erase(perhaps_filter* filter, const perhaps_key* keys, size_t count, perhaps_erased* erased) {
  return erase(filter, std::span(keys, count), erased);
}

perhaps_status perhaps_erase_integers(perhaps_filter* filter, const uint64_t* integers, size_t count,
                                      perhaps_erased* erased) {
  return erase(filter, std::span(integers, count), erased);
}

perhaps_status perhaps_merge(perhaps_filter* filter, const perhaps_filter* other) {
  return combine(filter, other, [](AnyMutable& to, const AnyFilter& from) { return to.merge(from); });
}

perhaps_status perhaps_intersect(perhaps_filter* filter, const perhaps_filter* other) {
  return combine(filter, other, [](AnyMutable& to, const AnyFilter& from) { return to.intersect(from); });
}

perhaps_status perhaps_save(const perhaps_filter* filter, const char* path) {
  return guarded([&]() -> Result<void> {
    if (filter->owner != nullptr) return filter->owner->save(path, filter->owner->record());
    return write_file(path, filter->source);
  });
}

perhaps_status perhaps_to_bytes(const perhaps_filter* filter, void* buffer, size_t capacity, size_t* size) {
  bool fits = true;
  const perhaps_status status = guarded([&]() -> Result<void> {
    if (filter->owner == nullptr) {
      *size = filter->source.size();
      fits = capacity >= *size;
      if (fits && *size != 0) std::memcpy(buffer, filter->source.data(), *size);
      return {};
    }
    const Header header = header_of(*filter);
    const auto needed = container_size(header);
    if (!needed) return needed.error();
    *size = memory_size(*needed);
    fits = capacity >= *size;
    return fits ? write_container(std::span(static_cast<std::byte*>(buffer), *size), header) : Result<void>();
  });
  if (status != PERHAPS_OK || fits) return status;
  return failed(PERHAPS_TOO_SMALL, "the buffer is smaller than the file");
}

uint64_t perhaps_byte_size(const perhaps_filter* filter) { return filter->filter->byte_size(); }

perhaps_status perhaps_describe(const perhaps_filter* filter, perhaps_description* description) {
  return guarded([&]() -> Result<void> {
    const Description from = filter->filter->describe();
    perhaps_description to{};
    put(to.format, from.format);
    put(to.family, from.family);
    put(to.hash, from.hash);
    to.bytes = from.bytes;
    to.bits = from.bits;
    to.probes = from.probes;
    to.keys = from.keys.value_or(0);
    to.capacity = from.capacity.value_or(0);
    to.keys_estimated = from.keys_estimated;
    to.fill = from.fill;
    to.fpr = from.fpr;
    to.fpr_at_capacity = from.fpr_at_capacity;
    to.read_only = filter->changing == nullptr ? 1 : 0;
    return answer(to, description, "perhaps_description");
  });
}

perhaps_status perhaps_size_of(const perhaps_options* options, perhaps_sizes* sizes) {
  return guarded([&]() -> Result<void> {
    const auto known = read(options, "perhaps_options");
    if (!known) return known.error();
    if (known->format != nullptr) return refused("a format of another system has no model of its size");
    const auto plan = plan_of(*known);
    if (!plan) return plan.error();
    const auto size = size_of(plan->kind, plan->request);
    if (!size) return size.error();
    return answer({.size = 0, .bytes = size->bytes, .bits = size->bits, .probes = size->probes, .fpr = size->fpr},
                  sizes, "perhaps_sizes");
  });
}

int perhaps_family_at(size_t index, perhaps_entry* entry) {
  if (index >= families().size()) return 0;
  const Family& family = families()[index];
  return guarded([&] {
           return write_entry({.size = 0,
                               .name = family.name.data(),
                               .summary = family.summary.data(),
                               .inserts = family.inserts,
                               .erases = family.erases,
                               .merges = family.merges,
                               .builds = 1},
                              entry);
         }) == PERHAPS_OK;
}

int perhaps_format_at(size_t index, perhaps_entry* entry) {
  if (index >= format::codecs().size()) return 0;
  const format::Codec& codec = *format::codecs()[index];
  return guarded([&] {
           return write_entry({.size = 0,
                               .name = codec.name.data(),
                               .summary = codec.summary.data(),
                               .inserts = 0,
                               .erases = 0,
                               .merges = 0,
                               .builds = codec.build != nullptr},
                              entry);
         }) == PERHAPS_OK;
}

void perhaps_free(perhaps_filter* filter) { delete filter; }
