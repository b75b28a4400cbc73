// perhaps push, perhaps pull: filters between files and a Redis server.
//
// A filter travels as RedisBloom's own stream: the header and pieces of at most 16 MiB, so that neither side holds the
// filter twice and no reply is too large. A line container travels as the one link of a LAYOUT LINE filter, a growing
// one as a LAYOUT GROWING filter: their tables have the same bytes.
//
// A key is filled under a temporary name in the same slot, which expires by itself, and is renamed when it is whole.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "little_endian.h"
#include "options.h"
#include "perhaps/file/container.h"
#include "perhaps/file/shards.h"
#include "perhaps/file/writer.h"
#include "perhaps/growing.h"
#include "perhaps/line_bloom.h"
#include "print.h"
#include "progress.h"
#include "recipe.h"
#include "redis_filter.h"

namespace perhaps::cli {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{16} << 20;
struct PushOptions {
  std::string file;
  std::string url;
  std::uint64_t shards = 0;
  RedisAccess access;
  bool replace = false;
  bool json = false;
};

struct PullOptions {
  std::string url;
  std::string file;
  RedisAccess access;
  bool json = false;
};

// What was copied, in either direction.
std::string json_of(const std::string& file, const std::string& key, std::string_view format, std::uint64_t bytes,
                    std::optional<std::uint64_t> shards = {}, std::optional<std::uint64_t> here = {}) {
  Json json;
  json.add("file", file).add("key", key).add("format", format).add("bytes", bytes);
  return json.add("shards", shards).add("shards_here", here).text() + "\n";
}

Bytes bytes_at(const std::string& text) { return bytes_of(std::string_view(text)); }

// The header of a LAYOUT LINE filter of one link, as SCANDUMP gives it: RedisBloom's, with an option of our own.
//   0 items u64 | 8 links u32 | 12 options u32 | 16 growth u32
//   20 bytes u64 | 28 bits u64 | 36 items u64 | 44 rate f64 | 52 bits per item f64 | 60 probes u32 | 64 capacity u64
//   72 zero u8
struct LineHeader {
  static constexpr std::size_t kBytes = 73;
  static constexpr std::uint32_t kLine = 32;
  static constexpr std::uint32_t kFixed = 8;
  static constexpr std::uint32_t kGrowth = 2;

  LineShape shape;
  Record record;

  std::vector<std::byte> bytes() const {
    // If it grows, its rate rises to at most twice that of its first link.
    const double rate = std::clamp(shape.fpr(static_cast<double>(record.capacity)), 1e-300, 0.5);
    const double bits_per_item = static_cast<double>(shape.bits()) / static_cast<double>(record.capacity);
    std::vector<std::byte> out(kBytes);
    const auto put = [&](std::size_t at, auto number) { store_little_endian(out.data() + at, number); };
    put(0, record.keys);
    put(8, std::uint32_t{1});
    put(12, kLine);
    put(16, kGrowth);
    put(20, shape.bytes());
    put(28, shape.bits());
    put(36, record.keys);
    put(44, std::bit_cast<std::uint64_t>(rate));
    put(52, std::bit_cast<std::uint64_t>(bits_per_item));
    put(60, shape.probes);
    put(64, record.capacity);
    return out;
  }

  static LineHeader from(Bytes header, const std::string& key) {
    const auto number = [&]<class T>(std::size_t at, T) { return load_little_endian<T>(header.data() + at); };
    const std::uint32_t links = header.size() < 20 ? 0 : number(8, std::uint32_t{});
    if (links > 1) fail("{}: has grown to {} links, and a line filter of ours is one", key, links);
    LineHeader result;
    if (links == 1 && header.size() == kBytes && (number(12, std::uint32_t{}) & ~kFixed) == kLine) {
      const std::uint64_t bits = number(28, std::uint64_t{});
      result.shape = {.lines = bits / 512, .probes = number(60, std::uint32_t{})};
      result.record = {.keys = number(36, std::uint64_t{}), .capacity = number(64, std::uint64_t{})};
      if (result.shape.valid() && result.shape.bits() == bits && number(20, std::uint64_t{}) == result.shape.bytes())
        return result;
    }
    fail("{}: not the header of a line filter", key);
  }
};

// The header of a LAYOUT GROWING filter, as SCANDUMP gives it.
//   0 "perhapsG" | 8 first u64 | 16 step u64 | 24 rate f64
struct GrowingHeader {
  static constexpr std::size_t kBytes = 32;
  static constexpr std::string_view kMagic = "perhapsG";

