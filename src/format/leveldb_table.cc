// leveldb-table: the filter of a LevelDB table file (.ldb, .sst), queried as DB::Get does: the index gives the data
// block that would hold the key, and the offset of that block gives the window. leveldb-filterblock: the filter block
// alone.
#include "format/leveldb_table.h"

#include "format/packed.h"
#include "format/registry.h"
#include "hash/fnv.h"
#include "perhaps/engine/packed.h"

namespace perhaps::format {

FilterBlock::FilterBlock(Bytes block, Windows kind) noexcept : block_(block), kind_(kind) {
  if (block.size() < 5) return;
  Reader tail(block.last(5));
  const std::uint64_t at = tail.le<std::uint32_t>();
  base_lg_ = tail.le<std::uint8_t>();
  if (at > block.size() - 5) return;
  filters_ = block.first(at);
  offsets_ = block.subspan(at, (block.size() - 5 - at) / 4 * 4);
  readable_ = base_lg_ < 64;
}

std::uint64_t FilterBlock::hash_of(Bytes key) const noexcept {
  return kind_ == Windows::bloom ? leveldb_hash(key) : Hash()(key).value;
}

std::optional<Bytes> FilterBlock::window(std::uint64_t i) const noexcept {
  // For the last window, the limit is the number after the offsets.
  Reader in(block_.subspan(filters_.size() + 4 * i, 8));
  const auto start = in.le<std::uint32_t>();
  const auto limit = in.le<std::uint32_t>();
  if (start == limit) return Bytes();
  if (start > limit || limit > filters_.size()) return {};
  return filters_.subspan(start, limit - start);
}

bool FilterBlock::window_may_contain(std::uint64_t i, std::uint64_t h) const noexcept {
  const auto blob = window(i);
  if (!blob) return true;
  if (kind_ == Windows::packed) return !blob->empty() && packed_may_contain(*blob, h);
  // Exactly as in LevelDB: less than two bytes hold no key.
  return blob->size() >= 2 && LevelDb::may_contain(*blob, static_cast<std::uint32_t>(h));
}

bool FilterBlock::may_contain(std::uint64_t block_offset, std::uint64_t h) const noexcept {
  if (!readable_ || block_offset >> base_lg_ >= windows()) return true;
  return window_may_contain(block_offset >> base_lg_, h);
}

bool FilterBlock::in_any_window(std::uint64_t h) const noexcept {
  if (!readable_) return true;
  for (std::uint64_t i = 0; i < windows(); ++i) {
    if (window_may_contain(i, h)) return true;
  }
  return false;
}

std::optional<Error> FilterBlock::damage(std::string_view format) const {
  if (block_.size() < 5)
    return bad(Errc::truncated, format, "the filter block has ", block_.size(), " bytes, needs at least 5");
  if (base_lg_ > 63) return bad(Errc::bad_parameter, format, "windows of 2^", base_lg_, " bytes");
  if (!readable_) return bad(Errc::truncated, format, "the offsets begin after the end of the filter block");
  if (filters_.size() + offsets_.size() + 5 != block_.size())
    return bad(Errc::bad_parameter, format, "the offsets are not a whole number of 4-byte words");
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < windows(); ++i) {
    const auto start = Reader(offsets_.subspan(4 * i, 4)).le<std::uint32_t>();
    const auto blob = window(i);
    if (start != end || !blob)
      return bad(Errc::bad_parameter, format, "window ", i, " does not follow the previous one");
    end += blob->size();
    if (blob->empty() || kind_ == Windows::packed) continue;
    if (blob->size() < 2) return bad(Errc::truncated, format, "window ", i, " has a filter of one byte");
    const auto probes = std::to_integer<std::uint64_t>(blob->back());
    if (probes < 1 || probes > LevelDb::kMaxProbes)
      return bad(Errc::bad_parameter, format, "window ", i, " has a filter with ", probes, " probes");
  }
  if (end != filters_.size())
    return bad(Errc::bad_parameter, format, filters_.size() - end, " bytes belong to no window");
  return {};
}

// Rates are weighted by bits: a window has as many as it has keys.
struct FilterBlock::Sums {
  double set = 0;
  double formula = 0;
  double hits = 0;
  std::uint64_t queries = 0;  // in each window
  std::uint64_t state = 0;    // of the random hashes
  std::uint64_t unusable = 0;
};

