// Static filters: built once from all digests, never changed. Smaller and faster than any filter that takes keys one
// at a time, because the whole set is known when the bits are chosen. This page is the way from digests to a table; the
// families (fuse.h, ribbon.h) say what a shard of it holds.
//
//   auto filter = Fuse::build(digests, {.fpr = 1e-3}, {.threads = 2});      // digests in memory
//
//   StaticBuilder<FuseLayout, Hash> builder({.fpr = 1e-3}, options);         // a stream, of unknown length
//   in each thread:  auto lane = builder.lane();  while (more) lane.insert(digests);
//   auto filter = builder.finish();
//
// Four steps:
//   collect   every lane deals its digests out to 4096 buckets by their top 12 bits (a small set stays in one). Past
//             `memory` bytes a lane writes its buckets, one after the other, to a temporary file without a name.
//   sort      each bucket is sorted and made distinct, in cache. Now the number of distinct keys is known: it fixes the
//             shape, and with it the shards: shard = the top `shard_bits` bits of a digest.
//   size      shard_bytes(keys of the shard) gives each shard its place in one table, behind a directory.
//   build     threads take shard after shard; each is built from its ascending digests straight into its place, and
//             queried for every one of them while it is still in cache.
//
//   table = | offset of shard 0 | .. | offset of shard s - 1 | table bytes | shard 0 | shard 1 | .. |
//            \_____ directory: s + 1 little-endian words of 64 bits _______/         s = 2^shard_bits
//
// A family may have fronts: parts of known size that lie before the directory, each of which takes most of the keys.
// They are built one after the other, each from runs of ascending digests at once; what the last one leaves is what the
// shards are sized for and built from. Offsets count from the directory.
//
// What a shard is built from -- ascending, distinct digests -- depends on nothing but the set of keys. So the bytes are
// the same for every number of threads, every limit of memory and every order of arrival, and a key given a thousand
// times counts once.
//
// Memory, beside the table: 8 bytes per digest (duplicates included) plus the scratch of the shards at work;
// with `memory` set, that many bytes instead of the 8 per digest, and the file takes up to 16 bytes per digest on disk.
// The limit holds if the digests are spread evenly: if all of them fall into one bucket, that bucket is sorted in
// memory.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "perhaps/build_options.h"
#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

// Memory that a thread keeps from shard to shard. What room() returned last for a slot is gone with the next call for
// it, and new memory holds whatever was left there.
class StaticScratch {
 public:
  // `count` objects in slot number `slot`, with arbitrary contents. Throws std::bad_alloc.
  template <class T>
  std::span<T> room(std::size_t slot, std::size_t count) {
    static_assert(std::is_trivial_v<T>);
    Memory& memory = slots_[slot];
    const std::uint64_t bytes = std::uint64_t{count} * sizeof(T);
    if (memory.size() < bytes) {
      const bool grows = memory.size() != 0;  // as shards differ: so that the next one does not have to
      memory = Memory();                      // before the new one: both at once would not be bounded
      memory = Memory(grows ? bytes + bytes / 16 : bytes);
    }
    return {reinterpret_cast<T*>(memory.data()), count};
  }

 private:
  std::array<Memory, 8> slots_;
};

// A run of a front, one of 2^run_bits by the top bits of a digest: what it is built from, and those of the digests that
// it does not take, ascending.
struct StaticRun {
  std::uint64_t number;
  std::span<const std::uint64_t> digests;
  std::vector<std::uint64_t>* left;
};

