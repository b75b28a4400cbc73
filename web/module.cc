// The library as a WebAssembly module: what web/core.js calls (web/module.h). Texts go in as UTF-8 with a zero at the
// end; many keys go in as one run of bytes and the offset of each.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "c/handle.h"
#include "cli/json_fields.h"
#include "cli/size_rows.h"
#include "kernel/instruction_set.h"
#include "perhaps.h"
#include "perhaps/detail/bits.h"
#include "perhaps/file/container.h"
#include "perhaps/format/format.h"
#include "web/json.h"
#include "web/module.h"

namespace perhaps::web {

std::string error_text;
std::string result;

namespace {

perhaps_options wanted{};
std::uint64_t wanted_seed = 0;

perhaps_status of_library(perhaps_status status) {
  if (status != PERHAPS_OK) error_text = perhaps_last_error();
  return status;
}

constexpr std::size_t kChunk = 1024;

// Hands the keys between offsets to `use` in chunks, until it fails.
template <class Use>
perhaps_status in_chunks(const char* data, const std::uint32_t* offsets, std::size_t count, Use use) {
  if (count == 1) {
    const perhaps_key key{data + offsets[0], offsets[1] - offsets[0]};
    return use(&key, 0, 1);
  }
  std::array<perhaps_key, kChunk> keys;
  for (std::size_t from = 0; from < count; from += kChunk) {
    const std::size_t some = std::min(kChunk, count - from);
    for (std::size_t i = 0; i < some; ++i) {
      const std::uint32_t at = offsets[from + i];
      keys[i] = {data + at, offsets[from + i + 1] - at};
    }
    if (const perhaps_status status = use(keys.data(), from, some); status != PERHAPS_OK) return status;
  }
  return PERHAPS_OK;
}

// A byte for each key instead of a bit, eight at a time: byte j of the product keeps bit j, and the sum carries it into
// the highest bit of the byte.
void spread(const std::uint64_t* words, std::size_t count, std::uint8_t* out) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const std::uint64_t eight = words[i / 64] >> (i % 64) & 0xff;
    const std::uint64_t apart = (eight * 0x0101010101010101u) & 0x8040201008040201u;
    detail::store(reinterpret_cast<std::byte*>(out + i), (apart + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u);
  }
  for (; i < count; ++i) out[i] = static_cast<std::uint8_t>(words[i / 64] >> (i % 64) & 1);
}

// -------------------------------------------------------------------------------------------------------- description

Description described(const AnyFilter& filter) {
  Description d = filter.describe();
  if (d.keys) d.keys_estimated = std::min(d.keys_estimated, static_cast<double>(*d.keys));
  return d;
}

std::string entry_text(const format::Entry& entry) {
  Json one;
  one.add("name", entry.name).add("offset", entry.offset).add("size", entry.size).add("format", entry.format);
  cli::add_figures(one, described(*entry.filter));
  return one.text();
}

std::string info_of(const perhaps_filter& handle) {
  Json json;
  json.add("format", handle.codec == nullptr ? "perhaps" : handle.opened.format);
  cli::add_figures(json, described(*handle.filter));
  if (handle.codec != nullptr) json.add("system", handle.codec->summary);
  json.raw("about", cli::json_of<Json>(handle.filter->record().about));
  json.raw("entries", Json::array_of(handle.opened.entries, entry_text));
  json.raw("notes", Json::array_of(handle.opened.notes, [](const std::string& note) { return quoted(note); }));
  return json.text();
}

// The tables of a filter, or the bytes of one filter inside another system's file.
std::vector<Bytes> tables_of(const perhaps_filter& handle, std::uint32_t entry) {
  if (handle.codec != nullptr) {
    const auto& entries = handle.opened.entries;
    if (entries.empty()) return {handle.source};
    const format::Entry& one = entries[std::min<std::size_t>(entry, entries.size() - 1)];
    if (one.offset > handle.source.size() || one.size > handle.source.size() - one.offset) return {handle.source};
    return {handle.source.subspan(static_cast<std::size_t>(one.offset), static_cast<std::size_t>(one.size))};
  }
  std::vector<Bytes> tables;
  const Header header = handle.file ? handle.file->header()
                        : handle.ours.header != nullptr
                            ? handle.ours.header(*handle.filter->digests(), handle.filter->record())
                            : Header{};
  for (const auto& section : header.sections) tables.push_back(section.bytes);
  return tables;
}

std::string row_text(const cli::SizeRow& row) {
  const auto& [family, keys, size] = row;
  Json json;
  json.add("family", family->name).add("keys", keys).add("bits", size.bits).add("bytes", size.bytes);
  json.add("bits_per_key", row.bits_per_key()).add("probes", size.probes).add("fpr", size.fpr);
  json.add("bits_per_key_limit", row.limit()).add("above_limit", row.above()).add("summary", family->summary);
  json.add("add", family->inserts).add("remove", family->erases).add("merge", family->merges);
  return json.add("grow", family->grows).text();
}

}  // namespace
}  // namespace perhaps::web

