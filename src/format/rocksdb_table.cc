// rocksdb-table: the filters of a RocksDB block-based table (.sst), full or partitioned, of whole keys or of prefixes.
//
//   metaindex   "fullfilter." policy        -> the filter, in its own block
//               "partitionedfilter." policy -> an index of filters; a lookup uses the first one whose index key is not
//                                              less than the key, or else the last one
//               "rocksdb.properties"        -> names and values: which keys the filter holds, how the index is encoded
#include "format/rocksdb_table.h"

#include <bit>
#include <charconv>

#include "format/packed.h"
#include "format/registry.h"
#include "hash/fnv.h"

namespace perhaps::format {
namespace rocksdb {
namespace {

constexpr std::string_view kTable = "rocksdb-table";

// The other tables that RocksDB writes, by their last eight bytes; nothing: not one of them.
std::string_view other_table(std::uint64_t magic) noexcept {
  switch (magic) {
    case 0x8242229663bf9564:
    case 0x4f3418eb7a8f13b8:
      return "a PlainTable of RocksDB, whose Bloom filter is of its own hash table";
    case 0x926789d0c5f17873:
      return "a cuckoo table of RocksDB, which has no filter";
    default:
      return {};
  }
}

// All built-in filters share one name, except in RocksDB 7.0, which wrote the names of the policies.
bool is_builtin(std::string_view policy) noexcept {
  return policy == "rocksdb.BuiltinBloomFilter" || policy == "bloomfilter" || policy == "ribbonfilter" ||
         policy.starts_with("rocksdb.internal.");
}

Properties properties_of(Block block) {
  Properties found;
  const auto count = [](Bytes value) { return Reader(value).varint(); };
  const auto flag = [](Bytes value) { return text_of(value) == "1"; };
  block.each([&](std::string_view name, Bytes value) {
    const std::string_view text = text_of(value);
    if (name == "rocksdb.filter.policy") found.policy = text;
    if (name == "rocksdb.comparator") found.comparator = text;
    if (name == "rocksdb.prefix.extractor.name" && text != "nullptr") found.extractor = text;
    if (name == "rocksdb.block.based.table.whole.key.filtering") found.whole_keys = flag(value);
    if (name == "rocksdb.block.based.table.prefix.filtering") found.prefixes = flag(value);
    if (name == "rocksdb.index.key.is.user.key") found.index_has_user_keys = count(value) != 0;
    if (name == "rocksdb.index.value.is.delta.encoded") found.index_has_deltas = count(value) != 0;
    if (name == "rocksdb.num.filter_entries") found.filter_entries = count(value);
    if (name == "rocksdb.num.entries") found.entries = count(value);
  });
  return found;
}

}  // namespace

std::optional<Prefix> Prefix::of(std::string_view name) noexcept {
  Prefix prefix;
  const auto skip = [&](std::string_view start, bool is_capped) {
    if (!name.starts_with(start)) return false;
    name.remove_prefix(start.size());
    prefix.capped = is_capped;
    return true;
  };
  if (!skip("rocksdb.FixedPrefix.", false) && !skip("fixed:", false) && !skip("rocksdb.CappedPrefix.", true) &&
      !skip("capped:", true))
    return {};
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), prefix.size);
  if (error != std::errc() || stop != name.data() + name.size()) return {};
  return prefix;
}

