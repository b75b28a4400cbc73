// Promise: a plug-in that was compiled for another RocksDB than it is linked with makes no filters, and says which two
// versions met. Here it is compiled as for 10.9 (later/rocksdb/version.h) and linked with the installed RocksDB. Would
// notice: a policy whose builder has the virtual functions of another version.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "perhaps_rocksdb.h"

namespace perhaps {
namespace {

static_assert(ROCKSDB_MAJOR == 10 && ROCKSDB_MINOR == 9);

TEST(RocksDbHandshake, RefusesALibraryOfAnotherVersion) {
  const std::string linked = ::rocksdb::GetRocksVersionAsString();
  ASSERT_FALSE(linked.starts_with("10.9."));
  for (const bool compatible : {false, true}) {
    try {
      rocksdb::new_filter_policy({.compatible = compatible});
      ADD_FAILURE();
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "perhaps: compiled for RocksDB 10.9, but linked with " + linked);
    }
  }
}

// By name as well: the policy that is made instead lets no database be opened.
TEST(RocksDbHandshake, RefusesByName) {
  rocksdb::register_policies();
  std::shared_ptr<const ::rocksdb::FilterPolicy> made;
  const auto status = ::rocksdb::FilterPolicy::CreateFromString(::rocksdb::ConfigOptions(), "perhaps:line:10", &made);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("compiled for RocksDB 10.9"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace perhaps
