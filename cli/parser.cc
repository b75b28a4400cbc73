#include "parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

#include "command.h"
#include "csv.h"
#include "json_field.h"
#include "little_endian.h"
#include "options.h"
#include "perhaps/file/shards.h"
#include "separators.h"

namespace perhaps::cli {
namespace {

int hex_digit(std::byte b) noexcept {
  const char c = static_cast<char>(b);
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_space(std::byte b) noexcept { return b == std::byte{' '} || b == std::byte{'\t'}; }
bool is_blank(std::byte b) noexcept { return is_space(b) || b == std::byte{'\r'}; }

Bytes trimmed(Bytes key) noexcept {
  if (begins_with_mark(key)) key = key.subspan(3);
  while (!key.empty() && is_blank(key.front())) key = key.subspan(1);
  while (!key.empty() && is_blank(key.back())) key = key.first(key.size() - 1);
  return key;
}

// Takes a field off the front of `rest`, whose data() is null after the last one.
bool next_plain(Bytes& rest, std::byte delimiter, Bytes& field) noexcept {
  if (rest.data() == nullptr) return false;
  const std::byte* const end = rest.data() + rest.size();
  const auto* const at =
      rest.empty()
          ? nullptr
          : static_cast<const std::byte*>(std::memchr(rest.data(), std::to_integer<int>(delimiter), rest.size()));
  field = {rest.data(), at == nullptr ? end : at};
  rest = at == nullptr ? Bytes() : Bytes(at + 1, end);
  return true;
}

// The same between runs of spaces and tabs; those at the ends separate nothing.
bool next_word(Bytes& rest, Bytes& field) noexcept {
  while (!rest.empty() && is_blank(rest.front())) rest = rest.subspan(1);
  if (rest.empty()) return false;
  std::size_t size = 0;
  while (size < rest.size() && !is_blank(rest[size])) ++size;
  field = rest.first(size);
  rest = rest.subspan(size);
  return true;
}

constexpr char kHexDigits[] = "0123456789abcdef";

}  // namespace

Parser::Parser(const KeyOptions& options) : options_(options) {
  if (options.as == KeysAs::json) {
    for (const std::string& field : own(options.fields)) paths_.push_back(json::path_of(field));
  } else if (options.as != KeysAs::csv || !options.header) {
    for (const std::string& field : own(options.fields))
      columns_.push_back(static_cast<std::uint32_t>(parse_u64(field).value_or(0)));
  }
  if (options.hash != KeyHash::none) hasher_.emplace(options.hash);
  std::iota(std::begin(places_), std::end(places_), 0u);
}

std::size_t Parser::split(const Source& source, Bytes& block) {
  std::size_t count = 0;
  if (separated(options_.as)) return split_records(block, separator_of(options_.as), records_, kColumn);
  if (options_.as == KeysAs::csv) {
    csv::Fault fault{};
    count = csv::split_records(block, static_cast<std::byte>(options_.separator()), records_, kColumn, fault);
    if (fault == csv::Fault::stray_quote)
      fail(
          "{}: in this record or soon after it, a quote stands where CSV has none: inside a field without quotes, or "
          "before more text of a field that has ended",
          source.place(block.data()));
    if (fault == csv::Fault::unclosed) fail("{}: a quote in this record is never closed", source.place(block.data()));
  } else if (options_.as == KeysAs::u64) {
    for (; count < kColumn && !block.empty(); block = block.subspan(8)) records_[count++] = block.first(8);
  } else {
    while (count < kColumn && !block.empty()) {
      const auto size = static_cast<std::size_t>(framed_size(block));
      records_[count++] = block.subspan(4, size - 4);
      block = block.subspan(size);
    }
  }
  return count;
}

bool Parser::next(const Source& source, Bytes& block, Batch& batch) {
  if (block.empty()) return false;
  const std::size_t read = split(source, block);
  if (options_.key_is_record()) {
    batch = chosen(records_, read, read);
    return true;
  }
  std::size_t count = read;
  try {
    make_keys(&source, count);
  } catch (const Bad& bad) {
    fail("{}: {}", source.place(records_[bad.record].data()), bad.what);
  }
  batch = chosen(keys_, count, read);
  return true;
}

Batch Parser::chosen(Bytes* keys, std::size_t count, std::size_t read) noexcept {
  if (options_.shard.count != 0) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (shard_of(keys[i], options_.shard.count) != options_.shard.index) continue;
      keys[kept] = keys[i];
      records_[kept++] = records_[i];
    }
    count = kept;
  }
  return {{keys, count}, {records_, count}, {places_, count}, read};
}

