#include "records.h"

#include <algorithm>
#include <cstring>

#include "command.h"
#include "csv.h"
#include "separators.h"

namespace perhaps::cli {

std::size_t whole_records(KeysAs as, Bytes text, std::size_t enough) noexcept {
  if (separated(as)) {
    const int separator = std::to_integer<int>(separator_of(as));
    if (enough < text.size()) {
      const auto* at =
          static_cast<const std::byte*>(std::memchr(text.data() + enough, separator, text.size() - enough));
      return at == nullptr ? text.size() : static_cast<std::size_t>(at - text.data()) + 1;
    }
    const auto* at =
        text.empty() ? nullptr : static_cast<const std::byte*>(::memrchr(text.data(), separator, text.size()));
    return at == nullptr ? 0 : static_cast<std::size_t>(at - text.data()) + 1;
  }
  if (as == KeysAs::csv) return csv::whole_records(text, enough);
  if (as == KeysAs::u64) return std::min(text.size(), enough + 7) / 8 * 8;
  std::size_t at = 0;
  while (at < text.size() && at < enough) {
    const std::uint64_t size = framed_size(text.subspan(at));
    if (size > text.size() - at) break;
    at += static_cast<std::size_t>(size);
  }
  return at;
}

std::uint64_t count_records(KeysAs as, Bytes block) noexcept {
  if (separated(as)) {
    const std::byte separator = separator_of(as);
    return count_separators(block, separator) + (!block.empty() && block.back() != separator ? 1 : 0);
  }
  if (as == KeysAs::csv) return csv::count_records(block);
  if (as == KeysAs::u64) return block.size() / 8;
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < block.size(); ++count) at += static_cast<std::size_t>(framed_size(block.subspan(at)));
  return count;
}

void fail_cut_short(const std::string& name, KeysAs as, std::uint64_t left) {
  if (as == KeysAs::u64) fail("{}: the last {} bytes are not a whole 8-byte key (--keys-as u64)", name, left);
  fail("{}: the last record is cut short: {} bytes are left of it (--keys-as len32)", name, left);
}

void fail_too_long(const std::string& name, std::uint64_t size, bool more) {
  fail("{}: a record has {}{} bytes; the limit is {}", name, more ? "more than " : "", size, kMaxRecord);
}

void check_framed(const std::string& name, Bytes rest) {
  if (const std::uint64_t size = framed_size(rest) - 4; size > kMaxRecord) fail_too_long(name, size, false);
}

}  // namespace perhaps::cli
