// What the bench measures: a filter, a set, or the bare memory access that bounds them all.
//
// To measure something else, write one file: a class with probe() and, if they exist, mask() and batch(); a Register;
// and `make bench CONTENDERS=dir`. Loops are instantiated for the class, so a probe is inlined as in the program of a
// user, and the bench makes one virtual call per round. (At -O2, gcc calls a lambda that does not say always_inline,
// which costs up to 1 ns.)
//
//   struct Mine : perhaps::bench::Querying<Mine, std::uint64_t> {
//     explicit Mine(std::uint64_t keys);
//     std::uint64_t bytes() const override;
//     void clear() override;                                     // untimed
//     void build(Keys keys, unsigned threads) override;          // timed
//     auto probe() const;                                        // a callable, always_inline: key -> bool
//   };
//   const perhaps::bench::Register<Mine> mine({.name = "mine"});
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace perhaps::bench {

// single   one inlined lookup after the other, each independent of the last
// chain    the next key depends on the last answer: the latency of a lookup
// mask     64 keys in, one word of answers out
// batch    a column of keys in (kColumn at a time), answers out
// digests  the same with the hashing done beforehand
enum class Form { single, chain, mask, batch, digests };
inline constexpr std::array kForms{Form::single, Form::chain, Form::mask, Form::batch, Form::digests};
inline constexpr std::array<const char*, 5> kFormNames{"single", "chain", "mask", "batch", "digests"};

inline constexpr std::size_t kColumn = 4096;

template <class Key>
class Contender {
 public:
  using Keys = std::span<const Key>;
  virtual ~Contender() = default;

  virtual std::uint64_t bytes() const = 0;
  // The false-positive rate its own formula promises after `keys` keys; 0 if it makes no mistakes, or promises nothing.
  virtual double fpr(std::uint64_t) const { return 0; }
  // The standard deviation of that rate from one filter to the next, 0 if unknown. If it is known, a measured rate that
  // is more than five standard deviations off is an error, and no speed is printed.
  virtual double fpr_spread(std::uint64_t) const { return 0; }

  virtual void clear() = 0;
  virtual void build(Keys keys, unsigned threads) = 0;
  // Inserts one key after the other, if inserts().
  virtual bool inserts() const { return false; }
  virtual void insert_each(Keys) {}
  // Erases keys that were inserted, if erases(); build() without clear() then inserts them again.
  virtual bool erases() const { return false; }
  virtual void erase(Keys) {}
  virtual bool has(Form form) const = 0;
  // How many of the keys are perhaps there.  REQUIRES: has(form); for Form::digests `keys` are digests of perhaps::Hash
  virtual std::uint64_t query(Form form, Keys keys) const = 0;
};

// Opaque to the compiler, so that a value masked with it still has to be computed.
inline std::uint64_t opaque_zero() {
  static volatile std::uint64_t zero = 0;
  return zero;
}

template <class Self, class Key>
class Querying : public Contender<Key> {
 public:
  using typename Contender<Key>::Keys;

  bool has(Form form) const override {
    switch (form) {
      case Form::single:
        return true;
      case Form::chain:
        return std::same_as<Key, std::uint64_t>;
      case Form::mask:
        return requires(const Self& s, Keys k) { s.mask(k); };
      case Form::batch:
        return requires(const Self& s, Keys k) { s.batch(k); };
      case Form::digests:
        return requires(const Self& s, Keys k) { s.digests(k); };
    }
    return false;
  }

  std::uint64_t query(Form form, Keys keys) const override {
    const Self& self = static_cast<const Self&>(*this);
    switch (form) {
      case Form::single:
        return one_by_one(self.probe(), keys);
      case Form::chain:
        if constexpr (std::same_as<Key, std::uint64_t>) return in_a_chain(self.probe(), keys);
        break;
      case Form::mask:
        if constexpr (requires { self.mask(keys); }) {
          return in_parts(keys, 64, [&](Keys part) {
            return static_cast<std::uint64_t>(std::popcount(std::uint64_t{self.mask(part)}));
          });
        }
        break;
      case Form::batch:
        if constexpr (requires { self.batch(keys); }) {
          return in_parts(keys, kColumn, [&](Keys part) { return self.batch(part); });
        }
        break;
      case Form::digests:
        if constexpr (requires { self.digests(keys); }) {
          return in_parts(keys, kColumn, [&](Keys part) { return self.digests(part); });
        }
        break;
    }
    return 0;
  }

 private:
  // Each loop is a function of its own: in one large function the compiler ran out of registers and reloaded the view
  // from the stack for every key, which cost a single lookup a fifth of its time.
  template <class Probe>
  [[gnu::noinline]] static std::uint64_t one_by_one(Probe probe, Keys keys) {
    std::uint64_t perhaps = 0;
    for (const Key& key : keys) perhaps += probe(key);
    return perhaps;
  }
  template <class Probe>
  [[gnu::noinline]] static std::uint64_t in_a_chain(Probe probe, Keys keys) {
    const std::uint64_t zero = opaque_zero();
    std::uint64_t perhaps = 0;
    std::uint64_t last = 0;
    for (const Key& key : keys) perhaps += last = probe(key ^ (last & zero));
    return perhaps;
  }
  template <class Part>
  [[gnu::noinline]] static std::uint64_t in_parts(Keys keys, std::size_t size, Part part) {
    std::uint64_t perhaps = 0;
    for (std::size_t i = 0; i < keys.size(); i += size) {
      perhaps += part(keys.subspan(i, std::min(size, keys.size() - i)));
    }
    return perhaps;
  }
};

enum class Kind { limit, ours, native, peer };

// Contenders of one group are in the same tables, and in no others.
//   ""        Bloom filters around 1 %, sets
//   "static"  built once from all keys; 0.39 % = 2^-8, for comparison
//   "mutable" keys can be erased, expire, or outnumber the expectation
inline constexpr std::array kGroups{"", "static", "mutable"};

struct About {
  std::string name;
  Kind kind = Kind::peer;
  std::string group = {};
  std::string limit = {};                     // of ours: the contender that is its limit
  std::uint64_t max_keys = UINT64_MAX;        // more would take too much memory or time
  std::uint64_t max_quick_keys = UINT64_MAX;  // the same for --quick
  bool headline = false;                      // ours: print it against every peer
  bool slow_build = false;                    // built once, not once per round
};

template <class Key>
struct Entry {
  About about;
  std::function<std::unique_ptr<Contender<Key>>(std::uint64_t keys)> make;
};

// One list in each binary or module. Hidden, so that a module does not find the list of the program.
template <class Key>
[[gnu::visibility("hidden")]] std::vector<Entry<Key>>& registry() {
  static std::vector<Entry<Key>> entries;
  return entries;
}

template <class Self>
struct Register {
  template <class... Arguments>
  explicit Register(About about, Arguments... arguments) {
    using Key = std::remove_const_t<typename Self::Keys::element_type>;
    registry<Key>().push_back({std::move(about), [=](std::uint64_t keys) -> std::unique_ptr<Contender<Key>> {
                                 return std::make_unique<Self>(keys, arguments...);
                               }});
  }
};

// What a module of contenders exports, under the name perhaps_bench_contenders.
struct Contenders {
  std::vector<Entry<std::uint64_t>>* numbers;
  std::vector<Entry<std::string_view>>* strings;
};

}  // namespace perhaps::bench
