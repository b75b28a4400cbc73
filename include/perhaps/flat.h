// View, Span, Shared and owner of a filter that is one run of bytes: written once, for every family.
//
// A family is a Layout (layout.h); everything below is the same for all.
#pragma once
#include <array>
#include <cassert>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "perhaps/detail/batch.h"
#include "perhaps/layout.h"
#include "perhaps/memory.h"
#include "perhaps/result.h"

namespace perhaps {

// For layouts made of other layouts: a batch of digests, and how it is queried and inserted (detail/batch.h).
template <class Word = std::uint64_t>
using Batch = detail::Batch<Word>;
using detail::insert_batch;
using detail::query_batch;

template <MutableLayout L, Hasher H>
class Flat;

// What every form of a flat filter can answer. Only the forms below derive from it, and none can be assigned through
// it.
template <Layout L, Hasher H>
class FlatProbes {
 public:
  // Whose bits these are, and what keys are hashed with.
  using layout = L;
  using hasher_type = H;
  using digest = Digest<H>;
  using Shape = typename L::Shape;
  static_assert(std::same_as<typename H::word, typename L::word>);

  H hasher() const noexcept { return hasher_; }
  Shape shape() const noexcept { return shape_; }
  Bytes bytes() const noexcept { return {table_, static_cast<std::size_t>(shape_.bytes())}; }
  std::uint64_t byte_size() const noexcept { return shape_.bytes(); }

  template <class Isa = detail::isa::Here>
  [[gnu::always_inline]] bool may_contain(digest d) const noexcept {
    d.check(hasher_);
    return L::template may_contain<Isa>(shape_, table_, d.word());
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
  void prefetch(digest d) const noexcept { L::prefetch(shape_, table_, d.word()); }
  std::uint64_t keys() const noexcept requires CountedLayout<L> { return L::keys(shape_, table_); }
  bool needs_rebuild() const noexcept requires ErasableLayout<L> { return L::needs_rebuild(shape_, table_); }

  // Keys instead of digests: the filter's own hasher hashes them. Text, bytes or integers (hash.h).
  template <Key K, class Isa = detail::isa::Here>
  [[gnu::always_inline]] bool may_contain(const K& key) const noexcept {
    return may_contain<Isa>(digest_of(hasher_, key));
  }
  // A column of keys. The next 64 keys are hashed and prefetched while the last 64 are being probed.
  // REQUIRES: answers.size() * kBatch >= keys.size()
  template <ColumnKey K>
  void may_contain(std::span<K> keys, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= keys.size());
    if constexpr (kFusesIntegers<K>) {
      return detail::query_batch<L>(shape_, table_, integers<K>(keys), answers.data());
    }
    std::uint64_t* out = answers.data();
    in_batches<K>(keys, [&](std::span<const digest> batch) { query(batch, out++, false); });
  }

 protected:
  FlatProbes(const std::byte* table, Shape shape, H hasher) noexcept : table_(table), shape_(shape), hasher_(hasher) {}

  static bool fits(Bytes table, Shape shape) {
    if (!shape.valid() || table.size() < shape.bytes()) return false;
    if constexpr (CheckedLayout<L>) return bool(L::check(shape, table.first(static_cast<std::size_t>(shape.bytes()))));
    return true;
  }
  // Kept out of the check, which engines make on every lookup.
  static Error refusal(Bytes table, Shape shape) {
    const std::string family(L::family);
    if (!shape.valid()) return Error{Errc::bad_parameter, family + ": a shape outside its range"};
    if (table.size() < shape.bytes()) {
      return Error{Errc::truncated, family + ": the shape needs " + std::to_string(shape.bytes()) +
                                        " bytes, there are " + std::to_string(table.size())};
    }
    if constexpr (CheckedLayout<L>)
      return L::check(shape, table.first(static_cast<std::size_t>(shape.bytes()))).error();
    __builtin_unreachable();
  }

  // A column of 64-bit integers under the default hash is hashed inside the kernel.
  template <class K>
  static constexpr bool kFusesIntegers = std::same_as<H, Hash>&& detail::IntegerWord<std::remove_const_t<K>>;
  template <class K>
  detail::Batch<> integers(std::span<const K> keys) const noexcept {
    // Signed and unsigned of one type may alias.
    return {.words = reinterpret_cast<const std::uint64_t*>(keys.data()),
            .count = keys.size(),
            .ahead = detail::far_away(byte_size()),
            .hash = &hasher_};
  }