// A family that is built. Its Shape has, among others, the members `shard_bits` (at most kMaxShardBits, chosen by
// for_keys from the number of distinct keys) and `table_bytes` (filled in here, and returned by bytes()).
inline constexpr unsigned kMaxShardBits = 18;
template <class L>
concept StaticLayout = Layout<L> && std::same_as<typename L::word, std::uint64_t> &&
    requires(typename L::Shape shape, std::uint64_t keys, std::span<const std::uint64_t> digests,
             std::span<std::byte> out, StaticScratch& scratch, const RequestOf<typename L::Shape>& request) {
  { L::Shape::for_keys(request) } -> std::same_as<typename L::Shape>;
  { shape.shard_bits } -> std::convertible_to<unsigned>;
  { shape.table_bytes } -> std::convertible_to<std::uint64_t>;
  // Of a shard with that many distinct keys; a multiple of 8.
  { L::shard_bytes(shape, keys) }
  noexcept->std::same_as<std::uint64_t>;
  // `digests` ascend and are distinct; `out` has shard_bytes zeros and no alignment beyond 8. Cannot fail.
  L::build_shard(shape, digests, out, scratch);
};
// The keys that a front leaves have other digests from there on, remixed(h), and are in a table of their own kind: the
// shape behind() the fronts.
template <class L>
concept FrontedLayout = StaticLayout<L> &&
    requires(typename L::Shape shape, std::uint64_t keys, std::byte* table, unsigned run_bits,
             std::span<const StaticRun> runs, StaticScratch& scratch) {
  { shape.front_bytes() } -> std::same_as<std::uint64_t>;
  { shape.behind() } -> std::same_as<typename L::Shape>;
  shape.drop_fronts();
  // One more, for so many keys, or none if they are too few; returns its run_bits.
  shape.add_front(keys);
  // Another one in its place, that takes nothing.
  shape.skip_front();
  { L::remixed(keys) } -> std::same_as<std::uint64_t>;
  // The first one; up to L::kRunsTogether runs at once, a power of two.
  L::build_front(shape, table, run_bits, runs, scratch);
};

namespace detail {

// The directory, for the families' lookups.
constexpr std::uint64_t shard_of(unsigned shard_bits, std::uint64_t h) noexcept {
  return h >> 1 >> (63 - shard_bits);  // in two steps: there may be one shard, and a shift by 64 is undefined
}
constexpr std::uint64_t directory_bytes(unsigned shard_bits) noexcept {
  return ((std::uint64_t{1} << shard_bits) + 1) * 8;
}
// A single shard lies behind the directory: its lookup need not wait for the digest to find it.
inline std::uint64_t shard_offset(unsigned shard_bits, const std::byte* table, std::uint64_t h) noexcept {
  return shard_bits == 0 ? directory_bytes(0) : load<std::uint64_t>(table + shard_of(shard_bits, h) * 8);
}

// Calls check_shard(bytes of the shard) -> bool for each shard of a table of unknown origin, once the directory is
// known to be sound: ascending multiples of 8 from its own end to the end of the table.
template <class CheckShard>
Result<void> check_shards(std::string_view family, unsigned shard_bits, Bytes table, CheckShard check_shard) {
  const auto damaged = [&](const char* what, std::uint64_t shard) {
    return Error{Errc::bad_parameter, std::string(family) + ": shard " + std::to_string(shard) + ": " + what};
  };
  const std::uint64_t shards = std::uint64_t{1} << shard_bits;
  if (table.size() < directory_bytes(shard_bits)) return damaged("the table is shorter than its directory", 0);
  std::uint64_t from = load<std::uint64_t>(table.data());
  if (from != directory_bytes(shard_bits)) return damaged("does not begin behind the directory", 0);
  for (std::uint64_t shard = 0; shard < shards; ++shard) {
    const std::uint64_t to = load<std::uint64_t>(table.data() + (shard + 1) * 8);
    if (to < from || to > table.size() || to % 8 != 0) return damaged("an offset outside the table", shard);
    if (!check_shard(table.subspan(from, to - from))) return damaged("geometry that does not fit its bytes", shard);
    from = to;
  }
  if (from != table.size()) return damaged("does not end with the table", shards - 1);
  return {};
}

// A family without its type: what the pipeline (src/build) calls, in this order.
class StaticFamily {
 public:
  virtual std::string_view name() const noexcept = 0;
  virtual unsigned fix_shape(std::uint64_t keys) = 0;               // returns shard_bits
  virtual std::uint64_t front_bytes() const noexcept { return 0; }  // of all fronts so far
  virtual bool add_front(std::uint64_t) { return false; }           // for so many keys; false: no more
  virtual unsigned run_bits() const noexcept { return 0; }
  virtual std::uint64_t runs_together() const noexcept { return 1; }
  virtual void build_front(std::byte*, std::span<const StaticRun>, StaticScratch&) const {}
  virtual void skip_front() {}  // it left too many keys
  virtual void remix(std::span<std::uint64_t>) const noexcept {}
  virtual std::uint64_t shard_bytes(std::uint64_t keys) const noexcept = 0;
  virtual void fix_size(std::uint64_t table_bytes) = 0;
  virtual void build_shard(std::span<const std::uint64_t> digests, std::span<std::byte> out,
                           StaticScratch& scratch) const = 0;
  // How many of `digests` the table denies: the last front or, once there is no more, the shards. Other runs or shards
  // may not be there yet, and nothing is behind a front: it denies what it leaves.
  virtual std::uint64_t missing(const std::byte* table, std::span<const std::uint64_t> digests) const noexcept = 0;

