// rocksdb-legacy, rocksdb-fastlocal, rocksdb-ribbon: single filters, as stored in a block of a table. rocksdb.h shows
// the bytes.
#include "format/rocksdb.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "format/registry.h"

namespace perhaps::format {
namespace rocksdb {
namespace {

// A rate as RocksDB estimates it: half of the blocks hold one standard deviation more keys than the mean, the other
// half one less.
double line_fpr(double bits_per_key, double probes) noexcept {
  const auto standard = [&](double bits) { return std::pow(1.0 - std::exp(-probes / bits), probes); };
  const double keys = 512.0 / bits_per_key;
  const double deviation = std::sqrt(keys);
  return (standard(512.0 / (keys + deviation)) + standard(512.0 / (keys - deviation))) / 2;
}

template <class Layout>
class BlobFilter final : public AnyFilter {
 public:
  BlobFilter(typename Layout::Shape shape, Bytes table, std::string_view trailing) noexcept
      : shape_(shape), table_(table), trailing_(trailing) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    std::array<typename Layout::word, kBatch> hashes;
    for (std::size_t i = 0; i < keys.size(); ++i) hashes[i] = Layout::hash(keys[i]);
    return rocksdb::may_contain<Layout>(shape_, table_.data(), hashes.data(), keys.size(),
                                        detail::far_away(table_.size()));
  }
  std::uint64_t byte_size() const noexcept override { return table_.size(); }

  Description describe() const override {
    Description d;
    d.format = Layout::name;
    d.hash = Layout::hash_name;
    d.bits = shape_.bits();
    d.bytes = table_.size();
    d.fill = fill_of(table_, shape_.bits());
    if constexpr (std::is_same_v<Layout, Ribbon128>) {
      d.family = "ribbon";
      d.fpr = predicted_fpr(*this, shape_.fpr());
      d.more = {
          {"blocks", std::to_string(shape_.blocks) + " of 128 slots"},
          {"columns", std::to_string(shape_.columns) +
                          (shape_.narrow == 0 ? std::string()
                                              : ", one less in " + std::to_string(shape_.narrow) + " of the blocks")}};
    } else {
      const auto probes = static_cast<double>(shape_.probes);
      d.family = "line";
      d.probes = shape_.probes;
      d.keys_estimated = d.fill < 1 ? -std::log1p(-d.fill) * static_cast<double>(d.bits) / probes : 0;
      const double formula = std::pow(d.fill, probes);
      const double lines =
          d.keys_estimated > 0 ? line_fpr(static_cast<double>(d.bits) / d.keys_estimated, probes) : formula;
      d.fpr = predicted_fpr(*this, std::clamp(lines, formula, 1.0));
    }
    if (!trailing_.empty()) d.more.emplace_back("unused", trailing_);
    return d;
  }

 private:
  typename Layout::Shape shape_;
  Bytes table_;
  std::string trailing_;
};

template <class Layout>
std::shared_ptr<const AnyFilter> over(typename Layout::Shape shape, Bytes body) {
  const std::uint64_t unused = body.size() - shape.bytes();
  return std::make_shared<BlobFilter<Layout>>(shape, body.first(shape.bytes()),
                                              unused == 0 ? "" : std::to_string(unused) + " bytes before the trailer");
}

// The last five bytes.
struct Trailer {
  int marker;
  std::uint8_t second, third;
  std::uint32_t rest;  // in a legacy filter: the number of lines