void FilterBlock::add_bloom(Bytes blob, Sums& sums, Description& d) const {
  const double bits = 8 * static_cast<double>(blob.size() - 1);
  const auto probes = std::to_integer<std::uint32_t>(blob.back());
  const double fill = fill_of(blob, 8 * (blob.size() - 1));
  d.probes = std::max(d.probes, probes);
  d.bits += 8 * (blob.size() - 1);
  sums.set += fill * bits;
  if (probes != 0 && fill < 1) d.keys_estimated -= std::log1p(-fill) * bits / probes;
  sums.formula += std::pow(fill, probes) * bits;
  std::uint64_t found = 0;
  for (std::uint64_t j = 0; j < sums.queries; ++j)
    found += LevelDb::may_contain(blob, static_cast<std::uint32_t>(splitmix64(sums.state++)));
  sums.hits += static_cast<double>(found) / static_cast<double>(sums.queries) * bits;
}

void FilterBlock::add_packed(Bytes blob, Sums& sums, Description& d) const {
  const Description window = PackedView::over(blob).describe();
  const double bits = 8 * static_cast<double>(blob.size());
  if (window.fpr < 1) d.family = window.family;
  d.probes = std::max(d.probes, window.probes);
  d.bits += 8 * blob.size();
  d.keys_estimated += window.keys ? static_cast<double>(*window.keys) : window.keys_estimated;
  sums.unusable += window.fpr == 1;
  sums.set += window.fill * bits;
  sums.formula += window.fpr * bits;
  sums.hits += window.fpr * bits;
}

Description FilterBlock::describe() const {
  Description d;
  d.format = kName;
  d.family = kind_ == Windows::bloom ? "classic" : "none";
  d.hash = kind_ == Windows::bloom ? LevelDbScheme::hash : name_of(AnyHasher(Hash()));
  d.bytes = block_.size();
  d.fpr = readable_ ? 0 : 1;
  std::uint64_t empty = 0;
  Sums sums;
  sums.queries = std::max<std::uint64_t>(16, (std::uint64_t{1} << 18) / std::max<std::uint64_t>(windows(), 1));
  // The bound on d.bits keeps overlapping windows from making this pass longer than the block.
  for (std::uint64_t i = 0; readable_ && i < windows() && d.bits <= std::uint64_t{8} * filters_.size(); ++i) {
    const auto blob = window(i);
    empty += blob && blob->empty();
    if (!blob || blob->empty()) continue;
    if (kind_ == Windows::packed) {
      add_packed(*blob, sums, d);
    } else if (blob->size() >= 2) {
      add_bloom(*blob, sums, d);
    }
  }
  if (d.bits != 0) {
    const auto bits = static_cast<double>(d.bits);
    d.fill = sums.set / bits;
    d.fpr = sums.hits / bits;
    sums.formula /= bits;
  }
  d.more = {{"windows", std::to_string(windows()) + " of 2^" + std::to_string(base_lg_) + " bytes, " +
                            std::to_string(empty) + " without a block"}};
  if (base_lg_ != kBaseLg) d.more.emplace_back("unusual", "LevelDB writes windows of 2^11 bytes");
  if (sums.unusable != 0) d.more.emplace_back("perhaps for every key", std::to_string(sums.unusable) + " windows");
  if (d.fpr > 1.1 * sums.formula)
    d.more.emplace_back("formula", percent_text(sums.formula) + ", not reached by these probes");
  return d;
}

Buffer filter_block_of(std::span<const Bytes> keys, std::span<const DataBlock> blocks, std::uint64_t end,
                       std::uint64_t bits_per_key) {
  constexpr unsigned kLg = FilterBlock::kBaseLg;
  Writer out;
  std::vector<std::uint32_t> offsets;
  std::uint64_t from = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    const std::uint64_t window = blocks[i].offset >> kLg;
    offsets.resize(std::max<std::uint64_t>(window, offsets.size()), static_cast<std::uint32_t>(out.size()));
    std::uint64_t count = 0;
    for (; i < blocks.size() && blocks[i].offset >> kLg == window; ++i) count += blocks[i].keys;
    if (count == 0) continue;
    offsets.push_back(static_cast<std::uint32_t>(out.size()));
    LevelDb::append(out, keys.subspan(from, count), bits_per_key);
    from += count;
  }
  offsets.resize(std::max<std::uint64_t>(end >> kLg, offsets.size()), static_cast<std::uint32_t>(out.size()));
  const auto at = static_cast<std::uint32_t>(out.size());
  for (const std::uint32_t offset : offsets) out.le(offset);
  out.le(at).le(std::uint8_t{kLg});
  return std::move(out).done();
}

