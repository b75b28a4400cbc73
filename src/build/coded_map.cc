// Building, checking and looking up the tables of perhaps/coded_map.h.
#include "perhaps/coded_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <queue>

#include "build/sort.h"
#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

using build::Entry;

constexpr std::uint64_t kMaxPeels = 64;
constexpr std::uint64_t kMaxLength = 48;  // of a code
constexpr std::uint64_t kMaxSymbols = std::uint64_t{1} << 24;
// What a part takes besides its keys, in bits: numbers, place, directory, and the ends of ribbons.
constexpr double kPartBits = 400;

Error bad(const std::string& what) { return {Errc::bad_parameter, "coded: " + what}; }

// The word under which part j has a key.
std::uint64_t word_for(std::uint64_t h, std::size_t part) noexcept {
  return RibbonLayout::mixed(h, static_cast<std::uint32_t>(part + 1)) * RibbonLayout::kLayer[0];
}

constexpr std::uint64_t whole_words(std::uint64_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

// Reads the numbers of the head; 0 after the end of the bytes.
struct Head {
  Bytes bytes;
  std::size_t at = 0;
  bool ended = false;

  std::uint64_t next() noexcept {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at == bytes.size()) {
        ended = true;
        return 0;
      }
      const auto byte = std::to_integer<std::uint64_t>(bytes[at++]);
      number |= (byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    ended = true;  // no number of 64 bits is so long
    return 0;
  }
};

// A part that was built.
struct NewPart {
  std::vector<std::uint64_t> numbers;
  Memory table;
};

class Builder {
 public:
  Builder(std::uint32_t check_bits, const BuildOptions& options) : check_bits_(check_bits), options_(options) {
    options_.progress = {};
  }

  Result<Memory> build(std::vector<Entry> entries) {
    keys_ = entries.size();
    if (check_bits_ != 0 && keys_ != 0) {
      std::vector<std::uint64_t> words(entries.size());
      std::transform(entries.begin(), entries.end(), words.begin(), [](const Entry& e) { return e.digest; });
      if (auto done = add_filter(words, check_bits_); !done) return std::move(done).error();
    }
    while (peels_.size() < kMaxPeels) {
      auto peeled = peel(entries);
      if (!peeled) return std::move(peeled).error();
      if (!*peeled) break;
    }
    if (auto done = code(entries); !done) return std::move(done).error();
    return table();
  }

 private:
  struct Peel {
    std::uint64_t value;
    std::uint64_t columns;
  };

  static std::map<std::uint64_t, std::uint64_t> counts_of(std::span<const Entry> entries) {
    std::map<std::uint64_t, std::uint64_t> counts;
    for (const Entry& entry : entries) ++counts[entry.value];
    return counts;
  }

  // Takes the most frequent value out of the entries, if that saves anything.
  Result<bool> peel(std::vector<Entry>& entries) {
    if (entries.empty()) return false;
    std::uint64_t value = 0;
    std::uint64_t most = 0;
    for (const auto& [v, count] : counts_of(entries)) {
      if (count > most) value = v, most = count;
    }
    const double others = 1 - static_cast<double>(most) / static_cast<double>(entries.size());
    if (others == 0 || others >= 1.0 / 3) return false;
    std::uint64_t columns = 1;
    const auto bits = [&](std::uint64_t c) {
      return others * static_cast<double>(c) + others + (1 - others) * std::ldexp(1.0, -static_cast<int>(c));
    };
    while (columns < RibbonShape::kMaxColumns && bits(columns + 1) < bits(columns)) ++columns;
    // A code spends one bit on the same decision, in one part instead of two.
    if (static_cast<double>(entries.size()) * (1 - bits(columns)) < 2 * kPartBits) return false;

    std::vector<std::uint64_t> words;
    for (const Entry& entry : entries) {
      if (entry.value != value) words.push_back(entry.digest);
    }
    const std::size_t filter = parts_.size();
    if (auto done = add_filter(words, static_cast<std::uint32_t>(columns)); !done) return std::move(done).error();
    // Those that pass, and whether they have the value.
    std::vector<std::uint64_t> passed;
    std::vector<std::uint64_t> has_value;
    const auto shape = *RibbonShape::from(parts_[filter].numbers);
    constexpr std::size_t kSome = 16 * kBatch;
    std::array<std::uint64_t, kSome> some;
    std::array<std::uint64_t, kSome / kBatch> answers;
    for (std::size_t from = 0; from < entries.size(); from += kSome) {
      const std::size_t count = std::min(kSome, entries.size() - from);
      for (std::size_t i = 0; i < count; ++i) some[i] = word_for(entries[from + i].digest, filter);
      detail::query_batch<RibbonLayout>(shape, parts_[filter].table.data(), {.words = some.data(), .count = count},
                                        answers.data());
      for (std::size_t i = 0; i < count; ++i) {
        if ((answers[i / kBatch] >> i % kBatch & 1) == 0) continue;
        passed.push_back(entries[from + i].digest);
        has_value.push_back(entries[from + i].value == value);
      }
    }
    if (auto done = add_map(passed, has_value); !done) return std::move(done).error();
    peels_.push_back({value, columns});
    std::erase_if(entries, [&](const Entry& entry) { return entry.value == value; });
    return true;
  }

  // Lengths of a code, none above kMaxLength, for counts in the order of the values. Huffman's lengths spend the fewest
  // bits, but each of the longest takes a part of its own for few keys. So Huffman's algorithm also runs with counts
  // that are more and more alike, and the lengths are chosen whose parts are smallest in total.
  static std::vector<unsigned> lengths_of(const std::vector<std::uint64_t>& real_counts) {
    std::vector<std::uint64_t> counts = real_counts;
    std::vector<unsigned> lengths(counts.size(), 0);
    if (counts.size() < 2) return lengths;
    std::vector<unsigned> best;
    double least = 0;
    for (;;) {
      // Nodes: the values first, then the inner ones; of equal counts the older one goes first.
      using Node = std::pair<std::uint64_t, std::size_t>;
      std::priority_queue<Node, std::vector<Node>, std::greater<>> queue;
      std::vector<std::size_t> parent(2 * counts.size() - 1);
      for (std::size_t i = 0; i < counts.size(); ++i) queue.emplace(counts[i], i);
      for (std::size_t inner = counts.size(); queue.size() > 1; ++inner) {
        const Node a = queue.top();
        queue.pop();
        const Node b = queue.top();
        queue.pop();
        parent[a.second] = parent[b.second] = inner;
        queue.emplace(a.first + b.first, inner);
      }
      std::vector<unsigned> depth(parent.size(), 0);
      for (std::size_t i = parent.size() - 1; i-- > 0;) depth[i] = depth[parent[i]] + 1;
      std::copy_n(depth.begin(), counts.size(), lengths.begin());
      const unsigned longest = *std::max_element(lengths.begin(), lengths.end());
      double bits = kPartBits * longest;
      for (std::size_t i = 0; i < counts.size(); ++i) bits += static_cast<double>(real_counts[i]) * lengths[i];
      if (longest <= kMaxLength && (best.empty() || bits < least)) best = lengths, least = bits;
      if (std::all_of(counts.begin(), counts.end(), [&](std::uint64_t count) { return count <= 2; })) return best;
      for (std::uint64_t& count : counts) count = count / 2 + 1;
    }
  }

  Result<void> code(std::span<const Entry> entries) {
    const auto counts = counts_of(entries);
    if (counts.size() > kMaxSymbols) return bad(std::to_string(counts.size()) + " different values are too many");
    std::vector<std::uint64_t> numbers;
    std::vector<std::uint64_t> values;
    for (const auto& [value, count] : counts) values.push_back(value), numbers.push_back(count);
    const auto lengths = lengths_of(numbers);
    std::vector<std::size_t> order(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] < lengths[b]; });
    struct Code {
      std::uint64_t bits;  // the first one highest
      unsigned length;
    };
    std::map<std::uint64_t, Code> codes;
    std::uint64_t next = 0;
    unsigned length = 0;
    for (const std::size_t i : order) {
      next <<= lengths[i] - length;
      length = lengths[i];
      codes[values[i]] = {next++, length};
      symbols_.push_back(values[i]);
    }
    lengths_.assign(length, 0);
    for (const unsigned l : lengths) {
      if (l != 0) ++lengths_[l - 1];
    }
    for (unsigned d = 0; d < length; ++d) {
      std::vector<std::uint64_t> words;
      std::vector<std::uint64_t> bits;
      for (const Entry& entry : entries) {
        const Code& code = codes[entry.value];
        if (code.length <= d) continue;
        words.push_back(entry.digest);
        bits.push_back(code.bits >> (code.length - 1 - d) & 1);
      }
      if (auto done = add_map(words, bits); !done) return done;
    }
    return {};
  }

  Result<void> add_filter(std::vector<std::uint64_t> words, std::uint32_t columns) {
    for (std::uint64_t& word : words) word = word_for(word, parts_.size());
    const auto pipeline = detail::StaticPipeline::make(options_);
    pipeline->share_out(words.size(), [&](detail::StaticPipeline::Lane& lane, std::uint64_t from, std::uint64_t size) {
      detail::StaticPipeline::add(lane, words.data() + from, static_cast<std::size_t>(size));
    });
    detail::StaticFamilyOf<RibbonLayout> family(Request{.fpr = std::ldexp(1.0, -static_cast<int>(columns))});
    auto table = pipeline->finish(family);
    if (!table) return std::move(table).error();
    parts_.push_back({family.shape().numbers(), *std::move(table)});
    return {};
  }

  Result<void> add_map(std::vector<std::uint64_t> words, const std::vector<std::uint64_t>& bits) {
    for (std::uint64_t& word : words) word = word_for(word, parts_.size());
    const auto pipeline = detail::MapPipeline::make({.value_bits = 1}, options_, 1);
    pipeline->share_out(words.size(), [&](detail::MapPipeline::Lane& lane, std::uint64_t from, std::uint64_t size) {
      detail::MapPipeline::add(lane, words.data() + from, bits.data() + from, static_cast<std::size_t>(size));
    });
    RibbonMapShape shape;
    auto table = pipeline->finish(&shape);
    if (!table) return std::move(table).error();
    parts_.push_back({shape.numbers(), *std::move(table)});
    return {};
  }

  Memory table() const {
    std::vector<std::byte> head;
    const auto put = [&](std::uint64_t number) {
      for (; number >= 0x80; number >>= 7) head.push_back(static_cast<std::byte>(0x80 | (number & 0x7f)));
      head.push_back(static_cast<std::byte>(number));
    };
    const auto put_all = [&](const std::vector<std::uint64_t>& numbers) {
      std::for_each(numbers.begin(), numbers.end(), put);
    };
    put_all({keys_, check_bits_, peels_.size(), lengths_.size(), symbols_.size()});
    for (const Peel& peel : peels_) put_all({peel.value, peel.columns});
    put_all(lengths_);
    put_all(symbols_);
    for (const NewPart& part : parts_) {
      put(part.numbers.size());
      put_all(part.numbers);
    }
    std::uint64_t size = whole_words(head.size());
    for (const NewPart& part : parts_) size += part.table.size();
    Memory memory(size);
    std::memcpy(memory.data(), head.data(), head.size());
    std::uint64_t at = whole_words(head.size());
    for (const NewPart& part : parts_) {
      std::memcpy(memory.data() + at, part.table.data(), part.table.size());
      at += part.table.size();
    }
    return memory;
  }

  std::uint32_t check_bits_;
  BuildOptions options_;
  std::uint64_t keys_ = 0;
  std::vector<Peel> peels_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint64_t> symbols_;
  std::vector<NewPart> parts_;
};

}  // namespace

