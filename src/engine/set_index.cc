#include "perhaps/engine/set_index.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <new>
#include <set>

#include "perhaps/detail/bits.h"
#include "sizing/shape_error.h"

namespace perhaps {
namespace {

using detail::load;
using detail::store;

constexpr std::string_view kFamily = name_of(Kind::sets);
constexpr std::uint64_t kMaxSlots = std::uint64_t{1} << 16;
constexpr std::size_t kMaxName = 4096;

std::uint64_t slots_for(std::uint64_t sets) noexcept {
  std::uint64_t slots = 64;
  while (slots < sets && slots < 512) slots *= 2;
  return slots >= sets ? slots : (sets + 511) / 512 * 512;
}

// The rows of a digest, as offsets into the matrix.
struct Rows {
  std::array<std::uint64_t, BloomShape::kMaxProbes> at;

  void find(const SetIndexShape& shape, std::uint64_t digest) noexcept {
    Multiplicative plan(digest * detail::kSpread, shape.column.bits);
    const std::uint64_t row_bytes = shape.slots / 8;
    for (std::uint32_t i = 0; i < shape.column.probes; ++i) at[i] = plan.next() * row_bytes;
  }
  void prefetch(const SetIndexShape& shape, const std::byte* table) const noexcept {
    // The first lines of long rows; the hardware prefetcher sees a run and continues it.
    const std::uint64_t lines = std::min<std::uint64_t>((shape.slots + 511) / 512, 4);
    for (std::uint32_t i = 0; i < shape.column.probes; ++i) {
      for (std::uint64_t line = 0; line < lines; ++line) detail::prefetch_read(table + at[i] + line * kLineBytes);
    }
  }
  void intersect(const SetIndexShape& shape, const std::byte* table, std::uint64_t* answer) const noexcept {
    const std::uint64_t words = shape.words();
    std::uint64_t word = 0;
    for (; word + 8 <= words; word += 8) {
      std::array<std::uint64_t, 8> line;
      std::memcpy(line.data(), table + at[0] + word * 8, sizeof line);
      for (std::uint32_t i = 1; i < shape.column.probes; ++i) {
        std::array<std::uint64_t, 8> row;
        std::memcpy(row.data(), table + at[i] + word * 8, sizeof row);
        for (std::size_t j = 0; j < 8; ++j) line[j] &= row[j];
      }
      for (std::size_t j = 0; j < 8; ++j) answer[word + j] = detail::little_endian(line[j]);
    }
    for (; word < words; ++word) {
      std::uint64_t all = ~std::uint64_t{0};
      for (std::uint32_t i = 0; i < shape.column.probes; ++i) all &= load<std::uint64_t>(table + at[i] + word * 8);
      answer[word] = all;
    }
  }
};

// 64 x 64 bits: bit j of word i becomes bit i of word j (Hacker's Delight, 7-3).
void transpose(std::array<std::uint64_t, 64>& m) noexcept {
  std::uint64_t mask = 0x00000000ffffffffu;
  for (std::size_t half = 32; half != 0; half /= 2, mask ^= mask << half) {
    for (std::size_t i = 0; i < 64; i = ((i | half) + 1) & ~half) {
      const std::uint64_t swap = (m[i] >> half ^ m[i | half]) & mask;
      m[i] ^= swap << half;
      m[i | half] ^= swap;
    }
  }
}

std::uint64_t word_at(Bytes bits, std::uint64_t byte) noexcept {
  return detail::load_first<std::uint64_t>(bits.data() + byte, std::min<std::uint64_t>(8, bits.size() - byte));
}

Error moved_from() { return Error{Errc::bad_parameter, "sets: the index was moved from"}; }

}  // namespace

bool SetIndexShape::valid() const noexcept {
  return column.valid() && slots <= kMaxSlots && slots != 0 && slots == slots_for(slots) &&
         column.bits <= (std::uint64_t{1} << 60) / slots;
}

Result<SetIndexShape> SetIndexShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 3) return wrong_count(kFamily, 3, numbers.size());
  const auto column = BloomShape::from(numbers.first(2));
  if (!column) return column.error();
  const SetIndexShape shape{*column, numbers[2]};
  if (!shape.valid()) return out_of_range(kFamily, "columns", numbers[2]);
  return shape;
}

// ------------------------------------------------------------------------------------------------------------- queries

std::size_t SetIndexProbes::find(std::string_view name) const noexcept {
  if (name.empty()) return sets_.size();
  return static_cast<std::size_t>(
      std::find_if(sets_.begin(), sets_.end(), [&](const Set& set) { return set.name == name; }) - sets_.begin());
}

double SetIndexProbes::false_sets() const {
  double sum = 0;
  for (const Set& set : sets_) {
    if (!set.name.empty()) sum += shape_.column.fpr(static_cast<double>(set.keys));
  }
  return sum;
}

