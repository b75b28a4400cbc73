#include "advise_measure.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "command.h"
#include "memory_check.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli::advise {
namespace {

using Clock = std::chrono::steady_clock;

// With fewer hits a rate is known to no better than 10 %: then the rate of the model, which tests check to 5 sigma, is
// used instead.
constexpr double kHits = 100;
constexpr int kBuilds = 3;
constexpr int kLookups = 5;

// CPU time in ns: what other programs do meanwhile does not count.
double cpu_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// VmRSS or VmHWM of this process, in bytes; 0 if unknown.
double resident(std::string_view field) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/status", "r"), &std::fclose);
  char line[256];
  while (file != nullptr && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::string_view(line).starts_with(field)) return std::strtod(line + field.size() + 1, nullptr) * 1024;
  }
  return 0;
}

// How much the resident set grows from here on, at most.
class Peak {
 public:
  Peak() {
    ::malloc_trim(0);  // memory that was freed but not returned would hide what is allocated
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/clear_refs", "w"), &std::fclose);
    if (file == nullptr || std::fputs("5", file.get()) < 0 || std::fflush(file.get()) != 0) return;
    before_ = resident("VmRSS");
  }
  std::optional<double> bytes() const {
    const double highest = resident("VmHWM");
    if (before_ == 0 || highest == 0) return std::nullopt;
    return std::max(0.0, highest - before_);
  }

 private:
  double before_ = 0;
};

// Some families size their tables by the number of keys, the others by the number of distinct keys.
double keys_counted(const Family& family, const Sample& sample) {
  return family.sized_first ? static_cast<double>(sample.given()) : sample.distinct();
}

AnyRequest request_for(const Options& options, const Candidate& candidate, double keys, double share) {
  AnyRequest request = options.sizing.any_request(static_cast<std::uint64_t>(std::max(1.0, std::round(keys))));
  request.arity = candidate.arity;
  if (request.max_bytes != 0) {
    const double bytes = static_cast<double>(request.max_bytes) * share;
    request.max_bytes = std::max(static_cast<std::uint64_t>(bytes),
                                 std::min(request.max_bytes, smallest_bytes(candidate.family->kind)));
  }
  return request;
}

// Times the build of the sample and keeps the filter. A filter that cannot be built is not ranked.
void build(const Options& options, const Sample& sample, std::span<const std::uint64_t> digests, Candidate& candidate) {
  candidate.filter.reset();
  const double keys = keys_counted(*candidate.family, sample) / sample.scale();
  AnyRequest request = request_for(options, candidate, keys, 1 / sample.scale());
  if (candidate.family->in_order && !candidate.family->sized_first) request.keys = 0;  // as `build`: it begins small
  const Peak peak;
  const double from = cpu_ns();
  auto builder = take(make_builder(candidate.family->kind, request, sample.hasher()));
  for (const auto& lane : builder->lanes(1)) {
    if (!lane->insert_digests(digests)) break;  // finish() says why
  }
  auto filter = builder->finish();
  builder.reset();
  candidate.build_s.push_back((cpu_ns() - from) / 1e9);
  if (!filter) {
    candidate.reason = filter.error().detail;
    return;
  }
  candidate.filter = *std::move(filter);
  if (candidate.build_s.size() == 1) candidate.sample_peak = peak.bytes();
}

double batch_ns(const DigestProbe& probe, std::span<const std::uint64_t> digests, std::uint64_t& hits) {
  std::array<std::uint64_t, Parser::kColumn / 64> answers;
  hits = 0;
  const double from = cpu_ns();
  for (std::size_t at = 0; at < digests.size(); at += Parser::kColumn) {
    const auto some = digests.subspan(at, std::min(Parser::kColumn, digests.size() - at));
    probe.may_contain(some, answers);
    for (std::size_t i = 0; i < (some.size() + 63) / 64; ++i)
      hits += static_cast<std::uint64_t>(std::popcount(answers[i]));
  }
  return (cpu_ns() - from) / static_cast<double>(digests.size());
}

double single_ns(const DigestProbe& probe, std::span<const std::uint64_t> digests, std::uint64_t& hits) {
  hits = 0;
  const double from = cpu_ns();
  for (std::size_t i = 0; i < digests.size(); ++i) hits += probe.may_contain(digests.subspan(i, 1));
  return (cpu_ns() - from) / static_cast<double>(digests.size());
}

}  // namespace

