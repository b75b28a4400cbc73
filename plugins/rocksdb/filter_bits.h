// The two classes behind RocksDB's filter blocks, which its public headers only name. A program that implements them
// must agree with the library on the order of their virtual functions, which is this table:
//
//   7.0 to 9.5     AddKey .. ApproximateNumEntries
//   9.6 to 10.8    AddKeyAndAlt after AddKey
//   10.9 to 11.9   CalculateSpace and EstimatedFpRate at the end
//
// It was read off every release from 7.0.1 to 11.8.1 and the head of November 2026 (11.9); 7.8.3, 9.7.4 and 10.5.1 were
// run. 7.0.1 and 7.0.2 lack FilterPolicy::CompatibilityName, so the plug-in does not compile with them.
// new_filter_policy compares the version of these headers with that of the library it is linked to
// (GetRocksVersionAsString) and refuses another one. A RocksDB that was built without RTTI needs -fno-rtti here.
#pragma once
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <cstddef>
#include <memory>

#include "perhaps_rocksdb.h"

static_assert(PERHAPS_ROCKSDB_FILTERS, "RocksDB 7.0 to 11.9: other versions may have other virtual functions");

#define PERHAPS_ROCKSDB_HAS_ALT (PERHAPS_ROCKSDB_VERSION >= 906)
#define PERHAPS_ROCKSDB_HAS_SPACE (PERHAPS_ROCKSDB_VERSION >= 1009)

namespace ROCKSDB_NAMESPACE {

// (AddKey* Finish MaybePostVerify?)*: a partitioned filter uses one builder for all of its partitions.
class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() = default;
  virtual void AddKey(const Slice& key) = 0;
#if PERHAPS_ROCKSDB_HAS_ALT
  // A key and its prefix. A key equal to the last one, and a prefix equal to the last one, count once.
  virtual void AddKeyAndAlt(const Slice& key, const Slice& alt) = 0;
#endif
  // Since 9.6: 0 if and only if no key was added.
  virtual std::size_t EstimateEntriesAdded() = 0;
  // The bytes belong to *buf.
  virtual Slice Finish(std::unique_ptr<const char[]>* buf) = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* buf, Status* status) = 0;
  virtual Status MaybePostVerify(const Slice& filter) = 0;
  // Keys for a filter of so many bytes: where partitions are cut.
  virtual std::size_t ApproximateNumEntries(std::size_t bytes) = 0;
#if PERHAPS_ROCKSDB_HAS_SPACE
  // Bytes for so many keys, and the rate to expect of so many keys in so many bytes.
  virtual std::size_t CalculateSpace(std::size_t keys) = 0;
  virtual double EstimatedFpRate(std::size_t keys, std::size_t bytes) = 0;
#endif
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() = default;
  virtual bool MayMatch(const Slice& key) = 0;
  virtual void MayMatch(int count, Slice** keys, bool* may_match) = 0;
};

}  // namespace ROCKSDB_NAMESPACE
