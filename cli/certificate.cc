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
// And of a range filter.
constexpr std::array<std::string_view, 4> kRangeResults = {"range_size", "ranges", "ranges_perhaps", "range_fpr_most"};

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

// The fields of an object: of the whole certificate, or of an element of one of its lists. An element is searched by
// itself, so that a list of any length is read in a few passes over its bytes.
class Members {
 public:
  // `name` of an element, with a point at its end. What is passed must outlive *this.
  Members(const std::string& path, Bytes text, std::string name = {})
      : path_(path), bytes_(text), name_(std::move(name)) {}

  std::optional<std::string> find(const std::string& name) const { return find_at(json::path_of(name)); }
  std::string text(const std::string& name) const {
    auto value = find(name);
    if (!value) fail("{}: not a certificate: it has no {}{}", path_, name_, name);
    return *std::move(value);
  }
  std::uint64_t number(const std::string& name) const {
    const std::string value = text(name);
    const auto number = parse_count(value);
    if (!number) fail("{}: {}{}: '{}' is not a number", path_, name_, name, value);
    return *number;
  }
  // "filter.": the member filter; empty: the object itself.
  Certificate::Listed listed(const std::string& member = {}) const {
    return {.file = (folder_of(path_) / text(member + "file")).lexically_normal().string(),
            .bytes = number(member + "bytes"),
            .sha256 = text(member + "sha256")};
  }
  std::vector<Members> elements(const std::string& name) const {
    std::vector<Members> all;
    for (const Bytes element : json::elements(bytes_, json::path_of(name)))
      all.emplace_back(path_, element, fmt::format("{}.{}.", name, all.size()));
    return all;
  }
  std::vector<Certificate::Listed> list(const std::string& name) const {
    std::vector<Certificate::Listed> all;
    for (const Members& element : elements(name)) all.push_back(element.listed());
    return all;
  }
  // An element that is no object.
  std::string value() const {
    auto value = find_at({});
    if (!value) fail("{}: not a certificate: {} is null", path_, name_.substr(0, name_.size() - 1));
    return *std::move(value);
  }

 private:
  std::optional<std::string> find_at(const std::vector<std::string>& path) const {
    Arena arena;
    const json::Field field = json::find(bytes_, path, arena);
    if (field.found == json::Found::fault)
      fail("{}: not a certificate: column {}: {}", path_, field.column, field.fault);
    if (field.found == json::Found::missing) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(field.value.data()), field.value.size());
  }

  const std::string& path_;
  Bytes bytes_;
  std::string name_;
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
  if (range_size != 0) asked.add("range_size", range_size);
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
  const Mapping file = take(Mapping::open(path));
  const Members members(path, file.bytes());
  const std::string version = members.text("certificate");
  if (version != kVersion) fail("{}: a certificate of version {}; this program knows {}", path, version, kVersion);
  Certificate one;
  one.filter = members.listed("filter.");
  one.format = members.text("format");
  for (const Members& set : members.elements("set")) one.sets.push_back(set.value());
  one.keyed = members.text("keyed") == "true";
  one.recipe = members.text("recipe");
  one.missing = members.text("missing");
  one.keys = members.list("keys");
  if (one.keys.empty()) fail("{}: not a certificate: it has no keys", path);
  one.absent = members.list("absent.files");
  one.count = members.number("absent.count");
  one.seed = members.number("absent.seed");
  const auto add_result = [&](std::string_view name) {
    one.result.emplace_back(name, members.text(fmt::format("result.{}", name)));
  };
  for (const std::string_view name : kResults) add_result(name);
  if (members.find("absent.range_size")) {
    one.range_size = members.number("absent.range_size");
    if (one.range_size == 0) fail("{}: absent.range_size: a range has at least one number", path);
    for (const std::string_view name : kRangeResults) add_result(name);
  }
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
  // One that is of a range filter without saying so was written before it could.
  for (std::size_t i = 0; i < std::min(result.size(), found.result.size()); ++i)
    compare(result[i].first, result[i].second, found.result[i].second);
  return all;
}

}  // namespace perhaps::cli
