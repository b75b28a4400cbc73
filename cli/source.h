// One opened input of keys: a mapped file, or a pipe or a compressed file, read in blocks of whole records.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "key_options.h"
#include "perhaps/hash.h"
#include "records.h"

namespace perhaps::cli {

class Source {
 public:
  // Opens and looks at the first bytes; throws Failure. `map`: a file that can be mapped is.
  static std::unique_ptr<Source> open(const std::string& path, const KeyOptions& options, bool map = true);
  virtual ~Source() = default;

  const std::string& name() const noexcept { return name_; }
  // CSV with a header: the numbers of the fields in this file, from 1, and the header without its line end. Known once
  // the first block is.
  const std::vector<std::uint32_t>& columns() const noexcept { return columns_; }
  Bytes header() const noexcept { return bytes_of(header_); }
  virtual bool mapped() const noexcept { return false; }
  virtual std::uint64_t size() const noexcept { return 0; }  // in bytes as stored; 0 if unknown

  // The next block of whole records, empty at the end. `stored` becomes the bytes of the input it took. A block is
  // valid until the next call; blocks of a mapped source stay valid, and several threads may call this.
  virtual Bytes next(std::uint64_t& stored) = 0;
  virtual void rewind() {}
  // From now on blocks are small, and release() gives back the pages of a block that nobody reads any more.
  virtual void be_frugal() noexcept {}
  virtual void release(Bytes /*block*/) noexcept {}
  // Of a mapped source: all of its bytes; and gives back all of its pages, whatever is read next comes back.
  virtual Bytes text() const noexcept { return {}; }
  virtual void drop() const noexcept {}
  // "file:line" or "file: record 7", for messages.  REQUIRES: `at` is in the last block, or the source is mapped
  virtual std::string place(const std::byte* at) const = 0;

 protected:
  Source(std::string name, const KeyOptions& options) : options_(options), name_(std::move(name)), as_(options.as) {}
  // Looks at the beginning of the input: takes a byte order mark and the header of CSV off its front, and warns of what
  // would become part of keys. `text` has at least one record, if there is any.
  void begin(Bytes& text);

  const KeyOptions& options_;
  std::string name_;
  KeysAs as_;
  std::vector<std::uint32_t> columns_{};
  std::string header_{};
};

// A byte order mark of UTF-8.
bool begins_with_mark(Bytes text) noexcept;

}  // namespace perhaps::cli
