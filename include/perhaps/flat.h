// View, Span, Shared and owner of a filter that is one run of bytes: written once, for every family.
//
// A family is a Layout: a Shape (sizing.h) and a handful of static functions from (shape, table, digest) to bits. The
// header of the family explains the structure and holds those functions; everything below is the same for all.
#pragma once
#include <array>
#include <cassert>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "perhaps/detail/isa.h"
#include "perhaps/detail/kernels.h"
#include "perhaps/filter.h"
#include "perhaps/memory.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

// What can be asked.
// REQUIRES of every function: shape.valid(), and `table` points to shape.bytes() bytes, with no alignment.
template <class L>
concept Layout = requires(typename L::Shape shape, const std::byte* table, typename L::word digest,
                          const typename L::word* digests, std::size_t count, std::uint64_t* answers, bool ahead) {
  { L::family } -> std::convertible_to<std::string_view>;
  { L::template may_contain<detail::isa::Here>(shape, table, digest) }
  noexcept->std::same_as<bool>;
  { L::prefetch(shape, table, digest) }
  noexcept;
  { L::query(shape, table, digests, count, answers, ahead) }
  noexcept;
};
// Tables with numbers inside that could lead a probe astray have a `Result<void> check(shape, bytes)`, which every view
// is made through.
template <class L>
concept CheckedLayout = Layout<L> && requires(typename L::Shape shape, Bytes table) {
  { L::check(shape, table) } -> std::same_as<Result<void>>;
};
// What takes keys. The empty table is all zeros, unless there is a `format(shape, table)` that makes it of zeros.
template <class L>
concept MutableLayout = Layout<L> && requires(typename L::Shape shape, std::byte* table, typename L::word digest,
                                              const typename L::word* digests, std::size_t count, bool ahead) {
  { L::insert(shape, table, digest) }
  noexcept->std::same_as<Inserted>;
  { L::insert_many(shape, table, digests, count, ahead) }  // void, or how many went in before it was full
  noexcept;
};
template <class L>
concept FormattedLayout = MutableLayout<L> && requires(typename L::Shape shape, std::byte* table) {
  L::format(shape, table);
};
// Insert may answer `full`.
template <class L>
concept FillingLayout = MutableLayout<L> && requires {
  requires L::fills_up;
};
// Insert only ever sets bits: tables can be ORed and ANDed, and many threads can fill one.
template <class L>
concept BitLayout = MutableLayout<L> && !FillingLayout<L> &&
                    requires(typename L::Shape shape, std::byte* table, typename L::word digest) {
  { L::insert_shared(shape, table, digest) }
  noexcept->std::same_as<Inserted>;
  { L::may_contain_shared(shape, table, digest) }
  noexcept->std::same_as<bool>;
};
template <class L>
concept ErasableLayout = MutableLayout<L> &&
    requires(typename L::Shape shape, std::byte* table, typename L::word digest) {
  { L::erase(shape, table, digest) }
  noexcept->std::same_as<Erased>;
  { L::needs_rebuild(shape, table) }
  noexcept->std::same_as<bool>;
};
// Knows how many keys are in.
template <class L>
concept CountedLayout = Layout<L> && requires(typename L::Shape shape, const std::byte* table) {
  { L::keys(shape, table) }
  noexcept->std::same_as<std::uint64_t>;
};

// What the bits themselves say, by one pass over them: condition_of(shape, table) of each family.
//   fill     share of bits that are set
//   fpr      the rate for keys that were never inserted, exactly, of *these* bits: the model's average is not needed
//   keys     estimate of the distinct keys, from the fill
struct Condition {
  double fill = 0;
  double fpr = 0;
  double keys = 0;
};

template <MutableLayout L, Hasher H>
class Flat;

// What every form of a flat filter can answer. Only the forms below derive from it, and none can be assigned through
// it.
template <Layout L, Hasher H>
class FlatProbes {
 public:
  using layout = L;
  using hasher_type = H;
  using digest = Digest<H>;
  using Shape = typename L::Shape;
  static_assert(std::same_as<typename H::word, typename L::word>);

