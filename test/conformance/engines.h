// LevelDB and RocksDB: which codec a case is for, which keys its table holds, and how the filters of a table are
// rebuilt from these keys and from the places where the table was cut.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/leveldb_table.h"
#include "format/rocksdb_table.h"
#include "perhaps/format/format.h"

namespace perhaps::conformance {

using Buffer = std::vector<std::byte>;
using Keys = std::vector<Buffer>;
using Done = std::function<void(bool, const std::string&)>;

inline std::string param(const nlohmann::json& one, const char* name) {
  const auto& params = one.at("params");
  return params.contains(name) && params.at(name).is_string() ? params.at(name).get<std::string>() : std::string();
}

inline bool is_table(const nlohmann::json& one) { return param(one, "kind").starts_with("sst_file"); }

inline const format::Codec* engine_codec_of(const nlohmann::json& one) {
  const std::string system = one.at("system");
  if (is_table(one)) return format::find(system + "-table");
  if (system == "leveldb") return format::find(system);
  // Cases of damaged filters name no implementation: opening dispatches on the last bytes.
  const std::string impl = param(one, "impl");
  return format::find("rocksdb-" + (impl.empty() ? "fastlocal" : impl.substr(0, impl.find('_'))));
}

// If the allocator chose the length of a filter, only the file has it.
inline format::Params with_length(const nlohmann::json& one, format::Params params, const Buffer& file) {
  if (param(one, "impl").ends_with("_offm")) (void)params.set("ln", std::to_string(file.size() - 5));
  return params;
}

// "keys of the file = keyset without the empty key, plus the key 00 and the key ff*40", in order.
inline Keys engine_keys_inside(const nlohmann::json& one, Keys keys) {
  if (!is_table(one)) return keys;
  const auto& params = one.at("params");
  const std::string note = param(one, "note");
  // A damaged table was made from one of the others: its number of keys shows whether these two are among them.
  const bool sentinels = params.contains("sentinels") ? params.at("sentinels").get<bool>()
                                                      : note.find("plus the key 00") != std::string::npos ||
                                                            (param(one, "kind").ends_with("_mangled") &&
                                                             one.at("n_keys").get<std::size_t>() > keys.size());
  if (sentinels) {
    keys.emplace_back(1, std::byte{0});
    keys.emplace_back(40, std::byte{0xff});
  }
  if (note.find("without the empty key") != std::string::npos) std::erase(keys, Buffer());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class T>
T need(perhaps::Result<T> result) {
  if (!result) throw Unreadable(result.error().detail);
  return *std::move(result);
}

// A block with its keys stored whole.
struct TableBlock {
  std::vector<std::pair<Buffer, format::Handle>> entries;

  TableBlock(Bytes file, format::Handle at, format::BlockSum sum,
             format::IndexValues values = format::IndexValues::sized) {
    std::shared_ptr<const Buffer> owner;
    const auto block = format::Block::of(need(format::read_block("table", "block", file, at, sum, &owner)));
    if (!block) throw Unreadable("no block");
    Buffer key;
    format::Entries entry(block->entries, values);
    while (entry.next()) {
      key.resize(entry.shared());
      key.insert(key.end(), entry.rest().begin(), entry.rest().end());
      entries.emplace_back(key, entry.handle());
    }
    if (entry.is_damaged()) throw Unreadable("a damaged block");
  }
};

struct InternalKey {
  Buffer user;
  std::uint64_t packed = 0;  // sequence and type; the newer one sorts first

  InternalKey(const Buffer& key, bool internal) : user(key) {
    if (!internal) return;
    packed = detail::load<std::uint64_t>(key.data() + key.size() - 8);
    user.resize(key.size() - 8);
  }
  bool at_most(const InternalKey& separator) const {
    return user != separator.user ? user < separator.user : packed >= separator.packed;
  }
};

inline std::string first_difference(Bytes ours, Bytes theirs) {
  const auto [a, b] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  return "at byte " + std::to_string(a - ours.begin()) + "; " + std::to_string(ours.size()) + " bytes, theirs " +
         std::to_string(theirs.size());
}

inline bool same_keys(const Keys& inside, std::vector<Buffer> found) {
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found == inside;
}

// The keys are those of the case; the file says which data block holds which of them.
inline void rebuild_leveldb(const nlohmann::json& one, const Keys& inside, Bytes file, const Done& done) {
  const auto footer = need(format::Footer::read("table", file));
  const bool internal = param(one, "kind") == "sst_file_from_db";
  Keys keys;
  std::vector<format::DataBlock> blocks;
  std::uint64_t end = 0;
  for (const auto& [separator, at] : TableBlock(file, footer.index, footer.sum).entries) {
    const TableBlock data(file, at, footer.sum);
    for (const auto& entry : data.entries) keys.push_back(InternalKey(entry.first, internal).user);
    blocks.push_back({at.offset, data.entries.size()});
    end = at.offset + at.size + format::kBlockTrailer;
  }
  if (!same_keys(inside, keys)) return done(false, "the file has other keys");
  const auto opened =
      need(format::find("leveldb-table")->open({.bytes = file}, format::Params(*format::find("leveldb-table"))));
  const format::Entry& entry = opened.entries.at(0);
  const auto theirs = file.subspan(entry.offset, entry.size);
  const std::vector<Bytes> views(keys.begin(), keys.end());
  const Buffer ours = format::filter_block_of(views, blocks, end, one.at("params").at("bits_per_key"));
  done(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()), first_difference(ours, theirs));
}

// Every entry in order, including versions. If the data cannot be read (lz4), the keys of the case, each once.
inline std::vector<InternalKey> entries_of(const nlohmann::json& one, const Keys& inside, Bytes file,
                                           const format::rocksdb::TableFilter& table) {
  const auto values = table.properties.index_has_deltas ? format::IndexValues::handles : format::IndexValues::sized;
  std::vector<InternalKey> keys;
  const auto read = [&](format::Handle index) {
    for (const auto& entry : TableBlock(file, index, table.footer.sum, values).entries) {
      for (const auto& data : TableBlock(file, entry.second, table.footer.sum).entries)
        keys.emplace_back(data.first, true);
    }
  };
  try {
    if (one.at("params").at("partition_filters").get<bool>()) {
      // A partitioned filter implies a partitioned index.
      for (const auto& entry : TableBlock(file, table.footer.index, table.footer.sum, values).entries)
        read(entry.second);
    } else {
      read(table.footer.index);
    }
  } catch (const Unreadable&) {
    keys.clear();
    for (const Buffer& key : inside) keys.emplace_back(key, false);
  }
  return keys;
}

inline void rebuild_rocksdb(const nlohmann::json& one, const Keys& inside, Bytes file, const Done& done) {
  using namespace format::rocksdb;
  const auto table = need(TableFilter::read({.bytes = file}));
  const auto& params = one.at("params");
  const std::vector<InternalKey> keys = entries_of(one, inside, file, table);
  Keys users;
  for (const InternalKey& key : keys) users.push_back(key.user);
  if (!same_keys(inside, users)) return done(false, "the file has other keys");

  const std::string impl = param(one, "impl");
  TableBuilder builder({.kind = impl.starts_with("ribbon")   ? Builder::Kind::ribbon
                                : impl.starts_with("legacy") ? Builder::Kind::legacy
                                                             : Builder::Kind::fast_local,
                        .bits_per_key = params.at("bits_per_key"),
                        .whole_keys = params.at("whole_key_filtering"),
                        .prefix = Prefix::of(param(one, "prefix_extractor"))});
  std::vector<InternalKey> separators;
  if (table.kind == TableFilter::Kind::partitioned) {
    std::optional<format::Handle> at;
    for (const auto& [key, value] : TableBlock(file, table.footer.metaindex, table.footer.sum).entries) {
      if (format::text_of(key).starts_with("partitionedfilter.")) at = value;
    }
    const auto values = table.properties.index_has_deltas ? format::IndexValues::handles : format::IndexValues::sized;
    for (const auto& entry : TableBlock(file, *at, table.footer.sum, values).entries)
      separators.emplace_back(entry.first, !table.properties.index_has_user_keys);
  }
  std::size_t partition = 0;
  const auto length = [&]() -> std::optional<std::uint64_t> {
    if (!impl.ends_with("_offm")) return {};
    return table.partitions.at(partition).at.size - 5;
  };
  const auto check = [&](const Buffer& ours) {
    const format::Handle at = table.partitions.at(partition).at;
    const Bytes theirs = file.subspan(at.offset, at.size);
    done(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()),
         "partition " + std::to_string(partition) + ", " + first_difference(ours, theirs));
    ++partition;
  };
  for (const InternalKey& key : keys) {
    // There is no partition after the last separator.
    while (partition + 1 < separators.size() && !key.at_most(separators[partition])) {
      const auto cut_length = length();
      const auto ours = need(builder.cut(key.user, cut_length));
      check(ours);
    }
    builder.add(key.user);
  }
  if (table.kind == TableFilter::Kind::none) return done(builder.keys() == 0, "the table has no filter");
  check(need(builder.finish(length())));
  done(partition == table.partitions.size(), "another number of partitions");
}

inline void rebuild_table(const nlohmann::json& one, const Keys& keys, const Buffer& file, const Done& done) {
  if (param(one, "kind").ends_with("_mangled")) return;
  const Keys inside = engine_keys_inside(one, keys);
  if (one.at("system") == "leveldb") return rebuild_leveldb(one, inside, file, done);
  rebuild_rocksdb(one, inside, file, done);
}

}  // namespace perhaps::conformance
