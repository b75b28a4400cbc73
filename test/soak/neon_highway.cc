// Highway's library is not installed for ARM. Of all of it the kernels need one question answered.
#include <hwy/targets.h>

namespace hwy {
std::int64_t SupportedTargets() { return HWY_NEON; }  // part of every 64-bit ARM
}  // namespace hwy
