#include "perhaps/window.h"

#include <bit>
#include <cmath>
#include <limits>

namespace perhaps {
namespace {

using L = WindowLayout;

std::uint64_t generation_of(const std::byte* table) noexcept {
  return detail::load<std::uint64_t>(table + L::kGeneration);
}
std::byte* inserted_in(std::byte* table, std::uint64_t generation) noexcept {
  return table + L::kInserted + 8 * (generation % 8);
}

// Begins `count` generations. After eight nothing of before is left: more of them make no difference, and stay clear of
// stamps that look fresh again.
std::uint64_t begin_generations(std::byte* table, std::uint64_t count) noexcept {
  std::uint64_t generation = generation_of(table);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 8); ++i)
    detail::store<std::uint64_t>(inserted_in(table, ++generation), 0);
  detail::store(table + L::kGeneration, generation);
  return generation;
}

// Clears what went stale and stamps the line.
[[gnu::noinline]] void freshen(std::byte* line, std::uint64_t generation) noexcept {
  const std::uint64_t mask = L::live(generation, line[L::kStamp]) * 0x0101010101010101u;
  for (std::size_t i = 0; i < kLineBytes; i += 8) detail::store(line + i, detail::load<std::uint64_t>(line + i) & mask);
  line[L::kStamp] = static_cast<std::byte>(generation);
}

// Generations all of whose cells in the line of row digest x are set, before bit `plane` was set in them.
template <std::uint32_t kProbes>
std::uint32_t set_row(std::byte* line, std::uint64_t x, std::uint64_t generation, std::byte plane) noexcept {
  if (line[L::kStamp] != static_cast<std::byte>(generation)) freshen(line, generation);
  std::byte all{0xff};
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    std::byte& cell = line[L::cell_of(x, i, kProbes)];
    all &= cell;
    cell |= plane;
  }
  return static_cast<std::uint32_t>(all);
}

template <std::uint32_t kProbes>
std::uint32_t row_bits(const std::byte* line, std::uint64_t x, std::uint64_t generation) noexcept {
  std::uint32_t bits = L::live(generation, line[L::kStamp]);
  for (std::uint32_t i = 0; i < kProbes; ++i) bits &= static_cast<std::uint32_t>(line[L::cell_of(x, i, kProbes)]);
  return bits;
}

// Keys between asking for a line and using it. With four rows it is 32 lines: what the cores at hand keep under way.
constexpr std::size_t kAhead = 8;

void ask_for(WindowShape shape, const std::byte* table, std::uint64_t h) noexcept {
  for (std::uint32_t row = 0; row < shape.rows; ++row)
    detail::prefetch_write(table + L::line_at(shape, row, L::row_digest(row, h)));
}

template <std::uint32_t kProbes>
void insert_run(WindowShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count, std::size_t known,
                std::uint64_t* seen, std::size_t first, bool ahead) noexcept {
  const std::uint64_t generation = generation_of(table);
  const std::byte plane{static_cast<unsigned char>(1u << generation % 8)};
  for (std::size_t i = 0; i < count; ++i) {
    if (ahead && i + kAhead < known) ask_for(shape, table, digests[i + kAhead]);
    std::uint32_t bits = 0xff;
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      const std::uint64_t x = L::row_digest(row, digests[i]);
      bits &= set_row<kProbes>(table + L::line_at(shape, row, x), x, generation, plane);
    }
    if (seen != nullptr) seen[(first + i) / 64] |= std::uint64_t{bits != 0} << ((first + i) % 64);
  }
}

template <std::uint32_t kProbes>
void query_all(WindowShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
               std::uint64_t* answers, bool ahead) noexcept {
  const std::uint64_t generation = generation_of(table);
  for (std::size_t i = 0; ahead && i < std::min(kAhead, count); ++i) L::prefetch(shape, table, digests[i]);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 64 == 0) answers[i / 64] = 0;
    if (ahead && i + kAhead < count) L::prefetch(shape, table, digests[i + kAhead]);
    std::uint32_t bits = 0xff;
    for (std::uint32_t row = 0; bits != 0 && row < shape.rows; ++row) {
      const std::uint64_t x = L::row_digest(row, digests[i]);
      bits &= row_bits<kProbes>(table + L::line_at(shape, row, x), x, generation);
    }
    answers[i / 64] |= std::uint64_t{bits != 0} << (i % 64);
  }
}

// use.template operator()<probes>(): lanes of a width known to the compiler need no division.
template <class Use>
void with_probes(std::uint32_t probes, Use use) noexcept {
  switch (probes) {
    case 1:
      return use.template operator()<1>();
    case 2:
      return use.template operator()<2>();
    case 3:
      return use.template operator()<3>();
    case 4:
      return use.template operator()<4>();
    case 5:
      return use.template operator()<5>();
    case 6:
      return use.template operator()<6>();
    default:
      return use.template operator()<7>();
  }
}

