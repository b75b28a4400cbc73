// Maps in files: which kinds there are, and the words that their values stand for.
#include "perhaps/any_map.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "any/map_file.h"
#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

constexpr std::uint32_t kTexts = 1;  // the type of their section

Error not_a_map(Kind kind) { return {Errc::mismatch, "holds a " + std::string(name_of(kind)) + " filter, not a map"}; }

// What both kinds of maps share.
class Stored : public AnyMap {
 public:
  Stored(const Header& header, const AnyHasher& hasher)
      : hasher_(hasher),
        table_(header.sections[0].bytes),
        kind_(header.kind),
        keys_(header.record.keys),
        texts_(*texts_in(header)) {}

  AnyHasher hasher() const noexcept override { return hasher_; }
  std::uint64_t byte_size() const noexcept override { return table_.size(); }
  std::span<const std::string_view> texts() const noexcept override { return texts_; }

 protected:
  Description described(std::uint64_t distinct, double fpr, Facts facts) const {
    Description d;
    d.format = "perhaps";
    d.family = name_of(kind_);
    d.hash = name_of(hasher_);
    d.keys = keys_;
    d.keys_estimated = static_cast<double>(distinct);
    d.bytes = table_.size();
    d.bits = d.bytes * 8;
    d.fpr = distinct == 0 ? 0 : fpr;
    d.fill = 1;
    d.more = std::move(facts);
    if (!texts_.empty()) d.more.emplace_back("texts", std::to_string(texts_.size()));
    return d;
  }

  AnyHasher hasher_;
  Bytes table_;

 private:
  Kind kind_;
  std::uint64_t keys_;
  std::vector<std::string_view> texts_;
};

class StoredRibbonMap final : public Stored {
 public:
  StoredRibbonMap(const Header& header, const AnyHasher& hasher)
      : Stored(header, hasher), shape_(*RibbonMapShape::from(header.params)) {}

  void find_digests(std::span<const std::uint64_t> digests, std::span<std::uint64_t> values,
                    std::span<std::uint64_t> found) const noexcept override {
    RibbonMapLayout::find(shape_, table_.data(),
                          {.words = digests.data(),
                           .count = digests.size(),
                           .ahead = detail::far_away(shape_.bytes()),
                           .spread = Hash::kSpread},
                          values.data(), found.data());
  }
  Description describe() const override { return described(shape_.keys(), shape_.fpr(), shape_.facts()); }

 private:
  RibbonMapShape shape_;
};

class StoredCodedMap final : public Stored {
 public:
  StoredCodedMap(const Header& header, const AnyHasher& hasher)
      : Stored(header, hasher), map_(*CodedTable::over(header.sections[0].bytes)) {}

  void find_digests(std::span<const std::uint64_t> digests, std::span<std::uint64_t> values,
                    std::span<std::uint64_t> found) const noexcept override {
    map_.find(digests, Hash::kSpread, values.data(), found.data());
  }
  Description describe() const override {
    return described(map_.keys(), std::ldexp(1.0, -static_cast<int>(map_.check_bits())), map_.facts());
  }

 private:
  CodedTable map_;
};

}  // namespace

void AnyMap::find(std::span<const Bytes> keys, std::span<std::uint64_t> values,
                  std::span<std::uint64_t> found) const noexcept {
  assert(values.size() >= keys.size() && found.size() * kBatch >= keys.size());
  constexpr std::size_t kSome = 16 * kBatch;
  std::array<std::uint64_t, kSome> digests;
  const AnyHasher by = hasher();
  for (std::size_t from = 0; from < keys.size(); from += kSome) {
    const std::size_t count = std::min(kSome, keys.size() - from);
    hash_many(by, keys.subspan(from, count), digests);
    find_digests(std::span<const std::uint64_t>(digests.data(), count), values.subspan(from),
                 found.subspan(from / kBatch));
  }
}

// Words: their number, the end of each, and then the bytes of all.
Result<std::vector<std::string_view>> texts_in(const Header& header) {
  std::vector<std::string_view> texts;
  if (header.sections.size() < 2) return texts;
  const auto damaged = [](const char* what) { return Error{Errc::bad_parameter, std::string("map: texts: ") + what}; };
  const Bytes bytes = header.sections[1].bytes;
  if (bytes.size() < 8) return damaged("shorter than their number");
  const auto count = detail::load<std::uint64_t>(bytes.data());
  if (count > bytes.size() / 8 - 1) return damaged("more than there is room for");
  const Bytes all = bytes.subspan(static_cast<std::size_t>(8 + 8 * count));
  std::uint64_t from = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto to = detail::load<std::uint64_t>(bytes.data() + 8 + 8 * i);
    if (to < from || to > all.size()) return damaged("one that ends outside");
    texts.emplace_back(reinterpret_cast<const char*>(all.data()) + from, static_cast<std::size_t>(to - from));
    from = to;
  }
  if (from != all.size()) return damaged("bytes behind the last");
  return texts;
}

Result<void> check_map(const Header& header) {
  if (header.sections.empty() || header.sections.size() > 2) {
    return Error{Errc::bad_parameter,
                 "map: one or two sections expected, not " + std::to_string(header.sections.size())};
  }
  for (std::uint32_t i = 0; i < header.sections.size(); ++i) {
    if (header.sections[i].type != i) {
      return Error{Errc::unsupported, "map: unknown section type " + std::to_string(header.sections[i].type)};
    }
  }
  const auto texts = texts_in(header);
  if (!texts) return texts.error();
  const Bytes table = header.sections[0].bytes;
  if (header.kind == Kind::coded) {
    if (!header.params.empty()) return Error{Errc::bad_parameter, "coded: it has no parameters"};
    const auto coded = CodedTable::over(table);
    return coded ? Result<void>() : coded.error();
  }
  const auto shape = RibbonMapShape::from(header.params);
  if (!shape) return shape.error();
  if (table.size() != shape->bytes()) {
    return Error{Errc::bad_parameter, "map: the shape needs " + std::to_string(shape->bytes()) +
                                          " bytes, the section has " + std::to_string(table.size())};
  }
  return RibbonMapLayout::check(*shape, table);
}

std::unique_ptr<AnyMap> map_of(const Header& header, const AnyHasher& hasher) {
  if (header.kind == Kind::coded) return std::make_unique<StoredCodedMap>(header, hasher);
  return std::make_unique<StoredRibbonMap>(header, hasher);
}

Result<std::unique_ptr<AnyMap>> map_in(const File& file) {
  if (!is_map(file.header().kind)) return not_a_map(file.header().kind);
  return map_of(file.header(), file.hasher());
}

Result<void> save_map(const std::string& path, const StoredMap& map, const AnyHasher& hasher, const Record& record,
                      std::span<const std::string> texts) {
  Header header = Header::of(hasher);
  header.kind = map.kind;
  header.params = map.numbers;
  header.record = record;
  header.sections = {{.type = 0, .bytes = map.bytes}};
  std::vector<std::byte> words;
  if (!texts.empty()) {
    words.resize(8 + 8 * texts.size());
    detail::store(words.data(), std::uint64_t{texts.size()});
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      end += texts[i].size();
      detail::store(words.data() + 8 + 8 * i, end);
    }
    for (const std::string& text : texts) {
      const Bytes bytes = bytes_of(text);
      words.insert(words.end(), bytes.begin(), bytes.end());
    }
    header.sections.push_back({.type = kTexts, .bytes = words});
  }
  return write_container(path, header);
}

}  // namespace perhaps
