// The scalable Bloom filter, for an unknown number of keys (Almeida, Baquero, Preguica, Hutchison 2007).
//
//   link 0      link 1            link 2                              a chain of plain filters, each made for
//   | c keys |  | growth c keys | | growth^2 c keys            |      `growth` times the keys of the last
//
// A key is in the chain if it is in any link, so the rates of the links add up. Link i gets a share of the requested
// rate, and the shares of all links that there can ever be add up to one: however many keys come, the rate of the chain
// stays below the requested one. A key that looks present in any link is not inserted again, and a link is full when
// `capacity` keys were inserted into it. So repeated keys take no room, and no order of keys makes a link fuller than
// its model.
//
// How the rate is shared out: link i takes 1 / (i + spread + 1) of what is left, which is
//   share(i) = spread / ((i + spread) (i + spread + 1))
// The shares decline slowly, because a link costs the logarithm of its share, and most keys are in the last two.
// Bits per key of a chain of full links (first link 1024 keys, growth 2; `one` is a filter that knew n):
//
//                                        LineBloom, 1 %                       Bloom, 1e-6
//            links (keys)        1     4    11 (2e6)  20 (1e9)         1     4    11 (2e6)  20 (1e9)
//   one                       10.0   10.1    10.1     10.1          28.8   28.8    28.8     28.8
//   halves: (1/2)^(i+1)       12.0   15.8    30.2     61.4          30.2   33.5    43.2     57.4
//   0.1 * 0.9^i               16.0   16.5    18.2     20.9          33.6   34.1    35.5     37.5
//   6 / pi^2 / (i+1)^2        11.5   17.0    23.6     28.2          29.8   34.5    39.3     42.0
//   spread 2                  13.0   16.0    20.8     24.4          31.1   33.7    37.4     39.9
//   spread 8, the default     15.5   16.9    19.2     21.7          33.3   34.3    36.3     38.1
//   spread 16                 17.0   17.8    19.4     21.2          34.7   35.2    36.5     37.7
//
// The newest link, with half of the room, is on average half full, so expect a third more than these. If n is roughly
// known, make it the capacity of the first link (Growth::first) with a small spread: at 1/32 the first link takes 97 %
// of the rate, costs what a plain filter costs, and the chain still grows if the guess was wrong.
//
// A lookup queries the links newest first; a present key is mostly found in the newest, an absent one queries them all.
// A LineBloom link costs one cache line, but below 1e-4 the classic filter takes 10 to 40 % less memory. The probes of
// a link are limited by its family (16; classic 30), and no link has a share below kLeastFpr, so chains of less than
// 1e-9 miss their rate (AnyRequest refuses them): fpr() says what it is.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/flat.h"
#include "perhaps/line_bloom.h"

namespace perhaps {

// How a chain grows.
struct Growth {
  double fpr = 0.01;           // of the whole chain, whatever its length; 0 < fpr < 1
  double factor = 2;           // the capacity of a link over that of the one before, 1 to 1024
  double spread = 8;           // see above, 2^-10 to 2^10
  std::uint64_t first = 1024;  // the capacity of the first link, 1 or more

  // The rate that link i may have.
  constexpr double share(std::uint64_t i) const noexcept {
    const double at = static_cast<double>(i) + spread;
    return fpr * spread / (at * (at + 1));
  }
  // The capacity of a link after one of `keys`: with any factor above 1 at least one key more, however few they are.
  constexpr std::uint64_t after(std::uint64_t keys) const noexcept {
    const double next = static_cast<double>(keys) * factor;
    if (next >= 0x1p62) return std::uint64_t{1} << 62;
    return std::max(static_cast<std::uint64_t>(next), factor > 1 ? keys + 1 : keys);
  }
  constexpr bool valid() const noexcept {
    return fpr > 0 && fpr < 1 && factor >= 1 && factor <= 1024 && spread >= 0x1p-10 && spread <= 0x1p10 && first >= 1;
  }
  friend bool operator==(const Growth&, const Growth&) = default;
};

// The numbers that fix a chain. `Link` is the shape of the filters in it.
template <class Link>
struct ScalableShape {
  static constexpr std::uint64_t kMaxLinks = 4096;  // more than any growth needs
  // A link, and how full it is.
  struct Entry {
    Link shape;
    std::uint64_t keys = 0;      // put in so far
    std::uint64_t capacity = 1;  // when it is full
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  Growth growth;
  std::vector<Entry> links;  // oldest first

