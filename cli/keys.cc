#include "keys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include "command.h"
#include "options.h"
#include "perhaps/shards.h"
#include "split.h"

namespace perhaps::cli {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
// A pipe without separators must not take all the memory. A mapped file takes none, but the same keys are refused.
constexpr std::size_t kLongest = std::size_t{1} << 30;

std::byte separator_of(KeysAs as) noexcept { return as == KeysAs::nul ? std::byte{0} : std::byte{'\n'}; }
bool separated(KeysAs as) noexcept { return as == KeysAs::lines || as == KeysAs::nul || as == KeysAs::hex; }

template <class Word>
Word little_endian(const std::byte* p) noexcept {
  Word value = 0;
  for (unsigned i = 0; i < sizeof value; ++i)
    value |= static_cast<Word>(std::to_integer<unsigned char>(p[i])) << (8 * i);
  return value;
}

// The bytes of the len32 record at the front of `rest`, length included; more than rest.size() if it is cut short.
std::uint64_t framed_size(Bytes rest) noexcept {
  return rest.size() < 4 ? 4 : 4 + std::uint64_t{little_endian<std::uint32_t>(rest.data())};
}

// The longest front of `text` made of whole records, as far as that can be seen; stops soon after `enough` bytes.
std::size_t whole_records(KeysAs as, Bytes text, std::size_t enough) noexcept {
  if (separated(as)) {
    const int separator = std::to_integer<int>(separator_of(as));
    if (enough < text.size()) {
      const auto* at =
          static_cast<const std::byte*>(std::memchr(text.data() + enough, separator, text.size() - enough));
      return at == nullptr ? text.size() : static_cast<std::size_t>(at - text.data()) + 1;
    }
    const auto* at =
        text.empty() ? nullptr : static_cast<const std::byte*>(::memrchr(text.data(), separator, text.size()));
    return at == nullptr ? 0 : static_cast<std::size_t>(at - text.data()) + 1;
  }
  if (as == KeysAs::u64) return std::min(text.size(), enough + 7) / 8 * 8;
  std::size_t at = 0;
  while (at < text.size() && at < enough) {
    const std::uint64_t size = framed_size(text.subspan(at));
    if (size > text.size() - at) break;
    at += static_cast<std::size_t>(size);
  }
  return at;
}

std::uint64_t count_records(KeysAs as, Bytes block) noexcept {
  if (separated(as)) {
    const std::byte separator = separator_of(as);
    return count_separators(block, separator) + (!block.empty() && block.back() != separator ? 1 : 0);
  }
  if (as == KeysAs::u64) return block.size() / 8;
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < block.size(); ++count) at += static_cast<std::size_t>(framed_size(block.subspan(at)));
  return count;
}

[[noreturn]] void fail_cut_short(const std::string& name, KeysAs as, std::uint64_t left) {
  if (as == KeysAs::u64) fail("{}: the last {} bytes are not a whole 8-byte key (--keys-as u64)", name, left);
  fail("{}: the last record is cut short: {} bytes are left of it (--keys-as len32)", name, left);
}

[[noreturn]] void fail_too_long(const std::string& name, std::uint64_t size, bool more) {
  fail("{}: a record has {}{} bytes; {} are the most", name, more ? "more than " : "", size, kLongest);
}

