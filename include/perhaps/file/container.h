// Our own file: one filter, self-describing, checksummed, mapped without copying. doc/container.md has every byte.
//
//   save("seen.perhaps", filter, {.keys = n});
//   auto file = File::open("seen.perhaps");           // maps; checks magic, version, sizes, checksums
//   auto seen = file->as<perhaps::LineBloomView>();   // typed, O(1); or file->any() when the family is not known
//
// A damaged, truncated, foreign or newer file is an Error that says which. Writing is atomic: a reader sees the old
// file or the new one, whole, whatever happens to the writer.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "perhaps/algebra.h"
#include "perhaps/any_filter.h"
#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/file/mapping.h"
#include "perhaps/line_bloom.h"
#include "perhaps/memory.h"
#include "perhaps/result.h"

namespace perhaps {

// How keys were hashed, with the numbers that files carry.
enum class Scheme : std::uint32_t { xxh3_64 = 1, siphash_1_3 = 2 };
// "xxh3-64" or "siphash-1-3".
PERHAPS_API std::string_view name_of(Scheme scheme) noexcept;

// What the header says, apart from the payload.
struct Header {
  Kind kind{};
  Scheme scheme{};
  std::uint64_t seed = 0;  // xxh3-64: the seed; siphash-1-3: the check value of the secret
  Record record{};
  std::vector<std::uint64_t> params{};
  // A run of bytes in the file, such as the table of a filter.
  struct Section {
    std::uint32_t type = 0;
    Bytes bytes{};  // without padding
  };
  std::vector<Section> sections{};  // a flat filter has one, its table, of type 0; not the one of record.about

  // Scheme and seed, or check value, of a hasher; the rest is empty.
  static Header of(const Hash& h) { return {.scheme = Scheme::xxh3_64, .seed = h.seed()}; }
  static Header of(const KeyedHash& h) { return {.scheme = Scheme::siphash_1_3, .seed = h.check_value()}; }
  static Header of(const AnyHasher& h) {
    return std::visit([](const auto& hasher) { return of(hasher); }, h);
  }
  // Of a flat filter, without its sections.
  template <Layout L, Hasher H>
  static Header of(typename L::Shape shape, const H& hasher) {
    Header header = of(hasher);
    header.kind = L::kind;
    header.params = shape.numbers();
    return header;
  }
};

// Writes `header` and its sections, with all that file/writer.h promises.
PERHAPS_API Result<void> write_container(const std::string& path, const Header& header);

// How a file is opened.
struct OpenOptions {
  // Reads every byte once (some GB/s). Without it, opening takes less than a millisecond at any size; the header is
  // still checked, but damage to the table goes unnoticed.
  bool verify = true;
  std::optional<KeyedHash> secret;  // of a keyed filter; a missing, wrong or superfluous one is Errc::bad_key
  // Copies the file into memory of its own instead of mapping it. From 4 MiB on that memory is on huge pages (memory.h)
  // like that of a filter that was built; the pages of a mapped file mostly are small (doc/design.md). For a filter
  // that lives long and is queried one key at a time: it costs the copy, and memory that other processes do not share.
  // Throws std::bad_alloc.
  bool in_memory = false;
};

// A filter file, mapped (file/mapping.h). The bytes may exceed the memory of the machine.
class File {
 public:
  // Maps the file, or copies it (OpenOptions::in_memory). A damaged, truncated, foreign or newer one is an error that
  // says which.
  PERHAPS_API static Result<File> open(const std::string& path, const OpenOptions& options = {});
  // Over bytes that someone else keeps for as long as the File lives. `name` is for messages.
  PERHAPS_API static Result<File> over(Bytes bytes, const OpenOptions& options = {}, std::string name = "container");

  // What the file says of itself.
  const Header& header() const noexcept { return header_; }
  // Whether every byte was checked: OpenOptions::verify.
  bool verified() const noexcept { return verified_; }
  // Of the keys, the secret included.
  AnyHasher hasher() const noexcept { return hasher_; }