  explicit Trailer(Bytes five) noexcept {
    Reader in(five);
    const int first = in.le<std::uint8_t>();
    marker = first < 128 ? first : first - 256;
    rest = in.le<std::uint32_t>();
    second = static_cast<std::uint8_t>(rest);
    third = static_cast<std::uint8_t>(rest >> 8);
  }
};

std::optional<Error> reserved(std::string_view format, const Trailer& trailer) {
  if (trailer.marker < -2) return bad(Errc::unsupported, format, "reserved marker ", trailer.marker);
  if (trailer.marker == -1) {
    if (trailer.second != 0) return bad(Errc::unsupported, format, "unknown Bloom filter ", trailer.second);
    if (trailer.third >> 5 != 0)
      return bad(Errc::unsupported, format, "blocks of ", 64 << (trailer.third >> 5), " bytes are not defined");
    const std::uint32_t probes = trailer.third & 31;
    if (probes < 1 || probes > 30) return bad(Errc::bad_parameter, format, "reserved encoding (", probes, " probes)");
    if (trailer.rest >> 16 != 0) return bad(Errc::unsupported, format, "reserved bytes are not zero");
  }
  return {};
}

}  // namespace

Ribbon128::Shape Ribbon128::Shape::of(std::uint64_t bytes, std::uint32_t blocks, std::uint8_t seed) noexcept {
  const std::uint64_t segments = bytes / kSegment;
  std::uint64_t columns = (segments + blocks - 1) / blocks;
  std::uint64_t narrow = columns * blocks - segments;
  if (columns > kMaxColumns) {
    columns = kMaxColumns;
    narrow = 0;
  }
  std::uint64_t t = seed * 0xc78219a23eeadd03u;
  t ^= (t & 0xf0f0f0f0f0f0f0f0u) >> 4;
  return {blocks, static_cast<std::uint32_t>(columns), static_cast<std::uint32_t>(narrow),
          static_cast<std::uint32_t>(t)};
}

double Ribbon128::Shape::fpr() const noexcept {
  const double wide = std::exp2(-static_cast<double>(columns));
  return wide * (1 + static_cast<double>(narrow) / blocks);
}

Result<std::shared_ptr<const AnyFilter>> open_blob(std::string_view format, Bytes blob) {
  // A ribbon of no keys.
  if (blob.empty()) return always(false, Ribbon128::name, "empty");
  if (blob.size() < kTrailer) return bad(Errc::truncated, format, blob.size(), " bytes, the trailer alone has 5");
  const Bytes body = blob.first(blob.size() - kTrailer);
  const Trailer trailer(blob.last(kTrailer));
  if (auto error = reserved(format, trailer)) return *std::move(error);
  if (trailer.marker == 0) {
    if (body.empty()) return bad(Errc::bad_parameter, format, "0 probes");
    return always(true, format, "not built", blob.size());
  }
  if (trailer.marker == -1) {
    if (body.empty()) return always(false, FastLocal::name, "empty", blob.size());
    if (body.size() < kLine) return bad(Errc::truncated, format, body.size(), " bytes of bits, a block has 64");
    const std::uint64_t blocks = std::min<std::uint64_t>(body.size() / kLine, 0xffffffff);
    return over<FastLocal>({static_cast<std::uint32_t>(blocks), trailer.third & 31u}, body);
  }
  if (trailer.marker == -2) {
    const std::uint32_t blocks = trailer.rest >> 8;
    if (blocks < 2) return bad(Errc::bad_parameter, format, blocks, " blocks, needs at least 2");
    if (body.size() < Ribbon128::kSegment)
      return bad(Errc::truncated, format, "promises ", blocks, " blocks, has none");
    return over<Ribbon128>(Ribbon128::Shape::of(body.size(), blocks, trailer.second), body);
  }
  const std::uint64_t lines = trailer.rest;
  if (body.empty() && lines == 0) return always(false, Legacy::name, "empty", blob.size());
  if (lines == 0 || body.empty() || body.size() % lines != 0 || !std::has_single_bit(body.size() / lines)) {
    return bad(Errc::bad_parameter, format, body.size(), " bytes are not ", lines, " lines of a power of two");
  }
  return over<Legacy>(
      {static_cast<std::uint32_t>(lines), static_cast<std::uint32_t>(std::countr_zero(body.size() / lines)),
       static_cast<std::uint32_t>(trailer.marker)},
      body);
}

std::string_view kind_of(Bytes blob) noexcept {
  if (blob.size() < kTrailer) return {};
  const Trailer trailer(blob.last(kTrailer));
  const std::uint64_t body = blob.size() - kTrailer;
  if (trailer.marker == -1) {
    const std::uint32_t probes = trailer.third;
    const bool agrees = trailer.second == 0 && probes >= 1 && probes <= 30 && trailer.rest >> 16 == 0;
    return agrees && body % kLine == 0 ? FastLocal::name : std::string_view();
  }
  if (trailer.marker == -2) {
    const std::uint64_t blocks = trailer.rest >> 8;
    const std::uint64_t segments = body / Ribbon128::kSegment;
    const bool agrees = body % Ribbon128::kSegment == 0 && blocks >= 2 && segments >= blocks &&
                        segments <= blocks * Ribbon128::kMaxColumns;
    return agrees ? Ribbon128::name : std::string_view();
  }
  const bool agrees = trailer.marker >= 1 && trailer.marker <= 30 && body == trailer.rest * kLine;
  return agrees ? Legacy::name : std::string_view();
}

std::string_view name_of(Bytes blob, std::string_view otherwise) noexcept {
  if (blob.empty()) return Ribbon128::name;
  if (blob.size() < kTrailer) return otherwise;
  const int marker = Trailer(blob.last(kTrailer)).marker;
  return marker == 0 ? otherwise : marker == -1 ? FastLocal::name : marker == -2 ? Ribbon128::name : Legacy::name;
}

Density::Density(double wanted) noexcept
    : bits_per_key(wanted < 1     ? 1
                   : wanted < 100 ? wanted
                                  : 100),
      millibits(static_cast<std::uint64_t>(bits_per_key * 1000 + 0.500001)) {}

namespace {

constexpr std::uint64_t kMaxBytes = 0xffffffc0;
constexpr std::uint64_t kMaxLegacyBits = 0xffff0000;
constexpr std::uint64_t kMaxRibbonKeys = 950'000'000;

std::uint32_t fast_local_probes(std::uint64_t millibits) noexcept {
  // The thresholds beyond which one more probe lowers the rate, as RocksDB found them for blocks of 512 bits.
  constexpr std::array<std::uint64_t, 12> kUpTo = {2080,  3580,  5100,  6640,  8300,  10070,
                                                   11720, 14001, 16050, 18300, 22001, 25501};
  for (std::uint32_t i = 0; i < kUpTo.size(); ++i) {
    if (millibits <= kUpTo[i]) return i + 1;
  }
  return millibits > 50000 ? 24 : static_cast<std::uint32_t>((millibits - 1) / 2000 - 1);
}

std::uint64_t fast_local_bytes(std::uint64_t keys, std::uint64_t millibits) noexcept {
  if (keys >= kMaxBytes) return kMaxBytes;
  const std::uint64_t bytes = (keys * millibits + 7999) / 8000;
  return std::min((bytes + kLine - 1) / kLine * kLine, kMaxBytes);
}

// The number of keys for which one seed in twenty fails with 2^i slots (Dillinger, Walzer): found by experiment up to
// 2^17, extrapolated on a line beyond.
double fitting_keys(int i) noexcept {
  constexpr std::array<double, 10> kFound = {248.851, 499.532, 1001.26, 2003.97, 4005.59,
                                             8000.39, 15966.6, 31828.1, 63447.3, 126506};
  if (i < 8) return 0;
  if (i < 18) return kFound[static_cast<std::size_t>(i - 8)];
  constexpr double kSlope = 0.0038;
  const double base = 131072.0 / kFound.back() - 17 * kSlope;
  return std::exp2(i) / (base + kSlope * i);
}

std::uint64_t ribbon_slots(std::uint64_t keys) noexcept {
  const auto n = static_cast<double>(keys);
  int i = static_cast<int>(std::lround(std::log(n) * 1.4426950409));
  double upper = fitting_keys(i);
  if (upper == 0) return 256;
  if (n >= upper) upper = fitting_keys(++i);
  const double lower = fitting_keys(i - 1);
  const double least = std::exp2(i - 1);
  const auto slots = static_cast<std::uint64_t>((n - lower) / (upper - lower) * least + least + 0.999999999);
  return std::max<std::uint64_t>((slots + 127) / 128 * 128, 256);
}

// The first hash decides the rounding, so that over many filters the average rate is the one requested.
std::uint64_t ribbon_bytes(std::uint64_t slots, const Density& density, std::uint64_t first_hash) noexcept {
  const double one_in = 1 / line_fpr(density.bits_per_key, fast_local_probes(density.millibits));
  if (!(one_in > 1)) return Ribbon128::kSegment;
  if (one_in > 4294967295.0) return slots * 4;
  const auto lower = static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(one_in)) - 1);
  const double lower_rate = std::exp2(-static_cast<double>(lower));
  const double upper_rate = lower_rate / 2;
  const double portion = (1 / one_in - upper_rate) / (lower_rate - upper_rate);
  const double starts = static_cast<double>(slots - 127);
  const double rounding = (static_cast<double>(first_hash >> 32) + 0.5) / 4294967296.0;
  const auto narrow = static_cast<std::uint64_t>((portion * starts + rounding) / 128);
  const std::uint64_t blocks = slots / 128;
  return Ribbon128::kSegment * (blocks * lower + blocks - narrow);
}