void check_framed(const std::string& name, Bytes rest) {
  if (const std::uint64_t size = framed_size(rest) - 4; size > kLongest) fail_too_long(name, size, false);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

class MappedSource : public Source {
 public:
  // `from`: where reading begins, for standard input.
  MappedSource(std::string name, KeysAs as, std::byte* data, std::size_t size, std::size_t from)
      : Source(std::move(name), as), data_(data), size_(size), text_(data + from, size - from) {}
  ~MappedSource() override {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  bool mapped() const noexcept override { return true; }
  std::uint64_t size() const noexcept override { return text_.size(); }
  void rewind() override {
    at_ = 0;
    release({data_, size_});  // what several threads faulted in behind each other
  }
  void be_frugal() noexcept override { block_ = kBlock / 8; }
  void release(Bytes block) noexcept override {
    if (block_ == kBlock || block.empty()) return;
    // From the page it begins on: whoever still reads there faults it in again. Its last page is the next block's.
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto at = static_cast<std::size_t>(block.data() - data_);
    const std::size_t begin = at / page * page;
    const std::size_t end = (at + block.size()) / page * page;
    if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
  }

  Bytes next(std::uint64_t& stored) override {
    const std::lock_guard lock(mutex_);
    const Bytes rest = text_.subspan(at_);
    stored = 0;
    if (rest.empty()) return {};
    std::size_t size = whole_records(as_, rest, std::min(block_, rest.size()));
    if (size == 0) {
      if (as_ == KeysAs::len32) check_framed(name_, rest);
      if (!separated(as_)) fail_cut_short(name_, as_, rest.size());
      size = rest.size();
    }
    if (size > kLongest) check_last(rest.first(size));
    at_ += size;
    stored = size;
    return rest.first(size);
  }

  std::string place(const std::byte* at) const override {
    const auto before = text_.first(static_cast<std::size_t>(at - text_.data()));
    if (separated(as_)) return fmt::format("{}:{}", name_, count_separators(before, separator_of(as_)) + 1);
    return fmt::format("{}: byte {}", name_, before.size());
  }

 private:
  // Only the last record of a block can be longer than a block.
  void check_last(Bytes block) const {
    std::size_t from = 0;
    std::uint64_t size = 0;
    if (separated(as_)) {
      from = whole_records(as_, block.first(kBlock), SIZE_MAX);
      size = block.size() - from - (block.back() == separator_of(as_) ? 1 : 0);
    } else if (as_ == KeysAs::len32) {
      for (; from < block.size(); from += static_cast<std::size_t>(size) + 4)
        size = framed_size(block.subspan(from)) - 4;
    }
    if (size > kLongest) fail_too_long(name_, size, false);
  }

  std::byte* data_;
  std::size_t size_;
  Bytes text_;
  std::mutex mutex_;
  std::size_t at_ = 0;
  std::size_t block_ = kBlock;
};

// Bytes of a pipe or of a compressed file, as they come.
class Reader {
 public:
  Reader(std::string name, Descriptor file) : name_(std::move(name)), file_(std::move(file)) { fill(); }
  Reader(Reader&&) = default;
  virtual ~Reader() = default;
  // Up to out.size() bytes, 0 at the end.
  virtual std::size_t read(std::span<std::byte> out) {
    if (raw_.empty()) {
      if (started_) return read_raw(out);
      fill();
    }
    started_ = true;
    const std::size_t n = std::min(out.size(), raw_.size());
    if (n != 0) std::memcpy(out.data(), raw_.data(), n);
    raw_ = raw_.subspan(n);
    return n;
  }
  Bytes peek() const noexcept { return raw_; }
  std::uint64_t stored() const noexcept { return stored_; }

 protected:
  // Reads more into raw_ once it is empty; false at the end.
  bool fill() {
    buffer_.resize(std::size_t{1} << 17);
    raw_ = {buffer_.data(), read_raw(buffer_)};
    // Magic numbers are 4 bytes and a pipe may give fewer at first.
    while (raw_.size() < 4) {
      const std::size_t more = read_raw(std::span(buffer_).subspan(raw_.size()));
      if (more == 0) break;
      raw_ = {buffer_.data(), raw_.size() + more};
    }
    return !raw_.empty();
  }

  std::string name_;
  Bytes raw_;

 private:
  std::size_t read_raw(std::span<std::byte> out) {
    for (;;) {
      const ssize_t n = ::read(file_.get(), out.data(), out.size());
      if (n >= 0) {
        stored_ += static_cast<std::uint64_t>(n);
        return static_cast<std::size_t>(n);
      }
      if (errno != EINTR) fail("{}: {}", name_, std::strerror(errno));
      check_interrupt();
    }
  }

  Descriptor file_;
  std::vector<std::byte> buffer_;
  std::uint64_t stored_ = 0;
  bool started_ = false;
};

class GzipReader : public Reader {
 public:
  explicit GzipReader(Reader&& plain) : Reader(std::move(plain)) {
    if (::inflateInit2(&z_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipReader() override { ::inflateEnd(&z_); }
  std::size_t read(std::span<std::byte> out) override {
    z_.next_out = reinterpret_cast<Bytef*>(out.data());
    z_.avail_out = static_cast<uInt>(out.size());
    while (z_.avail_out == out.size()) {
      if (raw_.empty() && !fill()) {
        if (inside_) fail("{}: the gzip data is cut short", name_);
        break;
      }
      if (!inside_) {  // between members: another one, or padding
        while (!raw_.empty() && raw_[0] == std::byte{0}) raw_ = raw_.subspan(1);
        if (raw_.empty()) continue;
        ::inflateReset(&z_);
        inside_ = true;
      }
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(raw_.data()));
      z_.avail_in = static_cast<uInt>(raw_.size());
      const int state = ::inflate(&z_, Z_NO_FLUSH);
      raw_ = raw_.last(z_.avail_in);
      if (state == Z_STREAM_END) {
        inside_ = false;
      } else if (state != Z_OK && state != Z_BUF_ERROR) {
        fail("{}: damaged gzip data ({})", name_, z_.msg == nullptr ? "bad stream" : z_.msg);
      }
    }
    return out.size() - z_.avail_out;
  }

 private:
  z_stream z_{};
  bool inside_ = true;
};

class ZstdReader : public Reader {
 public:
  explicit ZstdReader(Reader&& plain) : Reader(std::move(plain)), z_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {
    if (z_ == nullptr) throw std::bad_alloc();
  }
  std::size_t read(std::span<std::byte> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      if (raw_.empty() && !fill()) {
        if (inside_) fail("{}: the zstd data is cut short", name_);
        break;
      }
      ZSTD_inBuffer from{raw_.data(), raw_.size(), 0};
      const std::size_t state = ::ZSTD_decompressStream(z_.get(), &to, &from);
      if (::ZSTD_isError(state)) fail("{}: damaged zstd data ({})", name_, ::ZSTD_getErrorName(state));
      raw_ = raw_.subspan(from.pos);
      inside_ = state != 0;
    }
    return to.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> z_;
  bool inside_ = true;
};

enum class Packing { none, gzip, zstd };
Packing packing_of(Bytes start) noexcept {
  if (start.size() < 4) return Packing::none;
  const auto word = little_endian<std::uint32_t>(start.data());
  // deflate is the only method, and three bits of the flags are reserved
  if ((word & 0xe0ffffffu) == 0x00088b1fu) return Packing::gzip;
  if (word == 0xfd2fb528u || (word & 0xfffffff0u) == 0x184d2a50u) return Packing::zstd;
  return Packing::none;
}

std::unique_ptr<Reader> unpacked(std::unique_ptr<Reader> plain) {
  switch (packing_of(plain->peek())) {
    case Packing::gzip:
      return std::make_unique<GzipReader>(std::move(*plain));
    case Packing::zstd:
      return std::make_unique<ZstdReader>(std::move(*plain));
    case Packing::none:
      return plain;
  }
  return plain;
}

class StreamSource : public Source {
 public:
  StreamSource(std::string name, KeysAs as, std::uint64_t size, std::unique_ptr<Reader> plain)
      : Source(std::move(name), as), size_(size), reader_(unpacked(std::move(plain))) {}

  std::uint64_t size() const noexcept override { return size_; }

  Bytes next(std::uint64_t& stored) override {
    records_ += count_records(as_, block_);
    const std::uint64_t before = reader_->stored();
    // What is left of the last record moves to the front; a record larger than the buffer makes it grow, as far as
    // there is input.
    const Bytes rest = Bytes(buffer_).subspan(block_.size(), used_ - block_.size());
    if (!rest.empty()) std::memmove(buffer_.data(), rest.data(), rest.size());
    used_ = rest.size();
    std::size_t whole = 0;
    while (whole == 0) {
      if (used_ > kLongest) fail_too_long(name_, kLongest, true);
      if (used_ + kRead > buffer_.size()) {
        buffer_.resize(std::clamp(buffer_.size() * 2, 2 * kRead, kLongest + 2 * kRead));
      }
      const std::size_t n = reader_->read(std::span(buffer_).subspan(used_, kRead));
      used_ += n;
      if (n == 0) {
        if (used_ != 0 && !separated(as_)) fail_cut_short(name_, as_, used_);
        whole = used_;
        break;
      }
      // A separator can only be in the new part.
      if (separated(as_)) {
        const std::size_t fresh = whole_records(as_, Bytes(buffer_).subspan(used_ - n, n), SIZE_MAX);
        whole = fresh == 0 ? 0 : used_ - n + fresh;
      } else {
        const Bytes text = Bytes(buffer_).first(used_);
        whole = whole_records(as_, text, SIZE_MAX - 7);
        // Its length is known before its bytes come.
        if (whole == 0 && as_ == KeysAs::len32) check_framed(name_, text);
      }
    }
    block_ = Bytes(buffer_).first(whole);
    stored = reader_->stored() - before;
    return block_;
  }

  std::string place(const std::byte* at) const override {
    const auto before = block_.first(static_cast<std::size_t>(at - block_.data()));
    if (separated(as_)) {
      return fmt::format("{}:{}", name_, records_ + count_separators(before, separator_of(as_)) + 1);
    }
    return fmt::format("{}: record {}", name_, records_ + count_records(as_, before) + 1);
  }

 private:
  static constexpr std::size_t kRead = std::size_t{1} << 17;
  std::uint64_t size_;
  std::unique_ptr<Reader> reader_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  Bytes block_;  // handed out last, at the front of buffer_
  std::uint64_t records_ = 0;
};

int hex_digit(std::byte b) noexcept {
  const char c = static_cast<char>(b);
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_blank(std::byte b) noexcept { return b == std::byte{' '} || b == std::byte{'\t'} || b == std::byte{'\r'}; }

Bytes trimmed(Bytes key) noexcept {
  while (!key.empty() && is_blank(key.front())) key = key.subspan(1);
  while (!key.empty() && is_blank(key.back())) key = key.first(key.size() - 1);
  return key;
}

// Field `wanted` (from 1) of `record`; false if there are fewer.
bool field_of(Bytes& record, std::uint32_t wanted, std::byte delimiter, std::uint32_t& fields) noexcept {
  const std::byte* p = record.data();
  const std::byte* const end = p + record.size();
  for (fields = 1;; ++fields) {
    const auto* at = p == end ? nullptr
                              : static_cast<const std::byte*>(
                                    std::memchr(p, std::to_integer<int>(delimiter), static_cast<std::size_t>(end - p)));
    if (fields == wanted) {
      record = {p, at == nullptr ? end : at};
      return true;
    }
    if (at == nullptr) return false;
    p = at + 1;
  }
}

}  // namespace

std::unique_ptr<Source> Source::open(const std::string& path, KeysAs as, bool map) {
  const bool standard = path == "-";
  const std::string name = standard ? "standard input" : path;
  Descriptor file(standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail("{}: {}", name, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("{}: {}", name, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail("{}: is a directory", name);
  const off_t at = S_ISREG(status.st_mode) ? ::lseek(file.get(), 0, SEEK_CUR) : -1;
  if (map && at >= 0) {
    std::array<std::byte, 4> start{};
    const ssize_t n = ::pread(file.get(), start.data(), start.size(), at);
    if (n < 0) fail("{}: {}", name, std::strerror(errno));
    // Nothing can be mapped of an empty file, and nothing is left to be read.
    if (n == 0) return std::make_unique<MappedSource>(name, as, nullptr, 0, 0);
    // Files under /proc have no size and can only be read.
    if (status.st_size > at && packing_of(Bytes(start).first(static_cast<std::size_t>(n))) == Packing::none) {
      const auto size = static_cast<std::size_t>(status.st_size);
      void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
      if (data != MAP_FAILED) {
        ::madvise(data, size, MADV_SEQUENTIAL);
        return std::make_unique<MappedSource>(name, as, static_cast<std::byte*>(data), size,
                                              static_cast<std::size_t>(at));
      }
    }
  }
  const auto size = at >= 0 ? static_cast<std::uint64_t>(std::max<off_t>(status.st_size - at, 0)) : 0;
  return std::make_unique<StreamSource>(name, as, size, std::make_unique<Reader>(name, std::move(file)));
}

bool Parser::next(const Source& source, Bytes& block, Batch& batch) {
  if (block.empty()) return false;
  std::size_t count = 0;
  if (separated(options_.as)) {
    count = split_records(block, separator_of(options_.as), records_, kColumn);
  } else if (options_.as == KeysAs::u64) {
    for (; count < kColumn && !block.empty(); block = block.subspan(8)) records_[count++] = block.first(8);
  } else {
    while (count < kColumn && !block.empty()) {
      const auto size = static_cast<std::size_t>(framed_size(block));
      records_[count++] = block.subspan(4, size - 4);
      block = block.subspan(size);
    }
  }
  if (options_.key_is_record()) {
    batch = chosen(records_, count);
    return true;
  }
  try {
    make_keys(count);
  } catch (const Bad& bad) {
    fail("{}: {}", source.place(records_[bad.record].data()), bad.what);
  }
  batch = chosen(keys_, count);
  return true;
}

Batch Parser::chosen(Bytes* keys, std::size_t count) noexcept {
  if (options_.shard.count != 0) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (shard_of(keys[i], options_.shard.count) != options_.shard.index) continue;
      keys[kept] = keys[i];
      records_[kept++] = records_[i];
    }
    count = kept;
  }
  return {{keys, count}, {records_, count}};
}

Batch Parser::literals(std::size_t from) {
  const std::size_t count = std::min(kColumn, options_.literals.size() - from);
  for (std::size_t i = 0; i < count; ++i) records_[i] = bytes_of(options_.literals[from + i]);
  if (options_.as == KeysAs::u64) {  // numbers, as people write them
    scratch_.resize(count * 8);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& text = options_.literals[from + i];
      const auto value = parse_u64(text);
      if (!value) fail("-e {}: not a 64-bit number (--keys-as u64)", text);
      for (unsigned b = 0; b < 8; ++b) scratch_[8 * i + b] = static_cast<std::byte>(*value >> (8 * b));
      keys_[i] = {&scratch_[8 * i], 8};
    }
    return chosen(keys_, count);
  }
  try {
    make_keys(count);
  } catch (const Bad& bad) {
    fail("-e {}: {}", options_.literals[from + bad.record], bad.what);
  }
  return chosen(keys_, count);
}

void Parser::make_keys(std::size_t count) {
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i) room += records_[i].size();
  if (scratch_.size() < room) scratch_.resize(room);
  std::byte* out = scratch_.data();
  for (std::size_t i = 0; i < count; ++i) {
    Bytes key = records_[i];
    if (options_.field != 0) {
      std::uint32_t fields = 0;
      if (!field_of(key, options_.field, static_cast<std::byte>(options_.delimiter), fields)) {
        throw Bad{i, fmt::format("there {} {} field{}, --field {} asks for more", fields == 1 ? "is" : "are", fields,
                                 fields == 1 ? "" : "s", options_.field)};
      }
    }
    if (options_.trim) key = trimmed(key);
    if (options_.as == KeysAs::hex) {
      if (key.size() % 2 != 0) throw Bad{i, fmt::format("an odd number of hex digits ({})", key.size())};
      std::byte* const begin = out;
      for (std::size_t j = 0; j < key.size(); j += 2) {
        const int high = hex_digit(key[j]);
        const int low = hex_digit(key[j + 1]);
        if (high < 0 || low < 0) throw Bad{i, fmt::format("not a hex digit at column {}", j + (high < 0 ? 1 : 2))};
        *out++ = static_cast<std::byte>(high << 4 | low);
      }
      key = {begin, out};
    }
    if (options_.lower) {
      std::byte* const begin = out;
      for (const std::byte b : key) {
        const bool upper = b >= std::byte{'A'} && b <= std::byte{'Z'};
        *out++ = upper ? b | std::byte{0x20} : b;
      }
      key = {begin, out};
    }
    keys_[i] = key;
  }
}

Keys::Keys(const KeyOptions& options) : options_(options) {
  for (const std::string& path : options.files) {
    sources_.push_back(Source::open(path, options.as));
    if (options.frugal) sources_.back()->be_frugal();
  }
}

bool Keys::all_mapped() const noexcept {
  return std::all_of(sources_.begin(), sources_.end(), [](const auto& s) { return s->mapped(); });
}

void Keys::unmap() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i]->mapped()) continue;
    sources_[i].reset();
    sources_[i] = Source::open(options_.files[i], options_.as, false);
  }
}

