// The batch kernels of the window (perhaps/window.h), and everything that writes its table. One form for all
// instruction sets.
#include "perhaps/window.h"

#include "kernel/instruction_set.h"

namespace perhaps {
namespace {

using L = WindowLayout;

std::byte* inserted_in(std::byte* table, std::uint64_t generation) noexcept {
  return table + L::kInserted + 8 * (generation % 8);
}

// Begins `count` generations. After eight of them nothing older is left, so no more than eight are begun:
// further ones would make stamps look fresh again.
std::uint64_t begin_generations(std::byte* table, std::uint64_t count) noexcept {
  std::uint64_t generation = L::generation_of(table);
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

// Where the cells of a row digest are. A number of probes that the compiler knows needs no division. WebAssembly, where
// each number would add 4 KB to what is loaded, has one form for all: the lanes are found once for a batch.
#if defined(__wasm__)
class Lanes {
 public:
  explicit Lanes(std::uint32_t probes) noexcept : probes_(probes) {
    for (std::uint32_t i = 0; i <= probes; ++i) begin_[i] = L::lane_begin(i, probes);
  }
  std::uint32_t probes() const noexcept { return probes_; }
  std::uint32_t cell_of(std::uint64_t x, std::uint32_t lane) const noexcept {
    const std::uint32_t p = static_cast<std::uint32_t>(x) * detail::kBlockSalt[lane];
    return begin_[lane] + static_cast<std::uint32_t>(std::uint64_t{p} * (begin_[lane + 1] - begin_[lane]) >> 32);
  }

 private:
  std::uint32_t probes_;
  std::array<std::uint32_t, 8> begin_{};
};
#else
template <std::uint32_t kProbes>
struct Lanes {
  static constexpr std::uint32_t probes() noexcept { return kProbes; }
  static std::uint32_t cell_of(std::uint64_t x, std::uint32_t lane) noexcept { return L::cell_of(x, lane, kProbes); }
};
#endif

// Generations all of whose cells in the line of row digest x are set, before bit `plane` was set in them.
template <class Its>
std::uint32_t set_row(std::byte* line, std::uint64_t x, std::uint64_t generation, std::byte plane,
                      const Its& lanes) noexcept {
  if (line[L::kStamp] != static_cast<std::byte>(generation)) freshen(line, generation);
  std::byte all{0xff};
  for (std::uint32_t i = 0; i < lanes.probes(); ++i) {
    std::byte& cell = line[lanes.cell_of(x, i)];
    all &= cell;
    cell |= plane;
  }
  return static_cast<std::uint32_t>(all);
}

template <class Its>
std::uint32_t row_bits(const std::byte* line, std::uint64_t x, std::uint64_t generation, const Its& lanes) noexcept {
  std::uint32_t bits = L::live(generation, line[L::kStamp]);
  for (std::uint32_t i = 0; i < lanes.probes(); ++i) bits &= static_cast<std::uint32_t>(line[lanes.cell_of(x, i)]);
  return bits;
}

// The generation that keys go into, and how many more it takes.
class Present {
 public:
  Present(const WindowShape& shape, std::byte* table) noexcept : shape_(shape), table_(table) { look(); }
  Present(const Present&) = delete;
  Present& operator=(const Present&) = delete;
  ~Present() { write(); }

  std::uint64_t generation() const noexcept { return generation_; }
  // Room for one more key.
  void advance() noexcept {
    if (room_ == 0) [[unlikely]] {
      write();
      begin_generations(table_, 1);
      look();
    }
    --room_;
  }

 private:
  void look() noexcept {
    generation_ = L::generation_of(table_);
    inserted_ = detail::load<std::uint64_t>(inserted_in(table_, generation_));
    // By time a generation takes any number of keys.
    room_at_first_ = room_ = shape_.by_time != 0 ? UINT64_MAX : shape_.step - std::min(shape_.step, inserted_);
  }
  void write() noexcept {
    const std::uint64_t more = std::min(room_at_first_ - room_, UINT64_MAX - inserted_);
    detail::store(inserted_in(table_, generation_), inserted_ + more);
  }

  const WindowShape& shape_;
  std::byte* table_;
  std::uint64_t generation_ = 0;
  std::uint64_t inserted_ = 0;
  std::uint64_t room_at_first_ = 0;
  std::uint64_t room_ = 0;
};

// Sixteen keys ahead: with eight, as many instructions go into the turns themselves as a row takes. Turns are not
// inlined: with the loop around them they run out of registers (1.25 times the instructions of an insert).
constexpr std::size_t kTurn = 16;
struct Outline {
  template <class Turn>
  [[gnu::noinline]] static auto call(const Turn& turn) {
    return turn();
  }
};

// `seen` may be null.
template <class Its>
void insert_as(const WindowShape& of, std::byte* table, const detail::Batch<>& batch, std::uint64_t* seen,
               Its lanes) noexcept {
  const WindowShape shape = of;
  Present present(of, table);
  const auto insert = [=, &present](std::uint64_t, std::uint64_t h) {
    present.advance();
    const std::uint64_t generation = present.generation();
    const std::byte plane{static_cast<unsigned char>(1u << generation % 8)};
    std::uint32_t bits = 0xff;
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      const std::uint64_t x = L::row_digest(row, h);
      bits &= set_row(table + L::line_at(shape, row, x), x, generation, plane, lanes);
    }
    return bits != 0;
  };
  const detail::Steps steps{[](std::uint64_t h) { return h; },
                            [=](std::uint64_t h) {
                              for (std::uint32_t row = 0; row < shape.rows; ++row)
                                detail::prefetch_write(table + L::line_at(shape, row, L::row_digest(row, h)));
                            },
                            insert};
  if (seen != nullptr) {
    detail::query_keys<kTurn, Outline>(batch, seen, 0, steps);
  } else {
    detail::insert_keys<kTurn, Outline>(batch, 0, steps);
  }
}

template <class Its>
void query_as(const WindowShape& of, const std::byte* table, const detail::Batch<>& batch, std::uint64_t* answers,
              Its lanes) noexcept {
  const WindowShape shape = of;
  const auto seen = [=, generation = L::generation_of(table)](std::uint64_t, std::uint64_t h) {
    std::uint32_t bits = 0xff;
    for (std::uint32_t row = 0; bits != 0 && row < shape.rows; ++row) {
      const std::uint64_t x = L::row_digest(row, h);
      bits &= row_bits(table + L::line_at(shape, row, x), x, generation, lanes);
    }
    return bits != 0;
  };
  detail::query_keys<kTurn, Outline>(
      batch, answers, 0,
      detail::Steps{[](std::uint64_t h) { return h; }, [=](std::uint64_t h) { L::prefetch(shape, table, h); }, seen});
}

// use(lanes)
template <class Use>
void with_probes(std::uint32_t probes, Use use) noexcept {
#if defined(__wasm__)
  use(Lanes(probes));
#else
  switch (probes) {
    case 1:
      return use(Lanes<1>());
    case 2:
      return use(Lanes<2>());
    case 3:
      return use(Lanes<3>());
    case 4:
      return use(Lanes<4>());
    case 5:
      return use(Lanes<5>());
    case 6:
      return use(Lanes<6>());
    default:
      return use(Lanes<7>());
  }
#endif
}

void query(const WindowShape& shape, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  with_probes(shape.probes, [&](auto lanes) { query_as(shape, table, batch, answers, lanes); });
}
void insert_seen(const WindowShape& shape, std::byte* table, const detail::Batch<>& batch,
                 std::uint64_t* seen) noexcept {
  with_probes(shape.probes, [&](auto lanes) { insert_as(shape, table, batch, seen, lanes); });
}
std::size_t insert(const WindowShape& shape, std::byte* table, const detail::Batch<>& batch) noexcept {
  insert_seen(shape, table, batch, nullptr);
  return batch.count;
}

}  // namespace

void WindowLayout::advance(const WindowShape& shape, std::byte* table, std::uint64_t now) noexcept {
  if (shape.by_time == 0) return;
  const std::uint64_t epoch = now / shape.step;
  const std::uint64_t before = detail::load<std::uint64_t>(table + kEpoch);
  if (epoch <= before) return;
  begin_generations(table, epoch - before);
  detail::store(table + kEpoch, epoch);
}

void kernel::window_kernels(Target target, InstructionSet& set) {
  if (target != Target::portable) return;
  set.window_query = query;
  set.window_insert = insert;
  set.window_insert_seen = insert_seen;
}

}  // namespace perhaps