Result<Memory> CodedTable::build(std::span<const std::uint64_t> words, std::span<const std::uint64_t> values,
                                 std::uint32_t check_bits, const BuildOptions& options,
                                 std::optional<std::uint64_t>* conflict) {
  if (check_bits > RibbonMapShape::kMaxCheckBits) return bad(std::to_string(check_bits) + " check bits, not 0 to 32");
  std::vector<Entry> entries(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) entries[i] = {words[i], values[i]};
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  const auto twice = std::adjacent_find(entries.begin(), entries.end(),
                                        [](const Entry& a, const Entry& b) { return a.digest == b.digest; });
  if (twice != entries.end()) {
    *conflict = twice->digest;
    return Error{Errc::mismatch, "coded: a key has two values, " + std::to_string(twice->value) + " and " +
                                     std::to_string((twice + 1)->value)};
  }
  return Builder(check_bits, options).build(std::move(entries));
}

Result<CodedTable> CodedTable::over(Bytes table) {
  Head head{table};
  CodedTable coded;
  coded.bytes_ = table;
  coded.keys_ = head.next();
  const std::uint64_t check = head.next();
  const std::uint64_t peels = head.next();
  const std::uint64_t lengths = head.next();
  const std::uint64_t symbols = head.next();
  if (check > RibbonMapShape::kMaxCheckBits) return bad("check bits out of range");
  if (peels > kMaxPeels || lengths > kMaxLength || symbols > std::min<std::uint64_t>(kMaxSymbols, table.size()))
    return bad("a head out of range");
  coded.check_bits_ = static_cast<std::uint32_t>(check);
  for (std::uint64_t i = 0; i < peels; ++i) {
    const std::uint64_t value = head.next();
    const std::uint64_t columns = head.next();
    if (columns < 1 || columns > RibbonShape::kMaxColumns)
      return bad("a peel of " + std::to_string(columns) + " columns");
    coded.peels_.push_back({value, columns});
  }
  // The codes are complete, so that every sequence of bits ends in one.
  std::uint64_t open = 1;
  std::uint64_t codes = 0;
  for (std::uint64_t i = 0; i < lengths; ++i) {
    const std::uint64_t count = head.next();
    open *= 2;
    if (count > open || count > symbols - codes) return bad("more codes than there are");
    open -= count;
    codes += count;
    coded.lengths_.push_back(count);
    if (open > symbols) return bad("codes without symbols");
  }
  if (lengths == 0 ? symbols > 1 : codes != symbols || open != 0) return bad("codes that are not complete");
  if (coded.keys_ != 0 && symbols == 0) return bad("keys without values");
  if (head.ended) return bad("shorter than its head");
  for (std::uint64_t i = 0; i < symbols; ++i) coded.symbols_.push_back(head.next());

  const auto add = [&](bool is_filter) -> Result<void> {
    const std::uint64_t count = head.next();
    if (count > 32) return bad("a part of " + std::to_string(count) + " numbers");
    std::vector<std::uint64_t> numbers(static_cast<std::size_t>(count));
    for (std::uint64_t& number : numbers) number = head.next();
    Part part{is_filter, {}, {}, nullptr};
    if (is_filter) {
      auto shape = RibbonShape::from(numbers);
      if (!shape) return std::move(shape).error();
      part.filter = *shape;
    } else {
      auto shape = RibbonMapShape::from(numbers);
      if (!shape) return std::move(shape).error();
      part.map = *shape;
    }
    coded.parts_.push_back(part);
    return {};
  };
  Result<void> added;
  if (check != 0 && coded.keys_ != 0) added = add(true);
  for (std::uint64_t i = 0; i < peels && added; ++i) {
    added = add(true);
    if (added) added = add(false);
  }
  for (std::uint64_t i = 0; i < lengths && added; ++i) added = add(false);
  if (!added) return std::move(added).error();
  if (head.ended) return bad("shorter than its head");
  std::uint64_t at = whole_words(head.at);
  for (Part& part : coded.parts_) {
    const std::uint64_t size = part.is_filter ? part.filter.bytes() : part.map.bytes();
    if (at > table.size() || size > table.size() - at) return bad("a part is cut short");
    const Bytes bytes = table.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
    const auto ok = part.is_filter ? RibbonLayout::check(part.filter, bytes) : RibbonMapLayout::check(part.map, bytes);
    if (!ok) return ok.error();
    part.table = bytes.data();
    at += size;
  }
  if (at != table.size()) return bad("bytes behind the last part");
  return coded;
}

