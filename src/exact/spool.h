// Words that come before they can be used, and are read later: in memory, past a limit in a file.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "build/spill_file.h"
#include "perhaps/detail/threads.h"
#include "perhaps/exact.h"

namespace perhaps::detail {

class Spool {
 public:
  explicit Spool(const BuildOptions& options) : limit_(options.memory), file_(options.spill_folder) {}

  Result<void> add(std::span<const std::uint64_t> words) {
    const std::lock_guard lock(mutex_);
    if (limit_ != 0 && (held_.size() + words.size()) * 8 > limit_ && !held_.empty()) {
      const Run run{file_.extend(held_.size()), held_.size()};
      if (auto done = file_.write(run.at, std::span<const std::uint64_t>(held_)); !done) return done;
      runs_.push_back(run);
      held_.clear();
    }
    held_.insert(held_.end(), words.begin(), words.end());
    return {};
  }
  // use(words) from up to `threads` threads; every span has a multiple of `unit` words. Of several errors the first.
  template <class Use>
  Result<void> read(unsigned threads, std::uint64_t unit, Use use) {
    const std::uint64_t piece = kExactColumn * 16 * unit;
    std::vector<Run> pieces;
    for (const Run& run : runs_) {
      for (std::uint64_t from = 0; from < run.words; from += piece) {
        pieces.push_back({run.at + 8 * from, std::min(piece, run.words - from)});
      }
    }
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    Result<void> result;
    in_threads(threads, [&] {
      std::vector<std::uint64_t> words;
      for (std::size_t i; (i = next.fetch_add(1)) < pieces.size();) {
        words.resize(static_cast<std::size_t>(pieces[i].words));
        if (auto done = file_.read(pieces[i].at, std::span(words)); !done) {
          const std::lock_guard lock(mutex);
          if (result) result = std::move(done);
          return;
        }
        use(std::span<const std::uint64_t>(words));
      }
    });
    next = 0;
    in_threads(threads, [&] {
      for (std::size_t from; (from = next.fetch_add(static_cast<std::size_t>(piece))) < held_.size();) {
        use(std::span<const std::uint64_t>(held_).subspan(
            from, std::min(static_cast<std::size_t>(piece), held_.size() - from)));
      }
    });
    return result;
  }

 private:
  struct Run {
    std::uint64_t at;
    std::uint64_t words;
  };
  std::uint64_t limit_;
  std::mutex mutex_;
  std::vector<std::uint64_t> held_;
  std::vector<Run> runs_;
  build::SpillFile file_;
};

}  // namespace perhaps::detail
