// perhaps size: what each family needs, and how far that is from the theoretical minimum.
#include "command.h"
#include "json.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace size {
namespace {

struct Options {
  std::uint64_t keys = 0;
  Sizing sizing;
  bool json = false;
};

// What can be done with it once it is built.
std::string abilities(const Family& family) {
  std::string text = family.inserts ? "add" : "query only";
  if (family.erases) text += " remove";
  if (family.merges) text += " merge";
  return text;
}

int run(const Options& options) {
  const Request request = options.sizing.request(options.keys);
  std::vector<std::string> objects;
  std::vector<std::vector<std::string>> rows = {{"family", "bits/key", "bytes", "fpr", "over limit", "then"}};
  for (const FamilySize& size : size_table(request)) {
    const Family& family = *find_family(size.kind);
    if (request.max_bytes != 0 && size.bytes > request.max_bytes) continue;  // even its smallest filter is too large
    const double bits_per_key = static_cast<double>(size.bits) / static_cast<double>(options.keys);
    const double limit = bits_per_key_limit(size.fpr);
    const double above = limit > 0 ? bits_per_key / limit - 1 : 0;
    if (above < 0) continue;  // impossible: its largest table does not hold so many keys
    if (options.json) {
      Json json;
      json.add("family", family.name).add("keys", options.keys).add("bits", size.bits).add("bytes", size.bytes);
      json.add("bits_per_key", bits_per_key).add("probes", size.probes).add("fpr", size.fpr);
      json.add("bits_per_key_limit", limit).add("above_limit", above);
      json.add("summary", family.summary).add("kind", static_cast<std::uint32_t>(family.kind));
      json.add("add", family.inserts).add("remove", family.erases).add("merge", family.merges);
      json.add("grow", family.grows);
      objects.push_back(json.text());
    } else {
      rows.push_back(
          {std::string(family.name), fmt::format("{:.2f}", bits_per_key), grouped(size.bytes), percent(size.fpr),
           limit > 0.01 ? fmt::format("+{:.{}f} %", above * 100, above < 0.0995 ? 1 : 0) : "-", abilities(family)});
    }
  }
  Out out;
  if (options.json) {
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  out.write(table(rows, "lrrrrl"));
  out.write(dim("limit: no filter needs fewer than log2(1/fpr) bits per key") + "\n");
  return kYes;
}

}  // namespace
}  // namespace size

Command::Run size_command(CLI::App& app) {
  auto options = std::make_shared<size::Options>();
  add_count(app, "--keys", options->keys, "N", "For how many keys")->required();
  declare_sizing(app, options->sizing);
  declare_json(app, options->json);
  return [options] { return size::run(*options); };
}

}  // namespace perhaps::cli