  // Hands the digests of `keys` to `use` in batches of at most kBatch, each prefetched one batch ahead if the table is
  // far away.
  template <class K, class Use>
  void in_batches(std::span<const K> keys, Use use) const noexcept {
    using Digests = std::array<digest, kBatch>;
    // A few at a time: a burst of 64 prefetches overloads the memory system (1.5 times the time for text at 1e7 keys).
    constexpr std::size_t kFew = 8;
    const auto fetch = [&, ahead = detail::far_away(byte_size())](std::size_t from, std::size_t size, Digests& next) {
      for (std::size_t i = 0; i < size; i += kFew) {
        const auto few = keys.subspan(from + i, std::min(kFew, size - i));
        digests_of(hasher_, few, std::span(next).subspan(i, few.size()));
        for (std::size_t j = 0; ahead && j < few.size(); ++j) prefetch(next[i + j]);
      }
    };
    const auto use_now = [&](std::size_t, std::size_t size, const Digests& now) {
      use(std::span<const digest>(now.data(), size));
    };
    detail::in_turns<kBatch, Digests>(keys.size(), fetch, use_now,
                                      [&](std::size_t from, const Digests& now, Digests& next) {
                                        fetch(from + kBatch, kBatch, next);
                                        use_now(from, kBatch, now);
                                      });
  }

  // Digests on their way to a kernel, which spreads them.
  static detail::Batch<typename L::word> batch_of(const typename L::word* digests, std::size_t count,
                                                  bool ahead) noexcept {
    return {.words = digests, .count = count, .ahead = ahead, .spread = detail::spread_of<H>()};
  }

  // The digests as plain numbers.
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
      detail::query_batch<L>(shape_, table_, batch_of(words, count, ahead), answers);
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

  // Of an owner or a span, whose bytes must outlive it.
  FlatView(const Base& other) noexcept : Base(other) {}
  // An owner that is about to be destroyed has no bytes to lend.
  template <class Owner>
  requires(std::derived_from<Owner, Base>&& Owner::owns_bytes) FlatView(const Owner&&)
  = delete;

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
  template <class Isa = detail::isa::Here>
  [[gnu::always_inline]] Inserted insert(digest d) noexcept {
    d.check(this->hasher_);
    return detail::insert_one<L, Isa>(this->shape_, table(), d.word());
  }
  void insert(std::span<const digest> many) noexcept requires(!FillingLayout<L>) {
    insert(many, detail::far_away(this->byte_size()));
  }
  // Returns how many were inserted; fewer than many.size() if it is full.
  [[nodiscard]] std::size_t insert(std::span<const digest> many) noexcept requires FillingLayout<L> {
    return insert(many, detail::far_away(this->byte_size()));
  }

  template <Key K, class Isa = detail::isa::Here>
  [[gnu::always_inline]] Inserted insert(const K& key) noexcept {
    return insert<Isa>(digest_of(this->hasher_, key));
  }
  template <ColumnKey K>
  void insert(std::span<K> keys) noexcept requires(!FillingLayout<L>) {
    if constexpr (Base::template kFusesIntegers<K>) {
      detail::insert_batch<L>(this->shape_, table(), this->template integers<K>(keys));
    } else {
      this->template in_batches<K>(keys, [&](std::span<const digest> batch) { insert(batch, false); });
    }
  }
  template <ColumnKey K>
  [[nodiscard]] std::size_t insert(std::span<K> keys) noexcept requires FillingLayout<L> {
    if constexpr (Base::template kFusesIntegers<K>) {
      return detail::insert_batch<L>(this->shape_, table(), this->template integers<K>(keys));
    }
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
    return L::erase(this->shape_, table(), d.word());
  }
  template <Key K>
  Erased erase(const K& key) noexcept requires ErasableLayout<L> {
    return erase(digest_of(this->hasher_, key));
  }

  // The table. Whatever is written there, no query reads outside it.
  std::span<std::byte> writable_bytes() noexcept { return {table(), static_cast<std::size_t>(this->shape_.bytes())}; }

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
      if (full) return;
      const std::size_t went_in = detail::insert_batch<L>(this->shape_, table(), this->batch_of(words, count, ahead));
      inserted += went_in;
      full = went_in < count;
    });
    return inserted;
  }
};

// Insert and query from many threads at once, without a lock. A key whose insert happened before the query answers
// *perhaps*; every bit is set with a relaxed atomic OR, and a word that has its bits already is not written.
template <BitLayout L, Hasher H>
class FlatShared {
 public:
  // Whose bits these are, and what keys are hashed with.
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
    return L::may_contain_shared(shape_, table_, d.word());
  }
  Inserted insert(digest d) const noexcept {
    d.check(hasher_);
    return L::insert_shared(shape_, table_, d.word());
  }
  void insert(std::span<const digest> many) const noexcept {
    detail::for_each_key<16, detail::Inlined>(
        detail::Digests<digest>{many.data()}, many.size(), true, 0,
        detail::Steps{[](digest d) { return d; }, [this](digest d) { prefetch(d); },
                      [this](digest, digest d) { static_cast<void>(insert(d)); }},
        [](std::uint64_t, std::size_t) { return true; });
  }
  void prefetch(digest d) const noexcept { L::prefetch(shape_, table_, d.word()); }

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

// Owns its memory, and is a view of it: whatever it can answer, its view answers. Only an owner that has a name gives
// views and spans: those of a temporary do not compile. A moved-from owner answers *perhaps* to every key, ignores
// inserts and erases (`present`, `kept`), has no writable bytes and may be assigned to.
// If the layout extends, insert takes more memory when it needs it: its views and spans are valid until the next one.
template <MutableLayout L, Hasher H>
class Flat : public FlatProbes<L, H> {
  using Base = FlatProbes<L, H>;