std::uint64_t Keys::stored_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& source : sources_) {
    if (source->size() == 0 && !source->mapped()) return 0;
    sum += source->size();
  }
  return sum;
}

std::string Keys::names() const {
  std::vector<std::string> names;
  if (!options_.literals.empty()) names.push_back(fmt::format("{} given", options_.literals.size()));
  for (const auto& source : sources_) names.push_back(source->name());
  if (names.size() > 3) names = {names[0], names[1], fmt::format("{} more", names.size() - 2)};
  return fmt::format("{}", fmt::join(names, ", "));
}

unsigned on_threads(unsigned threads, const std::function<void(unsigned)>& work) {
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work, i);
  } catch (const std::system_error&) {  // a limit on processes or on memory
  } catch (const std::bad_alloc&) {
  }
  work(0);
  for (auto& other : others) other.join();
  return static_cast<unsigned>(others.size()) + 1;
}

// Hands blocks to the threads as they ask for them. The first exception of any thread is thrown here.
unsigned Keys::share_out(unsigned threads, const std::function<void(unsigned, Source&, Bytes, std::uint64_t)>& use) {
  for (const auto& source : sources_) source->rewind();
  std::atomic<bool> stop{false};
  std::exception_ptr first;
  std::mutex mutex;
  const auto work = [&](unsigned thread) {
    try {
      for (const auto& source : sources_) {
        while (!stop.load(std::memory_order_relaxed)) {
          std::uint64_t stored = 0;
          const Bytes block = source->next(stored);
          if (block.empty()) break;
          use(thread, *source, block, stored);
        }
      }
    } catch (...) {
      stop = true;
      const std::lock_guard lock(mutex);
      if (first == nullptr) first = std::current_exception();
    }
  };
  const unsigned used = on_threads(threads, work);
  if (first != nullptr) std::rethrow_exception(first);
  return used;
}

