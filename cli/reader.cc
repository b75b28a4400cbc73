#include "reader.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
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

// Could more bytes show that these are the beginning of packed data?
bool may_be_packed(Bytes start) noexcept {
  static constexpr std::string_view kFronts[] = {"\x1f\x8b\x08",
                                                 "\x28\xb5\x2f\xfd",
                                                 "\x04\x22\x4d\x18",
                                                 {"\xfd"
                                                  "7zXZ\0",
                                                  6},
                                                 "BZh"};
  if (start.empty()) return false;                                         // the end
  const bool skippable = (start[0] & std::byte{0xf0}) == std::byte{0x50};  // a frame of zstd that holds no data
  const std::string_view rest = "\x2a\x4d\x18";
  const auto agree = [&](Bytes bytes, std::string_view front) {
    return std::memcmp(bytes.data(), front.data(), std::min(front.size(), bytes.size())) == 0;
  };
  return (skippable && agree(start.subspan(1), rest)) ||
         std::ranges::any_of(kFronts, [&](std::string_view front) { return agree(start, front); });
}

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

class XzReader : public Reader {
 public:
  explicit XzReader(Reader&& plain) : Reader(std::move(plain)) {
    if (::lzma_stream_decoder(&z_, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
  ~XzReader() override { ::lzma_end(&z_); }
  std::size_t read(std::span<std::byte> out) override {
    z_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    z_.avail_out = out.size();
    while (z_.avail_out == out.size() && !ended_) {
      const bool last = raw_.empty() && !fill();
      z_.next_in = reinterpret_cast<const std::uint8_t*>(raw_.data());
      z_.avail_in = raw_.size();
      const lzma_ret state = ::lzma_code(&z_, last ? LZMA_FINISH : LZMA_RUN);
      raw_ = raw_.last(z_.avail_in);
      ended_ = state == LZMA_STREAM_END;
      if (state == LZMA_MEM_ERROR) throw std::bad_alloc();
      if (state == LZMA_BUF_ERROR && last) fail("{}: the xz data is cut short", name_);
      if (state != LZMA_OK && state != LZMA_STREAM_END && state != LZMA_BUF_ERROR)
        fail("{}: damaged xz data (error {})", name_, static_cast<int>(state));
    }
    return out.size() - z_.avail_out;
  }

 private:
  lzma_stream z_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

class Bzip2Reader : public Reader {
 public:
  explicit Bzip2Reader(Reader&& plain) : Reader(std::move(plain)) { start(); }
  ~Bzip2Reader() override { ::BZ2_bzDecompressEnd(&z_); }
  std::size_t read(std::span<std::byte> out) override {
    z_.next_out = reinterpret_cast<char*>(out.data());
    z_.avail_out = static_cast<unsigned>(out.size());
    while (z_.avail_out == out.size()) {
      if (raw_.empty() && !fill()) {
        if (inside_) fail("{}: the bzip2 data is cut short", name_);
        break;
      }
      if (!inside_) {  // another stream
        ::BZ2_bzDecompressEnd(&z_);
        char* const next = z_.next_out;
        const unsigned left = z_.avail_out;
        start();
        z_.next_out = next;
        z_.avail_out = left;
        inside_ = true;
      }
      z_.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(raw_.data()));
      z_.avail_in = static_cast<unsigned>(raw_.size());
      const int state = ::BZ2_bzDecompress(&z_);
      raw_ = raw_.last(z_.avail_in);
      if (state == BZ_MEM_ERROR) throw std::bad_alloc();
      if (state != BZ_OK && state != BZ_STREAM_END) fail("{}: damaged bzip2 data (error {})", name_, state);
      inside_ = state != BZ_STREAM_END;
    }
    return out.size() - z_.avail_out;
  }

 private:
  void start() {
    z_ = {};
    if (::BZ2_bzDecompressInit(&z_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  bz_stream z_{};
  bool inside_ = true;
};

class Lz4Reader : public Reader {
 public:
  explicit Lz4Reader(Reader&& plain) : Reader(std::move(plain)), z_(nullptr, &::LZ4F_freeDecompressionContext) {
    LZ4F_dctx* context = nullptr;
    if (::LZ4F_isError(::LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) throw std::bad_alloc();
    z_.reset(context);
  }
  std::size_t read(std::span<std::byte> out) override {
    std::size_t made = 0;
    while (made == 0) {
      if (raw_.empty() && !fill()) {
        if (inside_) fail("{}: the lz4 data is cut short", name_);
        break;
      }
      std::size_t room = out.size();
      std::size_t used = raw_.size();
      const std::size_t state = ::LZ4F_decompress(z_.get(), out.data(), &room, raw_.data(), &used, nullptr);
      if (::LZ4F_isError(state)) fail("{}: damaged lz4 data ({})", name_, ::LZ4F_getErrorName(state));
      raw_ = raw_.subspan(used);
      made = room;
      inside_ = state != 0;
    }
    return made;
  }

 private:
  std::unique_ptr<LZ4F_dctx, decltype(&::LZ4F_freeDecompressionContext)> z_;
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
  // A pipe may give fewer bytes at first than tell how it is packed. Text is not waited for: whoever sent a line may
  // wait for the answer.
  while (raw_.size() < kMagic && packing_of(raw_) == Packing::none && may_be_packed(raw_)) {
    const std::size_t more = read_raw(std::span(buffer_).subspan(raw_.size()));
    if (more == 0) break;
    raw_ = {buffer_.data(), raw_.size() + more};
  }
  return !raw_.empty();
}

std::size_t Reader::read_raw(std::span<std::byte> out) {
  for (;;) {
    check_interrupt();  // a signal since the last block would not end the read
    const ssize_t n = ::read(file_.get(), out.data(), out.size());
    if (n >= 0) {
      stored_ += static_cast<std::uint64_t>(n);
      return static_cast<std::size_t>(n);
    }
    if (errno != EINTR) fail("{}: {}", name_, std::strerror(errno));
  }
}

Packing packing_of(Bytes start) noexcept {
  if (start.size() < 4) return Packing::none;
  const auto word = load_little_endian<std::uint32_t>(start.data());
  // deflate is the only method, and three bits of the flags are reserved
  if ((word & 0xe0ffffffu) == 0x00088b1fu) return Packing::gzip;
  if (word == 0xfd2fb528u || (word & 0xfffffff0u) == 0x184d2a50u) return Packing::zstd;
  if (word == 0x184d2204u) return Packing::lz4;
  const auto begins = [&](std::string_view magic) {
    return start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  };
  if (begins({"\xfd"
              "7zXZ\0",
              6}))
    return Packing::xz;
  // BZh, the size of a block, and the mark of the first block or of an empty stream.
  if (begins("BZh") && start.size() >= kMagic && start[3] >= std::byte{'1'} && start[3] <= std::byte{'9'}) {
    if (std::memcmp(start.data() + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0) return Packing::bzip2;
    if (std::memcmp(start.data() + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0) return Packing::bzip2;
  }
  return Packing::none;
}

std::unique_ptr<Reader> unpacked(std::unique_ptr<Reader> plain) {
  switch (packing_of(plain->peek())) {
    case Packing::gzip:
      return std::make_unique<GzipReader>(std::move(*plain));
    case Packing::zstd:
      return std::make_unique<ZstdReader>(std::move(*plain));
    case Packing::xz:
      return std::make_unique<XzReader>(std::move(*plain));
    case Packing::bzip2:
      return std::make_unique<Bzip2Reader>(std::move(*plain));
    case Packing::lz4:
      return std::make_unique<Lz4Reader>(std::move(*plain));
    case Packing::none:
      return plain;
  }
  return plain;
}

}  // namespace perhaps::cli
