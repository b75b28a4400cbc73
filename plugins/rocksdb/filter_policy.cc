// Our filters in RocksDB's tables: packed bytes of any family, or RocksDB's own bytes by our own code.
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "filter_bits.h"
#include "perhaps/engine/packed.h"
#include "perhaps/format/rocksdb.h"
#include "policy_names.h"

namespace perhaps::rocksdb {
namespace {

using ::rocksdb::FilterBitsBuilder;
using ::rocksdb::FilterBitsReader;
using ::rocksdb::FilterBuildingContext;
using ::rocksdb::Slice;
using ::rocksdb::Status;

Bytes bytes_in(const Slice& slice) noexcept { return bytes_of(std::string_view(slice.data(), slice.size())); }

// Digests of ours in packed bytes.
struct Packed {
  static constexpr const char* kName = "perhaps.packed2";  // another one for bytes that older readers would misread

  class Keys {
   public:
    Keys(const Options&, std::uint32_t) {}
    void add(Bytes key) {
      const std::uint64_t digest = Hash()(key).value;
      // Versions of a key follow each other.
      if (digests_.empty() || digests_.back() != digest) digests_.push_back(digest);
    }
    std::size_t size() const noexcept { return digests_.size(); }
    std::vector<std::byte> filter(const Options& options) && {
      return pack(options.family, std::move(digests_), options.bits_per_key);
    }

   private:
    std::vector<std::uint64_t> digests_;
  };

  class Filter {
   public:
    explicit Filter(Bytes bytes) noexcept : view_(PackedView::over(bytes)) {}
    // Bit i of the answer belongs to keys[i], of at most kBatch.
    std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept {
      std::array<std::uint64_t, kBatch> digests;
      for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = Hash()(keys[i]).value;
      std::uint64_t answers = 0;
      view_.may_contain(std::span<const std::uint64_t>(digests.data(), keys.size()), std::span(&answers, 1));
      return answers;
    }
    bool may_contain(Bytes key) const noexcept { return view_.may_contain(Hash()(key).value); }

   private:
    PackedView view_;
  };
};

// RocksDB's own bytes.
struct Compatible {
  static constexpr const char* kName = "rocksdb.BuiltinBloomFilter";

  class Keys {
   public:
    Keys(const Options& options, std::uint32_t format_version)
        : builder_(format_version < 5               ? format::rocksdb::Builder::Kind::legacy
                   : options.family == Kind::ribbon ? format::rocksdb::Builder::Kind::ribbon
                                                    : format::rocksdb::Builder::Kind::fast_local,
                   options.bits_per_key) {}
    void add(Bytes key) { builder_.add(key); }
    std::size_t size() const noexcept { return builder_.keys(); }
    std::vector<std::byte> filter(const Options&) && {
      auto blob = builder_.finish();
      // RocksDB's own way to say *perhaps*.
      return blob ? *std::move(blob) : std::vector<std::byte>(6);
    }

   private:
    format::rocksdb::Builder builder_;
  };

  class Filter {
   public:
    explicit Filter(Bytes bytes) {
      auto opened = format::rocksdb::open_blob("rocksdb", bytes);
      if (opened) filter_ = *std::move(opened);
    }
    std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept {
      return filter_ ? filter_->may_contain(keys) : ~std::uint64_t{0};
    }
    bool may_contain(Bytes key) const noexcept { return !filter_ || filter_->may_contain(key); }

   private:
    std::shared_ptr<const AnyFilter> filter_;  // null: the bytes make no sense
  };
};

template <class Form>
class Builder final : public FilterBitsBuilder {
 public:
  Builder(const Options& options, std::uint32_t format_version)
      : options_(options), format_version_(format_version), keys_(options_, format_version) {}

  void AddKey(const Slice& key) override { keys_.add(bytes_in(key)); }
  std::size_t EstimateEntriesAdded() override { return keys_.size(); }

  Slice Finish(std::unique_ptr<const char[]>* buf) override {
    const auto filter = std::exchange(keys_, Keys(options_, format_version_)).filter(options_);
    auto bytes = std::make_unique<char[]>(filter.size());
    std::copy_n(reinterpret_cast<const char*>(filter.data()), filter.size(), bytes.get());
    *buf = std::move(bytes);
    return {buf->get(), filter.size()};
  }
  Slice Finish(std::unique_ptr<const char[]>* buf, Status* status) override {
    if (status != nullptr) *status = Status::OK();
    return Finish(buf);
  }
  // What is built from digests is asked for all of them where that can go wrong (static.h).
  Status MaybePostVerify(const Slice&) override { return Status::OK(); }

  std::size_t ApproximateNumEntries(std::size_t bytes) override {
    return static_cast<std::size_t>(static_cast<double>(bytes) * 8 / options_.bits_per_key);
  }

 private:
  using Keys = typename Form::Keys;
  Options options_;  // a copy: the policy may be gone before the builder
  std::uint32_t format_version_;
  Keys keys_;
};

template <class Form>
class Reader final : public FilterBitsReader {
 public:
  explicit Reader(Bytes bytes) : filter_(bytes) {}

  bool MayMatch(const Slice& key) override { return filter_.may_contain(bytes_in(key)); }

  // Of a MultiGet, up to 32 keys at once.
  void MayMatch(int count, Slice** keys, bool* may_match) override {
    const auto all = static_cast<std::size_t>(std::max(count, 0));
    std::array<Bytes, kBatch> batch;
    for (std::size_t from = 0; from < all; from += kBatch) {
      const std::size_t size = std::min(kBatch, all - from);
      for (std::size_t i = 0; i < size; ++i) batch[i] = bytes_in(*keys[from + i]);
      const std::uint64_t answers = filter_.may_contain(std::span<const Bytes>(batch.data(), size));
      for (std::size_t i = 0; i < size; ++i) may_match[from + i] = (answers >> i & 1) != 0;
    }
  }

 private:
  typename Form::Filter filter_;
};

template <class Form>
class Policy final : public ::rocksdb::FilterPolicy {
 public:
  explicit Policy(const Options& options) : options_(options) {}

  const char* Name() const override { return kPolicyName; }
  const char* CompatibilityName() const override { return Form::kName; }
  // What an OPTIONS file says of it.
  std::string GetId() const override { return id_of(options_); }

  FilterBitsBuilder* GetBuilderWithContext(const FilterBuildingContext& context) const override {
    if (options_.compatible && options_.bits_per_key < 0.5) return nullptr;
    return new Builder<Form>(options_, context.table_options.format_version);
  }
  FilterBitsReader* GetFilterBitsReader(const Slice& contents) const override {
    return new Reader<Form>(bytes_in(contents));
  }

 private:
  Options options_;
};

}  // namespace

PolicyPtr new_filter_policy(const Options& options) {
  if (!valid(options)) throw std::invalid_argument("perhaps: no such filter: " + id_of(options));
  if (options.compatible) return std::make_unique<Policy<Compatible>>(options);
  return std::make_unique<Policy<Packed>>(options);
}

}  // namespace perhaps::rocksdb
