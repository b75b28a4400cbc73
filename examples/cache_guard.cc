// A cache in front of a database does not help against keys that do not exist: nothing is ever cached for them, and
// every request reaches the database. A filter of the existing keys rejects such requests in memory. New rows are
// inserted into the filter before the database, so the filter never rejects an existing row. All threads share the
// filter without a lock.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "perhaps/line_bloom.h"

namespace {

class Database {
 public:
  void put(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    rows_[key] = value;
  }
  std::optional<std::string> get(const std::string& key) {
    ++queries;
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(key);
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }
  std::atomic<std::uint64_t> queries{0};

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> rows_;
};

class Guarded {
 public:
  explicit Guarded(Database& database) : database_(database) {}

  void put(const std::string& key, const std::string& value) {
    exists_.shared().insert(key);
    database_.put(key, value);
  }
  std::optional<std::string> get(const std::string& key) {
    if (!exists_.shared().may_contain(key)) return std::nullopt;
    return database_.get(key);
  }

 private:
  Database& database_;
  perhaps::LineBloom exists_{{.keys = 100'000, .fpr = 0.001}};
};

}  // namespace

int main() {
  Database database;
  Guarded guarded(database);
  for (int i = 0; i < 50'000; ++i) guarded.put("user " + std::to_string(i), "here");

  // Two clients add users while two others request users that never existed.
  std::atomic<bool> lost = false;
  {
    std::vector<std::jthread> clients;
    for (int client = 0; client < 2; ++client) {
      clients.emplace_back([&, client] {
        for (int i = 0; i < 20'000; ++i) {
          const std::string key = "new user " + std::to_string(client) + "." + std::to_string(i);
          guarded.put(key, "here");
          if (!guarded.get(key)) lost = true;
        }
      });
      clients.emplace_back([&, client] {
        for (int i = 0; i < 200'000; ++i) guarded.get("attack " + std::to_string(client) + "." + std::to_string(i));
      });
    }
  }
  const std::uint64_t useless = database.queries - 40'000;
  std::printf("400,000 requests for users that never existed: %llu reached the database\n",
              static_cast<unsigned long long>(useless));
  if (lost) return std::puts("an existing user was rejected"), 1;
  return useless < 1'000 ? 0 : 1;
}