  // 1 - prod (1 - fpr of a link), by the models of the links. 1 for a moved-from chain, which has no links.
  double fpr() const {
    if (links.empty()) return 1;
    double none = 0;
    for (const Entry& link : links) none += std::log1p(-std::min(link.shape.fpr(double(link.keys)), 1 - 0x1p-53));
    return -std::expm1(none);
  }
  std::uint64_t keys() const noexcept {
    std::uint64_t sum = 0;
    for (const Entry& link : links) sum += link.keys;
    return sum;
  }
  bool valid() const noexcept {
    return growth.valid() && !links.empty() && links.size() <= kMaxLinks &&
           std::all_of(links.begin(), links.end(),
                       [](const Entry& e) { return e.shape.valid() && e.capacity >= 1 && e.keys <= e.capacity; });
  }

  // kind of the links; fpr, factor and spread as the bits of doubles; first; number of links; then for each link its
  // own numbers, keys, capacity. The doubles only decide how large the next link will be.
  std::vector<std::uint64_t> numbers(Kind kind) const {
    const auto bits = [](double x) { return detail::bit_cast<std::uint64_t>(x); };
    std::vector<std::uint64_t> out = {static_cast<std::uint64_t>(kind),
                                      bits(growth.fpr),
                                      bits(growth.factor),
                                      bits(growth.spread),
                                      growth.first,
                                      links.size()};
    for (const Entry& link : links) {
      for (const std::uint64_t n : link.shape.numbers()) out.push_back(n);
      out.push_back(link.keys);
      out.push_back(link.capacity);
    }
    return out;
  }
  static Result<ScalableShape> from(Kind kind, std::span<const std::uint64_t> numbers) {
    const auto bad = [](std::string what) { return Error{Errc::bad_parameter, "scalable: " + std::move(what)}; };
    if (numbers.size() < 6) return bad("there must be six parameters and those of the links");
    if (numbers[0] != static_cast<std::uint64_t>(kind)) return bad("the links are of another family");
    ScalableShape out;
    const auto real = [&](std::size_t i) { return detail::bit_cast<double>(numbers[i]); };
    out.growth = {real(1), real(2), real(3), numbers[4]};
    if (!out.growth.valid()) return bad("fpr, factor, spread or first is out of range");
    const std::uint64_t count = numbers[5];
    if (count < 1 || count > kMaxLinks) return bad("there must be 1 to 4096 links");
    const std::size_t of_shape = Link().numbers().size();
    if (numbers.size() - 6 != count * (of_shape + 2)) return bad("links and parameters do not agree in number");
    for (std::span rest = numbers.subspan(6); !rest.empty(); rest = rest.subspan(of_shape + 2)) {
      auto shape = Link::from(rest.first(of_shape));
      if (!shape) return std::move(shape).error();
      const Entry entry{*shape, rest[of_shape], rest[of_shape + 1]};
      if (entry.capacity < 1 || entry.keys > entry.capacity) return bad("a link holds more keys than its capacity");
      out.links.push_back(entry);
    }
    return out;
  }
  friend bool operator==(const ScalableShape&, const ScalableShape&) = default;
};

// The queries, whoever owns the links.
template <BitLayout L, Hasher H>
class ScalableProbes {
 public:
  // Of every link.
  using layout = L;
  using hasher_type = H;
  using digest = Digest<H>;
  using Shape = ScalableShape<typename L::Shape>;
  static constexpr std::string_view family = "scalable";
  static constexpr Kind kind = Kind::scalable;  // the number in a file

  H hasher() const noexcept { return hasher_; }
  const Shape& shape() const noexcept { return shape_; }
  std::vector<std::uint64_t> numbers() const { return shape_.numbers(L::kind); }  // what a file stores
  std::uint64_t keys() const noexcept { return shape_.keys(); }
  // By the models of the links, for the keys they hold.
  double fpr() const { return shape_.fpr(); }
  std::uint64_t byte_size() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& link : links_) sum += link.byte_size();
    return sum;
  }
  // Oldest first. A file has one section for each.
  std::span<const FlatView<L, H>> links() const noexcept { return links_; }

