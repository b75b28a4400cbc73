#include "perhaps/engine/packed.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <optional>
#include <type_traits>

#include "any/family.h"
#include "kernel/instruction_set.h"
#include "perhaps/any_filter.h"
#include "perhaps/engine/dense.h"

namespace perhaps {
namespace {

constexpr std::byte kGroups{DenseGroups::kTag};
constexpr std::byte kNone{127};
constexpr unsigned kKind = 66;
constexpr unsigned kMaxKind = 60;
constexpr std::byte kEvery{0};
constexpr std::size_t kMaxNumbers = 12;

// From a digest to what tables are of.
constexpr std::uint64_t spread(std::uint64_t digest) noexcept { return digest * detail::kSpread; }

void put_number(std::vector<std::byte>& out, std::uint64_t n) {
  for (; n >= 128; n >>= 7) out.push_back(static_cast<std::byte>(n | 128));
  out.push_back(static_cast<std::byte>(n));
}

// All of `bytes` as numbers.
std::optional<std::size_t> numbers_of(Bytes bytes, std::array<std::uint64_t, kMaxNumbers>& numbers) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < bytes.size(); ++count) {
    if (count == kMaxNumbers) return std::nullopt;
    std::uint64_t n = 0;
    unsigned shift = 0;
    for (bool more = true; more; shift += 7, ++i) {
      if (i == bytes.size() || shift > 63) return std::nullopt;
      const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
      n |= (byte & 127) << shift;
      more = byte >= 128;
    }
    numbers[count] = n;
  }
  return count;
}

// Distinct or not, sorted or not, as the family needs it; and whether they may be released once they are taken.
struct Words {
  std::vector<std::uint64_t>& all;
  bool last_use;
};

// Calls use(digests) for runs of them: a copy of all would double the memory.
template <class Use>
void in_digests(std::span<const std::uint64_t> words, Use use) {
  std::array<Digest<Hash>, 512> made;
  for (std::size_t from = 0; from < words.size(); from += made.size()) {
    const std::size_t count = std::min(made.size(), words.size() - from);
    for (std::size_t i = 0; i < count; ++i)
      made[i] = Digest<Hash>::made_by(Hash(), words[from + i] * detail::unspread_of<Hash>());
    use(std::span<const Digest<Hash>>(made.data(), count));
  }
}

// The table of a family and the numbers of its shape. False: it could not be built.
template <class L>
bool build_table(const Words& words, const Request& request, std::vector<std::byte>& out,
                 std::vector<std::uint64_t>& numbers) {
  const auto keep = [&](const auto& filter) {
    const Bytes table = filter.bytes();
    out.assign(table.begin(), table.end());
    numbers = filter.shape().numbers();
    return true;
  };
  if constexpr (StaticLayout<L>) {
    // It counts the distinct ones itself.
    StaticBuilder<L, Hash> builder({.bits_per_key = request.bits_per_key});
    auto lane = builder.lane();
    in_digests(words.all, [&](auto some) { lane.insert(some); });
    if (words.last_use) std::vector<std::uint64_t>().swap(words.all);
    const auto filter = builder.finish();
    return filter && keep(*filter);
  } else {
    Request roomy = request;
    for (int tries = 0; tries < 8; ++tries, roomy.bits_per_key *= 1.1) {
      Flat<L, Hash> filter(roomy);
      std::size_t inserted = 0;
      in_digests(words.all, [&](auto some) {
        if constexpr (FillingLayout<L>) {
          inserted += filter.insert(some);
        } else {
          filter.insert(some);
          inserted += some.size();
        }
      });
      if (inserted == words.all.size()) return keep(filter);
    }
    return false;
  }
}

std::vector<std::byte> pack_as(Kind kind, const Words& words, const Request& request) {
  std::vector<std::byte> out;
  std::vector<std::uint64_t> numbers;
  std::byte tag = kEvery;
  for_layout(kind, [&]<class L>() {
    static_assert(static_cast<unsigned>(L::kind) <= kMaxKind);
    if (build_table<L>(words, request, out, numbers))
      tag = static_cast<std::byte>(kKind + static_cast<unsigned>(L::kind));
  });
  if (tag == kEvery) return {kEvery};
  const std::size_t table = out.size();
  for (const std::uint64_t n : numbers) put_number(out, n);
  out.push_back(static_cast<std::byte>(out.size() - table));
  out.push_back(tag);
  return out;
}

void make_distinct(std::vector<std::uint64_t>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

// Whether no two of a few words are equal: by a table of their places, which is several times faster than sorting.
// False as well if that takes long, as it does for words that were chosen for it.
bool are_distinct(std::span<const std::uint64_t> words) {
  constexpr std::uint16_t kFree = UINT16_MAX;
  const std::size_t slots = std::bit_ceil(2 * words.size());
  std::array<std::uint16_t, 2 * std::bit_ceil(DenseGroups::kMaxGroups * DenseGroups::kMean)> places;
  std::fill_n(places.begin(), slots, kFree);
  std::size_t steps = 8 * words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::size_t slot = words[i] & (slots - 1);
    for (; places[slot] != kFree; slot = (slot + 1) & (slots - 1)) {
      if (words[places[slot]] == words[i] || steps-- == 0) return false;
    }
    places[slot] = static_cast<std::uint16_t>(i);
  }
  return true;
}

