#include "policy_names.h"

#include <rocksdb/convenience.h>
#include <rocksdb/utilities/object_registry.h>

#include <array>
#include <charconv>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "perhaps/engine/allocate.h"
#include "perhaps/engine/packed.h"

namespace perhaps::rocksdb {
namespace {

std::vector<std::string_view> parts_of(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
bool read(std::string_view text, Number& number) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Not with the locale's decimal comma, and so that it reads back as the same number.
std::string text_of(double number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// Stands for a text that names no policy. Where RocksDB reads the options of a table it ignores what a factory says,
// and goes on without a filter; a policy that is not valid stops it at DB::Open.
class RefusedPolicy final : public ::rocksdb::FilterPolicy {
 public:
  RefusedPolicy(std::string id, std::string why) : id_(std::move(id)), why_(std::move(why)) {}

  const char* Name() const override { return kRefusedName; }
  const char* CompatibilityName() const override { return kRefusedName; }
  std::string GetId() const override { return id_; }

  ::rocksdb::Status PrepareOptions(const ::rocksdb::ConfigOptions&) override { return status(); }
  ::rocksdb::Status ValidateOptions(const ::rocksdb::DBOptions&, const ::rocksdb::ColumnFamilyOptions&) const override {
    return status();
  }
  ::rocksdb::FilterBitsBuilder* GetBuilderWithContext(const ::rocksdb::FilterBuildingContext&) const override {
    return nullptr;
  }
  ::rocksdb::FilterBitsReader* GetFilterBitsReader(const ::rocksdb::Slice&) const override { return nullptr; }

 private:
  ::rocksdb::Status status() const { return ::rocksdb::Status::InvalidArgument(why_); }

  std::string id_;
  std::string why_;
};

template <class Settings>
::rocksdb::FactoryFunc<const ::rocksdb::FilterPolicy> factory(std::optional<Settings> (*parse)(std::string_view),
                                                              PolicyPtr (*make)(const Settings&)) {
  return [=](const std::string& id, std::unique_ptr<const ::rocksdb::FilterPolicy>* guard,
             std::string*) -> const ::rocksdb::FilterPolicy* {
    try {
      const auto settings = parse(id);
      *guard =
          settings ? make(*settings) : std::make_unique<RefusedPolicy>(id, "perhaps: '" + id + "' is no filter policy");
    } catch (const std::runtime_error& error) {  // another RocksDB
      *guard = std::make_unique<RefusedPolicy>(id, std::string(error.what()) + ": " + id);
    }
    return guard->get();
  };
}

}  // namespace

std::string refusal_of(const Options& options) {
  if (!(options.bits_per_key > 0 && options.bits_per_key <= Options::kMaxBits))
    return "perhaps: bits_per_key = " + std::to_string(options.bits_per_key);
  const std::string name(name_of(options.family));
  if (!can_pack(options.family)) return "perhaps: a " + name + " filter cannot be packed";
  const Family* const family = find_family(options.family);
  if (family != nullptr && family->inserts && !family->sets_bits)
    return "perhaps: the bits of a " + name + " filter serve to erase or to forget, which a table never does";
  return {};
}

bool valid(const Budget& budget) noexcept {
  std::uint64_t room = LevelBudget::kMaxKeys;
  for (const std::uint64_t keys : budget.keys) {
    if (keys > room) return false;
    room -= keys;
  }
  return budget.level0_tables >= 0 && !std::isinf(budget.level0_tables) && room != LevelBudget::kMaxKeys;
}

bool valid(const FilterBudgetOptions& options) noexcept {
  return options.bits_per_key > 0 && options.bits_per_key <= Options::kMaxBits;
}

std::string id_of(const Options& options) {
  return std::string(kPolicyName) + ":" + std::string(name_of(options.family)) + ":" + text_of(options.bits_per_key) +
         (options.compatible ? ":compatible" : "");
}

std::string id_of(const Budget& budget) {
  std::string id = std::string(kAllocatingName) + ":" + std::to_string(budget.bytes) + ":" +
                   text_of(budget.level0_tables) + ":" + std::to_string(budget.ribbon_from);
  char mark = ':';
  for (const std::uint64_t keys : budget.keys) id += std::exchange(mark, ',') + std::to_string(keys);
  return id;
}

std::string id_of(const FilterBudgetOptions& options) {
  return std::string(kBudgetName) + ":" + text_of(options.bits_per_key) + (options.ribbon ? ":ribbon" : ":bloom");
}

std::optional<Options> options_of(std::string_view id) {
  const auto parts = parts_of(id, ':');
  Options options;
  if (parts[0] != kPolicyName || parts.size() > 4) return std::nullopt;
  if (parts.size() > 1) {
    const auto family = kind_named(parts[1]);
    if (!family) return std::nullopt;
    options.family = *family;
  }
  if (parts.size() > 2 && !read(parts[2], options.bits_per_key)) return std::nullopt;
  options.compatible = parts.size() == 4;
  if (options.compatible && parts[3] != "compatible") return std::nullopt;
  if (!refusal_of(options).empty()) return std::nullopt;
  return options;
}

std::optional<Budget> budget_of(std::string_view id) {
  const auto parts = parts_of(id, ':');
  Budget budget;
  if (parts.size() != 5 || parts[0] != kAllocatingName || !read(parts[1], budget.bytes) ||
      !read(parts[2], budget.level0_tables) || !read(parts[3], budget.ribbon_from)) {
    return std::nullopt;
  }
  for (const std::string_view keys : parts_of(parts[4], ',')) {
    if (!read(keys, budget.keys.emplace_back())) return std::nullopt;
  }
  if (!valid(budget)) return std::nullopt;
  return budget;
}

std::optional<FilterBudgetOptions> filter_budget_of(std::string_view id) {
  const auto parts = parts_of(id, ':');
  FilterBudgetOptions options;
  if (parts.size() != 3 || parts[0] != kBudgetName || !read(parts[1], options.bits_per_key)) return std::nullopt;
  options.ribbon = parts[2] == "ribbon";
  if (!valid(options) || !(options.ribbon || parts[2] == "bloom")) return std::nullopt;
  return options;
}

void register_policies() {
  static std::once_flag once;
  std::call_once(once, [] {
    using Pattern = ::rocksdb::ObjectLibrary::PatternEntry;
    using Policy = const ::rocksdb::FilterPolicy;
    auto& library = *::rocksdb::ObjectLibrary::Default();
#if PERHAPS_ROCKSDB_FILTERS
    library.AddFactory<Policy>(Pattern(kPolicyName).AddSeparator(":"), factory(options_of, new_filter_policy));
#endif
    library.AddFactory<Policy>(Pattern(kAllocatingName, false).AddSeparator(":"),
                               factory(budget_of, new_allocating_policy));
    library.AddFactory<Policy>(Pattern(kBudgetName, false).AddSeparator(":"),
                               factory(filter_budget_of, new_unwatched_budget));
  });
}

}  // namespace perhaps::rocksdb