  bool may_contain(digest d) const noexcept {
    for (std::size_t i = links_.size(); i-- > 0;) {
      if (links_[i].may_contain(d)) return true;
    }
    return moved_from();
  }
  // REQUIRES: batch.size() <= kBatch
  std::uint64_t may_contain(std::span<const digest> batch) const noexcept {
    std::uint64_t answers = 0;
    may_contain(batch, std::span(&answers, 1));
    return answers;
  }
  // REQUIRES: answers.size() * kBatch >= digests.size()
  void may_contain(std::span<const digest> digests, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= digests.size());
    for (std::size_t from = 0; from < digests.size(); from += kColumn) {
      query(digests.subspan(from, std::min(kColumn, digests.size() - from)), &answers[from / kBatch]);
    }
  }
  void prefetch(digest d) const noexcept {
    for (const auto& link : links_) link.prefetch(d);
  }
  template <Key K>
  bool may_contain(const K& key) const noexcept {
    return may_contain(digest_of(hasher(), key));
  }
  // REQUIRES: answers.size() * kBatch >= keys.size()
  template <ColumnKey K>
  void may_contain(std::span<K> keys, std::span<std::uint64_t> answers) const noexcept {
    in_columns<K>(keys, [&, out = answers.data()](std::span<const digest> column) mutable {
      query(column, out);
      out += kColumn / kBatch;
    });
  }

 protected:
  static constexpr std::size_t kColumn = 1024;

  explicit ScalableProbes(H hasher) noexcept : hasher_(hasher) {}
  ~ScalableProbes() = default;
  ScalableProbes(ScalableProbes&&) noexcept = default;
  ScalableProbes& operator=(ScalableProbes&&) noexcept = default;
  ScalableProbes(const ScalableProbes&) = default;
  ScalableProbes& operator=(const ScalableProbes&) = default;

  // A chain has no links only after it was moved from.
  bool moved_from() const noexcept { return links_.empty(); }

  // At most kColumn digests. Each link gets one batch call, with the keys that no newer link claimed, so that its
  // memory is prefetched ahead of the probes.
  void query(std::span<const digest> column, std::uint64_t* answers) const noexcept {
    const std::span words(answers, (column.size() + kBatch - 1) / kBatch);
    if (moved_from()) {
      std::fill(words.begin(), words.end(), ~std::uint64_t{0});
      if (column.size() % kBatch != 0) words.back() >>= kBatch - column.size() % kBatch;
      return;
    }
    links_.back().may_contain(column, words);
    if (links_.size() == 1) return;
    std::array<digest, kColumn> left;
    std::array<std::uint16_t, kColumn> place;
    std::array<std::uint64_t, kColumn / kBatch> more;
    std::size_t count = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
      left[count] = column[i];
      place[count] = static_cast<std::uint16_t>(i);
      count += (answers[i / 64] >> i % 64 & 1) == 0;
    }
    for (std::size_t link = links_.size() - 1; link-- > 0 && count != 0;) {
      links_[link].may_contain(std::span<const digest>(left.data(), count), more);
      std::size_t kept = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t found = more[i / 64] >> i % 64 & 1;
        answers[place[i] / 64] |= found << place[i] % 64;
        left[kept] = left[i];
        place[kept] = place[i];
        kept += found == 0;
      }
      count = kept;
    }
  }

  template <class K, class Use>
  void in_columns(std::span<const K> keys, Use use) const {
    std::array<digest, kColumn> digests;
    for (std::size_t from = 0; from < keys.size(); from += kColumn) {
      const auto column = keys.subspan(from, std::min(kColumn, keys.size() - from));
      digests_of(hasher(), column, std::span(digests));
      use(std::span<const digest>(digests.data(), column.size()));
    }
  }

  Shape shape_;
  std::vector<FlatView<L, H>> links_;
  [[no_unique_address]] H hasher_;
};

// Borrows the bytes of every link: the sections of a file.
template <BitLayout L, Hasher H>
class BasicScalableView : public ScalableProbes<L, H> {
 public:
  using typename ScalableProbes<L, H>::Shape;

