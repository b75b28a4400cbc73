// Building an exact set until its universe has been read: members, columns, filters, what passes them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>

#include "exact/builder.h"
#include "perhaps/detail/threads.h"
#include "perhaps/static.h"

namespace perhaps::detail {
namespace {

std::uint64_t part_of(const ExactKeys& keys, std::size_t i) noexcept { return keys.parts.empty() ? 0 : keys.parts[i]; }
std::uint32_t check_of(const ExactKeys& keys, std::size_t i) noexcept {
  return keys.checks.empty() ? 0 : static_cast<std::uint32_t>(keys.checks[i] >> 32);
}

void sort_distinct(std::vector<Kept>& all, unsigned threads) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  if (threads > 1 && all.size() > std::size_t{1} << 16) {
    std::atomic<int> next = 0;
    in_threads(2, [&] {
      for (int half; (half = next.fetch_add(1)) < 2;) {
        half == 0 ? std::sort(all.begin(), middle) : std::sort(middle, all.end());
      }
    });
    std::inplace_merge(all.begin(), middle, all.end());
  } else {
    std::sort(all.begin(), all.end());
  }
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

struct BuiltStage {
  RibbonShape shape;
  Memory table;
};

// A ribbon of so many columns, of words that are distinct.
Result<BuiltStage> build_ribbon(std::span<const std::uint64_t> words, std::uint32_t columns,
                                const BuildOptions& options) {
  StaticFamilyOf<RibbonLayout> family(
      RequestOf<RibbonShape>{.keys = words.size(), .fpr = std::ldexp(1.0, -static_cast<int>(columns))});
  const auto pipeline = StaticPipeline::make(options);
  pipeline->share_out(words.size(), [&](StaticPipeline::Lane& lane, std::uint64_t from, std::uint64_t size) {
    StaticPipeline::add(lane, words.data() + from, static_cast<std::size_t>(size));
  });
  auto table = pipeline->finish(family);
  if (!table) return std::move(table).error();
  return BuiltStage{family.shape(), *std::move(table)};
}

// Before the universe is known there are filters of members only.
ExactCode filter_code(ExactCode code) noexcept {
  return code == kAllIn || (!is_constant(code) && (code & kInverted) != 0) ? 0 : code;
}

}  // namespace

void ExactSteps::add_members(const ExactKeys& keys) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < keys.words.size(); ++i) {
    const std::uint32_t part = request_.parts ? find_or_add(part_of(keys, i)) : 0;
    members_.push_back({keys.words[i], check_of(keys, i), part & Kept::kUnknownPart, 0});
  }
}

void ExactSteps::count(const ExactKeys& keys) {
  const std::lock_guard lock(mutex_);
  if (!request_.parts) {
    parts_[0].given += keys.words.size();
    return;
  }
  for (std::size_t i = 0; i < keys.words.size(); ++i) ++parts_[find_or_add(part_of(keys, i))].given;
}

void ExactSteps::begin(std::uint64_t universe) {
  if (!request_.parts && universe != 0) parts_[0].given = std::min(universe, kMaxKeys);
  begun_ = true;
  sort_distinct(members_, options_.threads);
  for (const Kept& member : members_) ++parts_[member.part].members;
  plan();
  if (!request_.parts && !is_constant(rest_)) {
    // The members and what passes beside them; a little more than expected.
    const std::uint64_t others = parts_[0].given - std::min(parts_[0].given, parts_[0].members);
    const std::uint64_t passing = parts_[0].members + (others >> columns_of(rest_));
    compact_at_ = std::max(kCompact, static_cast<std::size_t>(std::min(passing + passing / 16, kMaxReserved)));
    kept_.reserve(compact_at_ + kExactColumn);
  }
  for (ExactCode code = 1; code <= RibbonShape::kMaxColumns && !error_; ++code) build_stage(code);
}

bool ExactSteps::add(const ExactKeys& keys) {
  if (failed_) return false;
  given_.fetch_add(keys.words.size(), std::memory_order_relaxed);
  begun_ ? pass(keys) : keep(keys);
  return !failed_;
}

Result<std::shared_ptr<const ExactTables>> ExactSteps::finish() {
  if (!begun_ && !failed_) replay();
  if (failed_) return *error_;
  return assemble();
}
void ExactSteps::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  failed_ = true;
}
std::uint32_t ExactSteps::find_or_add(std::uint64_t digest) {
  const auto [at, added] = part_index_.try_emplace(digest, static_cast<std::uint32_t>(parts_.size()));
  if (added) parts_.push_back({.digest = digest});
  return at->second;
}