// The distinct keys that would set `share` of the bits of a row.
double keys_at(WindowShape shape, double share) {
  double touch = 0;  // the share of a line's cells that one key sets, averaged as a miss: lanes differ by one cell
  for (std::uint32_t i = 0; i < shape.probes; ++i) {
    const double width = L::lane_begin(i + 1, shape.probes) - L::lane_begin(i, shape.probes);
    touch += 1 / width / shape.probes;
  }
  if (share >= 1) return std::numeric_limits<double>::infinity();
  return std::log1p(-share) / std::log1p(-touch / static_cast<double>(shape.lines));
}

}  // namespace

void detail::window_insert(WindowShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                           std::uint64_t* seen, bool ahead) noexcept {
  for (std::size_t i = 0; seen != nullptr && i < count; i += 64) seen[i / 64] = 0;
  for (std::size_t i = 0; ahead && i < std::min(kAhead, count); ++i) ask_for(shape, table, digests[i]);
  for (std::size_t done = 0; done < count;) {
    std::uint64_t generation = generation_of(table);
    std::uint64_t inserted = load<std::uint64_t>(inserted_in(table, generation));
    std::uint64_t run = count - done;
    if (shape.by_time == 0) {
      if (inserted >= shape.step) generation = begin_generations(table, 1), inserted = 0;
      run = std::min(run, shape.step - inserted);
    }
    with_probes(shape.probes, [&]<std::uint32_t kProbes>() {
      insert_run<kProbes>(shape, table, digests + done, run, count - done, seen, done, ahead);
    });
    store(inserted_in(table, generation), inserted + std::min(run, UINT64_MAX - inserted));
    done += run;
  }
}

void detail::window_query(WindowShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                          std::uint64_t* answers, bool ahead) noexcept {
  with_probes(shape.probes,
              [&]<std::uint32_t kProbes>() { query_all<kProbes>(shape, table, digests, count, answers, ahead); });
}

void detail::window_advance(WindowShape shape, std::byte* table, std::uint64_t now) noexcept {
  if (shape.by_time == 0) return;
  const std::uint64_t epoch = now / shape.step;
  const std::uint64_t before = load<std::uint64_t>(table + L::kEpoch);
  if (epoch <= before) return;
  begin_generations(table, epoch - before);
  store(table + L::kEpoch, epoch);
}

WindowState state_of(WindowShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  WindowState state;
  state.generation = generation_of(table.data());
  state.epoch = detail::load<std::uint64_t>(table.data() + L::kEpoch);
  double none = 0;  // log of: no generation answers
  for (std::uint64_t age = 0; age < 8; ++age) {
    const std::byte* at = table.data() + L::kInserted + 8 * ((state.generation - age) % 8);
    state.inserted[age] = detail::load<std::uint64_t>(at);
    if (state.inserted[age] != 0) none += std::log1p(-shape.generation_fpr(static_cast<double>(state.inserted[age])));
  }
  state.fpr = std::abs(std::expm1(none));  // of an empty one 0, not -0
  return state;
}

Condition condition_of(WindowShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  const std::uint64_t generation = generation_of(table.data());
  std::array<double, 8> all_rows;
  std::array<double, 8> ones{};
  all_rows.fill(1);
  const double lines = static_cast<double>(shape.lines);
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    std::array<double, 8> rate{};
    for (std::uint64_t n = 0; n < shape.lines; ++n) {
      const std::byte* line = table.data() + WindowShape::kHeadBytes + (row * shape.lines + n) * kLineBytes;
      const std::uint32_t live = L::live(generation, line[L::kStamp]);
      std::array<double, 8> product;
      product.fill(1);
      for (std::uint32_t lane = 0; lane < shape.probes; ++lane) {
        const std::uint32_t begin = L::lane_begin(lane, shape.probes);
        const std::uint32_t end = L::lane_begin(lane + 1, shape.probes);
        std::array<std::uint32_t, 8> set{};
        for (std::uint32_t cell = begin; cell < end; ++cell) {
          const std::uint32_t bits = static_cast<std::uint32_t>(line[cell]) & live;
          for (std::uint32_t p = 0; p < 8; ++p) set[p] += bits >> p & 1;
        }
        for (std::uint32_t p = 0; p < 8; ++p) {
          product[p] *= static_cast<double>(set[p]) / (end - begin);
          ones[p] += set[p];
        }
      }
      for (std::uint32_t p = 0; p < 8; ++p) rate[p] += product[p] / lines;
    }
    for (std::uint32_t p = 0; p < 8; ++p) all_rows[p] *= rate[p];
  }
  Condition c;
  double none = 0;
  for (std::uint32_t p = 0; p < 8; ++p) {
    const double share = ones[p] / (lines * shape.rows * L::kCells);
    c.fill += share / 8;
    c.keys += keys_at(shape, share);
    none += std::log1p(-std::min(all_rows[p], 1 - 0x1p-53));
  }
  c.fpr = std::abs(std::expm1(none));
  return c;
}

}  // namespace perhaps
