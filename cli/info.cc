// perhaps info: everything that a filter file says, whichever system wrote it.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "interval.h"
#include "json.h"
#include "json_fields.h"
#include "options.h"
#include "print.h"
#include "redis_filter.h"

namespace perhaps::cli {
namespace info {
namespace {

struct Options {
  std::vector<std::string> filters;
  OpenArgs open;
  FormatArgs format;
  RedisAccess access;
  bool json = false;
};

Description described(const AnyFilter& filter) {
  Description d = filter.describe();
  return capped(d, d.keys);
}

std::string checksum_of(const AnyFile& file) { return file.own->verified() ? "ok" : "not checked"; }

std::string json_of(const std::string& path, const AnyFile& file) {
  Json json;
  json.add("file", path).add("format", file.opened.format);
  add_figures(json, described(file.filter()));
  if (file.own) {
    json.add("checksum", checksum_of(file));
    Json about;
    for (const auto& [name, value] : file.own->header().record.about) about.add(name, value);
    json.raw("about", about.text());
  }
  if (file.codec != nullptr) json.add("system", file.codec->summary);
  std::vector<std::string> entries;
  for (const format::Entry& entry : file.opened.entries) {
    Json one;
    one.add("name", entry.name).add("offset", entry.offset).add("size", entry.size).add("format", entry.format);
    add_figures(one, described(*entry.filter));
    entries.push_back(one.text());
  }
  std::vector<std::string> notes;
  for (const std::string& note : file.opened.notes) notes.push_back(Json::quoted(note));
  json.raw("entries", Json::array(entries)).raw("notes", Json::array(notes));
  return json.text();
}

// Text from a file: without line breaks and terminal control sequences.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return out;
}

std::string headroom_of(const Description& d) {
  const auto kind = kind_named(d.family);
  const Family* const family = kind ? find_family(*kind) : nullptr;
  const bool built_once = kind == Kind::exact || kind == Kind::range || kind == Kind::map || kind == Kind::coded;
  if (built_once || (family != nullptr && !family->inserts)) return "none: built once, and for good";
  if (family != nullptr && (!family->takes_any_size || kind == Kind::growing)) return "it grows";
  if (family != nullptr && family->forgets) return "it forgets the oldest keys";
  if (!d.capacity) return "unknown: the file does not say how many keys it was made for";
  const auto capacity = static_cast<double>(*d.capacity);
  const double share = d.keys_estimated / capacity;
  if (d.fpr > 2 * d.fpr_at_capacity && d.keys_estimated > capacity) {
    return fmt::format("none: saturated, {:.1f} times the {} keys it was made for", share, grouped(*d.capacity));
  }
  // The estimate itself is good to a fraction of a percent.
  if (share > 0.99) return fmt::format("none: full, made for {} keys", grouped(*d.capacity));
  return fmt::format("{} more keys until {}", grouped(capacity - d.keys_estimated), percent(d.fpr_at_capacity));
}

std::string keys_of(const Description& d) {
  if (!d.keys) return fmt::format("about {} distinct", grouped(d.keys_estimated));
  return d.keys_estimated == 0 && *d.keys != 0
             ? grouped(*d.keys)
             : fmt::format("{}, about {} distinct", grouped(*d.keys), grouped(d.keys_estimated));
}

// One line per filter, for files that hold many.
std::string table_of(const std::vector<format::Entry>& entries) {
  std::vector<std::vector<std::string>> rows = {{"filter", "format", "offset", "bytes", "keys", "fill", "fpr"}};
  for (const format::Entry& entry : entries) {
    const Description d = described(*entry.filter);
    const std::string about = entry.format.empty() || entry.format == "perhaps" ? "" : "about ";
    rows.push_back({entry.name, std::string(entry.format.empty() ? d.family : entry.format), grouped(entry.offset),
                    grouped(entry.size), d.keys ? grouped(*d.keys) : grouped(d.keys_estimated),
                    fmt::format("{:.1f} %", d.fill * 100), about + percent(d.fpr)});
    check_interrupt();
  }
  return table(rows, "llrrrrr");
}

void print(Out& out, const std::string& path, const AnyFile& file) {
  const Description d = described(file.filter());
  std::size_t width = std::string_view("headroom").size() + 1;
  for (const auto& [name, value] : d.more) width = std::max(width, name.size());
  if (file.own) {
    for (const auto& [name, value] : file.own->header().record.about) width = std::max(width, name.size());
  }
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<{}}  {}\n", label, width, text));
  };
  out.write(bold(path) + "\n");
  const bool is_map = d.family == name_of(Kind::map) || d.family == name_of(Kind::coded);
  row("format", file.codec == nullptr ? std::string(file.opened.format)
                                      : fmt::format("{}: {}", file.opened.format, file.codec->summary));
  row("family", d.family);
  if (!d.hash.empty()) row("hash", d.hash);
  row("keys", keys_of(d));
  const std::string per_key =
      d.keys && *d.keys != 0
          ? fmt::format(", {:.2f} bits per key", static_cast<double>(d.bits) / static_cast<double>(*d.keys))
          : "";
  row("size", fmt::format("{} bytes{}", grouped(d.bytes), per_key));
  if (d.probes != 0) row("probes", std::to_string(d.probes));
  for (const auto& [name, value] : d.more) {
    const auto rate = name.starts_with("fpr") ? parse_share(value) : std::nullopt;
    row(name, rate ? percent(*rate) : value);
  }
  if (!is_map) row("fill", fmt::format("{} {:.1f} %", bar(d.fill, 30), d.fill * 100));
  row("fpr", fmt::format("{} now{}", file.own ? percent(d.fpr) : model_text(d.fpr),
                         d.capacity ? fmt::format(", {} when full", percent(d.fpr_at_capacity)) : ""));
  row("headroom", headroom_of(d));
  if (d.wrong_erase && *d.wrong_erase > 0)
    row("remove",
        fmt::format("of a key never added removes another one, once in {} times", grouped(1 / *d.wrong_erase)));
  if (d.needs_rebuild) row("rebuild", "removals have made it worse than a fresh filter of its keys");
  const Record record = file.record();
  if (const std::string* const recipe = record.find("recipe")) {
    row("recipe", printable(*recipe));
  } else {
    row("recipe", file.own ? "none stored: keys are looked up as given"
                           : "this format stores none: query keys in the form in which they were added");
  }
  for (const auto& [name, value] : record.about) {
    if (name != "recipe") row(name, printable(value));
  }
  if (file.own) row("checksum", checksum_of(file));
  for (const std::string& note : file.opened.notes) row("note", note);
  const auto& entries = file.opened.entries;
  if (entries.size() > 1 || (entries.size() == 1 && !entries[0].name.empty())) {
    row("filters", grouped(static_cast<std::uint64_t>(entries.size())));
    out.write("\n" + table_of(entries));
  }
}

