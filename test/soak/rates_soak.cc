// Promise: every family, for 1 to 1e7 keys and rates from 0.5 to 1e-12, has the rate that its model says, or refuses
// the request. Would notice: a floor that the model does not know, such as positions that depend on too few bits.
//
// Two estimates. Random: up to 4e8 random words for each row, over many filters; it sees rates, and floors, down to
// 1e-8. Near: queries that share 32 bits of their word with a key (the low half, the high half, every other byte),
// which is where such floors come from. A share p of perhaps among them is n * 2^-32 * p of the rate, so 2^20 of
// them see floors of n * 1e-15. Together they must not exceed the model by more than 5 sigma and 5 %, the spread of
// one filter. Seeds are fixed: stream 1 + filter for keys, 10^6 + filter for queries.
#include <gtest/gtest.h>

#include "perhaps/any_filter.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

constexpr std::uint64_t kNear = 1 << 20;
constexpr std::uint64_t kMasks[] = {0x00000000ffffffff, 0xffffffff00000000, 0x00ff00ff00ff00ff};  // what stays

std::unique_ptr<AnyOwner> filter_of(Kind kind, std::uint64_t keys, double fpr, std::span<const std::uint64_t> digests) {
  auto builder = make_builder(kind, {.keys = keys, .fpr = fpr}, Hash());
  EXPECT_TRUE(builder) << builder.error().detail;
  {
    const auto lanes = (*builder)->lanes(1);
    EXPECT_TRUE(lanes[0]->insert_digests(digests));
  }
  auto filter = (*builder)->finish();
  EXPECT_TRUE(filter) << filter.error().detail;
  return *std::move(filter);
}

void expect_row(const Family& family, std::uint64_t keys, double fpr) {
  const auto size = size_of(family.kind, {.keys = keys, .fpr = fpr});
  if (!size) {
    std::printf("| %-8s | %8llu | %5.0e | %s |\n", std::string(family.name).c_str(),
                static_cast<unsigned long long>(keys), fpr, size.error().detail.c_str());
    return;
  }
  if (size->bytes > std::uint64_t{1} << 31) return;  // block at 1e-12: nobody has so much room
  const double wanted = std::clamp(1000 / size->fpr, 1e6, 4e8 / std::max(1.0, static_cast<double>(keys) / 1e6));
  const std::uint64_t filters = std::clamp<std::uint64_t>(2'000'000 / keys, 1, 400);
  const auto each = static_cast<std::uint64_t>(wanted / static_cast<double>(filters));
  constexpr std::size_t kColumn = 4096;
  std::vector<std::uint64_t> column(kColumn), answers(kColumn / kBatch), mine(keys);
  std::uint64_t perhaps = 0, asked = 0;
  Mean rates;
  std::array<std::uint64_t, std::size(kMasks)> near{};
  std::uint64_t near_asked = 0;
  constexpr std::uint64_t kUnspread = detail::unspread_of<Hash>();
  for (std::uint64_t f = 0; f < filters; ++f) {
    for (std::uint64_t i = 0; i < keys; ++i) mine[i] = Stream{1 + f}.at(i);
    const auto filter = filter_of(family.kind, keys, fpr, mine);
    const DigestProbe& probe = *filter->digests();
    std::uint64_t here = 0;
    for (std::uint64_t from = 0; from < each; from += kColumn, asked += kColumn) {
      for (std::size_t i = 0; i < kColumn; ++i) column[i] = Stream{1'000'000 + f}.at(from + i);
      probe.may_contain(column, answers);
      here += count_ones(answers);
    }
    perhaps += here;
    const auto queried = (each + kColumn - 1) / kColumn * kColumn;
    rates.add(static_cast<double>(here) / static_cast<double>(queried));
    for (std::uint64_t from = 0; from < kNear / filters; from += kColumn, near_asked += kColumn) {
      for (std::size_t m = 0; m < std::size(kMasks); ++m) {
        for (std::size_t i = 0; i < kColumn; ++i) {
          const std::uint64_t key = mine[(from + i) % keys] * Hash::kSpread;
          const std::uint64_t other = Stream{2'000'000 + f}.at(from + i);
          column[i] = ((key & kMasks[m]) | (other & ~kMasks[m])) * kUnspread;
        }
        probe.may_contain(column, answers);
        near[m] += count_ones(answers);
      }
    }
  }
  const double model = size->fpr;
  const double expected = model * static_cast<double>(asked);
  const double measured = static_cast<double>(perhaps) / static_cast<double>(asked);
  // Of the near queries, the share of ordinary false positives is part of the first estimate.
  double floor = 0;
  for (const std::uint64_t count : near) {
    const double share = static_cast<double>(count) / static_cast<double>(near_asked);
    const double more = share - model - kSigmas * binomial_error(model, static_cast<double>(near_asked));
    floor += std::max(0.0, more) * static_cast<double>(keys) * 0x1p-32;
  }
  std::printf("| %-8s | %8llu | %5.0e | %9.3e | %9.3e of %.0e | %9.3e |\n", std::string(family.name).c_str(),
              static_cast<unsigned long long>(keys), fpr, model, measured, static_cast<double>(asked), floor);
  std::fflush(stdout);
  const double sigma =
      std::max(std::sqrt(std::max(expected, 1.0)) / static_cast<double>(asked), filters > 10 ? rates.error() : 0.0);
  EXPECT_LE(measured, 1.05 * model + kSigmas * sigma) << family.name << ", " << keys << " keys at " << fpr;
  EXPECT_LE(floor, 1.3 * model) << family.name << ", " << keys << " keys at " << fpr;
}

TEST(RatesSoak, EveryFamilyEveryNumberOfKeysEveryRate) {
  std::printf("| family | keys | asked for | model | measured | found near keys |\n|---|---|---|---|---|---|\n");
  for (const Family& family : families()) {
    for (const std::uint64_t keys : {1, 2, 3, 10, 30, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000}) {
      for (const double fpr : {0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12}) {
        expect_row(family, keys, fpr);
      }
    }
  }
}

}  // namespace
}  // namespace perhaps::test