  // View = LineBloomView, BlockBloomView, BloomView or the same with KeyedHash. Valid while the File lives, so a
  // temporary File gives none.
  template <class View>
  Result<View> as() const& {
    using L = typename View::layout;
    using H = typename View::hasher_type;
    const H* hasher = std::get_if<H>(&hasher_);
    if (header_.kind != L::kind || hasher == nullptr) {
      return Error{Errc::mismatch, name_ + ": holds a " + std::string(name_of(header_.kind)) + " filter hashed with " +
                                       std::string(name_of(header_.scheme)) + ", not " + std::string(L::family) +
                                       " with " + std::string(H::name)};
    }
    auto shape = L::Shape::from(header_.params);
    if (!shape) return std::move(shape).error();
    return View::over(header_.sections[0].bytes, *shape, *hasher);
  }

  // Of a temporary File the view would dangle.
  template <class View>
  Result<View> as() const&& = delete;

  // Borrows from the File, in the same way.
  PERHAPS_API std::unique_ptr<AnyFilter> any() const&;
  std::unique_ptr<AnyFilter> any() const&& = delete;
  // A copy in memory, which can be changed and saved again.
  PERHAPS_API Result<std::unique_ptr<AnyMutable>> load() const;

 private:
  File() = default;

  std::string name_;
  Header header_;
  AnyHasher hasher_;
  bool verified_ = false;
  // Of no bytes where the other has them, or where they are borrowed.
  Mapping mapping_;
  Memory memory_;
};

// Writes a filter to a file, atomically, as write_container does.
template <FlatFilter F>
Result<void> save(const std::string& path, const F& filter, const Record& record = {}) {
  Header header = Header::of<typename F::layout>(filter.shape(), filter.hasher());
  header.record = record;
  header.sections = {{.type = 0, .bytes = filter.bytes()}};
  return write_container(path, header);
}

// The untyped half of NewFile.
class NewContainer {
 public:
  // Room for one section of `size` zero bytes, of type 0, and for header.record.about. The disk space is reserved here,
  // so that filling the section cannot run out of it.
  PERHAPS_API static Result<NewContainer> create(const std::string& path, Header header, std::uint64_t size);
  PERHAPS_API NewContainer(NewContainer&&) noexcept;
  PERHAPS_API NewContainer& operator=(NewContainer&&) noexcept;
  PERHAPS_API ~NewContainer();

  PERHAPS_API std::span<std::byte> section() noexcept;  // empty after commit
  // Once: header, checksums, fsync, rename. Of `record`, only the numbers are new: `about` was given to create(),
  // and must be the same here, or empty.
  PERHAPS_API Result<void> commit(const Record& record);

 private:
  struct State;
  explicit NewContainer(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// A filter filled in its file, with no copy in memory: for filters larger than memory.
//
//   auto file = NewFile<LineBloom>::create("seen.perhaps", LineShape::for_keys({.keys = n}));
//   file->span().insert(keys);
//   file->commit({.keys = n, .capacity = n});            // checksums, header, fsync, rename: as save()
//
// Nothing appears at `path` before commit() has succeeded, and without it nothing ever does.
template <FlatFilter F>
class NewFile {
 public:
  // Through which the filter is filled.
  using Span = typename F::Span;

  // REQUIRES: shape.valid()
  static Result<NewFile> create(const std::string& path, typename F::Shape shape,
                                typename F::hasher_type hasher = typename F::hasher_type{}, Facts about = {}) {
    Header header = Header::of<typename F::layout>(shape, hasher);
    header.record.about = std::move(about);
    auto file = NewContainer::create(path, std::move(header), shape.bytes());
    if (!file) return std::move(file).error();
    auto span = Span::over(file->section(), shape, hasher);
    if (!span) return std::move(span).error();
    return NewFile(*std::move(file), *span);
  }

  // Empty at first. Gone after commit().
  Span span() const noexcept { return span_; }
  // Once.
  Result<void> commit(const Record& record = {}) { return file_.commit(record); }

 private:
  NewFile(NewContainer file, Span span) noexcept : file_(std::move(file)), span_(span) {}

  NewContainer file_;
  Span span_;
};

// Sniffs the magic number.
PERHAPS_API bool is_container(Bytes start) noexcept;

}  // namespace perhaps
