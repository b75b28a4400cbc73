// From keys to a filter of any family: the three ways (any_filter.h). Private: any_filter.cc makes these.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>

#include "any/flat.h"
#include "build/sort.h"

namespace perhaps {

// Bits: all lanes fill one filter at once.
template <BitLayout L>
class BitBuilder final : public AnyBuilder {
 public:
  BitBuilder(const RequestOf<typename L::Shape>& request, const EitherHash& hasher)
      : owner_(std::make_unique<AnyFlatOwner<L>>(Flat<L, EitherHash>(request, hasher),
                                                 Record{.keys = 0, .capacity = request.keys})) {}

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    bulk_.emplace(owner_->filter(), threads);
    std::vector<std::unique_ptr<AnyLane>> result;
    for (unsigned i = 0; i < threads; ++i) result.push_back(std::make_unique<Lane>(*this));
    return result;
  }
  Result<std::unique_ptr<AnyOwner>> finish() override {
    bulk_.reset();
    owner_->add_to_record(inserted_);
    return std::unique_ptr<AnyOwner>(std::move(owner_));
  }

 private:
  class Lane final : public AnyLane {
   public:
    explicit Lane(BitBuilder& to) : to_(to), lane_(to.bulk_->lane()) {}
    ~Lane() override { to_.inserted_.fetch_add(inserted_, std::memory_order_relaxed); }

    bool insert(std::span<const Bytes> keys) noexcept override { return insert_all(keys); }
    bool insert_digests(std::span<const std::uint64_t> digests) noexcept override { return insert_all(digests); }

   private:
    template <class T>
    bool insert_all(std::span<const T> all) noexcept {
      inserted_ += all.size();
      return in_digests(to_.owner_->filter().hasher(), all, [&](auto some) {
        lane_.insert(some);
        return true;
      });
    }

    BitBuilder& to_;
    typename BulkInsert<L, EitherHash>::Lane lane_;
    std::uint64_t inserted_ = 0;
  };

  std::unique_ptr<AnyFlatOwner<L>> owner_;
  std::optional<BulkInsert<L, EitherHash>> bulk_;
  std::atomic<std::uint64_t> inserted_ = 0;
};

// Streams: one lane, in order.
class StreamBuilder final : public AnyBuilder {
 public:
  explicit StreamBuilder(std::unique_ptr<AnyMutable> to) : to_(std::move(to)) {}

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    std::vector<std::unique_ptr<AnyLane>> result;
    if (threads > 0) result.push_back(std::make_unique<Lane>(*this));
    return result;
  }
  Result<std::unique_ptr<AnyOwner>> finish() override {
    if (thrown_) std::rethrow_exception(thrown_);
    return std::unique_ptr<AnyOwner>(std::move(to_));
  }

 private:
  class Lane final : public AnyLane {
   public:
    explicit Lane(StreamBuilder& to) : to_(to) {}
    bool insert(std::span<const Bytes> keys) noexcept override {
      return guarded([&] { return to_.to_->insert(keys) == keys.size(); });
    }
    bool insert_digests(std::span<const std::uint64_t> digests) noexcept override {
      return guarded([&] { return to_.to_->insert_digests(digests) == digests.size(); });
    }

   private:
    template <class Insert>
    bool guarded(Insert insert) noexcept {
      try {
        return insert();
      } catch (...) {  // no memory to grow
        to_.thrown_ = std::current_exception();
        return false;
      }
    }
    StreamBuilder& to_;
  };

  std::unique_ptr<AnyMutable> to_;
  std::exception_ptr thrown_;
};

