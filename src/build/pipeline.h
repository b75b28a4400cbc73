// From digests in any order to a table of shards (static.h has the plan), or from the entries of a map. Nothing here
// knows a family.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "build/entry.h"
#include "build/lane.h"
#include "build/sort.h"
#include "build/spill_file.h"
#include "perhaps/detail/threads.h"
#include "perhaps/static.h"

namespace perhaps::build {

// Digests that a thread takes at once.
constexpr std::uint64_t kPiece = 65536;
// Digests that a lane keeps loose. They are sorted by one thread, so several threads deal them out earlier.
constexpr std::size_t kMaxLoose = std::size_t{1} << 20;
constexpr std::size_t kMaxLooseOfSeveral = std::size_t{1} << 19;
constexpr std::uint64_t kReportEvery = std::uint64_t{1} << 20;  // digests between two calls of `progress`

// Records that a thread uses again and again, without their being zeroed each time.
template <class Record>
class Room {
 public:
  std::span<Record> take(std::uint64_t count) {
    if (memory_.size() < count * sizeof(Record)) {
      memory_ = Memory();
      memory_ = Memory(count * sizeof(Record) + count * sizeof(Record) / 16);
    }
    return {reinterpret_cast<Record*>(memory_.data()), static_cast<std::size_t>(count)};
  }

 private:
  Memory memory_;
};

// A bucket once it is sorted: where it is, and how many distinct digests it has.
struct SortedBucket {
  std::uint64_t keys = 0;
  std::uint64_t at = 0;  // in the file, if there is one
};

// `Record` is a digest or an Entry; `Family` has the functions of detail::StaticFamily with spans of them, and `Run` is
// what its build_front takes.
template <class Family, class Record, class Run>
struct Pipeline {
  // The way in for one thread.
  class Lane {
   public:
    Lane(Pipeline& of, std::uint64_t memory, std::size_t max_loose) : pipeline(of), digests(memory, max_loose) {}
    Pipeline& pipeline;
    BucketLane<Record> digests;
    std::uint64_t unreported = 0;
  };

  explicit Pipeline(BuildOptions with) : options(std::move(with)), file(options.spill_folder) {
    options.threads = std::max(options.threads, 1u);
  }

  // From any thread; the lane lives as long as the pipeline and serves one thread.
  Lane& add_lane();
  // False once the digests cannot be stored; finish() says why.
  static bool add(Lane& lane, std::span<const Record> digests);
  // Calls work(from, size) from the options' threads until 0..count is taken; each has a lane from make_lane().
  template <class MakeLane, class Work>
  void share_out(std::uint64_t count, MakeLane make_lane, Work work);
  // The table. Once.
  Result<Memory> finish(Family& family);
  // How many bytes went to the temporary file so far.
  std::uint64_t spilled_bytes() const noexcept { return file.bytes(); }
  // The smallest digest that has two values, known after finish() has failed.
  std::optional<std::uint64_t> conflict() const noexcept { return conflicting; }

  BuildOptions options;
  std::mutex lanes_mutex;
  std::vector<std::unique_ptr<Lane>> lanes;
  SpillFile file;

  // The first error stops everybody.
  std::mutex error_mutex;
  std::atomic<bool> failed = false;
  std::atomic<bool> no_memory = false;  // failed, and finish() throws std::bad_alloc
  std::optional<Error> error;
  void fail(Error with) {
    const std::lock_guard lock(error_mutex);
    if (!error) error = std::move(with);
    failed = true;
  }

  std::mutex progress_mutex;
  BuildProgress progress{BuildPhase::collecting, 0, 0};
  std::uint64_t reported = 0;
  void begin(BuildPhase phase, std::uint64_t total) {
    progress = {phase, 0, total};
    reported = 0;
  }
  void advance(std::uint64_t digests) {
    if (!options.progress) return;
    const std::lock_guard lock(progress_mutex);
    progress.done += digests;
    if (progress.done - reported < kReportEvery && progress.done != progress.total) return;
    reported = progress.done;
    options.progress(progress);
  }

