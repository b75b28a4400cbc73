// What codecs are made of: readers and writers of numbers, the handling of damage, and estimates for describe().
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/format/format.h"
#include "perhaps/memory.h"

namespace perhaps::format {

using Buffer = std::vector<std::byte>;

// Reads numbers from the front of a byte string. Past the end every value is zero and is_short() is true, so a header
// can be read in one go and checked once.
class Reader {
 public:
  explicit Reader(Bytes bytes) noexcept : bytes_(bytes), rest_(bytes) {}

  template <std::unsigned_integral Word>
  Word le() noexcept {
    const Bytes raw = take(sizeof(Word));
    return raw.empty() ? Word{0} : detail::load<Word>(raw.data());
  }
  template <std::unsigned_integral Word>
  Word be() noexcept {
    return detail::byte_swapped(le<Word>());
  }
  std::uint64_t varint() noexcept;  // LEB128, at most 10 bytes
  Bytes take(std::uint64_t size) noexcept {
    if (size > rest_.size()) {
      short_ = true;
      rest_ = {};
      return {};
    }
    const Bytes taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  bool is_short() const noexcept { return short_; }
  Bytes rest() const noexcept { return rest_; }
  std::uint64_t at() const noexcept { return bytes_.size() - rest_.size(); }

 private:
  Bytes bytes_;
  Bytes rest_;
  bool short_ = false;
};

class Writer {
 public:
  template <std::unsigned_integral Word>
  Writer& le(Word word) {
    word = detail::little_endian(word);
    return add(std::as_bytes(std::span(&word, 1)));
  }
  template <std::unsigned_integral Word>
  Writer& be(Word word) {
    return le(detail::byte_swapped(word));
  }
  Writer& varint(std::uint64_t value);
  Writer& add(Bytes bytes);
  // `size` zero bytes, to be filled in; valid until the next call.
  std::span<std::byte> zeros(std::uint64_t size);
  std::uint64_t size() const noexcept { return bytes_.size(); }
  Buffer done() && { return std::move(bytes_); }

 private:
  Buffer bytes_;
};

// A piece of a message: text, or a number in decimal.
class Piece {
 public:
  Piece(std::string_view text) noexcept : value_(text) {}
  Piece(std::unsigned_integral auto number) noexcept : value_(std::uint64_t{number}) {}
  Piece(std::signed_integral auto number) noexcept : value_(std::int64_t{number}) {}
  Piece(double number) noexcept : value_(number) {}
  void append_to(std::string& message) const;

 private:
  std::variant<std::string_view, std::uint64_t, std::int64_t, double> value_;
};

// "guava: promises 56 bytes of bits, has 24". Every codec has a dozen of these, of different pieces: one function, so
// that they take little room.
Error bad(Errc code, std::string_view format, std::initializer_list<Piece> pieces);
template <class... Parts>
Error bad(Errc code, std::string_view format, const Parts&... parts) {
  return bad(code, format, {Piece(parts)...});
}

// A source that is one filter and nothing else.
Opened one_filter(const Source& source, std::string_view format, std::shared_ptr<const AnyFilter> filter);
// The result for a damaged source, by source.on_damage: the error itself, or a filter that always answers *perhaps* and
// a note that says why.
Result<Opened> damaged(const Source& source, std::string_view format, Error why);

// Opens the only filter of a file, which is embedded there in the format `part`.
// REQUIRES: offset + size <= source.bytes.size()
Result<Opened> open_part(const Source& source, std::string_view format, const Codec& part, std::uint64_t offset,
                         std::uint64_t size);

// A filter that gives the same answer for every key; `family` says why: "empty", "not built", "damaged".
std::shared_ptr<const AnyFilter> always(bool answer, std::string_view format, std::string_view family,
                                        std::uint64_t bytes = 0);

// The false-positive rate of a filter in its present state, measured with random keys, because the probes of each
// system deviate from independence in their own way and no formula covers them all. Returns `formula` if the rate is
// too low to measure like this.
double predicted_fpr(const AnyFilter& filter, double formula);

// The XXH64 digests of the keys, ascending and without duplicates.
std::vector<std::uint64_t> distinct_xxh64(std::span<const Bytes> keys);

// Share of set bits among the first `bits` of a table.
double fill_of(Bytes table, std::uint64_t bits) noexcept;

bool ends_with(std::string_view text, std::string_view end) noexcept;  // ignoring case

// Such as "1.23 %", for Description::more.
std::string percent_text(double rate);

}  // namespace perhaps::format
