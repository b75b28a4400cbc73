// RocksDB with our filters, as a user would write it.
#include <perhaps_rocksdb.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>

int main() {
  perhaps::rocksdb::register_policies();
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy = perhaps::rocksdb::new_filter_policy({.bits_per_key = 8});
  rocksdb::BlockBasedTableOptions read;
  const auto status = rocksdb::GetBlockBasedTableOptionsFromString(
      rocksdb::ConfigOptions(), table, "filter_policy=" + table.filter_policy->GetId(), &read);
  return status.ok() && read.filter_policy->GetId() == table.filter_policy->GetId() ? 0 : 1;
}
