// The C API: filters from files and bytes, and back.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "c/handle.h"
#include "c/options.h"
#include "c/status.h"
#include "c/structs.h"
#include "file/container_header.h"
#include "perhaps/file/shards.h"
#include "perhaps/file/writer.h"

namespace perhaps {
namespace {

struct Reading {
  bool copy = false;  // so that the filter can be changed and does not borrow
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

// What is out of range was written in the bytes.  REQUIRES: the caller's own words were read before
Result<void> of_bytes(Result<void> done) {
  if (done || done.error().code != Errc::bad_parameter) return done;
  return Error{Errc::bad_checksum, done.error().detail};
}

Result<void> open_any(perhaps_filter& handle, Bytes bytes, const perhaps_open_options& options, const std::string& name,
                      std::string file_name, bool copy) {
  if ((options.flags & ~unsigned{PERHAPS_BORROW | PERHAPS_NO_VERIFY}) != 0)
    return refused("perhaps_open_options: flags has a bit that this version of the library lacks");
  if (options.format == nullptr && is_container(bytes)) {
    if (options.parameters != nullptr) return refused(name + ": our own file has no parameters");
    Reading reading{.copy = copy, .verify = (options.flags & PERHAPS_NO_VERIFY) == 0, .secret = {}, .name = name};
    if (options.secret != nullptr) reading.secret = keyed(options.secret);
    return of_bytes(open_own(handle, bytes, reading));
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
  auto done = open_foreign(handle, bytes, copy);
  // With parameters, it may be them that the bytes do not fit: column=name, and no such column.
  return options.parameters == nullptr ? of_bytes(std::move(done)) : done;
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

}  // namespace

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
    // An exact set with parts and a range filter answer no digests; they are always in a file.
    const DigestProbe* const probe = from.filter->digests();
    const AnyHasher hasher = probe != nullptr ? probe->hasher() : from.file->hasher();
    if (const auto* secret = std::get_if<KeyedHash>(&hasher)) reading.secret = *secret;
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

}  // namespace perhaps

using namespace perhaps;  // NOLINT(google-build-using-namespace): the names of the C API are not in it

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

void perhaps_free(perhaps_filter* filter) { delete filter; }
