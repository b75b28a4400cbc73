// Filters of this library for LevelDB, through its public FilterPolicy.
//
//   const auto policy = perhaps::leveldb::new_filter_policy();
//   options.filter_policy = policy.get();                             // must outlive the database
//
// LevelDB keeps one filter for every 2 KiB of a table: 18 keys of 100 bytes, or 36 in every second one, since a data
// block has 4 KiB. For so few keys a dense linear system (dense.h) in the bits of a Bloom filter has about a tenth of
// its rate:
//
//   bits per key      8        10        12        16
//   LevelDB's own   2.6 %     1.2 %    0.51 %    0.15 %         36 keys; leveldb_policy_test prints these
//   this           0.57 %    0.14 %   0.038 %   0.0026 %
//
// The filters say what they are, so family and bits_per_key may change from one opening of the database to the next.
// They have a name of their own: a stock LevelDB ignores them, and reads the same database correctly without them. A
// damaged filter answers *perhaps*.
#pragma once
#include <leveldb/filter_policy.h>

#include <memory>

#include "perhaps/family.h"

namespace perhaps::leveldb {

struct Options {
  double bits_per_key = 10;
  Kind family = Kind::dense;  // can_pack_few(family): engine/packed.h
  // Writes the bytes of LevelDB's built-in Bloom policy under its name, so that stock programs use the filters too.
  // bits_per_key is then rounded down, and family is ignored.
  bool compatible = false;
};

// Throws std::invalid_argument if bits_per_key is not above 0 and at most 100, or the family cannot be packed or is
// useless for a few dozen keys.
std::unique_ptr<const ::leveldb::FilterPolicy> new_filter_policy(const Options& options = {});

}  // namespace perhaps::leveldb
