// Single lookups and inserts with AVX2, for programs that are not compiled for it (perhaps/detail/isa.h).
#if defined(__x86_64__) || defined(__i386__)
#define PERHAPS_AVX2_FORMS 1
#include "perhaps/detail/isa.h"

namespace perhaps::detail::isa {

#define PERHAPS_FORWARD(name, Byte, Key) \
  [[gnu::target("avx2")]] bool avx2_##name(Byte* at, Key key) noexcept { return Avx2Eight::name(at, key); }
PERHAPS_FORWARD(line_covers, const std::byte, std::uint32_t)
PERHAPS_FORWARD(line_covers, const std::byte, LinePart)
PERHAPS_FORWARD(line_insert, std::byte, std::uint32_t)
PERHAPS_FORWARD(line_insert, std::byte, LinePart)
PERHAPS_FORWARD(block_covers, const std::byte, std::uint32_t)
PERHAPS_FORWARD(block_insert, std::byte, std::uint32_t)
#undef PERHAPS_FORWARD

}  // namespace perhaps::detail::isa
#endif
