// The typed flat filters behind the run-time interface. Private: any_filter.cc and container.cc make these.
#pragma once
#include <algorithm>
#include <atomic>
#include <optional>

#include "perhaps/algebra.h"
#include "perhaps/any_filter.h"
#include "perhaps/bulk.h"
#include "perhaps/container.h"

namespace perhaps {

// The flat families, once. `use.template operator()<L>()` for each, in the order of `perhaps size`.
template <class Use>
void for_each_layout(Use use) {
  use.template operator()<LineLayout>();
  use.template operator()<BlockLayout>();
  use.template operator()<BloomLayout<EnhancedDouble>>();
}

template <class L>
constexpr std::string_view summary_of() {
  if constexpr (std::same_as<L, LineLayout>) return "one cache line a key; the default";
  if constexpr (std::same_as<L, BlockLayout>) return "half a line, fastest single lookup, Parquet's layout";
  if constexpr (std::same_as<L, BloomLayout<EnhancedDouble>>) return "classic Bloom: smallest of the three, slowest";
}

inline std::uint64_t bits_of(BloomShape s) { return s.bits; }
inline std::uint64_t bits_of(LineShape s) { return s.bits(); }
inline std::uint64_t bits_of(BlockShape s) { return s.bits(); }
inline std::uint32_t probes_of(BloomShape s) { return s.probes; }
inline std::uint32_t probes_of(LineShape s) { return s.probes; }
inline std::uint32_t probes_of(BlockShape) { return BlockShape::kProbes; }

// A view that takes bare digests.
template <class L, class H>
class FlatProbe final : public DigestProbe {
 public:
  explicit FlatProbe(FlatView<L, H> view) noexcept : view_(view) {}

  FlatView<L, H> view() const noexcept { return view_; }

  AnyHasher hasher() const noexcept override { return view_.hasher(); }
  std::uint64_t may_contain(std::span<const std::uint64_t> digests) const noexcept override {
    assert(digests.size() <= kBatch);
    std::uint64_t answers = 0;
    may_contain(digests, std::span(&answers, 1));
    return answers;
  }
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept override {
    assert(answers.size() * kBatch >= digests.size());
    L::query(view_.shape(), view_.bytes().data(), digests.data(), digests.size(), answers.data(),
             detail::far_away(view_.byte_size()));
  }
  void prefetch(std::uint64_t digest) const noexcept override {
    L::prefetch(view_.shape(), view_.bytes().data(), digest);
  }

 private:
  FlatView<L, H> view_;
};

// What a view answers, for AnyFlatView and AnyFlatOwner alike. `Held` is FlatView<L, H> or Flat<L, H>.
template <class L, class H, class Base, class Held>
class AnyFlatBase : public Base {
 public:
  AnyFlatBase(Held held, Record record) : held_(std::move(held)), record_(record), probe_(held_) {}
  AnyFlatBase(const AnyFlatBase&) = delete;  // probe_ looks into held_
  AnyFlatBase& operator=(const AnyFlatBase&) = delete;

  using Base::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::uint64_t answers = 0;
    held_.may_contain(keys, std::span(&answers, 1));
    return answers;
  }
  void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept override {
    held_.may_contain(keys, answers);
  }
  std::uint64_t byte_size() const noexcept override { return held_.byte_size(); }
  Record record() const noexcept override { return record_; }
  const DigestProbe* digests() const noexcept override { return &probe_; }

  Description describe() const override {
    const auto shape = held_.shape();
    const Condition now = condition_of(held_);
    Description d;
    d.format = "perhaps";
    d.family = L::family;
    d.hash = H::name;
    d.keys = record_.keys;
    if (record_.capacity != 0) {
      d.capacity = record_.capacity;
      d.fpr_at_capacity = shape.fpr(static_cast<double>(record_.capacity));
    }
    d.keys_estimated = now.keys;
    d.bits = bits_of(shape);
    d.bytes = shape.bytes();
    d.probes = probes_of(shape);
    d.fill = now.fill;
    d.fpr = now.fpr;
    if constexpr (std::same_as<L, LineLayout>) d.more.emplace_back("lines", std::to_string(shape.lines));
    if constexpr (std::same_as<L, BlockLayout>) d.more.emplace_back("blocks", std::to_string(shape.blocks));
    if constexpr (std::same_as<H, Hash>) d.more.emplace_back("seed", std::to_string(held_.hasher().seed()));
    return d;
  }

