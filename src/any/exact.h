// An exact set behind the run-time interface. It never denies a member, so it is a filter as well: one that answers
// *perhaps* to no other key of its universe.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "any/either_hash.h"
#include "any/flat.h"
#include "perhaps/exact.h"

namespace perhaps {

using AnyExactView = BasicExactView<EitherHash>;

// Of a file whose header says that it is one.
inline Result<AnyExactView> exact_view(const Header& header, const EitherHash& hasher) {
  std::vector<Bytes> sections;
  for (const auto& [type, bytes] : header.sections) {
    if (type != 0) return Error{Errc::unsupported, "exact: unknown section type " + std::to_string(type)};
    sections.push_back(bytes);
  }
  return AnyExactView::over(header.params, sections, hasher);
}

inline Header header_of(const AnyExactView& set, const Record& record) {
  Header header = Header::of(set.hasher());
  header.kind = Kind::exact;
  header.params = set.numbers();
  header.record = record;
  for (const Bytes section : set.sections()) header.sections.push_back({.type = 0, .bytes = section});
  return header;
}

// For a set without parts: of a digest alone the part is not known.
class ExactProbe final : public DigestProbe {
 public:
  explicit ExactProbe(const AnyExactView& set) noexcept : set_(set) {}
  const AnyExactView& set() const noexcept { return set_; }

  AnyHasher hasher() const noexcept override { return set_.hasher(); }
  using DigestProbe::may_contain;
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept override {
    std::uint64_t* out = answers.data();
    in_digests(set_.hasher(), digests, [&](auto some) {
      set_.contains(some, std::span(out, (some.size() + kBatch - 1) / kBatch));
      out += some.size() / kBatch;
      return true;
    });
  }
  void prefetch(std::uint64_t digest) const noexcept override {
    set_.prefetch(Digest<EitherHash>::made_by(set_.hasher(), digest));
  }
  // Keys that are 64-bit numbers.
  void may_contain_integers(std::span<const std::uint64_t> keys, std::span<std::uint64_t> answers) const noexcept {
    set_.contains(keys, answers);
  }

 private:
  const AnyExactView& set_;
};

class AnyExact final : public AnyFilter {
 public:
  AnyExact(AnyExactView set, Record record) : set_(std::move(set)), record_(std::move(record)), probe_(set_) {}
  AnyExact(const AnyExact&) = delete;  // probe_ refers to set_
  AnyExact& operator=(const AnyExact&) = delete;

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::uint64_t answers = 0;
    set_.contains(keys, std::span(&answers, 1));
    return answers;
  }
  void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept override {
    set_.contains(keys, answers);
  }
  std::uint64_t byte_size() const noexcept override { return set_.byte_size(); }
  const Record& record() const noexcept override { return record_; }
  const DigestProbe* digests() const noexcept override { return set_.parts() ? nullptr : &probe_; }

  Description describe() const override {
    const ExactFigures figures = set_.figures();
    Description d;
    d.format = "perhaps";
    d.family = name_of(Kind::exact);
    const EitherHash hasher = set_.hasher();
    d.hash = name_of(hasher.hasher());
    d.keys = record_.keys;
    if (record_.capacity != 0) d.capacity = record_.capacity;
    d.keys_estimated = static_cast<double>(record_.keys);
    d.bytes = figures.bytes;
    d.bits = d.bytes * 8;
    d.fill = 1;
    d.more = figures.more;
    if (const Hash* const hash = hasher.unkeyed()) d.more.emplace_back("seed", std::to_string(hash->seed()));
    return d;
  }

 private:
  AnyExactView set_;
  Record record_;
  ExactProbe probe_;
};

}  // namespace perhaps
