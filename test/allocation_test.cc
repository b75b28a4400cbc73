// Promise: wherever memory runs out, or a thread cannot be started, an operation ends with an Error or std::bad_alloc,
// or does without; nothing is lost -- the old filter answers as before, the old file is there -- and nothing leaks.
// Would notice: an allocation inside noexcept, an exception in a thread, a filter or an index that is half changed, a
// builder that forgets keys it has taken, a file without its filter, a temporary file that stays. Every request of
// every public operation fails once alone and once with all requests after it (support/failing_memory.h). Foreign
// formats: format_allocation_test.cc.
#include <gtest/gtest.h>

#include <filesystem>

#include "perhaps/coded_map.h"
#include "perhaps/engine/allocate.h"
#include "perhaps/engine/filter_block.h"
#include "perhaps/engine/filter_set.h"
#include "perhaps/engine/set_index.h"
#include "perhaps/exact.h"
#include "perhaps/file/container.h"
#include "perhaps/file/shards.h"
#include "perhaps/perhaps.h"
#include "support/failing_memory.h"
#include "support/keys.h"

namespace perhaps::test {
namespace {

namespace fs = std::filesystem;

// Keys number from .. to - 1, as bytes.
struct Some {
  std::vector<std::string> texts;
  std::vector<Bytes> keys;
  Some(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) texts.push_back("key " + std::to_string(Stream{5}.at(i)));
    for (const std::string& text : texts) keys.push_back(bytes_of(text));
  }
  std::span<const Bytes> all() const { return keys; }
  std::vector<std::uint64_t> digests(const AnyHasher& hasher) const {
    std::vector<std::uint64_t> out(keys.size());
    hash_many(hasher, keys, out);
    return out;
  }
};
const Some kOld(0, 300);
const Some kNew(300, 1500);
const Some kAbsent(5000, 7000);

std::vector<std::uint64_t> answers_of(const AnyFilter& filter, const Some& some) {
  std::vector<std::uint64_t> answers(some.keys.size() / 64 + 1);
  filter.may_contain(some.all(), answers);
  return answers;
}
std::size_t missing_in(const AnyFilter& filter, const Some& some) {
  std::size_t present = 0;
  for (const std::uint64_t word : answers_of(filter, some)) present += static_cast<unsigned>(std::popcount(word));
  return some.keys.size() - present;
}

const KeyedHash kKeyed(KeyedHash::Secret{std::byte{7}});
const std::array<AnyHasher, 2> kHashers = {Hash(3), kKeyed};

template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result) << result.error().detail;
  return *std::move(result);
}

std::unique_ptr<AnyOwner> built(Kind kind, const AnyHasher& hasher, const Some& keys, std::uint64_t room = 0) {
  auto builder = value_of(make_builder(kind, {.keys = std::max<std::uint64_t>(room, keys.keys.size())}, hasher));
  for (const auto& lane : builder->lanes(1)) EXPECT_TRUE(lane->insert(keys.all()));
  return value_of(builder->finish());
}

// A folder of its own, with nothing in it at the end that was not there.
class AllocationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "allocation-").string() + std::string(6, 'X');
    folder_ = ::mkdtemp(pattern.data());
    path_ = (folder_ / "filter").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  void expect_one_file() const {
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
    EXPECT_EQ(files, 1u) << "a temporary file was left behind";
  }
  fs::path folder_;
  std::string path_;
};

std::string named(const Family& family, const AnyHasher& hasher, const char* what) {
  return std::string(family.name) + " with " + std::string(name_of(hasher)) + ", " + what;
}

struct Nothing {};

