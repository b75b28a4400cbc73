// What the tests of real databases share: a folder of their own, removed at the end, and one database in it.
#pragma once
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace perhaps {

// What a database should hold.
using Model = std::map<std::string, std::string>;

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        std::string("perhaps-") + test->test_suite_name() + "-" + test->name() + "-" + std::to_string(::getpid());
    std::replace(name.begin(), name.end(), '/', '-');  // of tests with parameters
    folder_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    db_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Closes the database before, if it was open.
  void open(const ::rocksdb::Options& options) {
    db_.reset();
    ::rocksdb::DB* db = nullptr;
    const auto status = ::rocksdb::DB::Open(options, (folder_ / "db").string(), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }

  std::filesystem::path folder_;
  std::unique_ptr<::rocksdb::DB> db_;
};

// Tables of a few dozen kilobytes on several levels, soon.
inline ::rocksdb::Options many_small_tables() {
  ::rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  options.max_bytes_for_level_multiplier = 3;
  options.compression = ::rocksdb::kNoCompression;
  return options;
}

}  // namespace perhaps
