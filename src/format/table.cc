#include "format/table.h"

#include <algorithm>
#include <array>

#include "format/snappy.h"
#include "hash/checksum.h"
#include "hash/crc32c.h"
#include "hash/xxh64.h"
#include "perhaps/detail/bits.h"

namespace perhaps::format {

namespace {

std::uint32_t plain_sum(BlockSum::Kind kind, Bytes bytes) noexcept {
  switch (kind) {
    case BlockSum::Kind::none:
      return 0;
    case BlockSum::Kind::crc32c:
      return masked_crc(crc32c(bytes));
    case BlockSum::Kind::xxh32:
      return xxh32(bytes, 0);
    case BlockSum::Kind::xxh64:
      return static_cast<std::uint32_t>(xxh64(bytes, 0));
    case BlockSum::Kind::xxh3:
      break;
  }
  const auto last = std::to_integer<std::uint32_t>(bytes.back());
  return static_cast<std::uint32_t>(checksum_of(bytes.first(bytes.size() - 1))) ^ last * 0x6b9083d9u;
}

}  // namespace

std::uint32_t BlockSum::of(Bytes bytes, std::uint64_t offset) const noexcept {
  const auto place = static_cast<std::uint32_t>(offset) + static_cast<std::uint32_t>(offset >> 32);
  return plain_sum(kind, bytes) + (context == 0 ? 0 : context ^ place);
}

std::uint64_t magic_of(Bytes file) noexcept { return file.size() < 8 ? 0 : Reader(file.last(8)).le<std::uint64_t>(); }

Result<Footer> Footer::read(std::string_view format, Bytes file) {
  Footer footer;
  footer.magic = magic_of(file);
  const bool rocksdb = footer.magic == kRocksDbMagic;
  if (!rocksdb && footer.magic != kLevelDbMagic)
    return bad(Errc::bad_magic, format, "the footer has the wrong magic number");
  const std::uint64_t size = rocksdb ? 53 : 48;
  if (file.size() < size)
    return bad(Errc::truncated, format, "the footer has ", size, " bytes, the file ", file.size());
  Reader in(file.last(size));
  if (rocksdb) {
    footer.version = Reader(file.last(12)).le<std::uint32_t>();
    if (footer.version < 1 || footer.version > 7)
      return bad(Errc::unsupported, format, "format_version ", footer.version, " is not known");
    const auto sum = in.le<std::uint8_t>();
    if (sum > static_cast<std::uint8_t>(BlockSum::Kind::xxh3))
      return bad(Errc::unsupported, format, "checksum type ", sum, " is not known");
    footer.sum.kind = BlockSum::Kind{sum};
  }
  if (footer.version >= 6) {
    const bool extended = in.le<std::uint32_t>() == 0x007a003e;
    const auto stored = in.le<std::uint32_t>();
    footer.sum.context = in.le<std::uint32_t>();
    footer.metaindex.size = in.le<std::uint32_t>();
    in.take(16);
    if (!extended || footer.sum.context == 0)
      return bad(Errc::bad_magic, format, "the footer has the wrong inner magic number");
    if (in.le<std::uint64_t>() != 0) return bad(Errc::unsupported, format, "the footer uses a reserved field");
    const std::uint64_t at = file.size() - size;
    Buffer whole(file.end() - static_cast<std::ptrdiff_t>(size), file.end());
    std::fill_n(whole.begin() + 5, 4, std::byte{0});
    if (footer.sum.kind != BlockSum::Kind::none && footer.sum.of(whole, at) != stored)
      return bad(Errc::bad_checksum, format, "the checksum of the footer is wrong");
    if (at < kBlockTrailer || footer.metaindex.size > at - kBlockTrailer)
      return bad(Errc::truncated, format, "the metaindex has ", footer.metaindex.size, " bytes, but ends at byte ", at);
    footer.metaindex.offset = at - kBlockTrailer - footer.metaindex.size;
    return footer;
  }
  Reader handles(in.take(40));
  footer.metaindex = Handle::read(handles);
  footer.index = Handle::read(handles);
  if (handles.is_short()) return bad(Errc::bad_parameter, format, "the footer does not hold two handles");
  return footer;
}

Result<Bytes> read_block(std::string_view format, std::string_view what, Bytes file, Handle at, BlockSum sum,
                         std::shared_ptr<const Buffer>* owner) {
  if (!at.fits(file)) {
    return bad(Errc::truncated, format, "the ", what, ", ", at.size, " bytes at ", at.offset,
               ", ends after the end of the file of ", file.size());
  }
  const Bytes block_and_type = file.subspan(at.offset, at.size + 1);
  const auto stored = Reader(file.subspan(at.offset + at.size + 1, 4)).le<std::uint32_t>();
  if (sum.kind != BlockSum::Kind::none && sum.of(block_and_type, at.offset) != stored)
    return bad(Errc::bad_checksum, format, "the checksum of the ", what, " is wrong");
  const Bytes block = block_and_type.first(at.size);
  const auto compression = std::to_integer<unsigned>(block_and_type.back());
  if (compression == 0) return block;
  if (compression != 1 || owner == nullptr)
    return bad(Errc::unsupported, format, "the ", what, " is compressed (type ", compression, ")");
  auto plain = snappy_uncompressed(block);
  if (!plain) return bad(Errc::bad_parameter, format, "the ", what, " is not the Snappy block it claims to be");
  *owner = std::make_shared<const Buffer>(*std::move(plain));
  return Bytes(**owner);
}

bool Entries::next() noexcept {
  if (damaged_ || in_.rest().empty()) return false;
  at_ = in_.at();
  const std::uint64_t before = key_size();
  shared_ = in_.varint();
  const std::uint64_t size = in_.varint();
  const std::uint64_t value_size = values_ == IndexValues::sized ? in_.varint() : 0;
  rest_ = in_.take(size);
  if (values_ == IndexValues::sized) {
    value_ = in_.take(value_size);
    Reader value(value_);
    handle_ = Handle::read(value);
    is_handle_ = !value.is_short();
  } else if (shared_ == 0) {
    handle_ = Handle::read(in_);
  } else {
    const std::uint64_t zigzag = in_.varint();
    handle_.offset += handle_.size + kBlockTrailer;
    handle_.size += zigzag >> 1 ^ (std::uint64_t{0} - (zigzag & 1));
  }
  damaged_ = in_.is_short() || shared_ > before;
  return !damaged_;
}

std::optional<Block> Block::of(Bytes bytes) noexcept {
  if (bytes.size() < 4) return {};
  const std::uint64_t restarts = Reader(bytes.last(4)).le<std::uint32_t>();
  if (restarts > (bytes.size() - 4) / 4) return {};
  const std::uint64_t entries = bytes.size() - 4 - 4 * restarts;
  return Block{bytes.first(entries), bytes.subspan(entries, 4 * restarts)};
}

bool is_rocksdb_metaindex(Bytes file) {
  constexpr std::string_view kFormat = "table";
  const auto footer = Footer::read(kFormat, file);
  if (!footer) return false;
  std::shared_ptr<const Buffer> owner;
  const auto metaindex = read_block(kFormat, "metaindex", file, footer->metaindex, footer->sum, &owner);
  const auto block = metaindex ? Block::of(*metaindex) : std::nullopt;
  bool found = false;
  if (block) block->each([&](std::string_view key, Bytes) { found |= key.find("rocksdb") != key.npos; });
  return found;
}

namespace {

constexpr std::uint64_t kNewest = ~std::uint64_t{0} >> 8;

// A shortened separator has the highest possible sequence number, so it sorts before a lookup of the same user key.
bool after_lookup(std::uint64_t suffix) noexcept { return suffix >> 8 != kNewest; }

// Compares a target with each of a run of prefix-compressed keys without rebuilding them: of each key, only the part
// that it does not share with the key before is given.
class Running {
 public:
  Running(Bytes target, bool internal) noexcept : target_(target), internal_(internal) {}

