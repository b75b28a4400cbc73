// A batch of keys on its way from a filter to its kernel, and the one loop that prefetches ahead of the probes. Not
// part of the API.
//
// A layout takes three steps with a key, which a batch keeps apart:
//   place(word) -> where in the table        prefetch(where)               use(where, word): probe it, or set it
//
// Near tables (inside L2) are probed at once. For far ones the loop goes in turns of kTurn keys: while a turn is being
// probed, the keys of the next are hashed, placed and prefetched, one between two probes. So some kTurn requests are
// under way at any time, and each digest is computed once. For one line per key 64 keys are the right number (16 take
// twice the time at 1e7 keys); what reads more lines per key takes shorter turns. A prefetch is dropped when all
// line-fill buffers are busy, so in tables behind the caches a place is prefetched a second time, kLater keys after the
// first: 0.8 of the time at 1e8 keys, but 1.1 of it within L3.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "perhaps/detail/bits.h"
#include "perhaps/detail/config.h"
#include "perhaps/detail/isa.h"
#include "perhaps/detail/kernels.h"
#include "perhaps/filter.h"

namespace perhaps::detail {

template <class Word>
struct Batch {
  const Word* words = nullptr;  // words, or digests if there is a `spread`, or 64-bit integer keys if there is a `hash`
  std::size_t count = 0;
  bool ahead = false;          // prefetch ahead; the caller knows whether the table is far away
  const Hash* hash = nullptr;  // hashes the keys on the way
  // What digests are multiplied by on the way to become words (hash.h); 1: they are words. A number and not a type, so
  // that kernels are compiled once for our hashers and for those of other systems.
  std::uint64_t spread = 1;

