// perhaps dedup --exact: no line is lost.
//
// A set of the lines, in which a line is not copied but pointed at: in the mapped file, or in a temporary one for pipes
// and for keys that are a part of a record. A slot has 16 bits of the digest and 48 of the address; an equal digest is
// only a suspicion, which the bytes themselves confirm.
//   memory: 9 bytes per distinct line, however long it is
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include "command.h"
#include "dedup_more.h"
#include "dedup_write.h"
#include "distinct.h"
#include "file/descriptor.h"
#include "json.h"
#include "keys.h"
#include "memory_check.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace {

// Keys in an unlinked temporary file, mapped in pieces that never move: a 32-bit length and the bytes.
class Spill {
 public:
  ~Spill() {
    for (const auto& piece : pieces_) ::munmap(piece.data(), piece.size());
  }
  const std::byte* add(Bytes key) {
    const std::size_t size = key.size() + 4;
    if (left_ < size) grow(size);
    std::byte* const at = next_;
    store_little_endian(at, static_cast<std::uint32_t>(key.size()));
    if (!key.empty()) std::memcpy(at + 4, key.data(), key.size());
    next_ += size;
    left_ -= size;
    return at;
  }
  // Gives the pages back; their content is in the file.
  void drop() noexcept {
    for (const auto& piece : pieces_) ::madvise(piece.data(), piece.size(), MADV_DONTNEED);
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 26;
  void grow(std::size_t least) {
    if (!file_) open();
    const std::size_t size = std::max(kPiece, (least + 4095) / 4096 * 4096);
    // Reserved, so that a full disk is an error here and not a signal later.
    if (const int code = ::posix_fallocate(file_.get(), static_cast<off_t>(end_), static_cast<off_t>(size)); code != 0)
      fail("{}: the temporary file of --exact: {} (TMPDIR)", folder_, std::strerror(code));
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), static_cast<off_t>(end_));
    if (at == MAP_FAILED) throw std::bad_alloc();
    pieces_.emplace_back(static_cast<std::byte*>(at), size);
    end_ += size;
    next_ = static_cast<std::byte*>(at);
    left_ = size;
  }
  void open() {
    const char* const folder = std::getenv("TMPDIR");
    folder_ = folder == nullptr || *folder == 0 ? "/tmp" : folder;
    std::string name = folder_ + "/perhaps-dedup-" + std::string(6, 'X');
    file_ = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (!file_) fail("{}: the temporary file of --exact: {} (TMPDIR)", folder_, std::strerror(errno));
    ::unlink(name.c_str());
  }

  std::string folder_;
  Descriptor file_;
  std::vector<std::span<std::byte>> pieces_;
  std::uint64_t end_ = 0;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

// Where the bytes of a line are that a slot points at.
class Lines {
 public:
  explicit Lines(const KeyOptions& options, bool in_place) : as_(options.as), in_place_(in_place) {}
  bool in_place() const noexcept { return in_place_; }

  void add(const Source& source) {
    if (!in_place_ || &source == last_) return;
    last_ = &source;
    texts_.push_back(source.text());
    std::ranges::sort(texts_, {}, [](Bytes text) { return text.data(); });
  }
  // The line whose address is `at`.
  Bytes at(const std::byte* at) const noexcept {
    if (!in_place_) return {at + 4, load_little_endian<std::uint32_t>(at)};
    if (as_ == KeysAs::u64) return {at, 8};
    if (as_ == KeysAs::len32) return {at, load_little_endian<std::uint32_t>(at - 4)};
    const std::byte* const end = end_of(at);
    const auto* const to = static_cast<const std::byte*>(
        std::memchr(at, std::to_integer<int>(separator_of(as_)), static_cast<std::size_t>(end - at)));
    return {at, to == nullptr ? end : to};
  }
  bool equal(const std::byte* at, Bytes key) const noexcept {
    if (!in_place_ || binary(as_)) {
      const Bytes line = this->at(at);
      return line.size() == key.size() && std::memcmp(line.data(), key.data(), key.size()) == 0;
    }
    const std::byte* const end = end_of(at);
    const auto room = static_cast<std::size_t>(end - at);
    if (room < key.size() || std::memcmp(at, key.data(), key.size()) != 0) return false;
    return room == key.size() || at[key.size()] == separator_of(as_);
  }

