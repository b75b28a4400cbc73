// One row of batch kernels for each instruction set. Row 0 is the portable reference; every other row must equal it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "perhaps/detail/kernels.h"
#include "perhaps/hash.h"

namespace perhaps::kernel {

// Where the digests of a batch come from: an array of them, or an array of integer keys that are hashed on the way. A
// key costs two multiplications; hashing it inside the kernel hides them behind the memory accesses of its neighbours.
struct Digests {
  const std::uint64_t* words;
  std::uint64_t operator[](std::size_t i) const noexcept { return words[i]; }
};
struct Integers {
  const std::uint64_t* keys;
  Hash hash;
  std::uint64_t operator[](std::size_t i) const noexcept { return hash(keys[i]).value; }
};

// `ahead`: see detail/kernels.h.
struct Row {
  const char* isa;
  void (*line_query)(LineShape, const std::byte*, Digests, std::size_t, std::uint64_t*, bool ahead) noexcept;
  void (*line_query_integers)(LineShape, const std::byte*, Integers, std::size_t, std::uint64_t*, bool ahead) noexcept;
  void (*line_insert)(LineShape, std::byte*, Digests, std::size_t, bool ahead) noexcept;
  void (*line_insert_integers)(LineShape, std::byte*, Integers, std::size_t, bool ahead) noexcept;
  void (*block_query)(BlockShape, const std::byte*, Digests, std::size_t, std::uint64_t*, bool ahead) noexcept;
  void (*block_query_integers)(BlockShape, const std::byte*, Integers, std::size_t, std::uint64_t*,
                               bool ahead) noexcept;
  void (*block_insert)(BlockShape, std::byte*, Digests, std::size_t, bool ahead) noexcept;
  void (*block_insert_integers)(BlockShape, std::byte*, Integers, std::size_t, bool ahead) noexcept;
};

extern const Row kPortable;

// The rows this CPU can run, best last. The tests and the bench walk them.
std::span<const Row* const> rows() noexcept;
// The row in use: the last one, or the one named by PERHAPS_ISA in the environment.
const Row& active() noexcept;
// Makes `row` the one in use, for tests and benchmarks; not while other threads are probing.
void use(const Row& row) noexcept;

// How many keys the prefetch runs ahead of the probe. 16 is too few to cover a miss to DRAM (twice the time at 1e7
// keys), 32 to 64 measure alike.
inline constexpr std::size_t kDistance = 48;
inline constexpr std::size_t kRing = 64;
static_assert(kDistance <= kRing);

// Calls probe(i, digest) for i in [from, to). Far tables: ask(digest) runs kDistance ahead and the digests wait in a
// ring, so that each is computed once. The caller primes the ring, so that it runs on from one call to the next.
template <class Source, class Ask>
class Ahead {
 public:
  Ahead(Source source, std::size_t count, Ask ask) noexcept : source_(source), count_(count), ask_(ask) {
    for (std::size_t i = 0; i < kDistance && i < count; ++i) fetch(i);
  }
  template <class Probe>
  __attribute__((always_inline)) void walk(std::size_t from, std::size_t to, Probe probe) noexcept {
    std::size_t i = from;
    for (const std::size_t last = count_ < kDistance ? 0 : count_ - kDistance; i < to && i < last; ++i) {
      fetch(i + kDistance);
      probe(i, ring_[i % kRing]);
    }
    for (; i < to; ++i) probe(i, ring_[i % kRing]);
  }

 private:
  __attribute__((always_inline)) void fetch(std::size_t i) noexcept {
    const std::uint64_t digest = source_[i];
    ring_[i % kRing] = digest;
    ask_(digest);
  }

  Source source_;
  std::size_t count_;
  Ask ask_;
  std::uint64_t ring_[kRing];
};

// The loop of every query kernel: covers(digest) -> one bit of the answer.
template <class Source, class Ask, class Covers>
__attribute__((always_inline)) inline void query_loop(Source source, std::size_t count, std::uint64_t* answers,
                                                      bool ahead, Ask ask, Covers covers) noexcept {
  const auto in_words = [&](auto walk) __attribute__((always_inline)) {
    for (std::size_t from = 0; from < count; from += 64) {
      std::uint64_t word = 0;
      walk(
          from, count - from < 64 ? count : from + 64,
          [&](std::size_t i, std::uint64_t digest)
              __attribute__((always_inline)) { word |= std::uint64_t{covers(digest)} << (i - from); });
      answers[from / 64] = word;
    }
  };
  if (ahead) {
    Ahead<Source, Ask> line(source, count, ask);
    in_words([&](std::size_t from, std::size_t to, auto probe)
                 __attribute__((always_inline)) { line.walk(from, to, probe); });
  } else {
    in_words([&](std::size_t from, std::size_t to, auto probe) __attribute__((always_inline)) {
      for (std::size_t i = from; i < to; ++i) probe(i, source[i]);
    });
  }
}

// The loop of every insert kernel.
template <class Source, class Ask, class Set>
__attribute__((always_inline)) inline void insert_loop(Source source, std::size_t count, bool ahead, Ask ask,
                                                       Set set) noexcept {
  if (ahead) {
    Ahead<Source, Ask>(source, count, ask)
        .walk(
            0, count, [&](std::size_t, std::uint64_t digest) __attribute__((always_inline)) { set(digest); });
  } else {
    for (std::size_t i = 0; i < count; ++i) set(source[i]);
  }
}

}  // namespace perhaps::kernel
