// CSV as RFC 4180 has it: fields in quotes may hold delimiters, line ends and doubled quotes.
//
// Quotes are counted 64 bytes at a time: a line end is the end of a record if the number of quotes before it is even.
// That holds for doubled quotes, too. A quote where none may be (5" disk) would exchange inside and outside, and rows
// would be swallowed: every quote is checked against its neighbours, and a wrong one is an error, not a guess.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "perhaps/hash.h"
#include "separators.h"

namespace perhaps::cli::csv {

inline constexpr std::byte kQuote{'"'};
inline constexpr std::byte kNewline{'\n'};
inline constexpr std::byte kReturn{'\r'};

// Bit i: the number of bits set in x at or below i is odd.
inline std::uint64_t prefix_xor(std::uint64_t x) noexcept {
  for (int shift = 1; shift < 64; shift *= 2) x ^= x << shift;
  return x;
}

// Walks over text that begins at a record: use(p, ends, count) for every 64 bytes, with the mask of record ends.
// False from `use` ends it. The text is left inside of quotes if `inside` is true afterwards.
template <class Use>
bool for_each_64(Bytes text, Use use) noexcept {
  const std::byte* p = text.data();
  const std::byte* const end = p + text.size();
  std::uint64_t inside = 0;
  std::byte tail[64];
  for (; p < end; p += 64) {
    const std::byte* block = p;
    if (end - p < 64) {
      std::memset(tail, 0, sizeof tail);
      std::memcpy(tail, p, static_cast<std::size_t>(end - p));
      block = tail;
    }
    const std::uint64_t quotes = separators_in_64(block, kQuote);
    std::uint64_t quoted = inside;
    if (quotes != 0) quoted = prefix_xor(quotes) ^ inside;
    inside = 0 - (quoted >> 63);
    if (!use(p, block, separators_in_64(block, kNewline) & ~quoted, quotes, quoted)) break;
  }
  return inside != 0;
}

// As whole_records of records.h.
inline std::size_t whole_records(Bytes text, std::size_t enough) noexcept {
  std::size_t whole = 0;
  for_each_64(text, [&](const std::byte* p, const std::byte*, std::uint64_t ends, std::uint64_t, std::uint64_t) {
    const auto at = static_cast<std::size_t>(p - text.data());
    if (ends == 0) return true;
    whole = at + 64 - static_cast<std::size_t>(std::countl_zero(ends));
    if (whole <= enough) return true;
    // The first end from `enough` on.
    const std::uint64_t from = enough > at ? ~std::uint64_t{0} << (enough - at) : ~std::uint64_t{0};
    if ((ends & from) == 0) return true;
    whole = at + static_cast<std::size_t>(std::countr_zero(ends & from)) + 1;
    return false;
  });
  return whole;
}

// Lines without a byte in them are not records.
inline bool blank(Bytes record) noexcept { return record.empty() || (record.size() == 1 && record[0] == kReturn); }

inline std::uint64_t count_records(Bytes text) noexcept {
  std::uint64_t count = 0;
  const std::byte* start = text.data();
  for_each_64(text, [&](const std::byte* p, const std::byte*, std::uint64_t ends, std::uint64_t, std::uint64_t) {
    for (; ends != 0; ends &= ends - 1) {
      const std::byte* const at = p + std::countr_zero(ends);
      count += !blank({start, at});
      start = at + 1;
    }
    return true;
  });
  const std::byte* const end = text.data() + text.size();
  return count + (start < end && !blank({start, end}));
}

enum class Fault : std::uint8_t { none, stray_quote, unclosed };

// Takes records off the front of `text`, which begins at a record; blank ones are left out. At most `most`. At a fault,
// `text` begins at the record that has it.
inline std::size_t split_records(Bytes& text, std::byte delimiter, Bytes* out, std::size_t most,
                                 Fault& fault) noexcept {
  const std::byte* start = text.data();
  const std::byte* const end = start + text.size();
  std::size_t n = 0;
  // What may stand before an opening quote and after a closing one, across the border of two blocks.
  std::uint64_t before = 1;
  bool closed = false;
  fault = Fault::none;
  bool full = false;
  const bool inside = for_each_64(text, [&](const std::byte* p, const std::byte* block, std::uint64_t ends,
                                            std::uint64_t quotes, std::uint64_t quoted) {
    if (n + 64 > most) {
      full = true;
      return false;
    }
    const std::size_t size = static_cast<std::size_t>(end - p) < 64 ? static_cast<std::size_t>(end - p) : 64;
    if (quotes != 0 || closed) {
      const std::uint64_t border = separators_in_64(block, delimiter) | separators_in_64(block, kNewline) | quotes;
      const std::uint64_t after =
          border | separators_in_64(block, kReturn) | (size == 64 ? 0 : ~std::uint64_t{0} << size);
      const std::uint64_t opening = quotes & quoted;
      const std::uint64_t closing = quotes & ~quoted;
      const bool bad = (opening & ~(border << 1 | before)) != 0 ||
                       (closing & ~(after >> 1 | std::uint64_t{1} << 63)) != 0 || (closed && (after & 1) == 0);
      if (bad) {
        fault = Fault::stray_quote;
        return false;
      }
      closed = closing >> 63 != 0;
    }
    const std::byte last = block[63];
    before = last == delimiter || last == kNewline || last == kQuote;
    for (; ends != 0; ends &= ends - 1) {
      const std::byte* const at = p + std::countr_zero(ends);
      if (!blank({start, at})) out[n++] = {start, at};
      start = at + 1;
    }
    return true;
  });
  if (fault == Fault::none && !full && start != end) {
    if (inside) {
      fault = Fault::unclosed;
    } else if (!blank({start, end})) {
      out[n++] = {start, end};
      start = end;
    } else {
      start = end;
    }
  }
  text = {start, end};
  return n;
}

// The first of these bytes from p on, or `end`.
inline const std::byte* find(const std::byte* p, const std::byte* end, std::byte wanted) noexcept {
  const auto* const at = p == end ? nullptr
                                  : static_cast<const std::byte*>(std::memchr(p, std::to_integer<int>(wanted),
                                                                              static_cast<std::size_t>(end - p)));
  return at == nullptr ? end : at;
}

// Takes a field off the front of `rest`, quotes and all; false if there is none left. `rest` has no bytes of its own
// after the last one: data() is null then.
inline bool next_field(Bytes& rest, std::byte delimiter, Bytes& field) noexcept {
  if (rest.data() == nullptr) return false;
  const std::byte* const begin = rest.data();
  const std::byte* const end = begin + rest.size();
  const std::byte* p = begin;
  while (p != end && *p == kQuote) {  // again behind the first of a doubled quote
    p = find(p + 1, end, kQuote);
    if (p != end) ++p;
  }
  p = find(p, end, delimiter);
  field = {begin, p};
  rest = p == end ? Bytes() : Bytes(p + 1, end);
  return true;
}

// The record without the CR of its line end.
inline Bytes without_return(Bytes record) noexcept {
  return !record.empty() && record.back() == kReturn ? record.first(record.size() - 1) : record;
}

// What a field says: without its quotes, doubled ones once. `out` has room for field.size() bytes; returns how many.
inline std::size_t unquote(Bytes field, std::byte* out) noexcept {
  std::size_t n = 0;
  for (std::size_t i = 1; i + 1 < field.size(); ++i) {
    out[n++] = field[i];
    if (field[i] == kQuote) ++i;  // its double
  }
  return n;
}
inline bool is_quoted(Bytes field) noexcept { return !field.empty() && field.front() == kQuote; }

}  // namespace perhaps::cli::csv
