// Does it fit into the memory of this machine? Checked before it is allocated, because Linux grants more than it has.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace perhaps::cli {

// Throws Failure, with figures, if `bytes` are more than the machine has.
void check_memory(std::uint64_t bytes, const std::string& what, std::string_view advice = "");
std::uint64_t physical_memory() noexcept;

}  // namespace perhaps::cli