  GrowingShape shape;

  // A server keeps the rate as a floating-point number, and makes the shape of it.
  static std::uint64_t rate_of(double rate) { return GrowingShape::for_keys({.fpr = rate}).rate; }
  std::vector<std::byte> bytes(const std::string& name) const {
    const double rate = std::ldexp(static_cast<double>(shape.rate), -63);
    if (!(rate >= kLeastFpr && rate < 1) || rate_of(rate) != shape.rate)
      fail("{}: keeps a false-positive rate of {}, which a server cannot be told to the last digit: build it by --fpr",
           name, percent(rate));
    std::vector<std::byte> out(kBytes);
    std::memcpy(out.data(), kMagic.data(), kMagic.size());
    store_little_endian(out.data() + 8, std::uint64_t{shape.first});
    store_little_endian(out.data() + 16, std::uint64_t{shape.step});
    store_little_endian(out.data() + 24, std::bit_cast<std::uint64_t>(rate));
    return out;
  }

  static GrowingHeader from(Bytes header, const std::string& key) {
    if (header.size() == kBytes && std::memcmp(header.data(), kMagic.data(), kMagic.size()) == 0) {
      const auto number = [&](std::size_t at) { return load_little_endian<std::uint64_t>(header.data() + at); };
      const double rate = std::bit_cast<double>(number(24));
      if (rate >= kLeastFpr && rate < 1)
        return {take(GrowingShape::from(std::array{number(8), number(16), rate_of(rate)}))};
    }
    fail("{}: not the header of a growing filter", key);
  }
};

// The temporary name of a key: in the same slot, and of this push alone. Only a key with a stray brace needs a search.
std::string part_of(const std::string& key) {
  const bool tagged = key.find('}') != key.npos;
  std::mt19937_64 random(std::random_device{}());
  for (;;) {
    std::string part = fmt::format("{}{}{}:push:{:016x}", tagged ? "" : "{", key, tagged ? "" : "}", random());
    if (slot_of(part) == slot_of(key)) return part;
  }
}

// A filter file as the pieces that LOADCHUNK takes.
class Pieces {
 public:
  // `bytes` must outlive *this.
  Pieces(const std::string& name, Bytes bytes) {
    if (is_container(bytes)) {
      of_container(name, bytes);
      return;
    }
    const format::Source source{.bytes = bytes, .file_name = name};
    const format::Opened opened = take(format::open(source));
    format = opened.format;
    if (format != "redisbloom-bf" && format != "redisbloom-cf") {
      fail(
          "{}: {}: Redis takes redisbloom-bf, redisbloom-cf and line and growing filters of our own; `perhaps build "
          "--format redisbloom-bf` makes one of keys",
          name, format);
    }
    if (bytes.empty()) fail("{}: holds no items: nothing to push", name);
    command = format == "redisbloom-bf" ? "BF.LOADCHUNK" : "CF.LOADCHUNK";
    if (bytes.front() != std::byte{1}) {  // the reply of DUMP
      const format::Codec& codec = *format::find(format);
      format::Params params(codec);
      take(params.set("form", "stream"));
      stream_ = take(format::convert(source, opened, codec, params)).bytes;
      bytes = stream_;
    }
    while (bytes.size() >= 16) {
      const auto iterator = load_little_endian<std::uint64_t>(bytes.data());
      const auto size = load_little_endian<std::uint64_t>(bytes.data() + 8);
      if (iterator == 0) break;  // the last reply of SCANDUMP
      all.push_back({iterator, bytes.subspan(16, size)});
      bytes = bytes.subspan(16 + size);
    }
  }
  Pieces(const Pieces&) = delete;