Result<TableFilter> TableFilter::read(const Source& source) {
  const Bytes file = source.bytes;
  TableFilter table;
  auto footer = Footer::read(kTable, file);
  if (!footer) return std::move(footer).error();
  table.footer = *footer;
  auto metaindex = read_block(kTable, "metaindex", file, footer->metaindex, footer->sum);
  if (!metaindex) return std::move(metaindex).error();
  std::optional<Handle> properties, filter;
  const auto entries = Block::of(*metaindex);
  const bool whole = entries && entries->each([&](std::string_view key, Bytes value) {
    Reader in(value);
    const Handle at = Handle::read(in);
    const std::string_view policy = key.substr(std::min(key.size(), key.find('.') + 1));
    if (key == "rocksdb.properties") properties = at;
    if (key.starts_with("fullfilter.") || key.starts_with("partitionedfilter.")) {
      if (policy == kPackedPolicy || is_builtin(policy)) {
        filter = at;
        table.packed = policy == kPackedPolicy;
        table.kind = key.starts_with("full") ? Kind::full : Kind::partitioned;
      } else {
        table.notes.push_back(ignored_policy(policy));
      }
    }
    if (key.starts_with("filter."))
      table.notes.push_back("ignored: a filter per block (" + std::string(key) +
                            "), which RocksDB since 7.4 ignores too");
  });
  if (!whole) return bad(Errc::bad_parameter, kTable, "the metaindex is not a valid block");

  if (properties) {
    auto bytes = read_block(kTable, "properties", file, *properties, footer->sum);
    if (!bytes) return std::move(bytes).error();
    const auto block = Block::of(*bytes);
    if (!block) return bad(Errc::bad_parameter, kTable, "the properties are not a valid block");
    table.properties = properties_of(*block);
  }
  if (!filter) return table;

  // Bounds the work: the filters together may not be larger than the file, even if handles overlap.
  std::uint64_t left = file.size();
  const auto add = [&](Handle at) -> std::optional<Error> {
    const std::string what =
        table.kind == Kind::full ? "filter" : "filter partition " + std::to_string(table.partitions.size());
    if (at.size > left) return bad(Errc::bad_parameter, kTable, "the filters together are larger than the file");
    left -= at.size;
    auto bytes = read_block(kTable, what, file, at, footer->sum);
    if (!bytes) return std::move(bytes).error();
    auto opened = table.packed ? open_packed(kTable, *bytes) : open_blob(kTable, *bytes);
    if (!opened) {
      if (source.on_damage == OnDamage::error) return std::move(opened).error();
      table.notes.push_back("damaged, so it answers perhaps for every key: " + opened.error().detail);
      opened = always(true, kTable, "damaged", at.size);
    }
    table.partitions.push_back({at, *std::move(opened)});
    return {};
  };
  if (table.kind == Kind::full) {
    if (auto error = add(*filter)) return *std::move(error);
    return table;
  }
  auto bytes = read_block(kTable, "filter index", file, *filter, footer->sum);
  if (!bytes) return std::move(bytes).error();
  table.index_bytes = bytes->size();
  auto index = Index::over(kTable, "filter index", *bytes,
                           table.properties.index_has_deltas ? IndexValues::handles : IndexValues::sized,
                           !table.properties.index_has_user_keys);
  if (!index) return std::move(index).error();
  for (const Handle at : index->pieces()) {
    if (auto error = add(at)) return *std::move(error);
  }
  table.index = *std::move(index);
  return table;
}

void TableBuilder::add(Bytes key) {
  const bool prefixed = options_.prefix && options_.prefix->in_domain(key);
  // RocksDB means to carry the last prefix over into a new partition. In a filter of prefixes alone it never records
  // one, so it adds the empty string instead, even to the first partition.
  if (!has_last_prefix_ && in_domain_) {
    builder_.add(last_prefix_);
    has_last_prefix_ = true;
  }
  if (options_.whole_keys) {
    const bool again =
        prefixed && has_last_key_ && std::equal(last_key_.begin(), last_key_.end(), key.begin(), key.end());
    if (!again) builder_.add(key);
    if (prefixed) {
      last_key_.assign(key.begin(), key.end());
      has_last_key_ = true;
    }
  }
  if (prefixed) add_prefix((*options_.prefix)(key));
  in_domain_ = prefixed;
}

