// Promise: the index answers for each set exactly as its classic filter does, before and after sets are added and
// removed, in memory and from a file; the number of false positives matches the model. Would notice: a bit of a
// neighbouring column, a column that is not cleared, a row that moves when the matrix grows, a damaged file that is
// trusted.
#include "perhaps/engine/set_index.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <map>

#include "support/keys.h"

namespace perhaps {
namespace {

using test::Stream;

Bloom filter_of(BloomShape shape, std::uint64_t set, std::uint64_t keys) {
  Bloom filter(shape, Hash(7));
  for (std::uint64_t i = 0; i < keys; ++i) filter.insert(Stream{set + 1}.at(i));
  return filter;
}

class Model {
 public:
  Model(BloomShape shape, std::uint64_t keys) : index(shape, Hash(7)), keys_(keys) {}

  void add(std::uint64_t first, std::uint64_t count) {
    std::vector<SetIndex::Column> columns;
    for (std::uint64_t set = first; set < first + count; ++set) {
      const std::string name = "set " + std::to_string(set);
      filters.emplace(name, filter_of(index.shape().column, set, keys_));
      columns.push_back({name, keys_, filters.at(name).bytes()});
    }
    ASSERT_TRUE(index.add(columns));
  }
  void remove(std::uint64_t set) {
    const std::string name = "set " + std::to_string(set);
    EXPECT_TRUE(index.remove(name));
    EXPECT_FALSE(index.remove(name));
    filters.erase(name);
  }
  // Checks every set in every answer, for keys of all sets and of none.
  void check(const SetIndexProbes& view) const {
    std::vector<std::uint64_t> digests;
    for (std::uint64_t i = 0; i < 300; ++i) digests.push_back(Hash(7)(Stream{i % 20 + 1}.at(i / 20)).value);
    std::vector<std::uint64_t> answers(digests.size() * view.words());
    view.may_contain(digests, answers);
    std::size_t named = 0;
    for (std::size_t s = 0; s < view.sets().size(); ++s) {
      const std::string& name = view.sets()[s].name;
      named += !name.empty();
      for (std::size_t i = 0; i < digests.size(); ++i) {
        const bool answer = answers[i * view.words() + s / 64] >> s % 64 & 1;
        const auto digest = Digest<Hash>::made_by(Hash(7), digests[i]);
        ASSERT_EQ(answer, !name.empty() && filters.at(name).may_contain(digest)) << name << ", column " << s;
      }
    }
    EXPECT_EQ(named, filters.size());
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const auto begin = answers.begin() + static_cast<std::ptrdiff_t>(i * view.words());
      EXPECT_EQ(view.any_may_contain(digests[i]),
                std::any_of(begin, begin + static_cast<std::ptrdiff_t>(view.words()), [](auto w) { return w != 0; }));
    }
  }

  SetIndex index;
  std::map<std::string, Bloom> filters;

 private:
  std::uint64_t keys_;
};

TEST(SetIndex, AnswersAsTheFiltersDoWhileSetsComeAndGo) {
  for (const std::uint64_t bits : {1u, 63u, 64u, 1000u, 1001u}) {
    SCOPED_TRACE(bits);
    Model model({.bits = bits, .probes = 3}, 100);
    model.check(model.index);
    model.add(0, 5);
    model.check(model.index);
    model.add(5, 70);  // 128 columns
    model.check(model.index);
    for (const std::uint64_t gone : {0u, 4u, 63u, 64u, 74u}) model.remove(gone);
    model.check(model.index);
    model.add(100, 2);  // into free columns
    EXPECT_EQ(model.index.shape().slots, 128u);
    EXPECT_EQ(model.index.find("set 100"), 0u);
    model.add(200, 600);
    EXPECT_EQ(model.index.shape().slots, 1024u);
    model.check(model.index);
  }
}

TEST(SetIndex, ComesBackFromAFile) {
  const std::string path = (std::filesystem::temp_directory_path() / "set_index_test.perhaps").string();
  Model model({.bits = 997, .probes = 5}, 100);
  model.add(0, 80);
  model.remove(33);
  ASSERT_TRUE(model.index.save(path));
  {
    const auto file = File::open(path);
    ASSERT_TRUE(file) << file.error().detail;
    const auto view = SetIndexView::over(*file);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->shape(), model.index.shape());
    model.check(*view);
    const SetIndex copy(*view);
    model.check(copy);
    EXPECT_EQ(file->header().record.keys, 79u * 100);
    // Queried as a single filter, it says whether any set may hold the key.
    const auto any = file->any();
    EXPECT_EQ(any->describe().family, "sets");
    const auto digest = Hash(7)(Stream{1}.at(0)).value;
    EXPECT_EQ(any->digests()->may_contain(std::span(&digest, 1)), 1u);
    EXPECT_FALSE(file->load());
    // A file of another kind is refused.
    ASSERT_TRUE(save(path, model.filters.begin()->second));
    const auto other = File::open(path);
    EXPECT_EQ(SetIndexView::over(*other).error().code, Errc::mismatch);
  }
  std::filesystem::remove(path);
}

