// Why a filter answers as it does: the digest of a key, and every bit, counter, slot or parity that a lookup reads.
// `perhaps explain` and the page in the browser print this. Private, as own_filter.h: nothing can be added to the
// virtual functions of AnyFilter without breaking the ABI.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/format/format.h"

namespace perhaps {

// One thing that a lookup reads.
struct Check {
  std::string_view what;  // "bit", "counter", "slot", "stash", "cell" or "column"
  std::uint64_t at = 0;   // its first bit in the table, counted from the lowest bit of byte 0
  std::uint32_t bits = 1;
  // Of a counter: at least so much. Of a cell: the generations that the cells before it have in common.
  std::uint64_t wanted = 0;
  std::uint64_t found = 0;    // of a column: the parity of its bits under the coefficients
  bool holds = false;         // found is what was wanted; of a cell: the two have a generation in common
  std::uint64_t content = 0;  // of a column: its bits from the start of the key on, at most 64
};

// One table that was queried: the only one of most filters, or a link of a chain, or a filter inside a file.
struct ExplainedPart {
  std::string name;  // empty for the only one
  Facts steps;       // from the digest to the place, in order: "line" and "17 of 2,504"
  // "all" checks must hold for *perhaps*, or "any"; "xor": what they found, XORed together, must be what each wanted;
  // "none": this format is not shown step by step, or the table answers *perhaps* to everything
  std::string_view rule = "none";
  std::vector<Check> checks;
  bool perhaps = false;
};

struct Explanation {
  std::string family;
  std::string hash;
  std::optional<std::uint64_t> digest;  // nothing for other systems, which hash in their own way
  std::optional<std::uint64_t> word;    // what the layout is given: the digest, multiplied
  std::vector<ExplainedPart> parts;
  bool perhaps = false;
};

// Of our own filter.  REQUIRES: filter.digests() != nullptr, and its hasher made the digest
Explanation explain(const AnyFilter& filter, std::uint64_t digest);
// The digest of a key under the hasher of `filter`. Integers are not their bytes.  REQUIRES: as above
std::uint64_t digest_for(const AnyFilter& filter, Bytes key);
std::uint64_t digest_for(const AnyFilter& filter, std::uint64_t integer);

// Of a file of another system: which of its filters answer *perhaps*, and the bits that the classic ones read.
// `described` is opened.whole->describe(), which reads the whole table: once for many keys.
Explanation explain_foreign(const format::Opened& opened, const Description& described, Bytes key);

}  // namespace perhaps
