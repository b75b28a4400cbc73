#include "build_format.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "command.h"
#include "interrupt.h"
#include "interval.h"
#include "json.h"
#include "memory_check.h"
#include "perhaps/file/writer.h"
#include "print.h"
#include "progress.h"
#include "sharded.h"

namespace perhaps::cli {
namespace {

using Means = format::Param::Means;

// All keys at once and in order, as the codecs need them. Keys of mapped files are not copied.
class AllKeys {
 public:
  explicit AllKeys(const KeyOptions& options) : options_(options) {}

  void add(const Batch& batch, const Source* source) {
    const bool stays = source != nullptr && source->mapped() && options_.key_is_record();
    for (const Bytes key : batch.keys) keys_.push_back(stays ? key : copy_of(key));
  }
  std::span<const Bytes> get() const noexcept { return keys_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  Bytes copy_of(Bytes key) {
    if (key.size() > room_) {
      room_ = std::max(kPiece, key.size());
      pieces_.push_back(std::make_unique_for_overwrite<std::byte[]>(room_));
      next_ = pieces_.back().get();
    }
    std::byte* const at = next_;
    if (!key.empty()) std::memcpy(at, key.data(), key.size());
    next_ += key.size();
    room_ -= key.size();
    return {at, key.size()};
  }

  const KeyOptions& options_;
  std::vector<Bytes> keys_;
  std::vector<std::unique_ptr<std::byte[]>> pieces_;
  std::byte* next_ = nullptr;
  std::size_t room_ = 0;
};

// "fpp (--fpr) and expected_insertions (--keys-expected)"
std::string sized_by(const format::Codec& codec) {
  std::vector<std::string> names;
  for (const format::Param& param : codec.params) {
    if (param.means != Means::itself) names.push_back(fmt::format("{} ({})", param.name, option_for(param.means)));
  }
  if (names.empty()) return "its keys alone";
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} and {}", fmt::join(names, ", "), last);
}

void apply(const format::Codec& codec, const Wish& wish, format::Params& params) {
  const auto param = std::ranges::find(codec.params, wish.means, &format::Param::means);
  if (param == codec.params.end()) fail("{}: {} is sized by {}", wish.option, codec.name, sized_by(codec));
  if (params.given(param->name)) fail("{} and --set {}: they are the same", wish.option, param->name);
  if (auto done = params.set(param->name, wish.value); !done)
    fail("{}: {}: {}", wish.option, codec.name, done.error().detail);
}

// While one lives, the system refuses allocations beyond the machine's memory, instead of killing the program when it
// uses them.
class NoMoreThanThereIs {
 public:
  NoMoreThanThereIs() {
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit most{std::min<rlim_t>(physical_memory(), before_.rlim_cur), before_.rlim_max};
    if (!kSanitized) ::setrlimit(RLIMIT_DATA, &most);
  }
  NoMoreThanThereIs(const NoMoreThanThereIs&) = delete;
  ~NoMoreThanThereIs() { ::setrlimit(RLIMIT_DATA, &before_); }

 private:
  // The shadow memory of a sanitizer is larger than any machine's.
#if defined(__has_feature)
  static constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  static constexpr bool kSanitized = false;
#endif
  rlimit before_{};
};

// Only the codec knows how large the file will be.
std::vector<std::byte> built(const format::Codec& codec, std::span<const Bytes> keys, const format::Params& params) {
  const NoMoreThanThereIs limit;
  try {
    return take(codec.build(keys, params));
  } catch (const std::bad_alloc&) {
    fail("{}: the file would be larger than the memory of this machine, {}", codec.name,
         bytes_text(static_cast<double>(physical_memory())));
  }
}

std::string shards_text(const FormatBuild& build) {
  return build.keys.shard.count == 0 ? std::to_string(build.shards)
                                     : fmt::format("{} of {}", build.keys.shard.index, build.shards);
}

void report(const FormatBuild& build, const format::Codec& codec, const Keys& keys, std::uint64_t count,
            const Description& d, std::uint64_t file_bytes, double seconds) {
  const double bits_per_key = count == 0 ? 0 : static_cast<double>(file_bytes) * 8 / static_cast<double>(count);
  const double per_second = static_cast<double>(count) / std::max(seconds, 1e-9);
  Out out;
  if (build.json) {
    Json json;
    json.add("file", build.output).add("format", codec.name).add("family", d.family).add("hash", d.hash);
    json.add("keys", count).add("keys_distinct", d.keys_estimated).add("bits", d.bits).add("bytes", file_bytes);
    json.add("probes", d.probes)
        .add("bits_per_key", count == 0 ? std::optional<double>() : bits_per_key)
        .add("fill", d.fill)
        .add("fpr", d.fpr);
    json.add("seconds", seconds).add("keys_per_second", per_second);
    out.write(json.text() + "\n");
    return;
  }
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<9}  {}\n", label, text));
  };
  out.write(bold(build.output) + "\n");
  row("keys", fmt::format("{}, from {}", grouped(count), keys.names()));
  row("format", fmt::format("{}: {}", codec.name, codec.summary));
  if (build.shards != 0) row("shards", shards_text(build));
  const std::string probes = d.probes == 0 ? "" : fmt::format(", {} probe{}", d.probes, d.probes == 1 ? "" : "s");
  row("filter", fmt::format("{}{}{}{}", d.family, probes, d.hash.empty() ? "" : ", ", d.hash));
  row("size", fmt::format("{} bytes{}", grouped(file_bytes),
                          count == 0 ? "" : fmt::format(", {:.2f} bits per key", bits_per_key)));
  row("fpr", model_text(d.fpr));
  if (!build.keys.same_key({}))
    row("recipe", build.keys.text() + ": not stored in this format; query with the same options");
  row("time", fmt::format("{}, {} keys/s", seconds_text(seconds), rate_text(per_second)));
}

