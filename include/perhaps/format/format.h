// Filters in the bytes of other systems: recognised, queried, inspected, written, converted.
//
//   auto opened = format::open({.bytes = bytes, .file_name = "na-1-big-Filter.db"});
//   if (opened && opened->whole->may_contain(key)) ..                  // as that system would answer
//
//   const format::Codec* codec = format::find("guava");
//   format::Params params(*codec);                                     // named as the system names them
//   params.set("fpp", "0.001");
//   auto bytes = codec->build(keys, params);                           // byte for byte what the system writes
//
// codecs() is the whole list; doc/formats/ has a page for each that describes the bytes without this program.
//
// A foreign file has no type in this library. It hashes in its own way, so it is queried with keys, never with digests.
// Nothing is trusted: lengths are checked before content, and content before memory is taken. Damage that can be seen
// is an Error that names the format and the fact, or, inside an engine, a filter that answers *perhaps*.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/result.h"

namespace perhaps::format {

// What becomes of damage that can be seen: a tool says so, an engine must never answer *no* because of it.
enum class OnDamage : std::uint8_t { error, perhaps };

// Bytes to be opened.
struct Source {
  Bytes bytes;                 // must outlive whatever is opened over them
  std::string file_name = {};  // some formats are told apart by it only
  OnDamage on_damage = OnDamage::error;
};

// A number, a rate, yes or no, or a word that a format is built or read with.
struct Param {
  // What values it takes.
  enum class Type : std::uint8_t { count, real, flag, word };
  // What the general options of a tool map onto.
  enum class Means : std::uint8_t { itself, fpr, bits_per_key, keys };

  std::string_view name;  // as the system itself calls it
  std::string_view summary;
  Type type;
  std::string_view initial;  // if it is not given; "" = it follows from the keys and the other parameters
  double least = 0;          // of a count or a rate
  double most = 0;           // 0 = as its type allows
  std::string_view words{};  // "new|old"; empty: any text is a word
  Means means = Means::itself;
};

// Values for the parameters of one codec. What is set has been parsed and is in range, so reading cannot fail.
class Params {
 public:
  // All at their initial values.
  PERHAPS_API explicit Params(std::span<const Param> known);
  PERHAPS_API explicit Params(const struct Codec& codec);

  // Unknown names and values out of range are refused. A word may be followed by a space and more: "old (before na)".
  PERHAPS_API Result<void> set(std::string_view name, std::string_view value);
  PERHAPS_API bool given(std::string_view name) const noexcept;  // by set(), rather than initial

  // REQUIRES: the codec has this parameter, of this type, and it was given or has an initial value.
  PERHAPS_API std::uint64_t count(std::string_view name) const noexcept;
  PERHAPS_API double real(std::string_view name) const noexcept;
  PERHAPS_API bool flag(std::string_view name) const noexcept;
  PERHAPS_API std::string_view word(std::string_view name) const noexcept;
  // For those whose initial value follows from something else.
  PERHAPS_API std::uint64_t count_or(std::string_view name, std::uint64_t otherwise) const noexcept;
  PERHAPS_API double real_or(std::string_view name, double otherwise) const noexcept;

 private:
  struct Value {
    std::uint64_t count = 0;
    double real = 0;
    std::string word{};
    bool present = false;
    bool given = false;
  };
  static Result<Value> parse(const Param& param, std::string_view text);
  std::size_t index_of(std::string_view name) const noexcept;
  const Value& value(std::string_view name, Param::Type type) const noexcept;

  std::span<const Param> known_;
  std::vector<Value> values_;
};

// One filter inside a file.
struct Entry {
  std::string name;      // column, partition ..; empty for the only one
  std::uint64_t offset;  // its bytes in the source, header and trailer included
  std::uint64_t size;
  std::string_view format;  // of exactly these bytes; empty if they are no format of their own
  std::shared_ptr<const AnyFilter> filter;
};

// A source that was understood.
struct Opened {
  std::string_view format;
  // Answers as its own system would: *no* means that no part of the file has the key.
  std::shared_ptr<const AnyFilter> whole;
  // For seeks to a prefix, if the file has a prefix filter: the keys are seek targets. Otherwise null.
  std::shared_ptr<const AnyFilter> seek;
  std::vector<Entry> entries;      // every filter inside, in the order of the file
  std::vector<std::string> notes;  // trailing data, damage, what the format cannot reveal: for people
};

// What convert() makes.
struct Converted {
  std::vector<std::byte> bytes;
  std::string changed;  // which bytes differ from the source's, for people
};

// How sure a codec is that a source is one of its own.
enum class Sniffed : std::uint8_t {
  no,
  by_name,  // the file name says so and the content does not contradict
  certain,  // by content: a magic number, a checksum, or lengths that other bytes would hardly agree with
};

// One row of the registry.
struct Codec {
  std::string_view name;
  std::string_view summary;
  std::span<const Param> params;
  Sniffed (*sniff)(const Source& source);  // throws std::bad_alloc, as all of these
  Result<Opened> (*open)(const Source& source, const Params& params);
  // Null: cannot be written. `keys` in the order in which the system would be given them, duplicates included.
  Result<std::vector<std::byte>> (*build)(std::span<const Bytes> keys, const Params& params);
  // Null: no other format can be converted to this one. Otherwise the same filter in these bytes, or the reason not.
  Result<Converted> (*convert)(const Source& source, const Opened& from, const Params& params);
};

// All of them.
PERHAPS_API std::span<const Codec* const> codecs() noexcept;
// Null: there is none of that name.
PERHAPS_API const Codec* find(std::string_view name) noexcept;
// The one codec that recognises the source; if several do equally well, the error names them.
PERHAPS_API Result<const Codec*> detect(const Source& source);
// With what detect() finds, and the initial parameters.
PERHAPS_API Result<Opened> open(const Source& source);
// The same filter in other bytes, exactly, or the reason why that cannot be.
PERHAPS_API Result<Converted> convert(const Source& source, const Opened& from, const Codec& to, const Params& params);

}  // namespace perhaps::format
