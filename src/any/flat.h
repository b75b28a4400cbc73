// The typed flat filters behind the run-time interface. Private: any_filter.cc and container.cc make these.
#pragma once
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "any/either_hash.h"
#include "any/family.h"
#include "perhaps/algebra.h"
#include "perhaps/any_filter.h"
#include "perhaps/bulk.h"
#include "perhaps/file/container.h"

namespace perhaps {

// Hands words to `use` as digests of the hasher, up to 1024 at a time, until it returns false.
template <class Use>
bool in_digests(const EitherHash& hasher, std::span<const std::uint64_t> words, Use use) {
  std::array<Digest<EitherHash>, 1024> digests;
  for (std::size_t from = 0; from < words.size(); from += digests.size()) {
    const auto some = words.subspan(from, std::min(digests.size(), words.size() - from));
    for (std::size_t i = 0; i < some.size(); ++i) digests[i] = Digest<EitherHash>::made_by(hasher, some[i]);
    if (!use(std::span<const Digest<EitherHash>>(digests.data(), some.size()))) return false;
  }
  return true;
}
// The same from keys, which are hashed.
template <class Use>
bool in_digests(const EitherHash& hasher, std::span<const Bytes> keys, Use use) {
  std::array<Digest<EitherHash>, 1024> digests;
  for (std::size_t from = 0; from < keys.size(); from += digests.size()) {
    const auto some = keys.subspan(from, std::min(digests.size(), keys.size() - from));
    digests_of(hasher, some, std::span(digests));
    if (!use(std::span<const Digest<EitherHash>>(digests.data(), some.size()))) return false;
  }
  return true;
}

// A view that takes bare digests.
template <class L>
class FlatProbe final : public DigestProbe {
 public:
  using View = FlatView<L, EitherHash>;
  explicit FlatProbe(View view) noexcept : view_(view) {}

  View view() const noexcept { return view_; }

  AnyHasher hasher() const noexcept override { return view_.hasher(); }
  using DigestProbe::may_contain;
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept override {
    assert(answers.size() * kBatch >= digests.size());
    if (digests.size() == 1) {  // going through a batch takes twice as long as the lookup
      answers[0] = view_.may_contain(Digest<EitherHash>::made_by(view_.hasher(), digests[0]));
      return;
    }
    query({.words = digests.data(), .count = digests.size(), .spread = EitherHash::kSpread}, answers);
  }
  void prefetch(std::uint64_t digest) const noexcept override {
    L::prefetch(view_.shape(), view_.bytes().data(), digest * EitherHash::kSpread);
  }
  // Keys that are 64-bit numbers. Under the default hash, the kernel hashes them.
  void may_contain_integers(std::span<const std::uint64_t> keys, std::span<std::uint64_t> answers) const noexcept {
    const EitherHash hasher = view_.hasher();
    if (keys.size() == 1) {
      answers[0] = view_.may_contain(keys[0]);
    } else if (const Hash* const hash = hasher.unkeyed()) {
      query({.words = keys.data(), .count = keys.size(), .hash = hash}, answers);
    } else {
      view_.may_contain(keys, answers);
    }
  }

 private:
  void query(detail::Batch<> batch, std::span<std::uint64_t> answers) const noexcept {
    batch.ahead = detail::far_away(view_.byte_size());
    detail::query_batch<L>(view_.shape(), view_.bytes().data(), batch, answers.data());
  }

  View view_;
};

// A typed filter, or a view of one, behind `Base`: AnyFilter, AnyOwner or AnyMutable.
template <class Base, class Held, class Probe>
class AnyHeld : public Base {
 public:
  AnyHeld(Held held, Record record) : held_(std::move(held)), record_(std::move(record)), probe_(held_) {}
  AnyHeld(const AnyHeld&) = delete;  // probe_ refers to held_
  AnyHeld& operator=(const AnyHeld&) = delete;

  using Base::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    if (keys.size() == 1) return held_.may_contain(keys[0]);  // a third of the instructions of a column of one
    std::uint64_t answers = 0;
    held_.may_contain(keys, std::span(&answers, 1));
    return answers;
  }
  void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept override {
    held_.may_contain(keys, answers);
  }
  std::uint64_t byte_size() const noexcept override { return held_.byte_size(); }
  const Record& record() const noexcept override { return record_; }
  const DigestProbe* digests() const noexcept override { return &probe_; }