 public:
  // The other forms of this filter. Shared is an empty type unless insert only sets bits.
  using View = FlatView<L, H>;
  using Span = FlatSpan<L, H>;
  using Shared = typename detail::SharedOf<L, H>::type;
  using typename Base::digest;
  using typename Base::Shape;
  static constexpr bool owns_bytes = true;

  // Sized for `request.keys` keys.  Throws std::bad_alloc, as does everything here that copies.
  explicit Flat(const RequestOf<Shape>& request, H with = H{}) : Flat(Shape::for_keys(request), with) {}
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
  Flat(const Flat& other) : Base(other), memory_(other.memory_) {
    if (!moved_from()) this->table_ = memory_.data();
  }
  Flat(Flat&& other) noexcept : Base(other), memory_(std::move(other.memory_)) { other.give_away(); }
  Flat& operator=(Flat other) noexcept {
    Base::operator=(other);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~Flat() = default;

  // Valid until this filter is assigned to, moved from or destroyed.
  View view() const& noexcept { return *this; }
  View view() const&& = delete;
  Bytes bytes() const& noexcept { return Base::bytes(); }
  Bytes bytes() const&& = delete;
  // REQUIRES, of both: it was not moved from.
  Span span() & noexcept {
    assert(!moved_from());
    return Span(memory_.data(), this->shape_, this->hasher_);
  }
  Span span() && = delete;
  Shared shared() & noexcept requires BitLayout<L> {
    assert(!moved_from());
    return Shared(memory_.data(), this->shape_, this->hasher_);
  }
  Shared shared() && requires BitLayout<L>
  = delete;

  // As a span's.
  template <class Isa = detail::isa::Here>
  [[gnu::always_inline]] Inserted insert(digest d) noexcept {
    if (moved_from()) [[unlikely]]
      return Inserted::present;
    Inserted done = span().template insert<Isa>(d);
    if constexpr (ExtendingLayout<L>) {
      while (done == Inserted::full && extend()) done = span().template insert<Isa>(d);
    }
    return done;
  }
  void insert(std::span<const digest> many) noexcept requires(!FillingLayout<L>) {
    if (!moved_from()) span().insert(many);
  }
  [[nodiscard]] std::size_t insert(std::span<const digest> many) noexcept requires FillingLayout<L> {
    return insert_filling(many);
  }
  template <Key K, class Isa = detail::isa::Here>
  [[gnu::always_inline]] Inserted insert(const K& key) noexcept {
    return insert<Isa>(digest_of(this->hasher_, key));
  }
  template <ColumnKey K>
  void insert(std::span<K> keys) noexcept requires(!FillingLayout<L>) {
    if (!moved_from()) span().insert(keys);
  }
  template <ColumnKey K>
  [[nodiscard]] std::size_t insert(std::span<K> keys) noexcept requires FillingLayout<L> {
    return insert_filling(keys);
  }
  Erased erase(digest d) noexcept requires ErasableLayout<L> { return moved_from() ? Erased::kept : span().erase(d); }
  template <Key K>
  Erased erase(const K& key) noexcept requires ErasableLayout<L> {
    return erase(digest_of(this->hasher_, key));
  }

  // The table; empty after a move.
  std::span<std::byte> writable_bytes() & noexcept {
    return {memory_.data(), moved_from() ? 0 : static_cast<std::size_t>(this->shape_.bytes())};
  }
  std::span<std::byte> writable_bytes() && = delete;
  // Forgets all keys.
  void clear() noexcept {
    if (moved_from()) return;
    std::memset(memory_.data(), 0, memory_.size());
    format();
  }

 private:
  bool moved_from() const noexcept { return memory_.data() == nullptr; }
  template <class T>
  std::size_t insert_filling(std::span<T> all) noexcept {
    if (moved_from()) return all.size();
    std::size_t count = span().insert(all);
    if constexpr (ExtendingLayout<L>) {
      while (count < all.size() && extend()) count += span().insert(all.subspan(count));
    }
    return count;
  }
  // False: the table has no larger shape, or there is no memory for it.
  bool extend() noexcept requires ExtendingLayout<L> {
    const auto larger = L::larger(this->shape_, this->table_);
    if (!larger) return false;
    try {
      memory_.resize(whole_words(*larger));
    } catch (const std::bad_alloc&) {
      return false;
    }
    this->table_ = memory_.data();
    L::extend(this->shape_, *larger, memory_.data());
    this->shape_ = *larger;
    return true;
  }
  void give_away() noexcept {
    const auto every = detail::everything<L>();
    this->shape_ = every.shape;
    this->table_ = every.table;
  }
  void format() noexcept {
    if constexpr (FormattedLayout<L>) L::format(this->shape_, memory_.data());
  }
  // Whole 8-byte words, for shared access.
  static std::uint64_t whole_words(Shape size) noexcept { return (size.bytes() + 7) / 8 * 8; }

  Memory memory_;
};

}  // namespace perhaps
