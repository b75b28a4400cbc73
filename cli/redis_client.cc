#include "redis_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <numeric>
#include <thread>

#include "interrupt.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

constexpr std::uint32_t kSlots = 16384;
// A failover takes a few seconds with the usual settings; a node that is gone for longer is given up.
constexpr std::chrono::seconds kPatience{30};

bool begins(const RedisReply& reply, std::string_view word) { return reply.failed() && reply.text.starts_with(word); }
// An error that passes by itself.
bool passing(const RedisReply& reply) {
  return begins(reply, "TRYAGAIN") || begins(reply, "CLUSTERDOWN") || begins(reply, "LOADING") ||
         begins(reply, "MASTERDOWN");
}

struct Scheme {
  std::string_view text;
  bool tls, cluster;
};
constexpr Scheme kSchemes[] = {{"redis://", false, false},
                               {"rediss://", true, false},
                               {"redis-cluster://", false, true},
                               {"rediss-cluster://", true, true}};

void wait_a_little() {
  check_interrupt();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  check_interrupt();
}

}  // namespace

bool is_redis_url(std::string_view text) noexcept {
  return std::ranges::any_of(kSchemes, [&](const Scheme& scheme) { return text.starts_with(scheme.text); });
}

RedisUrl::RedisUrl(std::string_view text) {
  std::string_view rest = text;
  for (const Scheme& scheme : kSchemes) {
    if (!rest.starts_with(scheme.text)) continue;
    tls = scheme.tls;
    cluster = scheme.cluster;
    rest.remove_prefix(scheme.text.size());
    break;
  }
  if (rest.size() == text.size()) fail("{}: not an address of the form redis://host:port/key", text);
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos || slash + 1 == rest.size()) fail("{}: names no key", text);
  key = rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  if (const std::size_t at = rest.rfind('@'); at != rest.npos) {
    const std::string_view who = rest.substr(0, at);
    const std::size_t colon = who.find(':');
    user = who.substr(0, colon);
    if (colon != who.npos) password = who.substr(colon + 1);
    rest = rest.substr(at + 1);
  }
  // [::1]:6379
  const std::size_t bracket = rest.starts_with('[') ? rest.find(']') : 0;
  if (bracket == rest.npos) fail("{}: no ] in the address", text);
  const std::size_t colon = rest.find(':', bracket);
  if (colon != rest.npos) port = rest.substr(colon + 1);
  std::string_view name = rest.substr(0, colon);
  if (bracket != 0) name = rest.substr(1, bracket - 1);
  if (!name.empty()) host = name;
}

std::string RedisUrl::shown() const {
  const bool bare = host.find(':') != host.npos;  // an IPv6 address
  return fmt::format("redis{}{}://{}{}{}:{}/{}", tls ? "s" : "", cluster ? "-cluster" : "", bare ? "[" : "", host,
                     bare ? "]" : "", port, key);
}

void declare_redis(CLI::App& app, RedisAccess& access) {
  constexpr const char* kGroup = "Redis";
  app.add_option_function<std::string>(
         "--timeout", [&access](const std::string& text) { access.timeout = parse_duration("--timeout", text); },
         "Give up if the server is silent for this long; default: 30s")
      ->type_name("TIME")
      ->group(kGroup);
  app.add_option("--tls-ca", access.tls.authorities,
                 "rediss://: the certificates to trust, PEM; default: those of the system (or SSL_CERT_FILE)")
      ->type_name("FILE")
      ->group(kGroup);
  auto* const certificate =
      app.add_option("--tls-cert", access.tls.certificate, "rediss://: the certificate of this client, PEM")
          ->type_name("FILE")
          ->group(kGroup);
  auto* const key = app.add_option("--tls-key", access.tls.key, "rediss://: the private key of that certificate, PEM")
                        ->type_name("FILE")
                        ->group(kGroup)
                        ->needs(certificate);
  certificate->needs(key);
}

