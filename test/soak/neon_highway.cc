// Highway's library is not installed for ARM. The kernels need only this function of it.
#include <hwy/targets.h>

namespace hwy {
std::int64_t SupportedTargets() { return HWY_NEON; }  // part of every 64-bit ARM
}  // namespace hwy