Batch Parser::literals(std::size_t from) {
  std::size_t count = std::min(kColumn, options_.literals.size() - from);
  for (std::size_t i = 0; i < count; ++i) records_[i] = bytes_of(options_.literals[from + i]);
  if (options_.number()) {  // as people write them
    arena_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& text = options_.literals[from + i];
      const auto value = parse_u64(text);
      if (!value) fail("-e {}: not a 64-bit number (--keys-as u64)", text);
      std::byte* const out = arena_.take(8);
      store_little_endian(out, *value);
      keys_[i] = {out, 8};
    }
    return chosen(keys_, count, count);
  }
  try {
    make_keys(nullptr, count);
  } catch (const Bad& bad) {
    fail("-e {}: {}", options_.literals[from + bad.record], bad.what);
  }
  return chosen(keys_, count, count);
}

bool Parser::fields_of(Bytes record, const std::vector<std::uint32_t>& columns, Bytes& key) {
  const bool csv = options_.as == KeysAs::csv;
  const auto delimiter = static_cast<std::byte>(options_.separator());
  const auto field_at = [&](std::uint32_t wanted, Bytes& field) {
    Bytes rest = csv ? csv::without_return(record) : record;
    for (std::uint32_t i = 1;; ++i) {
      const bool there = csv               ? csv::next_field(rest, delimiter, field)
                         : options_.blanks ? next_word(rest, field)
                                           : next_plain(rest, delimiter, field);
      if (!there) return false;
      if (i == wanted) break;
    }
    if (!csv || !csv::is_quoted(field)) return true;
    std::byte* const out = arena_.take(field.size());
    const std::size_t size = csv::unquote(field, out);
    arena_.trim(out + size);
    field = {out, size};
    return true;
  };
  if (columns.size() == 1) return field_at(columns[0], key);
  // Joined by tabs. What field_at puts into the arena lies before, and stays.
  std::vector<Bytes> parts(columns.size());
  std::size_t size = columns.size() - 1;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!field_at(columns[i], parts[i])) return false;
    size += parts[i].size();
  }
  std::byte* const begin = arena_.take(size);
  std::byte* out = begin;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) *out++ = std::byte{'\t'};
    out = std::copy(parts[i].begin(), parts[i].end(), out);
  }
  key = {begin, out};
  return true;
}

bool Parser::json_fields_of(std::size_t i, Bytes& key) {
  std::vector<Bytes> parts;
  for (const auto& path : paths_) {
    const json::Field field = json::find(records_[i], path, arena_);
    if (field.found == json::Found::fault)
      throw Bad{i, fmt::format("not a line of JSON, at column {}: {}", field.column, field.fault)};
    if (field.found == json::Found::missing) return false;
    if (paths_.size() == 1) {
      key = field.value;
      return true;
    }
    parts.push_back(field.value);
  }
  std::size_t size = parts.size() - 1;
  for (const Bytes part : parts) size += part.size();
  std::byte* const begin = arena_.take(size);
  std::byte* out = begin;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (p != 0) *out++ = std::byte{'\t'};
    out = std::copy(parts[p].begin(), parts[p].end(), out);
  }
  key = {begin, out};
  return true;
}

