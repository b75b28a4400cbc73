// Building an exact set (perhaps/exact.h): members, columns, filters, what of the universe passes them, the map.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

#include "build/spill_file.h"
#include "exact/plan.h"
#include "exact/tables.h"
#include "perhaps/detail/threads.h"

namespace perhaps::detail {
namespace {

// A key, once it has to be kept. 32 bits of the second hash: it is compared only where digests are equal.
struct Kept {
  std::uint64_t word;
  std::uint32_t check;
  std::uint32_t part : 31;
  std::uint32_t member : 1;  // known in the end

  static constexpr std::uint32_t kUnknownPart = 0x7fffffff;  // came after the parts had been counted
  auto key() const noexcept { return std::tuple(word, check, part); }
  friend bool operator<(const Kept& a, const Kept& b) noexcept { return a.key() < b.key(); }
  friend bool operator==(const Kept& a, const Kept& b) noexcept { return a.key() == b.key(); }
};
static_assert(sizeof(Kept) == 16);

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

// Words that are read once more: in memory, past a limit in a file.
class Spool {
 public:
  explicit Spool(const BuildOptions& options) : limit_(options.memory), file_(options.spill_folder) {}

  Result<void> add(std::span<const std::uint64_t> words) {
    const std::lock_guard lock(mutex_);
    if (limit_ != 0 && (held_.size() + words.size()) * 8 > limit_ && !held_.empty()) {
      const Run run{file_.extend(held_.size()), held_.size()};
      if (auto done = file_.write(run.at, std::span<const std::uint64_t>(held_)); !done) return done;
      runs_.push_back(run);
      held_.clear();
    }
    held_.insert(held_.end(), words.begin(), words.end());
    return {};
  }
  // use(words) from up to `threads` threads; every span has a multiple of `unit` words. Of several errors the first.
  template <class Use>
  Result<void> read(unsigned threads, std::uint64_t unit, Use use) {
    const std::uint64_t piece = kExactColumn * 16 * unit;
    std::vector<Run> pieces;
    for (const Run& run : runs_) {
      for (std::uint64_t from = 0; from < run.words; from += piece) {
        pieces.push_back({run.at + 8 * from, std::min(piece, run.words - from)});
      }
    }
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    Result<void> result;
    in_threads(threads, [&] {
      std::vector<std::uint64_t> words;
      for (std::size_t i; (i = next.fetch_add(1)) < pieces.size();) {
        words.resize(static_cast<std::size_t>(pieces[i].words));
        if (auto done = file_.read(pieces[i].at, std::span(words)); !done) {
          const std::lock_guard lock(mutex);
          if (result) result = std::move(done);
          return;
        }
        use(std::span<const std::uint64_t>(words));
      }
    });
    next = 0;
    in_threads(threads, [&] {
      for (std::size_t from; (from = next.fetch_add(static_cast<std::size_t>(piece))) < held_.size();) {
        use(std::span<const std::uint64_t>(held_).subspan(
            from, std::min(static_cast<std::size_t>(piece), held_.size() - from)));
      }
    });
    return result;
  }

 private:
  struct Run {
    std::uint64_t at;
    std::uint64_t words;
  };
  std::uint64_t limit_;
  std::mutex mutex_;
  std::vector<std::uint64_t> held_;
  std::vector<Run> runs_;
  build::SpillFile file_;
};

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

std::string hex(std::uint64_t word) {
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

}  // namespace

// A part of the keys, or all of them.
struct ExactPart {
  std::uint64_t digest = 0;
  std::uint64_t members = 0;
  std::uint64_t given = 0;  // keys of the universe that were counted
  bool listed = false;      // has an entry in the directory
  ExactCode code = 0;
};

class ExactBuild {
 public:
  ExactBuild(const ExactRequest& request, BuildOptions options)
      : request_(request), options_(std::move(options)), spool_(options_) {
    options_.threads = std::max(options_.threads, 1u);
    if (!request_.parts) parts_.push_back({});
  }

  // What was given and then forgotten would make a set that lacks it: after a step that ran out of memory every other
  // one throws as well, whatever the caller did with the first exception.
  template <class Step>
  auto complete(Step step) {
    if (no_memory_) throw std::bad_alloc();
    try {
      return step();
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
      throw;
    }
  }

  void add_members(const ExactKeys& keys) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < keys.words.size(); ++i) {
      const std::uint32_t part = request_.parts ? find_or_add(part_of(keys, i)) : 0;
      members_.push_back({keys.words[i], check_of(keys, i), part & Kept::kUnknownPart, 0});
    }
  }

  void count(const ExactKeys& keys) {
    const std::lock_guard lock(mutex_);
    if (!request_.parts) {
      parts_[0].given += keys.words.size();
      return;
    }
    for (std::size_t i = 0; i < keys.words.size(); ++i) ++parts_[find_or_add(part_of(keys, i))].given;
  }