namespace {

// A filter block without its table. The data block of a key is unknown, so every window is queried.
class AnyWindow final : public AnyFilter {
 public:
  explicit AnyWindow(FilterBlock block) noexcept : block_(block) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::uint64_t answers = 0;
    for (std::size_t i = 0; i < keys.size(); ++i)
      answers |= std::uint64_t{block_.in_any_window(block_.hash_of(keys[i]))} << i;
    return answers;
  }
  std::uint64_t byte_size() const noexcept override { return block_.bytes(); }
  Description describe() const override {
    Description d = block_.describe();
    d.more.emplace_back("one window", percent_text(d.fpr) + ", the rate when queried through the table");
    // Windows of equal size probe the same positions, so their answers are not independent: measure them together,
    // until the rate is known to 1.6 % or about as many probes were made as for a large filter.
    constexpr std::uint64_t kEnough = 4096;
    constexpr std::uint64_t kProbes = std::uint64_t{1} << 24;
    const std::uint64_t windows = std::max<std::uint64_t>(block_.windows(), 1);
    const std::uint64_t most = std::clamp<std::uint64_t>(kProbes / windows, 64, kProbes / 64);
    std::uint64_t hits = 0, queries = 0;
    while (queries < most && hits < kEnough) hits += block_.in_any_window(splitmix64(queries++));
    if (hits >= 16) d.fpr = static_cast<double>(hits) / static_cast<double>(queries);
    return d;
  }

 private:
  FilterBlock block_;
};

// Queried as DB::Get does.
class Table final : public AnyFilter {
 public:
  Table(FilterBlock block, Index index, bool internal, std::shared_ptr<const Buffer> owner) noexcept
      : block_(block), index_(std::move(index)), internal_(internal), owner_(std::move(owner)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::uint64_t answers = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) answers |= std::uint64_t{may_contain_one(keys[i])} << i;
    return answers;
  }
  std::uint64_t byte_size() const noexcept override { return block_.bytes(); }
  Description describe() const override {
    Description d = block_.describe();
    d.format = "leveldb-table";
    d.more.emplace_back("data blocks", std::to_string(index_.pieces().size()));
    d.more.emplace_back("stores", internal_ ? "internal keys" : "plain keys");
    return d;
  }

 private:
  bool may_contain_one(Bytes key) const noexcept {
    const std::uint64_t piece = index_.find(key);
    return piece < index_.pieces().size() && block_.may_contain(index_.pieces()[piece].offset, block_.hash_of(key));
  }

  FilterBlock block_;
  Index index_;
  bool internal_;
  std::shared_ptr<const Buffer> owner_;  // of the index, if it was compressed
};

constexpr std::string_view kTable = "leveldb-table";
constexpr std::string_view kBuiltinPolicy = "leveldb.BuiltinBloomFilter2";

constexpr Param kTableParams[] = {
    {"keys", "keys of the table; a database stores internal keys, of which the filter holds the user keys",
     Param::Type::word, "guess", 0, 0, "guess|internal|plain"},
};

Sniffed sniff_table(const Source& source) {
  if (magic_of(source.bytes) != Footer::kLevelDbMagic) return Sniffed::no;
  return is_rocksdb_metaindex(source.bytes) ? Sniffed::no : Sniffed::certain;
}

