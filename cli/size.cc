// perhaps size: what each family needs, and how far that is from the least that any filter could.
#include "command.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

struct Options {
  std::uint64_t keys = 0;
  Sizing sizing;
  bool json = false;
};

// What can be done with it once it is built.
std::string abilities(const Family& family) {
  std::string text = family.grows ? "add" : "query only";
  if (family.erases) text += " remove";
  if (family.merges) text += " merge";
  return text;
}

int run(const Options& options) {
  const Request request = options.sizing.request(options.keys);
  std::vector<std::string> objects;
  std::vector<std::vector<std::string>> rows = {{"family", "bits/key", "bytes", "fpr", "over limit", "then"}};
  for (const SizeRow& row : size_table(request)) {
    if (request.max_bytes != 0 && row.bytes > request.max_bytes) continue;  // not even its smallest fits
    if (row.family == "scalable" && (request.max_bytes != 0 || request.bits_per_key != 0)) continue;
    const double bits_per_key = static_cast<double>(row.bits) / static_cast<double>(options.keys);
    const double limit = bits_per_key_limit(row.fpr);
    const double above = limit > 0 ? bits_per_key / limit - 1 : 0;
    if (above < 0) continue;  // what no filter can do: its largest table does not hold so many keys
    if (options.json) {
      Json json;
      json.add("family", row.family).add("keys", options.keys).add("bits", row.bits).add("bytes", row.bytes);
      json.add("bits_per_key", bits_per_key).add("probes", row.probes).add("fpr", row.fpr);
      json.add("bits_per_key_limit", limit).add("above_limit", above);
      json.add("summary", find_family(row.family)->summary);
      objects.push_back(json.text());
    } else {
      rows.push_back({std::string(row.family), fmt::format("{:.2f}", bits_per_key), grouped(row.bytes),
                      percent(row.fpr),
                      limit > 0.01 ? fmt::format("+{:.{}f} %", above * 100, above < 0.0995 ? 1 : 0) : "-",
                      abilities(*find_family(row.family))});
    }
  }
  Out out;
  if (options.json) {
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  out.write(table(rows, "lrrrrl"));
  out.write(dim("limit: no filter can do with fewer than log2(1/fpr) bits a key") + "\n");
  return kYes;
}

}  // namespace

Command::Run size_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_count(app, "--keys", options->keys, "N", "For how many keys")->required();
  declare_sizing(app, options->sizing);
  declare_json(app, options->json);
  return [options] { return run(*options); };
}

}  // namespace perhaps::cli
