// What a filter costs inside the engines, behind their own FilterPolicy: built, held, asked for absent and for present
// keys. The policies take turns in one process, round by round, and a figure is the median of the rounds in processor
// time: on a busy machine only the ratios within a column mean anything.
//
//   perhaps-bench-policies [ROUNDS]
//
// Keys have 16 digits, as those of db_bench. So that small filters are measured as engines use them, there are as many
// of one size as make 20,000 keys, and lookups go from one to the next.
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#include <malloc.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "filter_bits.h"
#include "perhaps/hash.h"
#include "perhaps_leveldb.h"
#include "perhaps_rocksdb.h"

namespace {

using Keys = std::vector<std::string>;

double now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

Keys keys_of(std::uint64_t seed, std::size_t count) {
  Keys keys;
  for (std::size_t i = 0; i < count; ++i) {
    char text[32];
    const std::uint64_t number = perhaps::Hash(seed)(std::uint64_t{i}).value % 10'000'000'000'000'000;
    std::snprintf(text, sizeof text, "%016llu", static_cast<unsigned long long>(number));
    keys.emplace_back(text);
  }
  return keys;
}

// A policy of either engine: from keys to a filter, and questions of it, one by one and in batches.
struct Subject {
  std::string name;
  std::function<std::string(const Keys&)> build;
  // How many of the keys are perhaps in filters[i % filters.size()].
  using Ask = std::function<std::size_t(const std::vector<std::string>& filters, const std::vector<const Keys*>& keys)>;
  Ask one;
  Ask batch;  // may be empty
};

Subject rocksdb_subject(std::string name, const std::shared_ptr<const rocksdb::FilterPolicy>& policy) {
  const auto builder_of = [policy] {
    static const rocksdb::BlockBasedTableOptions options = [] {
      rocksdb::BlockBasedTableOptions table;
      table.format_version = 5;
      return table;
    }();
    return std::unique_ptr<rocksdb::FilterBitsBuilder>(
        policy->GetBuilderWithContext(rocksdb::FilterBuildingContext(options)));
  };
  Subject subject{std::move(name), {}, {}, {}};
  subject.build = [builder_of](const Keys& keys) {
    const auto builder = builder_of();
    for (const std::string& key : keys) builder->AddKey(key);
    std::unique_ptr<const char[]> buffer;
    return builder->Finish(&buffer).ToString();
  };
  const auto readers_of = [policy](const std::vector<std::string>& filters) {
    std::vector<std::unique_ptr<rocksdb::FilterBitsReader>> readers;
    for (const std::string& filter : filters) readers.emplace_back(policy->GetFilterBitsReader(filter));
    return readers;
  };
  subject.one = [readers_of](const std::vector<std::string>& filters, const std::vector<const Keys*>& keys) {
    const auto readers = readers_of(filters);
    std::size_t hits = 0;
    for (std::size_t i = 0; i < keys[0]->size(); ++i) {
      for (std::size_t j = 0; j < readers.size(); ++j) hits += readers[j]->MayMatch((*keys[j])[i]);
    }
    return hits;
  };
  subject.batch = [readers_of](const std::vector<std::string>& filters, const std::vector<const Keys*>& keys) {
    constexpr std::size_t kBatch = 32;
    const auto readers = readers_of(filters);
    std::size_t hits = 0;
    std::vector<rocksdb::Slice> slices(kBatch);
    std::vector<rocksdb::Slice*> pointers(kBatch);
    bool answers[kBatch];
    for (std::size_t i = 0; i < kBatch; ++i) pointers[i] = &slices[i];
    for (std::size_t j = 0; j < readers.size(); ++j) {
      for (std::size_t from = 0; from < keys[j]->size(); from += kBatch) {
        const std::size_t size = std::min(kBatch, keys[j]->size() - from);
        for (std::size_t i = 0; i < size; ++i) slices[i] = (*keys[j])[from + i];
        readers[j]->MayMatch(static_cast<int>(size), pointers.data(), answers);
        hits += static_cast<std::size_t>(std::count(answers, answers + size, true));
      }
    }
    return hits;
  };
  return subject;
}

Subject leveldb_subject(std::string name, const std::shared_ptr<const leveldb::FilterPolicy>& policy) {
  Subject subject{std::move(name), {}, {}, {}};
  subject.build = [policy](const Keys& keys) {
    const std::vector<leveldb::Slice> slices(keys.begin(), keys.end());
    std::string filter;
    policy->CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter);
    return filter;
  };
  subject.one = [policy](const std::vector<std::string>& filters, const std::vector<const Keys*>& keys) {
    std::size_t hits = 0;
    for (std::size_t i = 0; i < keys[0]->size(); ++i) {
      for (std::size_t j = 0; j < filters.size(); ++j) hits += policy->KeyMayMatch((*keys[j])[i], filters[j]);
    }
    return hits;
  };
  return subject;
}

