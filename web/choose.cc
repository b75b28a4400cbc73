#include "web/choose.h"

#include <algorithm>
#include <iterator>

namespace perhaps::web {
namespace {

struct Rule {
  bool (*holds)(const Needs& needs);
  Kind kind;
  std::string_view reason;
};

// The first that holds.
constexpr Rule kRules[] = {
    {[](const Needs& n) { return n.recent; }, Kind::window,
     "It forgets the oldest keys by itself, in constant memory: by number of keys or by time."},
    {[](const Needs& n) { return n.remove && n.unknown; }, Kind::growing,
     "Keys can be removed, and it grows with the keys, part by part, and keeps its rate."},
    {[](const Needs& n) { return n.remove && n.merge; }, Kind::quotient,
     "Keys can be removed, and two of them merge without the keys, because it holds sorted fingerprints."},
    {[](const Needs& n) { return n.remove; }, Kind::cuckoo,
     "The smallest family that removes keys. Remove only what was added: an absent key may take another along."},
    {[](const Needs& n) { return n.parquet; }, Kind::block, "Its table is exactly the split-block filter of Parquet."},
    {[](const Needs& n) { return n.merge && n.unknown; }, Kind::quotient,
     "It grows when the keys are gone, by giving up a bit of each fingerprint, and merges."},
    {[](const Needs& n) { return n.once && !n.merge; }, Kind::ribbon,
     "Built once, it is within 2 % of the fewest bits that any filter needs. For single lookups in a hurry take fuse."},
    {[](const Needs& n) { return n.unknown; }, Kind::growing,
     "One table that grows with the keys, part by part, and keeps its rate. If you can count the keys first, line "
     "takes less memory and less time."},
    {[](const Needs&) { return true; }, Kind::line,
     "The default: one cache miss per lookup, any rate, any size; it can be merged and folded."},
};

}  // namespace

Choice choose(const Needs& needs) {
  const Rule& rule =
      *std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& one) { return one.holds(needs); });
  const auto all = families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Family& f) { return f.kind == rule.kind; });
  Choice choice{&*found, rule.reason, {}};
  const Family& family = *found;
  const auto want = [&](bool wanted, bool has, const char* what) {
    if (wanted && !has) choice.unmet.push_back(std::string(family.name) + " " + what);
  };
  want(needs.remove, family.erases, "cannot remove single keys");
  want(needs.unknown, family.grows || family.forgets, "must be told how many keys will come");
  want(needs.merge, family.merges, "cannot be merged");
  want(needs.parquet, rule.kind == Kind::block, "has no table that Parquet reads");
  return choice;
}

}  // namespace perhaps::web
