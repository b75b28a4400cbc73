// How filters are kept: `perhaps bench lsm --blocks`.
#pragma once
#include <filesystem>
#include <string>

#include "lsm.h"

namespace perhaps::bench {

// Fills a database for each way, opens it again, looks up the absent keys, and says what was read. Throws
// std::runtime_error if one of them is found.
std::string blocks_report(const LsmOptions& options, const Questions& questions, const std::filesystem::path& folder,
                          bool json, StepDone step_done);

}  // namespace perhaps::bench
