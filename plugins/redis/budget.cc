#include "redis/budget.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "redis/container_limit.h"
#include "redis/server.h"

namespace perhaps::redis {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// To query the server's memory costs more than a small table does. Small blocks are therefore granted unseen until they
// add up to this many bytes, over all keys and commands; the next one is checked. No limit is missed by more than this.
constexpr std::uint64_t kUnseen = std::uint64_t{1} << 20;
std::uint64_t granted_unseen = 0;

Budget* budget = nullptr;

// An upper bound of what the allocator takes for a block: jemalloc has four size classes per power of two.
std::uint64_t footprint_of(std::uint64_t bytes) noexcept {
  const std::uint64_t least = std::max<std::uint64_t>(bytes, 16);
  const std::uint64_t step = std::bit_floor(least - 1) / 4;
  return (least + step - 1) / step * step;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept { return a > kNoLimit - b ? kNoLimit : a + b; }
std::uint64_t less(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

// By the settings alone.
std::uint64_t limit_per_key() noexcept {
  std::uint64_t limit = kNoLimit;
  if (settings.bf_max_bytes_per_key != 0) limit = static_cast<std::uint64_t>(settings.bf_max_bytes_per_key);
  if (settings.valkey) limit = std::min(limit, static_cast<std::uint64_t>(settings.bloom_memory_usage_limit));
  return limit;
}

// Null if there is no memory. Pages of a large table are zero when they are first touched, and not before: to reserve a
// filter of a gigabyte takes microseconds. Redis 7.0 and 7.2 have no TryCalloc, and their Calloc ends the server if it
// fails, so the address space is probed first.
void* zeroed(std::uint64_t bytes) noexcept {
  if (api::TryCalloc != nullptr) return api::TryCalloc(1, bytes);
  constexpr std::uint64_t kCheapToClear = std::uint64_t{1} << 16;
  if (bytes <= kCheapToClear) {
    void* const at = api::TryAlloc(bytes);
    return at == nullptr ? nullptr : std::memset(at, 0, bytes);
  }
  constexpr std::uint64_t kAllocatorsOwn = std::uint64_t{4} << 20;
  const std::uint64_t size = sum(footprint_of(bytes), kAllocatorsOwn);
  void* const probe = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return nullptr;
  munmap(probe, size);
  return api::Calloc(1, bytes);
}

}  // namespace

std::byte* take_instead(std::uint64_t bytes, std::uint64_t old) noexcept {
  if (budget != nullptr && !budget->grants(bytes, old)) return nullptr;
  void* const at = zeroed(bytes);
  if (at == nullptr) ++refusals.no_memory;
  return static_cast<std::byte*>(at);
}

const redisbloom::Memory kServer{
    .take = [](std::uint64_t bytes) noexcept { return take_instead(bytes, 0); },
    .give = [](std::byte* at) noexcept { api::Free(at); },
};

void Need::add(std::uint64_t block) noexcept {
  bytes = sum(bytes, block);
  footprint = sum(footprint, footprint_of(block));
}

Budget::Budget(Context* context, std::uint64_t bytes_in_use) noexcept
    : context_(context),
      in_use_(bytes_in_use),
      obeys_((api::GetContextFlags(context) & (kReplicated | kLoading | (context == nullptr ? kReplica : 0))) != 0) {
  budget = this;
}
Budget::~Budget() { budget = nullptr; }

Room Budget::room() const noexcept {
  ServerInfo* const info = api::GetServerInfo(context_, "memory");
  const auto field = [&](const char* name) {
    int error = 0;
    const unsigned long long value = api::ServerInfoGetFieldUnsigned(info, name, &error);
    return error == kOk ? std::uint64_t{value} : 0;
  };
  const char* const policy = api::ServerInfoGetFieldC(info, "maxmemory_policy");
  const bool evicts = policy != nullptr && std::string_view(policy) != "noeviction";
  const std::uint64_t maximum = field("maxmemory");
  const std::uint64_t machine = field("total_system_memory");
  const std::uint64_t used = less(field("used_memory"), maximum == 0 ? 0 : field("mem_not_counted_for_evict"));
  api::FreeServerInfo(context_, info);

  std::uint64_t key_limit = limit_per_key();
  std::uint64_t ceiling = maximum;
  if (maximum == 0) {
    ceiling = std::min(machine, container_limit());
  } else if (evicts) {
    key_limit = std::min(key_limit, maximum / 2);
    ceiling = maximum + maximum / 2;
  }
  return {.key = less(key_limit, in_use_), .server = less(ceiling, used)};
}

bool Budget::fits(const Need& need) noexcept {
  if (obeys_) return true;
  const bool unseen = sum(granted_unseen, need.footprint) <= kUnseen;
  const bool fitting = need.bytes <= less(limit_per_key(), in_use_) && (unseen || room().holds(need));
  if (fitting) granted_unseen = unseen ? granted_unseen + need.footprint : 0;
  refuse_unless(fitting);
  return fitting;
}

bool Budget::reserve(const Need& need) noexcept {
  if (!fits(need)) return false;
  reserved_ += need.bytes;
  return true;
}

bool Budget::grants(std::uint64_t bytes, std::uint64_t instead_of) noexcept {
  Need need;
  need.add(bytes);
  need.bytes = less(bytes, instead_of);
  if (bytes <= reserved_) {
    reserved_ -= bytes;
  } else if (!fits(need)) {
    return false;
  }
  in_use_ += need.bytes;
  return true;
}

bool Budget::accepts(std::uint64_t bytes) noexcept {
  if (obeys_) return true;
  const Room now = room();
  in_use_ += bytes;
  refuse_unless(bytes <= now.key && now.server != 0);
  return !refused_;
}

void Budget::refuse_unless(bool fitting) noexcept {
  refused_ |= !fitting;
  if (!fitting) ++refusals.over_limit;
}

}  // namespace perhaps::redis
