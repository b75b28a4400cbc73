// Keys as a command line names them: files, standard input, literals; lines or binary records; a field of each record.
//
//   Source   one opened input: a mapped file, or a pipe or a compressed file, read in blocks of whole records
//   Parser   a block -> batches of records and of their keys, without a string per key
//   Keys     all of them in order, one after the other or shared out among threads
//
// A *record* is what the input holds and what `query` prints again; its *key* is what is hashed: the record itself, or
// its field, trimmed, lower-cased, decoded from hex.
#pragma once
#include <CLI/App.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "print.h"

namespace perhaps::cli {

enum class KeysAs : std::uint8_t { lines, nul, hex, len32, u64 };

// Only the keys of one shard of many (perhaps/shards.h). Of a number, its eight bytes decide.
struct ShardChoice {
  std::uint64_t index = 0;
  std::uint64_t count = 0;  // 0: all keys
};

struct KeyOptions {
  std::vector<std::string> files;     // "-" is standard input
  std::vector<std::string> literals;  // of -e
  KeysAs as = KeysAs::lines;
  std::uint32_t field = 0;  // 1 is the first; 0: the whole record
  char delimiter = '\t';
  bool lower = false;
  bool trim = false;
  ShardChoice shard{};
  bool frugal = false;  // gives back the pages of mapped files once they are read: they count as our memory

  bool key_is_record() const noexcept { return as != KeysAs::hex && field == 0 && !lower && !trim; }
};

// --keys-as, -0, --field, --delimiter, --lower, --trim
void declare_key_format(CLI::App& app, KeyOptions& options);
// The same, -e, and the positional files.
void declare_keys(CLI::App& app, KeyOptions& options);

// Standard input if nothing was named; refuses options that do not go together.
void read_stdin_if_none(KeyOptions& options);
void check_key_format(const KeyOptions& options);
// `used`: how many options name it elsewhere. It can be read once.
void check_stdin_once(const std::vector<std::string>& files, std::ptrdiff_t used = 0);

// work(0) here and work(1) .. work(threads - 1) on threads of their own, or as many of them as the system has: every
// work must be able to do all that is left. Returns how many there were.
unsigned on_threads(unsigned threads, const std::function<void(unsigned)>& work);

// The digests of keys: bytes, but u64 records are numbers, as the library hashes them.
void digest_keys(const AnyHasher& hasher, KeysAs as, std::span<const Bytes> keys,
                 std::span<std::uint64_t> out) noexcept;
// Bit i % 64 of answers[i / 64] belongs to keys[i]. Other systems' filters are asked for the bytes of a number.
void ask(const AnyFilter& filter, KeysAs as, std::span<const Bytes> keys, std::span<std::uint64_t> answers);

struct Batch {
  std::span<const Bytes> keys;
  std::span<const Bytes> records;  // as many; without separator or length
};

// Puts records back as they came, with sink.write. Those of a source lie one after the other, each with its length
// before it or its separator behind it, so a run of them is one copy; literals are lines, or ended by NUL under -0.
template <class Sink>
void write_records(Sink& sink, KeysAs as, std::span<const Bytes> records, bool literal) {
  if (literal) {
    for (const Bytes record : records) {
      sink.write(record);
      sink.write(as == KeysAs::nul ? '\0' : '\n');
    }
    return;
  }
  const std::byte* const begin = records.front().data() - (as == KeysAs::len32 ? 4 : 0);
  sink.write(Bytes(begin, records.back().data() + records.back().size()));
  // The last line of a file may lack its end.
  if (as == KeysAs::nul) sink.write('\0');
  if (as == KeysAs::lines || as == KeysAs::hex) sink.write('\n');
}

class Source {
 public:
  // Opens and looks at the first bytes; throws Failure. `map`: a file that can be mapped is.
  static std::unique_ptr<Source> open(const std::string& path, KeysAs as, bool map = true);
  virtual ~Source() = default;

  const std::string& name() const noexcept { return name_; }
  virtual bool mapped() const noexcept { return false; }
  virtual std::uint64_t size() const noexcept { return 0; }  // in bytes as stored; 0 if unknown

  // The next block of whole records, empty at the end. `stored` becomes the bytes of the input it took. A block is
  // valid until the next call; those of a mapped source stay, and may be asked for by several threads.
  virtual Bytes next(std::uint64_t& stored) = 0;
  virtual void rewind() {}
  // From now on blocks are small, and release() gives back the pages of one that nobody looks at any more.
  virtual void be_frugal() noexcept {}
  virtual void release(Bytes /*block*/) noexcept {}
  // "file:line" or "file: record 7", for messages.  REQUIRES: `at` is in the last block, or the source is mapped
  virtual std::string place(const std::byte* at) const = 0;

 protected:
  Source(std::string name, KeysAs as) : name_(std::move(name)), as_(as) {}
  std::string name_;
  KeysAs as_;
};

class Parser {
 public:
  static constexpr std::size_t kColumn = 1024;

  explicit Parser(const KeyOptions& options) : options_(options) {}

  // Takes up to kColumn records off the front of `block`; false if it is empty. The batch has those of the shard.
  bool next(const Source& source, Bytes& block, Batch& batch);
  // REQUIRES: options.literals.size() - from > 0
  Batch literals(std::size_t from);

 private:
  struct Bad {
    std::size_t record;
    std::string what;
  };
  void make_keys(std::size_t count);  // throws Bad

  const KeyOptions& options_;
  Batch chosen(Bytes* keys, std::size_t count) noexcept;

  Bytes records_[kColumn];
  Bytes keys_[kColumn];
  std::vector<std::byte> scratch_;  // decoded and lower-cased keys of one batch
};

class Keys {
 public:
  // Opens every file, so that a missing one is an error before any work is done. `options` must outlive *this.
  explicit Keys(const KeyOptions& options);

  bool all_mapped() const noexcept;
  // From the beginning, but read from now on, once: the page cache maps files in pieces of 2 MiB, which count as ours.
  void unmap();
  std::uint64_t stored_bytes() const noexcept;  // 0 if unknown
  bool empty() const noexcept { return sources_.empty() && options_.literals.empty(); }
  std::string names() const;  // for reports

  // Of all shards.  REQUIRES: all_mapped()
  std::uint64_t count(unsigned threads);

  // In order. `use(batch, source)`: source is null for literals; false ends it. `block_done` after each block.
  using Use = std::function<bool(const Batch&, const Source*)>;
  void for_each(Progress& progress, const Use& use, const std::function<void()>& block_done = {});
  // In any order, from up to `threads` threads; returns how many there were.  REQUIRES: all_mapped()
  unsigned for_each_parallel(unsigned threads, Progress& progress,
                             const std::function<void(unsigned thread, const Batch&)>& use);

 private:
  unsigned share_out(unsigned threads, const std::function<void(unsigned, Source&, Bytes, std::uint64_t)>& use);

  const KeyOptions& options_;
  std::vector<std::unique_ptr<Source>> sources_;
};

}  // namespace perhaps::cli
