#include "tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <new>

#include "command.h"

namespace perhaps::cli {
namespace {

std::string last_error() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* const text = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  return text == nullptr ? "TLS failed" : text;
}

}  // namespace

Tls::Tls(const TlsFiles& files, const std::string& host, int socket)
    : context_(::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free), stream_(nullptr, &::SSL_free) {
  // OpenSSL writes to the socket without MSG_NOSIGNAL.
  ::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* const context = context_.get();
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const auto must = [](int done, const std::string& option, const std::string& path) {
    if (done != 1) fail("{} {}: {}", option, path, last_error());
  };
  if (files.authorities.empty()) {
    ::SSL_CTX_set_default_verify_paths(context);
  } else {
    must(::SSL_CTX_load_verify_file(context, files.authorities.c_str()), "--tls-ca", files.authorities);
  }
  if (!files.certificate.empty()) {
    must(::SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()), "--tls-cert", files.certificate);
    must(::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM), "--tls-key", files.key);
  }
  stream_.reset(::SSL_new(context));
  if (stream_ == nullptr || ::SSL_set_fd(stream_.get(), socket) != 1) throw std::bad_alloc();
  // A name or an address: the certificate has them in different fields, and only a name is sent to the server.
  if (::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(stream_.get()), host.c_str()) != 1) {
    SSL_set_tlsext_host_name(stream_.get(), host.c_str());
    if (::SSL_set1_host(stream_.get(), host.c_str()) != 1) throw std::bad_alloc();  // else any host would do
  }
  ::ERR_clear_error();
}

Tls::~Tls() = default;

ssize_t Tls::failed(int result) noexcept {
  const int error = errno;
  switch (::SSL_get_error(stream_.get(), result)) {
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:  // a signal, or the timeout of the socket
      errno = error == EINTR ? EINTR : EAGAIN;
      return -1;
    case SSL_ERROR_SYSCALL:
      if (error == 0) return 0;  // closed without a word
      errno = error;
      return -1;
    default: {
      const long verified = ::SSL_get_verify_result(stream_.get());
      why_ = verified == X509_V_OK
                 ? last_error()
                 : fmt::format("its certificate is refused: {} (--tls-ca)", ::X509_verify_cert_error_string(verified));
      errno = EPROTO;
      return -1;
    }
  }
}

bool Tls::connect() noexcept {
  errno = 0;
  const int result = ::SSL_connect(stream_.get());
  if (result == 1) return true;
  if (failed(result) == 0) errno = ECONNRESET;
  return false;
}

ssize_t Tls::send(const char* bytes, std::size_t size) noexcept {
  errno = 0;
  const int sent = ::SSL_write(stream_.get(), bytes, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  return sent > 0 ? sent : failed(sent);
}

ssize_t Tls::receive(char* bytes, std::size_t size) noexcept {
  errno = 0;
  const int got = ::SSL_read(stream_.get(), bytes, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  return got > 0 ? got : failed(got);
}

}  // namespace perhaps::cli
