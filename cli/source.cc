#include "source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "command.h"
#include "csv.h"
#include "doubts.h"
#include "file/descriptor.h"
#include "options.h"
#include "perhaps/file/mapping.h"
#include "print.h"
#include "reader.h"
#include "separators.h"

namespace perhaps::cli {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

class MappedSource : public Source {
 public:
  // `from`: where reading begins, for standard input.
  MappedSource(std::string name, const KeyOptions& options, Mapping file, std::size_t from)
      : Source(std::move(name), options), file_(std::move(file)), text_(file_.bytes().subspan(from)) {
    const std::byte* const start = text_.data();
    begin(text_);
    if (text_.data() != start) {
      before_ = count_separators({start, text_.data()}, separator_of(as_));
    }
  }

  bool mapped() const noexcept override { return true; }
  std::uint64_t size() const noexcept override { return text_.size(); }
  void rewind() override {
    at_ = 0;
    release(file_.bytes());  // pages that one thread faulted in again after another had dropped them
  }
  void be_frugal() noexcept override { block_ = kBlock / 8; }
  Bytes text() const noexcept override { return text_; }
  void drop() const noexcept override {
    if (!text_.empty()) file_.drop(file_.bytes());
  }
  // A thread that still reads its first page faults it in again; its last page belongs to the next block.
  void release(Bytes block) noexcept override {
    if (block_ != kBlock && !block.empty()) file_.drop(block);
  }

  Bytes next(std::uint64_t& stored) override {
    const std::lock_guard lock(mutex_);
    const Bytes rest = text_.subspan(at_);
    stored = 0;
    if (rest.empty()) return {};
    std::size_t size = whole_records(as_, rest, std::min(block_, rest.size()));
    if (size == 0) {
      if (as_ == KeysAs::len32) check_framed(name_, rest);
      if (binary(as_)) fail_cut_short(name_, as_, rest.size());
      size = rest.size();
    }
    if (size > kMaxRecord) check_last(rest.first(size));
    at_ += size;
    stored = size;
    return rest.first(size);
  }

  std::string place(const std::byte* at) const override {
    const auto before = text_.first(static_cast<std::size_t>(at - text_.data()));
    if (!binary(as_)) return fmt::format("{}:{}", name_, before_ + count_separators(before, separator_of(as_)) + 1);
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
    if (size > kMaxRecord) fail_too_long(name_, size, false);
  }

  Mapping file_;
  Bytes text_;
  std::uint64_t before_ = 0;  // lines of the header
  std::mutex mutex_;
  std::size_t at_ = 0;
  std::size_t block_ = kBlock;
};

class StreamSource : public Source {
 public:
  StreamSource(std::string name, const KeyOptions& options, std::uint64_t size, std::unique_ptr<Reader> plain)
      : Source(std::move(name), options), size_(size), reader_(unpacked(std::move(plain))) {}

  std::uint64_t size() const noexcept override { return size_; }

  Bytes next(std::uint64_t& stored) override {
    lines_ += binary(as_) ? count_records(as_, block_) : count_separators(block_, separator_of(as_));
    const std::uint64_t before = reader_->stored();
    // The rest of the last record moves to the front. The buffer grows for a record that is larger, but only with the
    // input.
    const Bytes rest = Bytes(buffer_).subspan(block_.size(), used_ - block_.size());
    if (!rest.empty()) std::memmove(buffer_.data(), rest.data(), rest.size());
    used_ = rest.size();
    std::size_t whole = 0;
    while (whole == 0) {
      if (used_ > kMaxRecord) fail_too_long(name_, kMaxRecord, true);
      if (used_ + kRead > buffer_.size()) {
        buffer_.resize(std::clamp(buffer_.size() * 2, 2 * kRead, kMaxRecord + 2 * kRead));
      }
      const std::size_t n = reader_->read(std::span(buffer_).subspan(used_, kRead));
      used_ += n;
      if (n == 0) {
        if (used_ != 0 && binary(as_)) fail_cut_short(name_, as_, used_);
        whole = used_;
        break;
      }
      // A separator can only be in the new part.
      if (separated(as_)) {
        const std::size_t fresh = whole_records(as_, Bytes(buffer_).subspan(used_ - n, n), SIZE_MAX);
        whole = fresh == 0 ? 0 : used_ - n + fresh;
      } else {
        const Bytes text = Bytes(buffer_).first(used_);
        whole = whole_records(as_, text, SIZE_MAX - 7);  // of CSV, the quotes are counted from the first record on
        // Its length is known before its bytes come.
        if (whole == 0 && as_ == KeysAs::len32) check_framed(name_, text);
      }
    }
    block_ = Bytes(buffer_).first(whole);
    stored = reader_->stored() - before;
    if (!std::exchange(begun_, true)) {
      Bytes records = block_;
      begin(records);
      if (const std::size_t taken = block_.size() - records.size();
          taken != 0) {  // block_ stays at the front of buffer_
        lines_ = count_separators(block_.first(taken), separator_of(as_));
        std::memmove(buffer_.data(), buffer_.data() + taken, used_ - taken);
        used_ -= taken;
        block_ = Bytes(buffer_).first(records.size());
        if (block_.empty()) return next(stored);
      }
    }
    return block_;
  }

