#include "advise_sample.h"

#include <array>
#include <iterator>

#include "progress.h"

namespace perhaps::cli::advise {
namespace {

constexpr std::size_t kRandom = 1'000'000;
constexpr std::size_t kTimed = 100'000;

}  // namespace

Sample read_keys(Keys& keys, KeysAs as, std::uint64_t most) {
  Sample sample(most, KeyedHash(KeyedHash::new_secret()));
  Progress progress("reading", keys.stored_bytes());
  std::array<std::uint64_t, Parser::kColumn> digests;
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    digest_keys(sample.hasher(), as, batch.keys, digests);
    sample.add(std::span(digests).first(batch.keys.size()));
    return true;
  });
  sample.finish();
  return sample;
}

Sample imagined_keys(std::uint64_t keys, std::uint64_t most) {
  Sample sample(most, KeyedHash(KeyedHash::new_secret()));
  sample.imagine(keys);
  return sample;
}

// Keeps every 2^k-th of the decided queries, so that repeated queries keep their frequency.
Questions read_queries(Keys& queries, KeysAs as, const Sample& sample) {
  Questions questions;
  std::vector<std::uint64_t> kept;
  if (!queries.empty()) {
    Progress progress("queries", queries.stored_bytes());
    std::array<std::uint64_t, Parser::kColumn> digests;
    std::uint64_t stride = 1;
    queries.for_each(progress, [&](const Batch& batch, const Source*) {
      digest_keys(sample.hasher(), as, batch.keys, digests);
      questions.queries += batch.keys.size();
      for (const std::uint64_t d : std::span(digests).first(batch.keys.size())) {
        if (!sample.decides(d)) continue;
        questions.negative += !sample.has(d);
        if (questions.decided++ % stride != 0) continue;
        kept.push_back(d);
        if (kept.size() < 2 * kRandom) continue;
        for (std::size_t i = 0; i < kRandom; ++i) kept[i] = kept[2 * i];
        kept.resize(kRandom);
        stride *= 2;
      }
      return true;
    });
    std::copy_if(kept.begin(), kept.end(), std::back_inserter(questions.absent),
                 [&](std::uint64_t d) { return !sample.has(d); });
  }
  questions.real_asked = kept.size() >= kFewest;
  questions.real_absent = questions.absent.size() >= kFewest;
  if (!questions.real_absent) {
    questions.absent.clear();
    for (std::uint64_t i = 1; questions.absent.size() < kRandom; ++i) {
      const std::uint64_t d = mixed(i * 0x9e3779b97f4a7c15u);
      if (!sample.has(d)) questions.absent.push_back(d);
    }
  }
  const auto& timed = questions.real_asked ? kept : questions.absent;
  const std::size_t step = std::max<std::size_t>(timed.size() / kTimed, 1);
  for (std::size_t i = 0; i < timed.size(); i += step) questions.asked.push_back(timed[i]);
  return questions;
}

}  // namespace perhaps::cli::advise
