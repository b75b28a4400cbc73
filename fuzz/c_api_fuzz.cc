// Random sequences of calls of the C API on a handful of handles, against what was inserted: no crash, no leak, no key
// that was inserted and then answers *no*, no status without a message; what a filter writes, it reads again.
//
// input: a byte for the call, one for the handles and one for its argument, until it ends
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "perhaps.h"

namespace {

void demand(bool truth) {
  if (!truth) std::abort();
}

// Null, or a filter with the numbers (as integers and as text) that it must still have.
struct Slot {
  perhaps_filter* filter = nullptr;
  std::set<std::uint64_t> in{};
  bool erased = false;           // an erase may have taken a neighbour's place: nothing is owed any more
  bool damaged = false;          // read without a look at its checksum: what it writes may be refused
  const char* format = nullptr;  // of another system

  void put(Slot made) {
    perhaps_free(filter);
    *this = std::move(made);
  }
};

struct Text {
  explicit Text(std::uint64_t number) : text(std::to_string(number)) {}
  perhaps_key key() const { return {text.data(), text.size()}; }
  std::string text;
};

bool done(perhaps_status status) {
  demand(status == PERHAPS_OK || *perhaps_last_error() != '\0');
  demand(status != PERHAPS_INTERNAL && status <= PERHAPS_INTERNAL);
  return status == PERHAPS_OK;
}

perhaps_description description_of(const perhaps_filter* filter) {
  perhaps_description d{};
  d.size = sizeof d;
  demand(perhaps_describe(filter, &d) == PERHAPS_OK);
  return d;
}

void check(const Slot& slot) {
  if (slot.filter == nullptr || slot.erased || slot.in.empty()) return;
  if (slot.format == nullptr && std::strcmp(description_of(slot.filter).family, "window") == 0) return;  // it forgets
  const std::vector<std::uint64_t> numbers(slot.in.begin(), slot.in.end());
  std::vector<std::uint64_t> answers((numbers.size() + 63) / 64);
  if (slot.format == nullptr) {
    demand(perhaps_query_integers(slot.filter, numbers.data(), numbers.size(), answers.data()) == PERHAPS_OK);
    for (std::size_t i = 0; i < numbers.size(); ++i) demand(answers[i / 64] >> i % 64 & 1);
  }
  std::vector<Text> texts(numbers.begin(), numbers.end());
  std::vector<perhaps_key> keys;
  for (const Text& text : texts) keys.push_back(text.key());
  demand(perhaps_query(slot.filter, keys.data(), keys.size(), answers.data()) == PERHAPS_OK);
  for (std::size_t i = 0; i < numbers.size(); ++i) demand(answers[i / 64] >> i % 64 & 1);
}

std::string bytes_of(const perhaps_filter* filter) {
  std::size_t size = 0;
  demand(perhaps_to_bytes(filter, nullptr, 0, &size) == PERHAPS_TOO_SMALL);
  std::string bytes(size, '\0');
  demand(perhaps_to_bytes(filter, bytes.data(), size, &size) == PERHAPS_OK && size == bytes.size());
  return bytes;
}

constexpr unsigned char kSecret[16] = {7};

perhaps_options options_of(unsigned argument) {
  perhaps_options options{};
  options.size = sizeof options;
  perhaps_entry entry{};
  entry.size = sizeof entry;
  if (perhaps_family_at(argument % 16, &entry) == 1) options.family = entry.name;
  options.keys = argument % 7 * 50;
  if (argument % 5 == 1) options.fpr = 1e-4;
  if (argument % 11 == 1) options.bits_per_key = 8;
  if (argument % 13 == 1) options.max_bytes = 4096;
  if (argument % 17 == 1) options.guard_bits = 2;
  if (argument % 3 == 1) options.secret = kSecret;
  options.threads = argument % 3;
  return options;
}

// Some numbers that overlap from call to call.
std::vector<std::uint64_t> numbers_of(unsigned argument) {
  std::vector<std::uint64_t> numbers;
  for (unsigned i = 0; i < argument % 80; ++i) numbers.push_back(argument / 4 * 16 + i);
  return numbers;
}

void build(Slot& slot, unsigned argument, bool foreign) {
  perhaps_options options = options_of(argument);
  const std::vector<std::uint64_t> numbers = numbers_of(argument);
  std::vector<Text> texts(numbers.begin(), numbers.end());
  std::vector<perhaps_key> keys;
  for (const Text& text : texts) keys.push_back(text.key());
  perhaps_filter* made = nullptr;
  if (foreign) {
    perhaps_entry entry{};
    entry.size = sizeof entry;
    if (perhaps_format_at(argument % 32, &entry) == 0) return;
    options = {};
    options.size = sizeof options;
    options.format = entry.name;
    if (done(perhaps_build(&options, keys.data(), keys.size(), &made)))
      slot.put({.filter = made, .in = {numbers.begin(), numbers.end()}, .format = entry.name});
    // Seldom: the rate of another system's filter is measured, with 2^18 lookups.
    if (made != nullptr && argument % 64 == 2) demand(std::strcmp(description_of(made).format, entry.name) == 0);
    return;
  }
  if (done(perhaps_build(&options, keys.data(), keys.size(), &made))) {
    std::vector<std::uint64_t> answers(numbers.size() / 64 + 1);
    demand(perhaps_query(made, keys.data(), keys.size(), answers.data()) == PERHAPS_OK);
    slot.put({.filter = made, .erased = true});
  }
}

// Both forms of every number, so that every kind of query can be checked. What went in before it was full is owed.
void insert(Slot& slot, unsigned argument) {
  for (const std::uint64_t number : numbers_of(argument)) {
    const Text text(number);
    const perhaps_key key = text.key();
    std::size_t inserted = 7;
    if (!done(perhaps_insert(slot.filter, &key, 1, &inserted))) return;
    demand(inserted == 1);
    if (!done(perhaps_insert_integers(slot.filter, &number, 1, nullptr))) return;
    slot.in.insert(number);
  }
}

void reopen(const Slot& from, Slot& to, unsigned argument) {
  std::string bytes = bytes_of(from.filter);
  perhaps_open_options options{};
  options.size = sizeof options;
  options.format = from.format;
  const bool own = from.format == nullptr;
  if (own && std::strcmp(description_of(from.filter).hash, "siphash-1-3") == 0) options.secret = kSecret;
  perhaps_filter* made = nullptr;
  if (argument % 4 != 0) {
    // Foreign formats have parameters that their bytes do not tell.
    const bool read = done(perhaps_from_bytes(bytes.data(), bytes.size(), &options, &made));
    demand(read || !own || from.damaged);
    if (read) to.put({made, from.in, from.erased, false, from.format});
    return;
  }
  if (!bytes.empty()) bytes[argument * 37 % bytes.size()] ^= static_cast<char>(1 + argument / 4);
  if (argument % 8 == 0) options.flags = PERHAPS_NO_VERIFY;
  if (!done(perhaps_from_bytes(bytes.data(), bytes.size(), &options, &made))) return;
  to.put({made, {}, true, true, from.format});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<Slot, 3> slots;
  for (std::size_t at = 0; at + 3 <= std::min<std::size_t>(size, 3 * 64); at += 3) {
    Slot& slot = slots[data[at + 1] % 3];
    Slot& other = slots[data[at + 1] / 3 % 3];
    const unsigned argument = data[at + 2];
    const unsigned call = data[at] % 11;
    if (call == 0) {
      const perhaps_options options = options_of(argument);
      perhaps_filter* made = nullptr;
      if (done(perhaps_new(&options, &made))) slot.put({.filter = made});
      continue;
    }
    if (call <= 2) {
      build(slot, argument, call == 2);
      continue;
    }
    if (slot.filter == nullptr) continue;
    if (call <= 5) insert(slot, argument);
    if (call == 6) reopen(slot, other, argument);
    if (call == 7) {
      perhaps_filter* copy = nullptr;
      demand(perhaps_copy(slot.filter, &copy) == PERHAPS_OK);
      other.put({copy, slot.in, slot.erased, slot.damaged, slot.format});
    }
    if (call == 8) {
      perhaps_erased erased{};
      erased.size = sizeof erased;
      const auto numbers = numbers_of(argument);
      if (done(perhaps_erase_integers(slot.filter, numbers.data(), numbers.size(), &erased))) {
        demand(erased.removed + erased.absent + erased.kept == numbers.size());
        slot.erased = true;
      }
    }
    if (call == 9 && other.filter != nullptr && done(perhaps_merge(slot.filter, other.filter))) {
      slot.in.insert(other.in.begin(), other.in.end());
      slot.erased |= other.erased;
      slot.damaged |= other.damaged;
    }
    if (call == 10 && other.filter != nullptr && done(perhaps_intersect(slot.filter, other.filter))) {
      std::set<std::uint64_t> both;
      std::set_intersection(slot.in.begin(), slot.in.end(), other.in.begin(), other.in.end(),
                            std::inserter(both, both.end()));
      slot.in = both;
    }
    check(slot);
    check(other);
  }
  for (Slot& slot : slots) slot.put({});
  return 0;
}