std::uint64_t Keys::count(unsigned threads) {
  Progress progress("counting", stored_bytes());
  std::atomic<std::uint64_t> total{options_.literals.size()};
  share_out(threads, [&](unsigned, Source&, Bytes block, std::uint64_t stored) {
    const std::uint64_t count = count_records(options_.as, block);
    total.fetch_add(count, std::memory_order_relaxed);
    progress.advance(stored, count);
  });
  return total;
}

void Keys::for_each(Progress& progress, const Use& use, const std::function<void()>& block_done) {
  Parser parser(options_);
  for (std::size_t i = 0; i < options_.literals.size(); i += Parser::kColumn) {
    if (!use(parser.literals(i), nullptr)) return;
  }
  for (const auto& source : sources_) {
    source->rewind();
    std::uint64_t stored = 0;
    for (Bytes block = source->next(stored); !block.empty(); block = source->next(stored)) {
      const Bytes whole = block;
      Batch batch;
      std::uint64_t count = 0;
      while (parser.next(*source, block, batch)) {
        if (!use(batch, source.get())) return;
        count += batch.keys.size();
      }
      progress.advance(stored, count);
      if (block_done) block_done();
      source->release(whole);
    }
  }
}

unsigned Keys::for_each_parallel(unsigned threads, Progress& progress,
                                 const std::function<void(unsigned thread, const Batch&)>& use) {
  std::vector<std::unique_ptr<Parser>> parsers;
  for (unsigned i = 0; i < threads; ++i) parsers.push_back(std::make_unique<Parser>(options_));
  for (std::size_t i = 0; i < options_.literals.size(); i += Parser::kColumn) use(0, parsers[0]->literals(i));
  return share_out(threads, [&](unsigned thread, Source& source, Bytes block, std::uint64_t stored) {
    const Bytes whole = block;
    Batch batch;
    std::uint64_t count = 0;
    while (parsers[thread]->next(source, block, batch)) {
      use(thread, batch);
      count += batch.keys.size();
    }
    progress.advance(stored, count);
    source.release(whole);
  });
}