void SetIndexProbes::may_contain(Bytes key, std::span<std::uint64_t> answers) const noexcept {
  std::uint64_t digest = 0;
  hash_many(hasher_, std::span(&key, 1), std::span(&digest, 1));
  may_contain(std::span<const std::uint64_t>(&digest, 1), answers);
}

void SetIndexProbes::may_contain(std::span<const std::uint64_t> digests,
                                 std::span<std::uint64_t> answers) const noexcept {
  assert(answers.size() >= digests.size() * words());
  if (table_ == nullptr) {
    std::fill_n(answers.begin(), digests.size() * words(), ~std::uint64_t{0});
    return;
  }
  constexpr std::size_t kAhead = 4;  // keys of some 7 rows each under way
  std::array<Rows, kAhead> ring;
  for (std::size_t i = 0; i < digests.size() + kAhead; ++i) {
    Rows& rows = ring[i % kAhead];
    if (i >= kAhead) rows.intersect(shape_, table_, answers.data() + (i - kAhead) * words());
    if (i >= digests.size()) continue;
    rows.find(shape_, digests[i]);
    rows.prefetch(shape_, table_);
  }
}

bool SetIndexProbes::any_may_contain(std::uint64_t digest) const noexcept {
  if (table_ == nullptr) return true;
  Rows rows;
  rows.find(shape_, digest);
  for (std::uint64_t word = 0; word < words(); ++word) {
    std::uint64_t all = ~std::uint64_t{0};
    for (std::uint32_t i = 0; i < shape_.column.probes; ++i) all &= load<std::uint64_t>(table_ + rows.at[i] + word * 8);
    if (all != 0) return true;
  }
  return false;
}

void SetIndexProbes::prefetch(std::uint64_t digest) const noexcept {
  if (table_ == nullptr) return;
  Rows rows;
  rows.find(shape_, digest);
  rows.prefetch(shape_, table_);
}

Header SetIndexProbes::header() const {
  Header header = Header::of(hasher_);
  header.kind = Kind::sets;
  header.params = shape_.numbers();
  for (const Set& set : sets_) header.record.keys += set.keys;
  header.record.about = about_;
  return header;
}

// For each column in use: its number, 8 bytes; keys, 8; length of the name, 8; the name.
std::vector<std::byte> SetIndexProbes::names() const {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const Set& set = sets_[i];
    if (set.name.empty()) continue;
    std::array<std::byte, 24> numbers;
    store<std::uint64_t>(numbers.data(), i);
    store<std::uint64_t>(numbers.data() + 8, set.keys);
    store<std::uint64_t>(numbers.data() + 16, set.name.size());
    out.insert(out.end(), numbers.begin(), numbers.end());
    const Bytes name = bytes_of(set.name);
    out.insert(out.end(), name.begin(), name.end());
  }
  return out;
}

Result<SetIndexView> SetIndexView::over(const Header& header, const AnyHasher& hasher) {
  const auto bad = [](const std::string& fact) { return Error{Errc::bad_parameter, "sets: " + fact}; };
  if (header.kind != Kind::sets) {
    return Error{Errc::mismatch, "a " + std::string(name_of(header.kind)) + " filter is not an index of sets"};
  }
  const auto shape = SetIndexShape::from(header.params);
  if (!shape) return shape.error();
  if (header.sections.size() != 2) {
    return bad("a matrix and names expected, not " + std::to_string(header.sections.size()) + " sections");
  }
  if (header.sections[0].type != 0 || header.sections[1].type != 1) {
    return Error{Errc::unsupported, "sets: unknown section type"};
  }
  const Bytes table = header.sections[0].bytes;
  if (table.size() != shape->bytes()) {
    return bad("the shape needs " + std::to_string(shape->bytes()) + " bytes, the matrix has " +
               std::to_string(table.size()));
  }
  SetIndexView view(*shape, hasher);
  view.table_ = table.data();
  view.about_ = header.record.about;
  view.sets_.resize(shape->slots);
  Bytes names = header.sections[1].bytes;
  for (std::uint64_t next = 0; !names.empty();) {
    if (names.size() < 24) return bad("the names are cut short");
    const auto column = load<std::uint64_t>(names.data());
    const auto keys = load<std::uint64_t>(names.data() + 8);
    const auto size = load<std::uint64_t>(names.data() + 16);
    names = names.subspan(24);
    if (column < next || column >= shape->slots) return bad("column " + std::to_string(column) + " out of order");
    if (size == 0 || size > kMaxName || size > names.size()) {
      return bad("a name of " + std::to_string(size) + " bytes, room for " + std::to_string(names.size()));
    }
    view.sets_[column] = {std::string(reinterpret_cast<const char*>(names.data()), size), keys};
    names = names.subspan(size);
    next = column + 1;
  }
  return view;
}

