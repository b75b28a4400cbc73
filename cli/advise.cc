// perhaps advise: which family for these keys? Every candidate is built and asked on this machine, and ranked by what a
// lookup costs in all.
//
//   cost   = lookup + fpr * saves            of an absent key; `saves`: the work that a no makes unnecessary
//   total  = cost + bits/key * bit price     what the table is ranked by
//
// The bit price. Most families cannot hit a rate exactly, and one that spends twice the memory on half the rate is not
// better. In an ideal filter a bit more a key halves the rate: d(2^-b saves)/db = -ln 2 * fpr * saves. Whoever asks for
// a rate of fpr, and not for a lower one, holds that a bit is not worth more than that; and not for a higher one, not
// less. So that is the price of a bit. If the memory is given (--max-bytes, --bits-per-key) bits have no price.
//
// The sample. A digest is kept if the first `shift` bits of its mix are zero; `shift` rises when there are too many. So
// all copies of a key are kept or none, the number of distinct keys is 2^shift times that of the sample, and of every
// query whose own mix begins with these zeros it is known exactly whether it is among the keys. (Of the mix, because
// filters use the bits of the digest itself: keys that agree in some of them would be another set.)
//
// A lookup is one of a batch, as `query` asks. Single ones are shown but not ranked by: through the run-time interface
// each is a batch of one, and what it costs to begin a batch (cuckoo: 163 ns, against 10 ns a key of 1024) need not be
// in the single lookup of a typed filter, which is not measured here.
//
// Times are those of the processor. The memory of a build is what the resident set of this process grew by at its
// highest (Linux; elsewhere unknown).
#include <malloc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <numbers>
#include <vector>

#include "command.h"
#include "keys.h"
#include "options.h"
#include "perhaps/sizing.h"
#include "print.h"

namespace perhaps::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Of the processor, in ns: what others do on this machine meanwhile does not count.
double cpu_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Fewer questions than this, or keys of a larger set, say nothing about time or rate.
constexpr std::size_t kFewest = 1000;
constexpr std::size_t kRandom = 1'000'000;
constexpr std::size_t kTimed = 100'000;
// A rate that is met fewer times is known to no better than 10 %: then the model's, which tests hold to 5 sigma, is
// used instead.
constexpr double kHits = 100;
constexpr int kBuilds = 3;
constexpr int kLookups = 5;

// What somebody may need of a filter.
struct Need {
  std::string_view word;
  bool (*met)(const Family&);
  std::string (*why_not)(const Family&);
};

// A scalable filter adds a link; a quotient filter becomes a larger one, and its rate higher.
bool never_full(const Family& f) { return f.name == "scalable" || f.name == "quotient"; }

constexpr Need kNeeds[] = {
    {"add", [](const Family& f) { return f.grows; },
     [](const Family&) -> std::string { return "is built once and takes no more keys"; }},
    {"delete", [](const Family& f) { return f.erases; },
     [](const Family&) -> std::string { return "cannot forget a key"; }},
    {"merge", [](const Family& f) { return f.merges; },
     [](const Family&) -> std::string { return "cannot be merged with another"; }},
    {"grow", &never_full,
     [](const Family& f) -> std::string {
       if (!f.grows) return "is built once and takes no more keys";
       if (f.name == "window") return "forgets its oldest keys when more come";
       if (f.name == "cuckoo") return "is full at the number of keys it was made for";
       return "answers perhaps too often past the number of keys it was made for";
     }},
};

struct Options {
  KeyOptions keys;
  KeyOptions queries;
  Sizing sizing;
  std::vector<const Need*> needs;
  double saves = 100e3;  // ns
  bool saves_given = false;
  std::uint64_t sample = 2'000'000;
  bool json = false;

  bool by_fpr() const noexcept { return sizing.by_fpr(); }
  double bit_price() const noexcept { return by_fpr() ? std::numbers::ln2 * sizing.fpr * saves : 0; }
};

std::string duration_text(double ns) {
  const double size = std::abs(ns);
  if (size < 99.95) return fmt::format("{:.1f} ns", ns);
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  if (size < 999.5e3) return fmt::format("{:.3g} us", ns / 1e3);
  if (size < 999.5e6) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.3g} s", ns / 1e9);
}

std::optional<double> parse_duration(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.eE+"), text.size());
  const auto number = parse_share(text.substr(0, digits));
  if (!number) return std::nullopt;
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [unit, ns] : kUnits) {
    if (text.substr(digits) == unit && std::isfinite(*number * ns)) return *number * ns;
  }
  return std::nullopt;
}

