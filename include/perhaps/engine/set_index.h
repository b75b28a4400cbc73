// A bit-sliced index: which of hundreds of sets, all of similar size, may have this key?
//
// Each set is a classic Bloom filter (bloom.h) of one shape, and stands in a column of a matrix of bits:
//
//                set 0 1 2 3 4 ..                        row = bit of the filters, bits of them
//     row 0          0 1 0 0 1 ..                        a key has `probes` rows; the AND of them has a 1 for each
//     row 1          1 1 0 1 0 ..   <- a row of key k    set whose filter says *perhaps*
//     row 2          0 0 0 0 1 ..
//     row 3          0 1 0 1 1 ..   <- another
//     ..                            k: sets 1 and 3
//
// A lookup reads `probes` rows, whatever the number of sets: for 512 sets that is one cache line per row, where 512
// filters with one line per key are 512 lines. The answers are exactly those of the filters, and so is the rate of each
// set: column.fpr(keys of the set), so the expected number of sets named wrongly for a key is the sum of these. The
// price: all filters have as many bits as the largest set needs.
//
// A set is added with the bytes of its filter and removed by clearing its column; both walk over the whole matrix once,
// so sets that come together should be added together (64 at a time cost as much as one). Free columns are used again;
// if there is none, the matrix is copied into a wider one.
//
// In a file (container.h, kind `sets`): the matrix, row after row, `slots` / 8 bytes each, bit i of a row (from the
// lowest bit of its first byte) being set i; and the names.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/bloom.h"
#include "perhaps/file/container.h"

namespace perhaps {

struct SetIndexShape {
  BloomShape column;  // of each set
  std::uint64_t slots =
      64;  // columns: 64, 128, 256 or a multiple of 512, so that no row crosses a cache line needlessly

  // Of a row.
  std::uint64_t words() const noexcept { return slots / 64; }
  // Of the matrix.
  std::uint64_t bytes() const noexcept { return column.bits * slots / 8; }
  // Whether there can be such a matrix.
  PERHAPS_API bool valid() const noexcept;
  // As the header of a file has them, and back.
  std::vector<std::uint64_t> numbers() const { return {column.bits, column.probes, slots}; }
  PERHAPS_API static Result<SetIndexShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const SetIndexShape&, const SetIndexShape&) = default;
};

// The queries. Only the two classes below derive from it. Moved from, either names no sets and answers *perhaps* in
// every bit, refuses to be changed or saved, and may be assigned to.
class SetIndexProbes {
 public:
  // One column of the matrix.
  struct Set {
    std::string name;        // empty: a free column
    std::uint64_t keys = 0;  // that its filter was given
  };

  const AnyHasher& hasher() const noexcept { return hasher_; }
  const SetIndexShape& shape() const noexcept { return shape_; }
  std::uint64_t byte_size() const noexcept { return shape_.bytes(); }
  // How many words one key's answers take.
  std::size_t words() const noexcept { return shape_.words(); }
  // By column: bit i of an answer is sets()[i].
  std::span<const Set> sets() const noexcept { return sets_; }
  // The column of that name, or sets().size().
  PERHAPS_API std::size_t find(std::string_view name) const noexcept;
  // By the model: how many sets are named for a key that is in none of them.
  PERHAPS_API double false_sets() const;

  // Bit i % 64 of answers[i / 64]: set i says *perhaps*.  REQUIRES: answers.size() >= words()
  PERHAPS_API void may_contain(Bytes key, std::span<std::uint64_t> answers) const noexcept;
  // The words of key j begin at answers[j * words()].  REQUIRES: answers.size() >= digests.size() * words(), and the
  // digests were made by hasher()
  PERHAPS_API void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept;

  // Whether any set says *perhaps*.
  PERHAPS_API bool any_may_contain(std::uint64_t digest) const noexcept;
  PERHAPS_API void prefetch(std::uint64_t digest) const noexcept;

  // As Record::about.
  const Facts& about() const noexcept { return about_; }

  PERHAPS_API Header header() const;                 // without its sections
  PERHAPS_API std::vector<std::byte> names() const;  // as a section

 protected:
  SetIndexProbes(SetIndexShape shape, const AnyHasher& hasher) : shape_(shape), hasher_(hasher) {}
  ~SetIndexProbes() = default;
  SetIndexProbes(const SetIndexProbes&) = default;
  SetIndexProbes& operator=(const SetIndexProbes&) = default;
  SetIndexProbes(SetIndexProbes&& other) noexcept
      : shape_(other.shape_),
        hasher_(other.hasher_),
        sets_(std::move(other.sets_)),
        about_(std::move(other.about_)),
        table_(std::exchange(other.table_, nullptr)) {}
  SetIndexProbes& operator=(SetIndexProbes&& other) noexcept {
    shape_ = other.shape_;
    hasher_ = other.hasher_;
    sets_ = std::move(other.sets_);
    about_ = std::move(other.about_);
    table_ = std::exchange(other.table_, nullptr);
    return *this;
  }

  SetIndexShape shape_;
  AnyHasher hasher_;
  std::vector<Set> sets_;
  Facts about_;
  const std::byte* table_ = nullptr;  // none: it was moved from
};

// Borrows the matrix of a file, which must outlive it.
class SetIndexView : public SetIndexProbes {
 public:
  // Refuses what is not a file of kind `sets`, or does not fit its header.
  PERHAPS_API static Result<SetIndexView> over(const Header& header, const AnyHasher& hasher);
  static Result<SetIndexView> over(const File& file) { return over(file.header(), file.hasher()); }
  static Result<SetIndexView> over(const File&&) = delete;  // The File must outlive the view.

 private:
  using SetIndexProbes::SetIndexProbes;
};

class SetIndex : public SetIndexProbes {
 public:
  // For sets of up to `request.keys` keys each. Throws std::bad_alloc, as add() does.
  SetIndex(const Request& request, const AnyHasher& hasher) : SetIndex(BloomShape::for_keys(request), hasher) {}
  // REQUIRES: column.valid()
  PERHAPS_API SetIndex(BloomShape column, const AnyHasher& hasher);
  PERHAPS_API explicit SetIndex(const SetIndexView& other);
  SetIndex(SetIndex&&) noexcept = default;
  SetIndex& operator=(SetIndex&&) noexcept = default;

  // A classic filter of shape().column under hasher(): Bloom::bytes(), or the table of such a file.
  struct Column {
    std::string name;  // not empty, and not in yet
    std::uint64_t keys;
    Bytes bits;
  };
  // All of them, or none and the reason.
  PERHAPS_API Result<void> add(std::span<const Column> columns);
  Result<void> add(const Column& column) { return add(std::span(&column, 1)); }
  // False: there is no such set.
  PERHAPS_API bool remove(std::string_view name);
  // What the file will say about the index.
  void set_about(Facts about) { about_ = std::move(about); }

  // To a file, atomically, as write_container does.
  PERHAPS_API Result<void> save(const std::string& path) const;

 private:
  void widen(std::uint64_t slots);

  Memory memory_;
};

}  // namespace perhaps
