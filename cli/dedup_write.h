// Records of a batch, shared out between standard output and the file of those that were dropped.
#pragma once
#include <bit>
#include <span>

#include "keys.h"
#include "print.h"
#include "side_file.h"

namespace perhaps::cli {

// Bit i % 64 of seen[i / 64]: record i was seen before.
class DedupWriter {
 public:
  DedupWriter(const KeyOptions& options, SideFile& dropped) : options_(options), dropped_(dropped) {}

  std::uint64_t read() const noexcept { return read_; }
  std::uint64_t written() const noexcept { return written_; }

  void write(const Batch& batch, const Source* source, std::span<const std::uint64_t> seen) {
    if (source_ == nullptr && source != nullptr && !source->header().empty()) {  // CSV stays CSV
      out_.write(source->header());
      out_.write('\n');
    }
    source_ = source;
    const std::size_t size = batch.records.size();
    std::size_t gone = 0;
    for (std::size_t i = 0; i < size; i += 64) {
      const std::uint64_t all = size - i >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (size - i)) - 1;
      gone += static_cast<std::size_t>(std::popcount(seen[i / 64] & all));
    }
    read_ += size;
    written_ += size - gone;
    if (gone != size) runs(out_, batch, seen, false);
    if (gone != 0 && dropped_.wanted()) runs(dropped_, batch, seen, true);
  }
  // After a block: a line appears as soon as it is known to be new.
  void block_done() {
    if (source_ == nullptr || source_->mapped()) return;
    flush();
  }
  void flush() {
    out_.flush();
    if (dropped_.wanted()) dropped_.flush();
  }

 private:
  template <class Sink>
  void runs(Sink& sink, const Batch& batch, std::span<const std::uint64_t> seen, bool value) {
    const auto is = [&](std::size_t i) { return (seen[i / 64] >> i % 64 & 1) == std::uint64_t{value}; };
    for (std::size_t from = 0; from < batch.records.size();) {
      if (!is(from)) {
        ++from;
        continue;
      }
      std::size_t to = from + 1;
      while (to < batch.records.size() && is(to)) ++to;
      write_records(sink, options_.as, batch.records.subspan(from, to - from), false);
      from = to;
    }
  }

  const KeyOptions& options_;
  SideFile& dropped_;
  Out out_;
  const Source* source_ = nullptr;
  std::uint64_t read_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace perhaps::cli
