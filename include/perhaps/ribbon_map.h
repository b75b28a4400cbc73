// The ribbon map: key -> a value of 1 to 64 bits, built once, without storing a key. A key of the set gets its value,
// always. Any other key gets an arbitrary value or, with `check_bits`, is found to be absent except at a rate of
// 2^-check_bits.
//
//   auto map = RibbonMap::build(digests, values, {.value_bits = 8}, {.threads = 2});
//   if (const auto value = map->find(digest)) use(*value);
//
// It is the ribbon of ribbon.h with other results. A filter compares the columns of a key with its fingerprint; in a
// map, the columns of a key are the answer:
//
//   column      0 .. check_bits - 1                 check_bits .. check_bits + value_bits - 1
//   of a key    the lowest bits of its fingerprint  its value, lowest bit first
//
// Fronts, layers, the dense part and the way of a key through them are those of a ribbon filter with as many columns
// and wide = 0, and so are the bytes of the table. A table that says `every` is refused: a map cannot answer *perhaps*.
//
// An absent key is also found to be absent if its way leads to a dense part without slots, whatever the check bits: so
// a map of no keys finds nothing, and one whose fronts hold all keys denies the few others that the fronts pass on.
//
// Space: 1.005 (value_bits + check_bits) bits per key at 1e6 keys and eight columns: 0.3 % of the slots are empty, and
// the codes take two bits for 128 keys, which is 0.2 % of eight columns and 1.6 % of one (1.02 bits per key).
//
// A key that is given twice with one value counts once. With two values there is no map, and the error names the
// digest: conflict() has it. The bytes depend on nothing but the set of keys and values: not on threads, memory or
// order.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "perhaps/build_options.h"
#include "perhaps/flat.h"
#include "perhaps/ribbon.h"

namespace perhaps {

// What a map is to hold: values below 2^value_bits, and how often an absent key may be found all the same.
struct MapRequest {
  std::uint32_t value_bits = 8;  // 1 to 64; 0: as many as the largest value needs
  std::uint32_t check_bits = 0;  // 0 to 32: an absent key is found at a rate of 2^-check_bits
};

// The numbers that fix the layout of a map.
struct RibbonMapShape {
  // What a map can have at most.
  static constexpr std::uint32_t kMaxValueBits = 64;
  static constexpr std::uint32_t kMaxCheckBits = 32;
  static constexpr std::uint32_t kMaxColumns = kMaxValueBits + kMaxCheckBits;

  RibbonShape ribbon{.columns = 8};  // of value_bits() + check_bits columns, and wide = 0
  std::uint32_t check_bits = 0;      // the first columns

  // What follows from the numbers, and whether they are in their ranges.
  constexpr std::uint32_t value_bits() const noexcept { return ribbon.columns - check_bits; }
  constexpr std::uint64_t keys() const noexcept { return ribbon.keys; }
  constexpr std::uint64_t bytes() const noexcept { return ribbon.bytes(); }
  constexpr bool valid() const noexcept {
    return check_bits <= kMaxCheckBits && check_bits < ribbon.columns && value_bits() <= kMaxValueBits &&
           ribbon.wide == 0 && ribbon.valid(kMaxColumns);
  }
  friend bool operator==(const RibbonMapShape&, const RibbonMapShape&) = default;

  // Of a map of so many keys, before it is built: by chance the table gets a little larger or smaller.
  PERHAPS_API static RibbonMapShape for_keys(std::uint64_t keys, const MapRequest& request);
  // The rate at which absent keys are found.
  PERHAPS_API double fpr() const noexcept;
  // What a file stores; from() reads it.
  PERHAPS_API std::vector<std::uint64_t> numbers() const;
  PERHAPS_API static Result<RibbonMapShape> from(std::span<const std::uint64_t> numbers);
  // Bits of a value and of a check.
  PERHAPS_API Facts facts() const;
};

// From words, which hashers make of digests (hash.h), to values.
struct RibbonMapLayout {
  using Shape = RibbonMapShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "map";
  // The number in a file.
  static constexpr Kind kind = Kind::map;

  // False: the key is absent.  REQUIRES: shape.valid(), and check() of the table
  PERHAPS_API static bool find(const Shape& shape, const std::byte* table, std::uint64_t h,
                               std::uint64_t* value) noexcept;
  // Bit i % 64 of found[i / 64] and values[i] belong to key i; a key that is absent gets the value 0.
  PERHAPS_API static void find(const Shape& shape, const std::byte* table, const Batch<>& batch, std::uint64_t* values,
                               std::uint64_t* found) noexcept;
  static void prefetch(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    RibbonLayout::prefetch(shape.ribbon, table, h);
  }
  // Whatever the bytes say, a lookup in a table that passes stays inside it.
  PERHAPS_API static Result<void> check(const Shape& shape, Bytes table);
  // All bits of a value, as a mask.
  static constexpr std::uint64_t largest(std::uint32_t value_bits) noexcept {
    return value_bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << value_bits) - 1;
  }
};

