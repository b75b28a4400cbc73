// parquet: split-block Bloom filters (parquet-format/BloomFilter.md), bare or inside a .parquet file.
//
//   filter = BloomFilterHeader in thrift's compact protocol | blocks of 32 bytes as in perhaps/block_bloom.h
//   file   = "PAR1" | columns, filters .. | FileMetaData in the same protocol | u32 LE its size | "PAR1"
//   digest = xxh64(value, 0); a value is hashed in PLAIN encoding, a byte array without its length
//
// If the metadata of a column chunk (one column of one row group) contains a filter offset, its filter is there.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "format/registry.h"
#include "format/thrift.h"
#include "hash/xxh64.h"
#include "perhaps/block_bloom.h"

namespace perhaps::format {
namespace {

using Type = ThriftReader::Type;
constexpr std::string_view kName = "parquet";
constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kEncryptedMagic = "PARE";
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // the largest power of two that the header's i32 holds

constexpr std::array<std::string_view, 8> kTypes = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                                    "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kDouble = 5;

bool is_at(Bytes bytes, std::uint64_t at, std::string_view text) noexcept {
  return std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

// One filter without its header.
struct Part {
  Bytes table;
  std::uint64_t type = kTypes.size();  // of the column, if known

  BlockShape shape() const noexcept { return {table.size() / BlockLayout::kBlockBytes}; }
  std::uint64_t query(const std::uint64_t* digests, std::size_t count) const noexcept {
    std::uint64_t answers = 0;
    detail::query_batch<BlockLayout>(
        shape(), table.data(), {.words = digests, .count = count, .ahead = detail::far_away(table.size())}, &answers);
    return answers;
  }
};

// The zeros and NaNs among keys of a float column, one bit per key. +0 and -0 are equal but have different bit
// patterns, and a writer hashes the one it was given, so both are queried. NaN equals nothing, so the answer is always
// *perhaps*.
template <class Float, class Pattern>
struct Unusual {
  std::uint64_t zeros = 0;
  std::uint64_t nans = 0;

  explicit Unusual(std::span<const Bytes> keys) noexcept {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].size() != sizeof(Float)) continue;
      const auto value = detail::bit_cast<Float>(detail::load<Pattern>(keys[i].data()));
      zeros |= std::uint64_t{value == 0} << i;
      nans |= std::uint64_t{std::isnan(value)} << i;
    }
  }
  std::uint64_t among(const Part& part) const noexcept {
    if (zeros == 0) return nans;
    std::array<std::uint64_t, 2> digests;
    for (const Pattern sign : {0, 1}) {
      const Pattern zero = detail::little_endian<Pattern>(sign << (8 * sizeof(Pattern) - 1));
      digests[sign] = xxh64(std::as_bytes(std::span(&zero, 1)), 0);
    }
    return nans | (part.query(digests.data(), 2) != 0 ? zeros : 0);
  }
};

