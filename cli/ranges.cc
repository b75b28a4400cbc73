#include "ranges.h"

#include <algorithm>
#include <array>
#include <bit>

#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "little_endian.h"
#include "memory_check.h"
#include "print.h"
#include "progress.h"
#include "source.h"

namespace perhaps::cli {

// --------------------------------------------------------------------------------------------------------------- keys

void RangeKeys::read(Keys& keys, const char* label) {
  Progress progress(label, keys.stored_bytes());
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    for (const Bytes key : batch.keys) {
      if (options_.number()) {
        numbers_.push_back(load_little_endian<std::uint64_t>(key.data()));
      } else {
        text_.append(reinterpret_cast<const char*>(key.data()), key.size());
        ends_.push_back(text_.size());
      }
    }
    count_ += batch.keys.size();
    return true;
  });
}

std::vector<Bytes> RangeKeys::texts() const {
  std::vector<Bytes> all;
  all.reserve(ends_.size());
  std::uint64_t from = 0;
  for (const std::uint64_t end : ends_) {
    all.push_back(bytes_of(std::string_view(text_).substr(from, end - from)));
    from = end;
  }
  return all;
}

RangeFilter RangeKeys::filter(const RangeRequest& request, std::uint64_t seed) && {
  RangeRequest counted = request;
  counted.keys = std::max(request.keys, count_);
  check_memory(RangeShape::for_keys(counted).bytes(), fmt::format("a range filter for {} keys", grouped(counted.keys)));
  if (options_.number()) return RangeFilter::of(std::move(numbers_), request, seed);
  const std::vector<Bytes> all = texts();
  return RangeFilter::of(std::span<const Bytes>(all), request, seed);
}

std::vector<std::uint64_t> RangeKeys::numbers(const RangeView& filter) const {
  if (options_.number()) return numbers_;
  const RangeCode code = filter.code();
  std::vector<std::uint64_t> codes;
  codes.reserve(ends_.size());
  for (const Bytes text : texts()) codes.push_back(code(text));
  return codes;
}

// -------------------------------------------------------------------------------------------------------------- build

Description build_range(const BuildArgs& options, Keys& keys, std::uint64_t seed, Built& built) {
  RangeKeys read(options.keys);
  read.read(keys, "reading");
  built.record = {.keys = read.count(), .capacity = std::max(options.keys_expected, read.count())};
  built.record.about = about_new(options.keys, options.note);
  if (built.record.keys == 0 && !options.allow_empty) return {};
  if (const auto most = options.sizing.max_bytes; most != 0) {
    const std::uint64_t least = RangeShape::for_keys({.keys = read.count(), .max_bytes = most}).bytes();
    if (least > most) fail("--max-bytes {}: a range filter of {} keys takes {} or more", most, read.count(), least);
  }
  const RangeFilter filter = std::move(read).filter({.keys = options.keys_expected,
                                                     .fpr = options.sizing.fpr,
                                                     .bits_per_key = options.sizing.bits_per_key,
                                                     .max_bytes = options.sizing.max_bytes,
                                                     .range_size = options.range_size,
                                                     .code_bits = options.code_bits},
                                                    seed);
  check_interrupt();
  {
    const Saving uninterrupted;
    take(save(options.output, filter.view(), built.record));
  }
  const Opened opened = open_filter(options.output, {});
  return opened.filter->describe();
}

// -------------------------------------------------------------------------------------------------------------- query

namespace {

constexpr std::string_view kBetween = "..";

// One range as it was given, and its ends. An open end has no text.
struct Asked {
  std::string shown;
  std::string file;
  std::uint64_t line = 0;
  std::string low;
  std::string high;
};

Asked parse_range(const std::string& text, std::string file, std::uint64_t line) {
  Asked asked{.shown = text, .file = std::move(file), .line = line, .low = {}, .high = {}};
  const std::size_t tab = text.find('\t');
  const std::size_t at = tab != std::string::npos ? tab : text.find(kBetween);
  if (at == std::string::npos) {
    const std::string place = line == 0 ? "--range " : fmt::format("{}:{}: ", asked.file, line);
    fail("{}{}: must be A..B, or two columns with a tab between them", place, text);
  }
  asked.low = text.substr(0, at);
  asked.high = text.substr(at + (tab != std::string::npos ? 1 : kBetween.size()));
  return asked;
}

// The ends become keys by the recipe of the filter, as literals do: trimmed, lower-cased, decoded, or numbers.
class Ranges {
 public:
  Ranges(const RangeQuestions& questions, const RangeView& filter, const KeyOptions& options)
      : questions_(questions), filter_(filter), options_(options) {
    options_.files.clear();
    options_.fields.clear();
    options_.has_literals = true;
    number_ = options.number();
  }

