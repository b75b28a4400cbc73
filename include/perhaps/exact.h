// An exact set: *in* or *out* without a single error, for keys of a known universe.
//
// Which certificates are revoked, which domains are blocked: if every key that can ever be queried is known when
// the set is built, its false positives are known, too, and can be stored as exceptions. Two stages:
//
//   filter   a ribbon (ribbon.h) of the n members with c columns: N / 2^c of the N other keys of the universe pass it
//   map      one bit (ribbon_map.h) for each key that passes the filter: 1 for a member, 0 for the others
//
//   in = filter(key) && map(key)          bits = n c + n + N / 2^c, and the overhead of the ribbons
//
// The sum is least where N / 2^c lies between n and 2 n, so c = ceil(log2(N / n)) - 1. With 1.4 % members c is 6, and
// the sum 8.10 bits per member (8.19 measured at 1e7 keys, 1.078 times the limit); no structure can do with less than
// log2 C(n + N, n) = 7.59 on average. A rate between two powers of two (the ribbon mixes columns) gains nothing: the
// cost is linear between whole columns. doc/maths.md has the derivation and the measured sizes.
//
// Dense sets. The side that has fewer keys, members or others, is *listed*: all of the above holds for the listed side,
// and the answer is inverted if the others are listed. If c is 0 there is no filter, and the map has the
// whole universe. If one side is empty there is nothing but the answer.
//
// Parts. Real sets are not equally dense everywhere: one issuer has revoked half of its certificates, another none. If
// keys have a field that tells (ExactParts), every part gets the number of columns that its own density requires. Parts
// of equal columns share a filter, and all parts share the map, so a part costs nothing but its entry in a directory,
// of 9 bytes; those that would not save as much have none and share one number of columns.
//
//   layer    one such set: | directory of parts | filter of each number of columns | map |
//   update   the answer of several layers is the exclusive or of theirs: a second layer lists the keys whose answer
//            has changed, and is small if few have
//
// Keys outside the universe get an answer that means nothing: one in 2^(c + 1) or so is in. If you cannot know all
// keys, use a filter.
//
// Two keys with the same digest (at 1e8 keys there is such a pair with a probability of 3e-4) have the same answer. If
// one is a member and the other is not, building from keys is an error that says so, and another seed is the way out: a
// second hash of each key that passes the filter tells them apart. Whoever builds from digests says that equal digests
// are equal keys.
//
// Building needs the members first, then the universe, as a stream in any order and repeated or not. If the number of
// its keys is given first, nothing is kept of it but the keys that pass the filter, 16 bytes each, so the universe may
// be larger than memory; if not, its digests are kept, past `memory` bytes in a temporary file, and read again at the
// end. (A set without a filter, of more than a third of its universe, keeps all keys in memory.) Members that are not
// in the universe count as part of it. The bytes depend on nothing but the two sets and the number that was given.
//
// Considered, and larger by calculation: a cascade of filters with no map, each of the false positives of the one
// before (n + 2 N / 2^c bits instead of n + N / 2^c); a seed per bucket of keys, searched for until a hash of the rate
// n / (n + N) separates the bucket (its expected length is the entropy, but buckets differ so much in what they need
// that their lengths or counts have to be stored: 8.6 bits per member at 1.4 %).
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "perhaps/build_options.h"
#include "perhaps/filter.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

// Which part a key belongs to: one of its fields, of which the empty text stands for a missing one. Numbers are all of
// one part.
struct ExactParts {
  std::uint32_t field = 0;  // from 1; 0: there are no parts
  char delimiter = '\t';    // between fields

  // Are there any?
  explicit operator bool() const noexcept { return field != 0; }
  // The field of a key.
  PERHAPS_API Bytes of(Bytes key) const noexcept;
  friend bool operator==(const ExactParts&, const ExactParts&) = default;
};

// What is to be built.
struct ExactRequest {
  ExactParts parts{};
};

// What a set says of itself.
struct ExactFigures {
  std::uint64_t members = 0;
  std::uint64_t universe = 0;  // keys, members included: as counted, or by estimate if they repeat
  std::uint64_t bytes = 0;
  std::uint64_t layers = 1;
  std::uint64_t parts = 0;  // with an entry of their own
  double limit_bits = 0;    // log2 of the number of sets of so many members in that universe
  Facts more;               // columns, stages
};