 protected:
  Held held_;
  Record record_;

 private:
  FlatProbe<L, H> probe_;
};

template <class L, class H>
using AnyFlatView = AnyFlatBase<L, H, AnyFilter, FlatView<L, H>>;

template <class L, class H>
class AnyFlatOwner : public AnyFlatBase<L, H, AnyMutable, Flat<L, H>> {
  using Base = AnyFlatBase<L, H, AnyMutable, Flat<L, H>>;
  using View = FlatView<L, H>;

 public:
  using Base::Base;

  void insert(std::span<const Bytes> keys) override {
    this->held_.insert(keys);
    this->record_.keys += keys.size();
  }

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    bulk_.emplace(this->held_, threads);
    std::vector<std::unique_ptr<AnyLane>> result;
    for (unsigned i = 0; i < threads; ++i) {
      result.push_back(std::make_unique<Lane>(*bulk_, this->held_.hasher(), this->record_.keys));
    }
    return result;
  }

  Result<void> unite(const AnyFilter& other) override {
    auto theirs = same_type(other);
    if (!theirs) return std::move(theirs).error();
    if (auto done = perhaps::unite(this->held_, *theirs); !done) return done;
    this->record_.keys += other.record().keys;
    return {};
  }
  Result<void> intersect(const AnyFilter& other) override {
    auto theirs = same_type(other);
    if (!theirs) return std::move(theirs).error();
    if (auto done = perhaps::intersect(this->held_, *theirs); !done) return done;
    this->record_.keys = std::min(this->record_.keys, other.record().keys);
    return {};
  }
  Result<std::unique_ptr<AnyMutable>> fold() const override {
    auto half = perhaps::fold(this->held_);
    if (!half) return std::move(half).error();
    return std::unique_ptr<AnyMutable>(std::make_unique<AnyFlatOwner>(*std::move(half), this->record_));
  }

  Result<void> save(const std::string& path, Record record) const override {
    return perhaps::save(path, this->held_, record);
  }

 private:
  class Lane : public AnyLane {
   public:
    // `count` is shared by the lanes.
    Lane(BulkInsert<L, H>& bulk, H hasher, std::uint64_t& count) : lane_(bulk.lane()), hasher_(hasher), count_(count) {}
    ~Lane() override { std::atomic_ref(count_).fetch_add(inserted_, std::memory_order_relaxed); }

    void insert(std::span<const Bytes> keys) noexcept override {
      in_batches(keys, [&](auto batch, auto out) { digests_of(hasher_, batch, out); });
    }
    void insert_digests(std::span<const std::uint64_t> digests) noexcept override {
      in_batches(digests, [&](auto batch, auto out) {
        for (std::size_t i = 0; i < batch.size(); ++i) out[i] = Digest<H>::made_by(hasher_, batch[i]);
      });
    }

   private:
    template <class T, class Make>
    void in_batches(std::span<const T> all, Make make) noexcept {
      inserted_ += all.size();
      for (std::size_t from = 0; from < all.size(); from += digests_.size()) {
        const auto batch = all.subspan(from, std::min(digests_.size(), all.size() - from));
        make(batch, std::span(digests_));
        lane_.insert(std::span<const Digest<H>>(digests_.data(), batch.size()));
      }
    }

    typename BulkInsert<L, H>::Lane lane_;
    H hasher_;
    std::uint64_t& count_;
    std::uint64_t inserted_ = 0;
    std::array<Digest<H>, 1024> digests_;
  };

  Result<View> same_type(const AnyFilter& other) const {
    if (const auto* probe = dynamic_cast<const FlatProbe<L, H>*>(other.digests())) return probe->view();
    const Description theirs = other.describe();
    return Error{Errc::mismatch, "the filters differ in kind: " + std::string(L::family) + " with " +
                                     std::string(H::name) + ", and " + theirs.family + " with " + theirs.hash};
  }

  std::optional<BulkInsert<L, H>> bulk_;
};

}  // namespace perhaps
