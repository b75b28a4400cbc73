// Records, as --keys-as says that they lie in the bytes of an input.
#pragma once
#include <cstdint>
#include <string>

#include "little_endian.h"
#include "perhaps/hash.h"

namespace perhaps::cli {

enum class KeysAs : std::uint8_t { lines, nul, len32, u64, csv, json };

// A pipe without separators must not take all the memory. A mapped file takes none, but refuses the same keys.
inline constexpr std::size_t kMaxRecord = std::size_t{1} << 30;

inline std::byte separator_of(KeysAs as) noexcept { return as == KeysAs::nul ? std::byte{0} : std::byte{'\n'}; }
// One separator ends each record, wherever it stands. (In CSV it may stand in quotes.)
inline bool separated(KeysAs as) noexcept { return as == KeysAs::lines || as == KeysAs::nul || as == KeysAs::json; }
inline bool binary(KeysAs as) noexcept { return as == KeysAs::len32 || as == KeysAs::u64; }

// The bytes of the len32 record at the front of `rest`, length included; more than rest.size() if it is cut short.
inline std::uint64_t framed_size(Bytes rest) noexcept {
  return rest.size() < 4 ? 4 : 4 + std::uint64_t{load_little_endian<std::uint32_t>(rest.data())};
}
// The longest front of `text` made of whole records, as far as that can be seen; stops soon after `enough` bytes.
std::size_t whole_records(KeysAs as, Bytes text, std::size_t enough) noexcept;
std::uint64_t count_records(KeysAs as, Bytes block) noexcept;

// These throw Failure, for the input `name`: the last `left` bytes are not a whole record; a record has `size` bytes,
// or `more`, and is too long; the len32 record at the front of `rest` is.
[[noreturn]] void fail_cut_short(const std::string& name, KeysAs as, std::uint64_t left);
[[noreturn]] void fail_too_long(const std::string& name, std::uint64_t size, bool more);
void check_framed(const std::string& name, Bytes rest);

}  // namespace perhaps::cli
