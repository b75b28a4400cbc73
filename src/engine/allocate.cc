#include "perhaps/engine/allocate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "any/family.h"

namespace perhaps {
namespace {

// Beyond this many keys a rate depends on the bits per key alone, to four digits.
constexpr std::uint64_t kMany = std::uint64_t{1} << 20;
constexpr double kStep = 1.0 / 16;  // bits per key

// What a filter of the family reaches with `bits_per_key`; it may take more bytes, and never fewer than its smallest.
Allocation::Share share_of(Kind family, std::uint64_t keys, double bits_per_key) {
  Allocation::Share share;
  if (keys == 0 || bits_per_key <= 0) return share;
  const std::uint64_t modelled = std::min(keys, kMany);
  for_layout(family, [&]<class L>() {
    const auto shape = L::Shape::for_keys({.keys = modelled, .bits_per_key = bits_per_key});
    const double scale = static_cast<double>(keys) / static_cast<double>(modelled);
    share.bytes = static_cast<std::uint64_t>(std::ceil(static_cast<double>(shape.bytes()) * scale));
    share.fpr = shape.fpr(static_cast<double>(modelled));
  });
  share.bits_per_key = static_cast<double>(share.bytes) * 8 / static_cast<double>(keys);
  return share;
}

bool has_curve(Kind family) {
  return for_layout(family, []<class L>() {});
}

}  // namespace

Result<LevelBudget> LevelBudget::over(std::vector<Level> levels) {
  LevelBudget tree;
  struct Rate {
    double bits_per_key;
    double fpr;
  };
  std::map<std::pair<Kind, std::uint64_t>, std::vector<Rate>> known_rates;
  std::uint64_t room = kMaxKeys;
  for (const Level& level : levels) {
    if (!has_curve(level.family)) {
      return Error{Errc::unsupported,
                   "allocate: a " + std::string(name_of(level.family)) + " filter has no curve of bits and rates"};
    }
    if (!(level.cost >= 0) || std::isinf(level.cost))
      return Error{Errc::bad_parameter, "allocate: a cost must be a number from zero on"};
    if (level.keys > room) {
      return Error{Errc::bad_parameter, "allocate: more than " + std::to_string(kMaxKeys) + " keys"};
    }
    room -= level.keys;
    Curve curve = {{0, 1}};
    if (level.keys != 0) {
      const std::uint64_t modelled = std::min(level.keys, kMany);
      auto& rates = known_rates[{level.family, modelled}];
      const bool filled = !rates.empty();
      for (double bits = kStep; bits <= kMaxBits && !filled; bits += kStep) {
        const auto share = share_of(level.family, modelled, bits);
        rates.push_back({share.bits_per_key, share.fpr});
      }
      for (const Rate& rate : rates) {
        const double bytes = std::ceil(rate.bits_per_key / 8 * static_cast<double>(level.keys));
        if (rate.fpr < curve.back().fpr) curve.push_back({static_cast<std::uint64_t>(bytes), rate.fpr});
      }
    }
    tree.curves_.push_back(std::move(curve));
  }
  tree.levels_ = std::move(levels);
  return tree;
}

Allocation LevelBudget::sum_of(std::vector<Allocation::Share> shares) const {
  Allocation sum;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    // An empty level wastes no read.
    if (levels_[i].keys == 0) shares[i].fpr = 0;
    sum.bytes += shares[i].bytes;
    sum.wasted += levels_[i].cost * shares[i].fpr;
  }
  sum.levels = std::move(shares);
  return sum;
}

// The indices of the points on the lower convex hull: each further byte saves less than the one before.
std::vector<std::size_t> LevelBudget::hull_of(const Curve& curve) {
  const auto saved = [&](std::size_t from, std::size_t to) {
    return (curve[from].fpr - curve[to].fpr) / static_cast<double>(curve[to].bytes - curve[from].bytes);
  };
  std::vector<std::size_t> hull = {0};
  for (std::size_t next = 1; next < curve.size(); ++next) {
    while (hull.size() > 1 && saved(hull[hull.size() - 2], hull.back()) <= saved(hull.back(), next)) hull.pop_back();
    hull.push_back(next);
  }
  return hull;
}