 protected:
  ~StaticFamily() = default;
};

// The shape of a table that is being built front by front, if its layout has fronts.
template <class Shape>
struct FrontByFront {
  Shape whole{};
  // The front that is being built, or the shards, as a table of its own, and where it begins.
  Shape now{};
  std::uint64_t at = 0;
  unsigned run_bits = 0;

  void begin(const Shape& shape) {
    whole = shape;
    if constexpr (requires { whole.drop_fronts(); }) whole.drop_fronts();
    now = whole;
  }
  // One more, for so many keys. False, and the shards are next: they are too few, or there can be no more fronts.
  bool add(std::uint64_t keys) {
    at = whole.front_bytes();
    now = whole.behind();
    now.keys = keys;
    whole.add_front(keys);
    if (whole.front_bytes() == at) {
      now.drop_fronts();
      return false;
    }
    run_bits = now.add_front(keys);
    return true;
  }
};

template <StaticLayout L>
class StaticFamilyOf final : public StaticFamily {
 public:
  explicit StaticFamilyOf(const RequestOf<typename L::Shape>& request) : request_(request) {}
  typename L::Shape shape() const noexcept { return fronts_.whole; }

  std::string_view name() const noexcept override { return L::family; }
  unsigned fix_shape(std::uint64_t keys) override {
    request_.keys = keys;
    fronts_.begin(L::Shape::for_keys(request_));
    assert(shape().shard_bits <= kMaxShardBits);
    return shape().shard_bits;
  }
  std::uint64_t front_bytes() const noexcept override {
    if constexpr (FrontedLayout<L>) return shape().front_bytes();
    return 0;
  }
  bool add_front([[maybe_unused]] std::uint64_t keys) override {
    if constexpr (FrontedLayout<L>) return fronts_.add(keys);
    return false;
  }
  unsigned run_bits() const noexcept override { return fronts_.run_bits; }
  std::uint64_t runs_together() const noexcept override {
    if constexpr (FrontedLayout<L>) return L::kRunsTogether;
    return 1;
  }
  void build_front([[maybe_unused]] std::byte* table, [[maybe_unused]] std::span<const StaticRun> runs,
                   [[maybe_unused]] StaticScratch& scratch) const override {
    if constexpr (FrontedLayout<L>) L::build_front(fronts_.now, table + fronts_.at, fronts_.run_bits, runs, scratch);
  }
  void skip_front() override {
    if constexpr (FrontedLayout<L>) fronts_.whole.skip_front();
  }
  void remix([[maybe_unused]] std::span<std::uint64_t> digests) const noexcept override {
    if constexpr (FrontedLayout<L>) std::transform(digests.begin(), digests.end(), digests.begin(), L::remixed);
  }
  std::uint64_t shard_bytes(std::uint64_t keys) const noexcept override { return L::shard_bytes(fronts_.now, keys); }
  void fix_size(std::uint64_t table_bytes) override { fronts_.whole.table_bytes = table_bytes; }
  void build_shard(std::span<const std::uint64_t> digests, std::span<std::byte> out,
                   StaticScratch& scratch) const override {
    L::build_shard(fronts_.now, digests, out, scratch);
  }
  std::uint64_t missing(const std::byte* table, std::span<const std::uint64_t> digests) const noexcept override {
    std::array<std::uint64_t, 16> answers;
    std::uint64_t there = 0;
    for (std::size_t from = 0; from < digests.size(); from += answers.size() * kBatch) {
      const auto some = digests.subspan(from, std::min(answers.size() * kBatch, digests.size() - from));
      detail::query_batch<L>(fronts_.now, table + fronts_.at, {.words = some.data(), .count = some.size()},
                             answers.data());
      for (std::size_t i = 0; i * kBatch < some.size(); ++i) there += static_cast<unsigned>(std::popcount(answers[i]));
    }
    return digests.size() - there;
  }

