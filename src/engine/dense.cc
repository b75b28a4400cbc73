#include "perhaps/engine/dense.h"

#include <cassert>
#include <numeric>
#include <optional>
#include <utility>

#include "kernel/instruction_set.h"

namespace perhaps {
namespace {

// Up to 64 equations in fewer unknowns: the right-hand side is the bit above the coefficients.
struct Extra {
  std::array<std::uint64_t, 64> rows;
  std::size_t count = 0;

  // The unknowns as a column; those that no equation fixes are 0. Nothing: the equations contradict each other. A
  // branch for each step would be mispredicted half of the time, so the inner loop has none.
  std::optional<std::uint64_t> solution(std::uint32_t unknowns) noexcept {
    std::array<std::uint32_t, 64> pivots;
    std::size_t rank = 0;
    for (std::uint32_t p = 0; p < unknowns && rank < count; ++p) {
      std::size_t found = rank;
      while (found < count && (rows[found] >> p & 1) == 0) ++found;
      if (found == count) continue;
      std::swap(rows[rank], rows[found]);
      const std::uint64_t pivot = rows[rank];
      for (std::size_t i = found + 1; i < count; ++i) rows[i] ^= pivot & (0 - (rows[i] >> p & 1));
      pivots[rank++] = p;
    }
    // The others have no coefficients left.
    for (std::size_t i = rank; i < count; ++i) {
      if (rows[i] >> unknowns != 0) return std::nullopt;
    }
    std::uint64_t column = 0;
    for (std::size_t i = rank; i-- > 0;) {
      const auto others = static_cast<std::uint64_t>(__builtin_parityll(rows[i] & column));
      column |= ((rows[i] >> unknowns ^ others) & 1) << pivots[i];
    }
    return column;
  }
};

// A square system, by rows: the right-hand sides stand above the n coefficients in one word, which takes half of the
// steps, or beside them if there are too many bits for that.
struct Square {
  std::array<std::uint64_t, 64> rows;
  std::array<std::uint32_t, 64> right;

