// Building, checking and looking up the tables of perhaps/ribbon_map.h.
#include "perhaps/ribbon_map.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <deque>

#include "build/pipeline.h"
#include "build/ribbon_plan.h"
#include "build/ribbon_table.h"
#include "kernel/instruction_set.h"

namespace perhaps {
namespace {

using build::Entry;

// A run of a front, as StaticRun.
struct MapRun {
  std::uint64_t number;
  std::span<const Entry> digests;
  std::vector<Entry>* left;
};

// What the pipeline calls, in the order of detail::StaticFamily.
class MapFamily {
 public:
  MapFamily(const MapRequest& request, std::uint64_t unspread) : request_(request), unspread_(unspread) {}
  RibbonMapShape shape() const noexcept { return {fronts_.whole, request_.check_bits}; }
  bool solved() const noexcept { return solved_; }

  static std::string_view name() noexcept { return RibbonMapLayout::family; }
  Error two_values(std::uint64_t word, std::uint64_t a, std::uint64_t b) const {
    std::array<char, 32> digest{};
    std::snprintf(digest.data(), digest.size(), "%016llx", static_cast<unsigned long long>(word * unspread_));
    return {Errc::mismatch, std::string(name()) + ": the key with digest " + digest.data() + " has two values, " +
                                std::to_string(a) + " and " + std::to_string(b)};
  }

  void fix_value_bits(std::uint32_t bits) noexcept { request_.value_bits = bits; }
  unsigned fix_shape(std::uint64_t keys) {
    fronts_.begin(detail::ribbon_of(keys, request_.value_bits + request_.check_bits));
    return 0;
  }
  std::uint64_t front_bytes() const noexcept { return fronts_.whole.front_bytes(); }
  bool add_front(std::uint64_t keys) { return fronts_.add(keys); }
  unsigned run_bits() const noexcept { return fronts_.run_bits; }
  static std::uint64_t runs_together() noexcept { return RibbonLayout::kRunsTogether; }
  void build_front(std::byte* table, std::span<const MapRun> runs, StaticScratch& scratch) const {
    with_values(
        [&](auto of) { ribbon::build_front(fronts_.now, of, table + fronts_.at, fronts_.run_bits, runs, scratch); });
  }
  void skip_front() { fronts_.whole.skip_front(); }
  static void remix(std::span<Entry> entries) noexcept {
    for (Entry& entry : entries) entry.digest = RibbonLayout::remixed(entry.digest);
  }
  std::uint64_t shard_bytes(std::uint64_t keys) const noexcept { return RibbonLayout::shard_bytes(fronts_.now, keys); }
  void fix_size(std::uint64_t table_bytes) { fronts_.whole.table_bytes = table_bytes; }
  void build_shard(std::span<const Entry> entries, std::span<std::byte> out, StaticScratch& scratch) {
    with_values([&](auto of) {
      if (!ribbon::build_shard(fronts_.now, of, entries, out, scratch)) solved_ = false;
    });
  }
  // How many of the entries the table has no or another value for.
  std::uint64_t missing(const std::byte* table, std::span<const Entry> entries) const noexcept {
    constexpr std::size_t kSome = 4 * kBatch;
    const RibbonMapShape now{fronts_.now, request_.check_bits};
    std::array<std::uint64_t, kSome> words;
    std::array<std::uint64_t, kSome> values;
    std::array<std::uint64_t, kSome / kBatch> found;
    std::uint64_t missing = 0;
    for (std::size_t from = 0; from < entries.size(); from += kSome) {
      const auto some = entries.subspan(from, std::min(kSome, entries.size() - from));
      std::transform(some.begin(), some.end(), words.begin(), [](const Entry& entry) { return entry.digest; });
      RibbonMapLayout::find(now, table + fronts_.at, {.words = words.data(), .count = some.size()}, values.data(),
                            found.data());
      for (std::size_t i = 0; i < some.size(); ++i) {
        missing += (found[i / kBatch] >> i % kBatch & 1) == 0 || values[i] != some[i].value;
      }
    }
    return missing;
  }

 private:
  template <class Work>
  void with_values(Work work) const {
    const std::uint32_t mask = ribbon::low_bits(request_.check_bits);
    if (request_.value_bits + request_.check_bits <= 64) {
      work(ribbon::Values<std::uint64_t>{mask, request_.check_bits});
    } else {
      work(ribbon::Values<detail::Wide>{mask, request_.check_bits});
    }
  }

  MapRequest request_;
  std::uint64_t unspread_;
  detail::FrontByFront<RibbonShape> fronts_;
  std::atomic<bool> solved_ = true;
};

using EntryPipeline = build::Pipeline<MapFamily, Entry, MapRun>;

std::optional<Error> refusal(const MapRequest& request) {
  const auto outside = [](const char* what, std::uint32_t value) {
    return Error{Errc::bad_parameter, std::string(RibbonMapLayout::family) + ": " + std::to_string(value) + " " + what};
  };
  if (request.value_bits > RibbonMapShape::kMaxValueBits) return outside("value bits, not 1 to 64", request.value_bits);
  if (request.check_bits > RibbonMapShape::kMaxCheckBits) return outside("check bits, not 0 to 32", request.check_bits);
  return std::nullopt;
}

}  // namespace

class detail::MapPipeline::Lane {
 public:
  EntryPipeline::Lane& entries;
  std::uint64_t largest;       // value that is allowed
  std::uint64_t all_bits = 0;  // of the values, ORed
};

namespace {

class MapPipelineOf final : public detail::MapPipeline {
 public:
  MapPipelineOf(const MapRequest& request, BuildOptions options, std::uint64_t unspread)
      : request_(request), family_(request, unspread), pipeline_(std::move(options)) {
    if (auto error = refusal(request)) pipeline_.fail(*std::move(error));
  }