Result<Opened> open_table(const Source& source, const Params& params) {
  const Bytes file = source.bytes;
  const auto stop = [&](auto& result) { return damaged(source, kTable, std::move(result).error()); };
  auto footer = Footer::read(kTable, file);
  if (!footer) return stop(footer);
  if (footer->magic != Footer::kLevelDbMagic)
    return damaged(source, kTable, bad(Errc::bad_magic, kTable, "this is a RocksDB table"));
  std::shared_ptr<const Buffer> owner;
  auto metaindex = read_block(kTable, "metaindex", file, footer->metaindex, footer->sum, &owner);
  if (!metaindex) return stop(metaindex);
  std::optional<Handle> at;
  std::string filter_key;
  std::vector<std::string> notes;
  const auto entries = Block::of(*metaindex);
  const bool whole = entries && entries->each([&](std::string_view key, Bytes value) {
    if (!key.starts_with("filter.")) return;
    const std::string_view policy = key.substr(7);
    if (policy != kBuiltinPolicy && policy != kPackedPolicy) {
      notes.push_back(ignored_policy(policy));
      return;
    }
    Reader in(value);
    at = Handle::read(in);
    filter_key = key;
  });
  if (!whole) return damaged(source, kTable, bad(Errc::bad_parameter, kTable, "the metaindex is not a valid block"));
  Opened opened{.format = kTable, .whole = nullptr, .seek = nullptr, .entries = {}, .notes = std::move(notes)};
  if (!at) {
    opened.whole = always(true, kTable, "none");
    opened.notes.emplace_back("no filter of LevelDB's policy or ours: the answer is perhaps for every key");
    return opened;
  }
  auto filter = read_block(kTable, "filter block", file, *at, footer->sum);
  if (!filter) return stop(filter);
  const FilterBlock block(
      *filter, filter_key.ends_with(kPackedPolicy) ? FilterBlock::Windows::packed : FilterBlock::Windows::bloom);
  // Inside an engine, a damaged block is queried as LevelDB would query it.
  if (source.on_damage == OnDamage::error) {
    if (auto damage = block.damage(kTable)) return *std::move(damage);
  }
  auto any = std::make_shared<AnyWindow>(block);
  opened.entries.push_back(
      {filter_key, at->offset, at->size, filter_key.ends_with(kPackedPolicy) ? "" : FilterBlock::kName, any});
  opened.whole = any;

  auto bytes = read_block(kTable, "index", file, footer->index, footer->sum, &owner);
  if (!bytes && bytes.error().code != Errc::unsupported) return stop(bytes);
  if (!bytes) {
    opened.notes.push_back(bytes.error().detail + ": every window is queried");
    return opened;
  }
  const std::string_view keys = params.word("keys");
  const bool internal = keys == "internal" || (keys == "guess" && Index::looks_internal(*bytes));
  auto index = Index::over(kTable, "index", *bytes, IndexValues::sized, internal);
  if (!index) return stop(index);
  if (!index->ascends()) {
    opened.notes.emplace_back(
        "the keys are not in bytewise order, so the comparator is unknown: every window is queried");
    return opened;
  }
  opened.whole = std::make_shared<Table>(block, *std::move(index), internal, std::move(owner));
  return opened;
}

constexpr Param kBlockParams[] = {
    {"bits_per_key", "bits per key", Param::Type::count, "10", 1, 1000, {}, Param::Means::bits_per_key},
    {"keys_per_block", "keys in each data block", Param::Type::count, "32", 1, 1e9},
    {"block_bytes", "bytes in each data block, including its trailer", Param::Type::count, "4096", 6, 4e9},
};

Sniffed sniff_block(const Source& source) {
  if (source.bytes.size() < 5 || source.bytes.back() != std::byte{FilterBlock::kBaseLg}) return Sniffed::no;
  // An empty filter block is five bytes and is recognised as well.
  const FilterBlock block(source.bytes);
  return block.damage(FilterBlock::kName) ? Sniffed::no : Sniffed::certain;
}

Result<Opened> open_block(const Source& source, const Params&) {
  const FilterBlock block(source.bytes);
  if (auto damage = block.damage(FilterBlock::kName)) return damaged(source, FilterBlock::kName, *std::move(damage));
  return one_filter(source, FilterBlock::kName, std::make_shared<AnyWindow>(block));
}

// The filter block of a table whose data blocks all have the same size.
Result<Buffer> build_block(std::span<const Bytes> keys, const Params& params) {
  const std::uint64_t per_block = params.count("keys_per_block");
  const std::uint64_t block_bytes = params.count("block_bytes");
  std::vector<DataBlock> blocks;
  for (std::uint64_t from = 0; from < keys.size(); from += per_block)
    blocks.push_back({blocks.size() * block_bytes, std::min<std::uint64_t>(per_block, keys.size() - from)});
  const std::uint64_t end = blocks.size() * block_bytes;
  const std::uint64_t windows = end >> FilterBlock::kBaseLg;
  if (windows > 64 + 64 * keys.size())
    return bad(Errc::bad_parameter, FilterBlock::kName, windows, " windows for ", keys.size(), " keys");
  return filter_block_of(keys, blocks, end, params.count("bits_per_key"));
}

}  // namespace

constinit const Codec kLevelDbFilterBlock{
    FilterBlock::kName, "filter block of a LevelDB table", kBlockParams, sniff_block, open_block, build_block, nullptr};
constinit const Codec kLevelDbTable{
    kTable, "table file of LevelDB (.ldb, .sst)", kTableParams, sniff_table, open_table, nullptr, nullptr};

}  // namespace perhaps::format