  // One section for each link, oldest first. Refused unless every link can be probed in its section.
  static Result<BasicScalableView> over(std::span<const Bytes> tables, Shape shape, H hasher = H{}) {
    if (!shape.valid()) return Error{Errc::bad_parameter, "scalable: a shape outside its range"};
    if (tables.size() != shape.links.size()) {
      return Error{Errc::truncated, "scalable: " + std::to_string(shape.links.size()) + " links in " +
                                        std::to_string(tables.size()) + " sections"};
    }
    BasicScalableView out(hasher);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      auto link = FlatView<L, H>::over(tables[i], shape.links[i].shape, hasher);
      if (!link) return std::move(link).error();
      out.links_.push_back(*link);
    }
    out.shape_ = std::move(shape);
    return out;
  }

 private:
  using ScalableProbes<L, H>::ScalableProbes;
};

// `F` is a Bloom filter of ours: LineBloom, Bloom, BlockBloom or one of them under another hasher. Moved from, it
// answers *perhaps* to every key, as a Flat does, takes keys without changing, and may be assigned to.
template <class F>
class Scalable : public ScalableProbes<typename F::layout, typename F::hasher_type> {
  using L = typename F::layout;
  using H = typename F::hasher_type;
  using Base = ScalableProbes<L, H>;

 public:
  using View = BasicScalableView<L, H>;  // of this chain
  using typename Base::digest;
  using typename Base::Shape;

  // This and every insert may throw std::bad_alloc; the chain is then unchanged. So does an insert that needs a
  // 4097th link: with a factor of 1 that is after 4096 * first keys.
  explicit Scalable(const Growth& growth = {}, H hasher = H{}) : Base(hasher) {
    assert(growth.valid());
    this->shape_.growth = growth;
    grow(growth.first);
  }
  // A copy of what a view sees.
  explicit Scalable(const View& other) : Scalable(static_cast<const Base&>(other)) {}
  Scalable(const Scalable& other) : Scalable(static_cast<const Base&>(other)) {}
  Scalable(Scalable&&) noexcept = default;
  Scalable& operator=(Scalable other) noexcept {
    Base::operator=(std::move(static_cast<Base&>(other)));
    filters_ = std::move(other.filters_);
    return *this;
  }
  ~Scalable() = default;

  // As ScalableProbes'; the links of a temporary do not compile.
  std::span<const FlatView<L, H>> links() const& noexcept { return Base::links(); }
  std::span<const FlatView<L, H>> links() const&& = delete;

  // `present`: it looked present in some link, and was not inserted again.
  Inserted insert(digest d) {
    if (this->may_contain(d)) return Inserted::present;  // so also if it was moved from
    if (is_full()) grow_next();
    put(std::span(&d, 1));
    return Inserted::added;
  }
  // For callers that cannot take an exception: `full` if there is no memory for another link; the chain is unchanged.
  Inserted try_insert(digest d) noexcept {
    try {
      return insert(d);
    } catch (const std::bad_alloc&) {
      return Inserted::full;
    }
  }
  template <Key K>
  Inserted insert(const K& key) {
    return insert(digest_of(this->hasher(), key));
  }
  template <Key K>
  Inserted try_insert(const K& key) noexcept {
    return try_insert(digest_of(this->hasher(), key));
  }
  void insert(std::span<const digest> many) { insert(many, {}); }
  template <ColumnKey K>
  void insert(std::span<K> keys) {
    this->template in_columns<K>(keys, [&](std::span<const digest> column) { insert(column); });
  }
  // The same, and says which looked present before: bit i % 64 of answers[i / 64] for many[i]; of equal keys in `many`
  // all but the first did. Not quite the same as inserting one by one: a key that looks present only because of the
  // last thousand is still inserted.  REQUIRES: answers is empty, or answers.size() * kBatch >= many.size()
  void insert(std::span<const digest> many, std::span<std::uint64_t> answers) {
    assert(answers.empty() || answers.size() * kBatch >= many.size());
    std::array<std::uint64_t, Base::kColumn / kBatch> unused;
    for (std::size_t from = 0; from < many.size(); from += Base::kColumn) {
      const auto column = many.subspan(from, std::min(Base::kColumn, many.size() - from));
      insert_column(column, answers.empty() ? unused.data() : &answers[from / kBatch]);
    }
  }

