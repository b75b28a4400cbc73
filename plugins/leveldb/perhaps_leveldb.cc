#include "perhaps_leveldb.h"

#include <leveldb/slice.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "perhaps/engine/packed.h"
#include "perhaps/format/leveldb.h"

namespace perhaps::leveldb {
namespace {

using ::leveldb::Slice;

Bytes bytes_in(const Slice& slice) noexcept { return bytes_of(std::string_view(slice.data(), slice.size())); }

class PackedPolicy final : public ::leveldb::FilterPolicy {
 public:
  explicit PackedPolicy(const Options& options) : options_(options) {}

  // A change of the bytes that older readers would misread takes another name.
  const char* Name() const override { return "perhaps.packed2"; }

  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    std::vector<std::uint64_t> digests(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = Hash()(bytes_in(keys[i])).value;
    const auto packed = pack(options_.family, std::move(digests), options_.bits_per_key);
    dst->append(reinterpret_cast<const char*>(packed.data()), packed.size());
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return packed_may_contain(bytes_in(filter), Hash()(bytes_in(key)).value);
  }

 private:
  Options options_;
};

class CompatiblePolicy final : public ::leveldb::FilterPolicy {
 public:
  explicit CompatiblePolicy(const Options& options)
      : bits_per_key_(static_cast<std::uint64_t>(std::max(options.bits_per_key, 1.0))) {}

  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }

  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    std::vector<Bytes> all(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = bytes_in(keys[i]);
    const auto blob = format::leveldb::build(all, bits_per_key_);
    dst->append(reinterpret_cast<const char*>(blob.data()), blob.size());
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return format::leveldb::may_contain(bytes_in(filter), bytes_in(key));
  }

 private:
  std::uint64_t bits_per_key_;
};

}  // namespace

std::unique_ptr<const ::leveldb::FilterPolicy> new_filter_policy(const Options& options) {
  if (!(options.bits_per_key > 0 && options.bits_per_key <= 100))
    throw std::invalid_argument("perhaps: bits_per_key = " + std::to_string(options.bits_per_key));
  if (!options.compatible && !can_pack(options.family))
    throw std::invalid_argument("perhaps: a " + std::string(name_of(options.family)) + " filter cannot be packed");
  if (!options.compatible && !can_pack_few(options.family))
    throw std::invalid_argument("perhaps: LevelDB makes a filter for every 2 KiB, and for so few keys a " +
                                std::string(name_of(options.family)) + " filter is useless");
  if (options.compatible) return std::make_unique<CompatiblePolicy>(options);
  return std::make_unique<PackedPolicy>(options);
}

}  // namespace perhaps::leveldb
