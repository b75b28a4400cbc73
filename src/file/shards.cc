// Files of shards; doc/shards.md is the specification.
#include "perhaps/file/shards.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "hash/checksum.h"
#include "perhaps/file/writer.h"

namespace perhaps {
namespace {

using detail::load;
using detail::store;

constexpr std::array<unsigned char, 8> kMagic = {0x89, 's', 'h', 'a', 'r', 'd', 's', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kUnit = 64;

constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kZeroAt = 12;
constexpr std::size_t kCountAt = 16;
constexpr std::size_t kHereAt = 24;
constexpr std::size_t kChecksumAt = 32;
constexpr std::size_t kEntriesAt = 40;
constexpr std::size_t kEntry = 32;

constexpr std::uint64_t padded(std::uint64_t size) noexcept { return (size + kUnit - 1) / kUnit * kUnit; }

}  // namespace

bool is_shards(Bytes start) noexcept {
  return start.size() >= kMagic.size() && std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<Shards> Shards::over(Bytes file, const std::string& name) {
  const auto bad = [&](Errc code, const std::string& fact) { return Error{code, name + ": " + fact}; };
  const auto text = [](std::uint64_t n) { return std::to_string(n); };
  if (!is_shards(file)) return bad(Errc::bad_magic, "not a file of shards");
  if (file.size() < kEntriesAt) return bad(Errc::truncated, "truncated within the header");
  const std::byte* const at = file.data();
  if (const auto version = load<std::uint32_t>(at + kVersionAt); version != kVersion)
    return bad(Errc::bad_version, "version " + text(version) + "; this library knows version " + text(kVersion));
  Shards result;
  result.count_ = load<std::uint64_t>(at + kCountAt);
  const auto here = load<std::uint64_t>(at + kHereAt);
  if (result.count_ == 0 || result.count_ > kMaxShards || here == 0 || here > result.count_)
    return bad(Errc::bad_parameter, "damaged header: " + text(here) + " of " + text(result.count_) + " shards");
  const std::uint64_t header_bytes = kEntriesAt + kEntry * here;
  if (file.size() < header_bytes) return bad(Errc::truncated, "truncated within the header");
  if (load<std::uint32_t>(at + kZeroAt) != 0 ||
      checksum_around(file.first(header_bytes), kChecksumAt) != load<std::uint64_t>(at + kChecksumAt))
    return bad(Errc::bad_checksum, "damaged: the header does not match its checksum");

  std::uint64_t end = header_bytes;
  for (std::uint64_t i = 0; i < here; ++i) {
    const std::byte* const entry = at + kEntriesAt + kEntry * i;
    const auto index = load<std::uint64_t>(entry);
    const auto offset = load<std::uint64_t>(entry + 8);
    const auto size = load<std::uint64_t>(entry + 16);
    if (index >= result.count_ || (i != 0 && index <= result.here_.back().index))
      return bad(Errc::bad_parameter, "entry " + text(i) + " is of shard " + text(index));
    if (offset != padded(end)) return bad(Errc::bad_parameter, "shard " + text(index) + " begins at " + text(offset));
    if (offset > file.size() || size > file.size() - offset)
      return bad(Errc::truncated, "truncated: shard " + text(index) + " ends at " + text(offset) + " + " + text(size) +
                                      ", the file has " + text(file.size()));
    const Bytes padding = file.subspan(end, offset - end);
    if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; }))
      return bad(Errc::bad_parameter, "bytes before shard " + text(index));
    const Bytes bytes = file.subspan(offset, size);
    if (checksum_of(bytes) != load<std::uint64_t>(entry + 24))
      return bad(Errc::bad_checksum, "damaged: shard " + text(index) + " does not match its checksum");
    result.here_.push_back({index, bytes});
    end = offset + size;
  }
  if (end != file.size()) return bad(Errc::bad_parameter, text(file.size() - end) + " bytes behind the last shard");
  return result;
}

struct ShardsWriter::State {
  FileWriter file;
  std::vector<std::byte> header;
  std::uint64_t begun = 0;
  Checksum checksum;

  std::byte* entry() noexcept { return header.data() + kEntriesAt + kEntry * (begun - 1); }
  void end_shard() noexcept {
    if (begun == 0) return;
    store(entry() + 16, file.size() - load<std::uint64_t>(entry() + 8));
    store(entry() + 24, checksum.value());
  }
};

ShardsWriter::ShardsWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
ShardsWriter::ShardsWriter(ShardsWriter&&) noexcept = default;
ShardsWriter::~ShardsWriter() = default;
std::uint64_t ShardsWriter::size() const noexcept { return state_->file.size(); }

Result<ShardsWriter> ShardsWriter::create(const std::string& path, std::uint64_t count, std::uint64_t here) {
  assert(here != 0 && here <= count && count <= kMaxShards);
  auto file = FileWriter::create(path);
  if (!file) return std::move(file).error();
  std::vector<std::byte> header(kEntriesAt + kEntry * here);
  // Reserves its place; the content is known only at the end.
  if (auto done = file->append(header); !done) return std::move(done).error();
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  store(header.data() + kVersionAt, kVersion);
  store(header.data() + kCountAt, count);
  store(header.data() + kHereAt, here);
  return ShardsWriter(std::make_unique<State>(State{*std::move(file), std::move(header), 0, {}}));
}

Result<void> ShardsWriter::begin(std::uint64_t index) {
  State& state = *state_;
  state.end_shard();
  ++state.begun;
  assert(index < load<std::uint64_t>(state.header.data() + kCountAt));
  assert(state.begun <= load<std::uint64_t>(state.header.data() + kHereAt));
  state.checksum = {};
  static constexpr std::array<std::byte, kUnit> kZeros{};
  const std::uint64_t at = padded(state.file.size());
  store(state.entry(), index);
  store(state.entry() + 8, at);
  return state.file.append(Bytes(kZeros).first(at - state.file.size()));
}

Result<void> ShardsWriter::append(Bytes bytes) {
  state_->checksum.add(bytes);
  return state_->file.append(bytes);
}

Result<void> ShardsWriter::commit() {
  State& state = *state_;
  state.end_shard();
  assert(state.begun == load<std::uint64_t>(state.header.data() + kHereAt));
  store(state.header.data() + kChecksumAt, checksum_around(state.header, kChecksumAt));
  if (auto done = state.file.overwrite(0, state.header); !done) return done;
  return state.file.commit();
}

Result<void> write_shards(const std::string& path, std::uint64_t count, std::span<const Shard> shards) {
  auto file = ShardsWriter::create(path, count, shards.size());
  if (!file) return std::move(file).error();
  for (const Shard& shard : shards) {
    if (auto done = file->begin(shard.index); !done) return done;
    if (auto done = file->append(shard.bytes); !done) return done;
  }
  return file->commit();
}

}  // namespace perhaps