 private:
  const std::byte* end_of(const std::byte* at) const noexcept {
    const auto after = std::ranges::upper_bound(texts_, at, {}, [](Bytes text) { return text.data(); });
    const Bytes text = *(after - 1);
    return text.data() + text.size();
  }
  KeysAs as_;
  bool in_place_;
  const Source* last_ = nullptr;
  std::vector<Bytes> texts_;
};

class LineSet {
 public:
  LineSet(const Lines& lines, const Hash& hash, std::uint64_t expected) : lines_(lines), hash_(hash) {
    resize(std::max<std::uint64_t>(expected * 10 / 9 + 64, 1 << 12));
  }
  std::uint64_t bytes() const noexcept { return slots_.size() * sizeof(std::uint64_t); }

  void prefetch(std::uint64_t digest) const noexcept { __builtin_prefetch(&slots_[place(digest)]); }
  // The line that this one may equal.
  void prefetch_line(std::uint64_t digest) const noexcept {
    for (std::size_t i = place(digest); slots_[i] != 0; i = i + 1 == slots_.size() ? 0 : i + 1) {
      if (slots_[i] >> 48 == (digest & 0xffff)) return __builtin_prefetch(pointer(slots_[i]));
    }
  }
  // The slot of an equal line, or the empty one where it belongs.
  std::size_t find(std::uint64_t digest, Bytes key) const noexcept {
    std::size_t i = place(digest);
    for (; slots_[i] != 0; i = i + 1 == slots_.size() ? 0 : i + 1) {
      if (slots_[i] >> 48 == (digest & 0xffff) && lines_.equal(pointer(slots_[i]), key)) break;
    }
    return i;
  }
  bool holds(std::size_t slot) const noexcept { return slots_[slot] != 0; }
  void put(std::size_t slot, std::uint64_t digest, const std::byte* line) {
    slots_[slot] = (digest & 0xffff) << 48 | reinterpret_cast<std::uintptr_t>(line);
    if (++used_ > limit_) grow();
  }

 private:
  static const std::byte* pointer(std::uint64_t slot) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): 16 bits of the hash lie above its 48
    return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(slot & 0xffff'ffff'ffff));
  }
  std::size_t place(std::uint64_t digest) const noexcept {
    return static_cast<std::size_t>((digest >> 32) * slots_.size() >> 32);
  }
  void resize(std::uint64_t slots) {
    if (slots >= std::uint64_t{1} << 32) fail("--exact: more than 3.6e9 distinct lines");
    check_memory(slots * 8, fmt::format("a set of {} lines", grouped(slots / 10 * 9)));
    slots_.assign(static_cast<std::size_t>(slots), 0);
    limit_ = slots / 20 * 19;
  }
  void grow() {
    const std::vector<std::uint64_t> old = std::move(slots_);
    resize(old.size() * 3 / 2);
    for (const std::uint64_t slot : old) {
      if (slot == 0) continue;
      const std::uint64_t digest = hash_(lines_.at(pointer(slot))).value;
      std::size_t i = place(digest);
      while (slots_[i] != 0) i = i + 1 == slots_.size() ? 0 : i + 1;
      slots_[i] = slot;
    }
  }

  const Lines& lines_;
  Hash hash_;
  std::vector<std::uint64_t> slots_;
  std::uint64_t used_ = 0;
  std::uint64_t limit_ = 0;
};