namespace detail {

// Builds a map from words and values; behind the builders of every hasher.
class MapPipeline {
 public:
  class Lane;
  // `unspread` turns a word into the digest that an error names.
  PERHAPS_API static std::unique_ptr<MapPipeline> make(const MapRequest& request, BuildOptions options,
                                                       std::uint64_t unspread);
  MapPipeline() = default;
  virtual ~MapPipeline() = default;
  MapPipeline(const MapPipeline&) = delete;
  MapPipeline& operator=(const MapPipeline&) = delete;

  // From any thread; the lane lives as long as the pipeline and serves one thread.
  virtual Lane& add_lane() = 0;
  // False once entries cannot be stored; finish() says why.
  PERHAPS_API static bool add(Lane& lane, const std::uint64_t* words, const std::uint64_t* values, std::size_t count);
  // Calls work(lane, from, size) from the options' threads until 0..count is taken.
  virtual void share_out(std::uint64_t count,
                         const std::function<void(Lane&, std::uint64_t from, std::uint64_t size)>& work) = 0;
  // The table, and its shape. Once.
  virtual Result<Memory> finish(RibbonMapShape* shape) = 0;
  // A word that was given with two values, once finish() has failed because of it.
  virtual std::optional<std::uint64_t> conflict() const noexcept = 0;
  virtual std::uint64_t spilled_bytes() const noexcept = 0;
};

}  // namespace detail

// What every form of a map can answer.
template <Hasher H>
class RibbonMapProbes {
 public:
  // Whose bits these are, and what keys are hashed with.
  using layout = RibbonMapLayout;
  using hasher_type = H;
  using digest = Digest<H>;
  using Shape = RibbonMapShape;

  H hasher() const noexcept { return hasher_; }
  Shape shape() const noexcept { return shape_; }
  Bytes bytes() const noexcept { return {table_, static_cast<std::size_t>(shape_.bytes())}; }
  std::uint64_t byte_size() const noexcept { return shape_.bytes(); }
  std::uint64_t keys() const noexcept { return shape_.keys(); }
  void prefetch(digest d) const noexcept { RibbonMapLayout::prefetch(shape_, table_, d.word()); }

  // Nothing if the key is not in the map. Without check bits that is rare (see above).
  std::optional<std::uint64_t> find(digest d) const noexcept {
    d.check(hasher_);
    std::uint64_t value = 0;
    if (!RibbonMapLayout::find(shape_, table_, d.word(), &value)) return std::nullopt;
    return value;
  }
  template <Key K>
  std::optional<std::uint64_t> find(const K& key) const noexcept {
    return find(digest_of(hasher_, key));
  }
  // A column: values[i], and bit i % 64 of found[i / 64], belong to digests[i]. An absent key gets the value 0, and the
  // unused bits of the last word become 0. Prefetches ahead: the fastest way to look up many keys.
  // REQUIRES: values.size() >= digests.size() and found.size() * kBatch >= digests.size()
  void find(std::span<const digest> digests, std::span<std::uint64_t> values,
            std::span<std::uint64_t> found) const noexcept {
    assert(values.size() >= digests.size() && found.size() * kBatch >= digests.size());
    const bool ahead = detail::far_away(byte_size());
    if constexpr (sizeof(digest) == sizeof(std::uint64_t)) {
      const auto* const words = reinterpret_cast<const std::uint64_t*>(digests.data());
      find_words({.words = words, .count = digests.size(), .ahead = ahead, .spread = detail::spread_of<H>()},
                 values.data(), found.data());
    } else {
      std::array<std::uint64_t, kBatch> words;
      for (std::size_t from = 0; from < digests.size(); from += kBatch) {
        const std::size_t count = std::min(kBatch, digests.size() - from);
        for (std::size_t i = 0; i < count; ++i) {
          digests[from + i].check(hasher_);
          words[i] = digests[from + i].word();
        }
        find_words({.words = words.data(), .count = count, .ahead = ahead}, values.data() + from,
                   found.data() + from / kBatch);
      }
    }
  }
  // Keys instead of digests.
  template <ColumnKey K>
  void find(std::span<K> keys, std::span<std::uint64_t> values, std::span<std::uint64_t> found) const noexcept {
    assert(values.size() >= keys.size() && found.size() * kBatch >= keys.size());
    std::array<digest, 4 * kBatch> digests;
    for (std::size_t from = 0; from < keys.size(); from += digests.size()) {
      const std::size_t count = std::min(digests.size(), keys.size() - from);
      digests_of(hasher_, std::span<const std::remove_const_t<K>>(keys).subspan(from, count), std::span(digests));
      find(std::span<const digest>(digests.data(), count), values.subspan(from), found.subspan(from / kBatch));
    }
  }

