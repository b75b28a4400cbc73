// All keys that a command line names, in order, one after the other or shared out among threads.
//
//   key_options.h   which keys, and how they are read
//   records.h       where records begin and end in bytes
//   source.h        one opened input: blocks of whole records
//   parser.h        a block to batches of records and of their keys
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "key_options.h"
#include "parser.h"
#include "perhaps/any_filter.h"
#include "progress.h"
#include "source.h"

namespace perhaps::cli {

// Runs work(0) here and work(1) .. work(threads - 1) on threads of their own, as far as the system grants threads:
// every call must be able to do all the work that is left. Returns the number of threads.
unsigned on_threads(unsigned threads, const std::function<void(unsigned)>& work);

// Keys are hashed as bytes, but u64 records as numbers.
void digest_keys(const AnyHasher& hasher, KeysAs as, std::span<const Bytes> keys,
                 std::span<std::uint64_t> out) noexcept;
// Bit i % 64 of answers[i / 64] belongs to keys[i]. Other systems' filters look up the bytes of a number.
void query(const AnyFilter& filter, KeysAs as, std::span<const Bytes> keys, std::span<std::uint64_t> answers);

// Writes records as they came, with sink.write. Records of a source that follow each other, each after its length or
// before its separator, are one write; literals become lines, or end in NUL under -0.
template <class Sink>
void write_records(Sink& sink, KeysAs as, std::span<const Bytes> records, bool literal) {
  if (literal) {
    for (const Bytes record : records) {
      sink.write(record);
      sink.write(as == KeysAs::nul ? '\0' : '\n');
    }
    return;
  }
  const std::ptrdiff_t between = as == KeysAs::len32 ? 4 : as == KeysAs::u64 ? 0 : 1;
  for (std::size_t from = 0; from < records.size();) {
    std::size_t to = from + 1;
    while (to < records.size() && records[to].data() == records[to - 1].data() + records[to - 1].size() + between) ++to;
    const std::byte* const begin = records[from].data() - (as == KeysAs::len32 ? 4 : 0);
    sink.write(Bytes(begin, records[to - 1].data() + records[to - 1].size()));
    // The last line of a file may lack its end.
    if (as == KeysAs::nul) sink.write('\0');
    if (!binary(as) && as != KeysAs::nul) sink.write('\n');
    from = to;
  }
}

class Keys {
 public:
  // Opens every file, so that a missing one is an error before any work is done. `options` must outlive *this.
  explicit Keys(const KeyOptions& options);

  bool all_mapped() const noexcept;
  // Starts again, and reads files instead of mapping them, once: the page cache maps pieces of 2 MiB, which count as
  // our memory.
  void unmap();
  std::uint64_t stored_bytes() const noexcept;  // 0 if unknown
  bool empty() const noexcept { return sources_.empty() && options_.literals.empty(); }
  std::string names() const;                        // for reports
  bool failed() const noexcept { return failed_; }  // KeyOptions::goes_on: a file could not be opened

  // Of all shards.  REQUIRES: all_mapped()
  std::uint64_t count(unsigned threads);

  // In order. `use(batch, source)`: source is null for literals; false ends it. `block_done` after each block.
  using Use = std::function<bool(const Batch&, const Source*)>;
  void for_each(Progress& progress, const Use& use, const std::function<void()>& block_done = {});
  // In order, with a second key of each record: `values` says how it is made. `line` is the number of the first record
  // of the batch, from 1. Without literals.  REQUIRES: both have Missing::fail
  using UsePair = std::function<void(const Batch& keys, const Batch& values, const Source&, std::uint64_t line)>;
  void for_each_pair(Progress& progress, const KeyOptions& values, const UsePair& use);
  // In any order, from up to `threads` threads; returns how many there were.  REQUIRES: all_mapped()
  unsigned for_each_parallel(unsigned threads, Progress& progress,
                             const std::function<void(unsigned thread, const Batch&)>& use);
  // The same, and once a thread has used all batches of a block, `done`: one block after the other, in the order of the
  // input. Without literals.  REQUIRES: all_mapped()
  void for_each_block(unsigned threads, Progress& progress,
                      const std::function<void(unsigned thread, const Batch&)>& use,
                      const std::function<void(unsigned thread, const Source&)>& done);

 private:
  // A block, the bytes of the input that it took, and how many blocks come before it.
  struct Share {
    Source& source;
    Bytes block;
    std::uint64_t stored;
    std::uint64_t number;
  };
  unsigned share_out(unsigned threads, const std::function<void(unsigned, const Share&)>& use);
  static std::uint64_t use_block(Parser& parser, const Share& share, const std::function<void(const Batch&)>& use);

  // Says once how many records lacked the field.
  void report_skipped(std::uint64_t skipped);

  const KeyOptions& options_;
  std::vector<std::unique_ptr<Source>> sources_;
  bool reported_ = false;
  bool failed_ = false;
};

}  // namespace perhaps::cli
