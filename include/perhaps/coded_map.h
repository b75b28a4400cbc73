// The coded map: as a ribbon map (ribbon_map.h), for values of which some are much more frequent than others. A key
// takes about as many bits as the entropy of the values, not as many as the largest value has.
//
//   auto map = CodedMap::build(digests, values);        // 99 % of the keys have the value 0: 0.09 bits per key
//
// Two ways to spend fewer bits on frequent values, one behind the other:
//
//   peel     if one value v has more than two thirds of the keys: a ribbon filter of c columns of the *other* keys.
//            What it denies has the value v. Of the keys with v it passes one in 2^c; a map of one bit, over those and
//            over the others, says which they are. The others go on. With a share q of others this takes
//            q c + q + (1 - q) / 2^c bits per key; c is the number that makes it least.
//   code     what is left gets a prefix-free code (Huffman), and bit i of the codes is a map of one bit over the keys
//            whose code has more than i bits.
//
// Measured at 1e6 keys (coded_map_test), beside the entropy: values with P(k) = 2^-(k+1) take 1.024 of it, with
// P(k) = 3/4 4^-k 1.107, 99:1 1.094. A code spends whole bits, and a peel at q = 1/4 has 1.078 of the entropy before
// any ribbon: that is the worst case. By calculation, codes alone would take 1.23 for the second and 12 for the third,
// and a filter whose passed keys are told apart by the code 1.12 for the second.
//
// The table: a head of numbers, each in groups of seven bits, the lowest first, with 128 added to all but the last;
// then the tables of the parts, each from a multiple of 8 bytes on, with nothing between them.
//
//   | keys | check bits | peels | code lengths | symbols |
//   | value, columns: of each peel | codes of length 1, 2, ..: how many | symbols: their values, by code |
//   | parts: of each, how many numbers its shape has, and the numbers |
//
// Parts, in this order: with check bits a ribbon filter of all keys with as many columns; of each peel its filter
// and its map; a map for each code length. Filters have the numbers of ribbon.h and maps those
// of ribbon_map.h. Part j knows a key by the word m(h ^ (j + 1)) * kLayer[0] (ribbon.h), so that no two parts fail
// together. Codes are canonical: ascending by length, and by the order of the symbols within a length. One symbol has
// the empty code.
//
// Building takes 16 bytes per key in memory besides the tables. Bytes depend on the set of keys and values alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "perhaps/build_options.h"
#include "perhaps/ribbon_map.h"

namespace perhaps {

// A coded map without a hasher: words (hash.h) to values. Borrows the bytes.
class CodedTable {
 public:
  static constexpr std::string_view family = "coded";
  static constexpr Kind kind = Kind::coded;  // in files

  // Whatever the bytes say, lookups in a table that passes stay inside it.
  PERHAPS_API static Result<CodedTable> over(Bytes table);
  // A map from words[i] to values[i]; `conflict` becomes a word that was given two values.
  PERHAPS_API static Result<Memory> build(std::span<const std::uint64_t> words, std::span<const std::uint64_t> values,
                                          std::uint32_t check_bits, const BuildOptions& options,
                                          std::optional<std::uint64_t>* conflict);

  // As RibbonMapLayout's; the digests of `batch` become words here.
  PERHAPS_API void find(std::span<const std::uint64_t> digests, std::uint64_t spread, std::uint64_t* values,
                        std::uint64_t* found) const noexcept;
  Bytes bytes() const noexcept { return bytes_; }
  std::uint64_t keys() const noexcept { return keys_; }
  std::uint32_t check_bits() const noexcept { return check_bits_; }
  // Peels, code lengths and symbols.
  PERHAPS_API Facts facts() const;

 private:
  struct Part {
    bool is_filter;
    RibbonShape filter;
    RibbonMapShape map;
    const std::byte* table;
  };
  struct Peel {
    std::uint64_t value;
    std::uint64_t columns;
  };
  void find_some(const std::uint64_t* words, std::size_t count, std::uint64_t* values,
                 std::uint64_t* found) const noexcept;
  // Bit i: the filter, or the map's bit, says yes; its keys are words[which[i]].
  void find_part(std::size_t part, const std::uint64_t* words, std::span<const std::uint16_t> which,
                 std::span<std::uint64_t> answers) const noexcept;