TEST_F(AllocationTest, MakingAndFilling) {
  long requests = 0;
  for (const Family& family : families()) {
    for (const AnyHasher& hasher : kHashers) {
      const auto fresh = make_any(family.kind, {.keys = 100}, hasher);
      if (!fresh) continue;  // static: built
      requests += for_every_failure(
          named(family, hasher, "make_any"), [] { return Nothing(); },
          [&](Nothing) { return bool(make_any(family.kind, {.keys = 1000}, hasher)); }, [](Nothing, End) {});
      // More than it was made for: scalable and quotient filters grow, the others become worse or full.
      struct State {
        std::unique_ptr<AnyMutable> filter;
        std::size_t inserted = 0;
      };
      requests += for_every_failure(
          named(family, hasher, "insert"),
          [&] {
            State state{value_of(make_any(family.kind, {.keys = 400}, hasher))};
            EXPECT_EQ(state.filter->insert(kOld.all()), kOld.keys.size());
            return state;
          },
          [&](State& state) {
            state.inserted = state.filter->insert(kNew.all());
            return true;
          },
          [&](const State& state, End end) {
            // A window forgets.
            if (!family.forgets) {
              EXPECT_EQ(missing_in(*state.filter, kOld), 0u);
            }
            if (end == End::done && state.inserted == kNew.keys.size() && !family.forgets) {
              EXPECT_EQ(missing_in(*state.filter, kNew), 0u);
            }
          });
      if (!family.erases) continue;
      const auto digests = kOld.digests(hasher);
      requests += for_every_failure(
          named(family, hasher, "erase"),
          [&] {
            State state{value_of(make_any(family.kind, {.keys = 2000}, hasher))};
            EXPECT_EQ(state.filter->insert(kOld.all()), kOld.keys.size());
            EXPECT_EQ(state.filter->insert(kNew.all()), kNew.keys.size());
            return state;
          },
          [&](State& state) { return bool(state.filter->erase_digests(digests)); },
          [&](const State& state, End) { EXPECT_EQ(missing_in(*state.filter, kNew), 0u); });
    }
  }
  EXPECT_GT(requests, 50);
}

TEST_F(AllocationTest, Building) {
  long requests = 0;
  for (const Family& family : families()) {
    for (const AnyHasher& hasher : kHashers) {
      struct State {
        std::unique_ptr<AnyOwner> filter;
      };
      requests += for_every_failure(
          named(family, hasher, "build"), [] { return State(); },
          [&](State& state) {
            auto builder = make_builder(family.kind, {.keys = 1200}, hasher, {.threads = 2});
            if (!builder) return false;
            {
              const auto lanes = (*builder)->lanes(2);
              for (std::size_t i = 0; i < kNew.keys.size(); i += 100) {
                // As somebody would who only looks at the end.
                static_cast<void>(lanes[i / 100 % lanes.size()]->insert(kNew.all().subspan(i, 100)));
              }
            }
            auto filter = (*builder)->finish();
            if (filter) state.filter = *std::move(filter);
            return bool(filter);  // NOLINT(bugprone-use-after-move)
          },
          [&](const State& state, End end) {
            EXPECT_EQ(end == End::done, state.filter != nullptr);
            if (state.filter != nullptr) {
              EXPECT_EQ(missing_in(*state.filter, kNew), 0u);
            }
          });
      requests += for_every_failure(
          named(family, hasher, "describe"), [&] { return State{built(family.kind, hasher, kOld)}; },
          [&](State& state) { return !state.filter->describe().family.empty(); },
          [&](const State& state, End) { EXPECT_EQ(missing_in(*state.filter, kOld), 0u); });
    }
  }
  EXPECT_GT(requests, 100);
}

TEST_F(AllocationTest, Combining) {
  for (const Family& family : families()) {
    for (const AnyHasher& hasher : kHashers) {
      if (!make_any(family.kind, {.keys = 100}, hasher)) continue;
      const auto other = built(family.kind, hasher, kNew, 2000);
      struct State {
        std::unique_ptr<AnyMutable> filter;
        std::unique_ptr<AnyMutable> half = nullptr;
      };
      const auto make = [&] {
        State state{value_of(make_any(family.kind, {.keys = 2000}, hasher))};
        EXPECT_EQ(state.filter->insert(kOld.all()), kOld.keys.size());
        return state;
      };
      const auto before = answers_of(*make().filter, kAbsent);
      const auto unchanged = [&](const State& state) {
        EXPECT_EQ(missing_in(*state.filter, kOld), 0u);
        EXPECT_EQ(answers_of(*state.filter, kAbsent), before);
      };
      // What a family cannot do is refused, and the refusal needs memory as well.
      const bool merges = bool(make().filter->merge(*other));
      for_every_failure(
          named(family, hasher, "merge"), make, [&](State& s) { return bool(s.filter->merge(*other)) == merges; },
          [&](const State& state, End end) {
            if (end == End::done && merges) {
              EXPECT_EQ(missing_in(*state.filter, kOld) + missing_in(*state.filter, kNew), 0u);
            } else {
              unchanged(state);
            }
          });
      const bool intersects = bool(make().filter->intersect(*other));
      for_every_failure(
          named(family, hasher, "intersect"), make,
          [&](State& s) { return bool(s.filter->intersect(*other)) == intersects; },
          [&](const State& state, End end) {
            if (end != End::done || !intersects) unchanged(state);
          });
      const bool folds = bool(make().filter->fold());
      for_every_failure(
          named(family, hasher, "fold"), make,
          [&](State& s) {
            auto half = s.filter->fold();
            if (half) s.half = *std::move(half);
            return bool(half) == folds;  // NOLINT(bugprone-use-after-move)
          },
          [&](const State& state, End) {
            unchanged(state);
            if (state.half != nullptr) {
              EXPECT_EQ(missing_in(*state.half, kOld), 0u);
            }
          });
    }
  }
}