std::vector<Candidate> candidates_for(const Options& options, const Sample& sample) {
  std::vector<Candidate> candidates;
  for (const Family& family : families()) {
    for (const std::uint32_t arity :
         family.takes_arity ? std::vector<std::uint32_t>{3, 4} : std::vector<std::uint32_t>{0}) {
      Candidate& candidate = candidates.emplace_back();
      candidate.family = &family;
      candidate.arity = arity;
      for (const Need* need : options.needs) {
        if (!need->met(family) && candidate.reason.empty())
          candidate.reason = fmt::format("{} (--needs {})", need->why_not(family), need->word);
      }
      if (!candidate.reason.empty()) continue;
      if (!options.by_fpr() && !family.takes_any_size) {
        candidate.reason = "its size follows from --fpr and from the keys that come";
        continue;
      }
      if (options.sizing.max_bytes != 0 && options.sizing.max_bytes < smallest_bytes(family.kind)) {
        candidate.reason = fmt::format("has at least {} bytes", smallest_bytes(family.kind));
        continue;
      }
      const auto size = size_of(family.kind, request_for(options, candidate, keys_counted(family, sample), 1));
      if (!size) {
        candidate.reason = options.by_fpr() ? fmt::format("--fpr {} is out of its reach ({})",
                                                          plain(options.sizing.fpr), size.error().detail)
                                            : size.error().detail;
        continue;
      }
      const FamilySize& row = *size;
      candidate.bytes = static_cast<double>(row.bytes);
      if (options.by_fpr() && row.fpr > 1.01 * options.sizing.fpr) {
        candidate.reason =
            fmt::format("--fpr {} is out of its reach: it would be {}", plain(options.sizing.fpr), percent(row.fpr));
      } else if (row.bytes > physical_memory()) {
        candidate.reason = fmt::format("would take {}, more than the memory of this machine",
                                       bytes_text(static_cast<double>(row.bytes)));
      } else if (options.sizing.max_bytes != 0 && row.bytes > options.sizing.max_bytes) {
        candidate.reason = fmt::format("needs {} bytes for these keys, whatever the rate", grouped(row.bytes));
      }
    }
  }
  return candidates;
}

// Every candidate takes part in every round, so that a busy moment of the machine affects all of them alike.
void measure(const Options& options, const Sample& sample, const Questions& questions,
             std::vector<Candidate>& candidates) {
  std::vector<std::uint64_t> digests(sample.ascending().begin(), sample.ascending().end());
  for (std::size_t i = digests.size(); i > 1; --i) std::swap(digests[i - 1], digests[mixed(i) % i]);  // shuffled
  const std::uint64_t size = digests.size() + questions.asked.size();
  const auto ranked = static_cast<std::uint64_t>(
      std::count_if(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.reason.empty(); }));
  Progress progress("measuring", (kBuilds + kLookups) * ranked * size);
  const auto each = [&](auto use) {
    for (Candidate& candidate : candidates) {
      if (!candidate.reason.empty()) continue;
      use(candidate);
      progress.advance(size, size);
    }
  };
  const auto begin = Clock::now();
  for (int round = 0; round < kBuilds; ++round) {
    each([&](Candidate& candidate) { build(options, sample, digests, candidate); });
    if (Clock::now() - begin > std::chrono::seconds(4)) break;
  }
  for (int round = 0; round < kLookups; ++round) {
    each([&](Candidate& candidate) {
      const DigestProbe& probe = *candidate.filter->digests();
      std::uint64_t hits = 0;
      std::uint64_t hits_singly = 0;
      if (round == 0) batch_ns(probe, questions.absent, candidate.hits);
      candidate.batch.push_back(batch_ns(probe, questions.asked, hits));
      candidate.single.push_back(single_ns(probe, questions.asked, hits_singly));
      if (hits != hits_singly) fail("{}: batches and single lookups disagree; this is a bug", candidate.name());
    });
  }
}

void conclude(const Options& options, const Sample& sample, const Questions& questions,
              std::vector<Candidate>& candidates) {
  for (Candidate& c : candidates) {
    if (!c.reason.empty()) continue;
    c.sample_bytes = c.filter->byte_size();
    if (sample.whole()) c.bytes = static_cast<double>(c.sample_bytes);
    c.bits_per_key = c.bytes * 8 / sample.distinct();
    if (c.sample_peak) {
      c.build_bytes = c.bytes + std::max(0.0, *c.sample_peak - static_cast<double>(c.sample_bytes)) * sample.scale();
    }
    const double inserted = c.family->sized_first ? static_cast<double>(sample.given()) : sample.distinct();
    c.build_seconds = median(c.build_s) * inserted / static_cast<double>(sample.size());
    c.single_ns = median(c.single);
    c.batch_ns = median(c.batch);
    c.fpr_measured = static_cast<double>(c.hits) / static_cast<double>(questions.absent.size());
    c.fpr_model = c.filter->describe().fpr;
    c.measurable = c.fpr_model * static_cast<double>(questions.absent.size()) >= kHits;
    c.cost = c.batch_ns + c.fpr() * options.saves;
    c.total = c.cost + c.bits_per_key * options.bit_price();
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.reason.empty() != b.reason.empty()) return a.reason.empty();
    return a.reason.empty() && a.total < b.total;
  });
}

}  // namespace perhaps::cli::advise
