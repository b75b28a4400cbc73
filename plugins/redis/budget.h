// How much memory filters may take: the server's allocator behind a limit that counts before it grants.
//
// Three limits, all in force at once:
//   the key     bf-max-bytes-per-key, if it is set
//   the server  noeviction: used memory stays below maxmemory
//               an eviction policy: no key takes more than half of maxmemory, and used memory never exceeds 1.5 times
//               maxmemory; the server evicts other keys before the next command, as it does for any large write
//   the host    without maxmemory: the memory of the machine, or of the container if that is less
// What a primary sends, and what is read from an append-only or RDB file, was accepted before and is not limited.
#pragma once
#include "redis/redis_api.h"
#include "redisbloom/redisbloom.h"

namespace perhaps::redis {

// The server's allocator, so that maxmemory, MEMORY USAGE, INFO and defragmentation see every table.
extern const redisbloom::Memory kServer;

// Blocks that are about to be allocated. All of them are summed before the first is.
struct Need {
  std::uint64_t bytes = 0;      // as requested
  std::uint64_t footprint = 0;  // as the allocator rounds them, which is what maxmemory counts

  void add(std::uint64_t block) noexcept;
};

// What can still be allocated.
struct Room {
  std::uint64_t key = 0;     // requested bytes under the limits of the key
  std::uint64_t server = 0;  // footprint under the limit of the server

  bool holds(const Need& need) const noexcept { return need.bytes <= key && need.footprint <= server; }
};

// While it lives, kServer gives a key no more than it may have.
class Budget {
 public:
  // `context` may be null in a callback that has none: then a replica obeys and a primary does not.
  Budget(Context* context, std::uint64_t bytes_in_use) noexcept;
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // The command came from a primary or from a file: see Call::obeyed(), which costs more.
  bool obeys() const noexcept { return obeys_; }
  // True if a block was refused: the error to reply is kOverLimit.
  bool refused() const noexcept { return refused_; }
  Room room() const noexcept;
  // Grants all of `need` or nothing; its blocks are then allocated without further checks.
  bool reserve(const Need& need) noexcept;
  // For kServer: one block, perhaps instead of one that is freed once its contents are copied.
  bool grants(std::uint64_t bytes, std::uint64_t instead_of = 0) noexcept;
  // For a block that the server has already allocated on behalf of the key.
  bool accepts(std::uint64_t bytes) noexcept;

 private:
  bool fits(const Need& need) noexcept;
  void refuse_unless(bool fitting) noexcept;

  Context* context_;
  std::uint64_t in_use_;
  std::uint64_t reserved_ = 0;
  bool obeys_;
  bool refused_ = false;
};

// A zeroed block of kServer that replaces one of `old` bytes. The key is charged for the difference; the server must
// hold both until the caller gives the old one back. Null: no memory, or it is over a limit.
std::byte* take_instead(std::uint64_t bytes, std::uint64_t old) noexcept;

inline constexpr const char* kOverLimit = "ERR operation exceeds bloom object memory limit";

}  // namespace perhaps::redis