// If a hash deals n keys out to N shards, a shard has n / N keys, give or take sqrt(n / N).
std::uint64_t share_of(std::uint64_t keys, std::uint64_t shards) noexcept {
  const double mean = static_cast<double>(keys) / static_cast<double>(shards);
  return static_cast<std::uint64_t>(std::ceil(mean + 4 * std::sqrt(mean)));
}

struct Saved {
  Description description;
  std::uint64_t bytes;
};

// Each shard is a whole filter of its own keys.
Saved build_shards(const FormatBuild& build, const format::Codec& codec, const format::Params& params,
                   std::span<const Bytes> keys) {
  std::vector<std::vector<Bytes>> of(build.shards);
  for (const Bytes key : keys) of[shard_of(key, build.shards)].push_back(key);
  std::vector<std::vector<std::byte>> files;
  std::vector<Shard> shards;
  std::vector<std::shared_ptr<const AnyFilter>> filters(build.shards);
  Progress progress("building", 0);
  for (std::uint64_t i = 0; i < build.shards; ++i) {
    if (build.keys.shard.count != 0 && i != build.keys.shard.index) continue;
    if (of[i].empty()) fail("--shards {}: shard {} has no keys: take fewer", build.shards, i);
    files.push_back(built(codec, of[i], params));
    filters[i] = take(codec.open({.bytes = files.back(), .file_name = {}}, params)).whole;
    shards.push_back({.index = i, .bytes = files.back()});
    progress.advance(files.back().size(), of[i].size());
  }
  const Description d = Sharded(std::move(filters)).describe();
  const Saving saving;
  take(write_shards(build.output, build.shards, shards));
  return {d, std::accumulate(shards.begin(), shards.end(), std::uint64_t{0},
                             [](std::uint64_t sum, const Shard& shard) { return sum + shard.bytes.size(); })};
}

}  // namespace

std::string_view option_for(Means means) noexcept {
  switch (means) {
    case Means::fpr:
      return "--fpr";
    case Means::bits_per_key:
      return "--bits-per-key";
    case Means::keys:
      return "--keys-expected";
    case Means::itself:
      break;
  }
  return "";
}

void save_bytes(Bytes bytes, const std::string& path) {
  const Saving saving;
  take(write_file(path, bytes));
}

int build_format(const FormatBuild& build) {
  const auto begin = std::chrono::steady_clock::now();
  const format::Codec& codec = find_codec(build.format.format);
  if (codec.build == nullptr) fail("{}: can be read, not written", codec.name);
  format::Params params = params_of(codec, build.format.sets);
  for (Wish wish : build.wishes) {
    if (wish.means == Means::keys && build.shards != 0)
      wish.value = std::to_string(share_of(*parse_count(wish.value), build.shards));
    apply(codec, wish, params);
  }
  Keys keys(build.keys);
  AllKeys all(build.keys);
  {
    Progress progress("reading", keys.stored_bytes());
    keys.for_each(progress, [&](const Batch& batch, const Source* source) {
      all.add(batch, source);
      return true;
    });
  }
  if (all.get().empty() && !build.allow_empty)
    fail("no keys came from {}, and a filter of none answers no to everything (--allow-empty makes one)", keys.names());
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  if (build.shards != 0) {
    const Saved saved = build_shards(build, codec, params, all.get());
    report(build, codec, keys, all.get().size(), saved.description, saved.bytes, seconds());
    return kYes;
  }
  const std::vector<std::byte> bytes = built(codec, all.get(), params);
  check_interrupt();
  // Opened again before it replaces anything.
  const auto opened = take(codec.open({.bytes = bytes, .file_name = {}}, params));
  const Description d = opened.whole->describe();
  save_bytes(bytes, build.output);
  report(build, codec, keys, all.get().size(), d, bytes.size(), seconds());
  return kYes;
}

}  // namespace perhaps::cli
