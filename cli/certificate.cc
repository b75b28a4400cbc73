#include "certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "arena.h"
#include "command.h"
#include "json.h"
#include "json_field.h"
#include "key_hash.h"
#include "options.h"
#include "perhaps/file/mapping.h"
#include "perhaps/file/writer.h"

namespace perhaps::cli {
namespace {

constexpr std::string_view kVersion = "1";
// The values of "result": all of them are compared.
constexpr std::array<std::string_view, 9> kResults = {
    "keys", "false_negatives", "absent", "false_positives", "fpr", "fpr_low", "fpr_high", "fpr_model", "model_agrees"};

std::filesystem::path folder_of(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().parent_path();
}

std::string json_of(const Certificate::Listed& listed, const std::filesystem::path& folder) {
  const auto file = std::filesystem::absolute(listed.file).lexically_normal().lexically_proximate(folder);
  return Json().add("file", file.string()).add("bytes", listed.bytes).add("sha256", listed.sha256).text();
}

std::string json_of(const std::vector<Certificate::Listed>& all, const std::filesystem::path& folder) {
  std::vector<std::string> objects;
  for (const Certificate::Listed& listed : all) objects.push_back(json_of(listed, folder));
  return Json::array(objects);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), bytes_(take(Mapping::open(path))) {}

  std::optional<std::string> find(const std::string& name) {
    const json::Field field = json::find(bytes_.bytes(), json::path_of(name), arena_);
    if (field.found == json::Found::fault)
      fail("{}: not a certificate: column {}: {}", path_, field.column, field.fault);
    if (field.found == json::Found::missing) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(field.value.data()), field.value.size());
  }
  std::string text(const std::string& name) {
    auto value = find(name);
    if (!value) fail("{}: not a certificate: it has no {}", path_, name);
    return *std::move(value);
  }
  std::uint64_t number(const std::string& name) {
    const std::string value = text(name);
    const auto number = parse_count(value);
    if (!number) fail("{}: {}: '{}' is not a number", path_, name, value);
    return *number;
  }
  Certificate::Listed listed(const std::string& name) {
    return {.file = (folder_of(path_) / text(name + ".file")).lexically_normal().string(),
            .bytes = number(name + ".bytes"),
            .sha256 = text(name + ".sha256")};
  }
  std::vector<Certificate::Listed> list(const std::string& name) {
    std::vector<Certificate::Listed> all;
    for (std::string one = name + ".0"; find(one + ".file"); one = fmt::format("{}.{}", name, all.size()))
      all.push_back(listed(one));
    return all;
  }

 private:
  std::string path_;
  Mapping bytes_;
  Arena arena_;
};

// Rates are sums of many terms: another machine's mathematics may round the last digits differently.
bool same(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char* end_a = nullptr;
  char* end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a);
  const double y = std::strtod(b.c_str(), &end_b);
  const bool rates = !a.empty() && !b.empty() && *end_a == 0 && *end_b == 0 && x < 1 && y < 1;
  return rates && std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

}  // namespace

Certificate::Listed Certificate::listed(const std::string& file) {
  const Mapping bytes = take(Mapping::open(file, Mapping::Access::sequential));
  KeyHasher hasher(KeyHash::sha256);
  std::array<std::byte, KeyHasher::kMaxBytes> digest;
  hasher.digest(bytes.bytes(), digest.data());
  Listed listed{.file = file, .bytes = bytes.bytes().size(), .sha256 = {}};
  for (const std::byte b : digest) listed.sha256 += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return listed;
}

void Certificate::write(const std::string& path) const {
  const auto folder = folder_of(path);
  std::vector<std::string> set_texts;
  for (const std::string& set : sets) set_texts.push_back(Json::quoted(set));
  Json asked;
  asked.raw("files", json_of(absent, folder)).add("count", count).add("seed", seed);
  Json numbers;
  for (const auto& [name, value] : result) numbers.raw(name, value);
  Json json;
  json.raw("certificate", kVersion).add("tool", "perhaps " PERHAPS_VERSION);
  json.raw("filter", json_of(filter, folder)).add("format", format).raw("set", Json::array(set_texts));
  json.add("keyed", keyed).add("recipe", recipe).add("missing", missing);
  json.raw("keys", json_of(keys, folder)).raw("absent", asked.text()).raw("result", numbers.text());
  const std::string text = json.text() + "\n";
  take(write_file(path, bytes_of(text)));
}

Certificate Certificate::read(const std::string& path) {
  Reader reader(path);
  const std::string version = reader.text("certificate");
  if (version != kVersion) fail("{}: a certificate of version {}; this program knows {}", path, version, kVersion);
  Certificate one;
  one.filter = reader.listed("filter");
  one.format = reader.text("format");
  while (auto set = reader.find(fmt::format("set.{}", one.sets.size()))) one.sets.push_back(*std::move(set));
  one.keyed = reader.text("keyed") == "true";
  one.recipe = reader.text("recipe");
  one.missing = reader.text("missing");
  one.keys = reader.list("keys");
  if (one.keys.empty()) fail("{}: not a certificate: it has no keys", path);
  one.absent = reader.list("absent.files");
  one.count = reader.number("absent.count");
  one.seed = reader.number("absent.seed");
  for (const std::string_view name : kResults)
    one.result.emplace_back(name, reader.text(fmt::format("result.{}", name)));
  return one;
}

std::vector<Certificate::Difference> Certificate::differences(const Certificate& found) const {
  std::vector<Difference> all;
  const auto compare = [&](const std::string& name, const std::string& recorded, const std::string& now) {
    if (!same(recorded, now)) all.push_back({name, recorded, now});
  };
  const auto compare_files = [&](const Listed& recorded, const Listed& now) {
    compare(now.file + ": bytes", fmt::format("{}", recorded.bytes), fmt::format("{}", now.bytes));
    compare(now.file + ": sha256", recorded.sha256, now.sha256);
  };
  const auto compare_lists = [&](const char* name, const std::vector<Listed>& recorded,
                                 const std::vector<Listed>& now) {
    compare(fmt::format("{}: files", name), fmt::format("{}", recorded.size()), fmt::format("{}", now.size()));
    for (std::size_t i = 0; i < std::min(recorded.size(), now.size()); ++i) compare_files(recorded[i], now[i]);
  };
  compare_files(filter, found.filter);
  compare_lists("keys", keys, found.keys);
  compare_lists("absent", absent, found.absent);
  for (std::size_t i = 0; i < std::min(result.size(), found.result.size()); ++i)
    compare(result[i].first, result[i].second, found.result[i].second);
  return all;
}

}  // namespace perhaps::cli