// A folder stands for the files in and below it, by name.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_regular_file(gone)) files.push_back(at->path());
  }
  if (error) fail("{}: {}", folder, error.message());
  std::ranges::sort(files);
  return files;
}

class Report {
 public:
  explicit Report(const Options& options) : options_(options) {}

  void add(const std::string& path) {
    const LocalCopy copy(path, options_.access);
    const AnyFile file(copy.path(), options_.open, options_.format);
    if (options_.json) {
      objects_.push_back(json_of(copy.name(), file));
      return;
    }
    if (std::exchange(printed_, true)) out_.write("\n");
    print(out_, copy.name(), file);
    out_.flush();
  }

  // Files of no known format are only counted; damaged ones are reported.
  void add_folder(const std::string& folder) {
    std::uint64_t others = 0;
    for (const std::string& path : files_below(folder)) {
      try {
        add(path);
      } catch (const Failure& failure) {
        if (options_.format.format.empty() && std::string_view(failure.what()).ends_with(kUnknown)) {
          ++others;
        } else {
          say("", failure.what());
          failed_ = true;
        }
      }
      check_interrupt();
    }
    if (others != 0 && !options_.json) {
      out_.write(fmt::format("{}{}: {} other file{}\n", printed_ ? "\n" : "", folder, grouped(others),
                             others == 1 ? "" : "s"));
    }
  }

  int end() {
    if (options_.json) out_.write(Json::array(objects_) + "\n");
    return failed_ ? kError : kYes;
  }

 private:
  const Options& options_;
  Out out_;
  std::vector<std::string> objects_;
  bool printed_ = false;
  bool failed_ = false;
};

int run(const Options& options) {
  Report report(options);
  for (const std::string& path : options.filters) {
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) {
      report.add_folder(path);
    } else {
      report.add(path);
    }
  }
  return report.end();
}

}  // namespace
}  // namespace info

Command::Run info_command(CLI::App& app) {
  auto options = std::make_shared<info::Options>();
  app.add_option("filters", options->filters, "Filter files of any format, folders of them, and redis:// addresses")
      ->type_name("FILTER")
      ->required();
  declare_json(app, options->json);
  declare_open(app, options->open);
  declare_format(app, options->format);
  declare_redis(app, options->access);
  return [options] { return info::run(*options); };
}

}  // namespace perhaps::cli
