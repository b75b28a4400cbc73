// Opens arbitrary bytes as our own file. They never cause a crash. If they open, every query is answered, a copy
// answers the same, and each operation of the family keeps its promise: inserted keys are found, only inserted keys are
// erased, a union holds the keys of both, and a refused operation changes nothing. Each input is tried unchanged and
// with its checksums repaired, so that the fuzzer gets past them. One that needs no repair is also written, in both
// ways that there are, and opened by its name. Seeds: test/golden/perhaps and test/corrupt/perhaps.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "perhaps/any_map.h"
#include "perhaps/detail/bits.h"
#include "perhaps/file/container.h"
#include "perhaps/file/exact_file.h"
#include "perhaps/file/range_file.h"
#include "perhaps/growing.h"
#include "perhaps/quotient.h"
#include "perhaps/window.h"

namespace {

using perhaps::Bytes;
using perhaps::detail::load;
using perhaps::detail::store;

void demand(bool truth) {
  if (!truth) std::abort();
}

perhaps::KeyedHash secret() {
  perhaps::KeyedHash::Secret key;
  for (unsigned i = 0; i < key.size(); ++i) key[i] = std::byte(i);
  return perhaps::KeyedHash(key);
}

constexpr std::size_t kKeys = 100;
using Answers = std::array<std::uint64_t, 2>;

std::vector<std::uint64_t> digests_of(const perhaps::AnyFilter& filter, std::span<const Bytes> keys) {
  std::vector<std::uint64_t> digests(keys.size());
  perhaps::hash_many(filter.digests()->hasher(), keys, digests);
  return digests;
}

Answers query(const perhaps::AnyFilter& filter, std::span<const Bytes> keys) {
  Answers answers{};
  filter.may_contain(keys, answers);
  demand(filter.may_contain(keys.first(64)) == answers[0]);
  // A range filter, or an exact set in parts: a digest does not tell its own.
  if (filter.digests() == nullptr) return answers;
  const std::vector<std::uint64_t> digests = digests_of(filter, keys);
  for (const std::uint64_t digest : digests) filter.digests()->prefetch(digest);
  Answers again{};
  filter.digests()->may_contain(digests, again);
  demand(again == answers);
  return answers;
}

bool has(const Answers& all, const Answers& some) { return (some[0] & ~all[0]) == 0 && (some[1] & ~all[1]) == 0; }

// Keys first..end-1.
Answers range(std::size_t first, std::size_t end) {
  Answers set{};
  for (std::size_t i = first; i < end; ++i) set[i / 64] |= std::uint64_t{1} << i % 64;
  return set;
}

// Probes of quotient and growing tables are bounded whatever the bytes say, but only a table that inserts could have
// made keeps the promises of a filter.
template <class Layout>
bool verifies(const perhaps::File& file) {
  const auto shape = *Layout::Shape::from(file.header().params);
  return static_cast<bool>(Layout::verify(shape, file.header().sections[0].bytes));
}
bool is_sound(const perhaps::File& file) {
  if (file.header().kind == perhaps::Kind::quotient) return verifies<perhaps::QuotientLayout>(file);
  if (file.header().kind == perhaps::Kind::growing) return verifies<perhaps::GrowingLayout>(file);
  return true;
}

// How many of the last `count` keys inserted must answer *perhaps*.
std::uint64_t remembered(const perhaps::File& file, std::size_t count) {
  if (file.header().kind != perhaps::Kind::window) return count;
  const auto shape = *perhaps::WindowShape::from(file.header().params);
  return shape.by_time != 0 ? count : std::min<std::uint64_t>(count, shape.window());
}

void change(const perhaps::File& file, const perhaps::AnyFilter& filter, const perhaps::Family& family,
            std::span<const Bytes> keys) {
  auto copy = *file.load();
  const bool sound = is_sound(file);
  const bool forgets = family.forgets;
  const bool quotient = family.kind == perhaps::Kind::quotient;
  const bool fills_up = family.fills_up || quotient;  // a quotient filter grows until no bit is left
  const Answers before = query(filter, keys);
  demand(query(*copy, keys) == before);

  const std::size_t count = copy->insert(keys);
  // A damaged table may contradict itself so that nothing fits into it.
  demand(fills_up || !sound ? count <= keys.size() : count == keys.size());
  const Answers inserted = query(*copy, keys);
  if (sound) demand(has(inserted, range(count - remembered(file, count), count)) && (forgets || has(inserted, before)));

  const auto erased = copy->erase_digests(digests_of(*copy, keys.first(count)));
  demand(family.erases ? static_cast<bool>(erased) : erased.error().code == perhaps::Errc::unsupported);
  if (erased) {
    demand(erased->removed + erased->absent + erased->kept == count);
    const Answers rest = query(*copy, keys);
    // A quotient table has its old bytes again. In a cuckoo filter, a digest may have moved from the stash into the
    // table, where it is only a fingerprint.
    if (sound) demand(erased->absent == 0 && (quotient ? rest == before : has(rest, before)));
    demand(copy->insert(keys.first(count)) <= count);
  }

  const Answers mine = query(*copy, keys);
  const auto merged = copy->merge(filter);
  const Answers both = query(*copy, keys);
  if (merged) {
    demand(family.merges);
    if (sound) demand(has(both, before) && has(both, mine));
  } else {
    demand(both == mine);
    // These may be full or have too many links; every other family can be merged with itself.
    if (family.merges) demand(family.grows);
    if (!family.merges) demand(merged.error().code == perhaps::Errc::unsupported);
  }

  if (auto half = copy->fold()) demand(has(query(**half, keys), both));
  if (copy->intersect(filter)) demand(query(*copy, keys) == before);  // the copy includes everything in `filter`
}

// Lookups of a damaged table end, one by one and in a batch alike; what it merges to has its places.
void ask_ranges(const perhaps::RangeView& filter) {
  std::vector<perhaps::Interval> ranges;
  for (unsigned shift = 0; shift < 64; ++shift) {
    const std::uint64_t low = 0x9e3779b97f4a7c15u >> shift;
    ranges.push_back({low, low});
    ranges.push_back({low, low | ((std::uint64_t{1} << shift) - 1)});
    ranges.push_back({~low, UINT64_MAX});
  }
  std::vector<std::uint64_t> answers(ranges.size() / perhaps::kBatch + 1);
  filter.may_contain_any(ranges, answers);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    demand(filter.may_contain_any(ranges[i]) == ((answers[i / perhaps::kBatch] >> i % perhaps::kBatch & 1) != 0));
  }
  if (filter.coding() == perhaps::RangeView::Coding::text) {
    (void)filter.may_contain_any(perhaps::bytes_of("10"), perhaps::bytes_of("2"));
    (void)filter.codes_from(perhaps::bytes_of("3"));
  }
  const auto merged = perhaps::RangeFilter::merged(filter, filter);
  demand(static_cast<bool>(merged));
  demand(merged->shape().keys <= filter.shape().keys);
}