std::uint32_t slot_of(std::string_view key) noexcept {
  if (const std::size_t open = key.find('{'); open != key.npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  std::uint32_t crc = 0;
  for (const char c : key) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021u : 0u)) & 0xffff;
  }
  return crc % kSlots;
}

RedisCommand::RedisCommand(std::span<const std::string_view> words)
    : slot(words.size() > 1 ? slot_of(words[1]) : 0), bytes(fmt::format("*{}\r\n", words.size())) {
  const auto add = [](std::size_t sum, std::string_view word) { return sum + word.size() + 16; };
  bytes.reserve(std::accumulate(words.begin(), words.end(), bytes.size(), add));
  for (const std::string_view word : words) {
    fmt::format_to(std::back_inserter(bytes), "${}\r\n", word.size());
    bytes += word;
    bytes += "\r\n";
  }
}

// ------------------------------------------------------------------------------------------------------ connection

RedisConnection::RedisConnection(const RedisUrl& who, const RedisAccess& access, const std::string& host,
                                 const std::string& port)
    : name_(host + ":" + port), timeout_(access.timeout) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    lost(::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && !socket_; one = one->ai_next) {
    socket_ = Descriptor(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    const timeval timeout{.tv_sec = static_cast<time_t>(timeout_ / 1000),
                          .tv_usec = static_cast<suseconds_t>(timeout_ % 1000 * 1000)};
    for (const int which : {SO_SNDTIMEO, SO_RCVTIMEO})  // the first also bounds connect()
      ::setsockopt(socket_.get(), SOL_SOCKET, which, &timeout, sizeof timeout);
    if (socket_ && ::connect(socket_.get(), one->ai_addr, one->ai_addrlen) == 0) break;
    error = errno;
    socket_.reset();
    check_interrupt();
  }
  if (!socket_) lost_by(error);
  const int yes = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (who.tls) {
    tls_ = std::make_unique<Tls>(access.tls, host, socket_.get());
    while (!tls_->connect()) {
      const int reason = errno;
      check_interrupt();
      if (reason != EINTR) lost_by(reason);
    }
  }
  if (who.password.empty()) return;
  put((who.user.empty() ? RedisCommand{"AUTH", who.password} : RedisCommand{"AUTH", who.user, who.password}).bytes);
  flush();
  if (const RedisReply reply = read(); reply.failed()) {
    socket_.reset();
    fail("{}: {}", name_, reply.text);
  }
}

void RedisConnection::lost(const std::string& why) const { throw Lost(fmt::format("{}: {}", name_, why)); }

void RedisConnection::lost_by(int error) const {
  if (error == EAGAIN || error == EWOULDBLOCK || error == EINPROGRESS)
    lost(fmt::format("silent for {} (--timeout)", seconds_text(static_cast<double>(timeout_) / 1000)));
  lost(error == EPROTO && tls_ != nullptr ? tls_->why() : std::strerror(error));
}

void RedisConnection::flush() {
  for (std::size_t sent = 0; sent < output_.size();) {
    const char* const from = output_.data() + sent;
    const std::size_t size = output_.size() - sent;
    const ssize_t n = tls_ != nullptr ? tls_->send(from, size) : ::send(socket_.get(), from, size, MSG_NOSIGNAL);
    const int error = errno;
    check_interrupt();
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n == 0) lost("closed the connection");
    if (n < 0 && error != EINTR) lost_by(error);
  }
  output_.clear();
}

void RedisConnection::more() {
  if (at_ > (1 << 16)) {
    input_.erase(0, at_);
    at_ = 0;
  }
  constexpr std::size_t kPiece = 1 << 16;
  const std::size_t before = input_.size();
  input_.resize(before + kPiece);
  char* const to = input_.data() + before;
  const ssize_t n = tls_ != nullptr ? tls_->receive(to, kPiece) : ::recv(socket_.get(), to, kPiece, 0);
  const int error = errno;
  input_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  check_interrupt();
  if (n < 0 && error != EINTR) lost_by(error);
  if (n == 0) lost("closed the connection");
}

