// The batch kernels of the counting filter (perhaps/counting_bloom.h). One form for all instruction sets: the time goes
// into the line of each key.
#include "perhaps/counting_bloom.h"

#include "kernel/instruction_set.h"

namespace perhaps::kernel {
namespace {

using Layout = CountingLayout;

struct Outline {
  template <class Turn>
  [[gnu::noinline]] static auto call(const Turn& turn) {
    return turn();
  }
};

template <unsigned kBits>
void query_as(CountingShape shape, const std::byte* table, const detail::Batch<>& batch, std::uint64_t* answers) {
  const auto covered = [=](std::uint64_t where, std::uint64_t h) {
    const Layout::Probes probe(h);
    unsigned all = 1;
    for (std::uint32_t i = 0; i < shape.probes; ++i) all &= Layout::get<kBits>(table + where, probe[i]) != 0;
    return all != 0;
  };
  detail::query_keys<64, Outline>(
      batch, answers, shape.bytes(),
      detail::Steps{[=](std::uint64_t h) { return Layout::line_of(shape, h) * (16 * kBits); },
                    [=](std::uint64_t where) { detail::prefetch_read(table + where); }, covered});
}

void query(const CountingShape& shape, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  shape.counter_bits == 4 ? query_as<4>(shape, table, batch, answers) : query_as<1>(shape, table, batch, answers);
}

std::size_t insert(const CountingShape& of, std::byte* table, const detail::Batch<>& batch) noexcept {
  const CountingShape shape = of;
  return detail::insert_keys<64, Outline>(
      batch, shape.bytes(),
      detail::Steps{[=](std::uint64_t h) { return Layout::line_of(shape, h) * shape.line_bytes(); },
                    [=](std::uint64_t where) { detail::prefetch_write(table + where); },
                    [=](std::uint64_t, std::uint64_t h) { static_cast<void>(Layout::insert(shape, table, h)); }});
}

}  // namespace

void counting_kernels(Target target, InstructionSet& set) {
  if (target != Target::portable) return;
  set.counting_query = query;
  set.counting_insert = insert;
}

}  // namespace perhaps::kernel