// The filters of several column chunks: answers *perhaps* if any of them does.
class SplitBlocks final : public AnyFilter {
 public:
  using More = std::vector<std::pair<std::string, std::string>>;
  SplitBlocks(std::vector<Part> parts, More more) : parts_(std::move(parts)), more_(std::move(more)) {
    for (const Part& part : parts_) {
      bytes_ += part.table.size();
      floats_ |= part.type == kFloat || part.type == kDouble;
    }
  }

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    if (keys.empty()) return 0;
    std::array<std::uint64_t, kBatch> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = xxh64(keys[i], 0);
    const std::uint64_t all = ~std::uint64_t{0} >> (kBatch - keys.size());
    std::uint64_t answers = floats_ ? unusual(keys) : 0;
    for (const Part& part : parts_) {
      if (answers == all) break;
      answers |= part.query(digests.data(), keys.size());
    }
    return answers;
  }
  std::uint64_t byte_size() const noexcept override { return bytes_; }
  bool are_floats() const noexcept { return floats_; }  // in any column: needs the special cases of Unusual

  Description describe() const override {
    Description d;
    d.format = kName;
    d.family = "block";
    d.hash = "xxh64";
    d.bytes = bytes_;
    d.bits = 8 * bytes_;
    d.probes = BlockShape::kProbes;
    double none = 1;
    for (const Part& part : parts_) {
      const double fill = fill_of(part.table, part.shape().bits());
      const double keys = part.shape().keys_at(fill);
      d.keys_estimated += keys;
      d.fill += fill * static_cast<double>(part.table.size()) / static_cast<double>(bytes_);
      none *= 1 - part.shape().fpr(keys);
    }
    d.fpr = predicted_fpr(*this, 1 - none);
    d.more = more_;
    d.more.emplace_back("blocks", std::to_string(bytes_ / BlockLayout::kBlockBytes));
    if (parts_.size() != 1) d.more.emplace_back("filters", std::to_string(parts_.size()));
    return d;
  }

 private:
  std::uint64_t unusual(std::span<const Bytes> keys) const noexcept {
    const Unusual<float, std::uint32_t> floats(keys);
    const Unusual<double, std::uint64_t> doubles(keys);
    std::uint64_t answers = 0;
    for (const Part& part : parts_) {
      if (part.type == kFloat) answers |= floats.among(part);
      if (part.type == kDouble) answers |= doubles.among(part);
    }
    return answers;
  }

  std::vector<Part> parts_;
  More more_;
  std::uint64_t bytes_ = 0;
  bool floats_ = false;
};

struct Blob {
  Bytes table;
  std::uint64_t size;  // including its header
};

// The filter at the front of `bytes`. `where` is for the error.
Result<Blob> blob_of(Bytes bytes, const std::string& where = {}) {
  ThriftReader in(bytes);
  std::optional<std::int64_t> size;
  // Algorithm, hash and compression: for each, only the first member of the union is supported.
  std::array<std::int64_t, 3> choices{};
  in.structure([&](std::int64_t id, Type type) {
    if (id == 1) {
      if (in.is(type, Type::i32)) size = in.integer();
      return true;
    }
    if (id < 2 || id > 4) return false;
    if (in.is(type, Type::structure)) {
      in.structure([&](std::int64_t member, Type) {
        choices[static_cast<std::size_t>(id - 2)] = member;
        return false;
      });
    }
    return true;
  });
  if (in.wrong() != nullptr) return bad(Errc::truncated, kName, where, "header: ", in.wrong());
  if (!size) return bad(Errc::bad_parameter, kName, where, "the header lacks the number of bytes");
  constexpr std::array<std::string_view, 3> kChoices = {"algorithm", "hash", "compression"};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == 0) return bad(Errc::unsupported, kName, where, "no ", kChoices[i], " is named");
    if (choices[i] != 1)
      return bad(Errc::unsupported, kName, where, kChoices[i], " ", choices[i], " is not known, only 1");
  }
  const Bytes rest = bytes.subspan(in.at());
  if (*size <= 0 || *size % BlockLayout::kBlockBytes != 0)
    return bad(Errc::bad_parameter, kName, where, *size, " bytes are not a whole number of blocks");
  if (static_cast<std::uint64_t>(*size) > rest.size())
    return bad(Errc::truncated, kName, where, "promises ", *size, " bytes, has ", rest.size());
  const auto bytes_of_table = static_cast<std::uint64_t>(*size);
  return Blob{rest.first(bytes_of_table), in.at() + bytes_of_table};
}

// What the metadata of a file say about one column chunk.
struct Chunk {
  std::uint64_t row_group = 0;
  std::string column{};  // "a.b" if nested
  std::uint64_t type = kTypes.size();
  std::int64_t values = 0;
  std::optional<std::int64_t> filter_offset{};
  std::optional<std::int64_t> filter_size{};
  bool readable = true;  // neither encrypted nor in another file

