// Promise: the C API is the library behind plain functions: the same answers and the same bytes as AnyFilter, every
// failure a status with a message, no exception and no allocation on the query path, and structs that may grow. Would
// notice: an answer or a byte that differs, a family that cannot be copied or reopened, a refusal without a reason, an
// out parameter that changes on failure, a struct whose size is ignored, an allocation in a query.
#include "perhaps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

#include "perhaps/any_filter.h"
#include "perhaps/file/container.h"
#include "perhaps/file/range_file.h"
#include "perhaps/file/shards.h"
#include "perhaps/format/format.h"

namespace {
std::atomic<std::uint64_t> allocations = 0;
}
// NOLINTBEGIN(misc-new-delete-overloads)
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads)

namespace {

using perhaps::Bytes;

struct Free {
  void operator()(perhaps_filter* filter) const { perhaps_free(filter); }
};
using Handle = std::unique_ptr<perhaps_filter, Free>;

struct Keys {
  Keys(std::string_view prefix, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) text.push_back(std::string(prefix) + std::to_string(i));
    for (const std::string& key : text) {
      keys.push_back({key.data(), key.size()});
      bytes.push_back(perhaps::bytes_of(key));
    }
  }
  Keys(const Keys&) = delete;
  std::vector<std::string> text;
  std::vector<perhaps_key> keys;
  std::vector<Bytes> bytes;
};

std::vector<std::uint64_t> numbers(std::uint64_t from, std::size_t count) {
  std::vector<std::uint64_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = from + i * 0x9e3779b97f4a7c15u;
  return result;
}

perhaps_options options_of(const char* family, std::uint64_t keys) {
  perhaps_options options{};
  options.size = sizeof options;
  options.family = family;
  options.keys = keys;
  return options;
}

// Of a call that must succeed.
#define ASSERT_DONE(call) ASSERT_EQ(call, PERHAPS_OK) << perhaps_last_error()

std::vector<std::uint64_t> query(const perhaps_filter* filter, const Keys& keys) {
  std::vector<std::uint64_t> answers((keys.keys.size() + 63) / 64, ~std::uint64_t{0});
  EXPECT_EQ(perhaps_query(filter, keys.keys.data(), keys.keys.size(), answers.data()), PERHAPS_OK);
  return answers;
}
std::vector<std::uint64_t> query(const perhaps_filter* filter, const std::vector<std::uint64_t>& integers) {
  std::vector<std::uint64_t> answers((integers.size() + 63) / 64, ~std::uint64_t{0});
  EXPECT_EQ(perhaps_query_integers(filter, integers.data(), integers.size(), answers.data()), PERHAPS_OK)
      << perhaps_last_error();
  return answers;
}
bool all(const std::vector<std::uint64_t>& answers, std::size_t count) {
  std::size_t hits = 0;
  for (const std::uint64_t word : answers) hits += static_cast<std::size_t>(__builtin_popcountll(word));
  return hits == count;
}