 protected:
  void hold(Held held) {
    held_ = std::move(held);
    renew_probe();
  }
  void renew_probe() { probe_ = Probe(held_); }

  Held held_;
  Record record_;

 private:
  Probe probe_;
};

// Once for each family, whoever owns the bytes.
template <class L>
Description describe_flat(const typename L::Shape& shape, Bytes table, const Record& record, const EitherHash& hasher) {
  const Condition now = condition_now<L>(shape, table, record);
  Description d;
  d.format = "perhaps";
  d.family = L::family;
  d.hash = name_of(hasher.hasher());
  d.keys = record.keys;
  if (record.capacity != 0) {
    d.capacity = record.capacity;
    d.fpr_at_capacity = shape.fpr(static_cast<double>(record.capacity));
  }
  d.keys_estimated = now.keys;
  d.bits = bits_of(shape);
  d.bytes = shape.bytes();
  d.probes = probes_of(shape);
  d.fill = now.fill;
  d.fpr = now.fpr;
  if constexpr (ErasableLayout<L>) {
    d.wrong_erase = shape.wrong_erase(now.keys);
    d.needs_rebuild = L::needs_rebuild(shape, table.data());
  }
  d.more = shape.facts();
  if (const Hash* const hash = hasher.unkeyed()) d.more.emplace_back("seed", std::to_string(hash->seed()));
  return d;
}

// What a view answers, for views and owners alike. `Held` is FlatView, Flat or StaticFilter of L and EitherHash.
template <class L, class Base, class Held>
class AnyFlatBase : public AnyHeld<Base, Held, FlatProbe<L>> {
 public:
  using AnyHeld<Base, Held, FlatProbe<L>>::AnyHeld;

  Description describe() const override {
    return describe_flat<L>(this->held_.shape(), this->held_.bytes(), this->record_, this->held_.hasher());
  }
};

template <class L>
using AnyFlatView = AnyFlatBase<L, AnyFilter, FlatView<L, EitherHash>>;

template <class L>
class AnyFlatOwner final : public AnyFlatBase<L, AnyMutable, Flat<L, EitherHash>> {
  using Base = AnyFlatBase<L, AnyMutable, Flat<L, EitherHash>>;
  using View = FlatView<L, EitherHash>;

 public:
  using Base::Base;

  Flat<L, EitherHash>& filter() noexcept { return this->held_; }
  void add_to_record(std::uint64_t keys) noexcept { this->record_.keys += keys; }

  std::size_t insert(std::span<const Bytes> keys) override { return insert_all(keys); }
  std::size_t insert_digests(std::span<const std::uint64_t> digests) override {
    std::size_t count = 0;
    in_digests(this->held_.hasher(), digests, [&](auto some) {
      const std::size_t went_in = insert_all(some);
      count += went_in;
      return went_in == some.size();
    });
    return count;
  }

  Result<ErasedCounts> erase_digests(std::span<const std::uint64_t> digests) override {
    if constexpr (ErasableLayout<L>) {
      ErasedCounts counts;
      in_digests(this->held_.hasher(), digests, [&](auto some) {
        for (const auto& digest : some) this->held_.prefetch(digest);
        for (const auto& digest : some) {
          switch (this->held_.erase(digest)) {
            case Erased::removed:
              ++counts.removed;
              break;
            case Erased::absent:
              ++counts.absent;
              break;
            case Erased::kept:
              ++counts.kept;
              break;
          }
        }
        return true;
      });
      this->record_.keys -= std::min(this->record_.keys, counts.removed + counts.kept);
      return counts;
    } else {
      (void)digests;
      return cannot("forget a key");
    }
  }

