// Which certificates are revoked? All that were ever issued are known, so the answer can be exact: an Exact set of the
// revoked ones, by issuer, beside a Bloom filter and a ribbon filter of the same certificates, which call some good
// ones revoked. Issuers differ: a large one revoked one certificate in 20, most revoked next to none.
//
//   revocation [certificates]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/exact.h"
#include "perhaps/line_bloom.h"
#include "perhaps/ribbon.h"

namespace {

// Of issuer i, one certificate in so many is revoked.
constexpr unsigned kOneIn[] = {20, 500, 500, 300, 1000, 200, 2000, 1000, 3000, 100};

template <class Filter, class Query>
std::uint64_t report(const char* name, const Filter& filter, const std::vector<std::string_view>& all,
                     const std::vector<bool>& revoked, Query query) {
  std::uint64_t missed = 0;
  std::uint64_t wrongly = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool said = query(filter, all[i]);
    missed += revoked[i] && !said;
    wrongly += !revoked[i] && said;
  }
  std::printf("  %-12s %10llu bytes %8llu good ones refused, %llu revoked ones missed\n", name,
              static_cast<unsigned long long>(filter.byte_size()), static_cast<unsigned long long>(wrongly),
              static_cast<unsigned long long>(missed));
  return missed + wrongly;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 200'000;
  std::vector<std::string> texts;
  std::vector<bool> revoked;
  std::uint64_t random = 1;
  for (std::size_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::size_t issuer = (random >> 40) % std::size(kOneIn) * ((random >> 33) % 4 != 0);
    texts.push_back("issuer" + std::to_string(issuer) + "\t" + std::to_string(random));
    revoked.push_back((random >> 44) % kOneIn[issuer] == 0);
  }
  const std::vector<std::string_view> all(texts.begin(), texts.end());
  std::vector<std::string_view> members;
  for (std::size_t i = 0; i < count; ++i) {
    if (revoked[i]) members.push_back(all[i]);
  }
  using Keys = std::span<const std::string_view>;
  std::printf("%zu certificates, %zu revoked\n", all.size(), members.size());

  perhaps::LineBloom bloom({.keys = members.size(), .fpr = 0.01});
  bloom.insert(Keys(members));
  const auto may = [](const auto& filter, std::string_view key) { return filter.may_contain(key); };
  const auto is = [](const auto& set, std::string_view key) { return set.contains(key); };
  report("Bloom, 1 %", bloom, all, revoked, may);
  const auto ribbon = perhaps::Ribbon::build(Keys(members), {.fpr = 0.01});
  if (!ribbon) return std::puts(ribbon.error().detail.c_str()), 1;
  report("ribbon, 1 %", *ribbon, all, revoked, may);
  const auto exact = perhaps::Exact::build(Keys(members), Keys(all));
  const auto by_issuer = perhaps::Exact::build(Keys(members), Keys(all), {.parts = {.field = 1}});
  if (!exact || !by_issuer) return std::puts("no set was built"), 1;
  std::uint64_t wrong = report("exact", *exact, all, revoked, is);
  wrong += report("by issuer", *by_issuer, all, revoked, is);
  return wrong == 0 && by_issuer->byte_size() < exact->byte_size() ? 0 : 1;
}