// The JavaScript engine reads numbers exactly, and whole texts only: what the parameters of a format need. The reader
// of the C library takes 15 KB, most of it 128-bit products in software. The linker puts this one in its place
// (web/CMakeLists.txt).
extern "C" {
__attribute__((import_module("env"), import_name("number_of"))) double number_of(const char* text);
double __wrap_strtod(const char* text, char** end);  // NOLINT(bugprone-reserved-identifier): the linker's name
double __wrap_strtod(const char* text, char** end) {
  const double value = number_of(text);
  *end = const_cast<char*>(text) + (std::isnan(value) ? 0 : std::strlen(text));
  return value;
}
}

// No module builds a map. The linker takes this, and leaves out the loops of src/build/ribbon_map_kernels.cc.
namespace perhaps::kernel {
void ribbon_map_build_kernels(Target, InstructionSet&) {}
}  // namespace perhaps::kernel

using namespace perhaps;       // NOLINT(google-build-using-namespace): the functions are C's
using namespace perhaps::web;  // NOLINT(google-build-using-namespace)

PERHAPS_WEB const char* web_version() { return perhaps_version(); }
PERHAPS_WEB const char* web_error() { return error_text.c_str(); }
PERHAPS_WEB const char* web_result() { return result.data(); }
PERHAPS_WEB std::size_t web_result_size() { return result.size(); }
// A large result is not kept.
PERHAPS_WEB void web_forget() { std::string().swap(result); }

// What web_new, web_build and web_build_integers make. numbers: keys, fpr, bits per key, bytes, guard bits, arity.
// Pointers may be null; the texts must stay until then.
PERHAPS_WEB void web_want(const char* family, const char* format, const char* parameters, const double* numbers,
                          const std::uint64_t* seed, const unsigned char* secret) {
  wanted = {};
  wanted.size = sizeof wanted;
  wanted.family = family;
  wanted.format = format;
  wanted.parameters = parameters;
  wanted.keys = whole(numbers[0]);
  wanted.fpr = numbers[1];
  wanted.bits_per_key = numbers[2];
  wanted.max_bytes = whole(numbers[3]);
  wanted.guard_bits = static_cast<std::uint32_t>(numbers[4]);
  wanted.arity = static_cast<std::uint32_t>(numbers[5]);
  if (seed != nullptr) wanted_seed = *seed;
  wanted.seed = seed == nullptr ? nullptr : &wanted_seed;
  wanted.secret = secret;
}
PERHAPS_WEB int web_new(perhaps_filter** filter) { return of_library(perhaps_new(&wanted, filter)); }
PERHAPS_WEB int web_build(const char* data, const std::uint32_t* offsets, std::size_t count, perhaps_filter** filter) {
  const perhaps_status status = guarded([&]() -> Result<std::string> {
    std::vector<perhaps_key> keys;
    keys.reserve(count);
    for (std::size_t i = 0; i < count; ++i) keys.push_back({data + offsets[i], offsets[i + 1] - offsets[i]});
    if (perhaps_build(&wanted, keys.data(), count, filter) != PERHAPS_OK) *filter = nullptr;
    return std::string();
  });
  return status != PERHAPS_OK ? status : *filter != nullptr ? PERHAPS_OK : of_library(PERHAPS_BAD_PARAMETER);
}
PERHAPS_WEB int web_build_integers(const std::uint64_t* integers, std::size_t count, perhaps_filter** filter) {
  return of_library(perhaps_build_integers(&wanted, integers, count, filter));
}

