// Items of one command: all are hashed, their cache lines are prefetched if the tables are large, then they are used.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "perhaps/filter.h"
#include "redis/values.h"

namespace perhaps::redis {

// Calls use(first argument of the batch, hashes) for at most kBatch items at a time. Nothing is prefetched while
// hashing: a prefetch waits for its page walk, and between hashes only two or three would be under way at a time.
template <class Chain, class Use>
void in_batches(const Call& call, int first, const Chain& chain, Use use) {
  std::array<decltype(chain.hash(Bytes{})), kBatch> hashes;
  for (int from = first; from < call.argc; from += static_cast<int>(kBatch)) {
    const int count = std::min(call.argc - from, static_cast<int>(kBatch));
    for (int i = 0; i < count; ++i) hashes[static_cast<std::size_t>(i)] = chain.hash(call.bytes(from + i));
    use(from, std::span(hashes).first(static_cast<std::size_t>(count)));
  }
}

template <class Chain>
bool prefetch_ahead(const Chain& chain) noexcept {
  return settings.prefetch && redisbloom::far_away(chain.table_bytes());
}

// Replies for every item from `first` on, in an array.
template <class Chain>
int reply_exists(const Call& call, int first, const Chain* chain) {
  call.array(static_cast<std::uint64_t>(call.argc - first));
  if (chain == nullptr) {
    for (int i = first; i < call.argc; ++i) call.truth(false);
    return kOk;
  }
  if (!settings.prefetch) {
    for (int i = first; i < call.argc; ++i) call.truth(chain->may_contain(chain->hash(call.bytes(i))));
    return kOk;
  }
  const bool ahead = prefetch_ahead(*chain);
  in_batches(call, first, *chain, [&](int, auto hashes) {
    const std::uint64_t found = chain->may_contain(hashes, ahead);
    for (std::size_t i = 0; i < hashes.size(); ++i) call.truth((found >> i & 1) != 0);
  });
  return kOk;
}

// The items that changed the filter, which are replicated and logged. As long as all items did, no copy is made of the
// arguments.
class Changed {
 public:
  Changed(const Call& call, int first) noexcept : call_(call), first_(first) {}

  void note(int argument, bool changed) {
    if (changed && all_) {
      ++count_;
    } else if (changed) {
      some_.push_back(call_.argv[argument]);
    } else if (all_) {
      all_ = false;
      some_.assign(call_.argv + first_, call_.argv + first_ + count_);
    }
  }
  String** items() noexcept { return all_ ? call_.argv + first_ : some_.data(); }
  std::size_t size() const noexcept { return all_ ? count_ : some_.size(); }
  bool none() const noexcept { return size() == 0; }
  // All items changed the filter and the command has only items: it is replicated as it came, which is cheaper.
  bool verbatim() const noexcept { return all_ && first_ == 2; }

 private:
  const Call& call_;
  int first_;
  std::size_t count_ = 0;
  bool all_ = true;
  std::vector<String*> some_;
};

}  // namespace perhaps::redis