namespace detail {

// Keys on their way. Parts may be missing: all keys are of one part.
struct ExactKeys {
  std::span<const std::uint64_t> words;
  std::span<const std::uint64_t> parts{};
  std::span<const std::uint64_t> checks{};  // a second hash, to build from keys
};

// The set behind the typed handles: src/exact.
class ExactTables {
 public:
  virtual ~ExactTables() = default;

  // Of what numbers() and sections() gave.
  PERHAPS_API static Result<std::shared_ptr<const ExactTables>> over(std::span<const std::uint64_t> numbers,
                                                                     std::span<const Bytes> sections);
  // `below`, with another answer for each key in `above`.
  PERHAPS_API static Result<std::shared_ptr<const ExactTables>> stacked(std::shared_ptr<const ExactTables> below,
                                                                        std::shared_ptr<const ExactTables> above);

  virtual void query(const ExactKeys& keys, std::uint64_t* answers) const noexcept = 0;
  virtual void prefetch(std::uint64_t word) const noexcept = 0;
  virtual std::uint64_t bytes() const noexcept = 0;
  virtual ExactParts parts() const noexcept = 0;
  virtual ExactFigures figures() const = 0;
  virtual std::vector<std::uint64_t> numbers() const = 0;
  virtual std::vector<Bytes> sections() const = 0;
};

// The build behind the typed builder, whose functions have the same names.
class ExactBuild {
 public:
  virtual ~ExactBuild() = default;

  PERHAPS_API static std::unique_ptr<ExactBuild> make(const ExactRequest& request, BuildOptions options);

  virtual void add_members(const ExactKeys& keys) = 0;
  virtual void count(const ExactKeys& keys) = 0;
  virtual void begin(std::uint64_t universe) = 0;
  virtual bool add(const ExactKeys& keys) = 0;
  virtual Result<std::shared_ptr<const ExactTables>> finish() = 0;
  virtual std::uint64_t advice() const noexcept = 0;
};

// The second hash. Never stored.
inline constexpr Hash kExactCheck{0x65786163746e6573u};

inline constexpr std::size_t kExactColumn = 512;
// What the core takes of a column of digests or keys: use(keys, how many came before).
template <Hasher H, class Use>
void exact_words(const H& hasher, std::span<const Digest<H>> digests, std::span<const Digest<H>> parts, Use use) {
  std::array<std::uint64_t, kExactColumn> words;
  std::array<std::uint64_t, kExactColumn> part_words;
  for (std::size_t from = 0; from < digests.size(); from += words.size()) {
    const std::size_t count = std::min(words.size(), digests.size() - from);
    for (std::size_t i = 0; i < count; ++i) {
      digests[from + i].check(hasher);
      words[i] = digests[from + i].word();
    }
    for (std::size_t i = 0; i < count && !parts.empty(); ++i) part_words[i] = parts[from + i].value;
    use(ExactKeys{.words = {words.data(), count}, .parts = {part_words.data(), parts.empty() ? 0 : count}}, from);
  }
}
template <bool kChecks, Hasher H, class K, class Use>
void exact_words_of_keys(const H& hasher, ExactParts rule, std::span<const K> keys, Use use) {
  std::array<Digest<H>, kExactColumn> digests;
  std::array<std::uint64_t, kExactColumn> words;
  std::array<std::uint64_t, kExactColumn> parts;
  std::array<std::uint64_t, kChecks ? kExactColumn : 1> checks;
  for (std::size_t from = 0; from < keys.size(); from += words.size()) {
    const auto some = keys.subspan(from, std::min(words.size(), keys.size() - from));
    digests_of(hasher, some, std::span<Digest<H>>(digests));
    for (std::size_t i = 0; i < some.size(); ++i) {
      words[i] = digests[i].word();
      if constexpr (kChecks) checks[i] = digest_of(kExactCheck, some[i]).value;
      if (!rule) continue;
      if constexpr (IntegerKey<K>) {
        parts[i] = hasher(Bytes()).value;
      } else if constexpr (TextKey<K>) {
        parts[i] = hasher(rule.of(bytes_of(some[i]))).value;
      } else {
        parts[i] = hasher(rule.of(Bytes(some[i]))).value;
      }
    }
    ExactKeys all{.words = {words.data(), some.size()}, .parts = {parts.data(), rule ? some.size() : 0}};
    if constexpr (kChecks) all.checks = {checks.data(), some.size()};
    use(all, from);
  }
}

}  // namespace detail

