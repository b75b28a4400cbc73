// A map whose kind is known only at run time: what a tool or a reader of files holds.
//
//   auto file = File::open("codes.perhaps");
//   auto map = map_in(*file);                            // a RibbonMap or a CodedMap
//   (*map)->find(keys, values, found);
//
// Values may stand for words: a file can have a text for each of the values 0, 1, 2, .., which readers show instead.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/coded_map.h"
#include "perhaps/file/container.h"
#include "perhaps/ribbon_map.h"

namespace perhaps {

// Every query goes through a virtual call, so query many keys at once.
class PERHAPS_API AnyMap {
 public:
  virtual ~AnyMap() = default;

  // How the digests are made.
  virtual AnyHasher hasher() const noexcept = 0;
  // As ValueMap's column.  REQUIRES: the digests were made by hasher()
  virtual void find_digests(std::span<const std::uint64_t> digests, std::span<std::uint64_t> values,
                            std::span<std::uint64_t> found) const noexcept = 0;
  // Keys instead of digests.
  void find(std::span<const Bytes> keys, std::span<std::uint64_t> values,
            std::span<std::uint64_t> found) const noexcept;
  // Of the table.
  virtual std::uint64_t byte_size() const noexcept = 0;
  // The rate at which absent keys are found is its `fpr`.
  virtual Description describe() const = 0;
  // The words that the values stand for, value 0 first; none if they are numbers.
  virtual std::span<const std::string_view> texts() const noexcept = 0;
};

// Borrows from the file. Errc::mismatch: it holds a filter.
PERHAPS_API Result<std::unique_ptr<AnyMap>> map_in(const File& file);
Result<std::unique_ptr<AnyMap>> map_in(const File&& file) = delete;

// A map as a file has it; the bytes are borrowed.
struct StoredMap {
  Kind kind = Kind::map;
  std::vector<std::uint64_t> numbers{};  // of its shape
  Bytes bytes{};
};
// Writes a map, atomically, as write_container does. `texts` are the words that its values stand for, or none.
PERHAPS_API Result<void> save_map(const std::string& path, const StoredMap& map, const AnyHasher& hasher,
                                  const Record& record = {}, std::span<const std::string> texts = {});
template <Hasher H>
Result<void> save(const std::string& path, const BasicRibbonMap<H>& map, const Record& record = {},
                  std::span<const std::string> texts = {}) {
  return save_map(path, {Kind::map, map.shape().numbers(), map.bytes()}, map.hasher(), record, texts);
}
template <Hasher H>
Result<void> save(const std::string& path, const BasicCodedMap<H>& map, const Record& record = {},
                  std::span<const std::string> texts = {}) {
  return save_map(path, {Kind::coded, {}, map.bytes()}, map.hasher(), record, texts);
}

}  // namespace perhaps
