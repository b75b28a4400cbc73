#include "format/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "hash/fnv.h"
#include "hash/xxh64.h"
#include "sizing/rate_text.h"

namespace perhaps::format {
namespace {

class Always final : public AnyFilter {
 public:
  Always(bool answer, Description about) : answer_(answer), about_(std::move(about)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    return !answer_ || keys.empty() ? 0 : ~std::uint64_t{0} >> (kBatch - keys.size());
  }
  std::uint64_t byte_size() const noexcept override { return about_.bytes; }
  Description describe() const override { return about_; }

 private:
  bool answer_;
  Description about_;
};

}  // namespace

void Piece::append_to(std::string& message) const {
  if (const auto* const text = std::get_if<std::string_view>(&value_)) message += *text;
  if (const auto* const number = std::get_if<std::uint64_t>(&value_)) message += std::to_string(*number);
  if (const auto* const number = std::get_if<std::int64_t>(&value_)) message += std::to_string(*number);
  if (const auto* const number = std::get_if<double>(&value_)) message += std::to_string(*number);
}

Error bad(Errc code, std::string_view format, std::initializer_list<Piece> pieces) {
  std::string text(format);
  text += ": ";
  for (const Piece& piece : pieces) piece.append_to(text);
  return {code, std::move(text)};
}

std::uint64_t Reader::varint() noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const Bytes raw = take(1);
    if (raw.empty()) return 0;
    const auto byte = std::to_integer<std::uint64_t>(raw[0]);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  short_ = true;  // longer than 10 bytes: as malformed as a truncated one
  return 0;
}

Writer& Writer::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
  bytes_.push_back(static_cast<std::byte>(value));
  return *this;
}

// These two are not in the header: when they are inlined one after the other, gcc 12 warns of writes past the end that
// do not exist.
Writer& Writer::add(Bytes bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}
std::span<std::byte> Writer::zeros(std::uint64_t size) {
  bytes_.resize(memory_size(bytes_.size() + size));
  return std::span(bytes_).last(static_cast<std::size_t>(size));
}

Opened one_filter(const Source& source, std::string_view format, std::shared_ptr<const AnyFilter> filter) {
  Opened opened{.format = format, .whole = filter, .seek = nullptr, .entries = {}, .notes = {}};
  opened.entries.push_back(
      {.name = {}, .offset = 0, .size = source.bytes.size(), .format = format, .filter = std::move(filter)});
  return opened;
}

Result<Opened> damaged(const Source& source, std::string_view format, Error why) {
  if (source.on_damage == OnDamage::error) return why;
  Opened opened = one_filter(source, format, always(true, format, "damaged", source.bytes.size()));
  opened.notes.push_back("damaged, so it answers perhaps for every key: " + why.detail);
  return opened;
}

Result<Opened> open_part(const Source& source, std::string_view format, const Codec& part, std::uint64_t offset,
                         std::uint64_t size) {
  const Source inner{.bytes = source.bytes.subspan(offset, size), .file_name = {}, .on_damage = source.on_damage};
  auto opened = part.open(inner, Params(part));
  if (!opened) return bad(opened.error().code, format, opened.error().detail);
  opened->format = format;
  for (Entry& entry : opened->entries) entry.offset += offset;
  return opened;
}

std::shared_ptr<const AnyFilter> always(bool answer, std::string_view format, std::string_view family,
                                        std::uint64_t bytes) {
  Description about;
  about.format = format;
  about.family = family;
  about.bytes = bytes;
  about.fpr = answer ? 1 : 0;
  return std::make_shared<Always>(answer, std::move(about));
}

double predicted_fpr(const AnyFilter& filter, double formula) {
  constexpr std::size_t kColumn = 1024;
  constexpr std::uint64_t kMaxQueries = std::uint64_t{1} << 18;
  constexpr std::uint64_t kEnoughHits = 100;  // for a relative error of a tenth
  if (formula < static_cast<double>(kEnoughHits) / (2 * static_cast<double>(kMaxQueries))) return formula;
  std::array<std::uint64_t, 2 * kColumn> words;
  std::array<Bytes, kColumn> keys;
  std::array<std::uint64_t, kColumn / kBatch> answers;
  for (std::size_t i = 0; i < kColumn; ++i) keys[i] = std::as_bytes(std::span(words)).subspan(16 * i, 16);
  std::uint64_t hits = 0;
  std::uint64_t state = 0;
  std::uint64_t queries = 0;
  // Stop early if there have been only hits: the filter is saturated, and saturated filters are the slowest to query.
  for (; queries < kMaxQueries && !(queries == kMaxQueries / 16 && hits == queries); queries += kColumn) {
    for (std::uint64_t& word : words) word = detail::little_endian(splitmix64(state++));
    filter.may_contain(keys, answers);
    for (const std::uint64_t word : answers) hits += static_cast<std::uint64_t>(std::popcount(word));
  }
  return hits < kEnoughHits ? formula : static_cast<double>(hits) / static_cast<double>(queries);
}

std::vector<std::uint64_t> distinct_xxh64(std::span<const Bytes> keys) {
  std::vector<std::uint64_t> digests(keys.size());
  std::transform(keys.begin(), keys.end(), digests.begin(), [](Bytes key) { return xxh64(key, 0); });
  std::sort(digests.begin(), digests.end());
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

double fill_of(Bytes table, std::uint64_t bits) noexcept {
  if (bits == 0) return 0;
  std::uint64_t set = 0;
  std::uint64_t at = 0;
  for (; (at + 8) * 8 <= bits; at += 8)
    set += static_cast<std::uint64_t>(std::popcount(detail::load<std::uint64_t>(table.data() + at)));
  for (; at * 8 < bits; ++at) {
    const unsigned used = bits - at * 8 >= 8 ? 0xffu : 0xffu >> (8 - (bits - at * 8));
    set += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned>(table.data()[at]) & used));
  }
  return static_cast<double>(set) / static_cast<double>(bits);
}

bool ends_with(std::string_view text, std::string_view end) noexcept {
  if (text.size() < end.size()) return false;
  return std::equal(end.begin(), end.end(), text.end() - end.size(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  });
}

std::string percent_text(double rate) { return detail::rate_text(rate); }

}  // namespace perhaps::format