 protected:
  RibbonMapProbes(const std::byte* table, Shape shape, H hasher) noexcept
      : table_(table), shape_(shape), hasher_(hasher) {}

  void find_words(const detail::Batch<>& batch, std::uint64_t* values, std::uint64_t* found) const noexcept {
    RibbonMapLayout::find(shape_, table_, batch, values, found);
  }

  const std::byte* table_;
  Shape shape_;
  [[no_unique_address]] H hasher_;

  RibbonMapProbes(const RibbonMapProbes&) = default;
  RibbonMapProbes& operator=(const RibbonMapProbes&) = default;
  ~RibbonMapProbes() = default;
};

// Borrows the bytes of a map. Trivially copyable; valid for as long as the bytes are.
template <Hasher H>
class BasicRibbonMapView : public RibbonMapProbes<H> {
  using Base = RibbonMapProbes<H>;

 public:
  using typename Base::Shape;

  // The one way to get a view over bytes, so a view that exists can be queried. Reads sizes and heads, not every byte.
  static Result<BasicRibbonMapView> over(Bytes table, Shape shape, H hasher = H{}) {
    if (auto ok = RibbonMapLayout::check(shape, table); !ok) return std::move(ok).error();
    return BasicRibbonMapView(table.data(), shape, hasher);
  }
  // Of an owner, whose bytes must outlive it.
  BasicRibbonMapView(const Base& other) noexcept : Base(other) {}
  // An owner that is about to be destroyed has no bytes to lend.
  template <class Owner>
  requires(std::derived_from<Owner, Base>&& Owner::owns_bytes) BasicRibbonMapView(const Owner&&)
  = delete;

 private:
  BasicRibbonMapView(const std::byte* table, Shape shape, H hasher) noexcept : Base(table, shape, hasher) {}
};

template <Hasher H>
class BasicRibbonMapBuilder;

// Owns a map. Moved from, it is a map of no keys, which finds nothing.
template <Hasher H>
class BasicRibbonMap : public RibbonMapProbes<H> {
  using Base = RibbonMapProbes<H>;

 public:
  using View = BasicRibbonMapView<H>;        // of these bytes
  using Builder = BasicRibbonMapBuilder<H>;  // from a stream
  using typename Base::digest;
  using typename Base::Shape;
  static constexpr bool owns_bytes = true;  // so a temporary gives no view

  // A map from digests[i] to values[i], in any order. Fails if a digest has two values, a value has more than
  // `value_bits` bits, the request is out of range, or the operating system has no room for the temporary file.
  // Throws std::bad_alloc.  REQUIRES: as many values as digests
  static Result<BasicRibbonMap> build(std::span<const digest> digests, std::span<const std::uint64_t> values,
                                      const MapRequest& request, BuildOptions options = {}, H hasher = H{}) {
    Builder builder(request, std::move(options), hasher);
    builder.insert(digests, values);
    return builder.finish();
  }
  // The same from a column of keys.
  template <ColumnKey K>
  static Result<BasicRibbonMap> build(std::span<const K> keys, std::span<const std::uint64_t> values,
                                      const MapRequest& request, BuildOptions options = {}, H hasher = H{}) {
    Builder builder(request, std::move(options), hasher);
    builder.insert(keys, values);
    return builder.finish();
  }

  // A copy of what a view sees.
  explicit BasicRibbonMap(View other) : Base(nullptr, other.shape(), other.hasher()), memory_(other.byte_size()) {
    std::memcpy(memory_.data(), other.bytes().data(), other.byte_size());
    this->table_ = memory_.data();
  }
  BasicRibbonMap(const BasicRibbonMap& other) : Base(other), memory_(other.memory_) {
    if (memory_.data() != nullptr) this->table_ = memory_.data();
  }
  BasicRibbonMap(BasicRibbonMap&& other) noexcept : Base(other), memory_(std::move(other.memory_)) {
    other.shape_ = nothing();
    other.table_ = kNothing.data();
  }
  BasicRibbonMap& operator=(BasicRibbonMap other) noexcept {
    Base::operator=(other);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~BasicRibbonMap() = default;

  // Valid as long as this map is, and is not moved from.
  View view() const& noexcept { return *this; }
  View view() const&& = delete;
  Bytes bytes() const& noexcept { return Base::bytes(); }
  Bytes bytes() const&& = delete;

 private:
  friend class BasicRibbonMapBuilder<H>;
  BasicRibbonMap(Memory memory, Shape shape, H hasher) noexcept
      : Base(memory.data(), shape, hasher), memory_(std::move(memory)) {}

  // A map of no keys: a directory, and an empty dense part.
  static constexpr std::array<std::byte, 24> kNothing = {std::byte{16}, {}, {}, {}, {}, {}, {}, {}, std::byte{24}};
  static constexpr Shape nothing() noexcept {
    Shape shape;
    shape.ribbon.table_bytes = kNothing.size();
    return shape;
  }

  Memory memory_;
};

// Takes digests and their values from many threads, then builds.
template <Hasher H>
class BasicRibbonMapBuilder {
 public:
  using digest = Digest<H>;  // what lanes take