// What an exact set answers, whoever owns its bytes. Copies share the tables, which nothing changes.
template <Hasher H>
class ExactProbes {
 public:
  // What keys are hashed with, and become.
  using hasher_type = H;
  using digest = Digest<H>;

  H hasher() const noexcept { return hasher_; }
  std::uint64_t byte_size() const noexcept { return tables_->bytes(); }
  // Which part a key belongs to. If there are any, a digest alone does not say.
  ExactParts parts() const noexcept { return tables_->parts(); }
  // Sizes, and the least that any structure would need.
  ExactFigures figures() const { return tables_->figures(); }

  // In or out, for a key of the universe; for any other the answer means nothing.  REQUIRES: there are no parts
  bool contains(digest d) const noexcept { return contains(d, d); }
  // `part`: the digest of the field that tells.
  bool contains(digest d, digest part) const noexcept {
    d.check(hasher_);
    const std::uint64_t word = d.word();
    std::uint64_t answer = 0;
    tables_->query({.words = {&word, 1}, .parts = {&part.value, 1}}, &answer);
    return answer != 0;
  }
  // A column: bit i % 64 of answers[i / 64] belongs to digests[i]; the unused bits of the last word become 0.
  // REQUIRES: answers.size() * kBatch >= digests.size(), there are no parts
  void contains(std::span<const digest> digests, std::span<std::uint64_t> answers) const noexcept {
    contains(digests, {}, answers);
  }
  // REQUIRES: parts.size() == digests.size(), or there are none
  void contains(std::span<const digest> digests, std::span<const digest> parts,
                std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= digests.size());
    detail::exact_words(hasher_, digests, parts, [&](const detail::ExactKeys& keys, std::size_t from) {
      tables_->query(keys, answers.data() + from / kBatch);
    });
  }
  // Keys instead of digests, whose part is known.
  template <Key K>
  bool contains(const K& key) const noexcept {
    std::uint64_t answer = 0;
    const std::span<const K> one(&key, 1);
    detail::exact_words_of_keys<false>(
        hasher_, parts(), one, [&](const detail::ExactKeys& keys, std::size_t) { tables_->query(keys, &answer); });
    return answer != 0;
  }
  template <ColumnKey K>
  void contains(std::span<K> keys, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= keys.size());
    const std::span<const K> all = keys;
    detail::exact_words_of_keys<false>(hasher_, parts(), all, [&](const detail::ExactKeys& some, std::size_t from) {
      tables_->query(some, answers.data() + from / kBatch);
    });
  }
  // Loads what a later lookup of d will touch first.
  void prefetch(digest d) const noexcept { tables_->prefetch(d.word()); }

  // What a file stores: the header's numbers and its sections, which borrow from this set.
  std::vector<std::uint64_t> numbers() const { return tables_->numbers(); }
  std::vector<Bytes> sections() const { return tables_->sections(); }

 protected:
  ExactProbes(std::shared_ptr<const detail::ExactTables> tables, H hasher) noexcept
      : tables_(std::move(tables)), hasher_(hasher) {}
  ~ExactProbes() = default;
  ExactProbes(const ExactProbes&) = default;
  ExactProbes& operator=(const ExactProbes&) = default;

  const std::shared_ptr<const detail::ExactTables>& tables() const noexcept { return tables_; }

 private:
  std::shared_ptr<const detail::ExactTables> tables_;
  [[no_unique_address]] H hasher_;
};

// Over bytes that somebody else keeps, such as those of a mapped file.
template <Hasher H>
class BasicExactView : public ExactProbes<H> {
 public:
  // What numbers() and sections() gave. Damage that would lead a lookup astray is an error.
  static Result<BasicExactView> over(std::span<const std::uint64_t> numbers, std::span<const Bytes> sections,
                                     H hasher = H{}) {
    auto tables = detail::ExactTables::over(numbers, sections);
    if (!tables) return std::move(tables).error();
    return BasicExactView(*std::move(tables), hasher);
  }
  // This set, changed by `update`: a set of the keys whose answer is another now, in a universe of all keys.
  Result<BasicExactView> updated(const BasicExactView& update) const {
    if (!(this->hasher() == update.hasher())) {
      return Error{Errc::mismatch, "exact: the update was built with another hash, seed or key"};
    }
    auto both = detail::ExactTables::stacked(this->tables(), update.tables());
    if (!both) return std::move(both).error();
    return BasicExactView(*std::move(both), this->hasher());
  }