  Lane& add_lane() override {
    EntryPipeline::Lane& lane = pipeline_.add_lane();
    const std::lock_guard lock(lanes_mutex_);
    const std::uint32_t bits = request_.value_bits == 0 ? RibbonMapShape::kMaxValueBits : request_.value_bits;
    return lanes_.emplace_back(Lane{lane, RibbonMapLayout::largest(bits)});
  }
  void share_out(std::uint64_t count, const std::function<void(Lane&, std::uint64_t, std::uint64_t)>& work) override {
    pipeline_.share_out(
        count, [this]() -> Lane& { return add_lane(); }, work);
  }
  Result<Memory> finish(RibbonMapShape* shape) override {
    if (request_.value_bits == 0) {
      std::uint64_t all = 1;
      for (const Lane& lane : lanes_) all |= lane.all_bits;
      family_.fix_value_bits(static_cast<std::uint32_t>(std::bit_width(all)));
    }
    auto table = pipeline_.finish(family_);
    if (!table) return table;
    if (!family_.solved()) return Error{Errc::unsupported, "map: no solution for these digests; they are not spread"};
    *shape = family_.shape();
    return table;
  }
  std::optional<std::uint64_t> conflict() const noexcept override { return pipeline_.conflict(); }
  std::uint64_t spilled_bytes() const noexcept override { return pipeline_.spilled_bytes(); }

 private:
  MapRequest request_;
  MapFamily family_;
  EntryPipeline pipeline_;
  std::mutex lanes_mutex_;
  std::deque<Lane> lanes_;
};

}  // namespace

std::unique_ptr<detail::MapPipeline> detail::MapPipeline::make(const MapRequest& request, BuildOptions options,
                                                               std::uint64_t unspread) {
  return std::make_unique<MapPipelineOf>(request, std::move(options), unspread);
}

bool detail::MapPipeline::add(Lane& lane, const std::uint64_t* words, const std::uint64_t* values, std::size_t count) {
  std::array<Entry, 256> entries;
  bool stored = true;
  for (std::size_t from = 0; from < count; from += entries.size()) {
    const std::size_t some = std::min(entries.size(), count - from);
    for (std::size_t i = 0; i < some; ++i) {
      if (values[from + i] > lane.largest) {
        lane.entries.pipeline.fail({Errc::bad_parameter, "map: the value " + std::to_string(values[from + i]) +
                                                             " is above " + std::to_string(lane.largest)});
        return false;
      }
      lane.all_bits |= values[from + i];
      entries[i] = {words[from + i], values[from + i]};
    }
    stored = EntryPipeline::add(lane.entries, {entries.data(), some});
  }
  return stored;
}

Result<void> RibbonMapLayout::check(const Shape& shape, Bytes table) {
  if (!shape.valid()) return Error{Errc::bad_parameter, "map: a shape outside its range"};
  if (table.size() < shape.bytes()) {
    return Error{Errc::truncated, "map: the shape needs " + std::to_string(shape.bytes()) + " bytes, there are " +
                                      std::to_string(table.size())};
  }
  table = table.first(static_cast<std::size_t>(shape.bytes()));
  if (auto ok = ribbon::check(family, shape.ribbon, table); !ok) return ok;
  if (ribbon::DenseLookup(shape.ribbon, table.data(), 0, 0).every) {
    return Error{Errc::bad_parameter, "map: a shard without a solution"};
  }
  return {};
}

bool RibbonMapLayout::find(const Shape& shape, const std::byte* table, std::uint64_t h, std::uint64_t* value) noexcept {
  const RibbonLayout::Place place = RibbonLayout::place_from(shape.ribbon, table, 0, h);
  const std::uint32_t columns = shape.ribbon.columns;
  // Column by column: those of the check first, so that an absent key seldom costs more.
  const auto answer = [&](std::uint32_t fingerprint, auto column) {
    for (std::uint32_t j = 0; j < shape.check_bits; ++j) {
      if (column(j) != (fingerprint >> j & 1)) return false;
    }
    std::uint64_t bits = 0;
    for (std::uint32_t j = columns; j-- > shape.check_bits;) bits = 2 * bits + column(j);
    *value = bits;
    return true;
  };
  if (place.block == nullptr) {
    const ribbon::DenseLookup dense(shape.ribbon, table, 0, h);
    if (dense.dense.slots == 0) return false;
    return answer(RibbonLayout::fingerprint_of(dense.mixed),
                  [&](std::uint32_t j) -> std::uint64_t { return dense.column(shape.ribbon, j); });
  }
  const std::uint64_t low = place.equation.coefficients << place.slot;
  const std::uint64_t high = place.equation.coefficients >> 1 >> (63 - place.slot);
  // Wide blocks are several lines, of which the loop below would wait for one after the other.
  for (std::uint32_t at = 64; at < 8 * columns; at += 64) {
    detail::prefetch_read(place.block + at);
    detail::prefetch_read(place.next() + at);
  }
  return answer(place.equation.fingerprint, [=, next = place.next()](std::uint32_t j) -> std::uint64_t {
    return ribbon::parity((detail::load<std::uint64_t>(place.block + 8 * j) & low) ^
                          (detail::load<std::uint64_t>(next + 8 * j) & high));
  });
}

void RibbonMapLayout::find(const Shape& shape, const std::byte* table, const Batch<>& batch, std::uint64_t* values,
                           std::uint64_t* found) noexcept {
  kernel::active().ribbon_find(shape, table, batch, values, found);
}

}  // namespace perhaps
