// Does a neighbour have it in its cache? Each node of a content delivery network tells its neighbours what its cache
// holds: a counting filter tracks the cache as objects come and go, and from time to time a frozen copy, a quarter of
// the size, is sent to the neighbours ("summary cache", Fan et al. 1998). After a miss, a node asks the neighbours
// whose summary answers *perhaps*, and fetches from the distant origin only if none of them has the object.
#include <cstdio>
#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

#include "perhaps/counting_bloom.h"

namespace {

class Node {
 public:
  static constexpr std::size_t kObjects = 2'000;

  void store(const std::string& object) {
    if (!holds_.insert(object).second) return;
    counts_.insert(object);
    order_.push_back(object);
    if (order_.size() <= kObjects) return;
    counts_.erase(order_.front());  // only what was inserted is ever erased
    holds_.erase(order_.front());
    order_.pop_front();
  }
  bool holds(const std::string& object) const { return holds_.count(object) != 0; }
  perhaps::CountingBloom summary() const { return perhaps::frozen(counts_); }

 private:
  std::unordered_set<std::string> holds_;
  std::deque<std::string> order_;
  perhaps::CountingBloom counts_{{.keys = kObjects, .fpr = 0.01}};
};

}  // namespace

int main() {
  std::vector<Node> nodes(8);
  std::vector<perhaps::CountingBloom> summaries;
  std::uint64_t random = 1;
  const auto next = [&] { return random = random * 6364136223846793005u + 1442695040888963407u, random >> 33; };
  std::uint64_t near = 0;
  std::uint64_t far = 0;
  std::uint64_t wasted = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    if (i % 500 == 0) {
      summaries.clear();
      for (const Node& node : nodes) summaries.push_back(node.summary());
    }
    // A few objects are requested often.
    const std::string object = "/video/" + std::to_string(next() % (next() % 20'000 + 1));
    Node& here = nodes[next() % nodes.size()];
    if (here.holds(object)) continue;
    bool found = false;
    for (std::size_t n = 0; n < nodes.size() && !found; ++n) {
      if (&nodes[n] == &here || !summaries[n].may_contain(object)) continue;
      found = nodes[n].holds(object);
      wasted += !found;
    }
    ++(found ? near : far);
    here.store(object);
  }
  // A fresh summary answers *perhaps* for everything that its node holds.
  for (const Node& node : nodes) {
    const auto summary = node.summary();
    for (int i = 0; i < 20'000; ++i) {
      const std::string object = "/video/" + std::to_string(i);
      if (node.holds(object) && !summary.may_contain(object))
        return std::puts("a cached object is missing from the summary"), 1;
    }
  }
  std::printf("%llu misses: %llu served by a neighbour, %llu by the origin; %llu requests to neighbours were wasted\n",
              static_cast<unsigned long long>(near + far), static_cast<unsigned long long>(near),
              static_cast<unsigned long long>(far), static_cast<unsigned long long>(wasted));
  std::printf("a summary has %llu bytes\n", static_cast<unsigned long long>(summaries[0].byte_size()));
  return near > far ? 0 : 1;
}