 private:
  template <Hasher>
  friend class BasicExact;
  BasicExactView(std::shared_ptr<const detail::ExactTables> tables, H hasher) noexcept
      : ExactProbes<H>(std::move(tables), hasher) {}
};

template <Hasher H>
class BasicExactBuilder;

// Owns its tables.
template <Hasher H>
class BasicExact : public ExactProbes<H> {
 public:
  // From two columns of digests or of keys. Throws std::bad_alloc.
  template <class T>
  static Result<BasicExact> build(std::span<const T> members, std::span<const T> universe,
                                  const ExactRequest& request = {}, BuildOptions options = {}, H hasher = H{}) {
    for (std::uint64_t keys = universe.size();;) {
      BasicExactBuilder<H> builder(request, options, hasher);
      builder.add_members(members);
      if (request.parts) builder.count(universe);
      builder.begin(keys);
      builder.add(universe);
      auto built = builder.finish();
      const std::uint64_t advice = built ? builder.advice() : 0;
      if (advice == 0 || keys != universe.size()) return built;
      keys = advice;
    }
  }

  // Shares the tables.
  BasicExactView<H> view() const noexcept { return BasicExactView<H>(this->tables(), this->hasher()); }

 private:
  friend class BasicExactBuilder<H>;
  BasicExact(std::shared_ptr<const detail::ExactTables> tables, H hasher) noexcept
      : ExactProbes<H>(std::move(tables), hasher) {}
};

// Takes members, then the universe, then builds:
//   add_members* (count* begin)? add* finish
// Each but begin and finish may be called from many threads at once. Throws std::bad_alloc; once one call
// has, all do, since what did not fit is missing.
template <Hasher H>
class BasicExactBuilder {
 public:
  using digest = Digest<H>;  // what it takes, besides keys

  // Of no members so far.
  explicit BasicExactBuilder(const ExactRequest& request = {}, BuildOptions options = {}, H hasher = H{})
      : parts_(request.parts), hasher_(hasher), build_(detail::ExactBuild::make(request, std::move(options))) {}

  H hasher() const noexcept { return hasher_; }

  // Digests, of one part, or keys.
  template <class T>
  void add_members(std::span<const T> members) {
    in_words(members, [&](const detail::ExactKeys& keys) { build_->add_members(keys); });
  }
  // The universe, for the first time, if it can be read twice and there are parts: it fixes their columns.
  template <class T>
  void count(std::span<const T> universe) {
    in_words(universe, [&](const detail::ExactKeys& keys) { build_->count(keys); });
  }
  // No more members. About so many keys will come, members included; 0: those that were counted.
  void begin(std::uint64_t universe = 0) { build_->begin(universe); }
  // The universe. Without begin() it is kept until finish(). False once it cannot be stored; finish() says why.
  template <class T>
  bool add(std::span<const T> universe) {
    bool stored = true;
    in_words(universe, [&](const detail::ExactKeys& keys) { stored = build_->add(keys); });
    return stored;
  }
  // Once. Fails if digests collide, or if the operating system has no room for the temporary file.
  Result<BasicExact<H>> finish() {
    auto tables = build_->finish();
    if (!tables) return std::move(tables).error();
    return BasicExact<H>(*std::move(tables), hasher_);
  }
  // After finish(): what begin() should have been told, because keys of the universe repeat and a set of other columns
  // would be smaller; 0: nothing else.
  std::uint64_t advice() const noexcept { return build_->advice(); }

 private:
  template <class T, class Use>
  void in_words(std::span<const T> all, Use use) {
    if constexpr (std::same_as<T, digest>) {
      assert(!parts_);
      detail::exact_words<H>(hasher_, all, {}, [&](const detail::ExactKeys& keys, std::size_t) { use(keys); });
    } else {
      detail::exact_words_of_keys<true>(hasher_, parts_, all,
                                        [&](const detail::ExactKeys& keys, std::size_t) { use(keys); });
    }
  }

  ExactParts parts_;
  H hasher_;
  std::unique_ptr<detail::ExactBuild> build_;
};

// Under the default hash.
using Exact = BasicExact<Hash>;
using ExactView = BasicExactView<Hash>;
using ExactBuilder = BasicExactBuilder<Hash>;

}  // namespace perhaps
