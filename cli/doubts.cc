#include "doubts.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <utility>

#include "command.h"
#include "print.h"
#include "source.h"

namespace perhaps::cli {
namespace {

// How far into an input is looked for bytes that text does not have.
constexpr std::size_t kSample = 4096;

constexpr std::pair<std::string_view, std::string_view> kArchives[] = {
    {"PK\3\4", "zip"}, {"7z\xbc\xaf\x27\x1c", "7z"}, {"Rar!\x1a\x07", "RAR"}, {"\x1f\x9d", "compress (.Z)"}};

// Says it once, whichever input has it.
void notice(std::atomic<bool>& said, const std::string& message) {
  if (!said.exchange(true)) warn(message);
}

void refuse_archives(const std::string& name, std::string_view text) {
  for (const auto& [magic, format] : kArchives) {
    if (text.starts_with(magic)) fail("{}: the {} format is not read: unpack it first", name, format);
  }
  // The name of the first member, with NULs behind it, and at byte 257 what every tar has.
  if (text.size() > 262 && text[99] == '\0' && text.substr(257, 5) == "ustar")
    fail("{}: a tar archive is not read: unpack it first (tar -xOf)", name);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'F'; }
bool is_lower(char c) { return c >= 'a' && c <= 'f'; }

std::size_t hex_digits_of(KeyHash hash) noexcept {
  return hash == KeyHash::sha256 ? 64 : hash == KeyHash::sha1 ? 40 : 32;
}

// The hex digits in front of a text, if they are as many as a digest has.
std::string_view digest_in(std::string_view text) {
  const auto* const end =
      std::ranges::find_if_not(text, [](char c) { return is_digit(c) || is_upper(c) || is_lower(c); });
  const auto size = static_cast<std::size_t>(end - text.begin());
  return size == 32 || size == 40 || size == 64 ? text.substr(0, size) : std::string_view();
}

// A key, or the beginning of a record that has it in front, is a digest. `what`: where it stands.
void say_doubts_of_digest(const std::string& what, std::string_view digest, const KeyOptions& options) {
  static std::atomic<bool> said_hash{false};
  static std::atomic<bool> said_upper{false};
  if (options.hash != KeyHash::none) {
    if (digest.size() != hex_digits_of(options.hash)) return;
    notice(said_hash,
           fmt::format("{}, and the {} of these digits is the key, not the digest itself ({} takes it as it is)", what,
                       name_of(options.hash), options.plain_advice));
  } else if (!options.hex && !options.lower && std::ranges::any_of(digest, is_upper) &&
             std::ranges::none_of(digest, is_lower)) {
    notice(said_upper, what +
                           " in upper case: in lower case, as sha1sum prints it, it is another key (a filter built "
                           "with --keys-as hex takes both for one)");
  }
}

void say_doubts_of_digests(const std::string& name, std::string_view record, const KeyOptions& options) {
  static std::atomic<bool> said_colon{false};
  const std::string_view digest = digest_in(record);
  if (digest.empty()) return;
  std::string_view rest = record.substr(digest.size());
  if (rest == "\r") rest = {};
  const bool first_field = options.fields == std::vector<std::string>{"1"} && !rest.empty() &&
                           (options.blanks ? rest[0] == ' ' || rest[0] == '\t' : rest[0] == options.separator());
  if (rest.empty() || first_field) {
    say_doubts_of_digest(name + ": begins with a digest", digest, options);
  } else if (options.fields.empty() && !options.hex && rest[0] == ':') {
    notice(said_colon, name +
                           ": begins with a digest, a colon and more, and the whole line is the key: --field 1 "
                           "--delimiter : takes the digest");
  }
}

}  // namespace

void say_doubts(const std::string& name, Bytes bytes, const KeyOptions& options) {
  static std::atomic<bool> said_mark{false};
  static std::atomic<bool> said_return{false};
  static std::atomic<bool> said_wide{false};
  static std::atomic<bool> said_nul{false};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  refuse_archives(name, text);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    notice(said_wide, name + ": is UTF-16, and its bytes are the keys, not its characters: iconv -f UTF-16 -t UTF-8");
    return;
  }
  if (options.as == KeysAs::csv || options.as == KeysAs::json) return;  // the other doubts are of plain records
  if (!options.trim && begins_with_mark(bytes)) {
    notice(said_mark, fmt::format("{}: begins with a byte order mark, which is a part of its first key: {}", name,
                                  options.trim_advice));
  }
  const std::string_view record = text.substr(0, text.find(static_cast<char>(separator_of(options.as))));
  if (options.as == KeysAs::nul) {
    if (record.size() == text.size() && text.find('\n') != std::string_view::npos) {
      notice(said_nul, name + ": has no NUL, so all of it is one key: --keys-as lines takes each line for one");
    }
  } else {
    if (!options.trim && record.size() < text.size() && record.ends_with('\r')) {
      notice(said_return,
             fmt::format("{}: lines end in CR LF, and the CR is a part of each key: {}", name, options.trim_advice));
    }
    if (text.substr(0, kSample).find('\0') != std::string_view::npos) {
      notice(said_nul,
             name + ": has NUL bytes, which become parts of keys: use -0 if they end keys, iconv if it is UTF-16");
    }
  }
  if (options.for_filter) say_doubts_of_digests(name, record, options);
}

void say_doubts_of_literals(const KeyOptions& options, std::size_t fields) {
  static std::atomic<bool> said_fields{false};
  for (const std::string& key : options.literals) {
    if (std::cmp_less(std::ranges::count(key, '\t') + 1, fields)) {
      notice(said_fields,
             fmt::format("-e {}: the keys of this filter are {} fields with tabs between them", key, fields));
    }
    if (!key.empty() && digest_in(key).size() == key.size())
      say_doubts_of_digest(fmt::format("-e {}: a digest", key), key, options);
  }
}

}  // namespace perhaps::cli
