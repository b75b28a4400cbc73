// A crawler must not fetch a page twice, and cannot know how many pages there are: a scalable filter keeps its rate
// however many there are. A crawler that should return to a page after some time needs to recognise only recent links:
// a window filter does this in constant memory.
#include <cstdio>
#include <deque>
#include <string>
#include <unordered_set>

#include "perhaps/scalable_bloom.h"
#include "perhaps/window.h"

namespace {

// A web in which page i links to five others.
std::string url(std::uint64_t page) { return "https://example.org/" + std::to_string(page); }
std::uint64_t link(std::uint64_t page, std::uint64_t i) { return (page * 2654435761u + i * 40503u + 12345u) % 200'000; }

}  // namespace

int main() {
  perhaps::ScalableBloom seen(perhaps::Growth{.fpr = 0.001});
  std::unordered_set<std::string> really;  // the exact set, which a crawler does not need; here to check the filter
  std::deque<std::uint64_t> queue;
  std::uint64_t fetched = 0;
  std::uint64_t skipped_unseen = 0;
  for (std::uint64_t start = 0; start < 50; ++start) queue.push_back(start);
  while (!queue.empty()) {
    const std::uint64_t page = queue.front();
    queue.pop_front();
    const bool fresh = seen.insert(url(page)) == perhaps::Inserted::added;
    const bool really_fresh = really.insert(url(page)).second;
    if (fresh && !really_fresh) return std::puts("a page was fetched twice"), 1;
    skipped_unseen += !fresh && really_fresh;
    if (!fresh) continue;
    ++fetched;
    for (std::uint64_t i = 0; i < 5; ++i) queue.push_back(link(page, i));
  }
  std::printf("%llu pages fetched once each, %llu missed, in %llu bytes of filter\n",
              static_cast<unsigned long long>(fetched), static_cast<unsigned long long>(skipped_unseen),
              static_cast<unsigned long long>(seen.byte_size()));

  // The last 10,000 links. A million links take no more memory than the first ten thousand.
  perhaps::Window lately({.keys = 10'000, .fpr = 0.01});
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    lately.insert(url(i));
    if (i >= 10'000 && i % 1000 == 0 && !lately.may_contain(url(i - 9'999))) return std::puts("forgotten too soon"), 1;
  }
  std::uint64_t remembered = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) remembered += lately.may_contain(url(i));
  std::printf("a window of 10,000 in %llu bytes remembers %llu of the first 100,000 links of a million\n",
              static_cast<unsigned long long>(lately.byte_size()), static_cast<unsigned long long>(remembered));
  return static_cast<double>(skipped_unseen) < 0.01 * static_cast<double>(fetched) && remembered < 2'000 ? 0 : 1;
}
