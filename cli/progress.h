// How far a long command has come.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace perhaps::cli {

// A line on standard error with share, rate and time left, after one second and on a terminal only. Also the place
// where Ctrl-C is noticed: advance() throws Interrupted.
class Progress {
 public:
  // `total` bytes of input, 0 if unknown. `hidden`: somebody else writes to the terminal.
  Progress(std::string label, std::uint64_t total, bool hidden = false);
  ~Progress();
  // Safe from several threads.
  void advance(std::uint64_t bytes, std::uint64_t keys);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  std::string label_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> keys_{0};
  Clock::time_point begin_ = Clock::now();
  std::mutex drawing_;
  Clock::time_point next_;
  bool shown_ = false;
  bool enabled_;
};

}  // namespace perhaps::cli
