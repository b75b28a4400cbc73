// Columns of keys: numpy arrays and other buffers, Arrow's arrays, lists, anything that iterates.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "key.h"
#include "perhaps/any_filter.h"

namespace perhaps::python {

// As many keys as are handed over between two looks at the interpreter.
inline constexpr std::size_t kRun = 4096;

// Keys of one type in a row, and what keeps them valid.
class Run {
 public:
  enum class Of : std::uint8_t { bytes, numbers, digests };

  Run() = default;
  Run(const Run&) = delete;
  ~Run() { clear(); }

  Of of() const noexcept { return of_; }
  std::size_t size() const noexcept {
    if (of_ == Of::digests) return digests_;
    return of_ == Of::bytes ? keys_.size() : borrowed_ != nullptr ? borrowed_count_ : numbers_.size();
  }
  // Numbers or digests.
  const std::uint64_t* numbers() const noexcept { return borrowed_ != nullptr ? borrowed_ : numbers_.data(); }
  const perhaps_key* keys() const noexcept { return keys_.data(); }
  bool fits(const Key& key) const noexcept { return size() == 0 || (of_ == Of::numbers) == key.is_number; }

  // Takes a reference, as a string keeps its own bytes.
  void add(const Key& key, PyObject* keeper) {
    if (key.is_number) {
      add_number(key.number);
      return;
    }
    of_ = Of::bytes;
    keepers_.push_back(keeper);
    Py_INCREF(keeper);
    keys_.push_back(key.bytes);
  }
  void add_number(std::uint64_t number) {
    of_ = Of::numbers;
    numbers_.push_back(number);
  }
  void add_borrowed(const std::uint64_t* numbers, std::size_t count) noexcept {
    of_ = Of::numbers;
    borrowed_ = numbers;
    borrowed_count_ = count;
  }
  // Room for digests, of which add_digests then says how many were put there.
  std::uint64_t* next_digests(std::size_t most) {
    if (numbers_.size() < digests_ + most) numbers_.resize(digests_ + std::max(most, kRun));
    return numbers_.data() + digests_;
  }
  void add_digests(std::size_t count) noexcept {
    of_ = Of::digests;
    digests_ += count;
  }
  void add_bytes(const void* data, std::size_t size) { keys_.push_back({data, size}); }
  void add_text(std::string text) {
    texts_.push_back(std::move(text));
    keys_.push_back({texts_.back().data(), texts_.back().size()});
  }
  void reserve(std::size_t count) {
    keys_.reserve(count);
    keepers_.reserve(count);
  }
  void clear() noexcept {
    for (PyObject* const keeper : keepers_) Py_DECREF(keeper);
    keepers_.clear();
    keys_.clear();
    texts_.clear();
    if (of_ != Of::digests) numbers_.clear();
    digests_ = 0;
    borrowed_ = nullptr;
  }

 private:
  Of of_ = Of::bytes;
  std::vector<perhaps_key> keys_;
  std::vector<PyObject*> keepers_;
  std::deque<std::string> texts_;       // whose addresses stay
  std::vector<std::uint64_t> numbers_;  // or room for digests, of which the first `digests_` are there
  std::size_t digests_ = 0;
  const std::uint64_t* borrowed_ = nullptr;
  std::size_t borrowed_count_ = 0;
};

// What becomes of keys that are objects of Python: a buffer and a column of Arrow are handed over as they are.
struct Objects {
  std::size_t at_most = kRun;         // in a run
  const AnyHasher* hasher = nullptr;  // if set, they come as digests: no reference is taken, nothing is copied
};

// Hands the keys of a column to `use`, a run at a time; false: an exception is set. A signal ends an iterator that does
// not end by itself: its handler runs between two runs.
bool for_each_run(PyObject* column, const Objects& objects, const std::function<bool(const Run&)>& use);

}  // namespace perhaps::python
