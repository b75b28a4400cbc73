// The one list of foreign formats.
#include "format/registry.h"

#include <algorithm>
#include <array>

namespace perhaps::format {
namespace {

// One per line, sorted by name.
constexpr std::array kCodecs = {
    &kCassandra,           //
    &kDataSketches,        //
    &kDcso,                //
    &kFuse16,              //
    &kFuse8,               //
    &kGoBloom,             //
    &kGuava,               //
    &kHadoop,              //
    &kLab,                 //
    &kLevelDb,             //
    &kLevelDbFilterBlock,  //
    &kLevelDbTable,        //
    &kMiniLsm,             //
    &kMiniLsmTable,        //
    &kMmh3,                //
    &kNori,                //
    &kNoriTable,           //
    &kParquet,             //
    &kRedisBloomBf,        //
    &kRedisBloomCf,        //
    &kRocksDbFastLocal,    //
    &kRocksDbLegacy,       //
    &kRocksDbRibbon,       //
    &kRocksDbTable,        //
    &kSpark,               //
    &kXor16,               //
    &kXor8,                //
};

}  // namespace

std::span<const Codec* const> codecs() noexcept { return kCodecs; }

const Codec* find(std::string_view name) noexcept {
  for (const Codec* codec : kCodecs)
    if (codec->name == name) return codec;
  return nullptr;
}

Result<const Codec*> detect(const Source& source) {
  Sniffed best = Sniffed::no;
  std::vector<const Codec*> found;
  for (const Codec* codec : kCodecs) {
    const Sniffed sure = codec->sniff(source);
    if (sure == Sniffed::no || sure < best) continue;
    if (sure > best) found.clear();
    best = sure;
    found.push_back(codec);
  }
  const std::string name = source.file_name.empty() ? "these bytes" : source.file_name;
  if (found.empty()) return Error{Errc::bad_magic, name + ": no known filter format"};
  if (found.size() == 1) return found.front();
  std::string names;
  for (std::size_t i = 0; i < found.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == found.size() ? " or " : ", ") + std::string(found[i]->name);
  }
  return Error{Errc::bad_magic, name + ": could be " + names + ", which look alike: name the format"};
}

Result<Opened> open(const Source& source) {
  auto codec = detect(source);
  if (!codec) return std::move(codec).error();
  return (*codec)->open(source, Params(**codec));
}

Result<Converted> convert(const Source& source, const Opened& from, const Codec& to, const Params& params) {
  // If the only filter in the file already has the target format, its bytes are copied out.
  if (from.format != to.name && from.entries.size() == 1 && from.entries.front().format == to.name) {
    const Entry& entry = from.entries.front();
    const Bytes bytes = source.bytes.subspan(entry.offset, entry.size);
    return Converted{{bytes.begin(), bytes.end()},
                     "none: bytes " + std::to_string(entry.offset) + " to " +
                         std::to_string(entry.offset + entry.size) + " of the file, unchanged"};
  }
  if (to.convert != nullptr) return to.convert(source, from, params);
  return Error{Errc::unsupported, std::string(from.format) + " to " + std::string(to.name) +
                                      ": the two place the bits of a key differently, and a filter does not store its "
                                      "keys: rebuild it from the keys"};
}

}  // namespace perhaps::format
