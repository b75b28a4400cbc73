// One row of batch kernels for each instruction set. Row 0 is the portable reference; every other row must equal it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "perhaps/detail/kernels.h"
#include "perhaps/hash.h"

#define PERHAPS_KERNEL_INLINE inline __attribute__((always_inline))
#define PERHAPS_KERNEL_BATCH inline __attribute__((noinline))

namespace perhaps {
struct CuckooShape;
}

namespace perhaps::kernel {

// Where the digests of a batch come from: an array of them, or an array of integer keys that are hashed on the way. A
// key costs two multiplications; hashing it inside the kernel hides them behind the memory accesses of its neighbours.
struct Digests {
  const std::uint64_t* words;
  std::uint64_t operator[](std::size_t i) const noexcept { return words[i]; }
  Digests from(std::size_t first) const noexcept { return {words + first}; }
};
struct Integers {
  const std::uint64_t* keys;
  Hash hash;
  std::uint64_t operator[](std::size_t i) const noexcept { return hash(keys[i]).value; }
  Integers from(std::size_t first) const noexcept { return {keys + first, hash}; }
};

// Where 64 digests belong in a cuckoo table: offsets of both buckets behind the head, in bytes (in half bytes where
// fingerprint_bits is odd), and fingerprints.
struct CuckooPlaces {
  alignas(64) std::uint64_t first[64];
  alignas(64) std::uint64_t second[64];
  alignas(64) std::uint64_t fingerprint[64];
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
  void (*ribbon_query)(const RibbonShape&, const std::byte*, Digests, std::size_t, std::uint64_t*, bool ahead) noexcept;
  void (*ribbon_query_integers)(const RibbonShape&, const std::byte*, Integers, std::size_t, std::uint64_t*,
                                bool ahead) noexcept;
  void (*cuckoo_place)(const CuckooShape&, const std::uint64_t* digests, CuckooPlaces*) noexcept;  // 64 digests
  bool bmi2;  // x86 with BMI2: src/quotient.cc has a form of its own for it
};

extern const Row kPortable;

// The rows this CPU can run, best last. The tests and the bench walk them.
std::span<const Row* const> rows() noexcept;
// The row in use: the last one, or the one named by PERHAPS_ISA in the environment.
const Row& active() noexcept;
// Makes `row` the one in use, for tests and benchmarks; not while other threads are probing.
void use(const Row& row) noexcept;

}  // namespace perhaps::kernel