  struct Piece {
    std::uint64_t iterator;
    Bytes bytes;
  };
  std::string format;
  std::string command;
  std::vector<Piece> all;

  std::uint64_t size() const noexcept {
    std::uint64_t total = 0;
    for (const Piece& piece : all) total += piece.bytes.size();
    return total;
  }

 private:
  void of_container(const std::string& name, Bytes bytes) {
    auto opened = File::over(bytes, {}, name);
    if (!opened && opened.error().code == Errc::bad_key) fail("{}: keyed, and a server hashes without a secret", name);
    const File file = take(std::move(opened));
    const Kind kind = file.header().kind;
    if (kind != Kind::line && kind != Kind::growing)
      fail("{}: a {} filter: of ours, a server has line and growing filters (LAYOUT LINE, LAYOUT GROWING)", name,
           name_of(kind));
    const auto recipe = recipe_of(file.header().record, name);
    if (recipe && recipe->as == KeysAs::u64)
      fail("{}: its keys are numbers (--keys-as u64), and a server hashes text", name);
    // The shape, if it is hashed as a server hashes.
    const auto shape_of = [&](const auto& view) {
      if (!view || !(view->hasher() == Hash())) {
        fail("{}: hashed with {}{}, and a server hashes with {} and the default seed", name,
             name_of(file.header().scheme), view ? fmt::format(" and seed {}", view->hasher().seed()) : "", Hash::name);
      }
      return view->shape();
    };
    if (kind == Kind::line) {
      Record record = file.header().record;
      if (record.capacity == 0) record.capacity = std::max<std::uint64_t>(1, record.keys);
      stream_ = LineHeader{shape_of(file.as<LineBloomView>()), record}.bytes();
    } else {
      stream_ = GrowingHeader{shape_of(file.as<GrowingView>())}.bytes(name);
    }
    format = name_of(kind);
    command = "BF.LOADCHUNK";
    all.push_back({1, stream_});
    const Bytes table = file.header().sections[0].bytes;
    for (std::uint64_t at = 0; at < table.size();) {
      const Bytes piece = table.subspan(at, std::min<std::uint64_t>(kChunkBytes, table.size() - at));
      at += piece.size();
      all.push_back({1 + at, piece});
    }
  }

