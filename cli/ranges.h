// Range filters in the commands: built from keys, queried, merged, and measured.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "any_file.h"
#include "build_keys.h"
#include "keys.h"
#include "perhaps/file/range_file.h"

namespace perhaps::cli {

// The keys of a range filter, as numbers: themselves, or the codes of text.
class RangeKeys {
 public:
  // Reads all of them; text is kept until it has its code.
  explicit RangeKeys(const KeyOptions& options) : options_(options) {}
  void read(Keys& keys, const char* label);

  std::uint64_t count() const noexcept { return count_; }
  // Once.
  RangeFilter filter(const RangeRequest& request, std::uint64_t seed) &&;
  // By the code of a filter that has all of them.
  std::vector<std::uint64_t> numbers(const RangeView& filter) const;

 private:
  std::vector<Bytes> texts() const;

  const KeyOptions& options_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> numbers_;
  std::string text_;                 // one after the other
  std::vector<std::uint64_t> ends_;  // in text_
};

// perhaps build --filter range
Description build_range(const BuildArgs& options, Keys& keys, std::uint64_t seed, Built& built);

// perhaps query --range, --ranges
struct RangeQuestions {
  std::vector<std::string> ranges;  // A..B
  std::string file;                 // of such lines, or of two columns
  bool any() const noexcept { return !ranges.empty() || !file.empty(); }

  bool invert = false;
  bool count = false;
  bool quiet = false;
  bool answers = false;
  bool json = false;
  std::uint64_t most = UINT64_MAX;
};
// Throws Failure unless the keys of the filter, numbers or text, are what the options read.
void check_coding(const RangeView& filter, const KeyOptions& options, const std::string& path);
// Returns the exit code.
int query_ranges(const RangeQuestions& questions, const AnyFile& file, const std::string& path,
                 const KeyOptions& options);

// perhaps merge
void merge_ranges(const std::vector<std::string>& paths, const std::string& output, const std::string& note,
                  const OpenArgs& args, bool json);

// perhaps verify: ranges without a key, half of them anywhere between the first and the last key, half right behind a
// key; and how many are answered *perhaps*.
struct RangeTally {
  std::uint64_t size = 0;  // numbers in each
  std::uint64_t asked = 0;
  std::uint64_t perhaps = 0;
};
RangeTally ask_ranges(const RangeView& filter, std::vector<std::uint64_t> keys, std::uint64_t size, std::uint64_t count,
                      std::uint64_t seed);

}  // namespace perhaps::cli