void LevelBudget::climb(Places& places, std::uint64_t& left) const {
  std::vector<std::vector<std::size_t>> hulls;
  for (const Curve& curve : curves_) hulls.push_back(hull_of(curve));
  std::vector<std::size_t> corner(levels_.size(), 0);
  for (;;) {
    std::size_t chosen = levels_.size();
    double most = 0;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (corner[i] + 1 == hulls[i].size()) continue;
      const Point& here = curves_[i][hulls[i][corner[i]]];
      const Point& next = curves_[i][hulls[i][corner[i] + 1]];
      if (next.bytes - here.bytes > left) continue;
      const double saved = levels_[i].cost * (here.fpr - next.fpr) / static_cast<double>(next.bytes - here.bytes);
      if (saved > most) most = saved, chosen = i;
    }
    if (chosen == levels_.size()) return;
    const std::size_t next = hulls[chosen][++corner[chosen]];
    left -= curves_[chosen][next].bytes - curves_[chosen][places[chosen]].bytes;
    places[chosen] = next;
  }
}

// The best split of these two levels' bytes, while the others stay. True if anything changed.
bool LevelBudget::exchange(Places& places, std::uint64_t& left, std::size_t from, std::size_t to) const {
  const Curve& a = curves_[from];
  const Curve& b = curves_[to];
  const std::uint64_t both = a[places[from]].bytes + b[places[to]].bytes + left;
  double least = levels_[from].cost * a[places[from]].fpr + levels_[to].cost * b[places[to]].fpr;
  bool changed = false;
  for (std::size_t i = 0; i < a.size() && a[i].bytes <= both; ++i) {
    const auto past = std::upper_bound(b.begin(), b.end(), both - a[i].bytes,
                                       [](std::uint64_t bytes, const Point& point) { return bytes < point.bytes; });
    const auto j = static_cast<std::size_t>(past - b.begin()) - 1;
    const double wasted = levels_[from].cost * a[i].fpr + levels_[to].cost * b[j].fpr;
    if (!(wasted < least * (1 - 1e-9))) continue;
    least = wasted;
    places[from] = i;
    places[to] = j;
    left = both - a[i].bytes - b[j].bytes;
    changed = true;
  }
  return changed;
}

Allocation LevelBudget::best(std::uint64_t bytes) const {
  Places places(levels_.size(), 0);
  std::uint64_t left = bytes;
  climb(places, left);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      for (std::size_t j = i + 1; j < levels_.size(); ++j) changed |= exchange(places, left, i, j);
    }
  }
  std::vector<Allocation::Share> shares(levels_.size());
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const Point& point = curves_[i][places[i]];
    if (levels_[i].keys == 0) continue;
    shares[i] = {point.bytes, static_cast<double>(point.bytes) * 8 / static_cast<double>(levels_[i].keys), point.fpr};
  }
  std::size_t chosen = levels_.size();
  Allocation::Share better;
  double most = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const auto bits = static_cast<double>(shares[i].bytes + left) * 8 / static_cast<double>(levels_[i].keys);
    if (levels_[i].keys == 0 || bits > kMaxBits) continue;
    const auto share = share_of(levels_[i].family, levels_[i].keys, bits);
    const double saved = levels_[i].cost * (shares[i].fpr - share.fpr);
    if (share.bytes <= shares[i].bytes + left && saved > most) most = saved, chosen = i, better = share;
  }
  if (chosen != levels_.size()) shares[chosen] = better;
  return sum_of(std::move(shares));
}

Allocation LevelBudget::even(std::uint64_t bytes) const {
  const auto with = [&](double bits) {
    std::vector<Allocation::Share> shares;
    for (const Level& level : levels_) shares.push_back(share_of(level.family, level.keys, bits));
    return sum_of(std::move(shares));
  };
  Allocation fits = with(0);
  double low = 0;
  double high = kMaxBits;
  for (int i = 0; i < 24; ++i) {
    const double middle = (low + high) / 2;
    Allocation tried = with(middle);
    if (tried.bytes <= bytes) {
      fits = std::move(tried);
      low = middle;
    } else {
      high = middle;
    }
  }
  return fits;
}

Allocation LevelBudget::smallest(double wasted) const {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (const Curve& curve : curves_) high += curve.back().bytes;
  Allocation fits = best(high);
  // To a millionth of the whole.
  for (const std::uint64_t enough = high / 1'000'000 + 1; high - low > enough;) {
    const std::uint64_t middle = low + (high - low) / 2;
    Allocation tried = best(middle);
    if (tried.wasted <= wasted) {
      fits = std::move(tried);
      high = middle;
    } else {
      low = middle;
    }
  }
  return fits;
}

}  // namespace perhaps
