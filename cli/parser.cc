#include "parser.h"

#include <algorithm>
#include <cstring>

#include "command.h"
#include "little_endian.h"
#include "options.h"
#include "perhaps/file/shards.h"
#include "split.h"

namespace perhaps::cli {
namespace {

int hex_digit(std::byte b) noexcept {
  const char c = static_cast<char>(b);
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_blank(std::byte b) noexcept { return b == std::byte{' '} || b == std::byte{'\t'} || b == std::byte{'\r'}; }

Bytes trimmed(Bytes key) noexcept {
  while (!key.empty() && is_blank(key.front())) key = key.subspan(1);
  while (!key.empty() && is_blank(key.back())) key = key.first(key.size() - 1);
  return key;
}

// Field `wanted` (from 1) of `record`; false if there are fewer.
bool field_of(Bytes& record, std::uint32_t wanted, std::byte delimiter, std::uint32_t& fields) noexcept {
  const std::byte* p = record.data();
  const std::byte* const end = p + record.size();
  for (fields = 1;; ++fields) {
    const auto* at = p == end ? nullptr
                              : static_cast<const std::byte*>(
                                    std::memchr(p, std::to_integer<int>(delimiter), static_cast<std::size_t>(end - p)));
    if (fields == wanted) {
      record = {p, at == nullptr ? end : at};
      return true;
    }
    if (at == nullptr) return false;
    p = at + 1;
  }
}

}  // namespace

bool Parser::next(const Source& source, Bytes& block, Batch& batch) {
  if (block.empty()) return false;
  std::size_t count = 0;
  if (separated(options_.as)) {
    count = split_records(block, separator_of(options_.as), records_, kColumn);
  } else if (options_.as == KeysAs::u64) {
    for (; count < kColumn && !block.empty(); block = block.subspan(8)) records_[count++] = block.first(8);
  } else {
    while (count < kColumn && !block.empty()) {
      const auto size = static_cast<std::size_t>(framed_size(block));
      records_[count++] = block.subspan(4, size - 4);
      block = block.subspan(size);
    }
  }
  if (options_.key_is_record()) {
    batch = chosen(records_, count);
    return true;
  }
  try {
    make_keys(count);
  } catch (const Bad& bad) {
    fail("{}: {}", source.place(records_[bad.record].data()), bad.what);
  }
  batch = chosen(keys_, count);
  return true;
}

Batch Parser::chosen(Bytes* keys, std::size_t count) noexcept {
  if (options_.shard.count != 0) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (shard_of(keys[i], options_.shard.count) != options_.shard.index) continue;
      keys[kept] = keys[i];
      records_[kept++] = records_[i];
    }
    count = kept;
  }
  return {{keys, count}, {records_, count}};
}

Batch Parser::literals(std::size_t from) {
  const std::size_t count = std::min(kColumn, options_.literals.size() - from);
  for (std::size_t i = 0; i < count; ++i) records_[i] = bytes_of(options_.literals[from + i]);
  if (options_.as == KeysAs::u64) {  // numbers, as people write them
    scratch_.resize(count * 8);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& text = options_.literals[from + i];
      const auto value = parse_u64(text);
      if (!value) fail("-e {}: not a 64-bit number (--keys-as u64)", text);
      store_little_endian(&scratch_[8 * i], *value);
      keys_[i] = {&scratch_[8 * i], 8};
    }
    return chosen(keys_, count);
  }
  try {
    make_keys(count);
  } catch (const Bad& bad) {
    fail("-e {}: {}", options_.literals[from + bad.record], bad.what);
  }
  return chosen(keys_, count);
}

void Parser::make_keys(std::size_t count) {
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i) room += records_[i].size();
  if (scratch_.size() < room) scratch_.resize(room);
  std::byte* out = scratch_.data();
  for (std::size_t i = 0; i < count; ++i) {
    Bytes key = records_[i];
    if (options_.field != 0) {
      std::uint32_t fields = 0;
      if (!field_of(key, options_.field, static_cast<std::byte>(options_.delimiter), fields)) {
        throw Bad{i, fmt::format("there {} {} field{}, --field {} needs more", fields == 1 ? "is" : "are", fields,
                                 fields == 1 ? "" : "s", options_.field)};
      }
    }
    if (options_.trim) key = trimmed(key);
    if (options_.as == KeysAs::hex) {
      if (key.size() % 2 != 0) throw Bad{i, fmt::format("an odd number of hex digits ({})", key.size())};
      std::byte* const begin = out;
      for (std::size_t j = 0; j < key.size(); j += 2) {
        const int high = hex_digit(key[j]);
        const int low = hex_digit(key[j + 1]);
        if (high < 0 || low < 0) throw Bad{i, fmt::format("not a hex digit at column {}", j + (high < 0 ? 1 : 2))};
        *out++ = static_cast<std::byte>(high << 4 | low);
      }
      key = {begin, out};
    }
    if (options_.lower) {
      std::byte* const begin = out;
      for (const std::byte b : key) {
        const bool upper = b >= std::byte{'A'} && b <= std::byte{'Z'};
        *out++ = upper ? b | std::byte{0x20} : b;
      }
      key = {begin, out};
    }
    keys_[i] = key;
  }
}

}  // namespace perhaps::cli