  void begin(std::uint64_t universe) {
    if (!request_.parts && universe != 0) parts_[0].given = std::min(universe, kMaxKeys);
    begun_ = true;
    sort_distinct(members_, options_.threads);
    for (const Kept& member : members_) ++parts_[member.part].members;
    plan();
    if (!request_.parts && !is_constant(rest_)) {
      // The members twice (from the universe, and once more at the end) and what passes; a little more than expected.
      const std::uint64_t others = parts_[0].given - std::min(parts_[0].given, parts_[0].members);
      const std::uint64_t passing = parts_[0].members + (others >> columns_of(rest_));
      compact_at_ = std::max(kCompact, static_cast<std::size_t>(std::min(passing + passing / 16, kMaxReserved)));
      kept_.reserve(compact_at_ + static_cast<std::size_t>(parts_[0].members));
    }
    for (ExactCode code = 1; code <= RibbonShape::kMaxColumns && !error_; ++code) build_stage(code);
  }

  bool add(const ExactKeys& keys) {
    if (failed_) return false;
    given_.fetch_add(keys.words.size(), std::memory_order_relaxed);
    begun_ ? pass(keys) : keep(keys);
    return !failed_;
  }

  Result<std::shared_ptr<const ExactTables>> finish() {
    if (!begun_ && !failed_) replay();
    if (failed_) return *error_;
    return assemble();
  }
  std::uint64_t advice() const noexcept { return advice_; }

