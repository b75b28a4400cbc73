// Promise: a certificate is read in time proportional to its length, however many files it lists. Every search is
// counted by the bytes that it is given. Would notice: a list whose elements are looked for from the beginning of the
// certificate.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/json_field.h"

namespace perhaps::cli::counted {
namespace {

using namespace json;

std::uint64_t searched = 0;
Field find(Bytes line, const std::vector<std::string>& path, Arena& arena) {
  searched += line.size();
  return json::find(line, path, arena);
}

}  // namespace
}  // namespace perhaps::cli::counted

// Its searches are those above.
#define json counted
#include "cli/certificate.cc"  // NOLINT(bugprone-suspicious-include): to count its searches
#undef json

namespace perhaps::cli {

// This program has no commands.
std::span<const Command> commands() noexcept { return {}; }
const Command* find_command(std::string_view) noexcept { return nullptr; }
std::vector<std::string> other_commands() { return {}; }

namespace {

struct Read {
  std::uint64_t bytes = 0;     // of the certificate
  std::uint64_t searched = 0;  // all searches together
};

Read read(std::size_t lists) {
  const std::string path = testing::TempDir() + "certificate.json";
  Certificate one;
  one.filter = {.file = path + "/../filter", .bytes = 1, .sha256 = "00"};
  one.recipe = "lines";
  one.missing = "fail";
  for (std::size_t i = 0; i < lists; ++i) {
    const Certificate::Listed listed{.file = path + "/../" + std::to_string(i), .bytes = i, .sha256 = "00"};
    one.keys.push_back(listed);
    one.absent.push_back(listed);
    one.sets.push_back("a=" + std::to_string(i));
  }
  for (const char* const name : {"keys", "false_negatives", "absent", "false_positives", "fpr", "fpr_low", "fpr_high",
                                 "fpr_model", "model_agrees"})
    one.result.emplace_back(name, "0");
  one.write(path);
  counted::searched = 0;
  const Certificate again = Certificate::read(path);
  EXPECT_EQ(again.keys.size(), lists);
  EXPECT_EQ(again.absent.size(), lists);
  EXPECT_EQ(again.sets, one.sets);
  EXPECT_TRUE(lists == 0 || again.keys.back().bytes == lists - 1);
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  std::fseek(file, 0, SEEK_END);
  const auto bytes = static_cast<std::uint64_t>(std::ftell(file));
  std::fclose(file);
  std::remove(path.c_str());
  return {bytes, counted::searched};
}

TEST(Certificate, IsReadInProportionToItsLength) {
  const Read few = read(1);
  const Read many = read(3000);
  EXPECT_GT(many.bytes, 1000 * few.bytes / 4);
  // The same number of passes over all of it, and three over the elements of lists.
  const auto passes = [](const Read& r) { return static_cast<double>(r.searched) / static_cast<double>(r.bytes); };
  EXPECT_GT(passes(few), 10);
  EXPECT_LT(passes(many), passes(few) + 3);
}

}  // namespace
}  // namespace perhaps::cli