std::string Parser::lack(std::size_t i, const std::vector<std::uint32_t>& columns) const {
  constexpr std::string_view kAdvice = " (--missing skip leaves such records out)";
  if (options_.as == KeysAs::json)
    return fmt::format("there is no field {}{}", fmt::join(options_.fields, ","), kAdvice);
  Bytes rest = options_.as == KeysAs::csv ? csv::without_return(records_[i]) : records_[i];
  Bytes field;
  std::uint32_t fields = 0;
  const auto delimiter = static_cast<std::byte>(options_.separator());
  while (options_.as == KeysAs::csv ? csv::next_field(rest, delimiter, field)
         : options_.blanks          ? next_word(rest, field)
                                    : next_plain(rest, delimiter, field)) {
    ++fields;
  }
  const auto last = std::max_element(columns.begin(), columns.end());
  const std::vector<std::string> names = own(options_.fields);
  const auto name = names.size() == columns.size() ? names[static_cast<std::size_t>(last - columns.begin())] : "";
  const std::string number = std::to_string(*last);
  return fmt::format("there {} {} field{}, --field {} needs more{}", fields == 1 ? "is" : "are", fields,
                     fields == 1 ? "" : "s",
                     name.empty() || name == number ? number : fmt::format("{} (number {})", name, number), kAdvice);
}

Bytes Parser::decoded(Bytes key, std::size_t record) {
  if (key.size() % 2 != 0) throw Bad{record, fmt::format("an odd number of hex digits ({})", key.size())};
  std::byte* const begin = arena_.take(key.size() / 2);
  std::byte* out = begin;
  for (std::size_t j = 0; j < key.size(); j += 2) {
    const int high = hex_digit(key[j]);
    const int low = hex_digit(key[j + 1]);
    if (high < 0 || low < 0) throw Bad{record, fmt::format("not a hex digit at column {}", j + (high < 0 ? 1 : 2))};
    *out++ = static_cast<std::byte>(high << 4 | low);
  }
  return {begin, out};
}

Bytes Parser::lowered(Bytes key) {
  std::byte* const begin = arena_.take(key.size());
  std::byte* out = begin;
  for (const std::byte b : key) {
    const bool upper = b >= std::byte{'A'} && b <= std::byte{'Z'};
    *out++ = upper ? b | std::byte{0x20} : b;
  }
  return {begin, out};
}

// Hex, or bytes for a filter of digests in bytes.
Bytes Parser::hashed(Bytes key) {
  std::byte digest[KeyHasher::kMaxBytes];
  hasher_->digest(key, digest);
  const std::size_t size = hasher_->size();
  std::byte* const out = arena_.take(2 * size);
  if (options_.hex) {
    std::memcpy(out, digest, size);
    return {out, size};
  }
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = std::to_integer<unsigned>(digest[i]);
    out[2 * i] = static_cast<std::byte>(kHexDigits[byte >> 4]);
    out[2 * i + 1] = static_cast<std::byte>(kHexDigits[byte & 15]);
  }
  return {out, 2 * size};
}

void Parser::make_keys(const Source* source, std::size_t& count) {
  arena_.clear();
  const std::vector<std::uint32_t> columns =
      source != nullptr && !source->columns().empty() ? own(source->columns()) : columns_;
  const bool has_fields = source != nullptr && !options_.fields.empty();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Bytes key = records_[i];
    if (has_fields && !(options_.as == KeysAs::json ? json_fields_of(i, key) : fields_of(records_[i], columns, key))) {
      if (options_.missing == Missing::fail) throw Bad{i, lack(i, columns)};
      if (options_.missing == Missing::skip) {
        ++skipped_;
        continue;
      }
      key = Bytes(records_[i].data(), std::size_t{0});
    }
    if (options_.trim) key = trimmed(key);
    // For a filter of digests, the text of the query is hashed; it is not hex.
    if (options_.hash != KeyHash::none) {
      if (options_.lower) key = lowered(key);
      key = hashed(key);
    } else {
      if (options_.hex) key = decoded(key, i);
      if (options_.lower) key = lowered(key);
    }
    places_[kept] = static_cast<std::uint32_t>(i);
    records_[kept] = records_[i];
    keys_[kept++] = key;
  }
  count = kept;
}

}  // namespace perhaps::cli