std::vector<std::byte> pack_dense(std::vector<std::uint64_t>& words, double bits_per_key) {
  // So many cannot be in groups, and a ribbon sorts for itself.
  if (words.size() <= DenseGroups::kMaxGroups * DenseGroups::kMean) {
    if (!are_distinct(words)) make_distinct(words);
    const double wanted = bits_per_key * static_cast<double>(words.size()) / 8;
    const auto bytes = static_cast<std::size_t>(std::max(wanted + 0.5, 3.0));
    std::vector<std::byte> out;
    if (words.size() <= Dense::kMaxKeys) {
      out.resize(std::min<std::size_t>(bytes, 4 * words.size() + Dense::kHeadBytes));
      Dense::build(words, out);
      return out;
    }
    if (DenseGroups::build(words, bytes, out)) return out;
  }
  return pack_as(Kind::ribbon, {words, true}, {.bits_per_key = bits_per_key});
}

}  // namespace

bool can_pack(Kind kind) noexcept {
  const Family* const family = find_family(kind);
  return kind == Kind::dense || (family != nullptr && family->packs);
}

bool can_pack_few(Kind kind) noexcept {
  const Family* const family = find_family(kind);
  return kind == Kind::dense ||
         (family != nullptr && family->packs && family->sets_bits && !family->erases && !family->forgets);
}

std::vector<std::byte> pack(Kind kind, std::vector<std::uint64_t> digests, double bits_per_key) {
  assert(can_pack(kind) && bits_per_key > 0);
  std::vector<std::uint64_t> words = std::move(digests);
  if (words.empty()) return {kNone};
  for (std::uint64_t& word : words) word = spread(word);
  // Versions of a key follow each other.
  words.erase(std::unique(words.begin(), words.end()), words.end());
  const Family* const family = find_family(kind);
  const bool is_static = family != nullptr && !family->inserts;
  if (kind != Kind::dense) {
    // Bits do not care for order or copies, and a static family sorts for itself.
    if (!is_static && !can_pack_few(kind)) make_distinct(words);
    auto packed = pack_as(kind, {words, false}, {.keys = words.size(), .bits_per_key = bits_per_key});
    if (packed.back() != kEvery) return packed;
  }
  return pack_dense(words, bits_per_key);
}

// How each form of packed bytes is queried.
struct PackedView::Forms {
  // For small filters, and for bytes that hold none.
  static void prefetch_begin(const PackedView& self, std::uint64_t) noexcept {
    for (std::size_t at = 0; at < std::min<std::size_t>(self.bytes_.size(), 256); at += kLineBytes) {
      detail::prefetch_read(self.bytes_.data() + at);
    }
  }
  template <bool (*one)(const PackedView&, std::uint64_t) noexcept>
  static void each(const PackedView& self, std::span<const std::uint64_t> digests,
                   std::span<std::uint64_t> answers) noexcept {
    prefetch_begin(self, 0);
    for (std::size_t i = 0; i < digests.size(); ++i) {
      if (i % 64 == 0) answers[i / 64] = 0;
      answers[i / 64] |= std::uint64_t{one(self, digests[i])} << i % 64;
    }
  }
  template <kernel::DenseQuery kernel::InstructionSet::*query>
  static void in_kernel(const PackedView& self, std::span<const std::uint64_t> digests,
                        std::span<std::uint64_t> answers) noexcept {
    prefetch_begin(self, 0);
    (kernel::active().*query).many(self.bytes_, digests, answers.data());
  }
  static bool every(const PackedView&, std::uint64_t) noexcept { return true; }
  static bool none(const PackedView&, std::uint64_t) noexcept { return false; }
  static bool dense(const PackedView& self, std::uint64_t digest) noexcept {
    return kernel::active().dense_query.one(self.bytes_, spread(digest));
  }
  static bool groups(const PackedView& self, std::uint64_t digest) noexcept {
    return kernel::active().dense_groups_query.one(self.bytes_, spread(digest));
  }
  static void describe_every(const PackedView&, Description& d) {
    d.family = "every";
    d.fpr = 1;
  }
  static void describe_none(const PackedView&, Description& d) { d.family = "none"; }
  static void describe_dense(const PackedView& self, Description& d) {
    const std::size_t slots = std::to_integer<std::size_t>(self.bytes_.back()) - Dense::kTag;
    const auto shape = Dense::Shape::of(slots, self.bytes_.size());
    d.family = name_of(Kind::dense);
    d.keys = slots;
    d.probes = shape.columns + (shape.extra != 0 ? 1 : 0);
    d.fill = 1;
    d.fpr = shape.fpr();
  }
  static void describe_groups(const PackedView& self, Description& d) {
    const auto summary = DenseGroups::summary(self.bytes_);
    d.family = name_of(Kind::dense);
    d.keys = summary.keys;
    d.fill = 1;
    d.fpr = summary.fpr;
  }
  template <bool (*one)(const PackedView&, std::uint64_t) noexcept, void (*describe)(const PackedView&, Description&)>
  static constexpr Form kSmall = {one, each<one>, prefetch_begin, describe};
  static constexpr Form kEveryForm = kSmall<every, describe_every>;
  static constexpr Form kNoneForm = kSmall<none, describe_none>;
  static constexpr Form kDenseForm = {dense, in_kernel<&kernel::InstructionSet::dense_query>, prefetch_begin,
                                      describe_dense};
  static constexpr Form kGroupsForm = {groups, in_kernel<&kernel::InstructionSet::dense_groups_query>, prefetch_begin,
                                       describe_groups};