std::uint64_t mixed(std::uint64_t x) noexcept {  // the end of splitmix64: one to one
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Distinct digests, `most` at most, as the top of this file has it.
class Sample {
 public:
  explicit Sample(std::uint64_t most) : most_(most) {}

  void add(std::span<const std::uint64_t> digests) {
    given_ += digests.size();
    for (const std::uint64_t d : digests) {
      if (decides(d)) kept_.push_back(d);
    }
    if (kept_.size() / 2 > most_) thin();
  }
  void finish() { thin(); }

  // Whether all keys with this digest are kept.
  bool decides(std::uint64_t d) const noexcept { return shift_ == 0 || mixed(d) >> (64 - shift_) == 0; }
  // REQUIRES: finished, decides(d)
  bool has(std::uint64_t d) const noexcept { return std::binary_search(kept_.begin(), kept_.end(), d); }

  std::uint64_t given() const noexcept { return given_; }
  bool whole() const noexcept { return shift_ == 0; }
  double scale() const noexcept { return std::ldexp(1.0, static_cast<int>(shift_)); }  // all keys / sample
  double distinct() const noexcept { return static_cast<double>(kept_.size()) * scale(); }
  std::uint64_t size() const noexcept { return kept_.size(); }
  std::span<const std::uint64_t> ascending() const noexcept { return kept_; }

 private:
  void thin() {
    std::sort(kept_.begin(), kept_.end());
    kept_.erase(std::unique(kept_.begin(), kept_.end()), kept_.end());
    while (kept_.size() > most_ && shift_ < 63) {
      ++shift_;
      std::erase_if(kept_, [this](std::uint64_t d) { return !decides(d); });
    }
  }

  std::uint64_t most_;
  std::uint64_t given_ = 0;
  unsigned shift_ = 0;
  std::vector<std::uint64_t> kept_;
};

// What the filters are asked.
struct Questions {
  std::vector<std::uint64_t> asked;   // in the mix of the queries; times are of these
  std::vector<std::uint64_t> absent;  // certainly not in the sample; the rate is of these
  bool real_asked = false;
  bool real_absent = false;
  std::uint64_t queries = 0;   // in the file
  std::uint64_t decided = 0;   // of which it is known whether they are among the keys
  std::uint64_t negative = 0;  // and of them not among the keys
  std::optional<double> negative_share() const {
    return decided == 0 ? std::nullopt : std::optional(static_cast<double>(negative) / static_cast<double>(decided));
  }
};

struct Candidate {
  const Family* family;
  std::uint32_t arity = 0;  // of fuse
  std::string reason;       // why it is not ranked
  std::unique_ptr<AnyOwner> filter;
  std::vector<double> build_s;
  std::vector<double> single;
  std::vector<double> batch;
  std::uint64_t hits = 0;
  std::uint64_t sample_bytes = 0;
  std::optional<double> sample_peak;  // bytes
  // For all keys:
  double bytes = 0;
  double bits_per_key = 0;
  std::optional<double> build_bytes;
  double build_seconds = 0;
  double single_ns = 0;
  double batch_ns = 0;
  double fpr_measured = 0;
  double fpr_model = 0;
  bool measurable = false;
  double cost = 0;
  double total = 0;

  double fpr() const noexcept { return measurable ? fpr_measured : fpr_model; }
  std::string name() const {
    return arity == 0 ? std::string(family->name) : fmt::format("{} {}", family->name, arity);
  }
  std::string can() const {
    std::string text = family->grows ? "add" : "-";
    if (family->erases) text += ", delete";
    if (family->merges) text += ", merge";
    if (never_full(*family)) text += ", grow";
    if (family->name == "window") text += "; forgets";
    return text;
  }
};

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

// The highest resident set from here on, above that of now.
class Peak {
 public:
  Peak() {
    ::malloc_trim(0);  // what was freed and not given back would hide what is taken
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

Sample read_keys(const Options& options, Keys& keys) {
  Sample sample(options.sample);
  Progress progress("reading", keys.stored_bytes());
  std::array<std::uint64_t, Parser::kColumn> digests;
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    digest_keys(Hash(), options.keys.as, batch.keys, digests);
    sample.add(std::span(digests).first(batch.keys.size()));
    return true;
  });
  sample.finish();
  return sample;
}

// Every 2^k-th of the decided queries: repetitions stay as frequent as they are.
Questions read_queries(const Options& options, Keys& queries, const Sample& sample) {
  Questions questions;
  std::vector<std::uint64_t> kept;
  if (!queries.empty()) {
    Progress progress("queries", queries.stored_bytes());
    std::array<std::uint64_t, Parser::kColumn> digests;
    std::uint64_t stride = 1;
    queries.for_each(progress, [&](const Batch& batch, const Source*) {
      digest_keys(Hash(), options.queries.as, batch.keys, digests);
      questions.queries += batch.keys.size();
      for (const std::uint64_t d : std::span(digests).first(batch.keys.size())) {
        if (!sample.decides(d)) continue;
        questions.negative += !sample.has(d);
        if (questions.decided++ % stride != 0) continue;
        kept.push_back(d);
        if (kept.size() < 2 * kRandom) continue;
        for (std::size_t i = 0; i < kRandom; ++i) kept[i] = kept[2 * i];
        kept.resize(kRandom);
        stride *= 2;
      }
      return true;
    });
    std::copy_if(kept.begin(), kept.end(), std::back_inserter(questions.absent),
                 [&](std::uint64_t d) { return !sample.has(d); });
  }
  questions.real_asked = kept.size() >= kFewest;
  questions.real_absent = questions.absent.size() >= kFewest;
  if (!questions.real_absent) {
    questions.absent.clear();
    for (std::uint64_t i = 1; questions.absent.size() < kRandom; ++i) {
      const std::uint64_t d = mixed(i * 0x9e3779b97f4a7c15u);
      if (!sample.has(d)) questions.absent.push_back(d);
    }
  }
  const auto& timed = questions.real_asked ? kept : questions.absent;
  const std::size_t step = std::max<std::size_t>(timed.size() / kTimed, 1);
  for (std::size_t i = 0; i < timed.size(); i += step) questions.asked.push_back(timed[i]);
  return questions;
}

// Families size their tables by what they are given, or by what is distinct of it.
double keys_counted(const Family& family, const Sample& sample) {
  return family.sized_first ? static_cast<double>(sample.given()) : sample.distinct();
}

Request request_for(const Options& options, const Candidate& candidate, double keys, double share) {
  Request request = options.sizing.request(static_cast<std::uint64_t>(std::max(1.0, std::round(keys))));
  if (candidate.arity != 0) request.arity = candidate.arity;
  if (request.max_bytes != 0) {
    const double bytes = static_cast<double>(request.max_bytes) * share;
    request.max_bytes = std::max(static_cast<std::uint64_t>(bytes),
                                 std::min(request.max_bytes, smallest_bytes(candidate.family->name)));
  }
  return request;
}

std::vector<Candidate> candidates_for(const Options& options, const Sample& sample) {
  std::vector<Candidate> candidates;
  for (const Family& family : families()) {
    const bool fuse = family.name == "fuse";
    for (const std::uint32_t arity : fuse ? std::vector<std::uint32_t>{3, 4} : std::vector<std::uint32_t>{0}) {
      Candidate& candidate = candidates.emplace_back();
      candidate.family = &family;
      candidate.arity = arity;
      for (const Need* need : options.needs) {
        if (!need->met(family) && candidate.reason.empty())
          candidate.reason = fmt::format("{} (--needs {})", need->why_not(family), need->word);
      }
      if (!candidate.reason.empty()) continue;
      if (!options.by_fpr() && family.name == "scalable") {
        candidate.reason = "its size follows from --fpr and from the keys that come";
        continue;
      }
      if (options.sizing.max_bytes != 0 && options.sizing.max_bytes < smallest_bytes(family.name)) {
        candidate.reason = fmt::format("has at least {} bytes", smallest_bytes(family.name));
        continue;
      }
      const SizeRow row = row_of(family.name, request_for(options, candidate, keys_counted(family, sample), 1));
      candidate.bytes = static_cast<double>(row.bytes);
      if (options.by_fpr() && row.fpr > 1.01 * options.sizing.fpr) {
        candidate.reason =
            fmt::format("--fpr {} is out of its reach: it would be {}", options.sizing.fpr, percent(row.fpr));
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

// Times the build of the sample; the filter stays. What cannot be built is not ranked.
void build(const Options& options, const Sample& sample, std::span<const std::uint64_t> digests, Candidate& candidate) {
  candidate.filter.reset();
  const double keys = keys_counted(*candidate.family, sample) / sample.scale();
  Request request = request_for(options, candidate, keys, 1 / sample.scale());
  if (candidate.family->in_order && !candidate.family->sized_first) request.keys = 0;  // as `build`: it begins small
  const Peak peak;
  const double from = cpu_ns();
  auto builder = take(make_builder(candidate.family->name, request, Hash()));
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

// Round after round, in each of them every candidate once, so that a busy moment of the machine hits all alike.
void measure(const Options& options, const Sample& sample, const Questions& questions,
             std::vector<Candidate>& candidates) {
  std::vector<std::uint64_t> digests(sample.ascending().begin(), sample.ascending().end());
  for (std::size_t i = digests.size(); i > 1; --i) std::swap(digests[i - 1], digests[mixed(i) % i]);  // as keys come
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

std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./,:=+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// keys.txt -> keys.perhaps, here.
std::string output_name(const KeyOptions& keys) {
  std::string stem = "keys";
  if (!keys.files.empty() && keys.files[0] != "-") stem = std::filesystem::path(keys.files[0]).stem().string();
  if (stem.starts_with('-')) stem = "./" + stem;
  std::string name = stem + ".perhaps";
  while (std::find(keys.files.begin(), keys.files.end(), name) != keys.files.end()) name += ".perhaps";
  return name;
}

std::string command_for(const Options& options, const Sample& sample, const Candidate& best) {
  std::vector<std::string> words = {
      "perhaps", "build", "-o", output_name(options.keys), "--filter", std::string(best.family->name)};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (best.arity == 4) add({"--arity", "4"});
  if (options.sizing.max_bytes != 0) {
    add({"--max-bytes", fmt::format("{}", options.sizing.max_bytes)});
  } else if (options.sizing.bits_per_key != 0) {
    add({"--bits-per-key", fmt::format("{}", options.sizing.bits_per_key)});
  } else {
    add({"--fpr", fmt::format("{}", options.sizing.fpr)});
  }
  if (best.family->name == "window") add({"--keys-expected", fmt::format("{}", sample.given())});
  const KeyOptions& keys = options.keys;
  static constexpr std::string_view kAs[] = {"lines", "nul", "hex", "len32", "u64"};
  if (keys.as != KeysAs::lines) add({"--keys-as", std::string(kAs[static_cast<std::size_t>(keys.as)])});
  if (keys.field != 0) {
    add({"--field", fmt::format("{}", keys.field)});
    add({"--delimiter", keys.delimiter == '\t' ? "tab" : std::string(1, keys.delimiter)});
  }
  if (keys.lower) add({"--lower"});
  if (keys.trim) add({"--trim"});
  for (const std::string& literal : keys.literals) add({"-e", literal});
  if (std::any_of(keys.files.begin(), keys.files.end(), [](auto& f) { return f != "-" && f.starts_with('-'); }))
    add({"--"});
  words.insert(words.end(), keys.files.begin(), keys.files.end());
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

std::string compared(double mine, double other, std::string_view what) {
  const double ratio = mine / other;
  if (ratio > 0.98 && ratio < 1.02) return fmt::format("as much {}", what);
  if (ratio >= 2) return fmt::format("{:.1f} times the {}", ratio, what);
  return fmt::format("{:.0f} % {} {}", std::abs(ratio - 1) * 100, ratio > 1 ? "more" : "less", what);
}

std::string why(const Options& options, const Candidate& best, const Candidate* second) {
  if (second == nullptr) return fmt::format("{}: the only family that does what is needed", best.name());
  const double ahead = second->total / best.total - 1;
  return fmt::format(
      "{}: the least {}cost, {}. The next, {}, takes {} and {}", best.name(), options.by_fpr() ? "total " : "",
      ahead < 0.01 ? "by less than 1 %, which may be chance" : fmt::format("by {:.0f} %", ahead * 100), second->name(),
      compared(second->bytes, best.bytes, "memory"), compared(second->batch_ns, best.batch_ns, "time a lookup"));
}

// What a query costs on average with the filter, less what it costs without. Without --queries, of an absent key.
double gain(const Options& options, const Questions& questions, const Candidate& c) {
  return questions.negative_share().value_or(1) * (1 - c.fpr()) * options.saves - c.batch_ns;
}

std::string json_of(const Candidate& c) {
  Json json;
  json.add("family", c.family->name);
  if (c.arity != 0) json.add("arity", c.arity);
  json.add("add", c.family->grows).add("delete", c.family->erases).add("merge", c.family->merges);
  json.add("grow", never_full(*c.family)).add("summary", c.family->summary);
  if (!c.reason.empty()) return json.add("reason", c.reason).text();
  json.add("bytes", c.bytes).add("bits_per_key", c.bits_per_key);
  json.add("fpr", c.fpr()).add("fpr_measured", c.fpr_measured).add("fpr_model", c.fpr_model);
  json.add("fpr_is_measured", c.measurable).add("single_ns", c.single_ns).add("batch_ns", c.batch_ns);
  json.add("build_seconds", c.build_seconds).add("build_bytes", c.build_bytes);
  json.add("cost_ns", c.cost).add("total_ns", c.total);
  return json.text();
}

void print_json(const Options& options, const Sample& sample, const Questions& questions,
                const std::vector<Candidate>& candidates, const std::string& command, const std::string& reason) {
  std::vector<std::string> ranked;
  std::vector<std::string> others;
  for (const Candidate& c : candidates) (c.reason.empty() ? ranked : others).push_back(json_of(c));
  Json json;
  json.add("keys", sample.given()).add("keys_distinct", sample.distinct());
  json.add("keys_measured", sample.size());
  json.add("queries", questions.queries).add("queries_absent", questions.negative_share());
  json.add("asked", std::uint64_t{questions.asked.size()}).add("asked_are_queries", questions.real_asked);
  json.add("absent", std::uint64_t{questions.absent.size()}).add("absent_are_queries", questions.real_absent);
  json.add("saves_ns", options.saves).add("bit_price_ns", options.bit_price());
  if (!ranked.empty()) json.add("gain_ns", gain(options, questions, candidates[0]));
  json.raw("ranked", Json::array(ranked)).raw("not_ranked", Json::array(others));
  json.add("why", reason);
  json.add("command", ranked.empty() ? std::optional<std::string>() : std::optional(command));
  Out().write(json.text() + "\n");
}

void print_text(const Options& options, const Sample& sample, const Questions& questions,
                const std::vector<Candidate>& candidates, const std::string& command, const std::string& reason) {
  Out out;
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("{:<8} {}\n", label, text));
  };
  row("keys", fmt::format("{}, {}{} distinct; {}", grouped(sample.given()), sample.whole() ? "" : "about ",
                          grouped(sample.distinct()),
                          sample.whole() ? "all of them were measured"
                                         : fmt::format("a sample of {} was measured", grouped(sample.size()))));
  if (questions.queries != 0) {
    const auto share = questions.negative_share();
    row("queries", fmt::format("{}; {}", grouped(questions.queries),
                               share ? fmt::format("{} of them are not among the keys", percent(*share))
                                     : "too few to say how many are among the keys"));
  }
  const auto asked = [](std::uint64_t count, bool real, std::string_view what) {
    return fmt::format("{} {}", grouped(count), real ? what : "random absent keys");
  };
  row("asked",
      fmt::format("{} for times, {} for the fpr", asked(questions.asked.size(), questions.real_asked, "of the queries"),
                  asked(questions.absent.size(), questions.real_absent, "absent queries")));
  out.write("\n");
  std::vector<std::vector<std::string>> rows = {
      {"family", "bits/key", "fpr", "ns", "single", "size", "build", "peak", "cost", "total", "can"}};
  if (!options.by_fpr()) rows[0][9] = "";
  for (const Candidate& c : candidates) {
    if (!c.reason.empty()) continue;
    rows.push_back({c.name(), fmt::format("{:.2f}", c.bits_per_key), (c.measurable ? "" : "~") + percent(c.fpr()),
                    fmt::format("{:.1f}", c.batch_ns), fmt::format("{:.1f}", c.single_ns), bytes_text(c.bytes),
                    seconds_text(c.build_seconds), c.build_bytes ? bytes_text(*c.build_bytes) : "-",
                    duration_text(c.cost), options.by_fpr() ? duration_text(c.total) : "", c.can()});
  }
  if (rows.size() > 1) out.write(table(rows, "lrrrrrrrrrl"));
  bool first = true;
  for (const Candidate& c : candidates) {
    if (c.reason.empty()) continue;
    if (std::exchange(first, false)) out.write("\nnot ranked\n");
    out.write(fmt::format("  {:<8}  {}\n", c.name(), c.reason));
  }
  out.write("\n");
  if (rows.size() == 1) return;
  const auto note = [&](const std::string& text) { out.write(dim(text) + "\n"); };
  note("ns: nanoseconds for a lookup, in batches of 1024; single: in batches of one; hashing apart");
  if (!sample.whole()) {
    note(fmt::format(
        "  measured on filters of {} keys; one of all keys is larger, and slower once it is out of the caches",
        grouped(sample.size())));
  }
  note(fmt::format("build, peak: {}time with one thread and memory, the filter's included; reading apart",
                   sample.whole() ? "" : "for all keys, about; "));
  note(fmt::format("cost: of asking for an absent key: ns + fpr x {}, the work that a no saves{}",
                   duration_text(options.saves), options.saves_given ? "" : " (default of --saves: a read from disk)"));
  if (options.by_fpr()) {
    note(fmt::format("total: cost + bits/key x {}, what a bit a key is worth to who asks for {}: ln 2 x fpr x saves",
                     duration_text(options.bit_price()), percent(options.sizing.fpr)));
  }
  if (std::any_of(candidates.begin(), candidates.end(),
                  [](const Candidate& c) { return c.reason.empty() && !c.measurable; })) {
    note("~: too rare to measure with so many absent keys; the model's");
  }
  const Candidate& best = candidates[0];
  const double won = gain(options, questions, best);
  const std::string per = questions.negative_share() ? "query, on average" : "query for an absent key";
  out.write("\n");
  row("gain", won > 0 ? fmt::format("{} a {}", duration_text(won), per)
                      : fmt::format("none: a lookup takes longer than the work it saves, by {} a {}",
                                    duration_text(-won), per));
  row("best", reason);
  row("run", bold(command));
}

int run(Options& options) {
  read_stdin_if_none(options.keys);
  check_stdin_once(options.keys.files, std::count(options.queries.files.begin(), options.queries.files.end(), "-"));
  std::vector<std::string> query_files = std::move(options.queries.files);
  options.queries = options.keys;
  options.queries.literals.clear();
  options.queries.files = std::move(query_files);
  Keys keys(options.keys);
  Keys queries(options.queries);

  const Sample sample = read_keys(options, keys);
  if (sample.given() == 0) fail("no keys: there is nothing to advise on");
  check_memory(sample.size() * 64, "the measurement", "; --sample takes fewer keys");
  const Questions questions = read_queries(options, queries, sample);
  std::vector<Candidate> candidates = candidates_for(options, sample);
  measure(options, sample, questions, candidates);
  conclude(options, sample, questions, candidates);

  const bool any = candidates[0].reason.empty();
  const Candidate* second = candidates[1].reason.empty() ? &candidates[1] : nullptr;
  const std::string command = any ? command_for(options, sample, candidates[0]) : "";
  const std::string reason = any ? why(options, candidates[0], second) : "no family does all that is asked for";
  if (options.json) {
    print_json(options, sample, questions, candidates, command, reason);
  } else {
    print_text(options, sample, questions, candidates, command, reason);
  }
  if (!any) say("", reason);
  return any ? kYes : kNo;
}

void parse_needs(std::string_view list, std::vector<const Need*>& needs) {
  for (std::string_view rest = list;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view given = rest.substr(0, comma);
    const std::string_view word = given == "remove" ? "delete" : given;  // the command's name
    const auto* need = std::find_if(std::begin(kNeeds), std::end(kNeeds), [&](auto& n) { return n.word == word; });
    if (need == std::end(kNeeds)) fail("--needs {}: '{}' is none of add, delete, merge, grow", list, given);
    needs.push_back(need);
    if (comma == rest.size()) return;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

Command::Run advise_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--queries", options->queries.files,
                 "What will be asked, written as the keys are; - is standard input; may be repeated. Default: random "
                 "absent keys")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--needs", [options](const std::string& given) { parse_needs(given, options->needs); },
         "What the filter must be able to do, some of add (more keys later), delete, merge, grow (past the keys it was "
         "made for: a scalable filter keeps its rate then, that of a quotient filter grows with it), separated by "
         "commas")
      ->type_name("LIST");
  app.add_option_function<std::string>(
         "--saves",
         [options](const std::string& given) {
           const auto parsed = parse_duration(given);
           if (!parsed) fail("--saves {}: not a time, such as 500ns, 100us, 2ms or 1s", given);
           options->saves = *parsed;
           options->saves_given = true;
         },
         "The work that a no makes unnecessary: 500ns, 100us, 2ms, 1s; default: 100us, a read from disk")
      ->type_name("TIME");
  declare_sizing(app, options->sizing);
  add_count(app, "--sample", options->sample, "N", "Measure with at most N distinct keys, 1000 or more; default: 2M",
            kFewest);
  declare_json(app, options->json);
  declare_keys(app, options->keys);
  return [options] { return run(*options); };
}

}  // namespace perhaps::cli
