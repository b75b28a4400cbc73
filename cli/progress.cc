#include "progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "interrupt.h"
#include "print.h"

namespace perhaps::cli {

Progress::Progress(std::string label, std::uint64_t total, bool hidden)
    : label_(std::move(label)),
      total_(total),
      next_(begin_ + std::chrono::seconds(1)),
      enabled_(!hidden && is_terminal(STDERR_FILENO)) {}

Progress::~Progress() {
  if (shown_) write_error("\r\033[K");
}

void Progress::advance(std::uint64_t bytes, std::uint64_t keys) {
  check_interrupt();
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  keys_.fetch_add(keys, std::memory_order_relaxed);
  if (!enabled_) return;
  const auto now = Clock::now();
  const std::unique_lock lock(drawing_, std::try_to_lock);
  if (!lock || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  draw(now);
}

void Progress::draw(Clock::time_point now) {
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const auto bytes = static_cast<double>(bytes_.load(std::memory_order_relaxed));
  const auto keys = static_cast<double>(keys_.load(std::memory_order_relaxed));
  std::string line = fmt::format("{:<9}", label_);
  if (total_ != 0) {
    const double share = std::min(1.0, bytes / static_cast<double>(total_));
    const double left = share > 0 ? std::min(elapsed / share - elapsed, 359'999.0) : 359'999.0;
    const auto seconds = static_cast<int>(std::ceil(left));
    line += fmt::format(" {} {:>3.0f} %  {}:{:02} left", bar(share, 24), share * 100, seconds / 60, seconds % 60);
  } else {
    line += fmt::format(" {}", bytes_text(bytes));
    if (keys > 0) line += fmt::format(", {} keys", rate_text(keys));
  }
  if (keys > 0) line += fmt::format("  {} keys/s", rate_text(keys / elapsed));
  winsize size{};
  const std::size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
  write_error(fmt::format("\r{}\033[K", line.substr(0, columns - 1)));
  shown_ = true;
}

}  // namespace perhaps::cli
