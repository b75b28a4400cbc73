// Which of 500 servers has this document? One lookup in a bit-sliced index, instead of a request to each server or a
// lookup in a filter for each. Servers come and go.
#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "perhaps/engine/set_index.h"

namespace {

constexpr std::uint64_t kServers = 500;
constexpr std::uint64_t kDocuments = 1000;  // per server

std::string document(std::uint64_t server, std::uint64_t i) { return std::to_string(server) + "/" + std::to_string(i); }

// What a server publishes: a filter of its documents.
perhaps::Bloom published_by(std::uint64_t server, perhaps::BloomShape shape) {
  perhaps::Bloom filter(shape);
  for (std::uint64_t i = 0; i < kDocuments; ++i) filter.insert(document(server, i));
  return filter;
}

}  // namespace

int main() {
  perhaps::SetIndex index(perhaps::Request{.keys = kDocuments, .fpr = 0.001}, perhaps::Hash());
  std::vector<perhaps::Bloom> filters;
  std::vector<perhaps::SetIndex::Column> columns;
  filters.reserve(kServers);
  for (std::uint64_t server = 0; server < kServers; ++server) {
    filters.push_back(published_by(server, index.shape().column));
    columns.push_back({"server-" + std::to_string(server), kDocuments, filters.back().bytes()});
  }
  if (const auto added = index.add(columns); !added) return std::puts(added.error().detail.c_str()), 1;

  std::vector<std::uint64_t> answer(index.words());
  std::uint64_t candidates = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const std::uint64_t home = i % kServers;
    index.may_contain(perhaps::bytes_of(document(home, i % kDocuments)), answer);
    if ((answer[home / 64] >> home % 64 & 1) == 0) return std::puts("the server of a document was missed"), 1;
    for (const std::uint64_t word : answer) candidates += static_cast<unsigned>(std::popcount(word));
  }
  std::printf("%llu servers, %.1f MB: %.3f candidates per document, %.3f by the model\n",
              static_cast<unsigned long long>(kServers), static_cast<double>(index.byte_size()) / 1e6,
              static_cast<double>(candidates) / 10'000, 1 + index.false_sets());

  index.remove("server-7");
  index.may_contain(perhaps::bytes_of(document(7, 1)), answer);
  if ((answer[0] >> 7 & 1) != 0) return std::puts("a removed server was still found"), 1;
  return static_cast<double>(candidates) / 10'000 < 2 * (1 + index.false_sets()) ? 0 : 1;
}
