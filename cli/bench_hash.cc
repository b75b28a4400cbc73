// perhaps bench hash: hashes that people use for filters, by the length of the key, and the share that each has in a
// whole lookup: hash and probe of a line filter that is queried in batches.
#include "bench_hash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>

#include "command.h"
#include "hash/crc32.h"
#include "hash/murmur3.h"
#include "hash/xxh64.h"
#include "interrupt.h"
#include "key_hash.h"
#include "memory_check.h"
#include "perhaps/file/writer.h"
#include "perhaps/line_bloom.h"
#include "print.h"
#include "size_plot.h"

namespace perhaps::cli::bench {
namespace {

#if defined(__x86_64__)
// By the instruction that CRC32C is chosen for.
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(Bytes key) noexcept {
  std::uint64_t crc = 0xffffffff;
  const std::byte* p = key.data();
  std::size_t left = key.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::array<std::byte, 8> word;
    std::copy_n(p, word.size(), word.begin());
    crc = __builtin_ia32_crc32di(crc, std::bit_cast<std::uint64_t>(word));
  }
  auto narrow = static_cast<std::uint32_t>(crc);
  for (; left != 0; --left, ++p) narrow = __builtin_ia32_crc32qi(narrow, std::to_integer<unsigned char>(*p));
  return ~narrow;
}
bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }
#else
std::uint32_t crc32c_by_instruction(Bytes key) noexcept { return crc32c(key); }
bool has_instruction() noexcept { return false; }
#endif

constexpr std::array<std::size_t, 6> kLengths = {8, 16, 32, 64, 256, 1024};

// The keys lie one after the other. A loop of its own for each hash, so that it can be inlined.
using Keys = std::span<const std::byte>;
template <class One>
auto sum_of(One one) {
  return [one](Keys keys, std::size_t length) mutable {
    std::uint64_t sum = 0;
    for (; !keys.empty(); keys = keys.subspan(length)) sum += one(keys.first(length));
    return sum;
  };
}

struct Hashed {
  std::string name;
  std::uint32_t bits;
  std::function<std::uint64_t(Keys, std::size_t)> sum;
  std::array<Times, kLengths.size()> ns;
};

std::vector<Hashed> hashes() {
  std::vector<Hashed> all;
  const auto add = [&](const char* name, std::uint32_t bits, auto one) {
    all.push_back({.name = name, .bits = bits, .sum = sum_of(std::move(one)), .ns = {}});
  };
  add("xxh3", 64, [hash = Hash()](Bytes key) { return hash(key).value; });
  add("xxh64", 64, [](Bytes key) { return xxh64(key, 0); });
  add("murmur3", 128, [](Bytes key) { return murmur3_x64_128(key).first; });
  add("siphash-1-3", 64, [hash = KeyedHash(KeyedHash::Secret{})](Bytes key) { return hash(key).value; });
  if (has_instruction()) {
    add("crc32c", 32, [](Bytes key) { return std::uint64_t{crc32c_by_instruction(key)}; });
  } else {
    add("crc32c", 32, [](Bytes key) { return std::uint64_t{crc32c(key)}; });
  }
  add("sha-256", 256, [hasher = std::make_shared<KeyHasher>(KeyHash::sha256)](Bytes key) {
    std::array<std::byte, KeyHasher::kMaxBytes> digest;
    hasher->digest(key, digest.data());
    return std::to_integer<std::uint64_t>(digest[0]);
  });
  return all;
}

// Of one absent key in a batch, its digest given.
Times probe_times(const Options& options) {
  check_memory(options.keys > UINT64_MAX / 64 ? UINT64_MAX : options.keys * 24, "the benchmark");
  LineBloom filter(options.sizing.request(options.keys));
  std::vector<Digest<Hash>> absent(options.keys);
  const Hash hash;
  for (std::uint64_t i = 0; i < options.keys; ++i) absent[i] = hash(i);
  filter.insert(std::span<const Digest<Hash>>(absent));
  for (std::uint64_t i = 0; i < options.keys; ++i) absent[i] = hash(i + options.keys);
  std::vector<std::uint64_t> answers((absent.size() + 63) / 64);
  Times times;
  for (int round = 0; round < kRounds; ++round) {
    times.add(static_cast<double>(options.keys),
              [&] { filter.may_contain(std::span<const Digest<Hash>>(absent), answers); });
    check_interrupt();
  }
  return times;
}