  std::string place(const std::byte* at) const override {
    const auto before = block_.first(static_cast<std::size_t>(at - block_.data()));
    if (!binary(as_)) {
      return fmt::format("{}:{}", name_, lines_ + count_separators(before, separator_of(as_)) + 1);
    }
    return fmt::format("{}: record {}", name_, lines_ + count_records(as_, before) + 1);
  }

 private:
  static constexpr std::size_t kRead = std::size_t{1} << 17;
  std::uint64_t size_;
  std::unique_ptr<Reader> reader_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  Bytes block_;              // handed out last, at the front of buffer_
  std::uint64_t lines_ = 0;  // or binary records, before block_
  bool begun_ = false;
};

// The numbers of the columns that `fields` name. Throws Failure if one of them is not in the header.
std::vector<std::uint32_t> columns_of(const KeyOptions& options, const std::string& name, Bytes header) {
  const auto delimiter = static_cast<std::byte>(options.separator());
  std::vector<std::string> names;
  Bytes rest = csv::without_return(header);
  for (Bytes field; csv::next_field(rest, delimiter, field);) {
    std::string text(field.size(), '\0');
    if (csv::is_quoted(field)) {
      text.resize(csv::unquote(field, reinterpret_cast<std::byte*>(text.data())));
    } else if (!field.empty()) {
      std::memcpy(text.data(), field.data(), field.size());
    }
    names.push_back(std::move(text));
  }
  std::vector<std::uint32_t> columns;
  for (const std::string& wanted : options.fields) {
    const auto at = std::find(names.begin(), names.end(), wanted);
    if (at != names.end()) {
      if (std::find(at + 1, names.end(), wanted) != names.end())
        fail("{}: two columns have the name '{}'; give the number of one (--field)", name, wanted);
      columns.push_back(static_cast<std::uint32_t>(at - names.begin()) + 1);
    } else if (const auto number = parse_u64(wanted); number && wanted[0] != '-' && *number != 0) {
      columns.push_back(static_cast<std::uint32_t>(*number));
    } else {
      fail("{}: no column '{}' (--field); its columns are {}", name, wanted, fmt::join(names, ", "));
    }
  }
  return columns;
}

}  // namespace

bool begins_with_mark(Bytes text) noexcept {
  return text.size() >= 3 && text[0] == std::byte{0xef} && text[1] == std::byte{0xbb} && text[2] == std::byte{0xbf};
}

void Source::begin(Bytes& text) {
  if (binary(as_)) return;
  say_doubts(name_, text, options_);
  if (as_ == KeysAs::csv || as_ == KeysAs::json) {  // the mark cannot be a part of either
    if (begins_with_mark(text)) text = text.subspan(3);
    if (as_ == KeysAs::json || !options_.header || text.empty()) return;
    const std::size_t whole = csv::whole_records(text, 0);
    Bytes header = text.first(whole == 0 ? text.size() : whole);
    text = text.subspan(header.size());
    if (!header.empty() && header.back() == std::byte{'\n'}) header = header.first(header.size() - 1);
    header_.assign(reinterpret_cast<const char*>(header.data()), header.size());
    columns_ = columns_of(options_, name_, header);
  }
}

std::unique_ptr<Source> Source::open(const std::string& path, const KeyOptions& options, bool map) {
  const bool standard = path == "-";
  const std::string name = standard ? "standard input" : path;
  Descriptor file(standard ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (path.empty()) fail("the name of a file is empty");
    const bool may_be_a_key =
        errno == ENOENT && options.has_literals && path.find('/') == std::string::npos && !path.starts_with('-');
    fail("{}: {}{}", name, std::strerror(errno), may_be_a_key ? fmt::format("; a key is given as -e {}", path) : "");
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("{}: {}", name, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail("{}: is a directory", name);
  const off_t at = S_ISREG(status.st_mode) ? ::lseek(file.get(), 0, SEEK_CUR) : -1;
  if (map && at >= 0) {
    std::array<std::byte, kMagic> start{};
    const ssize_t n = ::pread(file.get(), start.data(), start.size(), at);
    if (n < 0) fail("{}: {}", name, std::strerror(errno));
    // An empty file cannot be mapped, and there is nothing to read.
    if (n == 0) return std::make_unique<MappedSource>(name, options, Mapping(), 0);
    // Files under /proc have no size and can only be read. If fewer bytes came than there are, they do not say how the
    // file is packed, and it is read.
    const auto left = std::max<off_t>(status.st_size - at, 0);
    if (left != 0 && n == std::min<off_t>(left, start.size()) &&
        packing_of(Bytes(start).first(static_cast<std::size_t>(n))) == Packing::none) {
      auto mapping =
          Mapping::of(file.get(), static_cast<std::uint64_t>(status.st_size), Mapping::Access::sequential, name);
      if (mapping)
        return std::make_unique<MappedSource>(name, options, *std::move(mapping), static_cast<std::size_t>(at));
    }
  }
  const auto size = at >= 0 ? static_cast<std::uint64_t>(std::max<off_t>(status.st_size - at, 0)) : 0;
  return std::make_unique<StreamSource>(name, options, size, std::make_unique<Reader>(name, std::move(file)));
}

}  // namespace perhaps::cli
