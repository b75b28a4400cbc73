// perhaps split: keys -> one file of records for each shard, by the rule of perhaps/file/shards.h.
//
// Mapped files are split by all threads. Each takes a block, sorts its records into pieces by shard, waits until the
// blocks before it are written, and appends its pieces: only that last step is serial, and a part keeps the order of
// the input whatever the number of threads. Pipes and compressed files are split by one thread.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "perhaps/file/shards.h"
#include "perhaps/file/writer.h"
#include "print.h"

namespace perhaps::cli {
namespace split {
namespace {

constexpr std::string_view kNumber = "%d";

struct Options {
  KeyOptions keys;
  std::string pattern;
  std::uint64_t shards = 0;
  std::uint32_t threads = 1;
  bool json = false;
};

std::string path_of(const Options& options, std::uint64_t shard) {
  std::string path = options.pattern;
  return path.replace(path.find(kNumber), kNumber.size(), fmt::format("{}", shard));
}

void check_pattern(const Options& options) {
  const std::size_t at = options.pattern.find(kNumber);
  if (at == std::string::npos || options.pattern.find(kNumber, at + 1) != std::string::npos)
    fail("-o {}: %d must stand once, for the number of the shard, as in part.%d", options.pattern);
  if (options.shards > kMaxShards) fail("--shards {}: at most {}", options.shards, kMaxShards);
}

// The parts must not be files that are read.
void check_not_inputs(const Options& options) {
  std::vector<struct stat> inputs;
  for (const std::string& path : options.keys.files) {
    struct stat input {};
    const int status = path == "-" ? ::fstat(STDIN_FILENO, &input) : ::stat(path.c_str(), &input);
    if (status == 0) inputs.push_back(input);
  }
  for (std::uint64_t i = 0; i < options.shards; ++i) {
    const std::string path = path_of(options, i);
    struct stat output {};
    if (::stat(path.c_str(), &output) != 0) continue;
    for (const struct stat& input : inputs) {
      if (input.st_dev == output.st_dev && input.st_ino == output.st_ino)
        fail("{}: holds the keys and would be overwritten (-o {})", path, options.pattern);
    }
  }
}

// Every part is open until the end: its file and its folder.
void allow_open_files(std::uint64_t shards) {
  const rlim_t needed = 2 * shards + 64;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed)
    fail("--shards {}: needs {} open files, and {} are allowed (ulimit -Hn)", shards, needed, limit.rlim_max);
  limit.rlim_cur = needed;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) fail("--shards {}: {}", shards, std::strerror(errno));
}

// The records of one block, or of several, by shard.
class Pieces {
 public:
  explicit Pieces(const Options& options) : as_(options.keys.as), pieces_(options.shards), records_(options.shards) {}

  void add(const Batch& batch) {
    const std::uint64_t shards = pieces_.size();
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      const std::uint64_t shard = shard_of(batch.keys[i], shards);
      ++records_[shard];
      std::string& piece = pieces_[shard];
      const Bytes record = batch.records[i];
      if (as_ == KeysAs::len32) {  // its length lies before it
        piece.append(reinterpret_cast<const char*>(record.data()) - 4, record.size() + 4);
      } else {
        piece.append(reinterpret_cast<const char*>(record.data()), record.size());
        if (as_ != KeysAs::u64) piece += static_cast<char>(separator_of(as_));
      }
    }
  }
  std::vector<std::string>& bytes() noexcept { return pieces_; }
  std::vector<std::uint64_t>& records() noexcept { return records_; }

 private:
  KeysAs as_;
  std::vector<std::string> pieces_;
  std::vector<std::uint64_t> records_;
};

class Parts {
 public:
  explicit Parts(const Options& options) : buffers_(options.shards), records_(options.shards) {
    constexpr std::size_t kMemory = std::size_t{1} << 26;
    buffer_ = std::clamp<std::size_t>(kMemory / options.shards, std::size_t{1} << 12, std::size_t{1} << 18);
    files_.reserve(options.shards);
    for (std::uint64_t i = 0; i < options.shards; ++i) files_.push_back(take(FileWriter::create(path_of(options, i))));
  }