// Copies the bytes.
PERHAPS_WEB int web_open(const void* bytes, std::size_t size, const char* file_name, const char* format,
                         const char* parameters, const unsigned char* secret, perhaps_filter** filter) {
  perhaps_open_options options{};
  options.size = sizeof options;
  options.secret = secret;
  options.format = format;
  options.parameters = parameters;
  options.file_name = file_name;
  return of_library(perhaps_from_bytes(bytes, size, &options, filter));
}
PERHAPS_WEB int web_copy(const perhaps_filter* filter, perhaps_filter** copy) {
  return of_library(perhaps_copy(filter, copy));
}
PERHAPS_WEB void web_free(perhaps_filter* filter) { perhaps_free(filter); }

PERHAPS_WEB int web_insert(perhaps_filter* filter, const char* data, const std::uint32_t* offsets, std::size_t count,
                           std::size_t* inserted) {
  *inserted = 0;
  return in_chunks(data, offsets, count, [&](const perhaps_key* keys, std::size_t, std::size_t some) {
    std::size_t went_in = 0;
    const perhaps_status status = of_library(perhaps_insert(filter, keys, some, &went_in));
    *inserted += went_in;
    return status;
  });
}
PERHAPS_WEB int web_insert_integers(perhaps_filter* filter, const std::uint64_t* integers, std::size_t count,
                                    std::size_t* inserted) {
  *inserted = 0;
  return of_library(perhaps_insert_integers(filter, integers, count, inserted));
}

// A byte of `out` becomes 0 for each key that is certainly absent, else 1.
PERHAPS_WEB int web_query(const perhaps_filter* filter, const char* data, const std::uint32_t* offsets,
                          std::size_t count, std::uint8_t* out) {
  return in_chunks(data, offsets, count, [&](const perhaps_key* keys, std::size_t from, std::size_t some) {
    std::array<std::uint64_t, kChunk / 64> words;
    const perhaps_status status = of_library(perhaps_query(filter, keys, some, words.data()));
    if (status == PERHAPS_OK) spread(words.data(), some, out + from);
    return status;
  });
}
PERHAPS_WEB int web_query_integers(const perhaps_filter* filter, const std::uint64_t* integers, std::size_t count,
                                   std::uint8_t* out) {
  constexpr std::size_t kMany = 16 * kChunk;
  std::array<std::uint64_t, kMany / 64> words;
  for (std::size_t from = 0; from < count; from += kMany) {
    const std::size_t some = std::min(kMany, count - from);
    const perhaps_status status = of_library(perhaps_query_integers(filter, integers + from, some, words.data()));
    if (status != PERHAPS_OK) return status;
    spread(words.data(), some, out + from);
  }
  return PERHAPS_OK;
}

// counts: removed, absent, kept.
PERHAPS_WEB int web_erase(perhaps_filter* filter, const char* data, const std::uint32_t* offsets, std::size_t count,
                          double* counts) {
  return in_chunks(data, offsets, count, [&](const perhaps_key* keys, std::size_t, std::size_t some) {
    perhaps_erased erased{};
    erased.size = sizeof erased;
    const perhaps_status status = of_library(perhaps_erase(filter, keys, some, &erased));
    counts[0] += static_cast<double>(erased.removed);
    counts[1] += static_cast<double>(erased.absent);
    counts[2] += static_cast<double>(erased.kept);
    return status;
  });
}
PERHAPS_WEB int web_erase_integers(perhaps_filter* filter, const std::uint64_t* integers, std::size_t count,
                                   double* counts) {
  perhaps_erased erased{};
  erased.size = sizeof erased;
  const perhaps_status status = of_library(perhaps_erase_integers(filter, integers, count, &erased));
  counts[0] = static_cast<double>(erased.removed);
  counts[1] = static_cast<double>(erased.absent);
  counts[2] = static_cast<double>(erased.kept);
  return status;
}
PERHAPS_WEB int web_merge(perhaps_filter* filter, const perhaps_filter* other) {
  return of_library(perhaps_merge(filter, other));
}
PERHAPS_WEB int web_intersect(perhaps_filter* filter, const perhaps_filter* other) {
  return of_library(perhaps_intersect(filter, other));
}