  bool has_filter() const noexcept { return readable && filter_offset; }
  std::string where() const { return "row group " + std::to_string(row_group) + ": column " + column; }
};

void read_column(ThriftReader& in, Chunk& chunk) {
  in.structure([&](std::int64_t id, Type type) {
    switch (id) {
      case 1:
        if (in.is(type, Type::i32)) chunk.type = static_cast<std::uint64_t>(in.integer());
        return true;
      case 3:
        if (!in.is(type, Type::list)) return true;
        in.list(Type::binary, [&] {
          const Bytes name = in.binary();
          if (!chunk.column.empty()) chunk.column += '.';
          chunk.column.append(reinterpret_cast<const char*>(name.data()), name.size());
        });
        return true;
      case 5:
        if (in.is(type, Type::i64)) chunk.values = in.integer();
        return true;
      case 14:
        if (in.is(type, Type::i64)) chunk.filter_offset = in.integer();
        return true;
      case 15:
        if (in.is(type, Type::i32)) chunk.filter_size = in.integer();
        return true;
      default:
        return false;
    }
  });
}

// Calls use(chunk) -> bool for each chunk until it returns false. Returns what is wrong with the metadata, or null.
template <class Use>
const char* each_chunk(Bytes footer, Use use) {
  ThriftReader in(footer);
  std::uint64_t row_groups = 0;
  bool more = true;
  const auto read_chunk = [&] {
    Chunk chunk;
    chunk.row_group = row_groups;
    in.structure([&](std::int64_t id, Type type) {
      if (id == 1 || id == 8) chunk.readable = false;
      if (id != 3) return false;
      if (in.is(type, Type::structure)) read_column(in, chunk);
      return true;
    });
    if (in.wrong() == nullptr && more) more = use(std::as_const(chunk));
  };
  const auto read_row_group = [&] {
    in.structure([&](std::int64_t id, Type type) {
      if (id != 1) return false;
      if (in.is(type, Type::list)) in.list(Type::structure, read_chunk);
      return true;
    });
    ++row_groups;
  };
  in.structure([&](std::int64_t id, Type type) {
    if (id != 4) return false;
    if (in.is(type, Type::list)) in.list(Type::structure, read_row_group);
    return true;
  });
  return in.wrong();
}

Result<Bytes> footer_of(Bytes file) {
  if (file.size() < 12) return bad(Errc::truncated, kName, "a file of ", file.size(), " bytes");
  if (is_at(file, file.size() - 4, kEncryptedMagic)) return bad(Errc::unsupported, kName, "the metadata are encrypted");
  if (!is_at(file, 0, kMagic)) return bad(Errc::bad_magic, kName, "does not begin with PAR1");
  if (!is_at(file, file.size() - 4, kMagic)) return bad(Errc::truncated, kName, "does not end with PAR1");
  const auto size = Reader(file.last(8)).le<std::uint32_t>();
  if (size > file.size() - 12)
    return bad(Errc::truncated, kName, "metadata of ", size, " bytes in a file of ", file.size());
  return file.subspan(file.size() - 8 - size, size);
}

Result<Blob> filter_of(Bytes file, const Chunk& chunk) {
  const std::string where = chunk.where() + ": ";
  const std::int64_t at = *chunk.filter_offset;
  if (at < 4 || static_cast<std::uint64_t>(at) >= file.size())
    return bad(Errc::bad_parameter, kName, where, "the filter is at byte ", at, " of ", file.size());
  auto blob = blob_of(file.subspan(static_cast<std::uint64_t>(at)), where);
  if (blob && chunk.filter_size && *chunk.filter_size != static_cast<std::int64_t>(blob->size)) {
    return bad(Errc::bad_parameter, kName, where, "the filter has ", blob->size, " bytes, the metadata say ",
               *chunk.filter_size);
  }
  return blob;
}

