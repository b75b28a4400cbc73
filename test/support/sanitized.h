// Fewer samples under a sanitizer: it finds in the first hundred what it would find in the last. Only for loops whose
// bounds follow from the number of samples, or which say how many they want; the release run draws all of them.
#pragma once
#include <cstdint>

namespace perhaps::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

constexpr std::uint64_t samples(std::uint64_t all) { return kSanitized ? (all + 9) / 10 : all; }

}  // namespace perhaps::test