  H hasher() const noexcept { return hasher_; }
  Shape shape() const noexcept { return shape_; }
  Bytes bytes() const noexcept { return {table_, shape_.bytes()}; }
  std::uint64_t byte_size() const noexcept { return shape_.bytes(); }

  template <class Isa = detail::isa::Here>
  [[gnu::always_inline]] bool may_contain(digest d) const noexcept {
    d.check(hasher_);
    return L::template may_contain<Isa>(shape_, table_, d.value);
  }
  // REQUIRES: batch.size() <= kBatch
  std::uint64_t may_contain(std::span<const digest> batch) const noexcept {
    assert(batch.size() <= kBatch);
    std::uint64_t answers = 0;
    query(batch, &answers, detail::far_away(byte_size()));
    return answers;
  }
  // REQUIRES: answers.size() * kBatch >= digests.size()
  void may_contain(std::span<const digest> digests, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= digests.size());
    query(digests, answers.data(), detail::far_away(byte_size()));
  }
  void prefetch(digest d) const noexcept { L::prefetch(shape_, table_, d.value); }
  std::uint64_t keys() const noexcept requires CountedLayout<L> { return L::keys(shape_, table_); }
  bool needs_rebuild() const noexcept requires ErasableLayout<L> { return L::needs_rebuild(shape_, table_); }

  // Keys instead of digests: the filter's own hasher hashes them. Text, bytes or integers (hash.h).
  template <Key K, class Isa = detail::isa::Here>
  [[gnu::always_inline]] bool may_contain(const K& key) const noexcept {
    return may_contain<Isa>(digest_of(hasher_, key));
  }
  // A column of keys. The next 64 keys are hashed and their memory asked for while the last 64 are being probed.
  // REQUIRES: answers.size() * kBatch >= keys.size()
  template <ColumnKey K>
  void may_contain(std::span<K> keys, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= keys.size());
    if constexpr (kFusesIntegers<K>) {
      const bool ahead = detail::far_away(byte_size());
      return L::query_integers(shape_, table_, words_of<K>(keys), hasher_, keys.size(), answers.data(), ahead);
    }
    std::uint64_t* out = answers.data();
    in_batches<K>(keys, [&](std::span<const digest> batch) { query(batch, out++, false); });
  }

 protected:
  FlatProbes(const std::byte* table, Shape shape, H hasher) noexcept : table_(table), shape_(shape), hasher_(hasher) {}

  static bool fits(Bytes table, Shape shape) noexcept {
    if (!shape.valid() || table.size() < shape.bytes()) return false;
    if constexpr (CheckedLayout<L>) return bool(L::check(shape, table.first(shape.bytes())));
    return true;
  }
  // Apart from the check, which engines make on every lookup.
  static Error refusal(Bytes table, Shape shape) {
    const std::string family(L::family);
    if (!shape.valid()) return Error{Errc::bad_parameter, family + ": a shape outside its range"};
    if (table.size() < shape.bytes()) {
      return Error{Errc::truncated, family + ": the shape needs " + std::to_string(shape.bytes()) +
                                        " bytes, there are " + std::to_string(table.size())};
    }
    if constexpr (CheckedLayout<L>) return L::check(shape, table.first(shape.bytes())).error();
    __builtin_unreachable();
  }

  // A column of 64-bit integers under the default hash is hashed inside the kernel, where the layout has one for it.
  template <class K>
  static constexpr bool kFusesIntegers =
      std::same_as<H, Hash>&& detail::IntegerWord<std::remove_const_t<K>>&& requires {
    &L::query_integers;
  };
  template <class K>
  static const std::uint64_t* words_of(std::span<const K> keys) noexcept {
    return reinterpret_cast<const std::uint64_t*>(keys.data());  // signed and unsigned of one type may alias
  }

  // Hands the digests of `keys` to `use` in batches of at most kBatch, each prefetched one batch ahead if the table is
  // far away.
  template <class K, class Use>
  void in_batches(std::span<const K> keys, Use use) const noexcept {
    constexpr std::size_t kFew = 8;
    const bool ahead = detail::far_away(byte_size());
    std::array<digest, kBatch> ring[2];
    const auto fill = [&](std::size_t from, std::array<digest, kBatch>& digests) {
      const auto batch = keys.subspan(from, std::min(kBatch, keys.size() - from));
      // A few at a time: a burst of 64 prefetches finds the memory system full (1.5 times the time for text at 1e7
      // keys).
      for (std::size_t i = 0; i < batch.size(); i += kFew) {
        const auto few = batch.subspan(i, std::min(kFew, batch.size() - i));
        digests_of(hasher_, few, std::span(digests).subspan(i, few.size()));
        for (std::size_t j = 0; ahead && j < few.size(); ++j) prefetch(digests[i + j]);
      }
      return batch.size();
    };
    if (keys.empty()) return;
    std::size_t from = 0;
    std::size_t size = fill(0, ring[0]);
    for (bool turn = false; size != 0; turn = !turn) {
      from += size;
      const std::size_t next = from < keys.size() ? fill(from, ring[!turn]) : 0;
      use(std::span<const digest>(ring[turn].data(), size));
      size = next;
    }
  }

  // The digests as the plain words that layouts take.
  template <class Use>
  static void in_words(std::span<const digest> digests, Use use) noexcept {
    if constexpr (sizeof(digest) == sizeof(typename L::word)) {
      use(reinterpret_cast<const typename L::word*>(digests.data()), digests.size());
    } else {
      std::array<typename L::word, kBatch> words;
      for (std::size_t from = 0; from < digests.size(); from += kBatch) {
        const std::size_t count = std::min(kBatch, digests.size() - from);
        for (std::size_t i = 0; i < count; ++i) words[i] = digests[from + i].value;
        use(words.data(), count);
      }
    }
  }

  void query(std::span<const digest> digests, std::uint64_t* answers, bool ahead) const noexcept {
    check_all(digests);
    in_words(digests, [&](const typename L::word* words, std::size_t count) {
      L::query(shape_, table_, words, count, answers, ahead);
      answers += count / kBatch;
    });
  }

  void check_all([[maybe_unused]] std::span<const digest> digests) const noexcept {
#if PERHAPS_CHECK_DIGESTS
    for (const digest& d : digests) d.check(hasher_);
#endif
  }

  const std::byte* table_;
  Shape shape_;
  [[no_unique_address]] H hasher_;

  FlatProbes(const FlatProbes&) = default;
  FlatProbes& operator=(const FlatProbes&) = default;
  ~FlatProbes() = default;
};

