// The policies as text: what an options string says and an OPTIONS file keeps.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "perhaps_rocksdb.h"

namespace perhaps::rocksdb {

inline constexpr const char* kPolicyName = "perhaps";
inline constexpr const char* kAllocatingName = "perhaps.allocating";
inline constexpr const char* kRefusedName = "perhaps.refused";
inline constexpr const char* kBudgetName = "perhaps.budget";

// Why there is no such filter; empty: there is.
std::string refusal_of(const Options& options);
bool valid(const Budget& budget) noexcept;
bool valid(const FilterBudgetOptions& options) noexcept;
std::string id_of(const Options& options);
std::string id_of(const Budget& budget);
std::string id_of(const FilterBudgetOptions& options);
// Nothing: not such a text.
std::optional<Options> options_of(std::string_view id);
std::optional<Budget> budget_of(std::string_view id);
std::optional<FilterBudgetOptions> filter_budget_of(std::string_view id);

// The policy of a budget that watches no database.
PolicyPtr new_unwatched_budget(const FilterBudgetOptions& options);

}  // namespace perhaps::rocksdb
