#include "perhaps/engine/filter_block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <stdexcept>

#include "hash/checksum.h"
#include "perhaps/detail/bits.h"
#include "perhaps/file/container.h"

namespace perhaps {
namespace {

using detail::load;
using detail::store;

constexpr std::uint64_t kMagic = 0x4273706168726570u;  // "perhapsB"
constexpr std::size_t kSumBytes = 4;                   // of a piece
constexpr std::size_t kTrailer = FilterBlock::kTrailerBytes;

constexpr std::size_t kPiecesAt = 0;
constexpr std::size_t kIndexBytesAt = 8;
constexpr std::size_t kSeedAt = 16;
constexpr std::size_t kParameterAt = 24;
constexpr std::size_t kModeAt = 28;
constexpr std::size_t kContentsAt = 29;
constexpr std::size_t kExtractorAt = 30;
constexpr std::size_t kSchemeAt = 31;
constexpr std::size_t kChecksumAt = 32;
constexpr std::size_t kMagicAt = 40;

constexpr unsigned kWholeKeys = 1;
constexpr unsigned kPrefixes = 2;

void put_varint(std::vector<std::byte>& out, std::uint64_t n) {
  for (; n >= 128; n >>= 7) out.push_back(static_cast<std::byte>(n | 128));
  out.push_back(static_cast<std::byte>(n));
}
// Takes a number off the front of `bytes`.
std::optional<std::uint64_t> take_varint(Bytes& bytes) noexcept {
  std::uint64_t n = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(bytes.front());
    bytes = bytes.subspan(1);
    n |= (byte & 127) << shift;
    if (byte < 128) return n;
  }
  return std::nullopt;
}

std::uint32_t sum_of(Bytes packed) noexcept { return static_cast<std::uint32_t>(checksum_of(packed)); }

bool equal(Bytes a, Bytes b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
bool less(Bytes a, Bytes b) noexcept {
  const int order = a.empty() || b.empty() ? 0 : std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return order != 0 ? order < 0 : a.size() < b.size();
}

std::size_t common_bytes(Bytes a, Bytes b) noexcept {
  std::size_t common = 0;
  while (common < a.size() && common < b.size() && a[common] == b[common]) ++common;
  return common;
}

// The shortest beginning of `next` that is above `last`.  REQUIRES: last < next
Bytes separator(Bytes last, Bytes next) noexcept {
  return next.first(std::min(next.size(), common_bytes(last, next) + 1));
}

std::uint64_t digest_under(const AnyHasher& hasher, Bytes key) noexcept {
  return std::visit([&](const auto& h) { return h(key).value; }, hasher);
}

// A piece is a packed filter and its checksum.
PackedView view_of(Bytes piece, bool verify) noexcept {
  if (piece.size() < kSumBytes) return PackedView::over({});
  const Bytes packed = piece.first(piece.size() - kSumBytes);
  if (verify && sum_of(packed) != load<std::uint32_t>(piece.data() + packed.size())) return PackedView::over({});
  return PackedView::over(packed);
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ prefixes

std::optional<Bytes> PrefixExtractor::operator()(Bytes key) const noexcept {
  switch (kind_) {
    case Kind::none:
      break;
    case Kind::fixed:
      if (key.size() >= parameter_) return key.first(parameter_);
      break;
    case Kind::capped:
      return key.first(std::min<std::size_t>(key.size(), parameter_));
    case Kind::delimiter: {
      const auto found = std::find(key.begin(), key.end(), static_cast<std::byte>(parameter_));
      if (found != key.end()) return key.first(static_cast<std::size_t>(found - key.begin()) + 1);
      break;
    }
    case Kind::lengths:
    case Kind::delimiters: {
      std::optional<Bytes> longest;
      for (auto next = longer_than(0, key); next; next = longer_than(next->size(), key)) longest = next;
      return longest;
    }
  }
  return std::nullopt;
}

std::optional<Bytes> PrefixExtractor::longer_than(std::size_t size, Bytes key) const noexcept {
  if (kind_ == Kind::lengths) {
    const std::uint32_t longer = size >= kMaxLength ? 0 : parameter_ >> size;
    const std::size_t next = size + static_cast<std::size_t>(std::countr_zero(longer)) + 1;
    if (longer != 0 && next <= key.size()) return key.first(next);
  } else if (kind_ == Kind::delimiters) {
    const auto mark = static_cast<std::byte>(parameter_);
    const auto from = key.begin() + static_cast<std::ptrdiff_t>(std::min(size, key.size()));
    const auto found = std::find(from, key.end(), mark);
    if (found != key.end() && std::count(key.begin(), found, mark) < static_cast<std::ptrdiff_t>(parameter_ >> 8 & 255))
      return key.first(static_cast<std::size_t>(found - key.begin()) + 1);
  } else if (const auto only = (*this)(key); only && only->size() > size) {
    return only;
  }
  return std::nullopt;
}

std::optional<Bytes> PrefixExtractor::of_target(Bytes target) const noexcept {
  if (kind_ == Kind::capped && target.size() < parameter_) return std::nullopt;
  return (*this)(target);
}

// ------------------------------------------------------------------------------------------------------------ building

FilterBlockBuilder::FilterBlockBuilder(FilterBlockOptions options) : options_(options) {
  const std::string name(name_of(options_.family));
  if (!can_pack(options_.family)) throw std::invalid_argument("filter block: a " + name + " filter cannot be packed");
  if (options_.mode == FilterMode::per_block && !can_pack_few(options_.family))
    throw std::invalid_argument("filter block: for the few keys of a data block a " + name + " filter is useless");
  assert(options_.bits_per_key > 0);
  assert(options_.whole_keys || options_.prefix.kind() != PrefixExtractor::Kind::none);
  const double keys = static_cast<double>(options_.piece_bytes) * 8 / options_.bits_per_key;
  piece_keys_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(keys));
}

// A step that throws may have lost keys.
template <class Step>
void FilterBlockBuilder::guarded(Step step) {
  try {
    step();
  } catch (...) {
    sound_ = false;
    throw;
  }
}

void FilterBlockBuilder::add(Bytes user_key) {
  guarded([&] { take(user_key); });
}

void FilterBlockBuilder::take(Bytes user_key) {
  if (any_ && equal(last_, user_key)) return;
  if (options_.mode == FilterMode::partitioned) {
    sound_ &= !any_ || less(last_, user_key);
    if (digests_.size() >= piece_keys_) {
      end_piece();
      const Bytes first = separator(last_, user_key);
      first_.assign(first.begin(), first.end());
      any_prefix_ = false;
    }
  }
  const std::size_t common = options_.prefix.several() && any_prefix_ ? common_bytes(last_, user_key) : 0;
  any_ = true;
  last_.assign(user_key.begin(), user_key.end());
  if (options_.whole_keys) digests_.push_back(digest_under(options_.hasher, user_key));
  if (options_.prefix.several()) return take_prefixes(user_key, common);
  const auto prefix = options_.prefix(user_key);
  if (!prefix || (any_prefix_ && equal(last_prefix_, *prefix))) return;
  any_prefix_ = true;
  last_prefix_.assign(prefix->begin(), prefix->end());
  digests_.push_back(digest_under(options_.hasher, *prefix));
}

// A prefix inside the bytes that the key shares with the one before it is a prefix of that one, too: each of these
// extractors decides by the bytes of a prefix alone.
void FilterBlockBuilder::take_prefixes(Bytes user_key, std::size_t common) {
  for (auto next = options_.prefix.longer_than(common, user_key); next;
       next = options_.prefix.longer_than(next->size(), user_key)) {
    digests_.push_back(digest_under(options_.hasher, *next));
  }
  any_prefix_ = true;
}

void FilterBlockBuilder::end_piece() {
  const std::vector<std::byte> packed =
      sound_ ? pack(options_.family, std::move(digests_), options_.bits_per_key) : std::vector<std::byte>(1);
  digests_ = {};
  std::array<std::byte, kSumBytes> sum;
  store(sum.data(), sum_of(packed));
  out_.insert(out_.end(), packed.begin(), packed.end());
  out_.insert(out_.end(), sum.begin(), sum.end());
  put_varint(index_, packed.size() + kSumBytes);
  if (options_.mode == FilterMode::partitioned) {
    put_varint(index_, first_.size());
    index_.insert(index_.end(), first_.begin(), first_.end());
  }
  ++pieces_;
}

void FilterBlockBuilder::next_block() {
  assert(options_.mode == FilterMode::per_block);
  guarded([&] { end_piece(); });
  any_ = false;  // versions of a key may continue in the next block: it belongs to both
  any_prefix_ = false;
}

std::vector<std::byte> FilterBlockBuilder::finish() {
  if (!sound_) {
    out_.clear();
    index_.clear();
    first_.clear();
    pieces_ = 0;
  }
  if (options_.mode != FilterMode::per_block || !digests_.empty()) end_piece();
  std::array<std::byte, kTrailer> trailer{};
  const Header identity = Header::of(options_.hasher);
  const bool prefixes = options_.prefix.kind() != PrefixExtractor::Kind::none;
  store<std::uint64_t>(trailer.data() + kPiecesAt, pieces_);
  store<std::uint64_t>(trailer.data() + kIndexBytesAt, index_.size());
  store<std::uint64_t>(trailer.data() + kSeedAt, identity.seed);
  store<std::uint32_t>(trailer.data() + kParameterAt, options_.prefix.parameter());
  trailer[kModeAt] = static_cast<std::byte>(options_.mode);
  trailer[kContentsAt] = static_cast<std::byte>((options_.whole_keys ? kWholeKeys : 0) | (prefixes ? kPrefixes : 0));
  trailer[kExtractorAt] = static_cast<std::byte>(options_.prefix.kind());
  trailer[kSchemeAt] = static_cast<std::byte>(identity.scheme);
  Checksum sum;
  sum.add(index_);
  sum.add(Bytes(trailer).first(kChecksumAt));
  store<std::uint64_t>(trailer.data() + kChecksumAt, sum.value());
  store<std::uint64_t>(trailer.data() + kMagicAt, kMagic);
  out_.insert(out_.end(), index_.begin(), index_.end());
  out_.insert(out_.end(), trailer.begin(), trailer.end());
  return std::move(out_);
}

// ------------------------------------------------------------------------------------------------------------- opening

bool FilterBlock::broken(std::string why) {
  *this = FilterBlock();
  damage_ = "filter block: " + std::move(why);
  return false;
}

std::optional<std::uint64_t> FilterBlock::tail_bytes(Bytes trailer) noexcept {
  if (trailer.size() < kTrailer) return std::nullopt;
  const std::byte* const at = trailer.data() + trailer.size() - kTrailer;
  const auto index_bytes = load<std::uint64_t>(at + kIndexBytesAt);
  if (load<std::uint64_t>(at + kMagicAt) != kMagic || index_bytes > UINT64_MAX / 2) return std::nullopt;
  return index_bytes + kTrailer;
}

// `pieces_bytes`: where the pieces must end, or UINT64_MAX if it is not known.
bool FilterBlock::read_tail(Bytes tail, std::uint64_t pieces_bytes, const Options& options) {
  const auto size = tail_bytes(tail);
  if (!size) return broken("no trailer");
  if (*size > tail.size()) {
    return broken("index and trailer have " + std::to_string(*size) + " bytes, there are " +
                  std::to_string(tail.size()));
  }
  tail = tail.last(*size);
  const std::byte* const at = tail.data() + tail.size() - kTrailer;
  if (checksum_of(tail.first(tail.size() - kTrailer + kChecksumAt)) != load<std::uint64_t>(at + kChecksumAt)) {
    return broken("the index does not match its checksum");
  }
  const auto mode = std::to_integer<unsigned>(at[kModeAt]);
  const auto contents = std::to_integer<unsigned>(at[kContentsAt]);
  const auto extractor = std::to_integer<unsigned>(at[kExtractorAt]);
  if (mode > 2 || contents == 0 || contents > 3 || extractor > 5 || ((contents & kPrefixes) != 0) != (extractor != 0)) {
    return broken("unknown mode, contents or extractor");
  }
  const Header identity = Header::of(options.hasher);
  if (std::to_integer<std::uint32_t>(at[kSchemeAt]) != static_cast<std::uint32_t>(identity.scheme) ||
      load<std::uint64_t>(at + kSeedAt) != identity.seed) {
    return broken("not hashed by " + std::string(name_of(options.hasher)) + " under this seed or key");
  }
  mode_ = FilterMode{static_cast<std::uint8_t>(mode)};
  whole_keys_ = (contents & kWholeKeys) != 0;
  prefixes_ = (contents & kPrefixes) != 0;
  prefix_ = PrefixExtractor(PrefixExtractor::Kind{static_cast<std::uint8_t>(extractor)},
                            load<std::uint32_t>(at + kParameterAt));
  hasher_ = options.hasher;
  verify_ = options.verify;
  const auto count = load<std::uint64_t>(at + kPiecesAt);
  Bytes index = tail.first(tail.size() - kTrailer);
  // Two bytes or more a piece, or one: room for them is justified.
  if (count > index.size() || (mode_ != FilterMode::per_block && count == 0))
    return broken("an index that is too short");
  pieces_.reserve(count);
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bytes = take_varint(index);
    if (!bytes || *bytes < kSumBytes || *bytes > UINT64_MAX / 2 - offset) return broken("an index that is cut short");
    Bytes first;
    if (mode_ == FilterMode::partitioned) {
      const auto length = take_varint(index);
      if (!length || *length > index.size()) return broken("an index that is cut short");
      first = index.first(*length);
      index = index.subspan(*length);
      if (i != 0 && !less(pieces_.back().first, first)) return broken("an index that is out of order");
    }
    pieces_.push_back({offset, *bytes, first});
    offset += *bytes;
  }
  if (!index.empty()) return broken("an index that is too long");
  if (pieces_bytes != UINT64_MAX && offset != pieces_bytes) {
    return broken("pieces of " + std::to_string(offset) + " bytes in " + std::to_string(pieces_bytes));
  }
  damage_.clear();
  return true;
}

FilterBlock FilterBlock::over(Bytes block, const Options& options) {
  FilterBlock filter;
  const auto tail = tail_bytes(block);
  const std::uint64_t pieces_bytes = tail && *tail <= block.size() ? block.size() - *tail : 0;
  if (!filter.read_tail(block, pieces_bytes, options)) return filter;
  for (const Piece& piece : filter.pieces_) {
    filter.views_.push_back(view_of(block.subspan(piece.offset, piece.size), options.verify));
    if (!filter.views_.back().usable()) filter.damage_ = "filter block: a piece that makes no sense";
  }
  return filter;
}

FilterBlock FilterBlock::lazy(Bytes tail, Load load, const Options& options) {
  FilterBlock filter;
  if (filter.read_tail(tail, UINT64_MAX, options)) filter.load_ = std::move(load);
  return filter;
}

// ------------------------------------------------------------------------------------------------------------- queries

bool FilterBlock::query(std::uint64_t piece, std::uint64_t digest) const noexcept {
  if (piece >= pieces_.size()) return true;
  const auto i = static_cast<std::size_t>(piece);
  if (!views_.empty()) return views_[i].may_contain(digest);
  Loaded keep;
  return fetch(i, keep).may_contain(digest);
}

PackedView FilterBlock::fetch(std::size_t piece, Loaded& keep) const noexcept {
  try {
    keep = load_(pieces_[piece].offset, pieces_[piece].size);
    if (keep.bytes.size() == pieces_[piece].size) return view_of(keep.bytes, verify_);
  } catch (...) {
    // Counts as a loader that found nothing.
  }
  return PackedView::over({});
}

std::size_t FilterBlock::piece_of(Bytes key) const noexcept {
  if (mode_ != FilterMode::partitioned || pieces_.empty()) return 0;
  const auto above = std::upper_bound(pieces_.begin() + 1, pieces_.end(), key,
                                      [](Bytes k, const Piece& piece) { return less(k, piece.first); });
  return static_cast<std::size_t>(above - pieces_.begin()) - 1;
}

bool FilterBlock::knows(Bytes key) const noexcept { return whole_keys_ || (prefixes_ && prefix_(key)); }

std::uint64_t FilterBlock::digest_of(Bytes key) const noexcept {
  if (!whole_keys_ && prefixes_) key = prefix_(key).value_or(key);
  return digest_under(hasher_, key);
}

bool FilterBlock::may_contain(Bytes key, std::uint64_t digest) const noexcept {
  if (mode_ == FilterMode::per_block || !knows(key)) return true;
  return query(piece_of(key), digest);
}

bool FilterBlock::may_contain(std::uint64_t block, Bytes key, std::uint64_t digest) const noexcept {
  if (mode_ != FilterMode::per_block || !knows(key)) return true;
  return query(block, digest);
}

std::uint64_t FilterBlock::may_contain(std::span<const Bytes> keys) const noexcept {
  assert(keys.size() <= kBatch);
  std::array<std::uint64_t, kBatch> digests;
  for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = digest_of(keys[i]);
  return may_contain(keys, std::span<const std::uint64_t>(digests.data(), keys.size()));
}

std::uint64_t FilterBlock::may_contain(std::span<const Bytes> keys,
                                       std::span<const std::uint64_t> digests) const noexcept {
  assert(keys.size() <= kBatch && digests.size() == keys.size());
  std::uint64_t answers = 0;
  if (mode_ == FilterMode::full && !views_.empty()) {
    views_[0].may_contain(digests, std::span(&answers, 1));
    for (std::size_t i = 0; i < keys.size() && !whole_keys_; ++i) answers |= std::uint64_t{!knows(keys[i])} << i;
    return answers;
  }
  if (mode_ != FilterMode::per_block && load_) {
    Loaded keep;
    PackedView view = PackedView::over({});
    std::size_t loaded = pieces_.size();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool known = knows(keys[i]);
      const std::size_t piece = piece_of(keys[i]);
      if (known && piece != loaded) view = fetch(loaded = piece, keep);
      answers |= std::uint64_t{!known || view.may_contain(digests[i])} << i;
    }
    return answers;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) prefetch(keys[i], digests[i]);
  for (std::size_t i = 0; i < keys.size(); ++i) answers |= std::uint64_t{may_contain(keys[i], digests[i])} << i;
  return answers;
}

void FilterBlock::prefetch(Bytes key, std::uint64_t digest) const noexcept {
  if (views_.empty() || mode_ == FilterMode::per_block) return;
  views_[piece_of(key)].prefetch(digest);
}

bool FilterBlock::may_contain_prefix(Bytes target) const noexcept {
  if (!prefixes_ || mode_ == FilterMode::per_block) return true;
  const auto prefix = prefix_.of_target(target);
  if (!prefix) return true;
  // The first key with the prefix, if there is one, is in the piece that the prefix itself would be in: a piece begins
  // with the shortest text above the piece before it, and if that has no key with the prefix, with no more than the
  // prefix.
  return query(piece_of(*prefix), digest_under(hasher_, *prefix));
}

bool FilterBlock::may_contain_prefix(std::uint64_t block, Bytes target) const noexcept {
  if (!prefixes_ || mode_ != FilterMode::per_block) return true;
  const auto prefix = prefix_.of_target(target);
  return !prefix || query(block, digest_under(hasher_, *prefix));
}

}  // namespace perhaps