 private:
  RequestOf<typename L::Shape> request_;
  FrontByFront<typename L::Shape> fronts_;
};

// The pipeline over plain words: src/build/pipeline.cc. Virtual, so that the library exports two functions of it only.
class StaticPipeline {
 public:
  class Lane;
  PERHAPS_API static std::unique_ptr<StaticPipeline> make(BuildOptions options);
  explicit StaticPipeline(BuildOptions options);
  virtual ~StaticPipeline();
  StaticPipeline(const StaticPipeline&) = delete;
  StaticPipeline& operator=(const StaticPipeline&) = delete;

  // From any thread; the lane lives as long as the pipeline and serves one thread.
  virtual Lane& add_lane();
  // False once the digests cannot be stored; finish() says why.
  PERHAPS_API static bool add(Lane& lane, const std::uint64_t* digests, std::size_t count);
  // Calls work(lane, from, size) from the options' threads until 0..count is taken.
  virtual void share_out(std::uint64_t count,
                         const std::function<void(Lane&, std::uint64_t from, std::uint64_t size)>& work);
  // The table. Once.
  virtual Result<Memory> finish(StaticFamily& family);
  // How many bytes went to the temporary file so far.
  virtual std::uint64_t spilled_bytes() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

template <StaticLayout L, Hasher H>
class StaticBuilder;

// Owns the table of a static filter, and is a view of it. Moved from, it answers *perhaps* to every key, as a Flat
// does.
template <StaticLayout L, Hasher H>
class StaticFilter : public FlatProbes<L, H> {
  using Base = FlatProbes<L, H>;

 public:
  using View = FlatView<L, H>;  // of these bytes
  using typename Base::digest;
  using typename Base::Shape;
  static constexpr bool owns_bytes = true;  // so a temporary gives no view

  // A filter of `digests`, in any order, repeated or not. `request.keys` is ignored: they are counted. Fails if
  // the operating system has no room for the temporary file, or if a key is missing after all (`verify`).
  // Throws std::bad_alloc.
  static Result<StaticFilter> build(std::span<const digest> digests, const RequestOf<Shape>& request,
                                    BuildOptions options = {}, H hasher = H{}) {
    StaticBuilder<L, H> builder(request, std::move(options), hasher);
    builder.insert(digests);
    return builder.finish();
  }
  // The same from a column of keys.
  template <ColumnKey K>
  static Result<StaticFilter> build(std::span<const K> keys, const RequestOf<Shape>& request, BuildOptions options = {},
                                    H hasher = H{}) {
    StaticBuilder<L, H> builder(request, std::move(options), hasher);
    builder.insert(keys);
    return builder.finish();
  }