TEST_F(AllocationTest, SavingAndOpening) {
  for (const Family& family : families()) {
    for (const AnyHasher& hasher : kHashers) {
      const auto before = built(family.kind, hasher, kOld);
      const auto after = built(family.kind, hasher, kNew);
      OpenOptions options;
      if (std::holds_alternative<KeyedHash>(hasher)) options.secret = kKeyed;
      const auto missing = [&](const Some& keys) {
        const File file = value_of(File::open(path_, options));
        return missing_in(*file.any(), keys);
      };
      for_every_failure(
          named(family, hasher, "save"),
          [&] {
            EXPECT_TRUE(before->save(path_, {.keys = 300}));
            return Nothing();
          },
          [&](Nothing) { return bool(after->save(path_, {.keys = 1200})); },
          [&](Nothing, End end) {
            EXPECT_EQ(end == End::done ? missing(kNew) : missing(kOld), 0u);
            expect_one_file();
          });
      for_every_failure(
          named(family, hasher, "open"), [] { return Nothing(); },
          [&](Nothing) {
            const auto file = File::open(path_, options);
            if (!file) return false;
            const auto filter = file->any();
            return filter->may_contain(kNew.keys[0]) && !filter->describe().hash.empty();
          },
          [](Nothing, End) {});
      const bool loads = bool(value_of(File::open(path_, options)).load());
      for_every_failure(
          named(family, hasher, "load"), [] { return Nothing(); },
          [&](Nothing) {
            const auto file = File::open(path_, options);
            return file && bool(file->load()) == loads;
          },
          [](Nothing, End) {});
      // Damage, put into words.
      fs::resize_file(path_, fs::file_size(path_) - 1);
      for_every_failure(
          named(family, hasher, "open what is cut short"), [] { return Nothing(); },
          [&](Nothing) { return !File::open(path_, options); }, [](Nothing, End) {});
    }
  }
}

TEST_F(AllocationTest, FilesThatAreFilledInPlace) {
  const LineShape shape = LineShape::for_keys({.keys = 300});
  for_every_failure(
      "NewFile",
      [&] {
        EXPECT_TRUE(write_file(path_, bytes_of("old")));
        return Nothing();
      },
      [&](Nothing) {
        auto file = NewFile<LineBloom>::create(path_, shape);
        if (!file) return false;
        file->span().insert(std::span<const Bytes>(kOld.keys));
        return bool(file->commit({.keys = 300}));
      },
      [&](Nothing, End end) {
        EXPECT_EQ(fs::file_size(path_) == 3, end != End::done);
        expect_one_file();
      });
  const std::vector<std::byte> bytes(1000, std::byte{5});
  const std::vector<Shard> shards = {{0, bytes}, {2, bytes}};
  for_every_failure(
      "shards",
      [&] {
        EXPECT_TRUE(write_file(path_, bytes_of("old")));
        return Nothing();
      },
      [&](Nothing) {
        if (!write_shards(path_, 3, shards)) return false;
        const auto mapping = Mapping::open(path_);
        if (!mapping) return false;
        const auto back = Shards::over(mapping->bytes());
        return back && back->here().size() == 2;
      },
      [&](Nothing, End end) {
        if (end == End::done) {
          EXPECT_GT(fs::file_size(path_), 2000u);
        }
        expect_one_file();
      });
}

