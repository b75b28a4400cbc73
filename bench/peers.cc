// What people use today, from Debian's packages. Each is optional; the bench says which are missing.
#include <unordered_set>

#include "contender.h"
#if PERHAPS_BENCH_LEVELDB
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#endif
#if PERHAPS_BENCH_LIBBLOOM
#include <bloom.h>
#endif
#if PERHAPS_BENCH_ABSL
#include <absl/container/flat_hash_set.h>
#endif

namespace perhaps::bench {
namespace {

[[maybe_unused]] std::string_view bytes_of(const std::uint64_t& key) {
  return {reinterpret_cast<const char*>(&key), sizeof key};
}
[[maybe_unused]] std::string_view bytes_of(std::string_view key) { return key; }

// Counts the memory that a set takes from the allocator.
template <class T>
struct Counted {
  using value_type = T;
  Counted() = default;
  explicit Counted(std::uint64_t* used) : used_(used) {}
  template <class U>
  Counted(const Counted<U>& other) : used_(other.used_) {}
  T* allocate(std::size_t n) {
    *used_ += n * sizeof(T);
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* at, std::size_t n) {
    *used_ -= n * sizeof(T);
    std::allocator<T>().deallocate(at, n);
  }
  template <class U>
  friend bool operator==(const Counted& a, const Counted<U>& b) {
    return a.used_ == b.used_;
  }
  std::uint64_t* used_ = nullptr;
};

template <class S>
class Exact : public Querying<Exact<S>, std::uint64_t> {
 public:
  using typename Querying<Exact<S>, std::uint64_t>::Keys;
  explicit Exact(std::uint64_t) : set_(typename S::allocator_type(&used_)) {}
  std::uint64_t bytes() const override { return used_; }
  void clear() override { set_ = S(typename S::allocator_type(&used_)); }
  void build(Keys keys, unsigned) override {
    set_.reserve(keys.size());
    for (const std::uint64_t key : keys) set_.insert(key);
  }
  auto probe() const {
    return [&set = set_](std::uint64_t key) __attribute__((always_inline)) { return set.contains(key); };
  }

 private:
  std::uint64_t used_ = 0;
  S set_;
};

using StdSet = std::unordered_set<std::uint64_t, std::hash<std::uint64_t>, std::equal_to<>, Counted<std::uint64_t>>;
const Register<Exact<StdSet>> std_set(
    {.name = "std::unordered_set", .max_keys = 10'000'000, .max_quick_keys = 1'000'000, .slow_build = true});

#if PERHAPS_BENCH_ABSL
using FlatSet = absl::flat_hash_set<std::uint64_t, absl::Hash<std::uint64_t>, std::equal_to<>, Counted<std::uint64_t>>;
const Register<Exact<FlatSet>> flat_set({.name = "absl::flat_hash_set",
                                         .max_quick_keys = 1'000'000,
                                         .slow_build = true});
#endif

#if PERHAPS_BENCH_LEVELDB
// One filter over all keys through the public interface of the policy.
template <class Key>
class LevelDb : public Querying<LevelDb<Key>, Key> {
 public:
  using typename Querying<LevelDb<Key>, Key>::Keys;
  explicit LevelDb(std::uint64_t) : policy_(leveldb::NewBloomFilterPolicy(10)) {}
  std::uint64_t bytes() const override { return filter_.size(); }
  double fpr(std::uint64_t) const override { return 0.00844; }  // (1 - e^(-6/10))^6
  void clear() override { filter_ = {}; }
  void build(Keys keys, unsigned) override {
    std::vector<leveldb::Slice> slices;
    slices.reserve(keys.size());
    for (const Key& key : keys) slices.emplace_back(bytes_of(key).data(), bytes_of(key).size());
    policy_->CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter_);
  }
  auto probe() const {
    return [ policy = policy_.get(), filter = leveldb::Slice(filter_) ](const Key& key) __attribute__((always_inline)) {
      const auto text = bytes_of(key);
      return policy->KeyMayMatch(leveldb::Slice(text.data(), text.size()), filter);
    };
  }

 private:
  std::unique_ptr<const leveldb::FilterPolicy> policy_;
  std::string filter_;
};
const Register<LevelDb<std::uint64_t>> leveldb_number({.name = "leveldb policy",
                                                       .max_quick_keys = 10'000'000,
                                                       .slow_build = true});
const Register<LevelDb<std::string_view>> leveldb_text({.name = "leveldb policy", .slow_build = true});
#endif

#if PERHAPS_BENCH_LIBBLOOM
template <class Key>
class LibBloom : public Querying<LibBloom<Key>, Key> {
 public:
  using typename Querying<LibBloom<Key>, Key>::Keys;
  explicit LibBloom(std::uint64_t keys) { bloom_init(&bloom_, static_cast<int>(keys), 0.01); }
  LibBloom(const LibBloom&) = delete;
  LibBloom& operator=(const LibBloom&) = delete;
  ~LibBloom() override { bloom_free(&bloom_); }
  std::uint64_t bytes() const override { return static_cast<std::uint64_t>(bloom_.bytes); }
  double fpr(std::uint64_t) const override { return bloom_.error; }
  void clear() override { bloom_reset(&bloom_); }
  void build(Keys keys, unsigned) override {
    for (const Key& key : keys) bloom_add(&bloom_, bytes_of(key).data(), static_cast<int>(bytes_of(key).size()));
  }
  auto probe() const {
    return [this](const Key& key) __attribute__((always_inline)) {
      return bloom_check(&bloom_, bytes_of(key).data(), static_cast<int>(bytes_of(key).size())) == 1;
    };
  }

 private:
  mutable ::bloom bloom_;
};
const Register<LibBloom<std::uint64_t>> libbloom_number({.name = "libbloom",
                                                         .max_quick_keys = 1'000'000,
                                                         .slow_build = true});
const Register<LibBloom<std::string_view>> libbloom_text({.name = "libbloom",
                                                          .max_quick_keys = 1'000'000,
                                                          .slow_build = true});
#endif

}  // namespace
}  // namespace perhaps::bench