  // The word of key i.
  Word operator[](std::size_t i) const noexcept {
    if constexpr (std::is_same_v<Word, std::uint64_t>) {
      return hash == nullptr ? words[i] * spread : (*hash)(words[i]).word();
    } else {
      return words[i];
    }
  }
};

// Where the words of a batch come from. An integer key costs two multiplications, a digest one; made inside the kernel,
// they are hidden behind the memory accesses of its neighbours.
template <class Word>
struct Digests {
  const Word* words;
  std::uint64_t spread = 1;
  PERHAPS_INLINE Word operator[](std::size_t i) const noexcept {
    if constexpr (std::is_same_v<Word, std::uint64_t>) {
      return words[i] * spread;
    } else {
      return words[i];
    }
  }
  PERHAPS_INLINE Digests from(std::size_t first) const noexcept { return {words + first, spread}; }
};
struct Integers {
  const std::uint64_t* keys;
  Hash hash;
  PERHAPS_INLINE std::uint64_t operator[](std::size_t i) const noexcept { return hash(keys[i]).word(); }
  PERHAPS_INLINE Integers from(std::size_t first) const noexcept { return {keys + first, hash}; }
};
// Calls body(source): the one place that tells digests from integers.
template <class Word, class Body>
PERHAPS_INLINE auto with_source(const Batch<Word>& batch, Body body) {
  if constexpr (std::is_same_v<Word, std::uint64_t>) {
    if (batch.hash != nullptr) return body(Integers{batch.words, *batch.hash});
  }
  return body(Digests<Word>{batch.words, batch.spread});
}

template <class Place, class Prefetch, class Use>
struct Steps {
  Place place;
  Prefetch prefetch;
  Use use;
};
template <class Place, class Prefetch, class Use>
Steps(Place, Prefetch, Use) -> Steps<Place, Prefetch, Use>;

// How a turn is called. Kernels have an Outline of their own that is not inlined: in one piece gcc 12 runs out of
// registers and keeps the loop counter in memory (1.3 ns per key). A turn is passed by reference and begins with copies
// of what it uses, which then are in registers: passed by value, it is copied through memory (0.3 ns per key).
struct Inlined {
  template <class Turn>
  PERHAPS_INLINE static auto call(const Turn& turn) {
    return turn();
  }
};

// Runs through `count` keys in turns, with the next turn fetched before or while the present one is used.
//   fetch(from, size, next)    hashes, places and prefetches keys from .. from + size - 1
//   use(from, size, now)       probes them
//   both(from, now, next)      uses the turn at `from` and fetches the next one; both have kTurn keys
template <std::size_t kTurn, class Waiting, class Fetch, class Use, class Both>
PERHAPS_INLINE void in_turns(std::size_t count, Fetch fetch, Use use, Both both) {
  if (count == 0) return;
  Waiting waiting[2];
  fetch(std::size_t{0}, std::min(kTurn, count), waiting[0]);
  for (std::size_t from = 0, turn = 0; from < count; from += kTurn, turn = 1 - turn) {
    const std::size_t size = std::min(kTurn, count - from);
    const std::size_t left = count - from - size;
    if (left >= kTurn) {
      both(from, waiting[turn], waiting[1 - turn]);
    } else {
      if (left > 0) fetch(from + kTurn, left, waiting[1 - turn]);
      use(from, size, waiting[turn]);
    }
  }
}

// A word of answers grows as word = 2 * word + answer, with no shift by a variable, and is reversed at the end. (Going
// through the keys backwards instead defeats the hardware's prefetch of the keys themselves.)
PERHAPS_INLINE std::uint64_t reversed(std::uint64_t word, std::size_t size) {
  word = (word >> 1 & 0x5555555555555555u) | (word & 0x5555555555555555u) << 1;
  word = (word >> 2 & 0x3333333333333333u) | (word & 0x3333333333333333u) << 2;
  word = (word >> 4 & 0x0f0f0f0f0f0f0f0fu) | (word & 0x0f0f0f0f0f0f0f0fu) << 4;
  return byte_swapped(word) >> (64 - size);
}
template <class Use, class Where, class Word>
PERHAPS_INLINE std::uint64_t answer(const Use& use, const Where& where, Word digest, std::uint64_t word) {
  if constexpr (std::is_void_v<decltype(use(where, digest))>) {
    use(where, digest);
    return word;
  } else {
    word += word;
    // Keeps the compiler from 2 * word + answer in one address computation, for which the carry of a vector test must
    // first become a number: this way it is added as a carry.
    asm("" : "+r"(word));
    return word + use(where, digest);
  }
}

template <std::size_t kTurn, class Word, class Where>
struct Waiting {
  Word digest[kTurn];
  Where where[kTurn];
};

// WebAssembly has no instruction that prefetches: the loops that do would only make its modules larger.
#if defined(__wasm__)
inline constexpr bool kPrefetches = false;
#else
inline constexpr bool kPrefetches = true;
#endif
inline constexpr std::uint64_t kPrefetchAgainFrom = std::uint64_t{64} << 20;  // bytes of a table
inline constexpr std::size_t kLater = 16;

template <bool kAgain, std::size_t kTurn, class Source, class Waiting, class Steps>
PERHAPS_INLINE std::uint64_t fetch_and_use(Source source, const Waiting* now, Waiting* next, const Steps& steps) {
  std::uint64_t word = 0;
#pragma GCC unroll 4  // the end of a loop of 64 rounds is mispredicted every time
  for (std::size_t slot = 0; slot < kTurn; ++slot) {
    const auto digest = source[slot];
    const auto where = steps.place(digest);
    next->digest[slot] = digest;
    next->where[slot] = where;
    steps.prefetch(where);
    if constexpr (kAgain) {
      steps.prefetch(slot < kLater ? now->where[slot + kTurn - kLater] : next->where[slot - kLater]);
    }
    word = answer(steps.use, now->where[slot], now->digest[slot], word);
  }
  return reversed(word, kTurn);
}

// for_each_key with the keys of the next turn prefetched.
template <std::size_t kTurn, class Outline, class Source, class Steps, class Put>
PERHAPS_INLINE void for_each_key_ahead(Source source, std::size_t count, std::uint64_t table_bytes, Steps steps,
                                       Put put) {
  using Held = Waiting<kTurn, std::remove_cvref_t<decltype(source[0])>, decltype(steps.place(source[0]))>;
  const bool again = kTurn > kLater && table_bytes >= kPrefetchAgainFrom;
  bool more = true;
  in_turns<kTurn, Held>(
      count,
      [&](std::size_t from, std::size_t size, Held& next) {
        Outline::call([&]() __attribute__((always_inline)) {
          const Steps own = steps;
          const Source keys = source.from(from);
          Held* const held = &next;
          for (std::size_t slot = 0, end = size; slot < end; ++slot) {
            held->digest[slot] = keys[slot];
            held->where[slot] = own.place(held->digest[slot]);
            own.prefetch(held->where[slot]);
          }
        });
      },
      [&](std::size_t from, std::size_t size, const Held& now) {
        if (!more) return;
        const std::uint64_t word = Outline::call([&]() __attribute__((always_inline)) {
          const Steps own = steps;
          const Held* const held = &now;
          const std::size_t end = size;
          std::uint64_t answers = 0;
          for (std::size_t slot = 0; slot < end; ++slot) {
            answers = answer(own.use, held->where[slot], held->digest[slot], answers);
          }
          return reversed(answers, end);
        });
        more = put(word, from);
      },
      [&](std::size_t from, const Held& now, Held& next) {
        if (!more) return;
        const auto both = [&](auto twice) {
          return Outline::call([&]() __attribute__((always_inline)) {
            const Steps own = steps;
            return fetch_and_use<decltype(twice)::value, kTurn>(source.from(from + kTurn), &now, &next, own);
          });
        };
        if constexpr (kTurn > kLater) {
          more = put(again ? both(std::true_type()) : both(std::false_type()), from);
        } else {
          more = put(both(std::false_type()), from);
        }
      });
}

// The loop of every family. put(word, from): bit i of the word is the answer of key from + i; false ends the loop.
template <std::size_t kTurn, class Outline, class Source, class Steps, class Put>
PERHAPS_INLINE void for_each_key(Source source, std::size_t count, bool ahead, std::uint64_t table_bytes, Steps steps,
                                 Put put) {
  static_assert(kTurn <= 64 && 64 % kTurn == 0);
  const auto use_now = [&](Source keys, auto size) {
    return Outline::call([&]() __attribute__((always_inline)) {
      const Steps own = steps;
      const Source from = keys;
      std::uint64_t word = 0;
      for (std::size_t slot = 0; slot < size; ++slot) {
        const auto digest = from[slot];
        word = answer(own.use, own.place(digest), digest, word);
      }
      return reversed(word, size);
    });
  };
  if constexpr (!kPrefetches) {
    for (std::size_t from = 0; from < count; from += kTurn) {
      if (!put(use_now(source.from(from), std::min(kTurn, count - from)), from)) return;
    }
  } else if (!ahead) {
    std::size_t from = 0;
    for (; count - from >= kTurn; from += kTurn) {
      if (!put(use_now(source.from(from), std::integral_constant<std::size_t, kTurn>()), from)) return;
    }
    if (from < count) put(use_now(source.from(from), count - from), from);
  } else {
    for_each_key_ahead<kTurn, Outline>(source, count, table_bytes, steps, put);
  }
}

// Bit i % 64 of answers[i / 64] belongs to key i; the unused bits of the last word become 0.
template <std::size_t kTurn, class Outline, class Word, class Steps>
PERHAPS_INLINE void query_keys(const Batch<Word>& batch, std::uint64_t* answers, std::uint64_t table_bytes,
                               Steps steps) {
  with_source(batch, [=, &batch](auto source) {
    for_each_key<kTurn, Outline>(source, batch.count, batch.ahead, table_bytes, steps,
                                 [=](std::uint64_t word, std::size_t from) {
                                   if (kTurn == 64 || from % 64 == 0) {
                                     answers[from / 64] = word;
                                   } else {
                                     answers[from / 64] |= word << from % 64;
                                   }
                                   return true;
                                 });
  });
}
// Returns how many were inserted: all of them.
template <std::size_t kTurn, class Outline, class Word, class Steps>
PERHAPS_INLINE std::size_t insert_keys(const Batch<Word>& batch, std::uint64_t table_bytes, Steps steps) {
  with_source(batch, [=, &batch](auto source) {
    for_each_key<kTurn, Outline>(source, batch.count, batch.ahead, table_bytes, steps,
                                 [](std::uint64_t, std::size_t) { return true; });
  });
  return batch.count;
}
// For tables that fill up: insert(where, digest) -> Inserted. Returns how many were inserted before the first refusal.
template <std::size_t kTurn, class Outline, class Word, class Place, class Prefetch, class Insert>
PERHAPS_INLINE std::size_t insert_until_full(const Batch<Word>& batch, Place place, Prefetch prefetch, Insert insert) {
  std::size_t inserted = 0;
  bool full = false;
  const Steps steps{place, prefetch, [=, &inserted, &full](const auto& where, Word digest) {
                      if (full) return;
                      full = insert(where, digest) == Inserted::full;
                      inserted += !full;
                    }};
  with_source(batch, [=, &batch, &full](auto source) {
    for_each_key<kTurn, Outline>(source, batch.count, batch.ahead, 0, steps,
                                 [&full](std::uint64_t, std::size_t) { return !full; });
  });
  return inserted;
}

// One key, by the form for `Isa` if the layout has several.
template <class L, class Isa>
PERHAPS_INLINE Inserted insert_one(const typename L::Shape& shape, std::byte* table, typename L::word h) noexcept {
  if constexpr (requires { L::template insert<Isa>(shape, table, h); }) {
    return L::template insert<Isa>(shape, table, h);
  } else {
    return L::insert(shape, table, h);
  }
}

// A layout by its own inlined probes. Its prefetch finds the place again; this is the reference, and what foreign
// layouts use. Sixteen keys ahead: they read several lines each.
template <class L, std::size_t kTurn = 16>
void query_by_key(const typename L::Shape& shape, const std::byte* table, const Batch<typename L::word>& batch,
                  std::uint64_t* answers) noexcept {
  using Word = typename L::word;
  query_keys<kTurn, Inlined>(
      batch, answers, shape.bytes(),
      Steps{[](Word h) { return h; }, [=](Word h) { L::prefetch(shape, table, h); },
            [=](Word, Word h) { return L::template may_contain<isa::Portable>(shape, table, h); }});
}
template <class L, std::size_t kTurn = 16>
std::size_t insert_by_key(const typename L::Shape& shape, std::byte* table,
                          const Batch<typename L::word>& batch) noexcept {
  using Word = typename L::word;
  const auto place = [](Word h) { return h; };
  const auto prefetch = [=](Word h) { L::prefetch(shape, table, h); };
  const auto insert = [=](Word, Word h) { return insert_one<L, isa::Portable>(shape, table, h); };
  if constexpr (requires { requires L::fills_up; })
    return insert_until_full<kTurn, Inlined>(batch, place, prefetch, insert);
  return insert_keys<kTurn, Inlined>(
      batch, shape.bytes(), Steps{place, prefetch, [=](Word where, Word h) { static_cast<void>(insert(where, h)); }});
}

// The way of every batch. A layout names its kernel, or has a batch form of its own, or is probed key by key.
template <class L>
void query_batch(const typename L::Shape& shape, const std::byte* table, const Batch<typename L::word>& batch,
                 std::uint64_t* answers) noexcept {
  if constexpr (requires { L::query_kernel; }) {
    (kernels().*L::query_kernel)(shape, table, batch, answers);
  } else if constexpr (requires { L::query(shape, table, batch, answers); }) {
    L::query(shape, table, batch, answers);
  } else {
    query_by_key<L>(shape, table, batch, answers);
  }
}
// Returns how many were inserted; fewer than batch.count only if the layout fills up.
template <class L>
std::size_t insert_batch(const typename L::Shape& shape, std::byte* table,
                         const Batch<typename L::word>& batch) noexcept {
  if constexpr (requires { L::insert_kernel; }) {
    return (kernels().*L::insert_kernel)(shape, table, batch);
  } else if constexpr (requires { L::insert(shape, table, batch); }) {
    return L::insert(shape, table, batch);
  } else {
    return insert_by_key<L>(shape, table, batch);
  }
}

}  // namespace perhaps::detail