// Borrows const bytes. Trivially copyable; valid for as long as the bytes are.
template <Layout L, Hasher H>
class FlatView : public FlatProbes<L, H> {
  using Base = FlatProbes<L, H>;

 public:
  using typename Base::Shape;

  // The one way to get a view, so a view that exists can be probed. Looks at sizes and, where the table has one, at
  // its head; never at every byte.
  static Result<FlatView> over(Bytes table, Shape shape, H hasher = H{}) {
    if (!Base::fits(table, shape)) return Base::refusal(table, shape);
    return FlatView(table.data(), shape, hasher);
  }

  // Of an owner or a span, which must outlive it.
  FlatView(const Base& other) noexcept : Base(other) {}

 private:
  FlatView(const std::byte* table, Shape shape, H hasher) noexcept : Base(table, shape, hasher) {}
};

// Borrows writable bytes: memory of a host, a chunk that was loaded, a mapped file being filled. One writer, and no
// reader beside it (see FlatShared).
template <MutableLayout L, Hasher H>
class FlatSpan : public FlatProbes<L, H> {
  using Base = FlatProbes<L, H>;

 public:
  using typename Base::digest;
  using typename Base::Shape;

  // Bits that are set stay set: zero the bytes for an empty filter.
  static Result<FlatSpan> over(std::span<std::byte> table, Shape shape, H hasher = H{}) {
    if (!Base::fits(table, shape)) return Base::refusal(table, shape);
    return FlatSpan(table.data(), shape, hasher);
  }

  // `present`: the key looked present before.
  Inserted insert(digest d) noexcept {
    d.check(this->hasher_);
    return L::insert(this->shape_, table(), d.value);
  }
  void insert(std::span<const digest> many) noexcept requires(!FillingLayout<L>) {
    insert(many, detail::far_away(this->byte_size()));
  }
  // How many of them went in; fewer than many.size() if it is full.
  [[nodiscard]] std::size_t insert(std::span<const digest> many) noexcept requires FillingLayout<L> {
    return insert(many, detail::far_away(this->byte_size()));
  }

