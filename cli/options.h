// Options that several commands share, and how their values are read.
#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "command.h"
#include "perhaps/any_filter.h"

namespace perhaps::cli {

// 1000000, 1e9, 1.5M (powers of 1000: k M G T), 64Mi (powers of 1024), 64MB.
std::optional<std::uint64_t> parse_count(std::string_view text) noexcept;
// Why parse_count() does not take it.
std::string why_no_count(std::string_view text);
std::optional<std::uint64_t> parse_u64(std::string_view text) noexcept;  // decimal, or hex after 0x
std::optional<double> parse_share(std::string_view text) noexcept;       // 0.01 or 1%
// Nanoseconds: 500ns, 100us, 2ms, 1s, 10m, 2h, 7d.
std::optional<double> parse_time(std::string_view text) noexcept;
// Milliseconds: 500ms, 90s, 10m, 2h, 7d; a bare number is seconds. Throws Failure.
std::uint64_t parse_duration(std::string_view option, std::string_view text);

// An option that takes a count or a size of at least `at_least`.
CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& unit,
                       const std::string& text, std::uint64_t at_least = 1);
CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint32_t& value, const std::string& unit,
                       const std::string& text);
// An option that takes a false-positive rate, which lies between kLeastFpr and 1.
CLI::Option* add_rate(CLI::App& app, double& value, const std::string& text);
CLI::Option* add_bits_per_key(CLI::App& app, double& value, const std::string& text);
// One of a few words; "line|block|classic" is what help and completions show.
CLI::Option* add_words(CLI::App& app, const std::string& name, std::string& value,
                       const std::vector<std::string>& words, const std::string& text);
template <class E>
CLI::Option* add_choice(CLI::App& app, const std::string& name, E& value,
                        std::initializer_list<std::pair<const char*, E>> choices, const std::string& text) {
  std::string words;
  for (const auto& [word, chosen] : choices) words += fmt::format("{}{}", words.empty() ? "" : "|", word);
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, words, list = std::vector<std::pair<const char*, E>>(choices)](const std::string& given) {
            for (const auto& [word, chosen] : list) {
              if (given == word) {
                value = chosen;
                return;
              }
            }
            fail("{} {}: must be one of {}", name, given, words);
          },
          text)
      ->type_name(words);
}

void declare_json(CLI::App& app, bool& json);
void declare_threads(CLI::App& app, std::uint32_t& threads);

// --keyed: the secret of a keyed filter.
struct Keyed {
  std::string path;
  std::optional<KeyedHash> read() const;  // throws Failure
};
void declare_keyed(CLI::App& app, Keyed& keyed);
// The hasher of a new filter: under the secret, or with the value of --seed; empty: the default. Throws Failure.
AnyHasher hasher_of(const Keyed& keyed, const std::string& seed);

// The size of a filter: --fpr, --bits-per-key or --max-bytes.
struct Sizing {
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  bool by_fpr() const noexcept { return bits_per_key == 0 && max_bytes == 0; }
  AnyRequest any_request(std::uint64_t keys) const { return request(keys); }
  Request request(std::uint64_t keys) const {
    return {.keys = keys, .fpr = fpr, .bits_per_key = bits_per_key, .max_bytes = max_bytes};
  }
};
void declare_sizing(CLI::App& app, Sizing& sizing);
// Throws Failure if --max-bytes has no room for the smallest filter of the family.
void check_room(const Sizing& sizing, Kind family);
std::uint64_t smallest_bytes(Kind family);
// Throws Failure if a filter of so many keys has more bytes than was asked for, as no rate makes it smaller. Few keys
// may need some bytes more than their share.
void check_kept(const Sizing& sizing, const Family& family, std::uint64_t bytes, std::uint64_t keys);
// The names of families(), those that `chosen` takes.
std::vector<std::string> family_names(bool (*chosen)(const Family&) = [](const Family&) { return true; });
// "line, block and classic": those that `chosen` takes, for messages.
std::string families_text(bool (*chosen)(const Family&));

}  // namespace perhaps::cli