  // After the digests were collected, sorted and made distinct: in one piece if they are few, or else in buckets.
  Records<Record> loose;
  std::vector<SortedBucket> buckets;
  std::vector<std::uint32_t> cell_keys;  // how many have the same kMaxShardBits top bits
  bool is_small() const noexcept { return buckets.empty(); }

  std::uint64_t collected() const {
    std::uint64_t sum = 0;
    for (const auto& lane : lanes) sum += lane->digests.count();
    return sum;
  }
  void sort();
  // The two values of the smallest digest that has more than one.
  std::mutex conflict_mutex;
  std::optional<std::uint64_t> conflicting;
  std::uint64_t values[2] = {};
  void find_conflict(std::span<const Record> distinct);
  void sort_loose();
  void sort_buckets();
  std::span<const Record> sorted(std::uint64_t from, std::uint64_t to, std::uint64_t keys, Room<Record>& room);
  std::vector<std::uint64_t> first_keys(unsigned shard_bits) const;
  template <class Work>
  void for_shards(unsigned shard_bits, const std::vector<std::uint64_t>& first_key, std::uint64_t together, Work work);
  void verify(const Family& family, const std::byte* table, std::uint64_t shard, std::span<const Record> digests,
              std::uint64_t expected);
  std::atomic<std::uint64_t> held = 0;  // keys that were verified to be in what stays
  void build_front(Family& family, std::uint64_t keys, Memory& table);
  Memory build(Family& family);
};

template <class Family, class Record, class Run>
auto Pipeline<Family, Record, Run>::add_lane() -> Lane& {
  const std::lock_guard lock(lanes_mutex);
  const std::uint64_t memory = options.memory == 0 ? 0 : options.memory / options.threads + 1;
  lanes.push_back(std::make_unique<Lane>(*this, memory, options.threads == 1 ? kMaxLoose : kMaxLooseOfSeveral));
  return *lanes.back();
}

template <class Family, class Record, class Run>
bool Pipeline<Family, Record, Run>::add(Lane& lane, std::span<const Record> digests) {
  Pipeline& p = lane.pipeline;
  if (p.failed.load(std::memory_order_relaxed)) return false;
  try {
    if (auto done = lane.digests.add(digests, p.file); !done) {
      p.fail(std::move(done).error());
      return false;
    }
  } catch (const std::bad_alloc&) {
    // The lane may have lost digests of earlier calls, too. A caller that goes on regardless must not get a filter.
    p.no_memory = true;
    p.failed = true;
    throw;
  }
  lane.unreported += digests.size();
  if (lane.unreported >= kPiece) p.advance(std::exchange(lane.unreported, 0));
  return true;
}

template <class Family, class Record, class Run>
template <class MakeLane, class Work>
void Pipeline<Family, Record, Run>::share_out(std::uint64_t count, MakeLane make_lane, Work work) {
  const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(options.threads, count / kPiece + 1));
  std::atomic<std::uint64_t> next = 0;
  detail::in_threads(threads, [&] {
    auto& lane = make_lane();
    for (std::uint64_t from; (from = next.fetch_add(kPiece)) < count;) {
      work(lane, from, std::min(kPiece, count - from));
    }
  });
}

// Sorted and distinct entries: a digest that is there twice has two values.
template <class Family, class Record, class Run>
void Pipeline<Family, Record, Run>::find_conflict([[maybe_unused]] std::span<const Record> distinct) {
  if constexpr (std::same_as<Record, Entry>) {
    const auto at = std::adjacent_find(distinct.begin(), distinct.end(),
                                       [](const Entry& a, const Entry& b) { return a.digest == b.digest; });
    if (at == distinct.end()) return;
    const std::lock_guard lock(conflict_mutex);
    if (conflicting && *conflicting < at->digest) return;
    conflicting = at->digest;
    values[0] = at->value;
    values[1] = (at + 1)->value;
  }
}