  template <Key K>
  Inserted insert(const K& key) noexcept {
    return insert(digest_of(this->hasher_, key));
  }
  template <ColumnKey K>
  void insert(std::span<K> keys) noexcept requires(!FillingLayout<L>) {
    if constexpr (Base::template kFusesIntegers<K>) {
      const bool ahead = detail::far_away(this->byte_size());
      const std::uint64_t* words = this->template words_of<K>(keys);
      return L::insert_integers(this->shape_, table(), words, this->hasher_, keys.size(), ahead);
    }
    this->template in_batches<K>(keys, [&](std::span<const digest> batch) { insert(batch, false); });
  }
  template <ColumnKey K>
  [[nodiscard]] std::size_t insert(std::span<K> keys) noexcept requires FillingLayout<L> {
    std::size_t inserted = 0;
    bool full = false;
    this->template in_batches<K>(keys, [&](std::span<const digest> batch) {
      if (full) return;
      const std::size_t count = insert(batch, false);
      inserted += count;
      full = count < batch.size();
    });
    return inserted;
  }

  Erased erase(digest d) noexcept requires ErasableLayout<L> {
    d.check(this->hasher_);
    return L::erase(this->shape_, table(), d.value);
  }
  template <Key K>
  Erased erase(const K& key) noexcept requires ErasableLayout<L> {
    return erase(digest_of(this->hasher_, key));
  }

  std::span<std::byte> writable_bytes() noexcept { return {table(), this->shape_.bytes()}; }

 private:
  friend class Flat<L, H>;
  FlatSpan(std::byte* table, Shape shape, H hasher) noexcept : Base(table, shape, hasher) {}

  // The base holds a pointer to const; this class was given writable bytes and nobody else can make one.
  std::byte* table() noexcept { return const_cast<std::byte*>(this->table_); }

  std::size_t insert(std::span<const digest> many, bool ahead) noexcept {
    this->check_all(many);
    std::size_t inserted = 0;
    bool full = false;
    this->in_words(many, [&](const typename L::word* words, std::size_t count) {
      if constexpr (FillingLayout<L>) {
        if (full) return;
        const std::size_t went_in = L::insert_many(this->shape_, table(), words, count, ahead);
        inserted += went_in;
        full = went_in < count;
      } else {
        L::insert_many(this->shape_, table(), words, count, ahead);
        inserted += count;
      }
    });
    return inserted;
  }
};

// Insert and query from many threads at once, without a lock. A key whose insert happened before the query answers
// *perhaps*; every bit is set with a relaxed atomic OR, and a word that has its bits already is not written.
template <BitLayout L, Hasher H>
class FlatShared {
 public:
  using layout = L;
  using hasher_type = H;
  using digest = Digest<H>;
  using Shape = typename L::Shape;

  // REQUIRES, beyond a span's: the table is aligned to 8 bytes and its size is a multiple of 8 (`shape` may be
  // smaller).
  static Result<FlatShared> over(std::span<std::byte> table, Shape shape, H hasher = H{}) {
    if (auto ok = FlatView<L, H>::over(table, shape, hasher); !ok) return std::move(ok).error();
    if (reinterpret_cast<std::uintptr_t>(table.data()) % 8 != 0 || table.size() % 8 != 0) {
      return Error{Errc::bad_parameter, std::string(L::family) + ": shared access needs whole, aligned 8-byte words"};
    }
    return FlatShared(table.data(), shape, hasher);
  }

  H hasher() const noexcept { return hasher_; }
  Shape shape() const noexcept { return shape_; }
  std::uint64_t byte_size() const noexcept { return shape_.bytes(); }

