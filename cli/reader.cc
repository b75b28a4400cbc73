#include "reader.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "command.h"
#include "interrupt.h"
#include "little_endian.h"

namespace perhaps::cli {
namespace {

class GzipReader : public Reader {
 public:
  explicit GzipReader(Reader&& plain) : Reader(std::move(plain)) {
    if (::inflateInit2(&z_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipReader() override { ::inflateEnd(&z_); }
  std::size_t read(std::span<std::byte> out) override {
    z_.next_out = reinterpret_cast<Bytef*>(out.data());
    z_.avail_out = static_cast<uInt>(out.size());
    while (z_.avail_out == out.size()) {
      if (raw_.empty() && !fill()) {
        if (inside_) fail("{}: the gzip data is cut short", name_);
        break;
      }
      if (!inside_) {  // between members: another one, or padding
        while (!raw_.empty() && raw_[0] == std::byte{0}) raw_ = raw_.subspan(1);
        if (raw_.empty()) continue;
        ::inflateReset(&z_);
        inside_ = true;
      }
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(raw_.data()));
      z_.avail_in = static_cast<uInt>(raw_.size());
      const int state = ::inflate(&z_, Z_NO_FLUSH);
      raw_ = raw_.last(z_.avail_in);
      if (state == Z_STREAM_END) {
        inside_ = false;
      } else if (state != Z_OK && state != Z_BUF_ERROR) {
        fail("{}: damaged gzip data ({})", name_, z_.msg == nullptr ? "bad stream" : z_.msg);
      }
    }
    return out.size() - z_.avail_out;
  }

 private:
  z_stream z_{};
  bool inside_ = true;
};

class ZstdReader : public Reader {
 public:
  explicit ZstdReader(Reader&& plain) : Reader(std::move(plain)), z_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {
    if (z_ == nullptr) throw std::bad_alloc();
  }
  std::size_t read(std::span<std::byte> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      if (raw_.empty() && !fill()) {
        if (inside_) fail("{}: the zstd data is cut short", name_);
        break;
      }
      ZSTD_inBuffer from{raw_.data(), raw_.size(), 0};
      const std::size_t state = ::ZSTD_decompressStream(z_.get(), &to, &from);
      if (::ZSTD_isError(state)) fail("{}: damaged zstd data ({})", name_, ::ZSTD_getErrorName(state));
      raw_ = raw_.subspan(from.pos);
      inside_ = state != 0;
    }
    return to.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, decltype(&::ZSTD_freeDStream)> z_;
  bool inside_ = true;
};

}  // namespace

std::size_t Reader::read(std::span<std::byte> out) {
  if (raw_.empty()) {
    if (started_) return read_raw(out);
    fill();
  }
  started_ = true;
  const std::size_t n = std::min(out.size(), raw_.size());
  if (n != 0) std::memcpy(out.data(), raw_.data(), n);
  raw_ = raw_.subspan(n);
  return n;
}

bool Reader::fill() {
  buffer_.resize(std::size_t{1} << 17);
  raw_ = {buffer_.data(), read_raw(buffer_)};
  // Magic numbers are 4 bytes and a pipe may give fewer at first.
  while (raw_.size() < 4) {
    const std::size_t more = read_raw(std::span(buffer_).subspan(raw_.size()));
    if (more == 0) break;
    raw_ = {buffer_.data(), raw_.size() + more};
  }
  return !raw_.empty();
}

std::size_t Reader::read_raw(std::span<std::byte> out) {
  for (;;) {
    const ssize_t n = ::read(file_.get(), out.data(), out.size());
    if (n >= 0) {
      stored_ += static_cast<std::uint64_t>(n);
      return static_cast<std::size_t>(n);
    }
    if (errno != EINTR) fail("{}: {}", name_, std::strerror(errno));
    check_interrupt();
  }
}

Packing packing_of(Bytes start) noexcept {
  if (start.size() < 4) return Packing::none;
  const auto word = load_little_endian<std::uint32_t>(start.data());
  // deflate is the only method, and three bits of the flags are reserved
  if ((word & 0xe0ffffffu) == 0x00088b1fu) return Packing::gzip;
  if (word == 0xfd2fb528u || (word & 0xfffffff0u) == 0x184d2a50u) return Packing::zstd;
  return Packing::none;
}

std::unique_ptr<Reader> unpacked(std::unique_ptr<Reader> plain) {
  switch (packing_of(plain->peek())) {
    case Packing::gzip:
      return std::make_unique<GzipReader>(std::move(*plain));
    case Packing::zstd:
      return std::make_unique<ZstdReader>(std::move(*plain));
    case Packing::none:
      return plain;
  }
  return plain;
}

}  // namespace perhaps::cli
