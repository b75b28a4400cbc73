// Calls the installed RocksDB 10.9.
#pragma once
#include_next <rocksdb/version.h>
#undef ROCKSDB_MAJOR
#undef ROCKSDB_MINOR
#define ROCKSDB_MAJOR 10
#define ROCKSDB_MINOR 9