  bool may_contain(digest d) const noexcept {
    d.check(hasher_);
    return L::may_contain_shared(shape_, table_, d.value);
  }
  Inserted insert(digest d) const noexcept {
    d.check(hasher_);
    return L::insert_shared(shape_, table_, d.value);
  }
  void insert(std::span<const digest> many) const noexcept {
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < std::min(kAhead, many.size()); ++i) prefetch(many[i]);
    for (std::size_t i = 0; i < many.size(); ++i) {
      if (i + kAhead < many.size()) prefetch(many[i + kAhead]);
      insert(many[i]);
    }
  }
  void prefetch(digest d) const noexcept { L::prefetch(shape_, table_, d.value); }

  template <Key K>
  bool may_contain(const K& key) const noexcept {
    return may_contain(digest_of(hasher_, key));
  }
  template <Key K>
  Inserted insert(const K& key) const noexcept {
    return insert(digest_of(hasher_, key));
  }

 private:
  friend class Flat<L, H>;
  FlatShared(std::byte* table, Shape shape, H hasher) noexcept : table_(table), shape_(shape), hasher_(hasher) {}

  std::byte* table_;
  Shape shape_;
  [[no_unique_address]] H hasher_;
};

namespace detail {
template <class L, class H>
struct SharedOf {
  struct type {};
};
template <BitLayout L, class H>
struct SharedOf<L, H> {
  using type = FlatShared<L, H>;
};
}  // namespace detail

// Owns its memory, and is a view of it: whatever it can answer, its view answers.
template <MutableLayout L, Hasher H>
class Flat : public FlatProbes<L, H> {
  using Base = FlatProbes<L, H>;

 public:
  using View = FlatView<L, H>;
  using Span = FlatSpan<L, H>;
  using Shared = typename detail::SharedOf<L, H>::type;
  using typename Base::digest;
  using typename Base::Shape;

  // Sized for `request.keys` keys.  Throws std::bad_alloc, as does everything here that copies.
  explicit Flat(const Request& request, H with = H{}) : Flat(Shape::for_keys(request), with) {}
  // REQUIRES: size.valid()
  explicit Flat(Shape size, H with = H{}) : Base(nullptr, size, with), memory_(whole_words(size)) {
    assert(size.valid());
    this->table_ = memory_.data();
    format();
  }
  // A copy of what a view sees.
  explicit Flat(View other) : Flat(other.shape(), other.hasher()) {
    std::memcpy(memory_.data(), other.bytes().data(), other.bytes().size());
  }
  Flat(const Flat& other) : Base(other), memory_(other.memory_) { this->table_ = memory_.data(); }
  Flat(Flat&& other) noexcept : Base(other), memory_(std::move(other.memory_)) { other.table_ = nullptr; }
  Flat& operator=(Flat other) noexcept {
    Base::operator=(other);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~Flat() = default;

  View view() const noexcept { return *this; }
  Span span() noexcept { return Span(memory_.data(), this->shape_, this->hasher_); }
  Shared shared() noexcept requires BitLayout<L> { return Shared(memory_.data(), this->shape_, this->hasher_); }

  // As a span's.
  Inserted insert(digest d) noexcept { return span().insert(d); }
  void insert(std::span<const digest> many) noexcept requires(!FillingLayout<L>) { span().insert(many); }
  [[nodiscard]] std::size_t insert(std::span<const digest> many) noexcept requires FillingLayout<L> {
    return span().insert(many);
  }
  template <Key K>
  Inserted insert(const K& key) noexcept {
    return span().insert(key);
  }
  template <ColumnKey K>
  void insert(std::span<K> keys) noexcept requires(!FillingLayout<L>) {
    span().insert(keys);
  }
  template <ColumnKey K>
  [[nodiscard]] std::size_t insert(std::span<K> keys) noexcept requires FillingLayout<L> {
    return span().insert(keys);
  }
  Erased erase(digest d) noexcept requires ErasableLayout<L> { return span().erase(d); }
  template <Key K>
  Erased erase(const K& key) noexcept requires ErasableLayout<L> {
    return span().erase(key);
  }

  std::span<std::byte> writable_bytes() noexcept { return {memory_.data(), this->shape_.bytes()}; }
  void clear() noexcept {
    std::memset(memory_.data(), 0, memory_.size());
    format();
  }

 private:
  void format() noexcept {
    if constexpr (FormattedLayout<L>) L::format(this->shape_, memory_.data());
  }
  // Whole 8-byte words, for shared access.
  static std::uint64_t whole_words(Shape size) noexcept { return (size.bytes() + 7) / 8 * 8; }

  Memory memory_;
};

}  // namespace perhaps
