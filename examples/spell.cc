// A spell checker in one byte per word: the use that made Bloom's filter famous (McIlroy's `spell` had 75,000 words in
// 64 KB). The words go into a ribbon filter, the smallest family; a misspelt word passes with probability 1 in 250.
//
//   spell [word list [text]]
#include <cctype>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/ribbon.h"

namespace {

constexpr const char* kFallback =
    "a all and be but can could do find for from if in is it less letters little many no of one or pass says some than "
    "that the there this to two what will with word words you your checker spell misspelt memory";

std::vector<std::string> words_in(std::istream& in) {
  std::vector<std::string> words;
  std::string word;
  for (char c; in.get(c);) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream list(argc > 1 ? argv[1] : "/usr/share/dict/words");
  std::istringstream fallback(kFallback);
  const std::vector<std::string> known = words_in(list ? static_cast<std::istream&>(list) : fallback);
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto dictionary = perhaps::Ribbon::build(std::span<const std::string_view>(views), {.fpr = 1.0 / 250});
  if (!dictionary) return std::puts(dictionary.error().detail.c_str()), 1;
  std::printf("%llu words in %llu bytes\n", static_cast<unsigned long long>(dictionary->shape().keys),
              static_cast<unsigned long long>(dictionary->byte_size()));
  for (const std::string& word : known) {
    if (!dictionary->may_contain(word)) return std::printf("'%s' was lost\n", word.c_str()), 1;
  }

  std::istringstream sample("A spell checker will find that teh word has a letter or two in the wrogn place");
  std::ifstream file(argc > 2 ? argv[2] : "");
  bool found = false;
  for (const std::string& word : words_in(argc > 2 ? static_cast<std::istream&>(file) : sample)) {
    if (dictionary->may_contain(word)) continue;
    std::printf("  %s\n", word.c_str());
    found |= word == "wrogn";
  }
  return argc > 2 || found ? 0 : 1;
}
