// Bytes for one batch of keys: taken piece by piece, all given back at once. A piece never moves.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace perhaps::cli {

class Arena {
 public:
  // At least `size` bytes. Until the next call of trim(), which gives back those that were not needed.
  std::byte* take(std::size_t size) {
    if (left_ < size) grow(size);
    std::byte* const at = next_;
    next_ += size;
    left_ -= size;
    return at;
  }
  // The last piece taken ends at `end`.
  void trim(std::byte* end) noexcept {
    left_ += static_cast<std::size_t>(next_ - end);
    next_ = end;
  }
  void clear() noexcept {
    current_ = 0;
    left_ = chunks_.empty() ? 0 : chunks_[0].size;
    next_ = chunks_.empty() ? nullptr : chunks_[0].bytes.get();
  }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  void grow(std::size_t size) {
    while (++current_ < chunks_.size() && chunks_[current_].size < size) {
    }
    if (current_ >= chunks_.size()) {
      const std::size_t room = std::max(size, std::size_t{1} << 16);
      chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(room), room});
      current_ = chunks_.size() - 1;
    }
    next_ = chunks_[current_].bytes.get();
    left_ = chunks_[current_].size;
  }

  std::vector<Chunk> chunks_;
  std::size_t current_ = static_cast<std::size_t>(-1);
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace perhaps::cli
