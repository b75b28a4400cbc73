// Columns of keys: numpy arrays and other buffers, Arrow's arrays, lists, anything that iterates.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "key.h"

namespace perhaps::python {

// Keys of one type in a row, and what keeps them valid.
class Run {
 public:
  Run() = default;
  Run(const Run&) = delete;
  ~Run() { clear(); }

  bool are_numbers() const noexcept { return are_numbers_; }
  std::size_t size() const noexcept { return are_numbers_ ? count_numbers() : keys_.size(); }
  const std::uint64_t* numbers() const noexcept { return borrowed_ != nullptr ? borrowed_ : numbers_.data(); }
  const perhaps_key* keys() const noexcept { return keys_.data(); }
  bool fits(const Key& key) const noexcept { return size() == 0 || are_numbers_ == key.is_number; }

  // Takes a reference, as a string keeps its own bytes.
  void add(const Key& key, PyObject* keeper) {
    are_numbers_ = key.is_number;
    if (are_numbers_) {
      numbers_.push_back(key.number);
      return;
    }
    keepers_.push_back(keeper);
    Py_INCREF(keeper);
    keys_.push_back(key.bytes);
  }
  void add_number(std::uint64_t number) {
    are_numbers_ = true;
    numbers_.push_back(number);
  }
  void add_borrowed(const std::uint64_t* numbers, std::size_t count) noexcept {
    are_numbers_ = true;
    borrowed_ = numbers;
    borrowed_count_ = count;
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
    numbers_.clear();
    texts_.clear();
    borrowed_ = nullptr;
  }

 private:
  std::size_t count_numbers() const noexcept { return borrowed_ != nullptr ? borrowed_count_ : numbers_.size(); }

  bool are_numbers_ = false;
  std::vector<perhaps_key> keys_;
  std::vector<PyObject*> keepers_;
  std::deque<std::string> texts_;  // whose addresses stay
  std::vector<std::uint64_t> numbers_;
  const std::uint64_t* borrowed_ = nullptr;
  std::size_t borrowed_count_ = 0;
};

// As many keys as are hashed between two looks at the interpreter.
inline constexpr std::size_t kRun = 4096;

// Hands the keys of a column to `use`, a run at a time, of at most `at_most` keys if they have to be collected; false:
// an exception is set.
bool for_each_run(PyObject* column, std::size_t at_most, const std::function<bool(const Run&)>& use);

}  // namespace perhaps::python
