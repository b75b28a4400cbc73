// One opened input of keys: a mapped file, or a pipe or a compressed file, read in blocks of whole records.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "perhaps/hash.h"
#include "records.h"

namespace perhaps::cli {

class Source {
 public:
  // Opens and looks at the first bytes; throws Failure. `map`: a file that can be mapped is.
  static std::unique_ptr<Source> open(const std::string& path, KeysAs as, bool map = true);
  virtual ~Source() = default;

  const std::string& name() const noexcept { return name_; }
  virtual bool mapped() const noexcept { return false; }
  virtual std::uint64_t size() const noexcept { return 0; }  // in bytes as stored; 0 if unknown

  // The next block of whole records, empty at the end. `stored` becomes the bytes of the input it took. A block is
  // valid until the next call; blocks of a mapped source stay valid, and several threads may call this.
  virtual Bytes next(std::uint64_t& stored) = 0;
  virtual void rewind() {}
  // From now on blocks are small, and release() gives back the pages of a block that nobody reads any more.
  virtual void be_frugal() noexcept {}
  virtual void release(Bytes /*block*/) noexcept {}
  // "file:line" or "file: record 7", for messages.  REQUIRES: `at` is in the last block, or the source is mapped
  virtual std::string place(const std::byte* at) const = 0;

 protected:
  Source(std::string name, KeysAs as) : name_(std::move(name)), as_(as) {}
  std::string name_;
  KeysAs as_;
};

}  // namespace perhaps::cli