  // CSV stays CSV: every part begins with the names of the columns, which must be the same in all files.
  void begin(const Source& source) {
    if (last_ == &source) return;
    const Bytes header = source.header();
    if (last_ == nullptr) {
      for (std::string& buffer : buffers_) {
        if (header.empty()) break;
        buffer.append(reinterpret_cast<const char*>(header.data()), header.size());
        buffer += '\n';
      }
    } else if (!std::ranges::equal(last_->header(), header)) {
      fail("{}: its columns are not those of {}; split them one by one", source.name(), last_->name());
    }
    last_ = &source;
  }
  void append(Pieces& pieces) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      std::string& piece = pieces.bytes()[i];
      records_[i] += std::exchange(pieces.records()[i], 0);
      if (buffers_[i].size() + piece.size() > buffer_) flush(i);
      if (piece.size() > buffer_) {
        take(files_[i].append(bytes_of(piece)));
      } else {
        buffers_[i] += piece;
      }
      piece.clear();
    }
  }
  void commit() {
    for (std::size_t i = 0; i < files_.size(); ++i) flush(i);
    const Saving saving;
    for (FileWriter& file : files_) take(file.commit());
  }
  std::uint64_t bytes(std::size_t i) const noexcept { return files_[i].size(); }
  std::uint64_t records(std::size_t i) const noexcept { return records_[i]; }
  std::uint64_t records() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : records_) sum += n;
    return sum;
  }

 private:
  void flush(std::size_t i) {
    take(files_[i].append(bytes_of(buffers_[i])));
    buffers_[i].clear();
  }

  std::vector<FileWriter> files_;
  std::vector<std::string> buffers_;
  std::vector<std::uint64_t> records_;
  std::size_t buffer_ = 0;
  const Source* last_ = nullptr;
};

void report(const Options& options, const Keys& keys, const Parts& parts, double seconds) {
  if (options.json) {
    std::vector<std::string> items;
    for (std::uint64_t i = 0; i < options.shards; ++i) {
      Json json;
      json.add("file", path_of(options, i)).add("shard", i).add("shards", options.shards);
      json.add("records", parts.records(i)).add("bytes", parts.bytes(i));
      items.push_back(json.text());
    }
    Out().write(Json::array(items) + "\n");
    return;
  }
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < options.shards; ++i) {
    least = std::min(least, parts.records(i));
    most = std::max(most, parts.records(i));
  }
  Out().write(fmt::format("{}: {} records of {} in {} shard{}, {} to {} in each; {}, {} records/s\n",
                          bold(options.pattern), grouped(parts.records()), keys.names(), options.shards,
                          options.shards == 1 ? "" : "s", grouped(least), grouped(most), seconds_text(seconds),
                          rate_text(static_cast<double>(parts.records()) / std::max(seconds, 1e-9))));
}

int run(Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  check_pattern(options);
  read_stdin_if_none(options.keys);
  check_not_inputs(options);
  Keys keys(options.keys);
  allow_open_files(options.shards);
  Parts parts(options);
  {
    Progress progress("splitting", keys.stored_bytes());
    if (keys.all_mapped()) {
      const auto blocks = std::max<std::uint64_t>(1, keys.stored_bytes() >> 20);
      const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(options.threads, blocks));
      std::vector<Pieces> pieces(threads, Pieces(options));
      keys.for_each_block(
          threads, progress, [&](unsigned thread, const Batch& batch) { pieces[thread].add(batch); },
          [&](unsigned thread, const Source& source) {
            parts.begin(source);
            parts.append(pieces[thread]);
          });
    } else {
      Pieces pieces(options);
      keys.for_each(progress, [&](const Batch& batch, const Source* source) {
        parts.begin(*source);
        pieces.add(batch);
        parts.append(pieces);
        return true;
      });
    }
  }
  if (parts.records() == 0) fail("no keys came from {}", keys.names());
  parts.commit();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  report(options, keys, parts, seconds.count());
  return kYes;
}

}  // namespace
}  // namespace split

Command::Run split_command(CLI::App& app) {
  auto options = std::make_shared<split::Options>();
  app.add_option("-o,--output", options->pattern, "The files to write: %d stands for the number of the shard, from 0")
      ->type_name("FILE")
      ->required();
  add_count(app, "--shards", options->shards, "N", "How many shards")->required();
  declare_threads(app, options->threads);
  declare_json(app, options->json);
  declare_record_files(app, options->keys);
  declare_key_format(app, options->keys);
  return [options] { return split::run(*options); };
}

}  // namespace perhaps::cli
