// perhaps pull: a filter from a Redis server to a file (redis_stream.h).
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "any_file.h"
#include "command.h"
#include "interrupt.h"
#include "little_endian.h"
#include "options.h"
#include "perhaps/file/container.h"
#include "perhaps/file/shards.h"
#include "perhaps/file/writer.h"
#include "perhaps/growing.h"
#include "perhaps/line_bloom.h"
#include "print.h"
#include "progress.h"
#include "redis_filter.h"
#include "redis_stream.h"

namespace perhaps::cli {
namespace {

struct PullOptions {
  std::string url;
  std::string file;
  RedisAccess access;
  bool json = false;
};

Bytes bytes_at(const std::string& text) { return bytes_of(std::string_view(text)); }

// Calls use(iterator, bytes) for every reply of SCANDUMP.
template <class Use>
void scan_dump(Redis& redis, std::string_view command, const std::string& key, Progress& progress, Use use) {
  for (std::string iterator = "0";;) {
    const RedisReply reply = redis.call({command, key, iterator}, true);
    if (reply.failed()) fail("{}: {}", key, reply.text);
    if (reply.items.size() != 2) fail("{}: not what {} answers", key, command);
    if (reply.items[0].number == 0) return;
    iterator = std::to_string(reply.items[0].number);
    use(static_cast<std::uint64_t>(reply.items[0].number), bytes_at(reply.items[1].text));
    progress.advance(reply.items[1].text.size(), 0);
  }
}

[[noreturn]] void fail_changed(const std::string& key) { fail("{}: changed while it was read", key); }

// A filter of ours: a header, which `begin` makes into a new file of that layout, and its table. `end` looks at the
// table and returns what is recorded about it.
template <class Begin, class End>
std::uint64_t pull_own(Redis& redis, const std::string& key, Progress& progress, Begin begin, End end) {
  std::optional<NewContainer> file;
  std::uint64_t filled = 0;
  scan_dump(redis, "BF.SCANDUMP", key, progress, [&](std::uint64_t iterator, Bytes bytes) {
    if (iterator == 1) {
      file = begin(bytes);
      return;
    }
    if (!file || bytes.size() > file->section().size() - filled) fail_changed(key);
    std::memcpy(file->section().data() + filled, bytes.data(), bytes.size());
    filled += bytes.size();
  });
  if (!file || filled != file->section().size()) fail_changed(key);
  const Record record = end(Bytes(file->section()));
  const Saving saving;
  take(file->commit(record));
  return filled;
}

std::uint64_t pull_line(Redis& redis, const std::string& key, const std::string& path, Progress& progress) {
  LineHeader header;
  return pull_own(
      redis, key, progress,
      [&](Bytes bytes) {
        header = LineHeader::from(bytes, key);
        return take(NewContainer::create(path, Header::of<LineLayout>(header.shape, Hash()), header.shape.bytes()));
      },
      [&](Bytes) { return header.record; });
}

// An item that is added meanwhile may move others, from a piece still to come into one that was read. It also counts.
std::uint64_t pull_growing(Redis& redis, const std::string& key, const std::string& path, Progress& progress) {
  GrowingHeader header;
  return pull_own(
      redis, key, progress,
      [&](Bytes bytes) {
        header = GrowingHeader::from(bytes, key);
        return take(NewContainer::create(path, Header::of<GrowingLayout>(header.shape, Hash()), header.shape.bytes()));
      },
      [&](Bytes table) -> Record {
        const std::uint64_t keys = GrowingLayout::keys(header.shape, table.data());
        const RedisReply now = redis.call({"BF.CARD", key}, true);
        if (now.failed() || static_cast<std::uint64_t>(now.number) != keys) fail_changed(key);
        return {.keys = keys, .capacity = keys};
      });
}

// The formats of RedisBloom's types.
std::string_view format_of(std::string_view type) {
  return type == "MBbloom--" ? "redisbloom-bf" : type == "MBbloomCF" ? "redisbloom-cf" : "";
}

// The part of a header that must stay the same while the pieces are read. One more item in a Bloom filter does no harm
// unless the filter grows; in a cuckoo filter it may move others from pieces still to come into pieces already read.
std::string lasting(std::string_view format, std::string header) {
  if (format == "redisbloom-cf") return header;
  constexpr std::size_t kFirst = 20, kLink = 53, kItemsAt = 16;  // links, and where their number of items is
  for (std::size_t at = 0; at + 8 <= header.size(); at = at == 0 ? kFirst + kItemsAt : at + kLink)
    std::fill_n(header.begin() + static_cast<std::ptrdiff_t>(at), 8, '\0');
  return header;
}

// The replies of SCANDUMP, one after the other.
template <class Writer>
void pull_stream(Redis& redis, std::string_view format, const std::string& key, Writer& out, Progress& progress) {
  const std::string_view command = format == "redisbloom-bf" ? "BF.SCANDUMP" : "CF.SCANDUMP";
  std::string header;
  scan_dump(redis, command, key, progress, [&](std::uint64_t iterator, Bytes bytes) {
    if (iterator == 1) header = text_of(bytes);
    std::array<std::byte, 16> frame;
    store_little_endian(frame.data(), iterator);
    store_little_endian(frame.data() + 8, std::uint64_t{bytes.size()});
    take(out.append(frame));
    take(out.append(bytes));
  });
  const RedisReply now = redis.call({command, key, "0"}, true);
  const bool same = now.items.size() == 2 && lasting(format, now.items[1].text) == lasting(format, header);
  if (!same) fail_changed(key);
}

struct Pulled {
  std::string_view format;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> shards{};
};

Pulled pull_shards(Redis& redis, std::uint64_t count, const std::string& path, Progress& progress) {
  const std::string& name = redis.url().key;
  ShardsWriter out = take(ShardsWriter::create(path, count, count));
  std::string_view format;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = shard_key(name, i);
    const std::string type = redis.must({"TYPE", key}).text;
    format = format_of(type);
    if (format.empty()) fail("{}: {}", key, type == "none" ? "no such key" : "of type " + type);
    take(out.begin(i));
    pull_stream(redis, format, key, out, progress);
  }
  const Saving saving;
  take(out.commit());
  return {format, out.size(), count};
}

Pulled pull_to(Redis& redis, const std::string& path) {
  const std::string& key = redis.url().key;
  const std::string type = redis.must({"TYPE", key}).text;
  const std::string_view format = format_of(type);
  Progress progress("pulling", 0);
  if (type == "perhapsLB") return {"line", pull_line(redis, key, path, progress)};
  if (type == "perhapsGF") return {"growing", pull_growing(redis, key, path, progress)};
  if (!format.empty()) {
    FileWriter out = take(FileWriter::create(path));
    pull_stream(redis, format, key, out, progress);
    const Saving saving;
    take(out.commit());
    return {format, out.size()};
  }
  if (const std::uint64_t said = type == "none" ? shards_on(redis, key) : 0; said != 0)
    return pull_shards(redis, said, path, progress);
  fail("{}: {}", key, type == "none" ? "no such key" : fmt::format("of type {}: cannot be pulled", type));
}

int pull(const PullOptions& options) {
  check_output(options.file);
  Redis redis(RedisUrl(options.url), options.access);
  const Pulled pulled = pull_to(redis, options.file);
  const std::string& key = redis.url().key;
  if (options.json) {
    Out().write(json_of_copy(options.file, key, pulled.format, pulled.bytes, pulled.shards, pulled.shards));
    return kYes;
  }
  Out().write(fmt::format("{}: {} as {}, {}{} bytes\n", options.file, key, pulled.format,
                          pulled.shards ? fmt::format("{} shards, ", *pulled.shards) : "", grouped(pulled.bytes)));
  return kYes;
}
}  // namespace

LocalCopy::LocalCopy(const std::string& name, const RedisAccess& access) : name_(name), path_(name) {
  if (!is_redis_url(name)) return;
  Redis redis(RedisUrl(name), access);
  name_ = redis.url().shown();
  path_ = folder_.emplace().path() / "filter";
  pull_to(redis, path_);
}

Command::Run pull_command(CLI::App& app) {
  auto options = std::make_shared<PullOptions>();
  app.add_option("url", options->url,
                 "redis://[[user]:password@]host[:port]/key, rediss:// with TLS, or redis-cluster:// and "
                 "rediss-cluster:// to find all nodes from one")
      ->type_name("URL")
      ->required();
  app.add_option("-o,--output", options->file, "The file to write")->type_name("FILE")->required();
  declare_redis(app, options->access);
  declare_json(app, options->json);
  return [options] { return pull(*options); };
}
}  // namespace perhaps::cli
