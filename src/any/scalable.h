// The chain behind the run-time interface. Private: any_filter.cc and container.cc make these.
#pragma once
#include <cstdio>

#include "any/flat.h"
#include "perhaps/scalable_bloom.h"

namespace perhaps {

// The layouts that a chain's links can have.
template <class Use>
void for_each_link_layout(Use use) {
  use.template operator()<LineLayout>();
  use.template operator()<BlockLayout>();
  use.template operator()<BloomLayout<Multiplicative>>();
}

template <class L>
Header header_of(const ScalableProbes<L, EitherHash>& chain, const Record& record) {
  Header header = Header::of(chain.hasher());
  header.kind = Kind::scalable;
  header.params = chain.numbers();
  header.record = record;
  for (const auto& link : chain.links()) header.sections.push_back({.type = 0, .bytes = link.bytes()});
  return header;
}

// Of a file whose header says that it is a chain of L.
template <class L>
Result<BasicScalableView<L, EitherHash>> scalable_view(const Header& header, const EitherHash& hasher) {
  auto shape = ScalableShape<typename L::Shape>::from(L::kind, header.params);
  if (!shape) return std::move(shape).error();
  std::vector<Bytes> tables;
  for (const auto& [type, bytes] : header.sections) {
    if (type != 0) return Error{Errc::unsupported, "scalable: unknown section type " + std::to_string(type)};
    tables.push_back(bytes);
  }
  return BasicScalableView<L, EitherHash>::over(tables, *std::move(shape), hasher);
}

template <class L>
class ScalableProbe final : public DigestProbe {
 public:
  explicit ScalableProbe(const ScalableProbes<L, EitherHash>& chain) noexcept : chain_(chain) {}
  const ScalableProbes<L, EitherHash>& chain() const noexcept { return chain_; }

  AnyHasher hasher() const noexcept override { return chain_.hasher(); }
  using DigestProbe::may_contain;
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept override {
    if (digests.size() == 1) {
      answers[0] = chain_.may_contain(Digest<EitherHash>::made_by(chain_.hasher(), digests[0]));
      return;
    }
    std::uint64_t* out = answers.data();
    in_digests(chain_.hasher(), digests, [&](auto some) {
      chain_.may_contain(some, std::span(out, (some.size() + kBatch - 1) / kBatch));
      out += some.size() / kBatch;
      return true;
    });
  }
  void prefetch(std::uint64_t digest) const noexcept override {
    chain_.prefetch(Digest<EitherHash>::made_by(chain_.hasher(), digest));
  }
  // Keys that are 64-bit numbers.
  void may_contain_integers(std::span<const std::uint64_t> keys, std::span<std::uint64_t> answers) const noexcept {
    if (keys.size() == 1) {
      answers[0] = chain_.may_contain(keys[0]);
    } else {
      chain_.may_contain(keys, answers);
    }
  }

 private:
  const ScalableProbes<L, EitherHash>& chain_;
};

// `Held` is a Scalable or a view of one.
template <class L, class Base, class Held>
class AnyScalableBase : public AnyHeld<Base, Held, ScalableProbe<L>> {
 public:
  using AnyHeld<Base, Held, ScalableProbe<L>>::AnyHeld;

  // The rate is the model's: it is what was promised for any number of keys.
  Description describe() const override {
    const auto& shape = this->held_.shape();
    Description d;
    d.format = "perhaps";
    d.family = name_of(Kind::scalable);
    const EitherHash hasher = this->held_.hasher();
    d.hash = name_of(hasher.hasher());
    d.keys = this->record_.keys;
    d.keys_estimated = static_cast<double>(shape.keys());
    d.bytes = this->held_.byte_size();
    d.bits = d.bytes * 8;
    const auto& newest = shape.links.back();
    d.fill = static_cast<double>(newest.keys) / static_cast<double>(newest.capacity);
    d.fpr = shape.fpr();
    d.more.emplace_back("links", std::to_string(shape.links.size()) + ", each a " + std::string(L::family) + " filter");
    char limit[32];
    std::snprintf(limit, sizeof limit, "%.6g", shape.growth.fpr);
    d.more.emplace_back("fpr limit", limit);
    if (const Hash* const hash = hasher.unkeyed()) d.more.emplace_back("seed", std::to_string(hash->seed()));
    return d;
  }
};

template <class L>
using AnyScalableView = AnyScalableBase<L, AnyFilter, BasicScalableView<L, EitherHash>>;

template <class L>
class AnyScalable final : public AnyScalableBase<L, AnyMutable, Scalable<Flat<L, EitherHash>>> {
 public:
  using AnyScalableBase<L, AnyMutable, Scalable<Flat<L, EitherHash>>>::AnyScalableBase;

  std::size_t insert(std::span<const Bytes> keys) override { return insert_all(keys); }
  std::size_t insert_digests(std::span<const std::uint64_t> digests) override { return insert_all(digests); }
  Result<ErasedCounts> erase_digests(std::span<const std::uint64_t>) override { return cannot("forget a key"); }

  // The other chain's links, in front of its own.
  Result<void> merge(const AnyFilter& other) override {
    const auto* probe = dynamic_cast<const ScalableProbe<L>*>(other.digests());
    if (probe == nullptr) return Error{Errc::mismatch, "the filters differ in kind, or in that of their links"};
    if (auto done = this->held_.merge(probe->chain()); !done) return done;
    this->record_.keys += other.record().keys;
    this->record_.keep_common(other.record());
    return {};
  }
  Result<void> intersect(const AnyFilter&) override { return cannot("be intersected"); }
  Result<std::unique_ptr<AnyMutable>> fold() const override { return cannot("be folded"); }

  Result<void> save(const std::string& path, const Record& record) const override {
    return write_container(path, header_of(this->held_, record));
  }

 private:
  template <class T>
  std::size_t insert_all(std::span<const T> all) {
    in_digests(this->held_.hasher(), all, [&](auto some) {
      this->held_.insert(some);
      return true;
    });
    this->record_.keys += all.size();
    return all.size();
  }
  static Error cannot(const char* what) { return {Errc::unsupported, std::string("a scalable filter cannot ") + what}; }
};

}  // namespace perhaps