void append_trailer(Writer& out, std::uint8_t marker, std::uint32_t rest) { out.le(marker).le(rest); }

}  // namespace

double bloom_fpr(double bits_per_key) noexcept {
  const Density density(bits_per_key);
  return line_fpr(density.bits_per_key, fast_local_probes(density.millibits));
}

double ribbon_bits_per_key(double bloom_bits_per_key) noexcept {
  constexpr std::uint64_t kKeys = 1 << 20;
  const std::uint64_t bytes = ribbon_bytes(ribbon_slots(kKeys), Density(bloom_bits_per_key), 0);
  return static_cast<double>(8 * bytes) / kKeys;
}

void Builder::add(Bytes key) {
  const std::uint64_t h = kind_ == Kind::legacy ? Legacy::hash(key) : FastLocal::hash(key);
  if (hashes_.empty() || hashes_.back() != h) hashes_.push_back(h);
}

Result<Buffer> Builder::finish(std::optional<std::uint64_t> length) const {
  switch (kind_) {
    case Kind::legacy:
      return legacy();
    case Kind::fast_local:
      return fast_local(length);
    case Kind::ribbon:
      break;
  }
  return ribbon(length);
}

Buffer Builder::legacy() const {
  const std::uint64_t bits_per_key = (Density(bits_per_key_).millibits + 500) / 1000;
  const auto probes =
      std::clamp<std::uint32_t>(static_cast<std::uint32_t>(static_cast<double>(bits_per_key) * 0.69), 1, 30);
  std::uint64_t lines = 0;
  if (!hashes_.empty()) lines = (std::min(hashes_.size() * bits_per_key, kMaxLegacyBits) + 511) / 512 | 1;
  Writer out;
  const Legacy::Shape shape{static_cast<std::uint32_t>(lines), 6, probes};
  const std::span<std::byte> table = out.zeros(shape.bytes());
  for (const std::uint64_t h : hashes_) Legacy::insert(shape, table.data(), static_cast<std::uint32_t>(h));
  append_trailer(out, static_cast<std::uint8_t>(probes), shape.lines);
  return std::move(out).done();
}