std::uint64_t distinct_in(const DedupArgs& options, Keys& keys, const Hash& hash) {
  const auto threads = static_cast<unsigned>(std::clamp<std::uint64_t>(keys.stored_bytes() >> 20, 1, options.threads));
  std::vector<Distinct> counts(threads);
  Progress progress("counting", keys.stored_bytes());
  keys.for_each_parallel(threads, progress, [&](unsigned thread, const Batch& batch) {
    std::array<std::uint64_t, Parser::kColumn> digests;
    digest_keys(hash, KeysAs::lines, batch.keys, digests);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) counts[thread].add(digests[i]);
  });
  for (unsigned i = 1; i < threads; ++i) counts[0].add(counts[i]);
  return static_cast<std::uint64_t>(counts[0].estimate() * (1 + 3 * Distinct::kError)) + 100;
}

void report_exact(const DedupArgs& options, const DedupWriter& writer, std::uint64_t bytes, double seconds) {
  const std::uint64_t dropped = writer.read() - writer.written();
  if (options.json) {
    Json json;
    json.add("lines", writer.read()).add("out", writer.written()).add("dropped", dropped).add("expected_wrong", 0.0);
    json.add("fpr", 0.0).add("fpr_wanted", 0.0).add("remembers", "everything").add("bytes", bytes);
    write_error(json.add("seconds", seconds).text() + "\n");
    return;
  }
  say("", fmt::format("{} lines read, {} written, {} dropped as {} (none by mistake){}", grouped(writer.read()),
                      grouped(writer.written()), grouped(dropped), dropped == 1 ? "a duplicate" : "duplicates",
                      options.suspects.empty() ? "" : fmt::format("; they are in {}", options.suspects)));
  say("", fmt::format("remembered everything in {}; {}, {} lines/s", bytes_text(static_cast<double>(bytes)),
                      seconds_text(seconds), rate_text(static_cast<double>(writer.read()) / std::max(seconds, 1e-9))));
}

}  // namespace

int dedup_exact(DedupArgs& options) {
  const auto begin = std::chrono::steady_clock::now();
  read_stdin_if_none(options.keys);
  options.keys.frugal = true;
  SideFile dropped("--suspects", options.suspects, options.keys);
  Keys keys(options.keys);
  const Hash hash(std::random_device{}() | std::uint64_t{std::random_device{}()} << 32);
  const std::uint64_t expected = options.keys_expected != 0 ? options.keys_expected
                                 : keys.all_mapped()        ? distinct_in(options, keys, hash)
                                                            : 0;
  Lines lines(options.keys, keys.all_mapped() && options.keys.key_is_record());
  LineSet set(lines, hash, expected);
  Spill spill;
  dropped.begin();
  DedupWriter writer(options.keys, dropped);
  std::array<std::uint64_t, Parser::kColumn> digests;
  std::array<std::uint64_t, Parser::kColumn / 64> seen;
  constexpr unsigned kBlocksBetweenDrops = 16;
  unsigned blocks = 0;
  const Source* current = nullptr;
  Progress progress("reading", keys.stored_bytes(), is_terminal(STDOUT_FILENO));
  keys.for_each(
      progress,
      [&](const Batch& batch, const Source* source) {
        current = source;
        lines.add(*source);
        const std::size_t size = batch.keys.size();
        digest_keys(hash, KeysAs::lines, batch.keys, digests);
        for (std::size_t i = 0; i < size; ++i) set.prefetch(digests[i]);
        for (std::size_t i = 0; i < size; ++i) set.prefetch_line(digests[i]);
        seen.fill(0);
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t slot = set.find(digests[i], batch.keys[i]);
          if (set.holds(slot)) {
            seen[i / 64] |= std::uint64_t{1} << i % 64;
          } else {
            set.put(slot, digests[i], lines.in_place() ? batch.keys[i].data() : spill.add(batch.keys[i]));
          }
        }
        writer.write(batch, source, seen);
        return true;
      },
      [&] {
        writer.block_done();
        if (++blocks % kBlocksBetweenDrops != 0) return;
        spill.drop();
        if (current != nullptr) current->drop();
      });
  writer.flush();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!options.quiet || options.json) report_exact(options, writer, set.bytes(), seconds.count());
  return kYes;
}

}  // namespace perhaps::cli
