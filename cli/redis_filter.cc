#include "redis_filter.h"

#include <algorithm>
#include <numeric>

#include "options.h"
#include "perhaps/file/shards.h"

namespace perhaps::cli {
namespace {

// A server runs a command in one go, so a large one delays other clients; many small ones cost more in all.
constexpr std::size_t kItems = 256;

}  // namespace

std::string shard_key(std::string_view name, std::uint64_t index) { return fmt::format("{}:{{{}}}", name, index); }
std::string shards_key(std::string_view name) { return fmt::format("{}:shards", name); }

std::uint64_t shards_on(Redis& redis, const std::string& name) {
  const std::string key = shards_key(name);
  const RedisReply reply = redis.call({"GET", key}, true);
  if (reply.failed()) fail("{}: {}", key, reply.text);
  if (reply.kind == 0) return 0;
  const auto count = parse_u64(reply.text);
  if (!count || *count == 0 || *count > kMaxShards) fail("{}: '{}' is not a number of shards", key, reply.text);
  return *count;
}

std::string_view commands_of(std::string_view type) noexcept {
  if (type == "MBbloom--" || type == "perhapsLB" || type == "perhapsWF" || type == "perhapsGF") return "BF";
  return type == "MBbloomCF" ? "CF" : "";
}

RedisFilter::RedisFilter(const RedisUrl& url, const RedisAccess& access, std::uint64_t shards) : redis_(url, access) {
  const std::string& name = redis_.url().key;
  const std::uint64_t said = shards_on(redis_, name);
  if (shards != 0 && said != 0 && said != shards)
    fail("--shards {}: {} says that there are {}", shards, shards_key(name), said);
  if (shards == 0) shards = said;
  if (shards == 0) {
    parts_.push_back({name, {}, {}});
  } else {
    for (std::uint64_t i = 0; i < shards; ++i) parts_.push_back({shard_key(name, i), {}, {}});
  }
  std::vector<RedisCommand> commands;
  for (const Part& part : parts_) commands.push_back({"TYPE", part.key});
  const std::vector<RedisReply> types = redis_.call(commands, true);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (types[i].failed()) fail("{}: {}", parts_[i].key, types[i].text);
    parts_[i].type = types[i].text;
    const std::string_view family = commands_of(types[i].text);
    if (types[i].text == "none") fail("{}: no such key", parts_[i].key);
    if (family.empty()) fail("{}: of type {}, not a filter", parts_[i].key, types[i].text);
    parts_[i].command = fmt::format("{}.MEXISTS", family);
  }
}

void RedisFilter::may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) {
  std::ranges::fill(answers.first((keys.size() + 63) / 64), 0);
  // By part, in the order of the keys: counting sort.
  std::vector<std::uint32_t> part(keys.size());
  std::vector<std::size_t> starts(parts_.size() + 1);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    part[i] = parts_.size() == 1 ? 0 : static_cast<std::uint32_t>(shard_of(keys[i], parts_.size()));
    ++starts[part[i] + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<std::size_t> order(keys.size());
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
  for (std::size_t i = 0; i < keys.size(); ++i) order[next[part[i]]++] = i;

  struct Asked {
    const Part* part;
    std::span<const std::size_t> which;  // empty: its type
  };
  std::vector<Asked> asked;
  std::vector<RedisCommand> commands;
  std::vector<std::string_view> words;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const Part& one = parts_[p];
    auto rest = std::span<const std::size_t>(order).subspan(starts[p], starts[p + 1] - starts[p]);
    if (rest.empty()) continue;
    for (; !rest.empty(); rest = rest.subspan(asked.back().which.size())) {
      const auto some = rest.first(std::min(kItems, rest.size()));
      words.assign({one.command, one.key});
      for (const std::size_t i : some) words.push_back(text_of(keys[i]));
      commands.emplace_back(words);
      asked.push_back({&one, some});
    }
    commands.push_back({"TYPE", one.key});
    asked.push_back({&one, {}});
  }

  const std::vector<RedisReply> replies = redis_.call(commands, true);
  for (std::size_t c = 0; c < asked.size(); ++c) {
    const auto& [one, which] = asked[c];
    const RedisReply& reply = replies[c];
    if (reply.failed()) fail("{}: {}", one->key, reply.text);
    if (which.empty() && reply.text != one->type) fail("{}: was replaced or removed meanwhile", one->key);
    if (reply.items.size() != which.size()) fail("{}: not what {} answers", one->key, one->command);
    for (std::size_t i = 0; i < which.size(); ++i)
      answers[which[i] / 64] |= std::uint64_t{reply.items[i].number != 0} << (which[i] % 64);
  }
}

}  // namespace perhaps::cli
