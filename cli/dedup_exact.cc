// perhaps dedup --exact: no line is lost.
//
// A set of the lines, in which a line is not copied but pointed at: in the mapped file, or in a temporary one for pipes
// and for keys that are a part of a record. A slot has the position of a line and some bits of its digest; equal bits
// are only a suspicion, which the bytes themselves confirm.
//   memory: 5 bytes per slot for inputs below 4 GiB, up to 8 for larger ones, and at most 0.9 lines per slot, however
//           long the lines are
//
// The first line that a repeated one equals may lie anywhere in the file. To look there at once costs a fault of a page
// for nearly every repeated line, and all pages that were looked at count as memory. So the suspicions of many lines
// wait, and are confirmed in the order of the positions: each page once per chunk.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
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
  // Its position in the file.
  std::uint64_t add(Bytes key) {
    const std::size_t size = key.size() + 4;
    if (left_ < size) grow(size);
    std::byte* const at = next_;
    store_little_endian(at, static_cast<std::uint32_t>(key.size()));
    if (!key.empty()) std::memcpy(at + 4, key.data(), key.size());
    next_ += size;
    left_ -= size;
    return end_ - left_ - size;
  }
  std::span<const std::span<std::byte>> pieces() const noexcept { return pieces_; }
  // Gives the pages back; their content is in the file.
  void drop() const noexcept {
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

// Finds the bytes of the line that a slot points at. Positions count the bytes of all inputs in a row, or those of the
// temporary file.
class Lines {
 public:
  Lines(const KeyOptions& options, bool in_place) : as_(options.as), in_place_(in_place) {}
  bool in_place() const noexcept { return in_place_; }

  void add(const Source& source) {
    if (!in_place_ || &source == last_) return;
    last_ = &source;
    texts_.push_back({end(), source.text()});
  }
  // Of a key: in the last source, or in the temporary file, to which it is added.
  std::uint64_t keep(Bytes key) {
    if (in_place_) {
      // Of a key behind its length, where the length is: the key may be empty, and end with the file.
      const std::byte* const from = key.data() - (as_ == KeysAs::len32 ? 4 : 0);
      return texts_.back().first + static_cast<std::uint64_t>(from - texts_.back().bytes.data());
    }
    const std::uint64_t position = spill_.add(key);
    while (texts_.size() < spill_.pieces().size()) texts_.push_back({end(), spill_.pieces()[texts_.size()]});
    return position;
  }
  // The line at a position.
  Bytes at(std::uint64_t position) const noexcept {
    const Bytes rest = rest_at(position);
    const std::byte* const from = rest.data();
    if (!in_place_ || as_ == KeysAs::len32) return rest.subspan(4, load_little_endian<std::uint32_t>(from));
    if (as_ == KeysAs::u64) return rest.first(8);
    const auto* const to =
        static_cast<const std::byte*>(std::memchr(from, std::to_integer<int>(separator_of(as_)), rest.size()));
    return to == nullptr ? rest : Bytes(from, to);
  }
  bool equal(std::uint64_t position, Bytes key) const noexcept {
    if (!in_place_ || binary(as_)) {
      const Bytes line = at(position);
      return line.size() == key.size() && std::memcmp(line.data(), key.data(), key.size()) == 0;
    }
    const Bytes rest = rest_at(position);
    if (rest.size() < key.size() || std::memcmp(rest.data(), key.data(), key.size()) != 0) return false;
    return rest.size() == key.size() || rest[key.size()] == separator_of(as_);
  }
  void prefetch(std::uint64_t position) const noexcept { __builtin_prefetch(rest_at(position).data()); }
  // Gives the pages back; their content is in the files.
  void drop() const noexcept {
    spill_.drop();
    if (last_ != nullptr) last_->drop();
  }
  // Those from one position to another. The page cache maps pieces of kPiece bytes: from the beginning of its piece.
  static constexpr std::uintptr_t kPiece = std::uintptr_t{1} << 21;
  void drop(std::uint64_t from, std::uint64_t to) const noexcept {
    const Text& text = text_at(from);
    const auto first = reinterpret_cast<std::uintptr_t>(text.bytes.data());
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = [&](std::uint64_t position) {
      return first + static_cast<std::uintptr_t>(std::min<std::uint64_t>(position - text.first, text.bytes.size()));
    };
    const std::uintptr_t begin = std::max(address(from) / kPiece * kPiece, (first + page - 1) / page * page);
    const std::uintptr_t end = address(to) / page * page;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the text, on the border of a page
    if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }

 private:
  struct Text {
    std::uint64_t first;  // position
    Bytes bytes;
  };
  std::uint64_t end() const noexcept { return texts_.empty() ? 0 : texts_.back().first + texts_.back().bytes.size(); }
  const Text& text_at(std::uint64_t position) const noexcept {
    return *(std::ranges::upper_bound(texts_, position, {}, &Text::first) - 1);
  }
  // From there to the end of its text.
  Bytes rest_at(std::uint64_t position) const noexcept {
    const Text& text = text_at(position);
    return text.bytes.subspan(static_cast<std::size_t>(position - text.first));
  }

  KeysAs as_;
  bool in_place_;
  const Source* last_ = nullptr;
  Spill spill_;
  std::vector<Text> texts_;
};

// Positions by digest, in a table with linear probing.
class LineSet {
 public:
  // Positions are below `positions`.
  LineSet(const Lines& lines, const Hash& hash, std::uint64_t expected, std::uint64_t positions)
      : lines_(lines), hash_(hash), position_bits_(static_cast<unsigned>(std::bit_width(positions))) {
    // Eight bits of the digest or more: until the table is full a line meets five other slots on average, so that at
    // most one line in fifty is suspected by mistake.
    width_ = std::clamp((position_bits_ + 8 + 7) / 8, 5u, 8u);
    resize(std::max<std::uint64_t>(expected * 10 / 9 + 64, 1 << 12));
  }
  std::uint64_t bytes() const noexcept { return table_.size(); }

  void prefetch(std::uint64_t digest) const noexcept { __builtin_prefetch(&table_[place(digest) * width_]); }
  // A slot that may hold the line of this digest, or the empty one where it belongs.
  std::size_t find(std::uint64_t digest) const noexcept { return look(place(digest), digest); }
  // The same, behind the slot of the line at `position`, which find() or find_behind() has met.
  std::size_t find_behind(std::uint64_t position, std::uint64_t digest) const noexcept {
    std::size_t slot = find(digest);
    while (this->position(slot) != position) slot = look(after(slot), digest);
    return look(after(slot), digest);
  }
  bool holds(std::size_t slot) const noexcept { return load(slot) != 0; }
  // REQUIRES: holds(slot)
  std::uint64_t position(std::size_t slot) const noexcept {
    return (load(slot) & ((std::uint64_t{1} << position_bits_) - 1)) - 1;
  }
  // REQUIRES: it is empty, and there is room
  void put(std::size_t slot, std::uint64_t digest, std::uint64_t position) noexcept {
    store(slot, tag(digest) | (position + 1));
    ++used_;
  }
  // For so many more lines. To grow changes which slot a lookup finds first: not while suspicions wait.
  bool has_room(std::uint64_t lines) const noexcept { return used_ + lines <= limit_; }
  void make_room(std::uint64_t lines) {
    while (!has_room(lines)) grow();
  }

 private:
  std::uint64_t mask() const noexcept { return ~std::uint64_t{0} >> (64 - 8 * width_); }
  std::uint64_t load(std::size_t slot) const noexcept {
    return load_little_endian<std::uint64_t>(&table_[slot * width_]) & mask();
  }
  // The bytes behind it are the next slot's, or spare.
  void store(std::size_t slot, std::uint64_t value) noexcept {
    std::byte* const at = &table_[slot * width_];
    store_little_endian(at, (load_little_endian<std::uint64_t>(at) & ~mask()) | value);
  }
  // The bits of the digest in a slot: above the position, and not those that say its place.
  std::uint64_t tag(std::uint64_t digest) const noexcept { return (digest & 0xffff'ffff) << position_bits_ & mask(); }
  std::size_t after(std::size_t slot) const noexcept { return slot + 1 == slots_ ? 0 : slot + 1; }
  std::size_t look(std::size_t slot, std::uint64_t digest) const noexcept {
    const std::uint64_t wanted = tag(digest) >> position_bits_;
    for (;; slot = after(slot)) {
      const std::uint64_t value = load(slot);
      if (value == 0 || value >> position_bits_ == wanted) return slot;
    }
  }
  std::size_t place(std::uint64_t digest) const noexcept {
    return static_cast<std::size_t>((digest >> 32) * slots_ >> 32);
  }
  void resize(std::uint64_t slots) {
    if (slots >= std::uint64_t{1} << 32) fail("--exact: more than 3.6 billion distinct lines");
    check_memory(slots * width_, fmt::format("a set of {} lines", grouped(slots / 10 * 9)));
    slots_ = static_cast<std::size_t>(slots);
    table_.assign(slots_ * width_ + 8, std::byte{0});
    limit_ = slots / 20 * 19;
  }
  void grow() {
    const std::vector<std::byte> old = std::move(table_);
    const std::size_t slots = slots_;
    resize(std::uint64_t{slots} * 3 / 2);
    for (std::size_t i = 0; i < slots; ++i) {
      const std::uint64_t value = load_little_endian<std::uint64_t>(&old[i * width_]) & mask();
      if (value == 0) continue;
      const std::uint64_t position = (value & ((std::uint64_t{1} << position_bits_) - 1)) - 1;
      std::size_t slot = place(hash_(lines_.at(position)).value);
      while (load(slot) != 0) slot = after(slot);
      store(slot, value);
    }
  }

  const Lines& lines_;
  Hash hash_;
  unsigned position_bits_;
  unsigned width_;
  std::size_t slots_ = 0;
  std::vector<std::byte> table_;
  std::uint64_t used_ = 0;
  std::uint64_t limit_ = 0;
};

// Lines in a row, until the suspicions among them are settled.
class Chunk {
 public:
  // Of lines in a mapped file; others settle after each batch, whose bytes do not stay. A settled chunk has walked over
  // all that was read before it, so large ones are faster; its own text is in memory meanwhile, hence kText.
  static constexpr unsigned kLineBits = 18;
  static constexpr std::size_t kLines = std::size_t{1} << kLineBits;
  static constexpr std::size_t kText = std::size_t{8} << 20;

  Chunk(Lines& lines, LineSet& set, const Hash& hash, unsigned threads)
      : lines_(lines), set_(set), hash_(hash), threads_(lines.in_place() ? threads : 1) {
    for (auto* const suspects : {&suspects_, &sorted_}) suspects->reserve(kLines);
    keys_.reserve(kLines);
  }
  bool is_full() const noexcept {
    return keys_.size() + Parser::kColumn > kLines || text_ >= kText || !lines_.in_place() ||
           !set_.has_room(Parser::kColumn + suspects_.size());
  }
  bool is_empty() const noexcept { return keys_.empty(); }

  // REQUIRES: it is not full
  void add(const Batch& batch) {
    if (is_empty()) set_.make_room(Parser::kColumn);
    const std::size_t size = batch.keys.size();
    digest_keys(hash_, KeysAs::lines, batch.keys, digests_);
    for (std::size_t i = 0; i < size; ++i) set_.prefetch(digests_[i]);
    const std::size_t first = keys_.size();
    keys_.insert(keys_.end(), batch.keys.begin(), batch.keys.end());
    if (!lines_.in_place()) records_.insert(records_.end(), batch.records.begin(), batch.records.end());
    for (std::size_t i = 0; i < size; ++i) {
      text_ += batch.keys[i].size();
      insert(set_.find(digests_[i]), digests_[i], static_cast<std::uint32_t>(first + i));
    }
  }
  // Writes the lines that are new. The chunk is then empty.
  void settle(DedupWriter& writer, const Source* source) {
    seen_.assign((keys_.size() + 63) / 64, 0);
    // A line whose bits equal those of another line by chance is suspected of equalling the next one with these bits,
    // or is new. Equal lines go on together, the first of them first, since suspects of one position keep their order.
    while (!suspects_.empty()) {
      sort_suspects();
      compare();
      for (std::size_t i = 0; i < suspects_.size(); ++i) {
        const std::uint32_t line = line_of(suspects_[i]);
        if (equal_[i] != 0) {
          seen_[line / 64] |= std::uint64_t{1} << line % 64;
        } else {
          innocent_.push_back(suspects_[i]);
        }
      }
      suspects_.clear();
      for (const std::uint64_t innocent : innocent_) {
        const std::uint64_t digest = hash_(keys_[line_of(innocent)]).value;
        insert(set_.find_behind(position_of(innocent), digest), digest, line_of(innocent));
      }
      innocent_.clear();
    }
    writer.write({.keys = keys_, .records = lines_.in_place() ? keys_ : records_}, source, seen_);
    keys_.clear();
    records_.clear();
    text_ = 0;
  }

 private:
  // A suspect is the position of the line that it may equal, above its number in the chunk.
  static std::uint64_t position_of(std::uint64_t suspect) noexcept { return suspect >> kLineBits; }
  static std::uint32_t line_of(std::uint64_t suspect) noexcept {
    return static_cast<std::uint32_t>(suspect & (kLines - 1));
  }

  // Into the slot, if it is empty; otherwise the line may equal the one that the slot points at.
  void insert(std::size_t slot, std::uint64_t digest, std::uint32_t line) {
    if (set_.holds(slot)) {
      suspects_.push_back(set_.position(slot) << kLineBits | line);
    } else {
      set_.put(slot, digest, lines_.keep(keys_[line]));
    }
  }

  // Sorted by the high bits of their positions, which is enough: what they have in common fits the cache.
  void sort_suspects() {
    std::uint64_t last = 0;
    for (const std::uint64_t suspect : suspects_) last = std::max(last, suspect);
    constexpr std::size_t kBits = 12;
    const std::size_t shift = std::max<std::size_t>(static_cast<std::size_t>(std::bit_width(last)), kBits) - kBits;
    std::array<std::uint32_t, (1 << kBits) + 1> ends{};
    for (const std::uint64_t suspect : suspects_) ++ends[(suspect >> shift) + 1];
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    sorted_.resize(suspects_.size());
    for (const std::uint64_t suspect : suspects_) sorted_[ends[suspect >> shift]++] = suspect;
    suspects_.swap(sorted_);
  }

  // equal_[i]: is suspect i the line at its position? In the order of positions, and by several threads: most of the
  // time goes into pages of the file that are not mapped yet.
  void compare() {
    equal_.resize(suspects_.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&](unsigned) {
      for (;;) {
        const std::size_t begin = next.fetch_add(kAtOnce, std::memory_order_relaxed);
        if (begin >= suspects_.size()) return;
        compare(begin, std::min(begin + kAtOnce, suspects_.size()));
      }
    };
    const std::size_t parts = (suspects_.size() + kAtOnce - 1) / kAtOnce;
    on_threads(static_cast<unsigned>(std::min<std::size_t>(threads_, parts)), work);
  }
  void compare(std::size_t begin, std::size_t end) {
    constexpr std::size_t kAhead = 16;
    std::uint64_t from = position_of(suspects_[begin]);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t position = position_of(suspects_[i]);
      if (position > from && position - from >= Lines::kPiece && lines_.in_place()) {
        lines_.drop(from, position);
        from = position;
      }
      if (i + kAhead < end) {
        lines_.prefetch(position_of(suspects_[i + kAhead]));
        __builtin_prefetch(keys_[line_of(suspects_[i + kAhead])].data());
      }
      equal_[i] = lines_.equal(position, keys_[line_of(suspects_[i])]);
    }
    const std::uint64_t last = position_of(suspects_[end - 1]);
    if (last > from && lines_.in_place()) lines_.drop(from, last);
  }

  static constexpr std::size_t kAtOnce = std::size_t{1} << 13;  // suspects

  Lines& lines_;
  LineSet& set_;
  Hash hash_;
  unsigned threads_;
  std::array<std::uint64_t, Parser::kColumn> digests_;
  std::vector<Bytes> keys_;
  std::vector<Bytes> records_;  // where a key is not its record
  std::size_t text_ = 0;        // bytes of the keys
  std::vector<std::uint64_t> suspects_;
  std::vector<std::uint64_t> sorted_;
  std::vector<std::uint8_t> equal_;
  std::vector<std::uint64_t> innocent_;
  std::vector<std::uint64_t> seen_;
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
  constexpr std::uint64_t kAnySize = std::uint64_t{1} << 46;  // of a temporary file
  if (keys.stored_bytes() >= kAnySize) fail("--exact: inputs of 64 TiB and more");
  LineSet set(lines, hash, expected, lines.in_place() ? keys.stored_bytes() + 1 : kAnySize);
  Chunk chunk(lines, set, hash, options.threads);
  dropped.begin();
  DedupWriter writer(options.keys, dropped);
  constexpr unsigned kBlocksBetweenDrops = 16;
  unsigned blocks = 0;
  const Source* current = nullptr;
  Progress progress("reading", keys.stored_bytes(), is_terminal(STDOUT_FILENO));
  keys.for_each(
      progress,
      [&](const Batch& batch, const Source* source) {
        if (source != current && !chunk.is_empty()) chunk.settle(writer, current);
        current = source;
        lines.add(*source);
        chunk.add(batch);
        if (chunk.is_full()) chunk.settle(writer, source);
        return true;
      },
      [&] {
        writer.block_done();
        if (++blocks % kBlocksBetweenDrops == 0) lines.drop();
      });
  chunk.settle(writer, current);
  writer.flush();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!options.quiet || options.json) report_exact(options, writer, set.bytes(), seconds.count());
  return kYes;
}

}  // namespace perhaps::cli