std::shared_ptr<const AnyFilter> filter_over(std::vector<Part> parts, SplitBlocks::More more = {}) {
  return std::make_shared<SplitBlocks>(std::move(parts), std::move(more));
}

Result<Opened> open_file(const Source& source, const Params& params) {
  const auto footer = footer_of(source.bytes);
  if (!footer) return damaged(source, kName, footer.error());
  const std::string_view only = params.given("column") ? params.word("column") : std::string_view();
  Opened opened{.format = kName, .whole = nullptr, .seek = nullptr, .entries = {}, .notes = {}};
  std::vector<Part> parts;
  std::set<std::string, std::less<>> columns;  // with a filter in some row group
  std::optional<Error> why;
  std::uint64_t size = 0;
  const char* wrong = each_chunk(*footer, [&](const Chunk& chunk) {
    if (!chunk.has_filter() || (!only.empty() && chunk.column != only)) return true;
    const auto blob = filter_of(source.bytes, chunk);
    if (!blob) {
      why = blob.error();
      return false;
    }
    // If filters could overlap, a small file could claim much memory.
    size += blob->size;
    if (size > source.bytes.size()) {
      why = bad(Errc::bad_parameter, kName, "the filters have ", size, " bytes, the file only ", source.bytes.size());
      return false;
    }
    parts.push_back({blob->table, chunk.type});
    SplitBlocks::More more;
    if (chunk.type < kTypes.size()) more.emplace_back("values", kTypes[chunk.type]);
    opened.entries.push_back({.name = chunk.where(),
                              .offset = static_cast<std::uint64_t>(*chunk.filter_offset),
                              .size = blob->size,
                              .format = kName,
                              .filter = filter_over({parts.back()}, std::move(more))});
    columns.insert(chunk.column);
    return true;
  });
  if (wrong != nullptr) why = bad(Errc::truncated, kName, "metadata: ", wrong);
  if (why) return damaged(source, kName, *std::move(why));

  // A chunk without a filter may hold any key.
  std::uint64_t without = 0;
  std::string first;
  bool found = only.empty();
  each_chunk(*footer, [&](const Chunk& chunk) {
    const bool queried = only.empty() ? columns.count(chunk.column) != 0 : chunk.column == only;
    found |= queried;
    if (queried && !chunk.has_filter() && chunk.values != 0 && without++ == 0) first = chunk.where();
    return true;
  });
  if (!found) return bad(Errc::bad_parameter, kName, "no column ", only);
  if (without != 0) {
    opened.notes.push_back("answers perhaps for every key: " + std::to_string(without) +
                           " column chunks have values but no filter, the first is " + first);
  } else if (parts.empty()) {
    opened.notes.emplace_back("answers perhaps for every key: no column has a filter");
  }
  opened.whole = without != 0 || parts.empty() ? always(true, kName, "without filter") : filter_over(std::move(parts));
  return opened;
}

bool is_file(Bytes bytes) noexcept {
  if (bytes.size() < 4) return false;
  return is_at(bytes, 0, kMagic) || is_at(bytes, 0, kEncryptedMagic) || is_at(bytes, bytes.size() - 4, kMagic);
}

Result<Opened> open(const Source& source, const Params& params) {
  if (is_file(source.bytes)) return open_file(source, params);
  const auto blob = blob_of(source.bytes);
  if (!blob) return damaged(source, kName, blob.error());
  if (blob->size != source.bytes.size()) {
    return damaged(source, kName,
                   bad(Errc::bad_parameter, kName, source.bytes.size() - blob->size, " bytes after the blocks"));
  }
  return one_filter(source, kName, filter_over({{blob->table}}));
}

Sniffed sniff(const Source& source) {
  if (is_file(source.bytes)) return Sniffed::certain;
  // The first field is always the number of bytes, an i32.
  if (source.bytes.empty() || source.bytes[0] != std::byte{0x15}) return Sniffed::no;
  const auto blob = blob_of(source.bytes);
  return blob && blob->size == source.bytes.size() ? Sniffed::certain : Sniffed::no;
}

