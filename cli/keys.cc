#include "keys.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "command.h"
#include "little_endian.h"
#include "print.h"

namespace perhaps::cli {

Keys::Keys(const KeyOptions& options) : options_(options) {
  for (const std::string& path : options.files) {
    try {
      sources_.push_back(Source::open(path, options));
    } catch (const Failure& failure) {
      if (!options.goes_on) throw;
      say("", failure.what());
      failed_ = true;
      continue;
    }
    if (options.frugal) sources_.back()->be_frugal();
  }
}

bool Keys::all_mapped() const noexcept {
  return std::all_of(sources_.begin(), sources_.end(), [](const auto& s) { return s->mapped(); });
}

void Keys::unmap() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i]->mapped()) continue;
    sources_[i].reset();
    sources_[i] = Source::open(options_.files[i], options_, false);
  }
}

std::uint64_t Keys::stored_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& source : sources_) {
    if (source->size() == 0 && !source->mapped()) return 0;
    sum += source->size();
  }
  return sum;
}

std::string Keys::names() const {
  std::vector<std::string> names;
  if (!options_.literals.empty()) names.push_back(fmt::format("{} given", options_.literals.size()));
  for (const auto& source : sources_) names.push_back(source->name());
  if (names.size() > 3) names = {names[0], names[1], fmt::format("{} more", names.size() - 2)};
  return fmt::format("{}", fmt::join(names, ", "));
}

unsigned on_threads(unsigned threads, const std::function<void(unsigned)>& work) {
  std::vector<std::thread> others;
  others.reserve(threads);
  try {
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work, i);
  } catch (const std::system_error&) {  // a limit on processes or on memory
  } catch (const std::bad_alloc&) {
  }
  work(0);
  for (auto& other : others) other.join();
  return static_cast<unsigned>(others.size()) + 1;
}

// Hands a block to whichever thread is free. The first exception of any thread is thrown here.
unsigned Keys::share_out(unsigned threads, const std::function<void(unsigned, const Share&)>& use) {
  for (const auto& source : sources_) source->rewind();
  std::atomic<bool> stop{false};
  std::exception_ptr first;
  std::mutex mutex;
  std::uint64_t blocks = 0;
  const auto next = [&](Source& source) {
    const std::lock_guard lock(mutex);
    std::uint64_t stored = 0;
    const Bytes block = source.next(stored);
    return Share{source, block, stored, block.empty() ? 0 : blocks++};
  };
  const auto work = [&](unsigned thread) {
    try {
      for (const auto& source : sources_) {
        while (!stop.load(std::memory_order_relaxed)) {
          const Share share = next(*source);
          if (share.block.empty()) break;
          use(thread, share);
        }
      }
    } catch (...) {
      stop = true;
      const std::lock_guard lock(mutex);
      if (first == nullptr) first = std::current_exception();
    }
  };
  const unsigned used = on_threads(threads, work);
  if (first != nullptr) std::rethrow_exception(first);
  return used;
}

void Keys::report_skipped(std::uint64_t skipped) {
  if (skipped == 0 || std::exchange(reported_, true)) return;
  say("", fmt::format("{} record{} no field {} and {} skipped", grouped(skipped), skipped == 1 ? " has" : "s have",
                      fmt::join(options_.fields, ","), skipped == 1 ? "was" : "were"));
}

std::uint64_t Keys::count(unsigned threads) {
  Progress progress("counting", stored_bytes());
  if (options_.missing == Missing::skip && !options_.fields.empty()) {  // only the parser knows which have the field
    std::atomic<std::uint64_t> kept{0};
    for_each_parallel(threads, progress, [&](unsigned, const Batch& batch) {
      kept.fetch_add(batch.keys.size(), std::memory_order_relaxed);
    });
    return kept;
  }
  std::atomic<std::uint64_t> total{options_.literals.size()};
  share_out(threads, [&](unsigned, const Share& share) {
    const std::uint64_t count = count_records(options_.as, share.block);
    total.fetch_add(count, std::memory_order_relaxed);
    progress.advance(share.stored, count);
  });
  return total;
}

void Keys::for_each(Progress& progress, const Use& use, const std::function<void()>& block_done) {
  Parser parser(options_);
  for (std::size_t i = 0; i < options_.literals.size(); i += Parser::kColumn) {
    if (!use(parser.literals(i), nullptr)) return;
  }
  for (const auto& source : sources_) {
    source->rewind();
    std::uint64_t stored = 0;
    for (Bytes block = source->next(stored); !block.empty(); block = source->next(stored)) {
      const Bytes whole = block;
      Batch batch;
      std::uint64_t count = 0;
      while (parser.next(*source, block, batch)) {
        if (!use(batch, source.get())) return;
        count += batch.keys.size();
      }
      progress.advance(stored, count);
      if (block_done) block_done();
      source->release(whole);
    }
  }
  report_skipped(parser.take_skipped());
}