// ------------------------------------------------------------------------------------------------------------ changing

SetIndex::SetIndex(BloomShape column, const AnyHasher& hasher) : SetIndexProbes({column, 64}, hasher) {
  if (!shape_.valid()) throw std::bad_alloc();  // the bytes of the matrix would not fit into 64 bits
  widen(64);
}

SetIndex::SetIndex(const SetIndexView& other) : SetIndexProbes(other) {
  if (table_ == nullptr) return;
  memory_ = Memory(shape_.bytes());
  std::memcpy(memory_.data(), table_, shape_.bytes());
  table_ = memory_.data();
}

void SetIndex::widen(std::uint64_t slots) {
  Memory wider(shape_.column.bits * slots / 8);
  if (table_ != nullptr) {
    for (std::uint64_t row = 0; row < shape_.column.bits; ++row) {
      std::memcpy(wider.data() + row * slots / 8, table_ + row * shape_.slots / 8, shape_.slots / 8);
    }
  }
  sets_.resize(slots);
  memory_ = std::move(wider);
  table_ = memory_.data();
  shape_.slots = slots;
}

Result<void> SetIndex::add(std::span<const Column> columns) {
  if (table_ == nullptr) return moved_from();
  std::set<std::string_view> names;
  for (const Set& set : sets_) {
    if (!set.name.empty()) names.insert(set.name);
  }
  for (const Column& column : columns) {
    if (column.name.empty() || column.name.size() > kMaxName) {
      return Error{Errc::bad_parameter, "sets: a name has 1 to " + std::to_string(kMaxName) + " bytes"};
    }
    if (!names.insert(column.name).second) {
      return Error{Errc::bad_parameter, "sets: there are two sets '" + column.name + "'"};
    }
    if (column.bits.size() != shape_.column.bytes()) {
      return Error{Errc::mismatch, "sets: the filter of '" + column.name + "' has " +
                                       std::to_string(column.bits.size()) + " bytes, the index needs " +
                                       std::to_string(shape_.column.bytes())};
    }
  }
  // Whatever takes memory comes before the first change.
  std::vector<Set> named;
  named.reserve(columns.size());
  for (const Column& column : columns) named.push_back({column.name, column.keys});
  if (names.size() > kMaxSlots) return Error{Errc::full, "sets: more than " + std::to_string(kMaxSlots)};
  if (names.size() > shape_.slots) {
    SetIndexShape wider = shape_;
    wider.slots = slots_for(names.size());
    if (!wider.valid()) return Error{Errc::full, "sets: too large a matrix"};
    widen(wider.slots);
  }
  // The free columns of a word at a time: 64 filters' words become 64 rows' words.
  std::size_t next = 0;
  for (std::uint64_t word = 0; word < shape_.words() && next < columns.size(); ++word) {
    std::array<const Column*, 64> in{};
    bool any = false;
    for (std::size_t i = 0; i < 64 && next < columns.size(); ++i) {
      Set& set = sets_[word * 64 + i];
      if (!set.name.empty()) continue;
      set = std::move(named[next]);
      in[i] = &columns[next++];
      any = true;
    }
    if (!any) continue;
    for (std::uint64_t row = 0; row < shape_.column.bits; row += 64) {
      std::array<std::uint64_t, 64> square;
      for (std::size_t i = 0; i < 64; ++i) square[i] = in[i] == nullptr ? 0 : word_at(in[i]->bits, row / 8);
      transpose(square);
      std::byte* at = memory_.data() + row * shape_.slots / 8 + word * 8;
      for (std::size_t i = 0; i < std::min<std::uint64_t>(64, shape_.column.bits - row); ++i) {
        if (square[i] != 0) detail::set_bits(at, square[i]);
        at += shape_.slots / 8;
      }
    }
  }
  return {};
}

bool SetIndex::remove(std::string_view name) {
  const std::size_t column = find(name);
  if (column == sets_.size()) return false;
  const auto kept = static_cast<std::byte>(~(1u << column % 8));
  std::byte* at = memory_.data() + column / 8;
  for (std::uint64_t row = 0; row < shape_.column.bits; ++row, at += shape_.slots / 8) *at &= kept;
  sets_[column] = {};
  return true;
}

Result<void> SetIndex::save(const std::string& path) const {
  if (table_ == nullptr) return moved_from();
  const std::vector<std::byte> directory = names();
  Header h = header();
  h.sections = {{.type = 0, .bytes = memory_.bytes().first(shape_.bytes())}, {.type = 1, .bytes = directory}};
  return write_container(path, h);
}

}  // namespace perhaps