  // Makes it triangular: row p has its first coefficient at p. False: it has no solution. The inner loops, in which
  // most of the time of building goes, have no branches.
  template <bool kBeside>
  bool eliminate(std::size_t n) noexcept {
    for (std::size_t p = 0; p < n; ++p) {
      std::size_t found = p;
      while (found < n && (rows[found] >> p & 1) == 0) ++found;
      if (found == n) return false;
      std::swap(rows[p], rows[found]);
      const std::uint64_t pivot = rows[p];
      if constexpr (kBeside) {
        std::swap(right[p], right[found]);
        for (std::size_t i = p + 1; i < n; ++i)
          right[i] ^= right[p] & static_cast<std::uint32_t>(0 - (rows[i] >> p & 1));
      }
      // Rows from here to `found` have no coefficient at p.
      for (std::size_t i = found + 1; i < n; ++i) rows[i] ^= pivot & (0 - (rows[i] >> p & 1));
    }
    return true;
  }
  bool eliminate(std::size_t n, bool beside) noexcept { return beside ? eliminate<true>(n) : eliminate<false>(n); }
  // Column j of the unknowns; all of them step by step, so that they need not wait for each other's parities.
  // REQUIRES: eliminate(n, ..), right
  void substitute(std::size_t n, std::span<std::uint64_t> columns) const noexcept {
    std::fill(columns.begin(), columns.end(), 0);
    for (std::size_t p = n; p-- > 0;) {
      for (std::size_t j = 0; j < columns.size(); ++j) {
        const auto others = static_cast<std::uint64_t>(__builtin_parityll(rows[p] & columns[j]));
        columns[j] |= ((right[p] >> j ^ others) & 1) << p;
      }
    }
  }
};

// ORs the lowest `count` bits of `word` into `out`, from `bit` on.
void put_bits(std::span<std::byte> out, std::uint64_t bit, std::uint64_t word, std::size_t count) noexcept {
  for (std::size_t done = 0; done < count;) {
    const std::size_t shift = (bit + done) % 8;
    out[(bit + done) / 8] |= static_cast<std::byte>(word >> done << shift);
    done += 8 - shift;
  }
}

}  // namespace

std::uint32_t Dense::solve(std::span<const std::uint64_t> words, Shape shape, std::span<std::byte> out) noexcept {
  assert(!words.empty() && words.size() <= kMaxKeys);
  const std::size_t n = words.size();
  const bool beside = n + shape.columns >= 64;
  const auto mask = static_cast<std::uint32_t>((std::uint64_t{1} << shape.columns) - 1);
  Square square;
  const auto regular = kernel::active().dense_regular;
  std::uint32_t seeds = 0;  // from the last multiple of kDenseSeeds on, those whose columns have a solution
  for (std::uint32_t seed = 0; seed < kNoSeed; ++seed) {
    const std::uint32_t mine = seed % kernel::kDenseSeeds;
    if (regular != nullptr && shape.columns != 0) {
      if (mine == 0) {
        alignas(64) std::array<std::uint64_t, 64 * kernel::kDenseSeeds> rows;
        for (std::size_t i = 0; i < n; ++i) {
          for (std::uint32_t s = 0; s < kernel::kDenseSeeds; ++s)
            rows[i * kernel::kDenseSeeds + s] = coefficients_of(words[i], {shape.slots, seed + s});
        }
        seeds = regular(rows.data(), n);
      }
      if ((seeds >> mine & 1) == 0) continue;
    }
    // The extra column first: it takes fewer steps, and two seeds in five fail there.
    Extra extra;
    for (std::size_t i = 0; i < n; ++i) {
      const Equation key(words[i], seed, shape);
      square.rows[i] = key.coefficients | (beside ? 0 : std::uint64_t{key.fingerprint & mask} << n);
      square.right[i] = key.fingerprint & mask;
      extra.rows[extra.count] = key.extra_coefficients | std::uint64_t{key.extra_bit} << shape.extra;
      extra.count += key.is_extra;
    }
    const auto extra_column = extra.solution(shape.extra);
    if (!extra_column || (shape.columns != 0 && !square.eliminate(n, beside))) continue;
    std::fill(out.begin(), out.end(), std::byte{0});
    if (shape.columns != 0) {
      for (std::size_t i = 0; i < n && !beside; ++i) square.right[i] = static_cast<std::uint32_t>(square.rows[i] >> n);
      std::array<std::uint64_t, kMaxColumns> columns;
      square.substitute(n, std::span(columns).first(shape.columns));
      for (std::uint32_t j = 0; j < shape.columns; ++j) put_bits(out, std::uint64_t{j} * n, columns[j], n);
    }
    put_bits(out, std::uint64_t{shape.columns} * n, *extra_column, shape.extra);
    return seed;
  }
  return kNoSeed;
}

std::uint64_t Dense::bits_at(Bytes bytes, std::uint64_t bit) noexcept {
  const std::byte* const at = bytes.data();
  if (bytes.size() >= 8) {
    const std::uint64_t from = std::min<std::uint64_t>(bit / 8, bytes.size() - 8);
    const std::uint64_t word = detail::load<std::uint64_t>(at + from) >> (bit - from * 8);
    const std::uint64_t ninth = bit / 8 + 8;
    return ninth < bytes.size() ? word | std::to_integer<std::uint64_t>(at[ninth]) << 1 << (63 - bit % 8) : word;
  }
  // Two loads that overlap: a copy of unknown length is a call.
  const std::uint64_t word =
      bytes.size() >= 4
          ? detail::load<std::uint32_t>(at) | std::uint64_t{detail::load<std::uint32_t>(at + bytes.size() - 4)}
                                                  << 8 * (bytes.size() - 4)
          : detail::load<std::uint16_t>(at) | std::to_integer<std::uint64_t>(at[bytes.size() - 1])
                                                  << 8 * (bytes.size() - 1);
  return word >> bit;
}

bool Dense::query_rest(Bytes bytes, Columns columns, Head head, std::uint64_t h) noexcept {
  return rest(bytes, columns, head, h);
}

bool Dense::query_each(Bytes bytes, Columns columns, Head head, std::uint64_t h) noexcept {
  const Shape shape = Shape::of(head.slots, columns.size + kHeadBytes);
  const Equation key(h, head.seed, shape);
  std::uint64_t bit = 8 * columns.from;
  for (std::uint32_t j = 0; j < shape.columns;) {
    std::uint32_t wrong = 0;
    for (const std::uint32_t end = std::min(shape.columns, j + 4); j < end; ++j, bit += shape.slots) {
      wrong |= parity(bits_at(bytes, bit) & key.coefficients) ^ key.fingerprint >> j;
    }
    if ((wrong & 1) != 0) return false;
  }
  return !key.is_extra || parity(bits_at(bytes, bit) & key.extra_coefficients) == key.extra_bit;
}

void Dense::build(std::span<const std::uint64_t> words, std::span<std::byte> out) noexcept {
  assert(out.size() >= kHeadBytes);
  const Shape shape = Shape::of(words.size(), out.size());
  const std::uint32_t seed = solve(words, shape, out.first(out.size() - kHeadBytes));
  out[out.size() - 2] = static_cast<std::byte>(seed);
  out[out.size() - 1] = static_cast<std::byte>(seed == kNoSeed ? 0 : kTag + shape.slots);
}

bool DenseGroups::build(std::span<const std::uint64_t> words, std::size_t bytes, std::vector<std::byte>& out) {
  std::size_t groups = std::max<std::size_t>((words.size() + kMean - 1) / kMean, 2);
  std::array<std::size_t, kMaxGroups> keys;
  // If a group has more keys than slots, try one group more.
  for (;; ++groups) {
    if (groups > kMaxGroups || bytes < kTailBytes + groups + std::max<std::size_t>(groups, 8)) return false;
    keys.fill(0);
    for (const std::uint64_t word : words) ++keys[detail::scale(word, groups)];
    if (*std::max_element(keys.begin(), keys.end()) <= Dense::kMaxKeys) break;
  }
  std::array<std::size_t, kMaxGroups> next;
  std::exclusive_scan(keys.begin(), keys.end(), next.begin(), std::size_t{0});
  std::vector<std::uint64_t> grouped(words.size());
  for (const std::uint64_t word : words) grouped[next[detail::scale(word, groups)]++] = word;
  const std::size_t density =
      std::min<std::size_t>((bytes - kTailBytes - 2 * groups) * 128 / words.size(), Dense::kMaxColumns * 16);
  std::array<std::byte, kMaxGroups> seeds{};
  std::array<std::byte, kMaxGroups> slots{};
  std::size_t slots_so_far = 0;
  const std::size_t begin = out.size();
  for (std::size_t group = 0, from = 0; group < groups; from += keys[group++]) {
    if (keys[group] == 0) continue;
    const std::size_t end = (slots_so_far + keys[group]) * density / 128;
    const std::size_t size = end - slots_so_far * density / 128;
    const auto shape = Dense::Shape::of(keys[group], size + Dense::kHeadBytes);
    out.resize(begin + end);
    const std::uint32_t seed =
        Dense::solve(std::span(grouped).subspan(from, keys[group]), shape, std::span(out).last(size));
    if (seed >= kNoSolution) {
      out.resize(begin + end - size);
      seeds[group] = std::byte{kNoSolution};
      continue;
    }
    seeds[group] = static_cast<std::byte>(seed);
    slots[group] = static_cast<std::byte>(keys[group]);
    slots_so_far += keys[group];
  }
  out.insert(out.end(), slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(groups));
  out.insert(out.end(), seeds.begin(), seeds.begin() + static_cast<std::ptrdiff_t>(groups));
  out.push_back(static_cast<std::byte>(density));
  out.push_back(static_cast<std::byte>(density >> 8));
  out.push_back(static_cast<std::byte>(groups));
  out.push_back(std::byte{kTag});
  return true;
}

bool DenseGroups::valid(Bytes filter) noexcept {
  const auto parts = Parts::of(filter);
  if (!parts) return false;
  const std::span slots(parts->slots, parts->groups);
  return std::all_of(slots.begin(), slots.end(),
                     [](std::byte n) { return std::to_integer<std::size_t>(n) <= Dense::kMaxKeys; }) &&
         slots_before(*parts, parts->groups) * parts->density / 128 == parts->column_bytes;
}

DenseGroups::Summary DenseGroups::summary(Bytes filter) noexcept {
  const Parts parts = *Parts::of(filter);
  Summary all{0, 0};
  for (std::uint64_t group = 0; group < parts.groups; ++group) {
    const auto slots = std::to_integer<std::uint64_t>(parts.slots[group]);
    if (slots == 0) {
      all.fpr += parts.seeds[group] == std::byte{kNoSolution} ? 1 : 0;
      continue;
    }
    const std::uint64_t bytes =
        (all.keys + slots) * parts.density / 128 - all.keys * parts.density / 128 + Dense::kHeadBytes;
    all.fpr += Dense::Shape::of(slots, bytes).fpr();
    all.keys += slots;
  }
  all.fpr /= static_cast<double>(parts.groups);
  return all;
}

}  // namespace perhaps