void TableBuilder::add_prefix(Bytes prefix) {
  if (!options_.whole_keys) return builder_.add(prefix);
  if (has_last_prefix_ && std::equal(last_prefix_.begin(), last_prefix_.end(), prefix.begin(), prefix.end())) return;
  builder_.add(prefix);
  last_prefix_.assign(prefix.begin(), prefix.end());
  has_last_prefix_ = true;
}

Result<Buffer> TableBuilder::cut(Bytes next, std::optional<std::uint64_t> length) {
  if (options_.prefix && options_.prefix->in_domain(next)) {
    const Bytes prefix = (*options_.prefix)(next);
    if (!std::equal(last_prefix_.begin(), last_prefix_.end(), prefix.begin(), prefix.end())) builder_.add(prefix);
  }
  auto done = builder_.finish(length);
  builder_ = Builder(options_.kind, options_.bits_per_key);
  has_last_key_ = has_last_prefix_ = false;
  return done;
}

namespace {

// A table, queried as Get does, or as Seek does: by prefix only.
class TableQuery final : public AnyFilter {
 public:
  TableQuery(std::shared_ptr<const TableFilter> table, bool seek)
      : table_(std::move(table)),
        prefix_(Prefix::of(table_->properties.extractor)),
        by_prefix_(seek || !table_->properties.whole_keys),
        ordered_(
            (table_->properties.comparator.empty() || table_->properties.comparator == "leveldb.BytewiseComparator") &&
            table_->index.ascends()) {
    for (const Partition& partition : table_->partitions) bits_ += 8 * partition.at.size;
  }

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::uint64_t answers = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) answers |= std::uint64_t{may_contain_one(keys[i])} << i;
    return answers;
  }
  // With the index of the partitions: a cache holds it as well.
  std::uint64_t byte_size() const noexcept override { return bits_ / 8 + table_->index_bytes; }
  Description describe() const override;
  bool is_ordered() const noexcept { return ordered_; }

 private:
  bool may_contain_one(Bytes key) const noexcept {
    Bytes target = key;
    if (by_prefix_) {
      if (!prefix_ || !prefix_->in_domain(key)) return true;
      target = (*prefix_)(key);
    }
    const auto& partitions = table_->partitions;
    if (partitions.empty()) return true;
    if (table_->kind == TableFilter::Kind::full) return partitions.front().filter->may_contain(target);
    if (!ordered_) {
      return std::any_of(partitions.begin(), partitions.end(),
                         [&](const Partition& p) { return p.filter->may_contain(target); });
    }
    const std::uint64_t piece = table_->index.find(key);
    return partitions[std::min<std::uint64_t>(piece, partitions.size() - 1)].filter->may_contain(target);
  }
  double rate() const;

  std::shared_ptr<const TableFilter> table_;
  std::optional<Prefix> prefix_;
  bool by_prefix_;
  bool ordered_;
  std::uint64_t bits_ = 0;
};

// The rate of a lookup, which queries one partition: every partition is queried with the same number of random keys.
double TableQuery::rate() const {
  constexpr std::uint64_t kQueries = std::uint64_t{1} << 20;
  const std::uint64_t columns = std::max<std::uint64_t>(1, kQueries / kBatch / table_->partitions.size());
  std::array<std::uint64_t, 2 * kBatch> words;
  std::array<Bytes, kBatch> keys;
  for (std::size_t i = 0; i < kBatch; ++i) keys[i] = std::as_bytes(std::span(words)).subspan(16 * i, 16);
  std::uint64_t state = 0;
  std::uint64_t hits = 0;
  for (const Partition& partition : table_->partitions) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      for (std::uint64_t& word : words) word = detail::little_endian(splitmix64(state++));
      hits += static_cast<std::uint64_t>(std::popcount(partition.filter->may_contain(std::span<const Bytes>(keys))));
    }
  }
  if (hits < 100) return table_->partitions.front().filter->describe().fpr;
  return static_cast<double>(hits) / static_cast<double>(columns * kBatch * table_->partitions.size());
}