// As every owner that was moved from: each bit of an answer is *perhaps*, no set is named, and it may be assigned to.
// It used to look into the memory that its successor has.
TEST(SetIndex, MovedFromAnswersPerhaps) {
  Model model({.bits = 997, .probes = 5}, 100);
  model.add(0, 80);
  SetIndex& from = model.index;
  const Facts about = {{"recipe", "lines lower"}};
  from.set_about(about);
  SetIndex to = std::move(from);
  EXPECT_EQ(to.about(), about);
  const auto expect_perhaps = [](const SetIndex& index) {
    const std::vector<std::uint64_t> digests = {0, 1, UINT64_MAX, Stream{3}.at(1), Stream{3}.at(2)};
    std::vector<std::uint64_t> answers(digests.size() * index.words());
    index.may_contain(digests, answers);
    for (const std::uint64_t word : answers) EXPECT_EQ(word, UINT64_MAX);
    answers.assign(index.words(), 0);
    index.may_contain(bytes_of("a key"), answers);
    for (const std::uint64_t word : answers) EXPECT_EQ(word, UINT64_MAX);
    for (const std::uint64_t digest : digests) {
      EXPECT_TRUE(index.any_may_contain(digest));
      index.prefetch(digest);
    }
    EXPECT_TRUE(index.sets().empty());
  };
  expect_perhaps(from);  // NOLINT(bugprone-use-after-move)
  const Bloom filter(to.shape().column);
  EXPECT_FALSE(from.add({"more", 1, filter.bytes()}));
  EXPECT_FALSE(from.remove("set 1"));
  EXPECT_FALSE(from.save("never written"));
  from = std::move(to);
  expect_perhaps(to);  // NOLINT(bugprone-use-after-move)
  model.check(from);
}

TEST(SetIndex, RefusesInvalidInput) {
  SetIndex index(BloomShape{.bits = 64, .probes = 2}, Hash());
  const std::vector<std::byte> eight(8);
  const std::vector<std::byte> nine(9);
  EXPECT_EQ(index.add({"", 0, eight}).error().code, Errc::bad_parameter);
  EXPECT_EQ(index.add({"a", 0, nine}).error().code, Errc::mismatch);
  ASSERT_TRUE(index.add({"a", 0, eight}));
  EXPECT_EQ(index.add({"a", 0, eight}).error().code, Errc::bad_parameter);
  const SetIndex::Column twice[] = {{"b", 0, eight}, {"b", 0, eight}};
  EXPECT_FALSE(index.add(twice));
  EXPECT_EQ(index.find("b"), index.sets().size());

  const std::vector<std::byte> table(64 * 8);
  const auto over = [&](std::vector<std::uint64_t> params, Bytes matrix, Bytes names) {
    Header header = Header::of(Hash());
    header.kind = Kind::sets;
    header.params = std::move(params);
    header.sections = {{0, matrix}, {1, names}};
    return SetIndexView::over(header, Hash());
  };
  const std::vector<std::byte> names = index.names();
  EXPECT_TRUE(over({64, 2, 64}, table, names));
  EXPECT_FALSE(over({64, 2}, table, names));
  EXPECT_FALSE(over({64, 2, 128}, table, names));
  EXPECT_FALSE(over({64, 31, 64}, table, names));
  EXPECT_FALSE(over({UINT64_MAX, 2, 64}, table, names));
  EXPECT_FALSE(over({64, 2, 0}, {}, names));
  EXPECT_FALSE(over({64, 2, 65}, table, names));
  for (std::size_t size = 1; size < names.size(); ++size)
    EXPECT_FALSE(over({64, 2, 64}, table, Bytes(names).first(size)));
  for (const std::size_t at : {std::size_t{0}, std::size_t{16}, std::size_t{23}}) {
    std::vector<std::byte> changed = names;
    changed[at] = std::byte{0xff};
    EXPECT_FALSE(over({64, 2, 64}, table, changed)) << at;
  }
  std::vector<std::byte> repeated = names;
  repeated.insert(repeated.end(), names.begin(), names.end());
  EXPECT_FALSE(over({64, 2, 64}, table, repeated));
}

// 64 columns of 2^58 bits are 2^64 bits: the product once overflowed, giving an empty matrix.
TEST(SetIndex, AMatrixBeyond64BitsIsNotMade) {
  EXPECT_THROW(SetIndex(BloomShape{.bits = std::uint64_t{1} << 58, .probes = 2}, Hash()), std::bad_alloc);
  EXPECT_THROW(SetIndex(Request{.keys = std::uint64_t{1} << 60, .fpr = 0.01}, Hash()), std::bad_alloc);
}

// 64 sets of 2000 keys at 1 %, 20,000 absent keys, z = 5. The queries share their filters, so sigma is taken over the
// filters: their rates differ by far less than the outcomes of single queries.
TEST(SetIndex, FalsePositivesMatchTheModel) {
  constexpr std::uint64_t kKeys = 2000;
  constexpr std::uint64_t kQueries = 20'000;
  Model model(BloomShape::for_keys({.keys = kKeys, .fpr = 0.01}), kKeys);
  model.add(0, 64);
  std::uint64_t named = 0;
  for (std::uint64_t i = 0; i < kQueries; ++i) {
    const auto digest = Hash(7)(Stream{999}.at(i)).value;
    std::uint64_t answer = 0;
    model.index.may_contain(std::span(&digest, 1), std::span(&answer, 1));
    named += static_cast<unsigned>(std::popcount(answer));
  }
  const double expected = model.index.false_sets() * kQueries;
  EXPECT_NEAR(static_cast<double>(named), expected, 5 * std::sqrt(expected) + 0.01 * expected);
}

}  // namespace
}  // namespace perhaps