std::string RedisConnection::line() {
  constexpr std::size_t kMaxLine = 1 << 16;
  std::size_t end;
  while ((end = input_.find("\r\n", at_)) == input_.npos) {
    if (input_.size() - at_ > kMaxLine) fail("{}: does not speak the Redis protocol", name_);
    more();
  }
  std::string text = input_.substr(at_, end - at_);
  at_ = end + 2;
  return text;
}

RedisReply RedisConnection::read(int depth) {
  const std::string head = line();
  RedisReply reply;
  const auto strange = [&] { fail("{}: does not speak the Redis protocol", name_); };
  if (head.empty() || depth > 8) strange();
  reply.kind = head[0];
  reply.text = head.substr(1);
  if (reply.kind == '+' || reply.kind == '-') return reply;
  const auto [end, error] = std::from_chars(reply.text.data(), reply.text.data() + reply.text.size(), reply.number);
  if (error != std::errc() || (reply.kind != ':' && reply.kind != '$' && reply.kind != '*')) strange();
  if (reply.kind == ':') return reply;
  if (reply.number < 0) return {};
  constexpr long long kMaxBulk = 1 << 30;
  if (reply.number > kMaxBulk) fail("{}: a reply of {} bytes", name_, reply.number);
  if (reply.kind == '*') {
    for (long long i = 0; i < reply.number; ++i) reply.items.push_back(read(depth + 1));
    return reply;
  }
  const auto size = static_cast<std::size_t>(reply.number);
  while (input_.size() - at_ < size + 2) more();
  reply.text = input_.substr(at_, size);
  at_ += size + 2;
  return reply;
}

// ---------------------------------------------------------------------------------------------------------- server

Redis::Redis(RedisUrl url, RedisAccess access)
    : url_(std::move(url)), access_(std::move(access)), home_(kSlots, kUnknown) {
  at(node_named(url_.host, url_.port));
  if (url_.cluster) discover();
}

std::size_t Redis::node_named(const std::string& host, const std::string& port) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].host == host && nodes_[i].port == port) return i;
  nodes_.push_back({host, port, nullptr});
  return nodes_.size() - 1;
}

std::size_t Redis::node_in(const RedisReply& reply, std::size_t from) {
  const std::string where = reply.text.substr(reply.text.rfind(' ') + 1);
  const std::size_t colon = where.rfind(':');
  if (colon == where.npos) fail("{}: {}", url_.key, reply.text);
  // No host: the node that answered.
  return node_named(colon == 0 ? nodes_[from].host : where.substr(0, colon), where.substr(colon + 1));
}

RedisConnection& Redis::at(std::size_t node) {
  Node& n = nodes_[node];
  if (n.connection == nullptr) n.connection = std::make_unique<RedisConnection>(url_, access_, n.host, n.port);
  return *n.connection;
}

// Queries the known nodes, one after the other, until one says which node has which slots.
void Redis::discover() {
  std::string trouble;
  for (std::size_t asked = 0; asked < nodes_.size(); ++asked) {
    RedisReply reply;
    try {
      RedisConnection& connection = at(asked);
      connection.put(RedisCommand{"CLUSTER", "SLOTS"}.bytes);
      connection.flush();
      reply = connection.read();
    } catch (const RedisConnection::Lost& lost) {
      nodes_[asked].connection.reset();
      trouble = lost.what();
      continue;
    }
    if (reply.failed()) fail("{}:{}: {} (redis:// if it is not a cluster)", url_.host, url_.port, reply.text);
    const std::string host = nodes_[asked].host;
    for (const RedisReply& range : reply.items) {
      const bool known = range.items.size() >= 3 && range.items[2].items.size() >= 2;
      if (!known || range.items[0].number < 0 || range.items[1].number >= kSlots) continue;
      const RedisReply& owner = range.items[2];
      const std::string& name = owner.items[0].text;
      const std::size_t node =
          node_named(name.empty() || name == "?" ? host : name, std::to_string(owner.items[1].number));
      std::fill(home_.begin() + range.items[0].number, home_.begin() + range.items[1].number + 1, node);
    }
    return;
  }
  throw RedisConnection::Lost(trouble);
}

