#include "options.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "print.h"

namespace perhaps::cli {
namespace {

template <class T>
std::optional<std::string_view> number_at(std::string_view text, T& value) noexcept {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return std::nullopt;
  return text.substr(static_cast<std::size_t>(end - text.data()));
}

std::optional<double> scale_of(std::string_view suffix) noexcept {
  if (suffix.ends_with('B')) suffix.remove_suffix(1);
  const bool binary = suffix.ends_with('i');
  if (binary) suffix.remove_suffix(1);
  if (suffix.empty()) return binary ? std::nullopt : std::optional(1.0);
  const std::size_t power = std::string_view("kMGTP").find(suffix[0] == 'K' ? 'k' : suffix[0]);
  if (suffix.size() != 1 || power == std::string_view::npos) return std::nullopt;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept {
  std::uint64_t whole = 0;
  if (const auto rest = number_at(text, whole); rest && rest->empty()) return whole;
  double value = 0;
  const auto rest = number_at(text, value);
  if (!rest) return std::nullopt;
  const auto scale = scale_of(*rest);
  if (!scale) return std::nullopt;
  value *= *scale;
  if (!(value >= 0 && value < 0x1p64)) return std::nullopt;
  return static_cast<std::uint64_t>(std::round(value));
}

std::string why_no_count(std::string_view text) {
  double value = 0;
  const auto rest = number_at(text, value);
  if (rest && value > 0 && scale_of(*rest)) return "too many; the limit is 2^64 - 1";
  return "not a number (such as 1000000, 1e9, 1.5M or 64Mi)";
}

std::optional<std::uint64_t> parse_u64(std::string_view text) noexcept {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (code == std::errc{} && end == text.data() + text.size()) return value;
  std::int64_t negative = 0;  // as the library: sign-extended
  if (const auto rest = number_at(text, negative); !hex && rest && rest->empty())
    return static_cast<std::uint64_t>(negative);
  return std::nullopt;
}

std::optional<double> parse_share(std::string_view text) noexcept {
  double value = 0;
  auto rest = number_at(text, value);
  if (!rest || !(rest->empty() || *rest == "%" || *rest == " %")) return std::nullopt;
  return rest->empty() ? value : value / 100;
}

std::optional<double> parse_time(std::string_view text) noexcept {
  double number = 0;
  const auto given = number_at(text, number);
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
  for (const auto& [unit, ns] : kUnits) {
    if (given == unit && number >= 0 && std::isfinite(number * ns)) return number * ns;
  }
  return std::nullopt;
}

std::uint64_t parse_duration(std::string_view option, std::string_view text) {
  double number = 0;
  const bool is_number = number_at(text, number) == "";
  const double result = is_number ? number * 1e3 : parse_time(text).value_or(0) / 1e6;
  if (!(result >= 1 && result < 1e15)) fail("{} {}: must be a time such as 500ms, 90s, 10m, 2h or 7d", option, text);
  return static_cast<std::uint64_t>(result);
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& unit,
                       const std::string& text, std::uint64_t at_least) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, at_least](const std::string& given) {
            const auto parsed = parse_count(given);
            if (!parsed) fail("{} {}: {}", name, given, why_no_count(given));
            if (*parsed < at_least) fail("{} {}: must be at least {}", name, given, at_least);
            value = *parsed;
          },
          text)
      ->type_name(unit);
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint32_t& value, const std::string& unit,
                       const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& given) {
            const auto parsed = parse_count(given);
            if (!parsed || *parsed < 1 || *parsed > 1'000'000)
              fail("{} {}: must be a number from 1 to 1000000", name, given);
            value = static_cast<std::uint32_t>(*parsed);
          },
          text)
      ->type_name(unit);
}

CLI::Option* add_rate(CLI::App& app, double& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          "--fpr",
          [&value](const std::string& given) {
            const auto parsed = parse_share(given);
            if (!parsed || !(*parsed > 0 && *parsed < 1))
              fail("--fpr {}: must be between 0 and 1, such as 0.01 or 1%", given);
            if (*parsed < kLeastFpr) fail("--fpr {}: out of reach; the lowest rate is {}", given, percent(kLeastFpr));
            value = *parsed;
          },
          text)
      ->type_name("P");
}

CLI::Option* add_bits_per_key(CLI::App& app, double& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          "--bits-per-key",
          [&value](const std::string& given) {
            const auto parsed = parse_share(given);
            if (!parsed || !(*parsed > 0 && *parsed <= 1024) || given.ends_with('%'))
              fail("--bits-per-key {}: must be a number up to 1024", given);
            value = *parsed;
          },
          text)
      ->type_name("B");
}

CLI::Option* add_words(CLI::App& app, const std::string& name, std::string& value,
                       const std::vector<std::string>& words, const std::string& text) {
  const std::string all = fmt::format("{}", fmt::join(words, "|"));
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, all](const std::string& given) {
            if (("|" + all + "|").find("|" + given + "|") == std::string::npos ||
                given.find('|') != std::string::npos) {
              fail("{}{}: must be one of {}", name.starts_with('-') ? name + " " : "", given, all);
            }
            value = given;
          },
          text)
      ->type_name(all);
}

