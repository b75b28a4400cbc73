// What LevelDB and RocksDB tables are made of: sorted blocks, their checksums, the footer.
//
//   table    = data blocks | filter blocks | metaindex | index | footer
//   block    = entries | u32 LE offset of each restart | u32 LE number of restarts
//   entry    = varint shared | varint rest | varint value size | `rest` bytes of the key | value
//   trailer  = u8 compression, 0 none, 1 snappy | u32 LE checksum             after the block, not counted in its size
//   handle   = varint offset | varint size
//   footer   = metaindex handle | index handle | zeros up to 40 bytes | u64 LE magic                           LevelDB
//              u8 checksum type | the same 40 bytes | u32 LE format_version | u64 LE magic             RocksDB, 1 to 5
//              u8 checksum type | 3e 00 7a 00 | u32 LE checksum of the footer, itself taken as 0 | u32 LE context |
//              u32 LE metaindex size | 24 zeros | u32 LE format_version | u64 LE magic                 RocksDB, 6 and 7
//
// A key begins with the first `shared` bytes of the one before; a restart is an entry that shares nothing. An internal
// key is a user key and u64 LE sequence << 8 | type; of the same user key the newer sorts first. An index names for
// each piece of a table a key not less than its last one, and its values are handles. Some of RocksDB's have no value
// size, and where `shared` is not 0 a zig-zag varint for a handle: the piece follows the one before, and is so much
// larger.
#pragma once
#include <optional>

#include "format/codec.h"

namespace perhaps::format {

inline constexpr std::uint64_t kBlockTrailer = 5;
inline constexpr std::uint64_t kInternalSuffix = 8;

struct Handle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  static Handle read(Reader& in) noexcept {
    const std::uint64_t offset = in.varint();
    return {offset, in.varint()};
  }
  // With its trailer.
  bool fits(Bytes file) const noexcept {
    const std::uint64_t end = file.size();
    return end >= kBlockTrailer && size <= end - kBlockTrailer && offset <= end - kBlockTrailer - size;
  }
};

// How the blocks of a table are checked.
struct BlockSum {
  enum class Kind : std::uint8_t { none, crc32c, xxh32, xxh64, xxh3 };
  Kind kind = Kind::crc32c;
  std::uint32_t context = 0;  // of the file; 0: a block may lie anywhere

  // Of a block and the compression byte after it, at this place of the file.
  std::uint32_t of(Bytes block_and_type, std::uint64_t offset) const noexcept;
};

struct Footer {
  static constexpr std::uint64_t kLevelDbMagic = 0xdb4775248b80fb57;
  static constexpr std::uint64_t kRocksDbMagic = 0x88e241b785f4cff7;

  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  BlockSum sum;
  Handle metaindex;
  Handle index;  // none from version 6 on, where the metaindex names it

  static Result<Footer> read(std::string_view format, Bytes file);
};
// What the last eight bytes say.
std::uint64_t magic_of(Bytes file) noexcept;

// The bytes of a block: within the file and with the right checksum. `what` is for the error. What was compressed lives
// in `owner`; without one only raw blocks are read.
Result<Bytes> read_block(std::string_view format, std::string_view what, Bytes file, Handle at, BlockSum sum,
                         std::shared_ptr<const Buffer>* owner = nullptr);

inline std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum class IndexValues : std::uint8_t { sized, handles };

// Entries from the front. Whatever the bytes are, it ends.
class Entries {
 public:
  explicit Entries(Bytes entries, IndexValues values = IndexValues::sized) noexcept : values_(values), in_(entries) {}

  bool next() noexcept;
  bool is_damaged() const noexcept { return damaged_; }

  std::uint64_t at() const noexcept { return at_; }
  std::uint64_t shared() const noexcept { return shared_; }
  Bytes rest() const noexcept { return rest_; }
  std::uint64_t key_size() const noexcept { return shared_ + rest_.size(); }
  Bytes value() const noexcept { return value_; }
  bool is_handle() const noexcept { return is_handle_; }
  Handle handle() const noexcept { return handle_; }

 private:
  IndexValues values_;
  Reader in_;
  Bytes rest_, value_;
  Handle handle_;
  std::uint64_t at_ = 0, shared_ = 0;
  bool is_handle_ = true;
  bool damaged_ = false;
};

// A block cut into its two parts.
struct Block {
  Bytes entries;
  Bytes restarts;

  static std::optional<Block> of(Bytes bytes) noexcept;
  std::uint64_t restart_count() const noexcept { return restarts.size() / 4; }
  std::uint32_t restart(std::uint64_t i) const noexcept {
    return Reader(restarts.subspan(4 * i, 4)).le<std::uint32_t>();
  }
  // Calls use(key, value) for every entry; the key lives as long as the call. False: the block is damaged.
  template <class Use>
  bool each(Use use) const {
    std::string key;
    Entries entry(entries);
    while (entry.next()) {
      key.resize(entry.shared());
      key += text_of(entry.rest());
      use(std::string_view(key), entry.value());
    }
    return !entry.is_damaged();
  }
};

// The oldest tables of RocksDB have LevelDB's footer: what the metaindex names tells them apart.
bool is_rocksdb_metaindex(Bytes file);

// Finds the piece of a table that a key would be in. It keeps the bytes as they are, since keys that share most of
// their bytes would take far more memory than the block itself; a search compares them piecemeal.
class Index {
 public:
  Index() = default;
  static Result<Index> over(std::string_view format, std::string_view what, Bytes bytes, IndexValues values,
                            bool internal_keys);

  std::span<const Handle> pieces() const noexcept { return pieces_; }
  // The number of the first piece whose key is not less than a lookup of `user_key` at the newest sequence;
  // pieces().size() if there is none.
  std::uint64_t find(Bytes user_key) const noexcept;
  // The keys at the restarts ascend byte by byte: find() can be trusted.
  bool ascends() const noexcept { return ascends_; }
  // Every key at a restart ends as internal keys do.
  static bool looks_internal(Bytes bytes) noexcept;

 private:
  Bytes key_at(std::uint64_t restart) const noexcept;

  Block block_;
  IndexValues values_ = IndexValues::sized;
  bool internal_ = false;
  bool ascends_ = true;
  std::vector<Handle> pieces_;
  std::vector<std::uint32_t> first_;  // the number of the piece at each restart
};

}  // namespace perhaps::format
