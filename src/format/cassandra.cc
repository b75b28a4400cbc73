// cassandra: the Filter.db component of an sstable.
//
//   i32 BE probes | i32 BE words | 8 * words bytes; no checksum, no version
//   new (from version na, and BTI): bit p of the bytes; old: the 8 bytes of each word in reverse order
//   h = murmur3_x64_128 with Cassandra's tail; position i = |base + i * step| mod bits, a signed 64-bit sum
//   base and step are the second and the first half of h; before version ma, the first and the second
//
// Only the file name tells which of the four variants it is: na-1-big-Filter.db.
#include "format/classic.h"
#include "format/registry.h"
#include "hash/murmur3.h"

namespace perhaps::format {
namespace cassandra {
namespace {

constexpr std::string_view kName = "cassandra";
constexpr std::uint64_t kHeader = 8;

struct Version {
  bool old_words = false;
  bool old_hash = false;
};

template <bool kOldWords>
struct CassandraScheme {
  using word = StartAndStep;
  using Plan = DoubleHashing<fold::magnitude, kOldWords ? kBigEndianWords : 0>;
  static constexpr std::string_view hash = "murmur3-x64-128 of Cassandra";
  bool old_hash;
  word operator()(Bytes key) const noexcept {
    const Murmur128 h = murmur3_x64_128_cassandra(key);
    return old_hash ? word{h.first, h.second} : word{h.second, h.first};
  }
};

constexpr Param kParams[] = {
    {"sized_for", "keys it is sized for", Param::Type::count, "", 0, 1e12, {}, Param::Means::keys},
    {"fp_chance", "false-positive rate", Param::Type::real, "0.01", 6.71e-5, 1, {}, Param::Means::fpr},
    {"format", "byte order within words", Param::Type::word, "new", 0, 0, "new|old"},
    {"hash_order", "which half of the hash is the base", Param::Type::word, "second", 0, 0, "second|old"},
};

// ks-table-ka-7-Filter.db, mc-7-big-Filter.db, nb-3g9b_0yzn_1mlts2ghvrpzh8ibbb-big-Filter.db, da-7-bti-Filter.db
std::optional<Version> version_of(std::string_view file_name) noexcept {
  constexpr std::string_view kEnd = "-Filter.db";
  if (!ends_with(file_name, kEnd)) return std::nullopt;
  std::string_view rest = file_name.substr(0, file_name.size() - kEnd.size());
  rest.remove_prefix(rest.find_last_of('/') + 1);
  const auto last = [&] {
    const std::size_t dash = rest.find_last_of('-');
    const std::string_view part = rest.substr(dash + 1);
    rest = dash == std::string_view::npos ? std::string_view() : rest.substr(0, dash);
    return part;
  };
  std::string_view part = last();
  if (part == "bti") return Version{};
  if (part == "big") last();
  part = last();
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (part.size() != 2 || !is_letter(part[0]) || !is_letter(part[1])) return std::nullopt;
  return Version{.old_words = part < "na", .old_hash = part < "ma"};
}

Version version_of(const Source& source, const Params& params) {
  Version version = version_of(source.file_name).value_or(Version{});
  if (params.given("format")) version.old_words = params.word("format") == "old";
  if (params.given("hash_order")) version.old_hash = params.word("hash_order") == "old";
  return version;
}

ClassicParts parts_of(Bytes bytes) {
  Reader in(bytes);
  ClassicParts parts{.format = kName, .unit = 64};
  parts.probes = in.be<std::uint32_t>();
  const auto words = in.be<std::uint32_t>();
  parts.bits = std::uint64_t{64} * words;
  parts.end_header(in, kHeader);
  parts.require(words <= kMaxInt, Errc::bad_parameter, words, " words, more than an int holds");
  return parts;
}

Sniffed sniff(const Source& source) {
  if (sniff_classic<parts_of>(source) == Sniffed::certain) return Sniffed::certain;
  return ends_with(source.file_name, "-Filter.db") ? Sniffed::by_name : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params& params) {
  // With fp_chance = 1 the component is missing or empty.
  if (source.bytes.empty()) return one_filter(source, kName, always(true, kName, "not built"));
  ClassicParts parts = parts_of(source.bytes);
  const Version version = version_of(source, params);
  parts.more = {{"format", version.old_words ? "old (before na)" : "new (na and later)"},
                {"hash order", version.old_hash ? "old (before ma)" : "second half is the base"}};
  auto opened = version.old_words ? open_classic(source, std::move(parts), CassandraScheme<true>{version.old_hash})
                                  : open_classic(source, std::move(parts), CassandraScheme<false>{version.old_hash});
  if (opened && !params.given("format") && !version_of(source.file_name))
    opened->notes.emplace_back("no version in the file name: read as version na or later");
  return opened;
}

// Cassandra's table of rates: (1 - e^(-probes/buckets))^probes rounded to three digits, except for one entry.
double rate_of(int buckets, int probes) {
  if (buckets == 5 && probes == 3) return 0.092;
  const double rate = std::pow(-std::expm1(-static_cast<double>(probes) / buckets), probes);
  const double scale = std::pow(10.0, 2 - std::floor(std::log10(rate)));
  return std::round(rate * scale) / scale;
}

struct Spec {
  int probes;
  int buckets;  // bits per key
};
Spec spec_of(double fp_chance) {
  constexpr int kMaxBuckets = 20;
  // Cassandra's source swaps the two numbers here and keeps them so for compatibility.
  if (fp_chance >= rate_of(2, 1)) return {.probes = 2, .buckets = 1};
  const auto best = [](int buckets) {
    int probes = 1;
    while (rate_of(buckets, probes + 1) < rate_of(buckets, probes)) ++probes;
    return probes;
  };
  Spec spec{.probes = best(2), .buckets = 2};
  while (rate_of(spec.buckets, spec.probes) > fp_chance && spec.buckets < kMaxBuckets) {
    ++spec.buckets;
    spec.probes = best(spec.buckets);
  }
  while (spec.probes > 1 && rate_of(spec.buckets, spec.probes - 1) <= fp_chance) --spec.probes;
  return spec;
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  if (params.real("fp_chance") >= 1) return Buffer{};
  const Spec spec = spec_of(params.real("fp_chance"));
  const double wanted = static_cast<double>(params.count_or("sized_for", keys.size())) * spec.buckets + 20;
  const auto bits = whole_bits(kName, wanted, 64 * kMaxInt);
  if (!bits) return bits.error();
  const std::uint64_t bytes = table_bytes(*bits, 64);
  const auto probes = static_cast<std::uint32_t>(spec.probes);
  const bool old_hash = params.word("hash_order") == "old";
  Writer out;
  out.be(probes).be(static_cast<std::uint32_t>(bytes / 8));
  const std::span<std::byte> table = out.zeros(bytes);
  if (params.word("format") == "old") {
    fill_classic(table, 8 * bytes, probes, keys, CassandraScheme<true>{old_hash});
  } else {
    fill_classic(table, 8 * bytes, probes, keys, CassandraScheme<false>{old_hash});
  }
  return std::move(out).done();
}

// Converts between the two byte orders. The halves of the hash cannot be swapped: that would move the bits.
Result<Converted> convert(const Source& source, const Opened& from, const Params& params) {
  if (from.format != kName)
    return bad(Errc::unsupported, kName, "no other format uses its hash: rebuild it from the keys");
  const auto* const old_words = dynamic_cast<const ClassicFilter<CassandraScheme<true>>*>(from.whole.get());
  const auto* const new_words = dynamic_cast<const ClassicFilter<CassandraScheme<false>>*>(from.whole.get());
  if (old_words == nullptr && new_words == nullptr) return bad(Errc::unsupported, kName, "contains no filter");
  const bool old_hash = old_words != nullptr ? old_words->scheme().old_hash : new_words->scheme().old_hash;
  if (params.given("hash_order") && (params.word("hash_order") == "old") != old_hash) {
    return bad(Errc::unsupported, kName,
               "another hash_order sets other bits, and a filter does not store its keys: rebuild it from the keys");
  }
  Converted converted{{source.bytes.begin(), source.bytes.end()}, "none: it already has this format"};
  if ((params.word("format") == "old") == (old_words != nullptr)) return converted;
  const std::uint64_t end = kHeader + from.whole->byte_size();
  for (std::uint64_t at = kHeader; at < end; at += 8)
    std::reverse(converted.bytes.data() + at, converted.bytes.data() + at + 8);
  converted.changed = "the 8 bytes of each word from byte 8 to " + std::to_string(end) + " are reversed";
  return converted;
}

constexpr Codec kCodec{kName, "Filter.db of Cassandra", kParams, sniff, open, build, convert};

}  // namespace
}  // namespace cassandra

constinit const Codec kCassandra = cassandra::kCodec;

}  // namespace perhaps::format
