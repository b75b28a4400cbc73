// Promise: in a Parquet file every column chunk with a filter is found, and the answer is *no* only if every chunk that
// is queried has a filter that says so. Invalid metadata are refused without reading outside the bytes, without deep
// recursion and without more memory than the size of the file justifies.
// Would notice: a chunk without a filter that is ignored, a zero that differs from its negative, a list of 2^60
// elements, a structure of a million levels, a thousand chunks that share one filter.
#include <gtest/gtest.h>

#include <cstring>

#include "format/thrift.h"
#include "perhaps/format/format.h"

namespace perhaps::format {
namespace {

// Structures of thrift's compact protocol, with every field number spelled out.
class Thrift {
 public:
  using Type = ThriftReader::Type;

  Thrift& integer(unsigned id, Type type, std::int64_t value) {
    head(id, type).varint(zigzag(value));
    return *this;
  }
  Thrift& text(unsigned id, std::string_view value) {
    head(id, Type::binary).varint(value.size()).add(bytes_of(value));
    return *this;
  }
  Thrift& structure(unsigned id, const Buffer& inner) {
    head(id, Type::structure).add(inner);
    return *this;
  }
  Thrift& list(unsigned id, Type of, const std::vector<Buffer>& elements) {
    head(id, Type::list).le(static_cast<std::uint8_t>(0xf0 | static_cast<unsigned>(of))).varint(elements.size());
    for (const Buffer& element : elements) out_.add(element);
    return *this;
  }
  Buffer done() {
    out_.varint(0);
    return std::move(out_).done();
  }

