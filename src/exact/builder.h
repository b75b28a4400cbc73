// How an exact set (perhaps/exact.h) is built, step by step:
//
//   add_members*  ( count*  begin )?  add*  finish
//
// begin() gives each part of the keys its columns and builds the filters of the members. add() keeps what of the
// universe passes them, and nothing else of it. Without begin(), because nobody knows how large the universe is, its
// words are spooled, and finish() reads them again. finish() makes the map of what was kept: assemble.cc. What comes
// before is build.cc.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "exact/plan.h"
#include "exact/spool.h"
#include "exact/tables.h"
#include "perhaps/memory.h"

namespace perhaps::detail {

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

// A part of the keys, or all of them.
struct ExactPart {
  std::uint64_t digest = 0;
  std::uint64_t members = 0;
  std::uint64_t given = 0;  // keys of the universe that were counted
  bool listed = false;      // has an entry in the directory
  ExactCode code = 0;
};

class ExactSteps {
 public:
  ExactSteps(const ExactRequest& request, BuildOptions options)
      : request_(request), options_(std::move(options)), spool_(options_) {
    options_.threads = std::max(options_.threads, 1u);
    if (!request_.parts) parts_.push_back({});
  }

  void add_members(const ExactKeys& keys);
  void count(const ExactKeys& keys);
  void begin(std::uint64_t universe);
  bool add(const ExactKeys& keys);
  Result<std::shared_ptr<const ExactTables>> finish();
  std::uint64_t advice() const noexcept { return advice_; }

 private:
  void fail(Error error);
  std::uint32_t find_or_add(std::uint64_t digest);
  ExactCode code_of(std::uint32_t part) const noexcept {
    return part == Kept::kUnknownPart ? rest_ : parts_[part].code;
  }
  const ExactStage* stage_of(ExactCode code) const noexcept;
  void add_stage(ExactCode code, std::span<const std::uint64_t> words);

  // The filters, and what passes them.
  void plan();
  void build_stage(ExactCode code);
  void pass(const ExactKeys& keys);
  // Nobody said how large the universe is.
  std::uint64_t unit() const noexcept { return request_.parts ? 3 : 2; }
  void keep(const ExactKeys& keys);
  template <class Use>
  void from_spool(Use use);
  void replay();
  void start_again();
  void settle();

  // The tables.
  std::vector<Kept> values();
  Result<std::shared_ptr<const ExactTables>> assemble();
  void decide_dense(const std::vector<Kept>& all);
  void drop_filtered(std::vector<Kept>& all) const;
  Result<void> add_map(ExactLayer& layer, std::span<const Kept> all);
  void add_directory(ExactLayer& layer);
  bool all_right(const ExactTables& tables, std::span<const Kept> all) const noexcept;
  std::uint64_t universe() const noexcept;

  ExactRequest request_;
  BuildOptions options_;
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::optional<Error> error_;

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

}  // namespace perhaps::detail