  // A copy of what a view sees.
  explicit StaticFilter(View other) : Base(nullptr, other.shape(), other.hasher()), memory_(other.byte_size()) {
    std::memcpy(memory_.data(), other.bytes().data(), other.byte_size());
    this->table_ = memory_.data();
  }
  StaticFilter(const StaticFilter& other) : Base(other), memory_(other.memory_) {
    if (memory_.data() != nullptr) this->table_ = memory_.data();
  }
  StaticFilter(StaticFilter&& other) noexcept : Base(other), memory_(std::move(other.memory_)) {
    const auto every = detail::everything<L>();
    other.shape_ = every.shape;
    other.table_ = every.table;
  }
  StaticFilter& operator=(StaticFilter other) noexcept {
    Base::operator=(other);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~StaticFilter() = default;

  // Valid as long as this filter is, and is not moved from.
  View view() const& noexcept { return *this; }
  View view() const&& = delete;
  Bytes bytes() const& noexcept { return Base::bytes(); }
  Bytes bytes() const&& = delete;

 private:
  friend class StaticBuilder<L, H>;
  StaticFilter(Memory memory, Shape shape, H hasher) noexcept
      : Base(memory.data(), shape, hasher), memory_(std::move(memory)) {}

  Memory memory_;
};

// Takes digests from many threads, then builds.
template <StaticLayout L, Hasher H>
class StaticBuilder {
 public:
  using digest = Digest<H>;  // what lanes take

  // The number of keys in `request` is ignored: they are counted. Throws std::bad_alloc.
  explicit StaticBuilder(const RequestOf<typename L::Shape>& request, BuildOptions options = {}, H hasher = H{})
      : family_(request), hasher_(hasher), pipeline_(detail::StaticPipeline::make(std::move(options))) {}

  H hasher() const noexcept { return hasher_; }

  // The way in for one thread. There is nothing to flush. Both inserts answer false once digests can no
  // longer be stored, so that a long stream may stop; finish() says why. If one throws std::bad_alloc, finish() will.
  class Lane {
   public:
    // REQUIRES: the builder outlives it.
    explicit Lane(StaticBuilder& builder) : lane_(&builder.pipeline_->add_lane()), hasher_(builder.hasher_) {}

    bool insert(std::span<const digest> many) {
      // From here on there are only words: they are what is sorted, and what a layout takes.
      std::array<std::uint64_t, 256> words;
      bool stored = true;
      for (std::size_t from = 0; from < many.size(); from += words.size()) {
        const auto some = many.subspan(from, std::min(words.size(), many.size() - from));
        for (std::size_t i = 0; i < some.size(); ++i) {
          some[i].check(hasher_);
          words[i] = some[i].word();
        }
        stored = detail::StaticPipeline::add(*lane_, words.data(), some.size());
      }
      return stored;
    }
    // Keys instead of digests.
    template <ColumnKey K>
    bool insert(std::span<const K> keys) {
      std::array<digest, 256> digests;
      bool stored = true;
      for (std::size_t from = 0; from < keys.size(); from += digests.size()) {
        const auto some = keys.subspan(from, std::min(digests.size(), keys.size() - from));
        digests_of(hasher_, some, std::span(digests));
        stored = insert(std::span<const digest>(digests.data(), some.size()));
      }
      return stored;
    }

   private:
    friend class StaticBuilder;
    Lane(detail::StaticPipeline::Lane& lane, H hasher) noexcept : lane_(&lane), hasher_(hasher) {}

    detail::StaticPipeline::Lane* lane_;
    [[no_unique_address]] H hasher_;
  };

  // From any thread.
  Lane lane() { return Lane(*this); }

  // All of `many`, digests or keys, with the options' threads.
  template <class T>
  void insert(std::span<const T> many) {
    pipeline_->share_out(many.size(), [&](detail::StaticPipeline::Lane& to, std::uint64_t from, std::uint64_t size) {
      Lane(to, hasher_).insert(many.subspan(from, size));
    });
  }

  // REQUIRES: no lane is at work. Once.
  Result<StaticFilter<L, H>> finish() {
    auto table = pipeline_->finish(family_);
    if (!table) return std::move(table).error();
    return StaticFilter<L, H>(*std::move(table), family_.shape(), hasher_);
  }

  // Digests that went to the temporary file so far, in bytes.
  std::uint64_t spilled_bytes() const noexcept { return pipeline_->spilled_bytes(); }

 private:
  detail::StaticFamilyOf<L> family_;
  H hasher_;
  std::unique_ptr<detail::StaticPipeline> pipeline_;
};

}  // namespace perhaps