std::string svg_of(const std::vector<Hashed>& all) {
  std::vector<plot::Line> lines;
  double least = 1e9;
  double most = 0;
  for (const Hashed& hashed : all) {
    plot::Line& line = plot::line_named(lines, hashed.name);
    line.dots = true;
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      line.points.push_back({static_cast<double>(kLengths[i]), hashed.ns[i].median()});
      least = std::min(least, hashed.ns[i].median());
      most = std::max(most, hashed.ns[i].median());
    }
  }
  plot::Panel::Axis x{.from = 8, .to = 1024, .logarithmic = true, .ticks = {}, .title = "bytes per key"};
  for (const std::size_t length : kLengths) x.ticks.push_back({static_cast<double>(length), std::to_string(length)});
  plot::Panel::Axis y{.from = least / 1.5, .to = most * 1.5, .logarithmic = true, .ticks = {}, .title = "ns per key"};
  for (const double ns : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0}) {
    if (ns >= y.from && ns <= y.to) y.ticks.push_back({ns, fmt::format("{:.0f}", ns)});
  }
  const plot::Panel panel(80, 80, 400, 400, std::move(x), std::move(y));
  return plot::picture(660, 550, panel.frame("Hashing a key") + panel.draw(lines));
}

}  // namespace

int run_hash(const Options& options) {
  std::vector<Hashed> all = hashes();
  std::vector<std::byte> bytes(std::size_t{1} << 18);  // stays in the second-level cache: the hash is measured alone
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 0x9e3779b97f4a7c15u) >> 56);
  if (has_instruction() && crc32c_by_instruction(Bytes(bytes).first(1027)) != crc32c(Bytes(bytes).first(1027)))
    fail("crc32c: the instruction and the table disagree; this is a bug");
  const Times probe = probe_times(options);
  std::uint64_t sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Hashed& hashed : all) {
      for (std::size_t i = 0; i < kLengths.size(); ++i) {
        const Keys keys(bytes.data(), std::min<std::size_t>(bytes.size(), 4096 * kLengths[i]));
        const std::size_t count = keys.size() / kLengths[i];
        hashed.ns[i].add(static_cast<double>(count), [&] { sum += hashed.sum(keys, kLengths[i]); });
      }
      check_interrupt();
    }
  }
  if (sum == 1) say("", "");  // the sums are used, so the work is done
  if (!options.svg.empty()) take(write_file(options.svg, bytes_of(svg_of(all))));
  Out out;
  const auto share = [&](const Times& ns) { return ns.median() / (ns.median() + probe.median()); };
  std::vector<std::string> objects;
  std::vector<std::vector<std::string>> rows = {{"hash", "bits"}};
  for (const std::size_t length : kLengths) {
    rows[0].push_back(fmt::format("{} bytes", length));
    rows[0].push_back("share");
  }
  for (const Hashed& hashed : all) {
    rows.push_back({hashed.name, std::to_string(hashed.bits)});
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      const Times& ns = hashed.ns[i];
      rows.back().push_back(ns.text());
      rows.back().push_back(fmt::format("{:.0f} %", 100 * share(ns)));
      Json json;
      json.add("hash", hashed.name).add("bits", hashed.bits).add("length", std::uint64_t{kLengths[i]});
      ns.add_to(json, "ns");
      json.add("probe_ns", probe.median()).add("lookup_share", share(ns));
      objects.push_back(json.text());
    }
  }
  if (options.json) {
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  out.write(table(rows, "lrrrrrrrrrrrrr"));
  out.write(dim(fmt::format(
                "nanoseconds of CPU time per key; median of {} rounds ± half the distance between their quartiles",
                kRounds)) +
            "\n");
  out.write(dim(fmt::format("share: of a lookup, hash and probe; a probe of a line filter of {} keys takes {} ns in a "
                            "batch",
                            grouped(options.keys), probe.text())) +
            "\n");
  return kYes;
}

}  // namespace perhaps::cli::bench
