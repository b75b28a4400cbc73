// Reading and writing our own file. doc/container.md is the specification; the offsets below are its first table.
#include "perhaps/container.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "any_flat.h"
#include "any_scalable.h"
#include "any_sets.h"
#include "hash/checksum.h"
#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

using detail::load;
using detail::store;

constexpr std::array<unsigned char, 8> kMagic = {0x89, 'p', 'e', 'r', 'h', 'a', 'p', 's'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMaxHeader = 64 << 10;
constexpr std::size_t kUnit = 64;  // Header and sections are padded to a multiple of this.

constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kHeaderBytesAt = 12;
constexpr std::size_t kKindAt = 16;
constexpr std::size_t kSchemeAt = 20;
constexpr std::size_t kSeedAt = 24;
constexpr std::size_t kKeysAt = 32;
constexpr std::size_t kCapacityAt = 40;
constexpr std::size_t kFileBytesAt = 48;
constexpr std::size_t kParamCountAt = 56;
constexpr std::size_t kSectionCountAt = 60;
constexpr std::size_t kChecksumAt = 64;
constexpr std::size_t kParamsAt = 72;
constexpr std::size_t kSectionEntry = 32;

// REQUIRES: size <= INT64_MAX
constexpr std::uint64_t padded(std::uint64_t size) noexcept { return (size + kUnit - 1) / kUnit * kUnit; }

// A section as the header's table has it.
struct Entry {
  std::uint32_t type;
  std::uint64_t offset;
  std::uint64_t size;
  std::uint64_t checksum;
};

std::string number(std::uint64_t n) { return std::to_string(n); }

Error system_error(const std::string& name, const std::string& what) {
  return {Errc::io, name + ": " + what + ": " + std::generic_category().message(errno)};
}

// ---------------------------------------------------------------------------------------------------------- reading

struct Parsed {
  Header header;
  std::vector<Entry> entries;
};

// Every number is compared with the size of the file before it is used, and nothing here looks past the header.
Result<Parsed> parse(Bytes file, const std::string& name) {
  const auto bad = [&](Errc code, const std::string& fact) { return Error{code, name + ": " + fact}; };
  const std::byte* const at = file.data();

  if (file.empty()) return bad(Errc::truncated, "the file is empty");
  if (std::memcmp(at, kMagic.data(), std::min(kMagic.size(), file.size())) != 0) {
    return bad(Errc::bad_magic, "not a perhaps file");
  }
  if (file.size() < kKindAt) return bad(Errc::truncated, "truncated within the header");
  const auto version = load<std::uint32_t>(at + kVersionAt);
  if (version > kVersion) {
    return bad(Errc::bad_version,
               "version " + number(version) + " is newer than this library (" + number(kVersion) + ")");
  }
  if (version == 0) return bad(Errc::bad_parameter, "damaged header: version 0");
  const auto header_bytes = load<std::uint32_t>(at + kHeaderBytesAt);
  if (header_bytes <= kParamsAt || header_bytes > kMaxHeader || header_bytes % kUnit != 0) {
    return bad(Errc::bad_parameter, "damaged header: a header of " + number(header_bytes) + " bytes");
  }
  if (file.size() < header_bytes) {
    return bad(Errc::truncated, "truncated: the header alone has " + number(header_bytes) + " bytes, the file has " +
                                    number(file.size()));
  }
  if (checksum_around(file.first(header_bytes), kChecksumAt) != load<std::uint64_t>(at + kChecksumAt)) {
    return bad(Errc::bad_checksum, "damaged: the header does not match its checksum");
  }

  // From here on the header is as it was written: what is wrong now was written wrongly, or by someone else.
  const auto file_bytes = load<std::uint64_t>(at + kFileBytesAt);
  if (file.size() < file_bytes) {
    return bad(Errc::truncated,
               "truncated: the header promises " + number(file_bytes) + " bytes, the file has " + number(file.size()));
  }
  if (file.size() > file_bytes) {
    return bad(Errc::bad_parameter,
               "too long: the header promises " + number(file_bytes) + " bytes, the file has " + number(file.size()));
  }
  Parsed parsed;
  Header& header = parsed.header;
  header.kind = Kind{load<std::uint32_t>(at + kKindAt)};
  header.scheme = Scheme{load<std::uint32_t>(at + kSchemeAt)};
  header.seed = load<std::uint64_t>(at + kSeedAt);
  header.record = {.keys = load<std::uint64_t>(at + kKeysAt), .capacity = load<std::uint64_t>(at + kCapacityAt)};

  const std::uint64_t params = load<std::uint32_t>(at + kParamCountAt);
  const std::uint64_t sections = load<std::uint32_t>(at + kSectionCountAt);
  const std::uint64_t sections_at = kParamsAt + 8 * params;
  const std::uint64_t used = sections_at + kSectionEntry * sections;
  if (used > header_bytes) {
    return bad(Errc::bad_parameter, number(params) + " parameters and " + number(sections) +
                                        " sections do not fit a header of " + number(header_bytes) + " bytes");
  }
  for (std::uint64_t i = 0; i < params; ++i) header.params.push_back(load<std::uint64_t>(at + kParamsAt + 8 * i));

  std::uint64_t end = header_bytes;
  for (std::uint64_t i = 0; i < sections; ++i) {
    const std::byte* const entry = at + sections_at + kSectionEntry * i;
    const Entry e{.type = load<std::uint32_t>(entry),
                  .offset = load<std::uint64_t>(entry + 8),
                  .size = load<std::uint64_t>(entry + 16),
                  .checksum = load<std::uint64_t>(entry + 24)};
    const std::string which = "section " + number(i);
    if (load<std::uint32_t>(entry + 4) != 0) return bad(Errc::unsupported, which + " uses a reserved field");
    if (e.offset != end) {
      return bad(Errc::bad_parameter, which + " starts at " + number(e.offset) + " instead of " + number(end));
    }
    // `size` first, so that neither the padding nor the sum can overflow.
    if (e.size > file_bytes - end || padded(e.size) > file_bytes - end) {
      return bad(Errc::bad_parameter, which + " of " + number(e.size) + " bytes does not fit the file");
    }
    header.sections.push_back({.type = e.type, .bytes = file.subspan(e.offset, e.size)});
    parsed.entries.push_back(e);
    end += padded(e.size);
  }
  if (end != file_bytes) {
    return bad(Errc::bad_parameter,
               "the sections end at " + number(end) + ", the header promises " + number(file_bytes) + " bytes");
  }
  for (std::uint64_t i = used; i < header_bytes; ++i) {
    if (at[i] != std::byte{0}) return bad(Errc::unsupported, "the padding of the header is in use");
  }
  return parsed;
}

// The parameters and sections of a flat filter make a shape whose table is there, whole.
template <class L>
Result<void> check_flat(const Header& header) {
  const auto shape = L::Shape::from(header.params);
  if (!shape) return shape.error();
  const std::string family(L::family);
  if (header.sections.size() != 1) {
    return Error{Errc::bad_parameter, family + ": one section expected, not " + number(header.sections.size())};
  }
  const auto& [type, bytes] = header.sections[0];
  if (type != 0) return Error{Errc::unsupported, family + ": unknown section type " + number(type)};
  if (bytes.size() != shape->bytes()) {
    return Error{Errc::bad_parameter, family + ": the shape needs " + number(shape->bytes()) +
                                          " bytes, the section has " + number(bytes.size())};
  }
  if constexpr (CheckedLayout<L>) return L::check(*shape, bytes);
  return {};
}

// The hasher does not matter to what is checked.
Result<void> check_scalable(const Header& header) {
  Result<void> result = Error{Errc::unsupported, "scalable: unknown kind of links"};
  for_each_link_layout([&]<class L>() {
    if (header.params.empty() || header.params[0] != static_cast<std::uint64_t>(L::kind)) return;
    const auto view = scalable_view<L>(header, Hash());
    if (!view) {
      result = view.error();
      return;
    }
    result = {};
    for (std::size_t i = 0; i < header.sections.size(); ++i) {
      if (header.sections[i].bytes.size() != view->links()[i].byte_size())
        result = Error{Errc::bad_parameter, "scalable: a section is larger than its link"};
    }
  });
  return result;
}

Result<void> check_kind(const Header& header) {
  if (header.kind == Kind::scalable) return check_scalable(header);
  if (header.kind == Kind::sets) {
    const auto index = SetIndexView::over(header, Hash());
    return index ? Result<void>() : index.error();
  }
  Result<void> result = Error{Errc::unsupported, "unknown kind of filter " + number(std::uint32_t(header.kind))};
  for_each_layout([&]<class L>() {
    if (L::kind == header.kind) result = check_flat<L>(header);
  });
  return result;
}

Result<AnyHasher> hasher_for(const Header& header, const std::optional<KeyedHash>& secret) {
  switch (header.scheme) {
    case Scheme::xxh3_64:
      if (secret) return Error{Errc::bad_key, "a key was given, but the filter is not keyed"};
      return AnyHasher(Hash(header.seed));
    case Scheme::siphash_1_3:
      if (!secret) return Error{Errc::bad_key, "the filter is keyed, and no key was given"};
      if (secret->check_value() != header.seed) {
        return Error{Errc::bad_key, "the key is not the one the filter was built with"};
      }
      return AnyHasher(*secret);
  }
  return Error{Errc::unsupported, "unknown hash scheme " + number(std::uint32_t(header.scheme))};
}

// ---------------------------------------------------------------------------------------------------------- writing

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

// Where writing to `path` really ends up: links are followed, the last one's target need not exist.
Result<std::string> follow_links(const std::string& path) {
  std::string at = path;
  for (int hops = 0; hops < 40; ++hops) {
    std::array<char, 4096> target;
    const ssize_t size = readlink(at.c_str(), target.data(), target.size());
    if (size < 0) return at;  // Not a link. If it is not there at all, opening the folder will tell.
    const std::string_view next(target.data(), static_cast<std::size_t>(size));
    const std::size_t slash = at.rfind('/');
    at = next.starts_with('/') || slash == std::string::npos ? std::string(next)
                                                             : at.substr(0, slash + 1) + std::string(next);
  }
  errno = ELOOP;
  return system_error(path, "cannot write");
}

// A file that does not exist until publish(): without a name where the file system can do that, so that even a killed
// process leaves nothing behind; otherwise under a name that starts with ".perhaps-".
class TempFile {
 public:
  static Result<TempFile> create(const std::string& path) {
    auto target = follow_links(path);
    if (!target) return std::move(target).error();
    TempFile temp;
    temp.path_ = path;
    const std::size_t slash = target->rfind('/');
    const std::string folder = slash == std::string::npos ? "." : target->substr(0, slash + 1);
    temp.base_ = slash == std::string::npos ? *target : target->substr(slash + 1);
    if (temp.base_.empty()) {
      errno = path.empty() ? ENOENT : EISDIR;
      return temp.failed("cannot write");
    }
    temp.folder_ = Descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!temp.folder_) return temp.failed("cannot open the folder " + folder);

    struct stat old;
    temp.replaces_ = fstatat(temp.folder_.get(), temp.base_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (temp.replaces_ && !S_ISREG(old.st_mode)) {
      return Error{Errc::io, path + (S_ISDIR(old.st_mode) ? ": is a folder" : ": is not a regular file")};
    }
    const mode_t mode = temp.replaces_ ? 0600 : 0666;
    temp.file_ = Descriptor(openat(temp.folder_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
    if (temp.file_ && access(temp.by_number().c_str(), F_OK) != 0) temp.file_ = Descriptor();  // No /proc, no name.
    if (!temp.file_) {
      const bool made = temp.with_new_name([&](const char* name) {
        temp.file_ = Descriptor(openat(temp.folder_.get(), name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode));
        return static_cast<bool>(temp.file_);
      });
      if (!made) return temp.failed("cannot make a file in " + folder);
    }
    if (temp.replaces_) {
      // Who may not give a file away keeps it. The mode comes second: giving a file away changes it.
      if (fchown(temp.file_.get(), old.st_uid, old.st_gid) != 0) errno = 0;
      if (fchmod(temp.file_.get(), old.st_mode & 07777) != 0) return temp.failed("cannot set the mode");
    }
    return temp;
  }

  TempFile(TempFile&&) noexcept = default;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile() {
    if (folder_ && !name_.empty()) unlinkat(folder_.get(), name_.c_str(), 0);
  }

  int fd() const noexcept { return file_.get(); }
  Error failed(const std::string& what) const { return system_error(path_, what); }

  Result<void> write(Bytes bytes, std::uint64_t offset) const {
    while (!bytes.empty()) {
      const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed("cannot write");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return {};
  }

  // The content is on the disk before the name is, and the name before this returns.
  Result<void> publish() {
    if (fsync(file_.get()) != 0) return failed("cannot sync");
    if (!named()) return failed("cannot rename");
    if (fsync(folder_.get()) != 0 && errno != EINVAL) return failed("written, but cannot sync its folder");
    return {};
  }

 private:
  TempFile() = default;

  std::string by_number() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

  bool named() {
    const auto link_as = [&](const char* name) {
      return linkat(AT_FDCWD, by_number().c_str(), folder_.get(), name, AT_SYMLINK_FOLLOW) == 0;
    };
    if (name_.empty()) {
      if (!replaces_ && link_as(base_.c_str())) return true;
      if (!replaces_ && errno != EEXIST) return false;
      if (!with_new_name(link_as)) return false;
    }
    if (renameat(folder_.get(), name_.c_str(), folder_.get(), base_.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

  // Tries `make` with names until one is free; it becomes name_.
  template <class Make>
  bool with_new_name(Make make) {
    for (int tries = 0; tries < 100; ++tries) {
      std::uint64_t random = 0;
      if (getentropy(&random, sizeof random) != 0) return false;
      std::array<char, 40> name;
      std::snprintf(name.data(), name.size(), ".perhaps-%016llx.tmp", static_cast<unsigned long long>(random));
      if (make(name.data())) {
        name_ = name.data();
        return true;
      }
      if (errno != EEXIST) return false;
    }
    return false;
  }

  std::string path_;  // as the caller wrote it, for messages
  std::string base_;
  std::string name_;  // empty: has none
  Descriptor folder_;
  Descriptor file_;
  bool replaces_ = false;
};

// The whole header but for the checksums of the sections; `entries` has type and size, and gets offsets.
Result<std::vector<std::byte>> lay_out(const std::string& path, const Header& header, std::vector<Entry>& entries) {
  const std::uint64_t used = kParamsAt + 8 * header.params.size() + kSectionEntry * entries.size();
  if (used > kMaxHeader) return Error{Errc::unsupported, path + ": the header would exceed 64 KiB"};
  std::vector<std::byte> bytes(padded(used));
  std::uint64_t end = bytes.size();
  for (Entry& e : entries) {
    if (e.size > (INT64_MAX >> 1) - end) {
      return Error{Errc::unsupported, path + ": a section of " + number(e.size) + " bytes is too large"};
    }
    e.offset = end;
    end += padded(e.size);
  }
  std::byte* const at = bytes.data();
  std::memcpy(at, kMagic.data(), kMagic.size());
  store(at + kVersionAt, kVersion);
  store(at + kHeaderBytesAt, static_cast<std::uint32_t>(bytes.size()));
  store(at + kKindAt, static_cast<std::uint32_t>(header.kind));
  store(at + kSchemeAt, static_cast<std::uint32_t>(header.scheme));
  store(at + kSeedAt, header.seed);
  store(at + kKeysAt, header.record.keys);
  store(at + kCapacityAt, header.record.capacity);
  store(at + kFileBytesAt, end);
  store(at + kParamCountAt, static_cast<std::uint32_t>(header.params.size()));
  store(at + kSectionCountAt, static_cast<std::uint32_t>(entries.size()));
  for (std::size_t i = 0; i < header.params.size(); ++i) store(at + kParamsAt + 8 * i, header.params[i]);
  return bytes;
}

// Puts the section table, with its checksums, into `bytes`, and then the header's own.
void seal(std::vector<std::byte>& bytes, const Header& header, const std::vector<Entry>& entries) {
  std::byte* entry = bytes.data() + kParamsAt + 8 * header.params.size();
  for (const Entry& e : entries) {
    store(entry, e.type);
    store(entry + 8, e.offset);
    store(entry + 16, e.size);
    store(entry + 24, e.checksum);
    entry += kSectionEntry;
  }
  store(bytes.data() + kChecksumAt, checksum_around(bytes, kChecksumAt));
}

}  // namespace

std::string_view name_of(Scheme scheme) noexcept {
  switch (scheme) {
    case Scheme::xxh3_64:
      return Hash::name;
    case Scheme::siphash_1_3:
      return KeyedHash::name;
  }
  return "unknown";
}

Result<void> write_container(const std::string& path, const Header& header) {
  std::vector<Entry> entries;
  for (const auto& [type, bytes] : header.sections) {
    entries.push_back({.type = type, .offset = 0, .size = bytes.size(), .checksum = 0});
  }
  auto start = lay_out(path, header, entries);
  if (!start) return std::move(start).error();
  auto temp = TempFile::create(path);
  if (!temp) return std::move(temp).error();

  // Each piece is written while the checksum still has it in the cache.
  constexpr std::size_t kPiece = 1 << 20;
  static constexpr std::array<std::byte, kUnit> kZeros{};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Bytes bytes = header.sections[i].bytes;
    Checksum sum;
    for (std::size_t from = 0; from < bytes.size(); from += kPiece) {
      const Bytes piece = bytes.subspan(from, std::min(kPiece, bytes.size() - from));
      sum.add(piece);
      if (auto done = temp->write(piece, entries[i].offset + from); !done) return done;
    }
    const Bytes padding = Bytes(kZeros).first(padded(bytes.size()) - bytes.size());
    sum.add(padding);
    if (auto done = temp->write(padding, entries[i].offset + bytes.size()); !done) return done;
    entries[i].checksum = sum.value();
  }
  seal(*start, header, entries);
  if (auto done = temp->write(*start, 0); !done) return done;
  return temp->publish();
}

struct FileWriter::State {
  TempFile temp;
};

FileWriter::FileWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

Result<FileWriter> FileWriter::create(const std::string& path) {
  auto temp = TempFile::create(path);
  if (!temp) return std::move(temp).error();
  return FileWriter(std::make_unique<State>(State{*std::move(temp)}));
}

Result<void> FileWriter::append(Bytes bytes) {
  if (auto done = state_->temp.write(bytes, size_); !done) return done;
  size_ += bytes.size();
  return {};
}

Result<void> FileWriter::overwrite(std::uint64_t at, Bytes bytes) {
  assert(at <= size_ && bytes.size() <= size_ - at);
  return state_->temp.write(bytes, at);
}

Result<void> FileWriter::commit() { return state_->temp.publish(); }

Result<void> write_file(const std::string& path, Bytes bytes) {
  auto file = FileWriter::create(path);
  if (!file) return std::move(file).error();
  if (auto done = file->append(bytes); !done) return done;
  return file->commit();
}

// -------------------------------------------------------------------------------------------------------------- File

class detail::Mapping {
 public:
  // REQUIRES: size > 0
  Mapping(int fd, std::uint64_t size, int protection) noexcept
      : data_(mmap(nullptr, size, protection, MAP_SHARED, fd, 0)), size_(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (*this) munmap(data_, size_);
  }

  explicit operator bool() const noexcept { return data_ != MAP_FAILED; }
  std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(data_), size_}; }
  // Advice: where it is refused, only speed is lost.
  void advise(int advice) const noexcept { madvise(data_, size_, advice); }

 private:
  void* data_;
  std::uint64_t size_;
};

File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(const std::string& path, const OpenOptions& options) {
  // O_NONBLOCK: opening a pipe by mistake does not wait for its writer. It means nothing to a regular file.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_error(path, "cannot open");
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return system_error(path, "cannot open");
  if (S_ISDIR(status.st_mode)) return Error{Errc::io, path + ": is a folder"};
  if (!S_ISREG(status.st_mode)) return Error{Errc::io, path + ": is not a regular file"};
  if (status.st_size == 0) return over({}, options, path);

  auto mapping = std::make_unique<detail::Mapping>(fd.get(), static_cast<std::uint64_t>(status.st_size), PROT_READ);
  if (!*mapping) return system_error(path, "cannot map");
  if (options.verify) mapping->advise(MADV_SEQUENTIAL);
  auto file = over(mapping->bytes(), options, path);
  // Probes go anywhere: reading ahead of them would read the whole file for nothing, and push out what is needed.
  mapping->advise(MADV_RANDOM);
  if (file) file->mapping_ = std::move(mapping);
  return file;
}

Result<File> File::over(Bytes bytes, const OpenOptions& options, std::string name) {
  const auto named = [&](const Error& error) { return Error{error.code, name + ": " + error.detail}; };
  auto parsed = parse(bytes, name);
  if (!parsed) return std::move(parsed).error();
  if (auto known = check_kind(parsed->header); !known) return named(known.error());
  auto hasher = hasher_for(parsed->header, options.secret);
  if (!hasher) return named(hasher.error());
  if (options.verify) {
    for (const Entry& e : parsed->entries) {
      if (checksum_of(bytes.subspan(e.offset, padded(e.size))) != e.checksum) {
        return Error{Errc::bad_checksum, name + ": damaged: the " + number(e.size) + " bytes at " + number(e.offset) +
                                             " do not match their checksum"};
      }
    }
  }
  File file;
  file.name_ = std::move(name);
  file.header_ = std::move(parsed->header);
  file.hasher_ = *hasher;
  file.verified_ = options.verify;
  return file;
}

std::unique_ptr<AnyFilter> File::any() const {
  if (header_.kind == Kind::sets) {
    return std::make_unique<AnySets>(*SetIndexView::over(header_, hasher_), header_.record);
  }
  std::unique_ptr<AnyFilter> filter;
  if (header_.kind == Kind::scalable) {
    for_each_link_layout([&]<class L>() {
      if (header_.params[0] != static_cast<std::uint64_t>(L::kind)) return;
      std::visit(
          [&]<class H>(const H& hasher) {
            filter = std::make_unique<AnyScalableView<L, H>>(*scalable_view<L>(header_, hasher), header_.record);
          },
          hasher_);
    });
  }
  for_each_layout([&]<class L>() {
    if (L::kind != header_.kind) return;
    std::visit(
        [&]<class H>(const H&) {
          auto view = as<FlatView<L, H>>();
          assert(view);  // `over` has checked all that this depends on
          filter = std::make_unique<AnyFlatView<L, H>>(*view, header_.record);
        },
        hasher_);
  });
  return filter;
}

// ------------------------------------------------------------------------------------------------------ NewContainer

struct NewContainer::State {
  TempFile temp;
  Header header;
  std::vector<Entry> entries;
  std::vector<std::byte> start;
  detail::Mapping mapping;
};

NewContainer::NewContainer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
NewContainer::NewContainer(NewContainer&&) noexcept = default;
NewContainer& NewContainer::operator=(NewContainer&&) noexcept = default;
NewContainer::~NewContainer() = default;

Result<NewContainer> NewContainer::create(const std::string& path, Header header, std::uint64_t size) {
  std::vector<Entry> entries = {{.type = 0, .offset = 0, .size = size, .checksum = 0}};
  auto start = lay_out(path, header, entries);
  if (!start) return std::move(start).error();
  auto temp = TempFile::create(path);
  if (!temp) return std::move(temp).error();
  const std::uint64_t file_bytes = entries[0].offset + padded(size);
  // Not a file with holes: a full disk would then be a signal at some insert, instead of an error here.
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(temp->fd(), 0, static_cast<off_t>(file_bytes));
  if (error != 0) {
    errno = error;
    return temp->failed("cannot reserve " + number(file_bytes) + " bytes");
  }
  const int fd = temp->fd();
  std::unique_ptr<State> state(new State{.temp = *std::move(temp),
                                         .header = std::move(header),
                                         .entries = std::move(entries),
                                         .start = *std::move(start),
                                         .mapping = {fd, file_bytes, PROT_READ | PROT_WRITE}});
  if (!state->mapping) return state->temp.failed("cannot map");
  return NewContainer(std::move(state));
}

std::span<std::byte> NewContainer::section() noexcept {
  if (state_ == nullptr) return {};
  return state_->mapping.bytes().subspan(state_->entries[0].offset, state_->entries[0].size);
}

Result<void> NewContainer::commit(Record record) {
  assert(state_ != nullptr);
  // Whatever happens, this ends the file: a second commit could only write something else.
  const auto state = std::move(state_);
  Entry& entry = state->entries[0];
  state->mapping.advise(MADV_SEQUENTIAL);
  entry.checksum = checksum_of(state->mapping.bytes().subspan(entry.offset, padded(entry.size)));
  store(state->start.data() + kKeysAt, record.keys);
  store(state->start.data() + kCapacityAt, record.capacity);
  seal(state->start, state->header, state->entries);
  if (auto done = state->temp.write(state->start, 0); !done) return done;
  return state->temp.publish();  // fsync takes the mapped pages along
}

bool is_container(Bytes start) noexcept {
  return start.size() >= kMagic.size() && std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0;
}

}  // namespace perhaps
