// What `perhaps advise` found: a table or JSON, and the command to run.
#pragma once
#include <string>
#include <vector>

#include "advise_measure.h"

namespace perhaps::cli::advise {

std::string command_for(const Options& options, const Sample& sample, const Candidate& best);
// Why `best` is; `second` may be null.
std::string why(const Options& options, const Candidate& best, const Candidate* second);
void print_json(const Options& options, const Sample& sample, const Questions& questions,
                const std::vector<Candidate>& candidates, const std::string& command, const std::string& reason);
void print_text(const Options& options, const Sample& sample, const Questions& questions,
                const std::vector<Candidate>& candidates, const std::string& command, const std::string& reason);

}  // namespace perhaps::cli::advise