template <class Family, class Record, class Run>
void Pipeline<Family, Record, Run>::sort() {
  begin(BuildPhase::sorting, collected());
  const bool small = std::all_of(lanes.begin(), lanes.end(), [](const auto& lane) { return lane->digests.is_loose(); });
  small ? sort_loose() : sort_buckets();
}

template <class Family, class Record, class Run>
void Pipeline<Family, Record, Run>::sort_loose() {
  const auto count = static_cast<std::size_t>(collected());
  Records<Record> all;
  for (const auto& lane : lanes) {
    Records<Record> own = lane->digests.take_loose();
    if (own.size() == count) {  // usually the only lane: no second copy
      all.swap(own);
      break;
    }
    all.reserve(count);
    all.insert(all.end(), own.begin(), own.end());
  }
  const std::uint64_t given = all.size();
  loose.resize(all.size());
  const auto distinct = sort_distinct(std::span(all), std::span(loose), 0);
  find_conflict(distinct);
  if (distinct.data() == all.data()) loose.swap(all);
  loose.resize(distinct.size());
  advance(given);
}

template <class Family, class Record, class Run>
void Pipeline<Family, Record, Run>::sort_buckets() {
  for (const auto& lane : lanes) {
    if (auto done = lane->digests.deal_loose(file); !done) return fail(std::move(done).error());
  }
  buckets.resize(kBuckets);
  cell_keys.assign(std::size_t{1} << kMaxShardBits, 0);
  const bool spilled = file.bytes() != 0;
  std::atomic<std::size_t> next = 0;
  detail::in_threads(options.threads, [&] {
    Room<Record> first;
    Room<Record> second;
    for (std::size_t b; (b = next.fetch_add(1)) < buckets.size() && !failed;) {
      std::uint64_t given = 0;
      for (const auto& lane : lanes) given += lane->digests.bucket_size(b);
      const auto all = first.take(given);
      Record* end = all.data();
      for (const auto& lane : lanes) {
        auto read = lane->digests.read(b, file, end);
        if (!read) return fail(std::move(read).error());
        end = *read;
      }
      const auto distinct = sort_distinct(all, second.take(given), kBucketBits);
      find_conflict(distinct);
      for (const Record& r : distinct) ++cell_keys[detail::shard_of(kMaxShardBits, digest_of(r))];
      buckets[b].keys = distinct.size();
      if (spilled) {
        buckets[b].at = file.extend(distinct.size() * sizeof(Record) / 8);
        if (auto done = file.write(buckets[b].at, std::span<const Record>(distinct)); !done)
          return fail(std::move(done).error());
      } else {
        std::span<const Record> left = distinct;
        for (const auto& lane : lanes) left = lane->digests.write_sorted(b, left);
      }
      advance(given);
    }
  });
  if (spilled) {
    for (const auto& lane : lanes) lane->digests.drop();
  }
}

// The digests of the buckets [from, to), which are `keys`; empty after a failure.
template <class Family, class Record, class Run>
std::span<const Record> Pipeline<Family, Record, Run>::sorted(std::uint64_t from, std::uint64_t to, std::uint64_t keys,
                                                              Room<Record>& room) {
  const auto all = room.take(keys);
  Record* end = all.data();
  for (std::uint64_t b = from; b < to; ++b) {
    std::uint64_t left = buckets[b].keys;
    if (file.bytes() != 0) {
      if (auto done = file.read(buckets[b].at, std::span(end, static_cast<std::size_t>(left))); !done) {
        fail(std::move(done).error());
        return {};
      }
      end += left;
    } else {
      for (const auto& lane : lanes) end = lane->digests.read_sorted(b, left, end);
    }
  }
  return all;
}

