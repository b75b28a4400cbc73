// perhaps info: everything that a filter file can tell.
#include "command.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

struct Options {
  std::vector<std::string> filters;
  OpenArgs open;
  bool json = false;
};

std::string json_of(const std::string& path, const Description& d, bool verified) {
  Json json;
  json.add("file", path).add("format", d.format).add("family", d.family).add("hash", d.hash).add("keys", d.keys);
  json.add("keys_distinct", d.keys_estimated).add("capacity", d.capacity).add("bits", d.bits).add("bytes", d.bytes);
  const auto per_key =
      d.keys && *d.keys != 0 ? std::optional(static_cast<double>(d.bits) / static_cast<double>(*d.keys)) : std::nullopt;
  json.add("bits_per_key", per_key).add("probes", d.probes).add("fill", d.fill).add("fpr", d.fpr);
  json.add("fpr_at_capacity", d.capacity ? std::optional(d.fpr_at_capacity) : std::nullopt);
  json.add("checksum", verified ? "ok" : "not checked");
  Json more;
  for (const auto& [name, value] : d.more) more.add(name, value);
  json.raw("more", more.text());
  return json.text();
}

std::string headroom_of(const Description& d) {
  const Family* const family = find_family(d.family);
  if (family != nullptr && !family->grows) return "none: built once, and for good";
  if (d.family == "scalable") return "it grows";
  if (d.family == "window") return "it forgets the oldest keys";
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

void print(Out& out, const std::string& path, const Description& d, bool verified) {
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<9}  {}\n", label, text));
  };
  out.write(bold(path) + "\n");
  row("format", d.format);
  row("family", d.family);
  row("hash", d.hash);
  row("keys", d.keys ? fmt::format("{}, about {} distinct", grouped(*d.keys), grouped(d.keys_estimated))
                     : fmt::format("about {} distinct", grouped(d.keys_estimated)));
  const std::string per_key =
      d.keys && *d.keys != 0
          ? fmt::format(", {:.2f} bits a key", static_cast<double>(d.bits) / static_cast<double>(*d.keys))
          : "";
  row("size", fmt::format("{} bytes{}", grouped(d.bytes), per_key));
  if (d.probes != 0) row("probes", std::to_string(d.probes));
  for (const auto& [name, value] : d.more) row(name, value);
  row("fill", fmt::format("{} {:.1f} %", bar(d.fill, 30), d.fill * 100));
  row("fpr", fmt::format("{} now{}", percent(d.fpr),
                         d.capacity ? fmt::format(", {} when full", percent(d.fpr_at_capacity)) : ""));
  row("headroom", headroom_of(d));
  row("checksum", verified ? "ok" : "not checked");
}

int run(const Options& options) {
  std::vector<std::string> objects;
  std::string text;
  Out out;
  for (const std::string& path : options.filters) {
    const Opened opened = open_filter(path, options.open);
    Description d = opened.filter->describe();
    d = capped(d, d.keys);
    if (options.json) {
      objects.push_back(json_of(path, d, opened.file.verified()));
    } else {
      if (&path != &options.filters.front()) out.write("\n");
      print(out, path, d, opened.file.verified());
      out.flush();
    }
  }
  if (options.json) out.write((objects.size() == 1 ? objects[0] : Json::array(objects)) + "\n");
  return kYes;
}

}  // namespace

Command::Run info_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("filters", options->filters, "Filter files")->type_name("FILTER")->required();
  declare_json(app, options->json);
  declare_open(app, options->open);
  return [options] { return run(*options); };
}

}  // namespace perhaps::cli