  Bytes bytes_;
  std::uint64_t keys_ = 0;
  std::uint32_t check_bits_ = 0;
  std::vector<Peel> peels_;
  std::vector<std::uint64_t> lengths_;  // codes of each length
  std::vector<std::uint64_t> symbols_;
  std::vector<Part> parts_;
};

// Owns a coded map. Not copied: build another, or share it. Moved from, it is a map of no keys, which finds nothing.
template <Hasher H>
class BasicCodedMap {
 public:
  // What keys are hashed with.
  using hasher_type = H;
  using digest = Digest<H>;

  // A map from digests[i] to values[i], in any order; `check_bits` as in MapRequest. Errors are those of
  // RibbonMap::build. Throws std::bad_alloc.  REQUIRES: as many values as digests
  static Result<BasicCodedMap> build(std::span<const digest> digests, std::span<const std::uint64_t> values,
                                     std::uint32_t check_bits = 0, const BuildOptions& options = {}, H hasher = H{},
                                     std::optional<digest>* conflict = nullptr) {
    std::vector<std::uint64_t> words(digests.size());
    for (std::size_t i = 0; i < digests.size(); ++i) words[i] = digests[i].word();
    std::optional<std::uint64_t> word;
    auto memory = CodedTable::build(words, values, check_bits, options, &word);
    if (word && conflict != nullptr) *conflict = digest::made_by(hasher, *word * detail::unspread_of<H>());
    if (!memory) return std::move(memory).error();
    auto table = CodedTable::over(memory->bytes());
    if (!table) return std::move(table).error();
    return BasicCodedMap(*std::move(memory), *std::move(table), hasher);
  }
  // Over bytes that someone else keeps.
  static Result<BasicCodedMap> over(Bytes bytes, H hasher = H{}) {
    auto table = CodedTable::over(bytes);
    if (!table) return std::move(table).error();
    return BasicCodedMap(Memory(), *std::move(table), hasher);
  }

  BasicCodedMap(BasicCodedMap&& other) noexcept
      : memory_(std::move(other.memory_)), table_(std::exchange(other.table_, CodedTable())), hasher_(other.hasher_) {}
  BasicCodedMap& operator=(BasicCodedMap&& other) noexcept {
    memory_ = std::move(other.memory_);
    table_ = std::exchange(other.table_, CodedTable());
    hasher_ = other.hasher_;
    return *this;
  }
  BasicCodedMap(const BasicCodedMap&) = delete;
  BasicCodedMap& operator=(const BasicCodedMap&) = delete;
  ~BasicCodedMap() = default;

  H hasher() const noexcept { return hasher_; }
  Bytes bytes() const noexcept { return table_.bytes(); }
  std::uint64_t byte_size() const noexcept { return table_.bytes().size(); }
  std::uint64_t keys() const noexcept { return table_.keys(); }
  const CodedTable& table() const noexcept { return table_; }  // without the hasher

  // Nothing: the key is not in the map.
  std::optional<std::uint64_t> find(digest d) const noexcept {
    std::uint64_t value = 0;
    std::uint64_t found = 0;
    find(std::span(&d, 1), std::span(&value, 1), std::span(&found, 1));
    return found != 0 ? std::optional(value) : std::nullopt;
  }
  // As RibbonMap's column.  REQUIRES: values.size() >= digests.size() and found.size() * kBatch >= digests.size()
  void find(std::span<const digest> digests, std::span<std::uint64_t> values,
            std::span<std::uint64_t> found) const noexcept {
    std::array<std::uint64_t, 4 * kBatch> words;
    for (std::size_t from = 0; from < digests.size(); from += words.size()) {
      const std::size_t count = std::min(words.size(), digests.size() - from);
      for (std::size_t i = 0; i < count; ++i) {
        digests[from + i].check(hasher_);
        words[i] = digests[from + i].word();
      }
      table_.find({words.data(), count}, 1, values.data() + from, found.data() + from / kBatch);
    }
  }
  // The parts are small: nothing to be gained.
  void prefetch(digest) const noexcept {}

 private:
  BasicCodedMap(Memory memory, CodedTable table, H hasher)
      : memory_(std::move(memory)), table_(std::move(table)), hasher_(hasher) {}

  Memory memory_;
  CodedTable table_;
  [[no_unique_address]] H hasher_;
};

using CodedMap = BasicCodedMap<Hash>;

}  // namespace perhaps