void digest_keys(const AnyHasher& hasher, KeysAs as, std::span<const Bytes> keys,
                 std::span<std::uint64_t> out) noexcept {
  if (as != KeysAs::u64) return hash_many(hasher, keys, out);
  std::visit(
      [&](const auto& h) {
        for (std::size_t i = 0; i < keys.size(); ++i) out[i] = h(little_endian<std::uint64_t>(keys[i].data())).value;
      },
      hasher);
}

void ask(const AnyFilter& filter, KeysAs as, std::span<const Bytes> keys, std::span<std::uint64_t> answers) {
  const DigestProbe* probe = filter.digests();
  if (probe == nullptr) return filter.may_contain(keys, answers);  // another system's: a number is its 8 bytes
  std::array<std::uint64_t, Parser::kColumn> digests;
  digest_keys(probe->hasher(), as, keys, digests);
  probe->may_contain(std::span<const std::uint64_t>(digests.data(), keys.size()), answers);
}

void check_key_format(const KeyOptions& options) {
  if (separated(options.as)) return;
  const char* name = options.as == KeysAs::u64 ? "u64" : "len32";
  if (options.field != 0) fail("--field: --keys-as {} has no fields", name);
  if (options.as == KeysAs::u64 && (options.lower || options.trim)) fail("--lower, --trim: --keys-as u64 has no text");
}

