// perhaps push: a filter from a file to a Redis server (redis_stream.h). A key is filled under a temporary name in the
// same slot, which expires by itself, and is renamed when it is whole.
#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "little_endian.h"
#include "options.h"
#include "perhaps/file/container.h"
#include "perhaps/file/shards.h"
#include "perhaps/growing.h"
#include "perhaps/line_bloom.h"
#include "print.h"
#include "progress.h"
#include "recipe.h"
#include "redis_filter.h"
#include "redis_stream.h"

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
                  ? json_of_copy(options.file, name, format, bytes, shards.count(), std::uint64_t{shards.here().size()})
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
  Out().write(options.json ? json_of_copy(options.file, key, pieces->format, pieces->size())
                           : fmt::format("{}: {} as {}, {} bytes in {} pieces\n", key, options.file, pieces->format,
                                         grouped(pieces->size()), pieces->all.size()));
  return kYes;
}
}  // namespace

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
}  // namespace perhaps::cli