Result<Buffer> Builder::fast_local(std::optional<std::uint64_t> length) const {
  std::uint64_t millibits = Density(bits_per_key_).millibits;
  std::uint64_t bytes = fast_local_bytes(hashes_.size(), millibits);
  if (length && !hashes_.empty()) {
    bytes = *length / kLine * kLine;
    if (bytes == 0 || bytes > kMaxBytes)
      return bad(Errc::bad_parameter, FastLocal::name, "a length of ", *length, " bytes");
    millibits = bytes * 8000 / hashes_.size();
  }
  const FastLocal::Shape shape{static_cast<std::uint32_t>(bytes / kLine), fast_local_probes(millibits)};
  Writer out;
  const std::span<std::byte> table = out.zeros(bytes);
  for (const std::uint64_t h : hashes_) FastLocal::insert(shape, table.data(), h);
  append_trailer(out, 0xff, shape.probes << 8);
  return std::move(out).done();
}

Result<Buffer> Builder::ribbon(std::optional<std::uint64_t> length) const {
  if (hashes_.empty()) return Buffer{};
  if (hashes_.size() > kMaxRibbonKeys) return fast_local(length);
  const std::uint64_t slots = ribbon_slots(hashes_.size());
  const Density density(bits_per_key_);
  const std::uint64_t configured = ribbon_bytes(slots, density, hashes_.front());
  // With few keys, a ribbon needs so much spare room that a Bloom filter is smaller.
  if (slots < 1024 && fast_local_bytes(hashes_.size(), density.millibits) < configured) return fast_local(length);
  const std::uint64_t bytes = length ? *length / Ribbon128::kSegment * Ribbon128::kSegment : configured;
  if (bytes == 0 || bytes > kMaxBytes)
    return bad(Errc::bad_parameter, Ribbon128::name, "a length of ", bytes, " bytes");

  std::vector<ribbon::Row<ribbon::Wide>> rows(slots);
  const ribbon::Banding<ribbon::Wide> banding{rows};
  const auto blocks = static_cast<std::uint32_t>(slots / Ribbon128::kSlots);
  for (std::uint64_t tried = 0; tried < 256; ++tried) {
    const auto seed = static_cast<std::uint8_t>(hashes_.front() + tried);
    const auto shape = Ribbon128::Shape::of(bytes, blocks, seed);
    if (tried != 0) banding.clear();
    const bool solvable = std::all_of(hashes_.begin(), hashes_.end(), [&](std::uint64_t h) {
      const auto e = Ribbon128::equation(shape, h);
      return banding.add(e.start, e.coefficients, e.result) != ribbon::Added::inconsistent;
    });
    if (!solvable) continue;
    Writer out;
    banding.solve(shape.columns - 1, shape.narrow, out.zeros(bytes).data());
    append_trailer(out, 0xfe, seed | blocks << 8);
    return std::move(out).done();
  }
  return fast_local(length);
}

}  // namespace rocksdb

