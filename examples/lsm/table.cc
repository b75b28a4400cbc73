#include "table.h"

#include <algorithm>
#include <cstring>

namespace lsm {
namespace {

using perhaps::Bytes;
using perhaps::bytes_of;

void put_number(std::vector<std::byte>& out, std::size_t n) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(n >> shift));
}
void put_text(std::vector<std::byte>& out, std::string_view text) {
  out.insert(out.end(), bytes_of(text).begin(), bytes_of(text).end());
}
std::size_t take_number(Bytes& bytes) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < 4; ++i) n |= std::to_integer<std::size_t>(bytes[i]) << 8 * i;
  bytes = bytes.subspan(4);
  return n;
}
std::string take_text(Bytes& bytes, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), size);
  bytes = bytes.subspan(size);
  return text;
}

Row take_row(Bytes& bytes) {
  const std::size_t key_bytes = take_number(bytes);
  const std::size_t value_bytes = take_number(bytes);
  Row row{take_text(bytes, key_bytes), std::nullopt};
  if (value_bytes != 0) row.value = take_text(bytes, value_bytes - 1);
  return row;
}

perhaps::Quotient fingerprints_of(std::span<const Row> rows) {
  const perhaps::Hash hash;
  std::vector<perhaps::Digest<perhaps::Hash>> digests;
  for (const Row& row : rows) digests.push_back(hash(bytes_of(row.key)));
  return *perhaps::build_quotient(fingerprint_shape(rows.size()), std::span(std::as_const(digests)), hash);
}

}  // namespace

perhaps::QuotientShape fingerprint_shape(std::uint64_t keys) {
  return *perhaps::QuotientShape{.buckets = 64, .remainder_bits = 18}.grown_for(keys);
}

Table::Table(Disk& disk, std::span<const Row> rows, const perhaps::FilterBlockOptions& options, Loading loading)
    : disk_(disk),
      first_(rows.front().key),
      last_(rows.back().key),
      row_count_(rows.size()),
      fingerprints_(fingerprints_of(rows)) {
  std::vector<std::byte> file;
  perhaps::FilterBlockBuilder filter(options);
  for (std::size_t from = 0; from < rows.size(); from += kBlockRows) {
    const std::uint64_t offset = file.size();
    for (const Row& row : rows.subspan(from, std::min(kBlockRows, rows.size() - from))) {
      put_number(file, row.key.size());
      put_number(file, row.value ? 1 + row.value->size() : 0);
      put_text(file, row.key);
      put_text(file, row.value.value_or(""));
      filter.add(row.key);  // of a tombstone too: it has to be found
    }
    if (options.mode == perhaps::FilterMode::per_block) filter.next_block();
    index_.push_back({rows[from].key, offset, file.size() - offset});
  }
  const std::vector<std::byte> filter_bytes = filter.finish();
  filter_offset_ = file.size();
  filter_bytes_ = filter_bytes.size();
  file.insert(file.end(), filter_bytes.begin(), filter_bytes.end());
  file_ = disk_.write(std::move(file));
  open_filter(loading);
}

Table::~Table() { disk_.remove(file_); }

void Table::open_filter(Loading loading) {
  if (loading == Loading::on_open) {
    filter_ = perhaps::FilterBlock::over(disk_.read(file_, filter_offset_, filter_bytes_, filter_reads_));
    return;
  }
  // The trailer says how long the index of the pieces is; the two are kept, and pieces come when they are needed.
  constexpr std::uint64_t kTrailer = perhaps::FilterBlock::kTrailerBytes;
  const std::uint64_t end = filter_offset_ + filter_bytes_;
  const auto tail = perhaps::FilterBlock::tail_bytes(disk_.read(file_, end - kTrailer, kTrailer, filter_reads_));
  if (!tail || *tail > filter_bytes_) return;  // not a filter: *perhaps* to everything
  filter_ = perhaps::FilterBlock::lazy(
      disk_.read(file_, end - *tail, *tail, filter_reads_), [this](std::uint64_t offset, std::uint64_t size) {
        const auto [found, is_new] = pieces_.try_emplace(offset);
        if (is_new) found->second = disk_.read(file_, filter_offset_ + offset, size, filter_reads_);
        return perhaps::FilterBlock::Loaded{found->second};
      });
}

std::optional<Row> Table::read(std::string_view key, std::uint64_t& bytes) const {
  const auto above = std::upper_bound(index_.begin(), index_.end(), key,
                                      [](std::string_view k, const Block& block) { return k < block.first; });
  if (above == index_.begin()) return std::nullopt;
  const auto number = static_cast<std::size_t>(above - index_.begin()) - 1;
  if (filter_.mode() == perhaps::FilterMode::per_block && !filter_.may_contain(number, bytes_of(key))) {
    return std::nullopt;
  }
  const Block& block = index_[number];
  bytes += block.size;
  for (Bytes left = disk_.read(file_, block.offset, block.size, data_reads_); !left.empty();) {
    Row row = take_row(left);
    if (row.key == key) return row;
  }
  return std::nullopt;
}

std::vector<Row> Table::rows() const {
  std::vector<Row> all;
  Reads not_counted;
  for (Bytes left = disk_.read(file_, 0, filter_offset_, not_counted); !left.empty();) all.push_back(take_row(left));
  return all;
}

}  // namespace lsm
