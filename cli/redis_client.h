// Enough of a Redis client to copy filters: RESP2 over TCP, one command at a time, redirections of a cluster followed.
#pragma once
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"

namespace perhaps::cli {

// redis://[[user]:password@]host[:port]/key
struct RedisUrl {
  std::string user;
  std::string password;
  std::string host = "127.0.0.1";
  std::string port = "6379";
  std::string key;

  explicit RedisUrl(std::string_view text) {
    constexpr std::string_view kScheme = "redis://";
    std::string_view rest = text;
    if (!rest.starts_with(kScheme)) fail("{}: not an address of the form redis://host:port/key", text);
    rest.remove_prefix(kScheme.size());
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
    const std::size_t colon = rest.rfind(':');
    if (colon != rest.npos) port = rest.substr(colon + 1);
    if (const std::string_view name = rest.substr(0, colon); !name.empty()) host = name;
  }
};

struct RedisReply {
  char kind = 0;  // + - : $ *, or 0 for nil
  std::string text;
  long long number = 0;
  std::vector<RedisReply> items;
};

class RedisClient {
 public:
  explicit RedisClient(RedisUrl url) : url_(std::move(url)) { connect(); }
  ~RedisClient() { disconnect(); }
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  const RedisUrl& url() const noexcept { return url_; }

  // Throws Failure if the connection fails; an error of the server is a reply.
  RedisReply call(std::initializer_list<std::string_view> words) {
    for (int hops = 0;; ++hops) {
      RedisReply reply = once(words);
      if (reply.kind != '-' || !reply.text.starts_with("MOVED ") || hops == 5) return reply;
      const std::string where = reply.text.substr(reply.text.rfind(' ') + 1);
      const std::size_t colon = where.rfind(':');
      if (colon == where.npos) return reply;
      if (colon != 0) url_.host = where.substr(0, colon);
      url_.port = where.substr(colon + 1);
      connect();
    }
  }

 private:
  void disconnect() noexcept {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  void connect() {
    disconnect();
    input_.clear();
    at_ = 0;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(url_.host.c_str(), url_.port.c_str(), &hints, &found); error != 0)
      fail("{}:{}: {}", url_.host, url_.port, ::gai_strerror(error));
    for (const addrinfo* one = found; one != nullptr && socket_ < 0; one = one->ai_next) {
      socket_ = ::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
      if (socket_ >= 0 && ::connect(socket_, one->ai_addr, one->ai_addrlen) != 0) disconnect();
    }
    ::freeaddrinfo(found);
    if (socket_ < 0) fail("{}:{}: {}", url_.host, url_.port, std::strerror(errno));
    if (url_.password.empty()) return;
    const RedisReply reply =
        url_.user.empty() ? once({"AUTH", url_.password}) : once({"AUTH", url_.user, url_.password});
    if (reply.kind == '-') fail("{}:{}: {}", url_.host, url_.port, reply.text);
  }

  RedisReply once(std::initializer_list<std::string_view> words) {
    std::string out = fmt::format("*{}\r\n", words.size());
    for (const std::string_view word : words) {
      out += fmt::format("${}\r\n", word.size());
      out += word;
      out += "\r\n";
    }
    for (std::size_t sent = 0; sent < out.size();) {
      const ssize_t n = ::send(socket_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) fail("{}:{}: {}", url_.host, url_.port, std::strerror(errno));
      sent += static_cast<std::size_t>(n);
    }
    return read();
  }

  void more() {
    if (at_ > (1 << 16)) {
      input_.erase(0, at_);
      at_ = 0;
    }
    char buffer[1 << 16];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n < 0) fail("{}:{}: {}", url_.host, url_.port, std::strerror(errno));
    if (n == 0) fail("{}:{}: closed the connection", url_.host, url_.port);
    input_.append(buffer, static_cast<std::size_t>(n));
  }

  std::string line() {
    std::size_t end;
    while ((end = input_.find("\r\n", at_)) == input_.npos) more();
    std::string text = input_.substr(at_, end - at_);
    at_ = end + 2;
    return text;
  }

  RedisReply read() {
    const std::string head = line();
    RedisReply reply;
    if (head.empty()) fail("{}:{}: does not speak as Redis does", url_.host, url_.port);
    reply.kind = head[0];
    reply.text = head.substr(1);
    if (reply.kind == '+' || reply.kind == '-') return reply;
    const auto [end, error] = std::from_chars(reply.text.data(), reply.text.data() + reply.text.size(), reply.number);
    if (error != std::errc() || (reply.kind != ':' && reply.kind != '$' && reply.kind != '*'))
      fail("{}:{}: does not speak as Redis does", url_.host, url_.port);
    if (reply.kind == ':') return reply;
    if (reply.number < 0) return {};
    constexpr long long kMostBulk = 1 << 30;
    if (reply.number > kMostBulk) fail("{}:{}: a reply of {} bytes", url_.host, url_.port, reply.number);
    if (reply.kind == '*') {
      for (long long i = 0; i < reply.number; ++i) reply.items.push_back(read());
      return reply;
    }
    const auto size = static_cast<std::size_t>(reply.number);
    while (input_.size() - at_ < size + 2) more();
    reply.text = input_.substr(at_, size);
    at_ += size + 2;
    return reply;
  }

  RedisUrl url_;
  int socket_ = -1;
  std::string input_;
  std::size_t at_ = 0;
};

}  // namespace perhaps::cli
