// Enough of a Redis client for filters: RESP2 over TCP or TLS, pipelined, redirections of a cluster followed.
#pragma once
#include <array>
#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "file/descriptor.h"
#include "perhaps/hash.h"
#include "tls.h"

namespace perhaps::cli {

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// redis://[[user]:password@]host[:port]/key; rediss:// is TLS. redis-cluster:// or rediss-cluster://: every node is
// found from the one that is named.
struct RedisUrl {
  bool cluster = false;
  bool tls = false;
  std::string user;
  std::string password;
  std::string host = "127.0.0.1";
  std::string port = "6379";
  std::string key;

  RedisUrl() = default;
  explicit RedisUrl(std::string_view text);  // throws Failure
  std::string shown() const;                 // without user and password
};
bool is_redis_url(std::string_view text) noexcept;

// How a server is spoken to, by options.
struct RedisAccess {
  std::uint64_t timeout = 30'000;  // milliseconds without a byte from the server
  TlsFiles tls;
};
void declare_redis(CLI::App& app, RedisAccess& access);  // --timeout, --tls-ca, --tls-cert, --tls-key

struct RedisReply {
  char kind = 0;  // + - : $ *, or 0 for nil
  std::string text{};
  long long number = 0;
  std::vector<RedisReply> items{};

  bool failed() const noexcept { return kind == '-'; }
};

// The slot of a key: CRC-16 (XMODEM) of it, or of what is between the first braces, mod 16384.
std::uint32_t slot_of(std::string_view key) noexcept;

// As it goes over the wire.
class RedisCommand {
 public:
  RedisCommand(std::initializer_list<std::string_view> words) : RedisCommand({words.begin(), words.size()}) {}
  // The second word is the key.
  explicit RedisCommand(std::span<const std::string_view> words);

  std::uint32_t slot;
  std::string bytes;
};

class RedisConnection {
 public:
  struct Lost : Failure {
    using Failure::Failure;
  };

  // Throws Lost.
  RedisConnection(const RedisUrl& who, const RedisAccess& access, const std::string& host, const std::string& port);

  // Sent with the next flush.
  void put(std::string_view bytes) { output_ += bytes; }
  void flush();
  // The next reply.
  RedisReply read() { return read(0); }

 private:
  [[noreturn]] void lost(const std::string& why) const;
  [[noreturn]] void lost_by(int error) const;  // errno
  void more();
  std::string line();
  RedisReply read(int depth);

  std::string name_;
  std::uint64_t timeout_;
  Descriptor socket_;
  std::unique_ptr<Tls> tls_;
  std::string output_;
  std::string input_;
  std::size_t at_ = 0;
};

// The server, or the whole cluster, behind an address.
class Redis {
 public:
  Redis(RedisUrl url, RedisAccess access);
  const RedisUrl& url() const noexcept { return url_; }

  // Each command to the node of its key, all nodes at once; replies in the order of the commands. What a cluster
  // answers while it changes (MOVED, ASK, TRYAGAIN ..) is followed or waited for; any other error is a reply.
  // `again`: commands may be repeated, because they only read: the node that takes over replaces one that fails.
  std::vector<RedisReply> call(std::span<const RedisCommand> commands, bool again = false);
  RedisReply call(const RedisCommand& command, bool again = false);
  // The same; an error of the server is a Failure that names the key.
  RedisReply must(std::initializer_list<std::string_view> words);

 private:
  struct Node {
    std::string host;
    std::string port;
    std::unique_ptr<RedisConnection> connection;
  };
  std::size_t node_named(const std::string& host, const std::string& port);
  // Of "MOVED 3999 127.0.0.1:6381", asked of `from`.
  std::size_t node_in(const RedisReply& reply, std::size_t from);
  RedisConnection& at(std::size_t node);
  void discover();

  static constexpr std::size_t kUnknown = SIZE_MAX;
  RedisUrl url_;
  RedisAccess access_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> home_;  // of every slot
};

}  // namespace perhaps::cli
