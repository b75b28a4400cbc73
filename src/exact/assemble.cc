// Building an exact set once its universe has been read: the map of what was kept, and the tables.
#include <algorithm>
#include <numeric>
#include <string>

#include "exact/builder.h"

namespace perhaps::detail {
namespace {

std::string hex(std::uint64_t word) {
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

}  // namespace

Result<std::shared_ptr<const ExactTables>> ExactSteps::assemble() {
  settle();
  std::vector<Kept> all = values();
  if (failed_) return *error_;
  decide_dense(all);
  if (failed_) return *error_;
  drop_filtered(all);
  auto tables = std::make_shared<ExactLayers>();
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

// All kept keys with what they are, in place: they are most of the memory. Members that the universe does not have are
// kept, too. Two keys of one digest must agree.
std::vector<Kept> ExactSteps::values() {
  std::vector<Kept> all = std::exchange(kept_, {});
  std::vector<Kept> members = std::exchange(members_, {});
  auto missing = members.begin();
  for (auto [kept, member] = std::pair(all.begin(), members.begin()); member != members.end(); ++member) {
    while (kept != all.end() && *kept < *member) ++kept;
    const bool found = kept != all.end() && *kept == *member;
    if (found) kept->member = 1;
    if (!found) *missing++ = *member;
  }
  members.erase(missing, members.end());
  for (Kept& member : members) member.member = 1;
  const auto behind = static_cast<std::ptrdiff_t>(all.size());
  all.insert(all.end(), members.begin(), members.end());
  std::inplace_merge(all.begin(), all.begin() + behind, all.end());
  const auto clash = std::adjacent_find(
      all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.word == b.word && a.member != b.member; });
  if (clash != all.end()) {
    fail({Errc::unsupported, "exact: a member and another key of the universe have the same digest (word " +
                                 hex(clash->word) + "): build the set with another seed"});
  }
  return all;
}

// Groups without a filter have all of their keys here: if members are the larger side, the others are listed.
void ExactSteps::decide_dense(const std::vector<Kept>& all) {
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

// What a filter of those that are no members denies is in, and needs no bit.
void ExactSteps::drop_filtered(std::vector<Kept>& all) const {
  std::erase_if(all, [&](const Kept& key) {
    const ExactCode code = code_of(key.part);
    if (key.member == 0 || is_constant(code) || (code & kInverted) == 0 || columns_of(code) == 0) return false;
    std::uint64_t answer = 0;
    stage_of(code)->query({&key.word, 1}, &answer);
    return answer == 0;
  });
}

// One bit for each stored key: is it listed? No map if all are.
Result<void> ExactSteps::add_map(ExactLayer& layer, std::span<const Kept> all) {
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
      return Error{Errc::unsupported, "exact: two keys of different parts have the same digest (word " + hex(key.word) +
                                          "): build the set with another seed"};
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

void ExactSteps::add_directory(ExactLayer& layer) {
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

bool ExactSteps::all_right(const ExactTables& tables, std::span<const Kept> all) const noexcept {
  std::array<std::uint64_t, kExactColumn> words;
  std::array<std::uint64_t, kExactColumn> parts;
  std::array<std::uint64_t, kExactColumn / kBatch> answers;
  for (std::size_t from = 0; from < all.size(); from += kExactColumn) {
    const auto some = all.subspan(from, std::min(kExactColumn, all.size() - from));
    for (std::size_t i = 0; i < some.size(); ++i) {
      words[i] = some[i].word;
      parts[i] = some[i].part == Kept::kUnknownPart ? 0 : parts_[some[i].part].digest;
    }
    tables.query({.words = {words.data(), some.size()}, .parts = {parts.data(), some.size()}}, answers.data());
    for (std::size_t i = 0; i < some.size(); ++i) {
      const bool unknown = some[i].part == Kept::kUnknownPart;
      if (!unknown && (answers[i / kBatch] >> (i % kBatch) & 1) != some[i].member) return false;
    }
  }
  return true;
}

// How many keys: as counted or, if they repeat, as estimated from what passed; kept keys are counted exactly.
std::uint64_t ExactSteps::universe() const noexcept {
  if (request_.parts) {
    std::uint64_t sum = 0;
    for (const ExactPart& part : parts_) sum += std::max(part.given, part.members);
    return sum;
  }
  return parts_[0].members + estimated_;
}

}  // namespace perhaps::detail
