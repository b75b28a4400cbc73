// Filter files of ours and of other systems, opened by one call.
#pragma once
#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filter_file.h"
#include "options.h"
#include "perhaps/file/mapping.h"
#include "perhaps/format/format.h"

namespace perhaps::cli {

// --format and --set: which system's file it is, and its parameters.
struct FormatArgs {
  std::string format{};             // empty: recognised by content and name
  std::vector<std::string> sets{};  // name=value
};
void declare_format(CLI::App& app, FormatArgs& args);
// The names of all formats as choices, for help and completions.
CLI::Option* add_format_name(CLI::App& app, const std::string& name, std::string& value, const std::string& text);
CLI::Option* add_sets(CLI::App& app, const std::string& name, std::vector<std::string>& sets, const std::string& text);

const format::Codec& find_codec(std::string_view name);  // throws Failure
format::Params params_of(const format::Codec& codec, std::span<const std::string> sets);

// The bytes of a file, mapped; those of a .gz are inflated.
class FileBytes {
 public:
  explicit FileBytes(const std::string& path);  // throws Failure

  Bytes bytes() const noexcept { return inflated_.empty() ? mapped_.bytes() : Bytes(inflated_); }
  bool inflated() const noexcept { return !inflated_.empty(); }

 private:
  Mapping mapped_;
  std::vector<std::byte> inflated_{};
};

// The end of the message if no format was recognised.
inline constexpr std::string_view kUnknown = "no known filter format (--format)";

struct AnyFile {
  // Throws Failure, which names the file, the format and the fact.
  AnyFile(const std::string& path, const OpenArgs& args, const FormatArgs& format);

  const AnyFilter& filter() const noexcept { return *opened.whole; }
  // What the file says about itself; nothing if it is another system's.
  const Record& record() const { return own ? own->header().record : shards_record; }

  std::optional<File> own;           // one of ours
  std::unique_ptr<FileBytes> bytes;  // otherwise
  const format::Codec* codec = nullptr;
  format::Source source{};
  format::Opened opened{};  // ours has one entry
  Record shards_record{};   // of shards that are files of ours

 private:
  void open_shards(const std::string& path);
};

}  // namespace perhaps::cli