Description TableQuery::describe() const {
  const Properties& properties = table_->properties;
  Description d;
  d.format = kTable;
  if (!table_->partitions.empty()) {
    const Description first = table_->partitions.front().filter->describe();
    d = first;
    d.format = kTable;
    d.bytes = byte_size();
    const std::string& kind = table_->packed ? first.family : first.format;
    if (table_->kind == TableFilter::Kind::full) {
      d.more.emplace_back("filter", kind + ", full");
    } else {
      d.more = {{"filter", kind + ", " + std::to_string(table_->partitions.size()) + " partitions"},
                {"index of the partitions", std::to_string(table_->index_bytes) + " bytes"}};
      // Includes the trailers, which are not bits of the filters.
      d.bits = bits_;
      d.keys_estimated = 0;
      d.fpr = rate();
    }
  }
  d.keys = properties.filter_entries;
  if (!properties.policy.empty()) d.more.emplace_back("policy", properties.policy);
  d.more.emplace_back("holds", properties.whole_keys ? properties.prefixes ? "keys and prefixes" : "keys" : "prefixes");
  if (!properties.extractor.empty()) d.more.emplace_back("prefix extractor", properties.extractor);
  if (properties.entries) d.more.emplace_back("entries", std::to_string(*properties.entries));
  d.more.emplace_back("format_version", std::to_string(table_->footer.version));
  return d;
}

Sniffed sniff(const Source& source) {
  const std::uint64_t magic = magic_of(source.bytes);
  const bool ours = magic == Footer::kRocksDbMagic || !other_table(magic).empty() ||
                    (magic == Footer::kLevelDbMagic && is_rocksdb_metaindex(source.bytes));
  return ours ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  if (const auto other = other_table(magic_of(source.bytes)); !other.empty())
    return damaged(source, kTable, bad(Errc::unsupported, kTable, "this is ", other));
  auto read = TableFilter::read(source);
  if (!read) return damaged(source, kTable, std::move(read).error());
  const auto table = std::make_shared<const TableFilter>(*std::move(read));
  const Properties& properties = table->properties;
  Opened opened{.format = kTable, .whole = nullptr, .seek = nullptr, .entries = {}, .notes = table->notes};
  for (std::size_t i = 0; i < table->partitions.size(); ++i) {
    const Partition& partition = table->partitions[i];
    opened.entries.push_back(
        {.name = table->kind == TableFilter::Kind::full ? "filter" : "partition " + std::to_string(i),
         .offset = partition.at.offset,
         .size = partition.at.size,
         .format = table->packed ? "" : kind_of(source.bytes.subspan(partition.at.offset, partition.at.size)),
         .filter = partition.filter});
  }
  const bool prefixes = Prefix::of(properties.extractor).has_value();
  if (!properties.extractor.empty() && !prefixes)
    opened.notes.push_back("the prefix extractor " + properties.extractor +
                           " is not supported: seeks are not filtered");
  if (table->partitions.empty()) {
    opened.whole = always(true, kTable, "none");
    if (properties.prefixes && prefixes) opened.seek = opened.whole;
    opened.notes.emplace_back("no filter of RocksDB's policies or ours: the answer is perhaps for every key");
    return opened;
  }
  const auto whole = std::make_shared<TableQuery>(table, false);
  if (table->kind == TableFilter::Kind::partitioned && !whole->is_ordered())
    opened.notes.push_back("the comparator is " + (properties.comparator.empty() ? "unknown" : properties.comparator) +
                           ": every partition is queried");
  opened.whole = whole;
  if (properties.prefixes && prefixes) opened.seek = std::make_shared<TableQuery>(table, true);
  return opened;
}

}  // namespace
}  // namespace rocksdb

constinit const Codec kRocksDbTable{
    rocksdb::kTable, "block-based table file of RocksDB (.sst)", {}, rocksdb::sniff, rocksdb::open, nullptr, nullptr};

}  // namespace perhaps::format