constexpr Param kParams[] = {
    {"fpp", "false-positive rate", Param::Type::real, "0.01", 1e-12, 0.999, {}, Param::Means::fpr},
    {"ndv", "distinct values it is sized for", Param::Type::count, "", 0, 1e12, {}, Param::Means::keys},
    {"sizing", "whose sizing rule to use", Param::Type::word, "arrow", 0, 0, "arrow|duckdb"},
    {"column", "query only this column of a file; nested names have dots", Param::Type::word, ""},
};

// The size of the table, or 0 if it is too large for the header.
std::uint64_t bytes_for(std::uint64_t values, const Params& params) {
  const double bits =
      std::floor(-8.0 * static_cast<double>(values) / std::log(1 - std::pow(params.real("fpp"), 1.0 / 8)));
  constexpr std::uint64_t kMin = BlockLayout::kBlockBytes;
  if (params.word("sizing") == "arrow") {
    constexpr std::uint64_t kMax = std::uint64_t{128} << 20;
    if (bits > 8.0 * static_cast<double>(kMax)) return kMax;
    return std::max(kMin, std::bit_ceil(static_cast<std::uint64_t>(bits)) / 8);
  }
  if (bits > 8.0 * static_cast<double>(kMaxBytes)) return 0;
  return std::max(kMin, std::bit_ceil(static_cast<std::uint64_t>(bits) / 8));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::vector<std::uint64_t> digests = distinct_xxh64(keys);
  const std::uint64_t bytes = bytes_for(params.count_or("ndv", digests.size()), params);
  if (bytes == 0) return bad(Errc::bad_parameter, kName, "needs more than ", kMaxBytes, " bytes");
  constexpr std::array<std::uint8_t, 13> kBlockXxhashUncompressed = {0x1c, 0x1c, 0,    0, 0x1c, 0x1c, 0,
                                                                     0,    0x1c, 0x1c, 0, 0,    0};
  Writer out;
  out.varint(0x15).varint(2 * bytes).add(std::as_bytes(std::span(kBlockXxhashUncompressed)));
  const std::span<std::byte> table = out.zeros(bytes);
  detail::insert_batch<BlockLayout>(
      {bytes / BlockLayout::kBlockBytes}, table.data(),
      {.words = digests.data(), .count = digests.size(), .ahead = detail::far_away(bytes)});
  return std::move(out).done();
}

// From a file: the bare filter of its only column chunk, or of the only chunk of the chosen column. Refused if another
// of the chunks has no filter: it may hold any key, and the bare filter would answer *no*.
Result<Converted> convert(const Source& source, const Opened& from, const Params& params) {
  if (from.format != kName)
    return bad(Errc::unsupported, from.format, "to parquet: the blocks are different: rebuild it from the keys");
  const auto opened = open(source, params);
  if (!opened) return opened.error();
  const std::vector<Entry>& entries = opened->entries;
  if (entries.size() > 1) {
    return bad(Errc::unsupported, kName, entries[0].name, " and ", entries[1].name,
               " have a filter each, and a bare file holds one");
  }
  const auto* const blocks = dynamic_cast<const SplitBlocks*>(opened->whole.get());
  if (blocks == nullptr)
    return bad(Errc::unsupported, kName, opened->notes.empty() ? "contains no filter" : opened->notes.front());
  const Bytes bytes = source.bytes.subspan(entries[0].offset, entries[0].size);
  return Converted{
      {bytes.begin(), bytes.end()},
      blocks->are_floats() ? "none; a bare filter does not say that its values are floating-point" : "none"};
}

}  // namespace

constinit const Codec kParquet{
    kName, "split-block Bloom filter, bare or in a .parquet file", kParams, sniff, open, build, convert};

}  // namespace perhaps::format
