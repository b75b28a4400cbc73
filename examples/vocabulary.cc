// Feature id -> code: the vocabulary of a model, without its words.
//
// A model that was trained on text knows some of its features by a small code: here the 12 bits of a cluster, for
// 200,000 words. A hash table of them keeps every word; the map keeps 12 bits and 2^-10 of doubt per word. A word that
// the model has never seen is found to be unknown 1023 times in 1024, and otherwise gets some code, as a hashed feature
// would.
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "perhaps/ribbon_map.h"

int main() {
  constexpr std::uint64_t kWords = 200'000;
  constexpr std::uint64_t kUnknown = 100'000;
  std::unordered_map<std::string, std::uint64_t> table;
  std::vector<std::string> words;
  std::vector<std::uint64_t> codes;
  std::uint64_t table_bytes = 0;
  for (std::uint64_t i = 0; i < kWords; ++i) {
    words.push_back("feature:" + std::to_string(i * 2654435761u % 4294967291u));
    codes.push_back((i * 0x9e3779b97f4a7c15u) >> 52);
    if (!table.emplace(words.back(), codes.back()).second) return std::fprintf(stderr, "a word occurs twice\n"), 1;
    // The node and the bucket, and the text if it does not fit into the string.
    table_bytes += sizeof(std::pair<std::string, std::uint64_t>) + 3 * sizeof(void*) +
                   (words.back().size() > 15 ? words.back().size() + 1 : 0);
  }
  const auto map = perhaps::RibbonMap::build(std::span<const std::string>(words), codes,
                                             {.value_bits = 12, .check_bits = 10}, {.threads = 2});
  if (!map) return std::fprintf(stderr, "%s\n", map.error().detail.c_str()), 1;

  // A whole column at once, as a model would.
  std::vector<std::uint64_t> values(kWords);
  std::vector<std::uint64_t> found(kWords / perhaps::kBatch + 1);
  map->find(std::span<const std::string>(words), values, found);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kWords; ++i)
    wrong += values[i] != table.at(words[i]) || (found[i / 64] >> i % 64 & 1) == 0;
  std::uint64_t guessed = 0;
  for (std::uint64_t i = 0; i < kUnknown; ++i) guessed += map->find("unknown:" + std::to_string(i)).has_value();

  std::printf(
      "%llu words: hash table %.1f bytes each, map %.2f; %llu wrong codes, %llu of %llu unknown words got one\n",
      static_cast<unsigned long long>(kWords), static_cast<double>(table_bytes) / kWords,
      static_cast<double>(map->byte_size()) / kWords, static_cast<unsigned long long>(wrong),
      static_cast<unsigned long long>(guessed), static_cast<unsigned long long>(kUnknown));
  // n = 1e5, p = 2^-10, z = 5: 98 +- 49.
  const bool kept = wrong == 0 && guessed < 98 + 49 && 20 * map->byte_size() < table_bytes;
  if (!kept) std::fprintf(stderr, "a claim does not hold\n");
  return kept ? 0 : 1;
}