namespace {

using rocksdb::Builder;

constexpr Param kBitsPerKey = {"bits_per_key",
                               "bits per key of a Bloom filter with the same rate",
                               Param::Type::real,
                               "10",
                               0.5,
                               0,
                               {},
                               Param::Means::bits_per_key};
constexpr Param kLength = {"ln",
                           "bytes before the trailer, if the allocator chose them "
                           "(optimize_filters_for_memory)",
                           Param::Type::count,
                           "",
                           16,
                           0xffffffc0};
constexpr Param kLegacyParams[] = {kBitsPerKey};
constexpr Param kParams[] = {kBitsPerKey, kLength};

template <class Layout>
Sniffed sniff(const Source& source) {
  return rocksdb::kind_of(source.bytes) == Layout::name ? Sniffed::certain : Sniffed::no;
}

template <class Layout>
Result<Opened> open(const Source& source, const Params&) {
  auto filter = rocksdb::open_blob(Layout::name, source.bytes);
  if (!filter) return damaged(source, Layout::name, std::move(filter).error());
  const std::string found(rocksdb::name_of(source.bytes, Layout::name));
  Opened opened = one_filter(source, Layout::name, *std::move(filter));
  if (found != Layout::name) opened.notes.push_back("the bytes are in the format " + found);
  return opened;
}

template <Builder::Kind kKind>
Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  Builder builder(kKind, params.real("bits_per_key"));
  for (const Bytes key : keys) builder.add(key);
  std::optional<std::uint64_t> length;
  if (kKind != Builder::Kind::legacy && params.given("ln")) length = params.count("ln");
  return builder.finish(length);
}

}  // namespace

constinit const Codec kRocksDbFastLocal{rocksdb::FastLocal::name,
                                        "FastLocalBloom of RocksDB (format_version 5 and later)",
                                        kParams,
                                        sniff<rocksdb::FastLocal>,
                                        open<rocksdb::FastLocal>,
                                        build<Builder::Kind::fast_local>,
                                        nullptr};
constinit const Codec kRocksDbLegacy{rocksdb::Legacy::name,
                                     "Bloom filter of RocksDB before format_version 5",
                                     kLegacyParams,
                                     sniff<rocksdb::Legacy>,
                                     open<rocksdb::Legacy>,
                                     build<Builder::Kind::legacy>,
                                     nullptr};
constinit const Codec kRocksDbRibbon{
    rocksdb::Ribbon128::name, "Standard128Ribbon of RocksDB", kParams, sniff<rocksdb::Ribbon128>,
    open<rocksdb::Ribbon128>, build<Builder::Kind::ribbon>,   nullptr};

}  // namespace perhaps::format