  // Throws std::bad_alloc.
  explicit BasicRibbonMapBuilder(const MapRequest& request, BuildOptions options = {}, H hasher = H{})
      : hasher_(hasher), pipeline_(detail::MapPipeline::make(request, std::move(options), detail::unspread_of<H>())) {}

  H hasher() const noexcept { return hasher_; }

  // The way in for one thread. Nothing to flush. Inserts answer false once entries can no longer be stored; finish()
  // says why. If one throws std::bad_alloc, finish() will.
  class Lane {
   public:
    // REQUIRES: the builder outlives it.
    explicit Lane(BasicRibbonMapBuilder& builder) : lane_(&builder.pipeline_->add_lane()), hasher_(builder.hasher_) {}

    // REQUIRES: as many values as digests
    bool insert(std::span<const digest> digests, std::span<const std::uint64_t> values) {
      assert(values.size() == digests.size());
      std::array<std::uint64_t, 256> words;
      bool stored = true;
      for (std::size_t from = 0; from < digests.size(); from += words.size()) {
        const auto some = digests.subspan(from, std::min(words.size(), digests.size() - from));
        for (std::size_t i = 0; i < some.size(); ++i) {
          some[i].check(hasher_);
          words[i] = some[i].word();
        }
        stored = detail::MapPipeline::add(*lane_, words.data(), values.data() + from, some.size());
      }
      return stored;
    }
    // Keys instead of digests.
    template <ColumnKey K>
    bool insert(std::span<const K> keys, std::span<const std::uint64_t> values) {
      std::array<digest, 256> digests;
      bool stored = true;
      for (std::size_t from = 0; from < keys.size(); from += digests.size()) {
        const auto some = keys.subspan(from, std::min(digests.size(), keys.size() - from));
        digests_of(hasher_, some, std::span(digests));
        stored = insert(std::span<const digest>(digests.data(), some.size()), values.subspan(from, some.size()));
      }
      return stored;
    }

   private:
    friend class BasicRibbonMapBuilder;
    Lane(detail::MapPipeline::Lane& lane, H hasher) noexcept : lane_(&lane), hasher_(hasher) {}

    detail::MapPipeline::Lane* lane_;
    [[no_unique_address]] H hasher_;
  };

  // From any thread.
  Lane lane() { return Lane(*this); }

  // All of `many`, digests or keys, with the options' threads.
  template <class T>
  void insert(std::span<const T> many, std::span<const std::uint64_t> values) {
    assert(values.size() == many.size());
    pipeline_->share_out(many.size(), [&](detail::MapPipeline::Lane& to, std::uint64_t from, std::uint64_t size) {
      Lane(to, hasher_).insert(many.subspan(from, size), values.subspan(from, size));
    });
  }

  // REQUIRES: no lane is at work. Once.
  Result<BasicRibbonMap<H>> finish() {
    RibbonMapShape shape;
    auto table = pipeline_->finish(&shape);
    if (!table) return std::move(table).error();
    return BasicRibbonMap<H>(*std::move(table), shape, hasher_);
  }
  // A digest that was given with two values, once finish() has failed because of it: the smallest by its word.
  std::optional<digest> conflict() const noexcept {
    const auto word = pipeline_->conflict();
    if (!word) return std::nullopt;
    return digest::made_by(hasher_, *word * detail::unspread_of<H>());
  }

  // What went to the temporary file so far, in bytes.
  std::uint64_t spilled_bytes() const noexcept { return pipeline_->spilled_bytes(); }

 private:
  H hasher_;
  std::unique_ptr<detail::MapPipeline> pipeline_;
};

using RibbonMap = BasicRibbonMap<Hash>;
using RibbonMapView = BasicRibbonMapView<Hash>;
using RibbonMapBuilder = BasicRibbonMapBuilder<Hash>;

}  // namespace perhaps