  Result<void> merge(const AnyFilter& other) override {
    if constexpr (MergesIntoThird<L, EitherHash>) {
      // Into a larger table if this one has no room for both.
      auto theirs = same_type(other);
      if (!theirs) return std::move(theirs).error();
      auto both = perhaps::merge(this->held_.view(), *theirs);
      if (!both) return std::move(both).error();
      if (both->byte_size() > this->held_.byte_size()) this->record_.capacity = both->shape().capacity();
      this->hold(*std::move(both));
      this->record_.keys += other.record().keys;
      this->record_.keep_common(other.record());
      return {};
    } else if constexpr (MergesInPlace<L, EitherHash>) {
      auto theirs = same_type(other);
      if (!theirs) return std::move(theirs).error();
      if (auto done = perhaps::merge(this->held_, *theirs); !done) return done;
      this->record_.keys += other.record().keys;
      this->record_.keep_common(other.record());
      return {};
    } else {
      (void)other;
      return cannot("be merged");
    }
  }
  Result<void> intersect(const AnyFilter& other) override {
    if constexpr (BitLayout<L>) {
      auto theirs = same_type(other);
      if (!theirs) return std::move(theirs).error();
      if (auto done = perhaps::intersect(this->held_, *theirs); !done) return done;
      this->record_.keys = std::min(this->record_.keys, other.record().keys);
      this->record_.keep_common(other.record());
      return {};
    } else {
      (void)other;
      return cannot("be intersected");
    }
  }
  Result<std::unique_ptr<AnyMutable>> fold() const override {
    if constexpr (FoldingLayout<L>) {
      auto half = perhaps::fold(this->held_);
      if (!half) return std::move(half).error();
      return std::unique_ptr<AnyMutable>(std::make_unique<AnyFlatOwner>(*std::move(half), this->record_));
    } else {
      return cannot("be folded");
    }
  }

  Result<void> save(const std::string& path, const Record& record) const override {
    return perhaps::save(path, this->held_, record);
  }

 private:
  // Keys or digests. Returns how many were inserted.
  template <class T>
  std::size_t insert_all(std::span<const T> some) {
    std::size_t count = some.size();
    if constexpr (FillingLayout<L>) {
      [[maybe_unused]] const auto shape = this->held_.shape();
      count = this->held_.insert(some);
      if constexpr (ExtendingLayout<L>) {
        if (!(this->held_.shape() == shape)) {
          this->record_.capacity = this->held_.shape().capacity();
          this->renew_probe();
        }
      }
      if constexpr (ResizingLayout<L, EitherHash>) {
        while (count < some.size() && grow()) count += this->held_.insert(some.subspan(count));
      }
    } else {
      this->held_.insert(some);
    }
    this->record_.keys += count;
    return count;
  }
  // False: it cannot grow any further.
  bool grow() requires ResizingLayout<L, EitherHash> {
    auto shape = this->held_.shape().grown_for(this->held_.shape().capacity() + 1);
    if (!shape) return false;
    // Full before its capacity: copies of one key pile up at the end, and a larger table takes no more of them.
    if (this->held_.keys() < this->held_.shape().capacity()) {
      const auto roomier = this->held_.shape().with_more_spare();
      if (!roomier) return false;
      shape = *roomier;
    }
    auto larger = resize(this->held_.view(), *shape);
    if (!larger) return false;
    this->record_.capacity = shape->capacity();
    this->hold(*std::move(larger));
    return true;
  }
  Result<View> same_type(const AnyFilter& other) const {
    const std::string_view hash = name_of(this->held_.hasher().hasher());
    const Description theirs = other.describe();
    const auto* const probe = dynamic_cast<const FlatProbe<L>*>(other.digests());
    if (probe != nullptr && theirs.hash == hash) return probe->view();
    return Error{Errc::mismatch, "the filters differ in kind: " + std::string(L::family) + " with " +
                                     std::string(hash) + ", and " + theirs.family + " with " + theirs.hash};
  }
  static Error cannot(const char* what) {
    return {Errc::unsupported, "a " + std::string(L::family) + " filter cannot " + what};
  }
};

template <class L>
class AnyStatic final : public AnyFlatBase<L, AnyOwner, StaticFilter<L, EitherHash>> {
 public:
  using AnyFlatBase<L, AnyOwner, StaticFilter<L, EitherHash>>::AnyFlatBase;

  Result<void> save(const std::string& path, const Record& record) const override {
    return perhaps::save(path, this->held_, record);
  }
};

}  // namespace perhaps
