// perhaps dedup --ngrams N: documents most of whose n-grams were seen before are dropped.
//
// A document is the key of a record (--json-lines --field text); its words are what blanks separate, its n-grams all
// runs of N words, or all words together if there are fewer. It is dropped if at least the share --threshold of its
// n-grams was seen, and otherwise kept; its n-grams are then seen. A filter that is too full would call everything seen
// and drop every document, so it grows, and the report says how many n-grams it mistakes for seen.
#include <algorithm>
#include <array>
#include <chrono>

#include "command.h"
#include "dedup_more.h"
#include "dedup_write.h"
#include "json.h"
#include "keys.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace {

bool separates(std::byte b) noexcept { return b <= std::byte{' '}; }

class Corpus {
 public:
  explicit Corpus(const DedupArgs& options)
      : n_(options.ngrams),
        threshold_(options.threshold),
        filter_(take(make_any(Kind::scalable, {.keys = options.keys_expected, .fpr = options.fpr}, Hash()))) {}

  // Was it seen? If not, it has been now.
  bool seen(Bytes document) {
    words_of(document);
    grams_.clear();
    const std::size_t n = std::min<std::size_t>(n_, words_.size());
    for (std::size_t i = 0; n != 0 && i + n <= words_.size(); ++i) {
      std::uint64_t digest = 0;
      for (std::size_t j = 0; j < n; ++j) digest = (digest ^ words_[i + j]) * 0x9e3779b97f4a7c15u + (digest >> 29);
      grams_.push_back(Hash()(digest).value);
    }
    std::ranges::sort(grams_);
    grams_.erase(std::unique(grams_.begin(), grams_.end()), grams_.end());
    if (grams_.empty()) return false;
    answers_.assign((grams_.size() + 63) / 64, 0);
    filter_->digests()->may_contain(grams_, answers_);
    std::size_t old = 0;
    for (const std::uint64_t word : answers_) old += static_cast<std::size_t>(std::popcount(word));
    if (static_cast<double>(old) >= threshold_ * static_cast<double>(grams_.size())) return true;
    if (filter_->insert_digests(grams_) < grams_.size()) fail("--ngrams: the filter cannot grow any more");
    return false;
  }
  Description describe() const { return filter_->describe(); }
  std::uint64_t bytes() const noexcept { return filter_->byte_size(); }

 private:
  void words_of(Bytes document) {
    words_.clear();
    for (std::size_t i = 0; i < document.size();) {
      while (i < document.size() && separates(document[i])) ++i;
      const std::size_t from = i;
      while (i < document.size() && !separates(document[i])) ++i;
      if (i != from) words_.push_back(Hash()(document.subspan(from, i - from)).value);
    }
  }

  std::uint32_t n_;
  double threshold_;
  std::unique_ptr<AnyMutable> filter_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> grams_;
  std::vector<std::uint64_t> answers_;
};

}  // namespace

int dedup_corpus(DedupArgs& options) {
  const auto begin = std::chrono::steady_clock::now();
  if (options.fpr == 1e-6) options.fpr = 1e-3;  // of single n-grams, of which most must be wrong to drop a document
  read_stdin_if_none(options.keys);
  SideFile dropped("--suspects", options.suspects, options.keys);
  Keys keys(options.keys);
  dropped.begin();
  DedupWriter writer(options.keys, dropped);
  Corpus corpus(options);
  std::array<std::uint64_t, Parser::kColumn / 64> seen;
  {
    Progress progress("reading", keys.stored_bytes(), is_terminal(STDOUT_FILENO));
    keys.for_each(
        progress,
        [&](const Batch& batch, const Source* source) {
          seen.fill(0);
          for (std::size_t i = 0; i < batch.keys.size(); ++i)
            seen[i / 64] |= std::uint64_t{corpus.seen(batch.keys[i])} << i % 64;
          writer.write(batch, source, seen);
          return true;
        },
        [&] { writer.block_done(); });
  }
  writer.flush();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const Description d = corpus.describe();
  const std::uint64_t gone = writer.read() - writer.written();
  if (options.json) {
    Json json;
    json.add("lines", writer.read()).add("out", writer.written()).add("dropped", gone).add("fpr", d.fpr);
    json.add("fpr_wanted", options.fpr).add("ngrams", d.keys_estimated).add("bytes", corpus.bytes());
    write_error(json.add("seconds", seconds.count()).text() + "\n");
  } else if (!options.quiet) {
    say("", fmt::format("{} documents read, {} kept, {} dropped: at least {} of their {}-grams were seen",
                        grouped(writer.read()), grouped(writer.written()), grouped(gone), percent(options.threshold),
                        options.ngrams));
    say("", fmt::format("about {} n-grams in {}; {} of new ones are taken for seen by mistake",
                        grouped(d.keys_estimated), bytes_text(static_cast<double>(corpus.bytes())), percent(d.fpr)));
  }
  if (d.fpr > options.threshold / 4) {
    warn(
        fmt::format("SATURATED: {} of new n-grams are taken for seen, against a threshold of {}: new documents are "
                    "lost. Use a lower --fpr",
                    percent(d.fpr), percent(options.threshold)));
  }
  return kYes;
}

}  // namespace perhaps::cli