  // False: enough.
  bool use(const std::vector<Asked>& some, Out& out) {
    options_.literals.clear();
    for (const Asked& one : some) {
      options_.literals.push_back(number_ && one.low.empty() ? "0" : one.low);
      options_.literals.push_back(number_ && one.high.empty() ? std::to_string(UINT64_MAX) : one.high);
    }
    std::vector<perhaps::Interval> codes;
    Keys ends(options_);
    Progress progress("", 0);
    ends.for_each(progress, [&](const Batch& batch, const Source*) {
      for (std::size_t i = 0; i + 1 < batch.keys.size(); i += 2) {
        const Asked& one = some[codes.size()];
        codes.push_back(codes_of(one, batch.keys[i], batch.keys[i + 1]));
      }
      return true;
    });
    std::vector<std::uint64_t> answers(codes.size() / 64 + 1);
    filter_.may_contain_any(std::span<const perhaps::Interval>(codes), std::span(answers));
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!answer(some[i], (answers[i / 64] >> (i % 64) & 1) != 0, out)) return false;
    }
    return true;
  }
  std::uint64_t asked() const noexcept { return asked_; }
  std::uint64_t selected() const noexcept { return selected_; }

 private:
  static constexpr perhaps::Interval kNone = {.low = 1, .high = 0};

  perhaps::Interval codes_of(const Asked& one, Bytes low, Bytes high) const {
    const auto bad = [&] {
      fail("{}{}: the range ends before it begins",
           one.line == 0 ? "--range " : fmt::format("{}:{}: ", one.file, one.line), one.shown);
    };
    if (number_) {
      const perhaps::Interval range{load_little_endian<std::uint64_t>(low.data()),
                                    load_little_endian<std::uint64_t>(high.data())};
      if (range.low > range.high) bad();
      return range;
    }
    if (one.high.empty()) return filter_.codes_from(low).value_or(kNone);
    if (std::ranges::lexicographical_compare(high, low)) bad();
    return filter_.codes_of(low, high).value_or(kNone);
  }

  bool answer(const Asked& one, bool perhaps, Out& out) {
    ++asked_;
    const bool wanted = perhaps != questions_.invert;
    selected_ += wanted;
    if (questions_.quiet) return !wanted;
    if (questions_.count) return true;
    const std::string_view word = perhaps ? "perhaps" : "no";
    if (questions_.json) {
      Json json;
      json.add("range", one.shown).add("answer", word).add("file", one.file).add("line", one.line);
      out.write(json.text() + "\n");
    } else if (questions_.answers) {
      out.write(fmt::format("{}\t{}\n", word, one.shown));
    } else if (wanted) {
      out.write(one.shown + "\n");
    }
    return selected_ < questions_.most;
  }

  const RangeQuestions& questions_;
  const RangeView& filter_;
  KeyOptions options_;
  bool number_;
  std::uint64_t asked_ = 0;
  std::uint64_t selected_ = 0;
};

}  // namespace

void check_coding(const RangeView& filter, const KeyOptions& options, const std::string& path) {
  const bool integers = filter.coding() == RangeView::Coding::integers;
  if (options.number() == integers) return;
  fail("{}: its keys are {}, and the keys queried are {} (--keys-as {})", path, integers ? "numbers" : "text",
       integers ? "text" : "numbers", integers ? "u64" : "lines");
}

int query_ranges(const RangeQuestions& questions, const AnyFile& file, const std::string& path,
                 const KeyOptions& options) {
  if (!file.own || file.own->header().kind != Kind::range) {
    fail("{}: answers single keys only; build --filter range makes one that answers ranges (--range)", path);
  }
  const RangeView filter = take(range_in(*file.own));
  check_coding(filter, options, path);
  Ranges ranges(questions, filter, options);
  Out out;
  std::vector<Asked> some;
  bool more = questions.most != 0;
  for (const std::string& text : questions.ranges) some.push_back(parse_range(text, "--range", 0));
  if (more) more = ranges.use(some, out);
  if (more && !questions.file.empty()) {
    KeyOptions lines;
    lines.files = {questions.file};
    Keys text(lines);
    Progress progress("querying", text.stored_bytes());
    std::uint64_t line = 0;
    text.for_each(progress, [&](const Batch& batch, const Source* source) {
      some.clear();
      for (const Bytes record : batch.records) {
        some.push_back(
            parse_range({reinterpret_cast<const char*>(record.data()), record.size()}, source->name(), ++line));
      }
      more = ranges.use(some, out);
      return more;
    });
  }
  if (questions.count && !questions.quiet) {
    if (questions.json) {
      Json json;
      json.add("file", questions.file.empty() ? "--range" : questions.file).add("keys", ranges.asked());
      json.add("selected", ranges.selected()).add("inverted", questions.invert);
      out.write(Json::array({json.text()}) + "\n");
    } else {
      out.write(fmt::format("{}\n", ranges.selected()));
    }
  }
  return ranges.selected() != 0 ? kYes : kNo;
}