 private:
  static std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  Writer& head(unsigned id, Type type) { return out_.varint(static_cast<unsigned>(type)).varint(zigzag(id)); }
  Writer out_;
};
using Type = ThriftReader::Type;

Buffer name_of(std::string_view text) {
  Writer out;
  out.varint(text.size()).add(bytes_of(text));
  return std::move(out).done();
}

const Codec& parquet() { return *find("parquet"); }

Buffer blob(const std::vector<Bytes>& keys) { return *parquet().build(keys, Params(parquet())); }

struct Column {
  std::string name;
  std::int64_t type;
  std::int64_t offset;  // 0: no filter
  std::int64_t size = 0;
  std::int64_t values = 10;
};

Buffer chunk(const Column& column) {
  Thrift meta;
  meta.integer(1, Type::i32, column.type).list(3, Type::binary, {name_of(column.name)});
  meta.integer(5, Type::i64, column.values);
  if (column.offset != 0) meta.integer(14, Type::i64, column.offset);
  if (column.size != 0) meta.integer(15, Type::i32, column.size);
  return Thrift().integer(2, Type::i64, 4).structure(3, meta.done()).done();
}

// "PAR1", the bytes before the metadata, the metadata.
Buffer file_of(Bytes body, Bytes footer) {
  Writer out;
  out.add(bytes_of(std::string_view("PAR1"))).add(body).add(footer);
  out.le(static_cast<std::uint32_t>(footer.size())).add(bytes_of(std::string_view("PAR1")));
  return std::move(out).done();
}
Buffer file_of(Bytes body, const std::vector<std::vector<Column>>& row_groups) {
  std::vector<Buffer> groups;
  for (const std::vector<Column>& columns : row_groups) {
    std::vector<Buffer> chunks;
    for (const Column& column : columns) chunks.push_back(chunk(column));
    groups.push_back(Thrift().list(1, Type::structure, chunks).integer(3, Type::i64, 10).done());
  }
  return file_of(body, Thrift().integer(1, Type::i32, 2).list(4, Type::structure, groups).text(6, "a test").done());
}

Result<Opened> opened(const Buffer& file, std::string_view column = {}) {
  Params params(parquet());
  if (!column.empty()) {
    EXPECT_TRUE(params.set("column", column));
  }
  return parquet().open({.bytes = file}, params);
}
bool finds(const Result<Opened>& from, std::string_view key) { return from->whole->may_contain(bytes_of(key)); }

Buffer joined(const Buffer& a, const Buffer& b) {
  Buffer both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

TEST(Parquet, EveryChunkWithAFilterIsAnEntry) {
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  const Buffer b = blob({bytes_of(std::string_view("two"))});
  const auto size = static_cast<std::int64_t>(a.size());
  const Buffer file = file_of(joined(a, b), {{{"v", 6, 4, size}, {"w", 6, 0}}, {{"v", 6, 4 + size}, {"w", 6, 0}}});
  const auto all = opened(file);
  ASSERT_TRUE(all) << all.error().detail;
  ASSERT_EQ(all->entries.size(), 2u);
  EXPECT_EQ(all->entries[0].name, "row group 0: column v");
  EXPECT_EQ(all->entries[1].name, "row group 1: column v");
  EXPECT_EQ(all->entries[1].offset, 4 + a.size());
  EXPECT_TRUE(all->entries[0].filter->may_contain(bytes_of(std::string_view("one"))));
  EXPECT_FALSE(all->entries[0].filter->may_contain(bytes_of(std::string_view("two"))));
  EXPECT_TRUE(finds(all, "one") && finds(all, "two") && !finds(all, "three"));
  // Each entry is a complete filter, as stored in the file.
  const Bytes inside = Bytes(file).subspan(all->entries[1].offset, all->entries[1].size);
  EXPECT_TRUE(std::ranges::equal(inside, b));
  EXPECT_EQ(*detect({.bytes = inside}), &parquet());
  // Two filters cannot become one.
  EXPECT_FALSE(convert({.bytes = file}, *all, parquet(), Params(parquet())));
}

TEST(Parquet, TheOnlyFilterCanBeCopiedOut) {
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  const Buffer file = file_of(a, {{{"v", 6, 4}}});
  const auto converted = convert({.bytes = file}, *opened(file), parquet(), Params(parquet()));
  ASSERT_TRUE(converted) << converted.error().detail;
  EXPECT_EQ(converted->bytes, a);
  // A key of the row group without a filter would be denied.
  const Buffer some = file_of(a, {{{"v", 6, 4}, {"w", 6, 0}}, {{"v", 6, 0}, {"w", 6, 0}}});
  EXPECT_FALSE(convert({.bytes = some}, *opened(some), parquet(), Params(parquet())));
  const Buffer other = file_of(a, {{{"v", 6, 4}, {"w", 6, 0}}});
  EXPECT_TRUE(convert({.bytes = other}, *opened(other), parquet(), Params(parquet())));
}

TEST(Parquet, AChunkWithoutAFilterMayHaveAnyKey) {
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  const Buffer some = file_of(a, {{{"v", 6, 4}}, {{"v", 6, 0}}});
  EXPECT_TRUE(finds(opened(some), "three"));
  EXPECT_EQ((*opened(some)).notes.size(), 1u);
  const Buffer empty = file_of(a, {{{"v", 6, 4}}, {{"v", 6, 0, 0, 0}}});  // no values, so no key either
  EXPECT_FALSE(finds(opened(empty), "three"));
  const Buffer other = file_of(a, {{{"v", 6, 4}, {"w", 6, 0}}});
  EXPECT_FALSE(finds(opened(other), "three"));
  EXPECT_FALSE(finds(opened(other, "v"), "three"));
  EXPECT_TRUE(finds(opened(other, "w"), "three"));
  EXPECT_FALSE(opened(other, "x"));
  const Buffer none = file_of({}, {{{"w", 6, 0}}});
  EXPECT_TRUE(finds(opened(none), "three"));
}

TEST(Parquet, ZerosAreEqualAndNanIsNeverExcluded) {
  const auto raw = [](const auto& value) { return std::as_bytes(std::span(&value, 1)); };
  const double zero = 0, minus = -0.0, other = 2.5, nan = std::numeric_limits<double>::quiet_NaN();
  const Buffer a = blob({raw(minus)});
  for (const std::int64_t type : {5, 2}) {
    const Buffer file = file_of(a, {{{"d", type, 4}}});
    const auto filter = (*opened(file)).whole;
    EXPECT_TRUE(filter->may_contain(raw(minus)));
    EXPECT_EQ(filter->may_contain(raw(zero)), type == 5);
    EXPECT_EQ(filter->may_contain(raw(nan)), type == 5);
    EXPECT_FALSE(filter->may_contain(raw(other)));
  }
  const float small = 0, negative = -0.0f;
  const Buffer floats = file_of(blob({raw(small)}), {{{"f", 4, 4}}});
  EXPECT_TRUE((*opened(floats)).whole->may_contain(raw(negative)));
}

TEST(Parquet, OffsetsAndSizesAreChecked) {
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  const auto size = static_cast<std::int64_t>(a.size());
  for (const std::int64_t offset :
       {std::int64_t{1}, std::int64_t{3}, std::int64_t{5}, std::int64_t{-1}, INT64_MAX, INT64_MIN, std::int64_t{200}}) {
    EXPECT_FALSE(opened(file_of(a, {{{"v", 6, offset}}}))) << offset;
  }
  for (const std::int64_t wrong : {size - 1, size + 1, std::int64_t{-5}, std::int64_t{INT32_MAX}})
    EXPECT_FALSE(opened(file_of(a, {{{"v", 6, 4, wrong}}}))) << wrong;
}

TEST(Parquet, FiltersLargerThanTheFileTogetherAreRefused) {
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  EXPECT_TRUE(opened(file_of(a, {std::vector<Column>(1, {"v", 6, 4})})));
  EXPECT_FALSE(opened(file_of(a, {std::vector<Column>(1000, {"v", 6, 4})})));
}

TEST(Parquet, EncryptedAndExternalChunksHaveNoFilter) {
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  for (const unsigned id : {1u, 8u}) {
    Thrift meta;
    meta.integer(1, Type::i32, 6).list(3, Type::binary, {name_of("v")}).integer(5, Type::i64, 10);
    meta.integer(14, Type::i64, 4);
    Thrift column;
    if (id == 1) column.text(1, "another.parquet");
    column.structure(3, meta.done());
    if (id == 8) column.structure(8, Thrift().done());
    const Buffer group = Thrift().list(1, Type::structure, {column.done()}).done();
    const auto result = opened(file_of(a, Thrift().list(4, Type::structure, {group}).done()));
    ASSERT_TRUE(result) << result.error().detail;
    EXPECT_TRUE(result->entries.empty());
    EXPECT_TRUE(finds(result, "three"));
  }
}

TEST(Parquet, MetadataOfAnyKindAreReadOrRefused) {
  // A structure in a structure in a structure ..
  const Buffer deep(1'000'000, std::byte{0x1c});
  EXPECT_EQ(opened(file_of({}, deep)).error().detail, "parquet: metadata: nested too deep");
  // .. a list in a list in a list ..
  Buffer lists(1'000'000, std::byte{0x19});
  EXPECT_FALSE(opened(file_of({}, lists)));
  // .. and lists that claim more elements than there are bytes.
  for (const unsigned id : {4u, 7u}) {
    Writer out;
    out.varint(9).varint(2 * id).le(std::uint8_t{0xfc}).varint(std::uint64_t{1} << 60);
    EXPECT_FALSE(opened(file_of({}, std::move(out).done())));
  }
  // Unknown fields are skipped, whatever their type.
  const Buffer a = blob({bytes_of(std::string_view("one"))});
  Thrift known;
  known.list(40, Type::list, {Thrift().done()}).list(4, Type::structure, {});
  EXPECT_TRUE(opened(file_of(a, known.done())));
}

TEST(Parquet, EveryCutAndEveryFlippedBitOfAFileIsReadOrRefused) {
  const Buffer a = blob({bytes_of(std::string_view("one")), bytes_of(std::string_view("two"))});
  Buffer file = file_of(a, {{{"v", 5, 4, static_cast<std::int64_t>(a.size())}, {"w", 6, 0}}, {{"v", 5, 0, 0, 0}}});
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parquet().open({.bytes = Bytes(file).first(size)}, Params(parquet()))) << size;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    file[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    const auto result = parquet().open({.bytes = file, .on_damage = OnDamage::perhaps}, Params(parquet()));
    ASSERT_TRUE(result);
    static_cast<void>(result->whole->may_contain(bytes_of(std::string_view("three"))));
    static_cast<void>(detect({.bytes = file}));
    file[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
  }
}

TEST(Parquet, TheSizeFollowsTheWritersRule) {
  const auto size = [](std::string_view sizing, std::string_view ndv, std::string_view fpp) {
    Params params(parquet());
    EXPECT_TRUE(params.set("sizing", sizing) && params.set("ndv", ndv) && params.set("fpp", fpp));
    const auto built = parquet().build({}, params);
    return built ? built->size() / 32 * 32 : 0;
  };
  EXPECT_EQ(size("arrow", "0", "0.01"), 32u);
  EXPECT_EQ(size("arrow", "100", "0.05"), 128u);     // 687 bits
  EXPECT_EQ(size("duckdb", "100", "0.05"), 128u);    // 85 bytes
  EXPECT_EQ(size("arrow", "1692", "0.01"), 2048u);   // 16,381 bits
  EXPECT_EQ(size("arrow", "1693", "0.01"), 4096u);   // 16,390 bits ..
  EXPECT_EQ(size("duckdb", "1693", "0.01"), 2048u);  // .. which are 2,048 whole bytes
  EXPECT_EQ(size("duckdb", "1694", "0.01"), 4096u);
  EXPECT_EQ(size("arrow", "1e12", "0.01"), std::size_t{128} << 20);
  EXPECT_EQ(size("duckdb", "1e12", "0.01"), 0u);  // too large for the header
}

}  // namespace
}  // namespace perhaps::format
