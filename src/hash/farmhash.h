// FarmHash Fingerprint32 (Pike, Alakuijala 2014) as the Rust crate `farmhash` has it: the bytes of keys up to four
// bytes long are unsigned. Google's own is signed there, and differs for bytes from 0x80.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

std::uint32_t farmhash_fingerprint32(Bytes key) noexcept;

}  // namespace perhaps