// -------------------------------------------------------------------------------------------------------------- merge

void merge_ranges(const std::vector<std::string>& paths, const std::string& output, const std::string& note,
                  const OpenArgs& args, bool json) {
  std::optional<RangeFilter> all;
  Record record;
  for (const std::string& path : paths) {
    const Opened opened = open_filter(path, args);
    const auto view = range_in(opened.file);
    if (!view) fail("{} and {} cannot be merged: {}", paths.front(), path, view.error().detail);
    const Record theirs = opened.file.header().record;
    if (!all) {
      all.emplace(*view);
      record = theirs;
      continue;
    }
    const auto ours = recipe_of(record, paths.front());
    const auto other = recipe_of(theirs, path);
    if (ours && other && !ours->same_key(*other)) {
      fail("{} and {} cannot be merged: their keys were made by the recipes '{}' and '{}'", paths.front(), path,
           ours->text(), other->text());
    }
    auto merged = RangeFilter::merged(all->view(), *view);
    if (!merged) fail("{} and {} cannot be merged: {}", paths.front(), path, merged.error().detail);
    all = *std::move(merged);
    record.keys += theirs.keys;
    record.capacity = std::max(record.capacity, theirs.capacity);
    record.keep_common(theirs);
  }
  if (const auto recipe = recipe_of(record, paths.front())) record.about = about_new(*recipe, note);
  {
    const Saving uninterrupted;
    take(save(output, all->view(), record));
  }
  const Description d = open_filter(output, {}).filter->describe();
  if (json) {
    Json object;
    object.add("file", output).add("filters", static_cast<std::uint64_t>(paths.size()));
    object.add("keys", record.keys).add("keys_distinct", d.keys_estimated).add("bytes", d.bytes);
    Out().write(object.add("fill", d.fill).add("fpr", d.fpr).text() + "\n");
  } else {
    Out().write(fmt::format("{}: union of {} filters, about {} distinct keys, fpr {}\n", output, paths.size(),
                            grouped(d.keys_estimated), percent(d.fpr)));
  }
}

// ------------------------------------------------------------------------------------------------------------- verify

RangeTally ask_ranges(const RangeView& filter, std::vector<std::uint64_t> keys, std::uint64_t size, std::uint64_t count,
                      std::uint64_t seed) {
  RangeTally tally{.size = size, .asked = 0, .perhaps = 0};
  std::sort(keys.begin(), keys.end());
  if (keys.empty() || size == 0) return tally;
  const std::uint64_t span = keys.back() - keys.front();
  Progress progress("ranges", count);
  std::array<perhaps::Interval, 1024> ranges;
  std::array<std::uint64_t, 16> answers{};
  const auto random = [&seed] {
    std::uint64_t x = seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  // Where keys lie densely few ranges are empty: so many tries, and no more.
  for (std::uint64_t tries = 0; tally.asked < count && tries < 20 * count;) {
    std::size_t used = 0;
    while (used < ranges.size() && tally.asked + used < count && tries < 20 * count) {
      const std::uint64_t x = random();
      const std::uint64_t low =
          ++tries % 2 == 0 ? keys[x % keys.size()] + 1 : keys.front() + (span == UINT64_MAX ? x : x % (span + 1));
      if (low == 0 || low + (size - 1) < low) continue;
      const auto next = std::lower_bound(keys.begin(), keys.end(), low);
      if (next == keys.end() || *next - low >= size) ranges[used++] = {low, low + (size - 1)};
    }
    filter.may_contain_any(std::span<const perhaps::Interval>(ranges.data(), used), std::span(answers));
    for (std::size_t i = 0; i < (used + 63) / 64; ++i)
      tally.perhaps += static_cast<std::uint64_t>(std::popcount(answers[i]));
    tally.asked += used;
    progress.advance(used, used);
    check_interrupt();
  }
  return tally;
}

}  // namespace perhaps::cli