// A value of a damaged map may be any: but the same alone as in a column, and 0 if there is none.
void ask_map(const perhaps::AnyMap& map, std::span<const Bytes> keys) {
  std::array<std::uint64_t, kKeys> values{};
  Answers found{};
  map.find(keys, values, found);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::uint64_t value = 1;
    std::uint64_t is_found = 0;
    map.find(keys.subspan(i, 1), {&value, 1}, {&is_found, 1});
    demand(value == values[i] && is_found == (found[i / 64] >> i % 64 & 1));
    demand(is_found != 0 || value == 0);
  }
  (void)map.describe();
  (void)map.texts();
}

// An exact set answers the same as what any() makes a filter of, key by key and in a column.
template <class Hasher>
void ask_exact(const perhaps::File& file, const perhaps::AnyFilter& filter, std::span<const Bytes> keys) {
  const auto set = perhaps::exact_in<Hasher>(file);
  if (!set) return;
  Answers column{};
  set->contains(keys, std::span(column));
  demand(column == query(filter, keys));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    demand(set->contains(keys[i]) == ((column[i / 64] >> i % 64 & 1) != 0));
  }
  demand(set->figures().layers >= 1);
}

// An input with the checksums that a writer gives it is written again, and opened by its name.
void write_again(const perhaps::File& file, const perhaps::OpenOptions& options, std::span<const Bytes> keys) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("container_fuzz-" + std::to_string(getpid()))).string();
  const Answers answers = query(*file.any(), keys);
  const auto same = [&](bool in_memory) {
    perhaps::OpenOptions by_name = options;
    by_name.in_memory = in_memory;
    const auto again = perhaps::File::open(path, by_name);
    demand(again && query(*again->any(), keys) == answers);
    std::filesystem::remove(path);
  };
  perhaps::Header header = file.header();
  demand(static_cast<bool>(perhaps::write_container(path, header)));
  same(false);
  if (header.sections.size() != 1 || header.sections[0].type != 0) return;
  const Bytes section = std::exchange(header.sections, {})[0].bytes;
  auto filled = perhaps::NewContainer::create(path, header, section.size());
  demand(static_cast<bool>(filled));
  std::ranges::copy(section, filled->section().begin());
  demand(static_cast<bool>(filled->commit(header.record)));
  same(true);
}