  // Copies the links of `other` in front of its own: no key is lost, and the rates add up. Growth goes on as before.
  // If it throws std::bad_alloc, nothing has changed.
  Result<void> merge(const Base& other) {
    if (!(this->hasher() == other.hasher()))
      return Error{Errc::mismatch, "scalable: the filters hash with different seeds or keys"};
    if (this->links_.empty() || other.links().empty())
      return Error{Errc::mismatch, "scalable: a filter that was moved from cannot be merged"};
    if (this->links_.size() + other.links().size() > Shape::kMaxLinks)
      return Error{Errc::unsupported, "scalable: more than 4096 links"};
    Scalable copy(other);
    auto& entries = this->shape_.links;
    entries.reserve(entries.size() + copy.filters_.size());
    filters_.reserve(entries.capacity());
    this->links_.reserve(entries.capacity());
    entries.insert(entries.begin(), copy.shape_.links.begin(), copy.shape_.links.end());
    this->links_.insert(this->links_.begin(), copy.links_.begin(), copy.links_.end());
    filters_.insert(filters_.begin(), std::make_move_iterator(copy.filters_.begin()),
                    std::make_move_iterator(copy.filters_.end()));
    return {};
  }

 private:
  explicit Scalable(const Base& other) : Base(other.hasher()) {
    for (const auto& link : other.links()) {
      filters_.push_back(std::make_unique<F>(link));
      this->links_.push_back(filters_.back()->view());
    }
    this->shape_ = other.shape();
  }

  bool is_full() const noexcept { return this->shape_.links.back().keys >= this->shape_.links.back().capacity; }
  void grow_next() { grow(this->shape_.growth.after(this->shape_.links.back().capacity)); }

  void grow(std::uint64_t capacity) {
    auto& links = this->shape_.links;
    if (links.size() == Shape::kMaxLinks) throw std::bad_alloc();
    const double share = this->shape_.growth.share(links.size());
    const auto shape = L::Shape::for_keys({.keys = capacity, .fpr = share});
    auto filter = std::make_unique<F>(shape, this->hasher());
    links.reserve(links.size() + 1);
    this->links_.reserve(links.size() + 1);
    filters_.reserve(links.size() + 1);
    links.push_back({shape, 0, capacity});
    this->links_.push_back(filter->view());
    filters_.push_back(std::move(filter));
  }

  // REQUIRES: there is room for them in the newest link.
  void put(std::span<const digest> fresh) noexcept {
    filters_.back()->insert(fresh);
    this->shape_.links.back().keys += fresh.size();
  }

  // Queries all, then inserts what is new. A key that comes twice in the column is found by its digest.
  void insert_column(std::span<const digest> column, std::uint64_t* answers) {
    this->query(column, answers);
    std::array<digest, Base::kColumn> fresh;
    std::array<std::uint16_t, 2 * Base::kColumn> slots{};  // 1 + an index of fresh, or 0
    std::size_t count = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
      if ((answers[i / 64] >> i % 64 & 1) != 0) continue;
      std::size_t slot = static_cast<std::size_t>(column[i].value * 0x9e3779b97f4a7c15u >> 53);
      while (slots[slot] != 0 && !(fresh[slots[slot] - 1u] == column[i])) slot = (slot + 1) % slots.size();
      if (slots[slot] != 0) {
        answers[i / 64] |= std::uint64_t{1} << i % 64;
        continue;
      }
      fresh[count++] = column[i];
      slots[slot] = static_cast<std::uint16_t>(count);
    }
    for (std::size_t done = 0; done < count;) {
      if (is_full()) grow_next();
      const auto& newest = this->shape_.links.back();
      const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(newest.capacity - newest.keys, count - done));
      put(std::span<const digest>(fresh.data() + done, room));
      done += room;
    }
  }

  std::vector<std::unique_ptr<F>> filters_;  // oldest first; links_ looks into them
};

template <Hasher H>
using BasicScalableBloom = Scalable<BasicLineBloom<H>>;
using ScalableBloom = BasicScalableBloom<Hash>;
using ScalableBloomView = ScalableBloom::View;

}  // namespace perhaps