 private:
  static std::uint64_t part_of(const ExactKeys& keys, std::size_t i) noexcept {
    return keys.parts.empty() ? 0 : keys.parts[i];
  }
  static std::uint32_t check_of(const ExactKeys& keys, std::size_t i) noexcept {
    return keys.checks.empty() ? 0 : static_cast<std::uint32_t>(keys.checks[i] >> 32);
  }
  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }
  std::uint32_t find_or_add(std::uint64_t digest) {
    const auto [at, added] = part_index_.try_emplace(digest, static_cast<std::uint32_t>(parts_.size()));
    if (added) parts_.push_back({.digest = digest});
    return at->second;
  }

  // Gives each part its code, and those that do not pay for an entry the one of the rest.
  void plan() {
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
        sum +=
            std::min(cost_of(part.members, others(part), rest), plan_of(part.members, others(part)).cost + kEntryCost);
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
  // Before the universe is known there are filters of members only.
  static ExactCode filter_code(ExactCode code) noexcept {
    return code == kAllIn || (!is_constant(code) && (code & kInverted) != 0) ? 0 : code;
  }

  void build_stage(ExactCode code) {
    std::vector<std::uint64_t> words;
    for (const Kept& member : members_) {
      if (parts_[member.part].code == code && (words.empty() || words.back() != member.word))
        words.push_back(member.word);
    }
    // Unlisted parts may have none: then all of their keys are out.
    if (words.empty() && rest_ == code) rest_ = kAllOut;
    if (!words.empty()) add_stage(code, words);
  }
  void add_stage(ExactCode code, std::span<const std::uint64_t> words) {
    auto built = build_ribbon(words, columns_of(code), options_);
    if (!built) return fail(std::move(built).error());
    memory_.push_back(std::move(built->table));
    stages_.push_back({code, built->shape, memory_.back().bytes()});
  }

  // Keeps what passes the filters.
  void pass(const ExactKeys& keys) {
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
  const ExactStage* stage_of(ExactCode code) const noexcept {
    for (const ExactStage& stage : stages_) {
      if (stage.code == code) return &stage;
    }
    return nullptr;
  }

  // Nobody said how large the universe is.
  std::uint64_t unit() const noexcept { return request_.parts ? 3 : 2; }
  void keep(const ExactKeys& keys) {
    std::vector<std::uint64_t> words;
    words.reserve(keys.words.size() * unit());
    for (std::size_t i = 0; i < keys.words.size(); ++i) {
      words.insert(words.end(), {keys.words[i], keys.checks.empty() ? 0 : keys.checks[i]});
      if (request_.parts) words.push_back(part_of(keys, i));
    }
    if (auto done = spool_.add(words); !done) fail(std::move(done).error());
  }
  template <class Use>
  void from_spool(Use use) {
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
  void replay() {
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
  void start_again() {
    stages_.clear();
    memory_.clear();
    kept_.clear();
    compact_at_ = kCompact;
    parts_[0].members = 0;
    settled_ = false;
  }

  // Members and what has passed beside them, sorted and apart. Which code would have been best is known now.
  void settle() {
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

  // All kept keys with what they are, in place: they are most of the memory. Two keys of one digest must agree.
  std::vector<Kept> values() {
    std::vector<Kept> all = std::exchange(kept_, {});
    const auto others = static_cast<std::ptrdiff_t>(all.size());
    for (Kept member : std::exchange(members_, {})) {
      member.member = 1;
      all.push_back(member);
    }
    // Of equal keys the member comes first, and stays.
    std::inplace_merge(all.begin(), all.begin() + others, all.end(), [](const Kept& a, const Kept& b) {
      return std::tuple(a.key(), !a.member) < std::tuple(b.key(), !b.member);
    });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const auto clash = std::adjacent_find(
        all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.word == b.word && a.member != b.member; });
    if (clash != all.end()) {
      fail({Errc::unsupported, "exact: a member and another key of the universe have the same digest (word " +
                                   hex(clash->word) + "): build the set with another seed"});
    }
    return all;
  }

  Result<std::shared_ptr<const ExactTables>> assemble() {
    settle();
    std::vector<Kept> all = values();
    if (failed_) return *error_;
    decide_dense(all);
    if (failed_) return *error_;
    drop_filtered(all);
    auto tables = std::make_shared<ExactTables>();
    ExactLayer& layer = tables->layers.emplace_back();
    layer.members = std::accumulate(parts_.begin(), parts_.end(), std::uint64_t{0},
                                    [](std::uint64_t sum, const ExactPart& part) { return sum + part.members; });
    layer.universe = std::max(universe(), layer.members);
    layer.parts = request_.parts;
    layer.rest = rest_;
    std::sort(stages_.begin(), stages_.end(), [](const auto& a, const auto& b) { return a.code < b.code; });
    layer.stages = std::move(stages_);
    if (auto done = add_map(layer, all); !done) return std::move(done).error();
    add_directory(layer);
    tables->owned = std::move(memory_);
    if (options_.verify && !all_right(*tables, all)) {
      return Error{Errc::bad_checksum,
                   "exact: the set just built has a wrong answer; the memory or the program is at fault"};
    }
    return std::shared_ptr<const ExactTables>(std::move(tables));
  }

  // One bit for each stored key: is it listed? No map if all are.
  Result<void> add_map(ExactLayer& layer, std::span<const Kept> all) {
    const auto is_listed = [&](const Kept& key) { return (key.member != 0) != ((code_of(key.part) & kInverted) != 0); };
    const auto is_stored = [&](const Kept& key) { return !is_constant(code_of(key.part)); };
    if (std::all_of(all.begin(), all.end(), [&](const Kept& key) { return !is_stored(key) || is_listed(key); }))
      return {};
    OneBitBuilder builder(options_);
    const Kept* last = nullptr;
    for (const Kept& key : all) {
      if (!is_stored(key)) continue;
      if (last != nullptr && last->word == key.word) {
        if (is_listed(*last) == is_listed(key)) continue;
        return Error{Errc::unsupported, "exact: two keys of different parts have the same digest (word " +
                                            hex(key.word) + "): build the set with another seed"};
      }
      builder.add(key.word, is_listed(key));
      last = &key;
    }
    auto map = builder.finish();
    if (!map) return std::move(map).error();
    memory_.push_back(std::move(map->table));
    layer.map_table = memory_.back().bytes();
    layer.map_numbers = map->shape.numbers();
    auto view = OneBit::over(layer.map_numbers, layer.map_table);
    if (!view) return std::move(view).error();
    layer.map = *std::move(view);
    return {};
  }

  // What a filter of those that are no members denies is in, and needs no bit.
  void drop_filtered(std::vector<Kept>& all) const {
    std::erase_if(all, [&](const Kept& key) {
      const ExactCode code = code_of(key.part);
      if (key.member == 0 || is_constant(code) || (code & kInverted) == 0 || columns_of(code) == 0) return false;
      std::uint64_t answer = 0;
      stage_of(code)->query({&key.word, 1}, &answer);
      return answer == 0;
    });
  }

  bool all_right(const ExactTables& tables, std::span<const Kept> all) const noexcept {
    std::array<std::uint64_t, kExactColumn> words;
    std::array<std::uint64_t, kExactColumn> parts;
    std::array<std::uint64_t, kExactColumn / kBatch> answers;
    for (std::size_t from = 0; from < all.size(); from += kExactColumn) {
      const auto some = all.subspan(from, std::min(kExactColumn, all.size() - from));
      for (std::size_t i = 0; i < some.size(); ++i) {
        words[i] = some[i].word;
        parts[i] = some[i].part == Kept::kUnknownPart ? 0 : parts_[some[i].part].digest;
      }
      exact_query(tables, {.words = {words.data(), some.size()}, .parts = {parts.data(), some.size()}}, answers.data());
      for (std::size_t i = 0; i < some.size(); ++i) {
        const bool unknown = some[i].part == Kept::kUnknownPart;
        if (!unknown && (answers[i / kBatch] >> (i % kBatch) & 1) != some[i].member) return false;
      }
    }
    return true;
  }

  // How many keys: as counted or, if they repeat, as estimated from what passed; kept keys are counted exactly.
  std::uint64_t universe() const noexcept {
    if (request_.parts) {
      std::uint64_t sum = 0;
      for (const ExactPart& part : parts_) sum += std::max(part.given, part.members);
      return sum;
    }
    return parts_[0].members + estimated_;
  }

  ExactCode code_of(std::uint32_t part) const noexcept {
    return part == Kept::kUnknownPart ? rest_ : parts_[part].code;
  }

  // Groups without a filter have all of their keys here: if members are the larger side, the others are listed.
  void decide_dense(const std::vector<Kept>& all) {
    struct Group {
      std::uint64_t members = 0;
      std::uint64_t others = 0;
    };
    std::vector<Group> own(parts_.size());
    Group rest;
    const auto group_of = [&](std::uint32_t part) -> Group& {
      return part == Kept::kUnknownPart || !(parts_[part].listed) ? rest : own[part];
    };
    for (const Kept& key : all) {
      Group& group = group_of(key.part);
      ++(key.member != 0 ? group.members : group.others);
    }
    const auto decide = [](ExactCode code, const Group& group) {
      if (is_constant(code) || columns_of(code) != 0) return code;
      const ExactCode now = plan_of(group.members, group.others).code;
      // A filter of members would have come before the universe did.
      return is_constant(now) || (now & kInverted) != 0 ? now : ExactCode{0};
    };
    if (!request_.parts && columns_of(rest_) == 0 && !is_constant(rest_)) estimated_ = rest.others;
    const ExactCode rest_now = decide(rest_, rest);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].code = parts_[i].listed ? decide(parts_[i].code, own[i]) : rest_now;
    }
    rest_ = rest_now;
    for (unsigned code = kInverted + 1u; code <= kInverted + RibbonShape::kMaxColumns && !failed_; ++code) {
      std::vector<std::uint64_t> words;
      for (const Kept& key : all) {
        if (code_of(key.part) == code && key.member == 0 && (words.empty() || words.back() != key.word))
          words.push_back(key.word);
      }
      if (!words.empty()) add_stage(static_cast<ExactCode>(code), words);
    }
  }

  void add_directory(ExactLayer& layer) {
    std::vector<ExactPart> listed;
    std::copy_if(parts_.begin(), parts_.end(), std::back_inserter(listed),
                 [](const ExactPart& part) { return part.listed; });
    if (listed.empty()) return;
    std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.digest < b.digest; });
    Memory& directory = memory_.emplace_back(listed.size() * 9);
    for (std::size_t i = 0; i < listed.size(); ++i) {
      store(directory.data() + 8 * i, listed[i].digest);
      directory.data()[8 * listed.size() + i] = static_cast<std::byte>(listed[i].code);
    }
    layer.directory = directory.bytes();
  }

  ExactRequest request_;
  BuildOptions options_;
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::optional<Error> error_;
  std::atomic<bool> no_memory_ = false;  // and members or keys of the universe may have been lost

  std::vector<ExactPart> parts_;  // one, if there are no parts
  std::unordered_map<std::uint64_t, std::uint32_t> part_index_;
  std::vector<Kept> members_;
  bool begun_ = false;
  ExactCode rest_ = 0;

  std::vector<ExactStage> stages_;
  std::vector<Memory> memory_;
  Spool spool_;
  std::atomic<std::uint64_t> given_ = 0;
  static constexpr std::size_t kCompact = std::size_t{1} << 20;
  static constexpr std::uint64_t kMaxReserved = std::uint64_t{1} << 26;  // whatever was announced
  std::size_t compact_at_ = kCompact;
  std::vector<Kept> kept_;
  bool settled_ = false;
  std::uint64_t estimated_ = 0;  // keys of the universe that are no members
  std::uint64_t advice_ = 0;
};

std::shared_ptr<ExactBuild> exact_build(const ExactRequest& request, BuildOptions options) {
  return std::make_shared<ExactBuild>(request, std::move(options));
}
void exact_members(ExactBuild& build, const ExactKeys& keys) {
  build.complete([&] { build.add_members(keys); });
}
void exact_count(ExactBuild& build, const ExactKeys& keys) {
  build.complete([&] { build.count(keys); });
}
void exact_begin(ExactBuild& build, std::uint64_t universe) {
  build.complete([&] { build.begin(universe); });
}
bool exact_add(ExactBuild& build, const ExactKeys& keys) {
  return build.complete([&] { return build.add(keys); });
}
Result<std::shared_ptr<const ExactTables>> exact_finish(ExactBuild& build) {
  return build.complete([&] { return build.finish(); });
}
std::uint64_t exact_advice(const ExactBuild& build) noexcept { return build.advice(); }

}  // namespace perhaps::detail
