#include "redis_stream.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "command.h"
#include "json.h"
#include "little_endian.h"
#include "print.h"

namespace perhaps::cli {
namespace {

constexpr std::size_t kLineBytes = 73;
constexpr std::uint32_t kLineOption = 32;
constexpr std::uint32_t kFixedOption = 8;
constexpr std::uint32_t kLineGrowth = 2;

constexpr std::size_t kGrowingBytes = 32;
constexpr std::string_view kGrowingMagic = "perhapsG";

// A server keeps the rate as a floating-point number, and makes the shape of it.
std::uint64_t growing_rate_of(double rate) { return GrowingShape::for_keys({.fpr = rate}).rate; }

}  // namespace

std::vector<std::byte> LineHeader::bytes() const {
  // If it grows, its rate rises to at most twice that of its first link.
  const double rate = std::clamp(shape.fpr(static_cast<double>(record.capacity)), 1e-300, 0.5);
  const double bits_per_item = static_cast<double>(shape.bits()) / static_cast<double>(record.capacity);
  std::vector<std::byte> out(kLineBytes);
  const auto put = [&](std::size_t at, auto number) { store_little_endian(out.data() + at, number); };
  put(0, record.keys);
  put(8, std::uint32_t{1});
  put(12, kLineOption);
  put(16, kLineGrowth);
  put(20, shape.bytes());
  put(28, shape.bits());
  put(36, record.keys);
  put(44, std::bit_cast<std::uint64_t>(rate));
  put(52, std::bit_cast<std::uint64_t>(bits_per_item));
  put(60, shape.probes);
  put(64, record.capacity);
  return out;
}

LineHeader LineHeader::from(Bytes header, const std::string& key) {
  const auto number = [&]<class T>(std::size_t at, T) { return load_little_endian<T>(header.data() + at); };
  const std::uint32_t links = header.size() < 20 ? 0 : number(8, std::uint32_t{});
  if (links > 1) fail("{}: has grown to {} links, and a line filter of ours is one", key, links);
  LineHeader result;
  if (links == 1 && header.size() == kLineBytes && (number(12, std::uint32_t{}) & ~kFixedOption) == kLineOption) {
    const std::uint64_t bits = number(28, std::uint64_t{});
    result.shape = {.lines = bits / 512, .probes = number(60, std::uint32_t{})};
    result.record = {.keys = number(36, std::uint64_t{}), .capacity = number(64, std::uint64_t{})};
    if (result.shape.valid() && result.shape.bits() == bits && number(20, std::uint64_t{}) == result.shape.bytes())
      return result;
  }
  fail("{}: not the header of a line filter", key);
}

std::vector<std::byte> GrowingHeader::bytes(const std::string& name) const {
  const double rate = std::ldexp(static_cast<double>(shape.rate), -63);
  if (!(rate >= kLeastFpr && rate < 1) || growing_rate_of(rate) != shape.rate)
    fail("{}: keeps a false-positive rate of {}, which a server cannot be told to the last digit: build it by --fpr",
         name, percent(rate));
  std::vector<std::byte> out(kGrowingBytes);
  std::memcpy(out.data(), kGrowingMagic.data(), kGrowingMagic.size());
  store_little_endian(out.data() + 8, std::uint64_t{shape.first});
  store_little_endian(out.data() + 16, std::uint64_t{shape.step});
  store_little_endian(out.data() + 24, std::bit_cast<std::uint64_t>(rate));
  return out;
}

GrowingHeader GrowingHeader::from(Bytes header, const std::string& key) {
  if (header.size() == kGrowingBytes && std::memcmp(header.data(), kGrowingMagic.data(), kGrowingMagic.size()) == 0) {
    const auto number = [&](std::size_t at) { return load_little_endian<std::uint64_t>(header.data() + at); };
    const double rate = std::bit_cast<double>(number(24));
    if (rate >= kLeastFpr && rate < 1)
      return {take(GrowingShape::from(std::array{number(8), number(16), growing_rate_of(rate)}))};
  }
  fail("{}: not the header of a growing filter", key);
}

std::string json_of_copy(const std::string& file, const std::string& key, std::string_view format, std::uint64_t bytes,
                         std::optional<std::uint64_t> shards, std::optional<std::uint64_t> here) {
  Json json;
  json.add("file", file).add("key", key).add("format", format).add("bytes", bytes);
  return json.add("shards", shards).add("shards_here", here).text() + "\n";
}

}  // namespace perhaps::cli
