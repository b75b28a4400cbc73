// The other ways of `perhaps dedup`: what a file remembers (--seen), without any loss (--exact), and documents most of
// whose n-grams were seen (--ngrams).
#pragma once
#include <cstdint>
#include <string>

#include "key_options.h"
#include "options.h"

namespace perhaps::cli {

struct DedupArgs {
  KeyOptions keys;
  std::uint64_t window = 0;
  std::uint64_t milliseconds = 0;
  std::uint64_t keys_expected = 0;
  double fpr = 1e-6;
  std::string suspects;
  std::string seen;
  std::uint64_t save_every = 1'000'000;
  bool exact = false;
  std::uint32_t ngrams = 0;
  double threshold = 0.8;
  Keyed keyed;
  std::uint32_t threads = 1;
  bool quiet = false;
  bool json = false;
};

int dedup_seen(DedupArgs& options);
int dedup_exact(DedupArgs& options);
int dedup_corpus(DedupArgs& options);

}  // namespace perhaps::cli
