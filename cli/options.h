// Options that several commands share, and how their values are read.
#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "command.h"
#include "perhaps/container.h"

namespace perhaps::cli {

// 1000000, 1e9, 1.5M (powers of 1000: k M G T), 64Mi (powers of 1024), 64MB.
std::optional<std::uint64_t> parse_count(std::string_view text) noexcept;
std::optional<std::uint64_t> parse_u64(std::string_view text) noexcept;  // decimal, or hex after 0x
std::optional<double> parse_share(std::string_view text) noexcept;       // 0.01 or 1%

// An option that takes a count or a size; `at_least` 1 unless told.
CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& unit,
                       const std::string& text, std::uint64_t at_least = 1);
CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint32_t& value, const std::string& unit,
                       const std::string& text);
// One of a few words; "line|block|classic" is what help and completions show.
CLI::Option* add_words(CLI::App& app, const std::string& name, std::string& value,
                       std::initializer_list<std::string_view> words, const std::string& text);
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

// How large a filter shall be: --fpr, --bits-per-key or --max-bytes.
struct Sizing {
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  bool by_fpr() const noexcept { return bits_per_key == 0 && max_bytes == 0; }
  Request request(std::uint64_t keys) const {
    return {.keys = keys, .fpr = fpr, .bits_per_key = bits_per_key, .max_bytes = max_bytes};
  }
};
void declare_sizing(CLI::App& app, Sizing& sizing);
// Of `perhaps size`.  REQUIRES: there is such a family
SizeRow row_of(std::string_view family, const Request& request);

// --keyed and --no-verify, of the commands that only read a filter. Those that write another one always check: a new
// checksum over old damage would hide it for good.
struct OpenArgs {
  Keyed keyed;
  bool no_verify = false;
};
void declare_open(CLI::App& app, OpenArgs& args);

struct Opened {
  File file;
  std::unique_ptr<AnyFilter> filter;
};
Opened open_filter(const std::string& path, const OpenArgs& args);
std::unique_ptr<AnyMutable> load_filter(const File& file);

// Throws Failure, before any work is done, if a file cannot be written at `path`, the value of -o.
void check_output(const std::string& path);
// The same for a file that is there and will be replaced: it must be writable, though only its folder is written to.
void check_replaceable(const std::string& path);
// Held from reading a file to replacing it, so that of two programs which add to it the second begins with what the
// first one wrote. The lock is on the file that `path` names once it is locked. A missing file is not an error here.
class FileLock {
 public:
  explicit FileLock(const std::string& path);  // waits; throws Interrupted
  FileLock(const FileLock&) = delete;
  ~FileLock() { release(); }
  void release() noexcept;

 private:
  int fd_ = -1;
};
// A filter file that add and remove change: locked from here to the end, loaded, and not yet replaced.
struct Changing {
  // `erases`: refuses, before anything else, a family that cannot forget.
  Changing(const std::string& path, const Keyed& keyed, bool erases);
  FileLock lock;
  Record record;
  AnyHasher hasher;
  std::unique_ptr<AnyMutable> filter;
};
// Throws Failure if --max-bytes has no room for the smallest filter of the family.
void check_room(const Sizing& sizing, std::string_view family);
std::uint64_t smallest_bytes(std::string_view family) noexcept;
// The estimate of distinct keys is never more than the keys that were inserted.
Description capped(Description d, std::optional<std::uint64_t> keys);
// Throws Failure, with figures, if `bytes` are more than the machine has.
void check_memory(std::uint64_t bytes, const std::string& what, std::string_view advice = "");
std::uint64_t physical_memory() noexcept;
// Writes the file atomically; Ctrl-C meanwhile leaves the old one, and no temporary file.
void save_filter(const AnyOwner& filter, const std::string& path, Record record);
// Warns if the rate is more than twice what it was meant to be. `record` is newer than the one in `d`.
void warn_if_saturated(const std::string& path, const Description& d, Record record);

}  // namespace perhaps::cli
