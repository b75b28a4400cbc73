// The two classes behind RocksDB's filter blocks, which its public headers only name. A program that implements them
// must agree with the library on the order of their virtual functions:
//   7.0 to 9.5    as here (tried with 7.8.3)
//   9.6           AddKeyAndAlt(key, alt) after AddKey
//   10.9          CalculateSpace(n), EstimatedFpRate(n, bytes) at the end
// A RocksDB that was built without RTTI needs -fno-rtti here.
#pragma once
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <cstddef>
#include <memory>

#include "perhaps_rocksdb.h"

static_assert(PERHAPS_ROCKSDB_FILTERS, "RocksDB 7.0 to 9.5: other versions have other virtual functions");

namespace ROCKSDB_NAMESPACE {

// (AddKey* Finish MaybePostVerify?)*: a partitioned filter uses one builder for all of its partitions.
class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() = default;
  virtual void AddKey(const Slice& key) = 0;
  virtual std::size_t EstimateEntriesAdded() = 0;
  // The bytes belong to *buf.
  virtual Slice Finish(std::unique_ptr<const char[]>* buf) = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buf, Status* status) = 0;
  virtual Status MaybePostVerify(const Slice& filter) = 0;
  // Keys for a filter of so many bytes: where partitions are cut.
  virtual std::size_t ApproximateNumEntries(std::size_t bytes) = 0;
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() = default;
  virtual bool MayMatch(const Slice& key) = 0;
  virtual void MayMatch(int count, Slice** keys, bool* may_match) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