// The bytes of its file.
PERHAPS_WEB int web_bytes(const perhaps_filter* filter) {
  return guarded([&]() -> Result<std::string> {
    std::size_t size = 0;
    perhaps_to_bytes(filter, nullptr, 0, &size);
    std::string bytes(size, 0);
    if (perhaps_to_bytes(filter, bytes.data(), size, &size) != PERHAPS_OK)
      return Error{Errc::bad_parameter, perhaps_last_error()};
    return bytes;
  });
}
PERHAPS_WEB double web_byte_size(const perhaps_filter* filter) {
  return static_cast<double>(perhaps_byte_size(filter));
}
PERHAPS_WEB int web_read_only(const perhaps_filter* filter) { return filter->changing == nullptr ? 1 : 0; }
PERHAPS_WEB int web_info(const perhaps_filter* filter) {
  return guarded([&]() -> Result<std::string> { return info_of(*filter); });
}
// The share of bits that are set in each of `cells` equal parts of a table.
PERHAPS_WEB int web_fill(const perhaps_filter* filter, std::uint32_t entry, std::uint32_t cells, float* out) {
  return guarded([&]() -> Result<std::string> {
    std::uint64_t all = 0;
    const std::vector<Bytes> tables = tables_of(*filter, entry);
    for (const Bytes& table : tables) all += table.size();
    std::vector<std::uint64_t> bits(cells);
    std::vector<std::uint64_t> sizes(cells);
    std::uint64_t at = 0;
    for (const Bytes& table : tables) {
      for (const std::byte byte : table) {
        const auto cell = static_cast<std::size_t>(at++ * cells / all);
        bits[cell] += static_cast<std::uint64_t>(std::popcount(std::to_integer<unsigned>(byte)));
        sizes[cell] += 8;
      }
    }
    for (std::uint32_t i = 0; i < cells; ++i)
      out[i] = sizes[i] == 0 ? -1.0F : static_cast<float>(bits[i]) / static_cast<float>(sizes[i]);
    return std::string();
  });
}
// Up to `size` bytes of the table from byte `from` on, for pictures of single bits.
PERHAPS_WEB int web_table(const perhaps_filter* filter, std::uint32_t from, std::uint32_t size) {
  return guarded([&]() -> Result<std::string> {
    const std::vector<Bytes> tables = tables_of(*filter, 0);
    if (tables.empty() || from >= tables[0].size()) return std::string();
    const Bytes part = tables[0].subspan(from, std::min<std::size_t>(size, tables[0].size() - from));
    return std::string(reinterpret_cast<const char*>(part.data()), part.size());
  });
}
// ------------------------------------------------------------------------------------------------- without a filter

PERHAPS_WEB int web_families() {
  return guarded([]() -> Result<std::string> {
    return Json::array_of(families(), [](const Family& f) {
      Json json;
      json.add("name", f.name).add("summary", f.summary).add("add", f.inserts).add("remove", f.erases);
      json.add("merge", f.merges).add("grow", f.grows).add("forget", f.forgets);
      return json.text();
    });
  });
}
PERHAPS_WEB int web_formats() {
  return guarded([]() -> Result<std::string> {
    return Json::array_of(format::codecs(), [](const format::Codec* codec) {
      Json json;
      json.add("name", codec->name).add("summary", codec->summary).add("writes", codec->build != nullptr);
      return json.add("converts", codec->convert != nullptr).text();
    });
  });
}
// As `perhaps size --json`. Numbers that are not given are 0.
PERHAPS_WEB int web_sizes(double keys, double fpr, double bits_per_key, double max_bytes) {
  return guarded([&]() -> Result<std::string> {
    cli::SizeQuestion question{whole(keys), fpr, bits_per_key, whole(max_bytes), 0};
    if (fpr != 0 && !(fpr > 0 && fpr < 1)) return Error{Errc::bad_parameter, "the rate must be between 0 and 1"};
    if (bits_per_key != 0 && !(bits_per_key > 0 && bits_per_key <= 1024))
      return Error{Errc::bad_parameter, "bits per key must be above 0 and at most 1024"};
    if (question.finds_keys() && question.max_bytes > cli::kMaxBytes)
      return Error{Errc::bad_parameter, "keys can be found for 1 PiB at most"};
    if (fpr == 0 && bits_per_key == 0 && (question.keys == 0 || question.max_bytes == 0)) question.fpr = 0.01;
    std::vector<cli::SizeRow> rows;
    for (const Family& family : families()) {
      if (const auto row = size_row(question, family)) rows.push_back(*row);
    }
    return Json::array_of(rows, row_text);
  });
}
// Numbers that are as good as random, the same ones for the same seed: SplitMix64.
PERHAPS_WEB void web_random(std::uint64_t* out, std::size_t count, double seed) {
  std::uint64_t state = whole(seed + 1) * 0xa0761d6478bd642fu;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    out[i] = z ^ z >> 31;
  }
}
