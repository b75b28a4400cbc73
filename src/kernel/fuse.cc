// The batch kernel of the fuse filter (perhaps/fuse.h). One form for all instruction sets: the slots of a key are
// prefetched and their places kept until it is their turn.
#include "perhaps/fuse.h"

#include "kernel/instruction_set.h"

namespace perhaps::kernel {
namespace {

template <unsigned kArity, class Slots>
void query_as(const FuseShape& of, const std::byte* table, const detail::Batch<>& batch,
              std::uint64_t* answers) noexcept {
  using Lookup = detail::FuseLookup<kArity, Slots>;
  const FuseShape shape = of;
  detail::query_keys<64, detail::Inlined>(
      batch, answers, 0,
      detail::Steps{[=](std::uint64_t h) { return Lookup(shape, table, h); },
                    [=](const Lookup& lookup) { lookup.ask_ahead(table); },
                    [=](const Lookup& lookup, std::uint64_t) { return lookup.answer(table, shape.bits); }});
}

void query(const FuseShape& shape, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  detail::fuse_slots_of(shape.bits, [&]<class Slots>(Slots) {
    shape.arity == 3 ? query_as<3, Slots>(shape, table, batch, answers)
                     : query_as<4, Slots>(shape, table, batch, answers);
  });
}

}  // namespace

void fuse_kernels(Target target, InstructionSet& set) {
  if (target == Target::portable) set.fuse_query = query;
}

}  // namespace perhaps::kernel