void check_stdin_once(const std::vector<std::string>& files, std::ptrdiff_t used) {
  if (used + std::count(files.begin(), files.end(), "-") > 1) fail("standard input (-) is named twice");
}

void read_stdin_if_none(KeyOptions& options) {
  check_key_format(options);
  check_stdin_once(options.files);
  if (!options.files.empty() || !options.literals.empty()) return;
  options.files = {"-"};
  if (is_terminal(STDIN_FILENO)) say("", "reading keys from the terminal; Ctrl-D ends them");
}

void declare_key_format(CLI::App& app, KeyOptions& options) {
  add_choice(
      app, "--keys-as", options.as,
      {{"lines", KeysAs::lines},
       {"nul", KeysAs::nul},
       {"hex", KeysAs::hex},
       {"len32", KeysAs::len32},
       {"u64", KeysAs::u64}},
      "How keys are written: one a line (default; an empty line is the empty key, a last line needs no newline); "
      "ended by NUL; hex digits, one key a line; a 32-bit little-endian length and that many bytes; or 64-bit "
      "little-endian numbers, hashed as numbers")
      ->group("Keys");
  app.add_flag_callback(
         "-0,--null", [&] { options.as = KeysAs::nul; }, "Short for --keys-as nul")
      ->group("Keys");
  add_count(app, "--field", options.field, "N",
            "The key is field N of each record, the first being 1; quotes mean nothing")
      ->group("Keys");
  app.add_option_function<std::string>(
         "--delimiter",
         [&](const std::string& text) {
           if (text == "\\t" || text == "tab") {
             options.delimiter = '\t';
           } else if (text.size() == 1) {
             options.delimiter = text[0];
           } else {
             fail("--delimiter {}: one character is needed (or \\t)", text);
           }
         },
         "What separates fields; default: a tab")
      ->type_name("C")
      ->group("Keys");
  app.add_flag("--lower", options.lower, "Turn A-Z of each key into a-z")->group("Keys");
  app.add_flag("--trim", options.trim, "Strip spaces, tabs and carriage returns from both ends of each key")
      ->group("Keys");
}

void declare_keys(CLI::App& app, KeyOptions& options) {
  app.add_option(
         "keys", options.files,
         "Files of keys; - is standard input, which is also read if there is no file and no -e; .gz and .zst are "
         "read as they are")
      ->type_name("FILE");
  app.add_option("-e,--key", options.literals,
                 "This key; may be repeated. With --keys-as u64 a number, with hex its digits")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->group("Keys");
  declare_key_format(app, options);
}

}  // namespace perhaps::cli