// Whole sets, for filters that count copies: a key that is twice in the list must be in the filter once, because
// otherwise a single erase would not remove it. So the digests are kept, 8 bytes per key, sorted and made distinct, and
// inserted in ascending order of their words, which is also the order of the table.
template <MutableLayout L>
class SetBuilder final : public AnyBuilder {
 public:
  SetBuilder(const RequestOf<typename L::Shape>& request, const EitherHash& hasher)
      : request_(request), hasher_(hasher) {}

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    parts_.resize(threads);
    std::vector<std::unique_ptr<AnyLane>> result;
    for (auto& part : parts_) result.push_back(std::make_unique<Lane>(part, hasher_, thrown_));
    return result;
  }

  Result<std::unique_ptr<AnyOwner>> finish() override {
    if (thrown_) throw std::bad_alloc();
    std::vector<std::uint64_t> all;
    for (auto& part : parts_) {
      if (all.empty()) {
        all = std::move(part);
      } else {
        all.insert(all.end(), part.begin(), part.end());
      }
      part = {};
    }
    const std::span<std::uint64_t> distinct = sorted(all);
    for (std::uint64_t& word : distinct) word *= detail::unspread_of<EitherHash>();
    request_.keys = std::max<std::uint64_t>(request_.keys, distinct.size());
    auto owner = std::make_unique<AnyFlatOwner<L>>(Flat<L, EitherHash>(request_, hasher_),
                                                   Record{.keys = 0, .capacity = request_.keys});
    if (const std::size_t count = owner->insert_digests(distinct); count < distinct.size()) {
      return Error{Errc::full, std::string(L::family) + ": full after " + std::to_string(count) + " of " +
                                   std::to_string(distinct.size()) + " distinct keys"};
    }
    if (ExtendingLayout<L> && request_.max_bytes != 0 && owner->byte_size() > request_.max_bytes) {
      return Error{Errc::full, std::string(L::family) + ": " + std::to_string(distinct.size()) +
                                   " distinct keys need " + std::to_string(owner->byte_size()) +
                                   " bytes, whatever the false-positive rate"};
    }
    return std::unique_ptr<AnyOwner>(std::move(owner));
  }

 private:
  class Lane final : public AnyLane {
   public:
    Lane(std::vector<std::uint64_t>& to, const EitherHash& hasher, std::atomic<bool>& thrown)
        : to_(to), hasher_(hasher), thrown_(thrown) {}
    bool insert(std::span<const Bytes> keys) noexcept override {
      return in_digests(hasher_, keys, [&](auto some) {
        return guarded([&] {
          for (const auto& d : some) to_.push_back(d.word());
        });
      });
    }
    bool insert_digests(std::span<const std::uint64_t> digests) noexcept override {
      return guarded([&] {
        for (const std::uint64_t digest : digests) to_.push_back(digest * detail::spread_of<EitherHash>());
      });
    }

   private:
    template <class Insert>
    bool guarded(Insert insert) noexcept {
      try {
        insert();
        return true;
      } catch (const std::bad_alloc&) {
        thrown_ = true;
        return false;
      }
    }
    std::vector<std::uint64_t>& to_;
    EitherHash hasher_;
    std::atomic<bool>& thrown_;
  };

  // The distinct ones, ascending, in `all` or in other_.
  std::span<std::uint64_t> sorted(std::vector<std::uint64_t>& all) {
    if (all.size() < UINT32_MAX) {
      other_.resize(all.size());
      return build::sort_distinct(all, other_, 0);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  RequestOf<typename L::Shape> request_;
  EitherHash hasher_;
  std::vector<std::vector<std::uint64_t>> parts_;
  std::vector<std::uint64_t> other_;
  std::atomic<bool> thrown_ = false;
};

// Whole sets, for filters that are built.
template <StaticLayout L>
class StaticSetBuilder final : public AnyBuilder {
 public:
  StaticSetBuilder(const RequestOf<typename L::Shape>& request, const EitherHash& hasher, const BuildOptions& options)
      : builder_(request, options, hasher), max_bytes_(request.max_bytes) {}

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    std::vector<std::unique_ptr<AnyLane>> result;
    for (unsigned i = 0; i < threads; ++i) result.push_back(std::make_unique<Lane>(*this));
    return result;
  }
  Result<std::unique_ptr<AnyOwner>> finish() override {
    if (thrown_) throw std::bad_alloc();
    auto built = builder_.finish();
    if (!built) return std::move(built).error();
    if (max_bytes_ != 0 && built->byte_size() > max_bytes_) {
      return Error{Errc::full, std::string(L::family) + ": " + std::to_string(built->shape().keys) +
                                   " distinct keys need " + std::to_string(built->byte_size()) +
                                   " bytes, whatever the false-positive rate"};
    }
    const Record record{.keys = inserted_, .capacity = built->shape().keys};
    return std::unique_ptr<AnyOwner>(std::make_unique<AnyStatic<L>>(*std::move(built), record));
  }

 private:
  class Lane final : public AnyLane {
   public:
    explicit Lane(StaticSetBuilder& to) : to_(to), lane_(to.builder_.lane()) {}
    ~Lane() override { to_.inserted_.fetch_add(inserted_, std::memory_order_relaxed); }
    bool insert(std::span<const Bytes> keys) noexcept override { return insert_all(keys); }
    bool insert_digests(std::span<const std::uint64_t> digests) noexcept override { return insert_all(digests); }

   private:
    template <class T>
    bool insert_all(std::span<const T> all) noexcept {
      inserted_ += all.size();
      try {
        return in_digests(to_.builder_.hasher(), all, [&](auto some) { return lane_.insert(some); });
      } catch (const std::bad_alloc&) {
        to_.thrown_ = true;
        return false;
      }
    }
    StaticSetBuilder& to_;
    typename StaticBuilder<L, EitherHash>::Lane lane_;
    std::uint64_t inserted_ = 0;
  };

  StaticBuilder<L, EitherHash> builder_;
  std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> inserted_ = 0;
  std::atomic<bool> thrown_ = false;
};

}  // namespace perhaps
