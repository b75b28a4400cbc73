// Our filters in RocksDB's tables: packed bytes of any family, or RocksDB's own bytes by our own code.
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
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
  static constexpr std::size_t kFewKeys = 512;
  static constexpr const char* kName = "perhaps.packed2";  // another one for bytes that older readers would misread

  class Keys {
   public:
    Keys(const Options&, std::uint32_t) {}
    // Versions of a key follow each other, and so do keys with the same prefix.
    void add(Bytes key) { take(Hash()(key).value, last_key_); }
    void add(Bytes key, Bytes prefix) {
      add(key);
      take(Hash()(prefix).value, last_prefix_);
    }
    std::size_t size() const noexcept { return digests_.size(); }
    std::vector<std::byte> filter(const Options& options) && {
      // A table or a partition of few keys, for which a static family is mostly head.
      const bool few = digests_.size() <= kFewKeys && !can_pack_few(options.family);
      return pack(few ? Kind::dense : options.family, std::move(digests_), options.bits_per_key);
    }
    // Does that filter deny a key?
    bool denied(Bytes filter) const noexcept {
      const auto view = PackedView::over(filter);
      return !std::all_of(digests_.begin(), digests_.end(), [&](std::uint64_t d) { return view.may_contain(d); });
    }

   private:
    void take(std::uint64_t digest, std::optional<std::uint64_t>& last) {
      if (last == digest) return;
      last = digest;
      digests_.push_back(digest);
    }

    std::optional<std::uint64_t> last_key_;
    std::optional<std::uint64_t> last_prefix_;
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
    void add(Bytes key) {
      builder_.add(key);
      if constexpr (PERHAPS_ROCKSDB_HAS_ALT) last_.assign(key.begin(), key.end());
    }
    // In the order of RocksDB since 9.6: the prefix goes in before its first key, and either is left out if it is what
    // went in before it.
    void add(Bytes key, Bytes prefix) {
      const auto same = [](Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); };
      const bool any = builder_.keys() != 0;
      const bool again = has_prefix_ && same(prefix, last_prefix_);
      const bool was_prefix = has_prefix_ && same(key, last_prefix_);
      if (!again && !same(prefix, key) && !(any && same(prefix, last_))) add(prefix);
      last_prefix_.assign(prefix.begin(), prefix.end());
      if (!was_prefix && !(any && same(key, last_))) add(key);
      has_prefix_ = true;
    }
    std::size_t size() const noexcept { return builder_.keys(); }
    std::vector<std::byte> filter(const Options&) && {
      auto blob = builder_.finish();
      // RocksDB's own way to say *perhaps*.
      return blob ? *std::move(blob) : std::vector<std::byte>(6);
    }
    // The hashes are the builder's: not checked.
    bool denied(Bytes) const noexcept { return false; }

   private:
    format::rocksdb::Builder builder_;
    std::vector<std::byte> last_;  // key or prefix that went in
    std::vector<std::byte> last_prefix_;
    bool has_prefix_ = false;
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
  Builder(const Options& options, const FilterBuildingContext& context)
      : options_(options),
        format_version_(context.table_options.format_version),
        verify_(context.table_options.detect_filter_construct_corruption),
        keys_(options_, format_version_) {}

  void AddKey(const Slice& key) override {
    keys_.add(bytes_in(key));
    count();
  }
#if PERHAPS_ROCKSDB_HAS_ALT
  void AddKeyAndAlt(const Slice& key, const Slice& alt) override {
    keys_.add(bytes_in(key), bytes_in(alt));
    count();
  }
#endif
  std::size_t EstimateEntriesAdded() override { return added_.load(std::memory_order_relaxed); }

  Slice Finish(std::unique_ptr<const char[]>* buf) override {
    Keys keys = std::exchange(keys_, Keys(options_, format_version_));
    count();
    built_ = verify_ ? std::optional(keys) : std::nullopt;
    const auto filter = std::move(keys).filter(options_);
    auto bytes = std::make_unique<char[]>(filter.size());
    std::copy_n(reinterpret_cast<const char*>(filter.data()), filter.size(), bytes.get());
    *buf = std::move(bytes);
    return {buf->get(), filter.size()};
  }
  Slice Finish(std::unique_ptr<const char[]>* buf, Status* status) override {
    if (status != nullptr) *status = Status::OK();
    return Finish(buf);
  }
  Status MaybePostVerify(const Slice& filter) override {
    const auto keys = std::exchange(built_, std::nullopt);
    if (keys && keys->denied(bytes_in(filter)))
      return Status::Corruption("perhaps: the filter that was built denies one of its keys");
    return Status::OK();
  }

  std::size_t ApproximateNumEntries(std::size_t bytes) override {
    return static_cast<std::size_t>(static_cast<double>(bytes) * 8 / options_.bits_per_key);
  }
#if PERHAPS_ROCKSDB_HAS_SPACE
  std::size_t CalculateSpace(std::size_t keys) override {
    return static_cast<std::size_t>(static_cast<double>(keys) * options_.bits_per_key / 8) + 1;
  }
  double EstimatedFpRate(std::size_t keys, std::size_t bytes) override {
    if (keys == 0) return 0;
    const double bits = 8 * static_cast<double>(bytes) / static_cast<double>(keys);
    const bool bloom = options_.family != Kind::ribbon && (options_.compatible || options_.family != Kind::dense);
    return bloom ? format::rocksdb::bloom_fpr(bits) : std::exp2(-bits);
  }
#endif

 private:
  using Keys = typename Form::Keys;

  void count() noexcept { added_.store(keys_.size(), std::memory_order_relaxed); }

  Options options_;  // a copy: the policy may be gone before the builder
  std::uint32_t format_version_;
  bool verify_;
  Keys keys_;
  std::optional<Keys> built_;           // until MaybePostVerify, if that is to look
  std::atomic<std::size_t> added_ = 0;  // since 10.9 another thread asks for it while keys come
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
    return new Builder<Form>(options_, context);
  }
  FilterBitsReader* GetFilterBitsReader(const Slice& contents) const override {
    return new Reader<Form>(bytes_in(contents));
  }

 private:
  Options options_;
};

}  // namespace

PolicyPtr new_filter_policy(const Options& options) {
  if (const std::string why = refusal_of(options); !why.empty()) throw std::invalid_argument(why);
  // Calling through the functions of another version would be calling anything.
  const std::string compiled = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR);
  const std::string linked = ::rocksdb::GetRocksVersionAsString();
  if (!linked.starts_with(compiled + "."))
    throw std::runtime_error("perhaps: compiled for RocksDB " + compiled + ", but linked with " + linked);
  if (options.compatible) return std::make_unique<Policy<Compatible>>(options);
  return std::make_unique<Policy<Packed>>(options);
}

}  // namespace perhaps::rocksdb
