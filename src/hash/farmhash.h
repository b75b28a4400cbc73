// FarmHash Fingerprint32 (Pike, Alakuijala 2014) as in the Rust crate `farmhash`: in keys of up to four bytes, the
// bytes are unsigned. Google's own treats them as signed, so the two differ for bytes of 0x80 and above.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

std::uint32_t farmhash_fingerprint32(Bytes key) noexcept;

}  // namespace perhaps
