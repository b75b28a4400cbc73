// Is it cached next door? Each node of a content network tells its neighbours what its cache holds: a counting filter
// follows the cache, objects coming and going, and a frozen copy of it, a quarter of the size, goes to the neighbours
// now and then ("summary cache", Fan et al. 1998). A node that misses asks the neighbours whose summary says *perhaps*,
// and fetches from far away only if none has it.
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
  std::uint64_t in_vain = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    if (i % 500 == 0) {
      summaries.clear();
      for (const Node& node : nodes) summaries.push_back(node.summary());
    }
    // Few objects are asked for often.
    const std::string object = "/video/" + std::to_string(next() % (next() % 20'000 + 1));
    Node& here = nodes[next() % nodes.size()];
    if (here.holds(object)) continue;
    bool found = false;
    for (std::size_t n = 0; n < nodes.size() && !found; ++n) {
      if (&nodes[n] == &here || !summaries[n].may_contain(object)) continue;
      found = nodes[n].holds(object);
      in_vain += !found;
    }
    ++(found ? near : far);
    here.store(object);
  }
  // A summary made now denies nothing that its node holds.
  for (const Node& node : nodes) {
    const auto summary = node.summary();
    for (int i = 0; i < 20'000; ++i) {
      const std::string object = "/video/" + std::to_string(i);
      if (node.holds(object) && !summary.may_contain(object)) return std::puts("an object was denied"), 1;
    }
  }
  std::printf("%llu misses: %llu served by a neighbour, %llu from far away; neighbours asked in vain %llu times\n",
              static_cast<unsigned long long>(near + far), static_cast<unsigned long long>(near),
              static_cast<unsigned long long>(far), static_cast<unsigned long long>(in_vain));
  std::printf("a summary has %llu bytes\n", static_cast<unsigned long long>(summaries[0].byte_size()));
  return near > far ? 0 : 1;
}