// Gives each part its code, and those that do not pay for an entry the one of the rest.
void ExactSteps::plan() {
  const auto others = [](const ExactPart& part) { return part.given - std::min(part.given, part.members); };
  if (!request_.parts) {
    parts_[0].code = filter_code(plan_of(parts_[0].members, others(parts_[0])).code);
    rest_ = parts_[0].code;
    return;
  }
  std::uint64_t least = UINT64_MAX;
  for (ExactCode rest = 0; rest <= RibbonShape::kMaxColumns; ++rest) {
    std::uint64_t sum = 0;
    for (const ExactPart& part : parts_) {
      sum += std::min(cost_of(part.members, others(part), rest), plan_of(part.members, others(part)).cost + kEntryCost);
    }
    if (sum >= least) continue;
    least = sum;
    rest_ = rest;
  }
  for (ExactPart& part : parts_) {
    const ExactPlan own = plan_of(part.members, others(part));
    part.listed = own.cost + kEntryCost < cost_of(part.members, others(part), rest_);
    part.code = part.listed ? filter_code(own.code) : rest_;
  }
  // A part that is queried and has no entry, although all that were counted have one.
  if (std::all_of(parts_.begin(), parts_.end(), [](const ExactPart& part) { return part.listed; })) rest_ = kAllOut;
}
void ExactSteps::build_stage(ExactCode code) {
  std::vector<std::uint64_t> words;
  for (const Kept& member : members_) {
    if (parts_[member.part].code == code && (words.empty() || words.back() != member.word))
      words.push_back(member.word);
  }
  // Unlisted parts may have none: then all of their keys are out.
  if (words.empty() && rest_ == code) rest_ = kAllOut;
  if (!words.empty()) add_stage(code, words);
}
void ExactSteps::add_stage(ExactCode code, std::span<const std::uint64_t> words) {
  auto built = build_ribbon(words, columns_of(code), options_);
  if (!built) return fail(std::move(built).error());
  memory_.push_back(std::move(built->table));
  stages_.push_back({code, built->shape, memory_.back().bytes()});
}

// Keeps what passes the filters.
void ExactSteps::pass(const ExactKeys& keys) {
  std::vector<Kept> kept;
  const auto keep_one = [&](std::size_t i, std::uint32_t part) {
    kept.push_back({keys.words[i], check_of(keys, i), part & Kept::kUnknownPart, 0});
  };
  if (!request_.parts) {
    const ExactCode code = rest_;
    if (is_constant(code)) return;
    if (columns_of(code) == 0) {
      for (std::size_t i = 0; i < keys.words.size(); ++i) keep_one(i, 0);
    } else {
      std::vector<std::uint64_t> answers((keys.words.size() + kBatch - 1) / kBatch);
      stages_[0].query(keys.words, answers.data());
      for (std::size_t i = 0; i < keys.words.size(); ++i) {
        if ((answers[i / kBatch] >> (i % kBatch) & 1) != 0) keep_one(i, 0);
      }
    }
  } else {
    for (std::size_t i = 0; i < keys.words.size(); ++i) {
      const auto found = part_index_.find(part_of(keys, i));
      const bool known = found != part_index_.end();
      const ExactCode code = known ? parts_[found->second].code : rest_;
      if (is_constant(code)) continue;
      if (columns_of(code) != 0) {
        const ExactStage* const stage = stage_of(code);
        if (stage == nullptr) continue;
        std::uint64_t answer = 0;
        stage->query(keys.words.subspan(i, 1), &answer);
        if (answer == 0) continue;
      }
      keep_one(i, known ? found->second : Kept::kUnknownPart);
    }
  }
  const std::lock_guard lock(mutex_);
  kept_.insert(kept_.end(), kept.begin(), kept.end());
  // Keys that come again and again are kept once.
  if (kept_.size() < compact_at_) return;
  sort_distinct(kept_, 1);
  compact_at_ = std::max(compact_at_, 2 * kept_.size());
}
const ExactStage* ExactSteps::stage_of(ExactCode code) const noexcept {
  for (const ExactStage& stage : stages_) {
    if (stage.code == code) return &stage;
  }
  return nullptr;
}