void declare_json(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "Print JSON, for programs; man perhaps lists its fields");
}

void declare_threads(CLI::App& app, std::uint32_t& threads) {
  threads = std::max(1u, std::thread::hardware_concurrency());
  app.add_option_function<std::string>(
         "--threads",
         [&threads](const std::string& given) {
           const auto parsed = parse_u64(given);
           if (!parsed || *parsed < 1 || *parsed > 1024) fail("--threads {}: must be a number from 1 to 1024", given);
           threads = static_cast<std::uint32_t>(*parsed);
         },
         "How many threads work; default: one for each core")
      ->type_name("N");
}

std::optional<KeyedHash> Keyed::read() const {
  if (path.empty()) return std::nullopt;  // not given
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) fail("{}: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(::fileno(file.get()), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0) {
    warn(fmt::format("{}: everybody can read this secret (chmod o-r)", path));
  }
  char text[64];
  errno = 0;
  std::size_t size = std::fread(text, 1, sizeof text, file.get());
  if (std::ferror(file.get()) != 0) fail("{}: {}", path, std::strerror(errno));
  KeyedHash::Secret secret{};
  if (size == secret.size()) {
    std::memcpy(secret.data(), text, size);
    return KeyedHash(secret);
  }
  if (size == sizeof text) fail("{}: a secret is 16 bytes or 32 hex digits, this is {} bytes or more", path, size);
  std::size_t digits = size;
  if (digits != 0 && text[digits - 1] == '\n') --digits;
  if (digits != 2 * secret.size()) fail("{}: a secret is 16 bytes or 32 hex digits, this is {} bytes", path, size);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    unsigned char value = 0;
    const auto [end, code] = std::from_chars(text + 2 * i, text + 2 * i + 2, value, 16);
    if (code != std::errc{} || end != text + 2 * i + 2) fail("{}: 32 bytes, but not 32 hex digits", path);
    secret[i] = std::byte{value};
  }
  return KeyedHash(secret);
}

AnyHasher hasher_of(const Keyed& keyed, const std::string& seed) {
  if (const auto secret = keyed.read()) {
    if (!seed.empty()) fail("--seed: a keyed hash has a secret and no seed");
    return *secret;
  }
  if (seed.empty()) return Hash();
  const auto number = parse_u64(seed);
  if (!number) fail("--seed {}: not a 64-bit number", seed);
  return Hash(*number);
}

void declare_keyed(CLI::App& app, Keyed& keyed) {
  app.add_option_function<std::string>(
         "--keyed",
         [&keyed](const std::string& given) {
           if (given.empty()) fail("--keyed: the name of the file is empty");
           keyed.path = given;
         },
         "Hash under the secret in FILE (16 bytes, or 32 hex digits), for keys that an adversary may choose. To "
         "make one: head -c 16 /dev/urandom > FILE")
      ->type_name("FILE");
}

void declare_sizing(CLI::App& app, Sizing& sizing) {
  auto* fpr = add_rate(app, sizing.fpr, "The false-positive rate wanted; default: 0.01");
  auto* bits = add_bits_per_key(app, sizing.bits_per_key, "Spend this much instead");
  auto* bytes =
      add_count(app, "--max-bytes", sizing.max_bytes, "SIZE", "Use at most this much memory instead (64M, 1Gi)");
  fpr->excludes(bits)->excludes(bytes);
  bits->excludes(bytes);
}

std::vector<std::string> family_names(bool (*chosen)(const Family&)) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    if (chosen(family)) names.emplace_back(family.name);
  }
  return names;
}

std::string families_text(bool (*chosen)(const Family&)) {
  const auto names = family_names(chosen);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::uint64_t smallest_bytes(Kind family) {
  const auto least = size_of(family, {.keys = 1, .max_bytes = 1});
  return least ? least->bytes : 1;
}

void check_room(const Sizing& sizing, Kind family) {
  if (!find_family(family)->takes_any_size && !sizing.by_fpr())
    fail("--filter {}: its size follows from --fpr and from the keys that come", name_of(family));
  const std::uint64_t least = smallest_bytes(family);
  if (sizing.max_bytes != 0 && sizing.max_bytes < least)
    fail("--max-bytes {}: a {} filter has at least {} bytes", sizing.max_bytes, name_of(family), least);
}

void check_kept(const Sizing& sizing, const Family& family, std::uint64_t bytes, std::uint64_t keys) {
  if (sizing.max_bytes != 0 && bytes > sizing.max_bytes)
    fail("--max-bytes {}: these keys need {} bytes, whatever the false-positive rate", sizing.max_bytes, bytes);
  const double per_key = 8 * static_cast<double>(bytes) / static_cast<double>(keys);
  if (sizing.bits_per_key != 0 && bytes > 4096 && per_key > 1.05 * sizing.bits_per_key)
    fail("--bits-per-key {}: a {} filter takes {:.2f}, whatever the false-positive rate", plain(sizing.bits_per_key),
         family.name, per_key);
}

}  // namespace perhaps::cli
