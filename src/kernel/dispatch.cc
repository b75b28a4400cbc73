// Which row of kernels runs: the best this CPU has, or the one that PERHAPS_ISA names.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kernel/table.h"
#include "perhaps/ribbon.h"

namespace perhaps {
namespace kernel {

void add_simd_rows([[maybe_unused]] std::vector<const Row*>& rows);
#if !PERHAPS_SIMD
void add_simd_rows(std::vector<const Row*>&) {}
#endif

namespace {

const std::vector<const Row*>& all_rows() {
  static const std::vector<const Row*> rows = [] {
    std::vector<const Row*> result{&kPortable};
    add_simd_rows(result);
    return result;
  }();
  return rows;
}

// An unknown name falls back to the reference: slow is easier to notice, and safer, than a wrong guess.
const Row& choose() {
  const char* wanted = std::getenv("PERHAPS_ISA");
  if (wanted == nullptr) return *all_rows().back();
  for (const Row* row : all_rows()) {
    if (std::string_view(row->isa) == wanted) return *row;
  }
  return kPortable;
}

std::atomic<const Row*> in_use = nullptr;

}  // namespace

std::span<const Row* const> rows() noexcept { return all_rows(); }

const Row& active() noexcept {
  const Row* row = in_use.load(std::memory_order_relaxed);
  if (row == nullptr) {
    row = &choose();
    in_use.store(row, std::memory_order_relaxed);
  }
  return *row;
}

void use(const Row& row) noexcept { in_use.store(&row, std::memory_order_relaxed); }

}  // namespace kernel

namespace detail {

void line_query(LineShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                std::uint64_t* answers, bool ahead) noexcept {
  kernel::active().line_query(shape, table, {digests}, count, answers, ahead);
}
void line_insert(LineShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                 bool ahead) noexcept {
  kernel::active().line_insert(shape, table, {digests}, count, ahead);
}
void line_query_integers(LineShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                         std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  kernel::active().line_query_integers(shape, table, {keys, hash}, count, answers, ahead);
}
void line_insert_integers(LineShape shape, std::byte* table, const std::uint64_t* keys, Hash hash, std::size_t count,
                          bool ahead) noexcept {
  kernel::active().line_insert_integers(shape, table, {keys, hash}, count, ahead);
}
void block_query(BlockShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                 std::uint64_t* answers, bool ahead) noexcept {
  kernel::active().block_query(shape, table, {digests}, count, answers, ahead);
}
void block_insert(BlockShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                  bool ahead) noexcept {
  kernel::active().block_insert(shape, table, {digests}, count, ahead);
}
void block_query_integers(BlockShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                          std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  kernel::active().block_query_integers(shape, table, {keys, hash}, count, answers, ahead);
}
void block_insert_integers(BlockShape shape, std::byte* table, const std::uint64_t* keys, Hash hash, std::size_t count,
                           bool ahead) noexcept {
  kernel::active().block_insert_integers(shape, table, {keys, hash}, count, ahead);
}

void ribbon_query(RibbonShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                  std::uint64_t* answers, bool ahead) noexcept {
  kernel::active().ribbon_query(shape, table, {digests}, count, answers, ahead);
}
void ribbon_query_integers(RibbonShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                           std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  kernel::active().ribbon_query_integers(shape, table, {keys, hash}, count, answers, ahead);
}

bool far_away(std::uint64_t table_bytes) noexcept {
  static const std::uint64_t l2 = [] {
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 ? static_cast<std::uint64_t>(size) : std::uint64_t{512} << 10;
  }();
  return table_bytes > l2;
}

}  // namespace detail
}  // namespace perhaps