void CodedTable::find_part(std::size_t part, const std::uint64_t* words, std::span<const std::uint16_t> which,
                           std::span<std::uint64_t> answers) const noexcept {
  std::array<std::uint64_t, 4 * kBatch> own;
  for (std::size_t i = 0; i < which.size(); ++i) own[i] = word_for(words[which[i]], part);
  const Part& p = parts_[part];
  if (p.is_filter) {
    return detail::query_batch<RibbonLayout>(
        p.filter, p.table, {.words = own.data(), .count = which.size(), .ahead = detail::far_away(p.filter.bytes())},
        answers.data());
  }
  std::array<std::uint64_t, 4 * kBatch> bits;
  RibbonMapLayout::find(p.map, p.table,
                        {.words = own.data(), .count = which.size(), .ahead = detail::far_away(p.map.bytes())},
                        bits.data(), answers.data());
  for (std::size_t i = 0; i < which.size(); i += kBatch) {
    std::uint64_t word = 0;
    for (std::size_t k = i; k < std::min(i + kBatch, which.size()); ++k) word |= (bits[k] & 1) << (k - i);
    answers[i / kBatch] &= word;
  }
}

void CodedTable::find_some(const std::uint64_t* words, std::size_t count, std::uint64_t* values,
                           std::uint64_t* found) const noexcept {
  constexpr std::size_t kSome = 4 * kBatch;
  std::fill_n(values, count, 0);
  std::fill_n(found, (count + kBatch - 1) / kBatch, 0);
  if (keys_ == 0) return;
  std::array<std::uint16_t, kSome> open;  // the keys whose value is not known yet
  std::array<std::uint64_t, kSome / kBatch> answers;
  std::size_t left = count;
  for (std::size_t i = 0; i < count; ++i) open[i] = static_cast<std::uint16_t>(i);
  const auto settle = [&](std::size_t key, std::uint64_t value) {
    values[key] = value;
    found[key / kBatch] |= std::uint64_t{1} << key % kBatch;
  };
  // Keeps the keys for which keep(key, answer) is true.
  const auto each = [&](std::size_t part, auto keep) {
    find_part(part, words, {open.data(), left}, answers);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < left; ++i) {
      if (keep(open[i], (answers[i / kBatch] >> i % kBatch & 1) != 0)) open[kept++] = open[i];
    }
    left = kept;
  };
  std::size_t part = 0;
  if (check_bits_ != 0) {
    each(part++, [](std::size_t, bool yes) { return yes; });
  }
  for (const Peel& peel : peels_) {
    if (peel.columns != 0) {
      each(part++, [&](std::size_t key, bool yes) {
        if (!yes) settle(key, peel.value);
        return yes;
      });
    }
    each(part++, [&](std::size_t key, bool yes) {
      if (yes) settle(key, peel.value);
      return !yes;
    });
  }
  if (lengths_.empty()) {
    for (std::size_t i = 0; i < left; ++i) settle(open[i], symbols_[0]);
    return;
  }
  std::array<std::uint64_t, kSome> code{};
  std::uint64_t first = 0;  // code of this length
  std::uint64_t index = 0;  // its symbol
  for (const std::uint64_t codes : lengths_) {
    each(part++, [&](std::size_t key, bool yes) {
      const std::uint64_t bits = code[key] = 2 * code[key] + yes;
      if (bits - first >= codes) return true;
      settle(key, symbols_[static_cast<std::size_t>(index + bits - first)]);
      return false;
    });
    index += codes;
    first = (first + codes) * 2;
  }
}

void CodedTable::find(std::span<const std::uint64_t> digests, std::uint64_t spread, std::uint64_t* values,
                      std::uint64_t* found) const noexcept {
  std::array<std::uint64_t, 4 * kBatch> words;
  for (std::size_t from = 0; from < digests.size(); from += words.size()) {
    const std::size_t count = std::min(words.size(), digests.size() - from);
    for (std::size_t i = 0; i < count; ++i) words[i] = digests[from + i] * spread;
    find_some(words.data(), count, values + from, found + from / kBatch);
  }
}

Facts CodedTable::facts() const {
  return {{"peels", std::to_string(peels_.size())},
          {"code lengths", std::to_string(lengths_.size())},
          {"symbols", std::to_string(symbols_.size())},
          {"check bits", std::to_string(check_bits_)}};
}

}  // namespace perhaps
