// TLS over a connected socket, with the errors of a socket: errno after a failed call, EAGAIN after the socket's
// timeout.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>

struct ssl_st;
struct ssl_ctx_st;

namespace perhaps::cli {

struct TlsFiles {
  std::string authorities;  // PEM; empty: those of the system, or of SSL_CERT_FILE
  std::string certificate;  // of this client, PEM; empty: none
  std::string key;          // of that certificate
};

class Tls {
 public:
  // Throws Failure if a file cannot be used. The certificate of the server must be valid and of `host`.
  Tls(const TlsFiles& files, const std::string& host, int socket);
  ~Tls();

  bool connect() noexcept;  // false: errno, or EPROTO and why()
  ssize_t send(const char* bytes, std::size_t size) noexcept;
  ssize_t receive(char* bytes, std::size_t size) noexcept;  // 0 at the end
  const std::string& why() const noexcept { return why_; }

 private:
  // What a call that returned `result` means, in the terms of recv().
  ssize_t failed(int result) noexcept;

  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> stream_;
  std::string why_;
};

}  // namespace perhaps::cli