  std::vector<std::byte> stream_;
};

[[noreturn]] void fail_exists(const std::string& key) {
  fail("{}: exists (--replace to put this one in its place)", key);
}

void check_absent(Redis& redis, const std::string& key, bool replace) {
  if (!replace && redis.must({"EXISTS", key}).number != 0) fail_exists(key);
}

// Two commands in one message, so that a server that has the first also has the second, even if we are killed between
// them.
std::vector<RedisReply> both(Redis& redis, const std::string& key, const RedisCommand& first, RedisCommand second) {
  const std::array commands = {first, std::move(second)};
  std::vector<RedisReply> replies = redis.call(commands);
  for (const RedisReply& reply : replies) {
    if (reply.failed()) fail("{}: {}", key, reply.text);
  }
  return replies;
}

void load(Redis& redis, const Pieces& pieces, const std::string& key, bool replace, Progress& progress) {
  const std::string part = part_of(key);
  try {
    for (const Pieces::Piece& piece : pieces.all) {
      both(redis, key, {pieces.command, part, std::to_string(piece.iterator), text_of(piece.bytes)},
           {"EXPIRE", part, "600"});
      progress.advance(piece.bytes.size(), 0);
    }
    const auto done = both(redis, key, {"PERSIST", part}, {replace ? "RENAME" : "RENAMENX", part, key});
    if (!replace && done[1].number == 0) fail_exists(key);  // somebody made the key meanwhile
    // A cluster that moved the slot may have answered the first one later.
    if (done[0].number == 0) redis.must({"PERSIST", key});
  } catch (const RedisConnection::Lost&) {
    throw;
  } catch (const Failure&) {
    redis.call({"DEL", part});
    throw;
  }
}

int push_shards(const PushOptions& options, Redis& redis, const Shards& shards) {
  const std::string& name = redis.url().key;
  if (options.shards != 0 && options.shards != shards.count())
    fail("--shards {}: {} is of {}", options.shards, options.file, shards.count());
  for (const Shard& shard : shards.here()) check_absent(redis, shard_key(name, shard.index), options.replace);
  // The first push says how many shards there are: shards of another partition could not be told apart from these.
  redis.must({"SET", shards_key(name), std::to_string(shards.count()), "NX"});
  if (const std::uint64_t said = shards_on(redis, name); said != shards.count())
    fail("{}: is in {} shards, and {} has {}: delete those and {} first", name, said, options.file, shards.count(),
         shards_key(name));
  std::uint64_t bytes = 0;
  for (const Shard& shard : shards.here()) bytes += shard.bytes.size();
  Progress progress("pushing", bytes);
  std::string format;
  for (const Shard& shard : shards.here()) {
    const Pieces pieces(fmt::format("{}: shard {}", options.file, shard.index), shard.bytes);
    format = pieces.format;
    load(redis, pieces, shard_key(name, shard.index), options.replace, progress);
  }
  Out().write(options.json
                  ? json_of(options.file, name, format, bytes, shards.count(), std::uint64_t{shards.here().size()})
                  : fmt::format("{}: {} as {}, {} of {} shards, {} bytes\n", name, options.file, format,
                                shards.here().size(), shards.count(), grouped(bytes)));
  return kYes;
}

int push(const PushOptions& options) {
  const FileBytes file(options.file);
  std::optional<Shards> shards;
  if (is_shards(file.bytes())) shards = take(Shards::over(file.bytes(), options.file));
  if (!shards && options.shards != 0) {
    fail("--shards {}: {} is one filter, and a filter cannot be split: `perhaps build --shards {}` makes them of keys",
         options.shards, options.file, options.shards);
  }
  std::optional<Pieces> pieces;
  if (!shards) pieces.emplace(options.file, file.bytes());
  Redis redis(RedisUrl(options.url), options.access);
  if (shards) return push_shards(options, redis, *shards);
  const std::string& key = redis.url().key;
  if (const std::uint64_t said = shards_on(redis, key); said != 0) fail("{}: is in {} shards", key, said);
  check_absent(redis, key, options.replace);
  {
    Progress progress("pushing", pieces->size());
    load(redis, *pieces, key, options.replace, progress);
  }
  Out().write(options.json ? json_of(options.file, key, pieces->format, pieces->size())
                           : fmt::format("{}: {} as {}, {} bytes in {} pieces\n", key, options.file, pieces->format,
                                         grouped(pieces->size()), pieces->all.size()));
  return kYes;
}

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
    Out().write(json_of(options.file, key, pulled.format, pulled.bytes, pulled.shards, pulled.shards));
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

Command::Run push_command(CLI::App& app) {
  auto options = std::make_shared<PushOptions>();
  app.add_option("file", options->file,
                 "A filter of format redisbloom-bf or redisbloom-cf, a line or growing filter, or shards")
      ->type_name("FILE")
      ->required();
  app.add_option("url", options->url,
                 "redis://[[user]:password@]host[:port]/key, rediss:// with TLS, or redis-cluster:// and "
                 "rediss-cluster:// to find all nodes from one")
      ->type_name("URL")
      ->required();
  add_count(app, "--shards", options->shards, "N", "The file must be of N shards; default: as it says itself");
  app.add_flag("--replace", options->replace, "Take the place of keys that are there");
  declare_redis(app, options->access);
  declare_json(app, options->json);
  return [options] { return push(*options); };
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