  void take(std::uint64_t shared, Bytes rest) noexcept {
    size_ = shared + rest.size();
    if (shared <= same_) {
      for (same_ = shared; same_ < std::min<std::uint64_t>(target_.size(), size_); ++same_) {
        next_ = rest[same_ - shared];
        if (next_ != target_[same_]) break;
      }
    }
    // The suffix of the key, if its user key is as long as the target.
    for (std::uint64_t i = 0; i < kInternalSuffix; ++i) {
      const std::uint64_t at = target_.size() + i;
      if (at >= shared && at < size_) suffix_[i] = rest[at - shared];
    }
  }
  bool at_least_target() const noexcept {
    const std::uint64_t user_size = internal_ ? size_ - kInternalSuffix : size_;
    if (same_ < std::min<std::uint64_t>(user_size, target_.size())) return next_ > target_[same_];
    if (user_size != target_.size()) return user_size > target_.size();
    return !internal_ || after_lookup(detail::load<std::uint64_t>(suffix_.data()));
  }

 private:
  Bytes target_;
  bool internal_;
  std::uint64_t same_ = 0;  // length of the common prefix
  std::byte next_{};        // byte of the key after it
  std::uint64_t size_ = 0;
  std::array<std::byte, kInternalSuffix> suffix_{};
};

bool at_least(Bytes key, Bytes target, bool internal) noexcept {
  Running running(target, internal);
  running.take(0, key);
  return running.at_least_target();
}

}  // namespace

Bytes Index::key_at(std::uint64_t restart) const noexcept {
  Entries entry(block_.entries.subspan(block_.restart(restart)), values_);
  entry.next();
  return entry.rest();
}

Result<Index> Index::over(std::string_view format, std::string_view what, Bytes bytes, IndexValues values,
                          bool internal_keys) {
  const auto block = Block::of(bytes);
  if (!block) return bad(Errc::bad_parameter, format, "the ", what, " claims more restarts than fit into it");
  Index index;
  index.block_ = *block;
  index.values_ = values;
  index.internal_ = internal_keys;
  const std::uint64_t restarts = block->restart_count();
  Entries entry(block->entries, values);
  std::string_view last;
  while (entry.next()) {
    if (internal_keys && entry.key_size() < kInternalSuffix)
      return bad(Errc::bad_parameter, format, "the ", what, " has a key of ", entry.key_size(), " bytes");
    const std::uint64_t seen = index.first_.size();
    if (seen < restarts && entry.at() == block->restart(seen) && entry.shared() == 0) {
      const std::string_view key =
          text_of(entry.rest().first(entry.rest().size() - (internal_keys ? kInternalSuffix : 0)));
      index.ascends_ &= last <= key;
      last = key;
      index.first_.push_back(static_cast<std::uint32_t>(index.pieces_.size()));
    }
    if (!entry.is_handle()) return bad(Errc::bad_parameter, format, "the ", what, " has a value that is not a handle");
    index.pieces_.push_back(entry.handle());
  }
  if (entry.is_damaged())
    return bad(Errc::bad_parameter, format, "the ", what, " has an entry that ends after its end");
  if (!index.pieces_.empty() && (index.first_.size() != restarts || restarts == 0 || index.first_.front() != 0))
    return bad(Errc::bad_parameter, format, "the ", what, " has a restart where no entry begins");
  return index;
}

std::uint64_t Index::find(Bytes user_key) const noexcept {
  if (pieces_.empty()) return 0;
  // The last restart before the key, or the first one.
  std::uint64_t low = 0;
  for (std::uint64_t high = first_.size(); high - low > 1;) {
    const std::uint64_t middle = low + (high - low) / 2;
    (at_least(key_at(middle), user_key, internal_) ? high : low) = middle;
  }
  Entries entry(block_.entries.subspan(block_.restart(low)), values_);
  Running running(user_key, internal_);
  for (std::uint64_t piece = first_[low]; entry.next(); ++piece) {
    running.take(entry.shared(), entry.rest());
    if (running.at_least_target()) return piece;
  }
  return pieces_.size();
}

bool Index::looks_internal(Bytes bytes) noexcept {
  const auto block = Block::of(bytes);
  if (!block || block->entries.empty()) return true;
  for (std::uint64_t i = 0; i < block->restart_count(); ++i) {
    if (block->restart(i) >= block->entries.size()) return false;
    Entries entry(block->entries.subspan(block->restart(i)));
    if (!entry.next() || entry.rest().size() < kInternalSuffix) return false;
    const auto suffix = Reader(entry.rest().last(kInternalSuffix)).le<std::uint64_t>();
    // No database has reached sequence number 2^48.
    if ((suffix & 0xff) > 1 || (suffix >> 8 != kNewest && suffix >> 56 != 0)) return false;
  }
  return true;
}

}  // namespace perhaps::format