  template <class L>
  static typename L::Shape shape_of(const PackedView& self) noexcept {
    static_assert(std::is_trivially_copyable_v<typename L::Shape> && sizeof(typename L::Shape) <= sizeof shape_);
    typename L::Shape shape;
    std::memcpy(static_cast<void*>(&shape), self.shape_.data(), sizeof shape);
    return shape;
  }
  template <class L>
  static bool one(const PackedView& self, std::uint64_t digest) noexcept {
    return L::template may_contain<detail::isa::Here>(shape_of<L>(self), self.bytes_.data(), spread(digest));
  }
  template <class L>
  static void many(const PackedView& self, std::span<const std::uint64_t> digests,
                   std::span<std::uint64_t> answers) noexcept {
    // Even a small filter is likely not in the cache: it is one of thousands.
    detail::query_batch<L>(shape_of<L>(self), self.bytes_.data(),
                           {.words = digests.data(), .count = digests.size(), .ahead = true, .spread = detail::kSpread},
                           answers.data());
  }
  template <class L>
  static void prefetch(const PackedView& self, std::uint64_t digest) noexcept {
    L::prefetch(shape_of<L>(self), self.bytes_.data(), spread(digest));
  }
  template <class L>
  static void describe(const PackedView& self, Description& d) {
    const auto shape = shape_of<L>(self);
    // A static filter has one rate, however many keys it has; how many is not written down.
    const Condition now = condition_now<L>(shape, self.bytes_, {.capacity = 1});
    d.family = L::family;
    d.keys_estimated = StaticLayout<L> ? 0 : now.keys;
    d.bits = bits_of(shape);
    d.probes = probes_of(shape);
    d.fill = now.fill;
    d.fpr = now.fpr;
    d.more = shape.facts();
  }
  template <class L>
  static constexpr Form kFamily = {one<L>, many<L>, prefetch<L>, describe<L>};
};

PackedView PackedView::over(Bytes packed) noexcept {
  const std::byte tag = packed.empty() ? kEvery : packed.back();
  if (packed.size() >= Dense::kHeadBytes && Dense::ends_in(tag)) return {packed, Forms::kDenseForm};
  const PackedView every(packed, Forms::kEveryForm);
  if (tag == kNone) return {packed, Forms::kNoneForm};
  if (tag == kGroups) {
    return DenseGroups::valid(packed) ? PackedView(packed, Forms::kGroupsForm) : every;
  }
  if (packed.size() < 2) return every;
  const auto size = std::to_integer<std::size_t>(packed[packed.size() - 2]);
  const unsigned kind = std::to_integer<unsigned>(tag) - kKind;  // of smaller tags: no kind either
  if (kind > kMaxKind || size > packed.size() - 2) return every;
  std::array<std::uint64_t, kMaxNumbers> numbers;
  const Bytes table = packed.first(packed.size() - 2 - size);
  const auto count = numbers_of(packed.subspan(table.size(), size), numbers);
  if (!count) return every;
  PackedView found = every;
  // What is wrong with damaged bytes is put into words, which takes memory; if there is none, they are damaged as well.
  try {
    for_layout(Kind{kind}, [&]<class L>() {
      const auto shape = L::Shape::from(std::span<const std::uint64_t>(numbers.data(), *count));
      if (!shape || shape->bytes() != table.size()) return;
      if (!FlatView<L, Hash>::over(table, *shape)) return;
      found = PackedView(table, Forms::kFamily<L>);
      std::memcpy(found.shape_.data(), static_cast<const void*>(&*shape), sizeof *shape);
    });
  } catch (const std::bad_alloc&) {
    return every;
  }
  return found;
}

bool packed_may_contain(Bytes packed, std::uint64_t digest) noexcept {
  // No view for the most frequent forms.
  if (packed.size() >= Dense::kHeadBytes && Dense::ends_in(packed.back()))
    return kernel::active().dense_query.one(packed, spread(digest));
  if (!packed.empty() && packed.back() == kGroups)
    return kernel::active().dense_groups_query.one(packed, spread(digest));
  return PackedView::over(packed).may_contain(digest);
}

bool PackedView::usable() const noexcept { return form_ != &Forms::kEveryForm; }

Description PackedView::describe() const {
  Description d;
  d.hash = name_of(AnyHasher(Hash()));
  d.bytes = bytes_.size();
  d.bits = 8 * d.bytes;
  form_->describe(*this, d);
  return d;
}

}  // namespace perhaps