// first[s]: keys before shard s.
template <class Family, class Record, class Run>
std::vector<std::uint64_t> Pipeline<Family, Record, Run>::first_keys(unsigned shard_bits) const {
  std::vector<std::uint64_t> first((std::size_t{1} << shard_bits) + 1, 0);
  if (is_small()) {
    for (const Record& r : loose) ++first[detail::shard_of(shard_bits, digest_of(r)) + 1];
  } else {
    for (std::uint64_t cell = 0; cell < cell_keys.size(); ++cell) {
      first[(cell >> (kMaxShardBits - shard_bits)) + 1] += cell_keys[cell];
    }
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

// Calls work(first shard, digests of each of up to `together` shards, scratch) in the options' threads.
template <class Family, class Record, class Run>
template <class Work>
void Pipeline<Family, Record, Run>::for_shards(unsigned shard_bits, const std::vector<std::uint64_t>& first_key,
                                               std::uint64_t together, Work work) {
  // A unit is a bucket, or as many shards as go together, whichever is larger: all are runs of ascending digests. A
  // small set lies there as a whole.
  while (together > 1 && (first_key.size() - 1) / together < options.threads) together /= 2;
  unsigned unit_bits = shard_bits - std::min(shard_bits, static_cast<unsigned>(std::countr_zero(together)));
  if (!is_small()) unit_bits = std::min(unit_bits, kBucketBits);
  const std::uint64_t units = std::uint64_t{1} << unit_bits;
  std::atomic<std::uint64_t> next = 0;
  detail::in_threads(static_cast<unsigned>(std::min<std::uint64_t>(options.threads, units)), [&] {
    Room<Record> room;
    StaticScratch scratch;
    std::vector<std::span<const Record>> group;
    for (std::uint64_t unit; (unit = next.fetch_add(1)) < units && !failed;) {
      const std::uint64_t begin_shard = unit << (shard_bits - unit_bits);
      const std::uint64_t end_shard = (unit + 1) << (shard_bits - unit_bits);
      const std::uint64_t begin_key = first_key[begin_shard];
      std::span<const Record> digests;
      if (is_small()) {
        digests = std::span(loose).subspan(begin_key, first_key[end_shard] - begin_key);
      } else {
        const unsigned each = kBucketBits - unit_bits;
        digests = sorted(unit << each, (unit + 1) << each, first_key[end_shard] - begin_key, room);
        if (failed) return;
      }
      for (std::uint64_t from = begin_shard; from < end_shard && !failed; from += group.size()) {
        group.clear();
        for (std::uint64_t s = from; s < std::min(from + together, end_shard); ++s) {
          group.push_back(digests.subspan(first_key[s] - begin_key, first_key[s + 1] - first_key[s]));
        }
        work(from, std::span<const std::span<const Record>>(group), scratch);
      }
    }
  });
}

// An error unless `table` denies exactly `expected` of the digests of a shard.
template <class Family, class Record, class Run>
void Pipeline<Family, Record, Run>::verify(const Family& family, const std::byte* table, std::uint64_t shard,
                                           std::span<const Record> digests, std::uint64_t expected) {
  if (!options.verify) return;
  const std::uint64_t missing = family.missing(table, digests);
  held += digests.size() - missing;
  if (missing == expected) return;
  fail({Errc::bad_checksum, std::string(family.name()) + ": " + std::to_string(missing - expected) + " of the " +
                                std::to_string(digests.size()) + " keys of shard " + std::to_string(shard) +
                                " are not in the filter just built; the memory or the program is at fault"});
}

// The next front, in a table that has those before it. After it `loose` has what is left.
template <class Family, class Record, class Run>
void Pipeline<Family, Record, Run>::build_front(Family& family, std::uint64_t keys, Memory& table) {
  const std::uint64_t bytes = family.front_bytes();
  const unsigned run_bits = family.run_bits();
  // With room for the next ones and the shards, as a rule.
  if (bytes > table.size()) table.resize(bytes + bytes / 16);
  const auto first_key = first_keys(run_bits);
  const std::uint64_t held_before = held;
  std::vector<std::vector<Record>> left(std::size_t{1} << run_bits);
  using Group = std::span<const std::span<const Record>>;
  for_shards(run_bits, first_key, family.runs_together(), [&](std::uint64_t from, Group group, StaticScratch& scratch) {
    std::vector<Run> runs;
    for (const auto digests : group) {
      runs.push_back({from + runs.size(), digests, &left[from + runs.size()]});
    }
    family.build_front(table.data(), runs, scratch);
    for (const Run& run : runs) {
      verify(family, table.data(), run.number, run.digests, run.left->size());
      advance(run.digests.size() - run.left->size());
    }
  });
  if (failed) return;
  const auto left_count = [&] {
    return std::accumulate(left.begin(), left.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& some) { return sum + some.size(); });
  };
  // The digests are not spread evenly: this front takes none of them. Once remixed, they will be.
  if (const std::uint64_t count = left_count(); count > keys / 4) {
    family.skip_front();
    held = held_before;
    advance(count - keys);  // back again
    std::fill(table.data() + family.front_bytes(), table.data() + bytes, std::byte{0});
    for_shards(run_bits, first_key, 1, [&](std::uint64_t run, Group group, StaticScratch&) {
      left[run].assign(group[0].begin(), group[0].end());
    });
    if (failed) return;
  }
  Records<Record> all;
  all.reserve(left_count());
  for (const auto& some : left) all.insert(all.end(), some.begin(), some.end());
  family.remix(all);
  loose.resize(all.size());
  const auto sorted = sort_distinct(std::span(all), std::span(loose), 0);
  if (sorted.data() == all.data()) loose.swap(all);
  buckets.clear();
  for (const auto& lane : lanes) lane->digests.drop();
}

template <class Family, class Record, class Run>
Memory Pipeline<Family, Record, Run>::build(Family& family) {
  std::uint64_t keys = loose.size();
  for (const SortedBucket& bucket : buckets) keys += bucket.keys;
  begin(BuildPhase::building, keys);
  const std::uint64_t all = keys;
  const unsigned shard_bits = family.fix_shape(keys);
  Memory table;
  while (family.add_front(keys)) {
    build_front(family, keys, table);
    if (failed) return {};
    keys = loose.size();
  }
  const auto first_key = first_keys(shard_bits);
  std::vector<std::uint64_t> offsets(first_key.size(), detail::directory_bytes(shard_bits));
  for (std::uint64_t s = 0; s + 1 < offsets.size(); ++s) {
    offsets[s + 1] = offsets[s] + family.shard_bytes(first_key[s + 1] - first_key[s]);
  }
  const std::uint64_t front = family.front_bytes();
  family.fix_size(front + offsets.back());
  table.resize(front + offsets.back());
  for (std::size_t s = 0; s < offsets.size(); ++s) detail::store(table.data() + front + 8 * s, offsets[s]);
  for_shards(shard_bits, first_key, 1,
             [&](std::uint64_t shard, std::span<const std::span<const Record>> group, StaticScratch& scratch) {
               const auto digests = group[0];
               family.build_shard(digests,
                                  table.bytes().subspan(front + offsets[shard], offsets[shard + 1] - offsets[shard]),
                                  scratch);
               verify(family, table.data(), shard, digests, 0);
               advance(digests.size());
             });
  // Whatever happened before, no key may be lost.
  if (options.verify && !failed && held != all) {
    fail({Errc::bad_checksum, std::string(family.name()) + ": the filter just built has " + std::to_string(held) +
                                  " of its " + std::to_string(all) + " keys; the program is at fault"});
  }
  return table;
}

template <class Family, class Record, class Run>
Result<Memory> Pipeline<Family, Record, Run>::finish(Family& family) {
  if (no_memory) throw std::bad_alloc();
  if (!failed) sort();
  if constexpr (std::same_as<Record, Entry>) {
    if (conflicting && !failed) fail(family.two_values(*conflicting, values[0], values[1]));
  }
  if (failed) return *error;
  Memory table = build(family);
  if (failed) return *error;
  return table;
}

}  // namespace perhaps::build
