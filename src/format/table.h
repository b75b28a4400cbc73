// What LevelDB and RocksDB tables are made of: sorted blocks, their checksums, the footer.
//
//   table    = data blocks | filter blocks | metaindex | index | footer
//   block    = entries | u32 LE offset of each restart | u32 LE number of restarts
//   entry    = varint shared | varint rest | varint value size | `rest` bytes of the key | value
//   trailer  = u8 compression: 0 none, 1 snappy | u32 LE checksum             after the block, not counted in its size
//   handle   = varint offset | varint size
//   footer   = metaindex handle | index handle | zeros up to 40 bytes | u64 LE magic                           LevelDB
//              u8 checksum type | the same 40 bytes | u32 LE format_version | u64 LE magic             RocksDB, 1 to 5
//              u8 checksum type | 3e 00 7a 00 | u32 LE checksum of the footer with this field 0 | u32 LE context |
//              u32 LE metaindex size | 24 zeros | u32 LE format_version | u64 LE magic                 RocksDB, 6 and 7
//
// A key begins with the first `shared` bytes of the previous key; a restart is an entry that shares nothing. An
// internal key is a user key followed by u64 LE sequence << 8 | type; for equal user keys the newer one sorts first. An
// index has an entry for each piece of a table: a key not less than the last key of the piece, and the handle of the
// piece. In some indexes of RocksDB the entries have no value size, and if `shared` is not 0, the handle is a zigzag
// varint: the piece follows the previous one, and its size differs by this number.
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
  // Including its trailer.
  bool fits(Bytes file) const noexcept {
    const std::uint64_t end = file.size();
    return end >= kBlockTrailer && size <= end - kBlockTrailer && offset <= end - kBlockTrailer - size;
  }
};

// How the blocks of a table are checked.
struct BlockSum {
  enum class Kind : std::uint8_t { none, crc32c, xxh32, xxh64, xxh3 };
  Kind kind = Kind::crc32c;
  std::uint32_t context = 0;  // of the file; 0: the checksum does not depend on the block's offset

  // The checksum of a block and its compression byte at this offset in the file.
  std::uint32_t of(Bytes block_and_type, std::uint64_t offset) const noexcept;
};

struct Footer {
  static constexpr std::uint64_t kLevelDbMagic = 0xdb4775248b80fb57;
  static constexpr std::uint64_t kRocksDbMagic = 0x88e241b785f4cff7;

  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  BlockSum sum;
  Handle metaindex;
  Handle index;  // none since version 6, where the metaindex has it

  static Result<Footer> read(std::string_view format, Bytes file);
};
// The last eight bytes.
std::uint64_t magic_of(Bytes file) noexcept;

// The bytes of a block, after checking that it is inside the file and that its checksum is right. `what` names it in
// errors. `owner` keeps the bytes of a compressed block; without it, compressed blocks are an error.
Result<Bytes> read_block(std::string_view format, std::string_view what, Bytes file, Handle at, BlockSum sum,
                         std::shared_ptr<const Buffer>* owner = nullptr);

inline std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum class IndexValues : std::uint8_t { sized, handles };

// Iterates over entries. Terminates whatever the bytes are.
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

// A block, split into its two parts.
struct Block {
  Bytes entries;
  Bytes restarts;

  static std::optional<Block> of(Bytes bytes) noexcept;
  std::uint64_t restart_count() const noexcept { return restarts.size() / 4; }
  std::uint32_t restart(std::uint64_t i) const noexcept {
    return Reader(restarts.subspan(4 * i, 4)).le<std::uint32_t>();
  }
  // Calls use(key, value) for every entry; the key is valid only during the call. Returns false if the block is
  // damaged.
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

// The oldest tables of RocksDB have LevelDB's footer; the names in the metaindex tell them apart.
bool is_rocksdb_metaindex(Bytes file);

// Finds the piece of a table that would hold a key. The keys stay prefix-compressed, because expanded they could take
// far more memory than the block itself; a search compares them part by part.
class Index {
 public:
  Index() = default;
  static Result<Index> over(std::string_view format, std::string_view what, Bytes bytes, IndexValues values,
                            bool internal_keys);

  std::span<const Handle> pieces() const noexcept { return pieces_; }
  // The number of the first piece whose key is not less than a lookup of `user_key` at the newest sequence;
  // pieces().size() if there is none.
  std::uint64_t find(Bytes user_key) const noexcept;
  // Whether the keys at the restarts are in bytewise order. Only then is find() right.
  bool ascends() const noexcept { return ascends_; }
  // Whether every key at a restart ends like an internal key.
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