// Whatever fails, all keys go in: with fewer threads, or with none. For eight threads a filter of 6e6 keys is too large
// to be copied for each.
constexpr unsigned kThreads = 8;
template <class F>
void expect_all_in(std::uint64_t keys_of_filter, const char* name, typename F::hasher_type hasher) {
  std::vector<std::uint64_t> keys(kWorthAThread);
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const long requests = for_every_failure(
      name, [&] { return F(Request{.keys = keys_of_filter, .fpr = 0.01}, hasher); },
      [&](F& filter) {
        insert_parallel(filter, std::span<const std::uint64_t>(keys), kThreads);
        return true;
      },
      [&](const F& filter, End end) {
        EXPECT_EQ(end, End::done);
        std::vector<std::uint64_t> answers(keys.size() / 64 + 1);
        filter.may_contain(std::span<const std::uint64_t>(keys), answers);
        std::size_t present = 0;
        for (const std::uint64_t word : answers) present += static_cast<unsigned>(std::popcount(word));
        EXPECT_EQ(present, keys.size());
      });
  EXPECT_GE(requests, 2 * kThreads - 1) << "a thread and its state for each but the first";
}
TEST_F(AllocationTest, InsertParallelInsertsEverything) {
  expect_all_in<LineBloom>(200'000, "insert_parallel into copies", Hash());
  expect_all_in<LineBloom>(6'000'000, "insert_parallel into parts", Hash());
  expect_all_in<BasicBlockBloom<KeyedHash>>(6'000'000, "insert_parallel, keyed", kKeyed);
  expect_all_in<Bloom>(6'000'000, "insert_parallel, shared", Hash());
}

// Static filters, with one thread and with two. In memory: a build that spills makes thousands of requests.
template <class F>
struct Built {
  std::optional<F> filter;

  void expect_whole(std::span<const std::uint64_t> keys, End end) const {
    EXPECT_EQ(end == End::done, filter.has_value());
    if (!filter) return;
    std::vector<std::uint64_t> answers(keys.size() / 64 + 1);
    filter->may_contain(keys, answers);
    std::size_t present = 0;
    for (const std::uint64_t word : answers) present += static_cast<unsigned>(std::popcount(word));
    EXPECT_EQ(present, keys.size());
  }
  bool take(Result<F> result) {
    if (result) filter.emplace(*std::move(result));
    return filter.has_value();
  }
};
template <class F>
void expect_built_or_not(const std::string& name, const BuildOptions& options, std::span<const std::uint64_t> keys) {
  for_every_failure(
      name, [] { return Built<F>(); },
      [&](Built<F>& state) { return state.take(F::build(keys, {.fpr = 0.01}, options)); },
      [&](const Built<F>& state, End end) { state.expect_whole(keys, end); });
}
// A caller that goes on after std::bad_alloc must not get a filter without the keys that were taken before.
template <class F>
void expect_no_key_lost(const std::string& name, const BuildOptions& options, std::span<const std::uint64_t> keys) {
  for_every_failure(
      name + ", insisting", [] { return Built<F>(); },
      [&](Built<F>& state) {
        StaticBuilder<typename F::layout, Hash> builder({.fpr = 0.01}, options);
        auto lane = builder.lane();
        for (std::size_t i = 0; i < keys.size(); i += 10'000) {
          const auto some = keys.subspan(i, std::min<std::size_t>(10'000, keys.size() - i));
          try {
            static_cast<void>(lane.insert(some));
          } catch (const std::bad_alloc&) {
            static_cast<void>(lane.insert(some));
          }
        }
        return state.take(builder.finish());
      },
      [&](const Built<F>& state, End end) { state.expect_whole(keys, end); });
}
TEST_F(AllocationTest, StaticFilters) {
  const auto few = keys_of(kIntegerPatterns[0], 1'000);
  for (const unsigned threads : {1u, 2u}) {
    const std::string suffix = ", " + std::to_string(threads) + " threads";
    expect_built_or_not<Fuse>("fuse" + suffix, {.threads = threads}, few);
    expect_built_or_not<Ribbon>("ribbon" + suffix, {.threads = threads}, few);
    expect_no_key_lost<Fuse>("fuse" + suffix, {.threads = threads}, few);
  }
}

TEST_F(AllocationTest, Chains) {
  struct State {
    Scalable<Bloom> chain{Growth{.fpr = 0.01, .first = 50}};
    std::optional<Scalable<Bloom>> copy = {};
  };
  const auto make = [] {
    State state;
    for (const Bytes key : kOld.keys) state.chain.insert(key);
    return state;
  };
  const auto holds = [](const Scalable<Bloom>& chain, const Some& some) {
    for (const Bytes key : some.keys) ASSERT_TRUE(chain.may_contain(key));
  };
  for_every_failure(
      "scalable: insert", make,
      [](State& state) {
        for (const Bytes key : kNew.keys) state.chain.insert(key);
        return true;
      },
      [&](const State& state, End end) {
        holds(state.chain, kOld);
        if (end == End::done) holds(state.chain, kNew);
        EXPECT_TRUE(state.chain.shape().valid());
        EXPECT_EQ(state.chain.links().size(), state.chain.shape().links.size());
      });
  for_every_failure(
      "scalable: try_insert", make,
      [](State& state) {
        bool all = true;
        for (const Bytes key : kNew.keys) all &= state.chain.try_insert(key) != Inserted::full;
        return all;
      },
      [&](const State& state, End end) {
        EXPECT_NE(end, End::no_memory);
        holds(state.chain, kOld);
      });
  Scalable<Bloom> other(Growth{.fpr = 0.01, .first = 70});
  for (const Bytes key : kNew.keys) other.insert(key);
  const auto numbers = make().chain.numbers();
  for_every_failure(
      "scalable: merge and copy", make,
      [&](State& state) {
        if (!state.chain.merge(other)) return false;
        state.copy.emplace(state.chain);
        return true;
      },
      [&](const State& state, End end) {
        holds(state.chain, kOld);
        if (state.chain.numbers() != numbers) holds(state.chain, kNew);
        if (end == End::done) holds(*state.copy, kNew);
      });
}

TEST_F(AllocationTest, PackedFilters) {
  const auto digests = kNew.digests(Hash());
  std::vector<Kind> kinds = {Kind::dense};
  for (const Family& family : families()) {
    if (can_pack(family.kind)) kinds.push_back(family.kind);
  }
  for (const Kind kind : kinds) {
    for (const std::size_t count : {1u, 30u, 1000u}) {
      const std::string name = "pack " + std::string(name_of(kind)) + " of " + std::to_string(count);
      const std::vector<std::uint64_t> some(digests.begin(), digests.begin() + count);
      struct State {
        std::vector<std::byte> packed;
      };
      for_every_failure(
          name, [] { return State(); },
          [&](State& state) {
            state.packed = pack(kind, some, 12);
            return true;
          },
          [&](const State& state, End end) {
            if (end != End::done) return;
            for (const std::uint64_t digest : some) ASSERT_TRUE(packed_may_contain(state.packed, digest));
          });
      // Damaged bytes are looked at inside noexcept. Every byte of the tail, which says what the rest is.
      const auto sound = pack(kind, some, 12);
      for (std::size_t back = 1; back <= std::min<std::size_t>(sound.size(), 24); ++back) {
        for (const std::byte flip : {std::byte{1}, std::byte{0x40}, std::byte{0xff}}) {
          auto damaged = sound;
          damaged[damaged.size() - back] ^= flip;
          for_every_failure(
              name + ", damaged", [] { return Nothing(); },
              [&](Nothing) {
                const PackedView view = PackedView::over(damaged);
                static_cast<void>(view.may_contain(some[0]));
                static_cast<void>(packed_may_contain(damaged, some[0]));
                return true;
              },
              [](Nothing, End end) { EXPECT_EQ(end, End::done); });
        }
      }
    }
  }
}

TEST_F(AllocationTest, FilterBlocks) {
  for (const FilterMode mode : {FilterMode::full, FilterMode::partitioned, FilterMode::per_block}) {
    for (const Kind kind : {Kind::line, Kind::dense, Kind::cuckoo, Kind::ribbon}) {
      if (mode == FilterMode::per_block && !can_pack_few(kind)) continue;
      std::vector<std::string> keys;
      for (int i = 0; i < 400; ++i) keys.push_back("user" + std::to_string(1000 + i) + "/x");
      struct State {
        std::vector<std::byte> block;
      };
      // An engine that goes on after std::bad_alloc, whatever threw it: no key may be denied.
      for_every_failure(
          "filter block", [] { return State(); },
          [&](State& state) {
            FilterBlockBuilder builder(
                {.mode = mode, .family = kind, .prefix = PrefixExtractor::delimiter('/'), .piece_bytes = 100});
            const auto insist = [](auto step) {
              try {
                step();
              } catch (const std::bad_alloc&) {
                try {
                  step();
                } catch (const std::bad_alloc&) {
                  // It has no more.
                }
              }
            };
            for (std::size_t i = 0; i < keys.size(); ++i) {
              insist([&] { builder.add(keys[i]); });
              if (mode == FilterMode::per_block && i % 40 == 39) insist([&] { builder.next_block(); });
            }
            state.block = builder.finish();
            return true;
          },
          [&](const State& state, End end) {
            if (end != End::done) return;
            const FilterBlock filter = FilterBlock::over(state.block);
            for (std::size_t i = 0; i < keys.size(); ++i) {
              ASSERT_TRUE(mode == FilterMode::per_block ? filter.may_contain(i / 40, bytes_of(keys[i]))
                                                        : filter.may_contain(bytes_of(keys[i])));
            }
          });
      FilterBlockBuilder builder({.mode = mode, .family = kind, .piece_bytes = 100});
      for (const std::string& key : keys) builder.add(key);
      const auto block = builder.finish();
      auto damaged = block;
      damaged[3] ^= std::byte{1};
      for (const Bytes bytes : {Bytes(block), Bytes(damaged), Bytes(block).first(block.size() - 1)}) {
        for_every_failure(
            "filter block: over", [] { return Nothing(); },
            [&](Nothing) {
              const FilterBlock filter = FilterBlock::over(bytes);
              for (const std::string& key : keys) static_cast<void>(filter.may_contain(bytes_of(key)));
              return true;
            },
            [](Nothing, End) {});
      }
      // A loader that has no memory counts as one that found nothing.
      const auto tail = FilterBlock::tail_bytes(block);
      ASSERT_TRUE(tail);
      const FilterBlock::Load load = [&](std::uint64_t offset, std::uint64_t size) {
        const auto copy =
            std::make_shared<std::vector<std::byte>>(block.begin() + static_cast<std::ptrdiff_t>(offset),
                                                     block.begin() + static_cast<std::ptrdiff_t>(offset + size));
        return FilterBlock::Loaded{*copy, copy};
      };
      const FilterBlock filter = FilterBlock::lazy(Bytes(block).last(*tail), load);
      for_every_failure(
          "filter block: lazy", [] { return Nothing(); },
          [&](Nothing) {
            bool all = true;
            for (int i = 0; i < 8; ++i) all &= filter.may_contain(bytes_of(keys[static_cast<std::size_t>(i)]));
            return all;
          },
          [](Nothing, End end) { EXPECT_EQ(end, End::done); });
    }
  }
}

TEST_F(AllocationTest, IndexesAndSets) {
  const BloomShape shape = BloomShape::for_keys({.keys = 100});
  std::vector<Bloom> filters;
  std::vector<SetIndex::Column> columns;
  for (std::uint64_t set = 0; set < 70; ++set) {
    filters.emplace_back(shape);
    for (std::uint64_t i = 0; i < 50; ++i) filters.back().insert(set * 100 + i);
  }
  for (std::uint64_t set = 0; set < 70; ++set) {
    columns.push_back({"a set whose name is long enough for memory " + std::to_string(set), 50, filters[set].bytes()});
  }
  struct State {
    SetIndex index;
  };
  const auto expect_sets = [&](const SetIndex& index, std::size_t count) {
    std::size_t names = 0;
    for (const auto& set : index.sets()) names += !set.name.empty();
    EXPECT_EQ(names, count);
    std::vector<std::uint64_t> answers(index.words());
    for (std::size_t set = 0; set < count; ++set) {
      const std::size_t at = index.find(columns[set].name);
      for (std::uint64_t i = 0; i < 50; ++i) {
        const std::uint64_t digest = Hash()(set * 100 + i).value;
        index.may_contain(std::span(&digest, 1), answers);
        ASSERT_TRUE(answers[at / 64] >> at % 64 & 1) << set;
      }
    }
  };
  for_every_failure(
      "set index: add",
      [&] {
        State state{SetIndex(shape, Hash())};
        EXPECT_TRUE(state.index.add(std::span(columns).first(3)));
        return state;
      },
      [&](State& state) { return bool(state.index.add(std::span(columns).subspan(3))); },
      [&](const State& state, End end) { expect_sets(state.index, end == End::done ? 70 : 3); });
  SetIndex index(shape, Hash());
  ASSERT_TRUE(index.add(columns));
  for_every_failure(
      "set index: save",
      [&] {
        EXPECT_TRUE(write_file(path_, bytes_of("old")));
        return Nothing();
      },
      [&](Nothing) { return bool(index.save(path_)); },
      [&](Nothing, End end) {
        EXPECT_EQ(fs::file_size(path_) == 3, end != End::done);
        expect_one_file();
      });
  for_every_failure(
      "set index: open and copy", [] { return Nothing(); },
      [&](Nothing) {
        const auto file = File::open(path_);
        if (!file) return false;
        const auto view = SetIndexView::over(*file);
        return view && SetIndex(*view).sets().size() == index.sets().size();
      },
      [](Nothing, End) {});

  std::vector<std::unique_ptr<AnyOwner>> owners;
  for (int i = 0; i < 5; ++i) owners.push_back(built(Kind::line, Hash(), kOld));
  for_every_failure(
      "filter set", [] { return FilterSet(); },
      [&](FilterSet& set) {
        for (const auto& owner : owners) {
          if (!set.add(*owner)) return false;
        }
        return true;
      },
      [&](const FilterSet& set, End end) {
        if (end == End::done) {
          EXPECT_EQ(set.size(), owners.size());
        }
        std::vector<std::uint64_t> answers(set.words());
        set.may_contain(kOld.keys[0], answers);
        if (set.size() != 0) {
          EXPECT_EQ(answers[0], (std::uint64_t{1} << set.size()) - 1);
        }
      });
}

// A caller that only looks at the end must not get a set or a map that lacks what one call could not store.
TEST_F(AllocationTest, ExactSets) {
  std::vector<Bytes> universe = kNew.keys;
  universe.insert(universe.end(), kOld.keys.begin(), kOld.keys.end());
  const auto each_part = [](std::span<const Bytes> keys, auto take) {
    for (std::size_t i = 0; i < keys.size(); i += 100) {
      try {
        static_cast<void>(take(keys.subspan(i, std::min<std::size_t>(100, keys.size() - i))));
      } catch (const std::bad_alloc&) {
      }
    }
  };
  struct Way {
    const char* name;
    ExactRequest request;
    bool begins;
    std::uint64_t memory;
  };
  const ExactParts by_digit{.field = 2, .delimiter = '7'};
  for (const Way& way : {Way{"size given", {}, true, 0}, Way{"size not given", {}, false, 0},
                         Way{"kept in a file", {}, false, 4000}, Way{"parts", {by_digit}, true, 0}}) {
    struct State {
      std::optional<Exact> set = {};
    };
    const long requests = for_every_failure(
        std::string("exact set, ") + way.name, [] { return State(); },
        [&](State& state) {
          ExactBuilder builder(way.request, {.threads = 2, .memory = way.memory, .spill_folder = folder_.string()});
          const auto count = [&](std::span<const Bytes> keys) { return builder.count(keys), true; };
          each_part(kOld.keys, [&](std::span<const Bytes> keys) { return builder.add_members(keys), true; });
          if (way.request.parts) each_part(universe, count);
          if (way.begins) {
            try {
              builder.begin(way.request.parts ? 0 : universe.size());
            } catch (const std::bad_alloc&) {
            }
          }
          each_part(universe, [&](std::span<const Bytes> keys) { return builder.add(keys); });
          auto set = builder.finish();
          if (!set) return false;
          state.set.emplace(*std::move(set));
          return true;
        },
        [&](const State& state, End end) {
          EXPECT_EQ(end == End::done, state.set.has_value());
          if (!state.set) return;
          for (const Bytes key : kOld.keys) ASSERT_TRUE(state.set->contains(key));
          for (const Bytes key : kNew.keys) ASSERT_FALSE(state.set->contains(key));
        });
    EXPECT_GT(requests, 20) << way.name;
  }
}

TEST_F(AllocationTest, Maps) {
  std::vector<std::uint64_t> values(kNew.keys.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 7 == 0 ? i % 50 : 0;
  std::vector<Digest<Hash>> digests;
  for (const Bytes key : kNew.keys) digests.push_back(Hash()(key));
  struct State {
    std::optional<RibbonMap> map = {};
    std::optional<CodedMap> coded = {};
  };
  for_every_failure(
      "ribbon map", [] { return State(); },
      [&](State& state) {
        RibbonMapBuilder builder({.value_bits = 8}, {.threads = 2});
        auto lane = builder.lane();
        for (std::size_t i = 0; i < digests.size(); i += 100) {
          try {
            static_cast<void>(
                lane.insert(std::span<const Digest<Hash>>(digests).subspan(i, 100), std::span(values).subspan(i, 100)));
          } catch (const std::bad_alloc&) {
          }
        }
        auto map = builder.finish();
        if (!map) return false;
        state.map.emplace(*std::move(map));
        return true;
      },
      [&](const State& state, End end) {
        EXPECT_EQ(end == End::done, state.map.has_value());
        if (!state.map) return;
        for (std::size_t i = 0; i < digests.size(); ++i) ASSERT_EQ(state.map->find(digests[i]), values[i]) << i;
      });
  for_every_failure(
      "coded map", [] { return State(); },
      [&](State& state) {
        auto map = CodedMap::build(digests, values, 0, {.threads = 2});
        if (!map) return false;
        state.coded.emplace(*std::move(map));
        return true;
      },
      [&](const State& state, End end) {
        EXPECT_EQ(end == End::done, state.coded.has_value());
        if (!state.coded) return;
        for (std::size_t i = 0; i < digests.size(); ++i) ASSERT_EQ(state.coded->find(digests[i]), values[i]) << i;
      });
}

TEST_F(AllocationTest, TypedFilters) {
  struct State {
    Quotient a{GuardedRequest{.keys = 300}};
    Quotient b{GuardedRequest{.keys = 300}};
    std::optional<Quotient> both = {};
  };
  const auto make = [] {
    State state;
    for (const Bytes key : kOld.keys) EXPECT_NE(state.a.insert(key), Inserted::full);
    for (const Bytes key : kOld.keys) EXPECT_NE(state.b.insert(key), Inserted::full);
    return state;
  };
  for_every_failure(
      "quotient: merge and resize", make,
      [](State& state) {
        auto both = merge(state.a.view(), state.b.view());
        if (!both) return false;
        const auto shape = both->shape().grown_for(2 * both->shape().capacity());
        if (!shape) return false;
        auto larger = resize(both->view(), *shape);
        if (!larger) return false;
        state.both.emplace(*std::move(larger));
        return true;
      },
      [](const State& state, End) {
        for (const Bytes key : kOld.keys) ASSERT_TRUE(state.a.may_contain(key) && state.b.may_contain(key));
        if (!state.both) return;
        for (const Bytes key : kOld.keys) ASSERT_TRUE(state.both->may_contain(key));
      });
  for_every_failure(
      "copies and assignments", make,
      [](State& state) {
        const Quotient copy = state.a;
        state.b = copy;
        return true;
      },
      [](const State& state, End) {
        for (const Bytes key : kOld.keys) ASSERT_TRUE(state.a.may_contain(key) && state.b.may_contain(key));
      });
  for_every_failure(
      "level budget", [] { return Nothing(); },
      [](Nothing) {
        const auto budget = LevelBudget::over({{.keys = 1000}, {.keys = 10'000}, {.keys = 100'000}});
        if (!budget) return false;
        return budget->best(100'000).levels.size() == 3 && budget->even(100'000).levels.size() == 3 &&
               budget->smallest(0.1).levels.size() == 3;
      },
      [](Nothing, End) {});
  for_every_failure(
      "size table", [] { return Nothing(); }, [](Nothing) { return !size_table({.keys = 1000}).empty(); },
      [](Nothing, End) {});
}

}  // namespace
}  // namespace perhaps::test