void Keys::for_each_pair(Progress& progress, const KeyOptions& values, const UsePair& use) {
  Parser key_parser(options_);
  Parser value_parser(values);
  for (const auto& source : sources_) {
    source->rewind();
    std::uint64_t line = 1;
    std::uint64_t stored = 0;
    for (Bytes block = source->next(stored); !block.empty(); block = source->next(stored)) {
      const Bytes whole = block;
      Bytes again = block;
      Batch key_batch;
      Batch value_batch;
      std::uint64_t count = 0;
      while (key_parser.next(*source, block, key_batch) && value_parser.next(*source, again, value_batch)) {
        use(key_batch, value_batch, *source, line);
        line += key_batch.read;
        count += key_batch.keys.size();
      }
      progress.advance(stored, count);
      source->release(whole);
    }
  }
}

// Returns the number of keys.
std::uint64_t Keys::use_block(Parser& parser, const Share& share, const std::function<void(const Batch&)>& use) {
  Bytes left = share.block;
  Batch batch;
  std::uint64_t count = 0;
  while (parser.next(share.source, left, batch)) {
    use(batch);
    count += batch.keys.size();
  }
  return count;
}

unsigned Keys::for_each_parallel(unsigned threads, Progress& progress,
                                 const std::function<void(unsigned thread, const Batch&)>& use) {
  std::vector<std::unique_ptr<Parser>> parsers;
  for (unsigned i = 0; i < threads; ++i) parsers.push_back(std::make_unique<Parser>(options_));
  for (std::size_t i = 0; i < options_.literals.size(); i += Parser::kColumn) use(0, parsers[0]->literals(i));
  const unsigned used = share_out(threads, [&](unsigned thread, const Share& share) {
    const std::uint64_t count = use_block(*parsers[thread], share, [&](const Batch& batch) { use(thread, batch); });
    progress.advance(share.stored, count);
    share.source.release(share.block);
  });
  std::uint64_t skipped = 0;
  for (const auto& parser : parsers) skipped += parser->take_skipped();
  report_skipped(skipped);
  return used;
}

void Keys::for_each_block(unsigned threads, Progress& progress,
                          const std::function<void(unsigned thread, const Batch&)>& use,
                          const std::function<void(unsigned thread, const Source&)>& done) {
  std::vector<std::unique_ptr<Parser>> parsers;
  for (unsigned i = 0; i < threads; ++i) parsers.push_back(std::make_unique<Parser>(options_));
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t turn = 0;
  bool failed = false;  // a block that others wait for will not be done
  share_out(threads, [&](unsigned thread, const Share& share) {
    try {
      const std::uint64_t count = use_block(*parsers[thread], share, [&](const Batch& batch) { use(thread, batch); });
      progress.advance(share.stored, count);
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn == share.number || failed; });
      if (failed) return;
      done(thread, share.source);
      ++turn;
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        failed = true;
      }
      changed.notify_all();
      throw;
    }
    changed.notify_all();
    share.source.release(share.block);
  });
  std::uint64_t skipped = 0;
  for (const auto& parser : parsers) skipped += parser->take_skipped();
  report_skipped(skipped);
}

void digest_keys(const AnyHasher& hasher, KeysAs as, std::span<const Bytes> keys,
                 std::span<std::uint64_t> out) noexcept {
  if (as != KeysAs::u64) return hash_many(hasher, keys, out);
  std::visit(
      [&](const auto& h) {
        for (std::size_t i = 0; i < keys.size(); ++i)
          out[i] = h(load_little_endian<std::uint64_t>(keys[i].data())).value;
      },
      hasher);
}

void query(const AnyFilter& filter, KeysAs as, std::span<const Bytes> keys, std::span<std::uint64_t> answers) {
  const DigestProbe* probe = filter.digests();
  if (probe == nullptr) return filter.may_contain(keys, answers);  // another system's filter: a number is its 8 bytes
  std::array<std::uint64_t, Parser::kColumn> digests;
  digest_keys(probe->hasher(), as, keys, digests);
  probe->may_contain(std::span<const std::uint64_t>(digests.data(), keys.size()), answers);
}

}  // namespace perhaps::cli