void ExactSteps::keep(const ExactKeys& keys) {
  std::vector<std::uint64_t> words;
  words.reserve(keys.words.size() * unit());
  for (std::size_t i = 0; i < keys.words.size(); ++i) {
    words.insert(words.end(), {keys.words[i], keys.checks.empty() ? 0 : keys.checks[i]});
    if (request_.parts) words.push_back(part_of(keys, i));
  }
  if (auto done = spool_.add(words); !done) fail(std::move(done).error());
}
template <class Use>
void ExactSteps::from_spool(Use use) {
  auto done = spool_.read(options_.threads, unit(), [&](std::span<const std::uint64_t> words) {
    const auto width = static_cast<std::size_t>(unit());
    std::vector<std::uint64_t> columns(kExactColumn * width);
    const std::size_t count = words.size() / width;
    for (std::size_t from = 0; from < count; from += kExactColumn) {
      const std::size_t some = std::min(kExactColumn, count - from);
      for (std::size_t i = 0; i < some; ++i) {
        for (std::size_t k = 0; k < width; ++k) columns[k * some + i] = words[(from + i) * width + k];
      }
      const std::span<const std::uint64_t> all(columns);
      use(ExactKeys{.words = all.first(some),
                    .parts = all.subspan((width - 1) * some, request_.parts ? some : 0),
                    .checks = all.subspan(some, some)});
    }
  });
  if (!done) fail(std::move(done).error());
}
void ExactSteps::replay() {
  for (std::uint64_t keys = given_;;) {
    if (request_.parts) from_spool([&](const ExactKeys& some) { count(some); });
    if (failed_) return;
    begin(keys);
    if (failed_) return;
    from_spool([&](const ExactKeys& some) { pass(some); });
    if (failed_ || request_.parts) return;
    settle();
    const std::uint64_t better = std::exchange(advice_, 0);
    if (better == 0 || keys != given_) return;
    keys = better;
    start_again();
  }
}
void ExactSteps::start_again() {
  stages_.clear();
  memory_.clear();
  kept_.clear();
  compact_at_ = kCompact;
  parts_[0].members = 0;
  settled_ = false;
}

// Members and what has passed beside them, sorted and apart. Which code would have been best is known now.
void ExactSteps::settle() {
  if (settled_) return;
  settled_ = true;
  sort_distinct(kept_, options_.threads);
  if (request_.parts) return;
  const std::uint64_t members = parts_[0].members;
  const std::uint64_t others = parts_[0].given - std::min(parts_[0].given, members);
  estimated_ = others;
  if (is_constant(rest_) || columns_of(rest_) == 0) return;
  std::uint64_t passed = 0;
  for (auto [kept, member] = std::pair(kept_.begin(), members_.begin()); kept != kept_.end(); ++kept) {
    while (member != members_.end() && member->word < kept->word) ++member;
    passed += member == members_.end() || member->word != kept->word;
  }
  estimated_ = passed << columns_of(rest_);
  const std::uint64_t off = others > estimated_ ? others - estimated_ : estimated_ - others;
  // The number that was given is believed if the estimate lies within five standard deviations of it.
  if (static_cast<double>(off >> columns_of(rest_)) <= 5 * std::sqrt(static_cast<double>(passed)) + 1) {
    estimated_ = others;
    return;
  }
  if (plan_of(members, estimated_).code != rest_) advice_ = members + std::max<std::uint64_t>(estimated_, 1);
}

namespace {

// What was given and then forgotten would make a set that lacks it: after a step that ran out of memory every other one
// throws as well, whatever the caller did with the first exception.
class WholeBuild final : public ExactBuild {
  template <class Step>
  auto take(Step step) {
    if (no_memory_) throw std::bad_alloc();
    try {
      return step();
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
      throw;
    }
  }

 public:
  WholeBuild(const ExactRequest& request, BuildOptions options) : steps_(request, std::move(options)) {}

  void add_members(const ExactKeys& keys) override {
    take([&] { steps_.add_members(keys); });
  }
  void count(const ExactKeys& keys) override {
    take([&] { steps_.count(keys); });
  }
  void begin(std::uint64_t universe) override {
    take([&] { steps_.begin(universe); });
  }
  bool add(const ExactKeys& keys) override {
    return take([&] { return steps_.add(keys); });
  }
  Result<std::shared_ptr<const ExactTables>> finish() override {
    return take([&] { return steps_.finish(); });
  }
  std::uint64_t advice() const noexcept override { return steps_.advice(); }

 private:
  ExactSteps steps_;
  std::atomic<bool> no_memory_ = false;  // and members or keys of the universe may have been lost
};

}  // namespace

std::unique_ptr<ExactBuild> ExactBuild::make(const ExactRequest& request, BuildOptions options) {
  return std::make_unique<WholeBuild>(request, std::move(options));
}

}  // namespace perhaps::detail