// Live bytes of the heap, and the most there were since `reset`.
std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void measure(const std::vector<Subject>& subjects, std::size_t count, int rounds) {
  const std::size_t sets = std::max<std::size_t>(1, 20'000 / count);
  std::vector<Keys> inside, outside;
  std::vector<const Keys*> present, absent;
  for (std::size_t i = 0; i < sets; ++i) {
    inside.push_back(keys_of(2 * i + 1, count));
    outside.push_back(keys_of(2 * i + 2, count));
  }
  for (std::size_t i = 0; i < sets; ++i) present.push_back(&inside[i]), absent.push_back(&outside[i]);
  const double all = static_cast<double>(sets * count);
  struct Times {
    std::vector<double> build, absent, absent_batch, present;
    double bits = 0, peak = 0, rate = 0;
  };
  std::vector<Times> times(subjects.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t s = 0; s < subjects.size(); ++s) {
      const Subject& subject = subjects[s];
      std::vector<std::string> filters;
      filters.reserve(sets);
      double start = now();
      for (const Keys& keys : inside) filters.push_back(subject.build(keys));
      times[s].build.push_back((now() - start) / all);
      if (round == 0) {
        const std::size_t before = live_bytes;
        peak_bytes = live_bytes;
        const std::string again = subject.build(inside[0]);
        times[s].peak = static_cast<double>(peak_bytes - before) / static_cast<double>(count);
        std::size_t bytes = 0;
        for (const std::string& filter : filters) bytes += filter.size();
        times[s].bits = 8 * static_cast<double>(bytes) / all;
      }
      start = now();
      const std::size_t wrong = subject.one(filters, absent);
      times[s].absent.push_back((now() - start) / all);
      times[s].rate = static_cast<double>(wrong) / all;
      if (subject.batch) {
        start = now();
        subject.batch(filters, absent);
        times[s].absent_batch.push_back((now() - start) / all);
      }
      start = now();
      if (subject.one(filters, present) != sets * count) std::abort();
      times[s].present.push_back((now() - start) / all);
    }
  }
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    const Times& t = times[s];
    std::printf("%7zu  %-24s %7.2f %9.3f %9.1f %9.1f %9.1f %9.1f %9.1f\n", count, subjects[s].name.c_str(), t.bits,
                100 * t.rate, t.peak, median(t.build), median(t.absent),
                t.absent_batch.empty() ? 0 : median(t.absent_batch), median(t.present));
  }
}

}  // namespace

// Not inlined, or gcc sees malloc behind new and free behind delete, and says that they do not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const at = std::malloc(size);
  if (at == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(at);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return at;
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  live_bytes -= at == nullptr ? 0 : malloc_usable_size(at);
  std::free(at);
}
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { operator delete(at); }

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const auto ours = [](perhaps::Kind family, double bits) {
    return rocksdb_subject("perhaps " + std::string(perhaps::name_of(family)),
                           perhaps::rocksdb::new_filter_policy({.bits_per_key = bits, .family = family}));
  };
  using perhaps::Kind;
  const std::vector<Subject> of_rocksdb = {
      rocksdb_subject("RocksDB Bloom", std::shared_ptr<const rocksdb::FilterPolicy>(rocksdb::NewBloomFilterPolicy(10))),
      rocksdb_subject("RocksDB Ribbon, 10 bits",
                      std::shared_ptr<const rocksdb::FilterPolicy>(rocksdb::NewRibbonFilterPolicy(14.7, -1))),
      ours(Kind::dense, 10),
      ours(Kind::line, 10),
      ours(Kind::ribbon, 10),
      ours(Kind::fuse, 10)};
  const std::vector<Subject> of_leveldb = {
      leveldb_subject("LevelDB Bloom", std::shared_ptr<const leveldb::FilterPolicy>(leveldb::NewBloomFilterPolicy(10))),
      leveldb_subject("perhaps dense", perhaps::leveldb::new_filter_policy()),
      leveldb_subject("perhaps line", perhaps::leveldb::new_filter_policy({.family = Kind::line}))};
  std::printf(
      "   keys  policy                      bits    rate %%  peak B/key build ns   absent   (batch)   present\n");
  for (const std::size_t count : {36u, 600u, 3'000u, 100'000u}) measure(of_rocksdb, count, rounds);
  std::puts("LevelDB");
  for (const std::size_t count : {18u, 36u, 120u}) measure(of_leveldb, count, rounds);
}