std::vector<RedisReply> Redis::call(std::span<const RedisCommand> commands, bool again) {
  using Clock = std::chrono::steady_clock;
  std::vector<RedisReply> replies(commands.size());
  std::vector<std::size_t> left(commands.size());
  std::iota(left.begin(), left.end(), 0);
  std::vector<std::size_t> asking(commands.size(), kUnknown);  // where an ASK reply sends the command, once
  auto give_up = Clock::now() + kPatience;
  for (int rounds = 0;; ++rounds) {
    std::vector<std::size_t> retry;
    std::vector<std::size_t> where(commands.size());
    std::string trouble;
    bool wait = rounds > 8;  // two nodes that redirect to each other
    const auto failed = [&](std::size_t node, const RedisConnection::Lost& lost) {
      nodes_[node].connection.reset();
      if (!again || !url_.cluster) throw lost;
      trouble = lost.what();
      wait = true;
    };
    std::vector<bool> broken(nodes_.size());
    for (const std::size_t i : left) {
      const std::size_t home = home_[commands[i].slot];
      where[i] = asking[i] != kUnknown ? asking[i] : home != kUnknown ? home : 0;
      if (broken[where[i]]) continue;
      try {
        RedisConnection& connection = at(where[i]);
        if (asking[i] != kUnknown) connection.put("*1\r\n$6\r\nASKING\r\n");
        connection.put(commands[i].bytes);
      } catch (const RedisConnection::Lost& lost) {
        broken[where[i]] = true;
        failed(where[i], lost);
      }
    }
    for (std::size_t node = 0; node < broken.size(); ++node) {
      if (broken[node] || nodes_[node].connection == nullptr) continue;
      try {
        nodes_[node].connection->flush();
      } catch (const RedisConnection::Lost& lost) {
        broken[node] = true;
        failed(node, lost);
      }
    }
    for (const std::size_t i : left) {
      const std::size_t node = where[i];
      const bool asked = std::exchange(asking[i], kUnknown) != kUnknown;
      if (!broken[node]) {
        try {
          if (asked) nodes_[node].connection->read();
          replies[i] = nodes_[node].connection->read();
        } catch (const RedisConnection::Lost& lost) {
          broken[node] = true;
          failed(node, lost);
        }
      }
      if (broken[node]) {
        retry.push_back(i);
      } else if (begins(replies[i], "MOVED ")) {
        home_[commands[i].slot] = node_in(replies[i], node);
        retry.push_back(i);
      } else if (begins(replies[i], "ASK ")) {
        asking[i] = node_in(replies[i], node);
        retry.push_back(i);
      } else if (passing(replies[i])) {
        trouble = replies[i].text;
        wait = true;
        retry.push_back(i);
      }
    }
    if (retry.empty()) return replies;
    if (retry.size() < left.size()) give_up = Clock::now() + kPatience;
    if (Clock::now() > give_up) fail("{}: {}", url_.key, trouble.empty() ? replies[retry.front()].text : trouble);
    left = std::move(retry);
    if (!wait) continue;
    wait_a_little();
    if (!url_.cluster) continue;
    try {
      discover();
    } catch (const RedisConnection::Lost&) {  // no node answers at the moment
    }
  }
}

RedisReply Redis::call(const RedisCommand& command, bool again) {
  return std::move(call(std::span(&command, 1), again).front());
}

RedisReply Redis::must(std::initializer_list<std::string_view> words) {
  RedisReply reply = call(RedisCommand(words));
  if (reply.failed()) fail("{}: {}", words.size() > 1 ? words.begin()[1] : url_.key, reply.text);
  return reply;
}

}  // namespace perhaps::cli