void open(Bytes bytes, const perhaps::OpenOptions& options, bool as_it_came) {
  auto file = perhaps::File::over(bytes, options);
  if (!file) {
    demand(!file.error().detail.empty());
    return;
  }
  std::vector<std::string> text;
  for (std::size_t i = 0; i < kKeys; ++i) text.push_back(std::to_string(i * i));
  std::vector<Bytes> keys;
  for (const std::string& key : text) keys.push_back(perhaps::bytes_of(key));

  if (as_it_came && options.verify) write_again(*file, options, keys);
  const auto filter = file->any();
  query(*filter, keys);
  const auto description = filter->describe();
  demand(description.fill >= 0 && description.fpr >= 0 && description.fpr <= 1 + 1e-9);

  if (file->header().kind == perhaps::Kind::range) ask_ranges(*perhaps::range_in(*file));
  if (const auto map = perhaps::map_in(*file)) ask_map(**map, keys);
  ask_exact<perhaps::Hash>(*file, *filter, keys);
  ask_exact<perhaps::KeyedHash>(*file, *filter, keys);
  const perhaps::Family* family = perhaps::find_family(file->header().kind);
  if (family != nullptr && family->inserts) {
    change(*file, *filter, *family, keys);
  } else {
    demand(file->load().error().code == perhaps::Errc::unsupported);
  }
}

// Repairs the input towards what a writer would have written, as far as its numbers allow. Keyed filters get the check
// value of our secret.
std::vector<std::byte> repaired(Bytes input) {
  std::vector<std::byte> file(input.begin(), input.end());
  if (file.size() < 128) return file;
  constexpr std::array<unsigned char, 8> kMagic = {0x89, 'p', 'e', 'r', 'h', 'a', 'p', 's'};
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  store<std::uint32_t>(file.data() + 8, 2);
  std::uint64_t header = load<std::uint32_t>(file.data() + 12);
  if (header < 128 || header > file.size()) {
    header = 128;
    store<std::uint32_t>(file.data() + 12, 128);
  }
  if (load<std::uint32_t>(file.data() + 20) == 2) store(file.data() + 24, secret().check_value());
  store<std::uint64_t>(file.data() + 48, file.size());
  const std::uint64_t table = 72 + 8 * std::uint64_t{load<std::uint32_t>(file.data() + 56)};
  const std::uint32_t sections = load<std::uint32_t>(file.data() + 60);
  for (std::uint64_t i = 0, at = table; i < sections && at + 32 <= header; ++i, at += 32) {
    const auto offset = load<std::uint64_t>(file.data() + at + 8);
    const auto size = load<std::uint64_t>(file.data() + at + 16);
    if (offset > file.size() || size > file.size() - offset) continue;
    const std::uint64_t padded = std::min((size + 63) / 64 * 64, file.size() - offset);
    store(file.data() + at + 24, perhaps::Hash(0)(Bytes(file).subspan(offset, padded)).value);
  }
  store<std::uint64_t>(file.data() + 64, 0);
  store(file.data() + 64, perhaps::Hash(0)(Bytes(file).first(header)).value);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that AddressSanitizer detects an access past its end.
  const auto* start = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> input(start, start + size);
  const std::vector<std::byte> valid = repaired(input);
  for (const bool as_it_came : {true, false}) {
    const Bytes bytes(as_it_came ? input : valid);
    for (const bool verify : {true, false}) {
      open(bytes, {.verify = verify, .secret = {}}, as_it_came);
      open(bytes, {.verify = verify, .secret = secret()}, as_it_came);
    }
  }
  return 0;
}
