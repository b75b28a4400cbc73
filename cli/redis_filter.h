// A filter that is a key of a Redis server, or several keys of a cluster: the shards name:{0} .. name:{N-1}.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perhaps/hash.h"
#include "redis_client.h"
#include "temp_folder.h"

namespace perhaps::cli {

// How the shards of a set are found: the key name:{i} has shard i, and name:shards says how many there are.
std::string shard_key(std::string_view name, std::uint64_t index);
std::string shards_key(std::string_view name);
// 0: nothing says that it has shards. Throws Failure.
std::uint64_t shards_on(Redis& redis, const std::string& name);
// Of a type as TYPE answers it: "BF", "CF", or "" if it is no filter.
std::string_view commands_of(std::string_view type) noexcept;

// A filter that a command reads as a file: the file itself, or a copy of the one at a Redis address, under TMPDIR for
// as long as this lives.
class LocalCopy {
 public:
  LocalCopy(const std::string& name, const RedisAccess& access);  // throws Failure
  const std::string& name() const noexcept { return name_; }      // for people: an address without its password
  const std::string& path() const noexcept { return path_; }

 private:
  std::string name_;
  std::string path_;
  std::optional<TempFolder> folder_{};
};

class RedisFilter {
 public:
  // `shards` 0: as the server says. Throws Failure unless every key is there and holds a filter.
  RedisFilter(const RedisUrl& url, const RedisAccess& access, std::uint64_t shards);

  // Bit i % 64 of answers[i / 64] belongs to keys[i]. All nodes at once. Throws Failure, also if a key has gone: a
  // server answers no for a filter that it does not have.
  void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers);

 private:
  struct Part {
    std::string key;
    std::string type;
    std::string command;  // BF.MEXISTS
  };
  Redis redis_;
  std::vector<Part> parts_;
};

}  // namespace perhaps::cli