std::string bytes_of(const perhaps_filter* filter) {
  std::size_t size = 0;
  EXPECT_EQ(perhaps_to_bytes(filter, nullptr, 0, &size), PERHAPS_TOO_SMALL);
  std::string bytes(size, '\0');
  EXPECT_EQ(perhaps_to_bytes(filter, bytes.data(), bytes.size(), &size), PERHAPS_OK) << perhaps_last_error();
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

perhaps_description description_of(const perhaps_filter* filter) {
  perhaps_description description{};
  description.size = sizeof description;
  EXPECT_EQ(perhaps_describe(filter, &description), PERHAPS_OK) << perhaps_last_error();
  return description;
}

void expect_refused(perhaps_status status, perhaps_status expected, const std::string& reason) {
  EXPECT_EQ(status, expected) << perhaps_last_error();
  EXPECT_NE(std::string(perhaps_last_error()).find(reason), std::string::npos) << perhaps_last_error();
}

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("c_api_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ / name; }
  std::string content(const std::string& name) const {
    std::ifstream in(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path folder_;
};

// Every family, with a seed and with a secret: built, inserted into, copied, saved, reopened, borrowed.
class CApiFamily : public CApi, public testing::WithParamInterface<std::string> {};

TEST_P(CApiFamily, IsTheLibrary) {
  const perhaps::Family& family = *perhaps::find_family(*perhaps::kind_named(GetParam()));
  const Keys in("in ", 3000);
  const Keys out("out ", 3000);
  const auto integers = numbers(1, 3000);
  unsigned char secret[16] = {1, 2, 3};
  perhaps::KeyedHash::Secret same{std::byte{1}, std::byte{2}, std::byte{3}};
  for (const bool keyed : {false, true}) {
    SCOPED_TRACE(keyed);
    perhaps_options options = options_of(GetParam().c_str(), 6000);
    if (keyed) options.secret = secret;
    const perhaps::AnyHasher hasher =
        keyed ? perhaps::AnyHasher(perhaps::KeyedHash(same)) : perhaps::AnyHasher(perhaps::Hash());

    // The same keys through AnyBuilder.
    auto builder = *perhaps::make_builder(family.kind, {.keys = 6000}, hasher);
    {
      auto lanes = builder->lanes(1);
      ASSERT_TRUE(lanes[0]->insert(in.bytes));
    }
    const auto direct = *builder->finish();
    const std::string saved = path("direct");
    ASSERT_TRUE(direct->save(saved, direct->record()));

    perhaps_filter* made = nullptr;
    options.threads = 3;
    ASSERT_DONE(perhaps_build(&options, in.keys.data(), in.keys.size(), &made));
    const Handle built(made);
    EXPECT_EQ(bytes_of(made), content(saved));
    EXPECT_TRUE(all(query(made, in), in.keys.size()));
    std::vector<std::uint64_t> expected(query(made, out).size());
    direct->may_contain(out.bytes, expected);
    EXPECT_EQ(query(made, out), expected);
    EXPECT_EQ(perhaps_byte_size(made), direct->byte_size());
    for (std::size_t i = 0; i < out.keys.size(); i += 97) {
      std::uint64_t one = 2;
      ASSERT_DONE(perhaps_query(made, &out.keys[i], 1, &one));
      EXPECT_EQ(one, expected[i / 64] >> i % 64 & 1);
    }

    // The file, mapped, copied and borrowed.
    ASSERT_DONE(perhaps_save(made, path("file").c_str()));
    EXPECT_EQ(content(path("file")), content(saved));
    perhaps_open_options reading{};
    reading.size = sizeof reading;
    if (keyed) reading.secret = secret;
    perhaps_filter* other = nullptr;
    ASSERT_DONE(perhaps_open(path("file").c_str(), &reading, &other));
    const Handle opened(other);
    EXPECT_EQ(query(opened.get(), out), expected);
    EXPECT_EQ(bytes_of(opened.get()), content(saved));
    EXPECT_EQ(description_of(opened.get()).read_only, 1u);
    for (const std::uint32_t flags : {0u, std::uint32_t{PERHAPS_BORROW}, std::uint32_t{PERHAPS_NO_VERIFY}}) {
      const std::string bytes = content(saved);
      reading.flags = flags;
      ASSERT_DONE(perhaps_from_bytes(bytes.data(), bytes.size(), &reading, &other));
      const Handle read(other);
      EXPECT_EQ(query(read.get(), out), expected);
      EXPECT_EQ(bytes_of(read.get()), bytes);
      EXPECT_EQ(description_of(read.get()).read_only, flags == PERHAPS_BORROW || !family.inserts);
    }
    for (const perhaps_filter* const from : {built.get(), opened.get()}) {
      ASSERT_DONE(perhaps_copy(from, &other));
      const Handle copy(other);
      EXPECT_EQ(bytes_of(copy.get()), content(saved));
      EXPECT_EQ(query(copy.get(), out), expected);
      EXPECT_EQ(description_of(copy.get()).read_only, !family.inserts);
    }
    const perhaps_description d = description_of(made);
    const perhaps::Description truth = direct->describe();
    EXPECT_EQ(d.format, std::string("perhaps"));
    EXPECT_EQ(d.family, truth.family);
    EXPECT_EQ(d.hash, truth.hash);
    EXPECT_EQ(d.keys, truth.keys);
    EXPECT_EQ(d.fpr, truth.fpr);
    EXPECT_EQ(d.bytes, truth.bytes);

    // Integers are keys of their own.
    ASSERT_DONE(perhaps_build_integers(&options, integers.data(), integers.size(), &other));
    const Handle counted(other);
    EXPECT_TRUE(all(query(counted.get(), integers), integers.size()));
    const auto absent = query(counted.get(), numbers(2, 3000));
    EXPECT_FALSE(all(absent, 3000));
    ASSERT_DONE(perhaps_from_bytes(bytes_of(counted.get()).data(), bytes_of(counted.get()).size(), &reading, &other));
    EXPECT_EQ(query(Handle(other).get(), numbers(2, 3000)), absent);
  }
}

TEST_P(CApiFamily, ChangesAsTheFamilyCan) {
  const perhaps::Family& family = *perhaps::find_family(*perhaps::kind_named(GetParam()));
  const Keys in("in ", 2000);
  const auto integers = numbers(1, 2000);
  const perhaps_options options = options_of(GetParam().c_str(), 4000);
  perhaps_filter* made = nullptr;
  if (!family.inserts) {
    expect_refused(perhaps_new(&options, &made), PERHAPS_UNSUPPORTED, GetParam());
    EXPECT_EQ(made, nullptr);
    ASSERT_DONE(perhaps_build(&options, in.keys.data(), in.keys.size(), &made));
    const Handle built(made);
    expect_refused(perhaps_insert(made, in.keys.data(), 1, nullptr), PERHAPS_UNSUPPORTED, "build another");
    expect_refused(perhaps_merge(made, made), PERHAPS_UNSUPPORTED, "build another");
    return;
  }
  ASSERT_DONE(perhaps_new(&options, &made));
  const Handle filter(made);
  std::size_t inserted = 0;
  ASSERT_DONE(perhaps_insert(made, in.keys.data(), in.keys.size(), &inserted));
  EXPECT_EQ(inserted, in.keys.size());
  ASSERT_DONE(perhaps_insert_integers(made, integers.data(), integers.size(), &inserted));
  EXPECT_EQ(inserted, integers.size());
  EXPECT_TRUE(all(query(made, in), in.keys.size()));
  EXPECT_TRUE(all(query(made, integers), integers.size()));
  EXPECT_EQ(description_of(made).keys, 4000u);

  perhaps_erased erased{};
  erased.size = sizeof erased;
  if (family.erases) {
    ASSERT_DONE(perhaps_erase(made, in.keys.data(), in.keys.size(), &erased));
    EXPECT_EQ(erased.removed + erased.kept, in.keys.size());
    ASSERT_DONE(perhaps_erase_integers(made, integers.data(), 500, nullptr));
    EXPECT_TRUE(all(query(made, std::vector(integers.begin() + 500, integers.end())), 1500));
    EXPECT_EQ(description_of(made).keys, 1500u);
  } else {
    expect_refused(perhaps_erase(made, in.keys.data(), 0, &erased), PERHAPS_UNSUPPORTED, "cannot forget");
  }

  // With a read-only one, with itself, and with one of another size.
  const std::string bytes = bytes_of(made);
  perhaps_open_options borrow{};
  borrow.size = sizeof borrow;
  borrow.flags = PERHAPS_BORROW;
  perhaps_filter* other = nullptr;
  ASSERT_DONE(perhaps_from_bytes(bytes.data(), bytes.size(), &borrow, &other));
  const Handle borrowed(other);
  expect_refused(perhaps_insert(other, in.keys.data(), 1, nullptr), PERHAPS_UNSUPPORTED, "read-only");
  ASSERT_DONE(perhaps_new(&options, &other));
  const Handle into(other);
  if (!family.merges) {
    expect_refused(perhaps_merge(into.get(), borrowed.get()), PERHAPS_UNSUPPORTED, "cannot be merged");
    return;
  }
  const Keys more("more ", 100);
  ASSERT_DONE(perhaps_insert(into.get(), more.keys.data(), more.keys.size(), nullptr));
  ASSERT_DONE(perhaps_merge(into.get(), borrowed.get()));
  EXPECT_TRUE(all(query(into.get(), more), 100));
  EXPECT_TRUE(all(query(into.get(), std::vector(integers.begin() + 500, integers.end())), 1500));
  const auto before = query(into.get(), in);
  ASSERT_DONE(perhaps_merge(into.get(), into.get()));
  EXPECT_EQ(query(into.get(), in), before);
  if (family.sets_bits) {
    ASSERT_DONE(perhaps_intersect(into.get(), borrowed.get()));
    ASSERT_DONE(perhaps_intersect(into.get(), into.get()));
    EXPECT_EQ(query(into.get(), in), query(borrowed.get(), in));
    const perhaps_options larger = options_of(GetParam().c_str(), 400000);
    ASSERT_DONE(perhaps_new(&larger, &other));
    expect_refused(perhaps_merge(into.get(), Handle(other).get()), PERHAPS_MISMATCH, GetParam() + ": ");
  }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const perhaps::Family& family : perhaps::families()) result.emplace_back(family.name);
  return result;
}
INSTANTIATE_TEST_SUITE_P(Families, CApiFamily, testing::ValuesIn(names()), [](const auto& i) { return i.param; });

TEST_F(CApi, QueriesAllocateNothing) {
  const Keys keys("key ", 5000);
  const auto integers = numbers(1, 5000);
  std::vector<std::uint64_t> answers(5000 / 64 + 1);
  for (const std::string& name : names()) {
    const perhaps_options options = options_of(name.c_str(), 10000);
    perhaps_filter* made = nullptr;
    ASSERT_DONE(perhaps_build(&options, keys.keys.data(), keys.keys.size(), &made));
    const Handle filter(made);
    const std::uint64_t before = allocations;
    perhaps_query(made, keys.keys.data(), keys.keys.size(), answers.data());
    perhaps_query(made, keys.keys.data(), 1, answers.data());
    perhaps_query_integers(made, integers.data(), integers.size(), answers.data());
    EXPECT_EQ(allocations, before) << name;
  }
  EXPECT_GT(allocations, 0u);
}

// A file of ranges answers single keys: of numbers as integers, of text as bytes.
TEST_F(CApi, RangeFiltersAnswerSingleKeys) {
  const auto integers = numbers(1, 1000);
  const auto others = numbers(12345, 1000);
  const auto of_numbers = perhaps::RangeFilter::of(std::span<const std::uint64_t>(integers));
  ASSERT_TRUE(perhaps::save(path("numbers"), of_numbers.view()));
  perhaps_filter* made = nullptr;
  ASSERT_DONE(perhaps_open(path("numbers").c_str(), nullptr, &made));
  const Handle opened(made);
  ASSERT_DONE(perhaps_copy(opened.get(), &made));
  const Handle copied(made);
  std::vector<std::uint64_t> column = others;  // with a member at every third place
  for (std::size_t i = 0; i < column.size(); i += 3) column[i] = integers[i];
  for (const perhaps_filter* filter : {opened.get(), copied.get()}) {
    const auto answers = query(filter, column);
    for (std::size_t i = 0; i < column.size(); ++i) {
      const bool perhaps = answers[i / 64] >> i % 64 & 1;
      EXPECT_EQ(perhaps, of_numbers.may_contain(column[i])) << i;
      EXPECT_TRUE(perhaps || i % 3 != 0) << i;
    }
    EXPECT_FALSE(all(answers, column.size()));
    EXPECT_EQ(answers.back() >> column.size() % 64, 0u);
  }
  EXPECT_EQ(bytes_of(opened.get()), content(path("numbers")));
  expect_refused(perhaps_insert_integers(copied.get(), integers.data(), 1, nullptr), PERHAPS_UNSUPPORTED, "range");

  const Keys keys("key ", 1000);
  const auto of_text = perhaps::RangeFilter::of(std::span<const Bytes>(keys.bytes));
  ASSERT_TRUE(perhaps::save(path("text"), of_text.view()));
  ASSERT_DONE(perhaps_open(path("text").c_str(), nullptr, &made));
  const Handle text(made);
  EXPECT_TRUE(all(query(text.get(), keys), keys.keys.size()));
  std::uint64_t answer = 5;
  expect_refused(perhaps_query_integers(text.get(), integers.data(), 1, &answer), PERHAPS_UNSUPPORTED, "are text");
  EXPECT_EQ(answer, 5u);
}

TEST_F(CApi, FullIsAStatusAndACount) {
  const auto integers = numbers(1, 100000);
  for (const std::string& name : names()) {
    if (!perhaps::find_family(*perhaps::kind_named(name))->fills_up) continue;
    const perhaps_options options = options_of(name.c_str(), 1000);
    perhaps_filter* made = nullptr;
    ASSERT_DONE(perhaps_new(&options, &made));
    const Handle filter(made);
    std::size_t inserted = 0;
    expect_refused(perhaps_insert_integers(made, integers.data(), integers.size(), &inserted), PERHAPS_FULL, "full");
    EXPECT_GE(inserted, 1000u) << name;
    EXPECT_LT(inserted, integers.size()) << name;
    EXPECT_TRUE(all(query(made, std::vector(integers.begin(), integers.begin() + std::ptrdiff_t(inserted))), inserted));
  }
}

TEST_F(CApi, FormatsOfOtherSystems) {
  const Keys keys("key ", 500);
  std::size_t built = 0;
  perhaps_entry entry{};
  entry.size = sizeof entry;
  for (std::size_t i = 0; perhaps_format_at(i, &entry) == 1; ++i) {
    SCOPED_TRACE(entry.name);
    EXPECT_EQ(perhaps::format::codecs()[i]->name, entry.name);
    EXPECT_EQ(perhaps::format::codecs()[i]->summary, entry.summary);
    perhaps_options options{};
    options.size = sizeof options;
    options.format = entry.name;
    perhaps_filter* made = nullptr;
    if (entry.builds == 0) {
      expect_refused(perhaps_build(&options, keys.keys.data(), keys.keys.size(), &made), PERHAPS_UNSUPPORTED, "built");
      continue;
    }
    const perhaps::format::Codec& codec = *perhaps::format::codecs()[i];
    const auto direct = codec.build(keys.bytes, perhaps::format::Params(codec));
    const perhaps_status status = perhaps_build(&options, keys.keys.data(), keys.keys.size(), &made);
    ASSERT_EQ(status == PERHAPS_OK, bool(direct)) << perhaps_last_error();
    if (!direct) continue;
    const Handle filter(made);
    const std::string bytes = bytes_of(made);
    EXPECT_EQ(bytes, std::string(reinterpret_cast<const char*>(direct->data()), direct->size()));
    EXPECT_TRUE(all(query(made, keys), keys.keys.size()));
    EXPECT_EQ(description_of(made).read_only, 1u);
    std::uint64_t answer = 0;
    const std::uint64_t number = 1;
    expect_refused(perhaps_query_integers(made, &number, 1, &answer), PERHAPS_UNSUPPORTED, "integers");
    expect_refused(perhaps_insert(made, keys.keys.data(), 1, nullptr), PERHAPS_UNSUPPORTED, "read-only");
    perhaps_filter* other = nullptr;
    ASSERT_DONE(perhaps_copy(made, &other));
    EXPECT_EQ(bytes_of(Handle(other).get()), bytes);
    ASSERT_DONE(perhaps_save(made, path(entry.name).c_str()));
    perhaps_open_options reading{};
    reading.size = sizeof reading;
    reading.format = entry.name;
    ASSERT_DONE(perhaps_open(path(entry.name).c_str(), &reading, &other));
    EXPECT_TRUE(all(query(Handle(other).get(), keys), keys.keys.size()));
    ++built;
  }
  EXPECT_GE(built, 15u);
}

TEST_F(CApi, ParametersOfAFormat) {
  const Keys keys("key ", 500);
  perhaps_options options{};
  options.size = sizeof options;
  options.format = "lab";
  options.parameters = " n=1000  fpr=0.001 ";
  perhaps_filter* made = nullptr;
  ASSERT_DONE(perhaps_build(&options, keys.keys.data(), keys.keys.size(), &made));
  const std::string by_text = bytes_of(Handle(made).get());
  options.parameters = nullptr;
  options.keys = 1000;
  options.fpr = 0.001;
  ASSERT_DONE(perhaps_build(&options, keys.keys.data(), keys.keys.size(), &made));
  EXPECT_EQ(bytes_of(Handle(made).get()), by_text);

  options.parameters = "fpr=0.001";
  expect_refused(perhaps_build(&options, keys.keys.data(), 1, &made), PERHAPS_BAD_PARAMETER, "fpr");
  options.fpr = 0;
  for (const char* const wrong : {"fpr", "fpr=2", "nothing=1", "fpr=0.1 fpr=0.1"}) {
    options.parameters = wrong;
    EXPECT_EQ(perhaps_build(&options, keys.keys.data(), 1, &made), PERHAPS_BAD_PARAMETER) << wrong;
  }
  options.parameters = nullptr;
  options.arity = 3;
  expect_refused(perhaps_build(&options, keys.keys.data(), 1, &made), PERHAPS_UNSUPPORTED, "arity");
  options.arity = 0;
  const std::uint64_t number = 1;
  expect_refused(perhaps_build_integers(&options, &number, 1, &made), PERHAPS_UNSUPPORTED, "bytes");
  expect_refused(perhaps_new(&options, &made), PERHAPS_UNSUPPORTED, "at once");
  options.format = "nothing";
  expect_refused(perhaps_build(&options, keys.keys.data(), 1, &made), PERHAPS_BAD_PARAMETER, "'nothing'");
}

TEST_F(CApi, StructsMayGrow) {
  // An older caller: the struct ended before the seed. What follows in its memory is not read.
  perhaps_options options = options_of("line", 1000);
  options.size = offsetof(perhaps_options, seed);
  options.seed = reinterpret_cast<const std::uint64_t*>(1);
  options.format = reinterpret_cast<const char*>(1);
  perhaps_filter* made = nullptr;
  ASSERT_DONE(perhaps_new(&options, &made));
  const Handle filter(made);

  // A newer caller: a field that this library lacks must be zero.
  struct Newer {
    perhaps_options known;
    std::uint64_t added;
  } newer{options_of("line", 1000), 0};
  newer.known.size = sizeof newer;
  ASSERT_DONE(perhaps_new(&newer.known, &made));
  perhaps_free(made);
  newer.added = 1;
  made = nullptr;
  expect_refused(perhaps_new(&newer.known, &made), PERHAPS_UNSUPPORTED, "perhaps_options");
  EXPECT_EQ(made, nullptr);
  newer.added = 0;
  newer.known.reserved = 1;
  expect_refused(perhaps_new(&newer.known, &made), PERHAPS_UNSUPPORTED, "reserved");
  newer.known.size = 0;
  expect_refused(perhaps_new(&newer.known, &made), PERHAPS_BAD_PARAMETER, "size");

  // Answers stop at the end of the caller's struct.
  perhaps_description description{};
  std::memset(&description, 0xee, sizeof description);
  description.size = offsetof(perhaps_description, bits);
  ASSERT_DONE(perhaps_describe(filter.get(), &description));
  EXPECT_EQ(description.bytes, perhaps_byte_size(filter.get()));
  EXPECT_EQ(description.bits, 0xeeeeeeeeeeeeeeeeu);
  description.size = 1;
  expect_refused(perhaps_describe(filter.get(), &description), PERHAPS_BAD_PARAMETER, "size");
}

TEST_F(CApi, WrongRequestsAndWrongBytes) {
  perhaps_filter* made = nullptr;
  perhaps_options options = options_of("bloom", 1000);
  expect_refused(perhaps_new(&options, &made), PERHAPS_BAD_PARAMETER, "'bloom' is not a family; there are line");
  options = options_of("line", 1000);
  options.fpr = 1.5;
  expect_refused(perhaps_new(&options, &made), PERHAPS_BAD_PARAMETER, "fpr");
  options = options_of("line", 1000);
  options.arity = 3;
  expect_refused(perhaps_new(&options, &made), PERHAPS_UNSUPPORTED, "arity");
  options = options_of("line", std::uint64_t{1} << 50);
  EXPECT_EQ(perhaps_new(&options, &made), PERHAPS_NO_MEMORY);
  options = options_of("line", 1000);
  const unsigned char secret[16] = {};
  const std::uint64_t seed = 1;
  options.secret = secret;
  options.seed = &seed;
  expect_refused(perhaps_new(&options, &made), PERHAPS_BAD_PARAMETER, "seed");

  expect_refused(perhaps_open(path("none").c_str(), nullptr, &made), PERHAPS_IO, "none");
  EXPECT_NE(perhaps_from_bytes("", 0, nullptr, &made), PERHAPS_OK);
  options.seed = nullptr;
  ASSERT_DONE(perhaps_new(&options, &made));
  const Handle keyed(made);
  made = nullptr;
  std::string bytes = bytes_of(keyed.get());
  expect_refused(perhaps_from_bytes(bytes.data(), bytes.size(), nullptr, &made), PERHAPS_BAD_KEY, "no key");
  perhaps_open_options reading{};
  reading.size = sizeof reading;
  reading.secret = secret;
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    bytes[i] ^= 0x20;
    EXPECT_NE(perhaps_from_bytes(bytes.data(), bytes.size(), &reading, &made), PERHAPS_OK) << i;
    bytes[i] ^= 0x20;
    EXPECT_NE(perhaps_from_bytes(bytes.data(), i, &reading, &made), PERHAPS_OK) << i;
  }
  EXPECT_EQ(made, nullptr);
  reading.flags = 1u << 31;
  expect_refused(perhaps_from_bytes(bytes.data(), bytes.size(), &reading, &made), PERHAPS_UNSUPPORTED, "flags");

  // What is wrong in the bytes is damage; what is wrong in the request is the caller's.
  reading.flags = 0;
  reading.secret = nullptr;
  reading.format = "guava";
  const std::string_view contradictory("\x7f\1\0\0\0\1\0\0\0\0\0\0\0\0", 14);
  expect_refused(perhaps_from_bytes(contradictory.data(), contradictory.size(), &reading, &made), PERHAPS_BAD_CHECKSUM,
                 "strategy");
  reading.parameters = "nothing=1";
  expect_refused(perhaps_from_bytes(contradictory.data(), contradictory.size(), &reading, &made), PERHAPS_BAD_PARAMETER,
                 "nothing");
  reading.format = "parquet";
  reading.parameters = "column=nothing";
  const std::string columns = PERHAPS_TEST_DATA "/golden/formats/parquet/bin3000_blob.parquet";
  expect_refused(perhaps_open(columns.c_str(), &reading, &made), PERHAPS_BAD_PARAMETER, "no column nothing");
  reading.parameters = "nothing=1";
  reading.format = "nothing";
  expect_refused(perhaps_from_bytes(bytes.data(), bytes.size(), &reading, &made), PERHAPS_BAD_PARAMETER, "'nothing'");
  reading.format = nullptr;
  reading.parameters = nullptr;
  reading.reserved = 1;
  expect_refused(perhaps_from_bytes(bytes.data(), bytes.size(), &reading, &made), PERHAPS_UNSUPPORTED, "reserved");

  const perhaps::Shard shard{.index = 0, .bytes = perhaps::bytes_of(bytes)};
  ASSERT_TRUE(perhaps::write_shards(path("shards"), 2, std::span(&shard, 1)));
  expect_refused(perhaps_open(path("shards").c_str(), nullptr, &made), PERHAPS_UNSUPPORTED, "shards");
}

TEST_F(CApi, TheLastErrorIsOfThisThread) {
  perhaps_filter* made = nullptr;
  expect_refused(perhaps_open(path("mine").c_str(), nullptr, &made), PERHAPS_IO, "mine");
  std::string before;
  std::string theirs;
  std::thread([&] {
    before = perhaps_last_error();
    perhaps_open(path("theirs").c_str(), nullptr, &made);
    theirs = perhaps_last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(theirs.find("theirs"), std::string::npos);
  EXPECT_NE(std::string(perhaps_last_error()).find("mine"), std::string::npos);
  const std::string longest(5000, 'x');  // a message longer than its buffer is cut
  EXPECT_EQ(perhaps_open(longest.c_str(), nullptr, &made), PERHAPS_IO);
  EXPECT_EQ(std::string(perhaps_last_error()).substr(0, 100), longest.substr(0, 100));
}

TEST_F(CApi, FamiliesSizesVersion) {
  perhaps_entry entry{};
  entry.size = sizeof entry;
  std::size_t count = 0;
  for (; perhaps_family_at(count, &entry) == 1; ++count) {
    const perhaps::Family& family = perhaps::families()[count];
    EXPECT_EQ(family.name, entry.name);
    EXPECT_EQ(family.summary, entry.summary);
    EXPECT_EQ(family.inserts, entry.inserts != 0);
    EXPECT_EQ(family.erases, entry.erases != 0);
    EXPECT_EQ(family.merges, entry.merges != 0);
    const perhaps_options options = options_of(entry.name, 1000000);
    perhaps_sizes sizes{};
    sizes.size = sizeof sizes;
    ASSERT_DONE(perhaps_size_of(&options, &sizes));
    EXPECT_EQ(sizes.bytes, perhaps::size_of(family.kind, {.keys = 1000000})->bytes);
    EXPECT_GT(sizes.fpr, 0.001);
  }
  EXPECT_EQ(count, perhaps::families().size());
  EXPECT_STREQ(perhaps_version(), PERHAPS_TEST_VERSION);
  perhaps_free(nullptr);
}

}  // namespace
