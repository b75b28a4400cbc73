// Promise: the `bloom` tool of DCSO (package golang-github-dcso-bloom-cli) reads what we write and we read what it
// writes, plain and gzipped, and both write the same bytes for the same keys. Would notice: another size, another
// number of probes, another count of keys, a position that differs, one of 20,000 answers that differs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "perhaps/format/format.h"

namespace perhaps::test {
namespace {

namespace fs = std::filesystem;

class Dcso : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "perhaps-dcso-").string() + std::string(6, 'X');
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    run("command -v bloom gzip");  // scripts/setup test
    for (int i = 0; i < 3000; ++i) keys_.push_back("key-" + std::to_string(i * i) + (i % 3 == 0 ? " \xc3\xa4" : ""));
    for (int i = 0; i < 20000; ++i) absent_.push_back("absent-" + std::to_string(i));
    write_lines("keys", keys_);
    write_lines("absent", absent_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs a command in the folder. The tool reports what it does on standard error.
  void run(const std::string& command) const {
    ASSERT_EQ(std::system(("cd '" + folder_.string() + "' && " + command + " >log 2>&1").c_str()), 0) << command << "\n"
                                                                                                      << text_of("log");
  }

  std::string text_of(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void write_lines(const std::string& name, const std::vector<std::string>& lines) const {
    std::ofstream out(folder_ / name, std::ios::binary);
    for (const auto& line : lines) out << line << '\n';
  }

  std::vector<std::byte> built(const std::string& n, const std::string& p) const {
    const format::Codec& codec = *format::find("dcso");
    format::Params params(codec);
    EXPECT_TRUE(params.set("n", n) && params.set("p", p));
    std::vector<Bytes> views;
    for (const auto& key : keys_) views.push_back(bytes_of(key));
    auto bytes = codec.build(views, params);
    EXPECT_TRUE(bytes);
    return *bytes;
  }

  // Those of `lines` for which the file answers *perhaps*, one per line.
  std::string found_by_us(const std::string& file, const std::vector<std::string>& lines) const {
    const std::string text = text_of(file);
    const auto opened = format::open({.bytes = bytes_of(text), .file_name = file});
    if (!opened) return opened.error().detail;
    EXPECT_EQ(opened->format, "dcso");
    std::string found;
    for (const auto& line : lines) {
      if (opened->whole->may_contain(bytes_of(line))) found += line + "\n";
    }
    return found;
  }
  std::string found_by_tool(const std::string& options, const std::string& file, const std::string& lines) const {
    const int status = std::system(
        ("cd '" + folder_.string() + "' && bloom " + options + " check " + file + " <" + lines + " >found").c_str());
    EXPECT_EQ(status, 0);
    return text_of("found");
  }

  fs::path folder_;
  std::vector<std::string> keys_;
  std::vector<std::string> absent_;
};

TEST_F(Dcso, TheToolWritesTheSameBytes) {
  for (const auto& [n, p] : {std::pair{"3000", "0.01"}, {"1", "0.5"}, {"100", "0.1"}, {"100000", "0.0001"}}) {
    SCOPED_TRACE(std::string(n) + " " + p);
    run("rm -f theirs && bloom create -n " + std::string(n) + " -p " + p + " theirs && bloom insert theirs <keys");
    const auto ours = built(n, p);
    EXPECT_TRUE(std::ranges::equal(bytes_of(text_of("theirs")), ours));
  }
}

TEST_F(Dcso, TheToolReadsOurs) {
  write("ours", built("3000", "0.01"));
  EXPECT_EQ(found_by_tool("", "ours", "keys"), text_of("keys"));
  EXPECT_EQ(found_by_tool("", "ours", "absent"), found_by_us("ours", absent_));
  run("gzip -k ours");
  EXPECT_EQ(found_by_tool("--gzip", "ours.gz", "keys"), text_of("keys"));
}

TEST_F(Dcso, WeReadTheTools) {
  run("bloom create -n 2000 -p 0.05 theirs && bloom insert theirs <keys && printf 'notes' | bloom set-data theirs");
  EXPECT_EQ(found_by_us("theirs", keys_), text_of("keys"));
  EXPECT_EQ(found_by_us("theirs", absent_), found_by_tool("", "theirs", "absent"));
}

TEST_F(Dcso, WeReadTheToolsUnzipped) {
  run("bloom --gzip create -n 2000 -p 0.05 theirs.gz && bloom --gzip insert theirs.gz <keys && gzip -d theirs.gz");
  EXPECT_EQ(found_by_us("theirs", keys_), text_of("keys"));
  EXPECT_EQ(found_by_us("theirs", absent_), found_by_tool("", "theirs", "absent"));
}

}  // namespace
}  // namespace perhaps::test
