// perhaps build: keys -> a filter file.
//
//   files        mapped; counted in parallel, then parsed, hashed and inserted in parallel: no memory but the filter
//   pipes, .gz   cannot be read twice: the digests are kept, 8 bytes a key, and inserted once their number is known;
//                with --keys-expected or --max-bytes the size is known before, and nothing is kept
//   --on-disk    the bits are set in the new file itself, mapped, for filters that memory has no room for
//
// Filters of sets (any_filter.h) keep the digests in any case, fuse and ribbon in a temporary file past --memory.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <optional>

#include "build_format.h"
#include "command.h"
#include "keys.h"
#include "options.h"
#include "perhaps/cuckoo.h"
#include "perhaps/shards.h"
#include "perhaps/sizing.h"
#include "print.h"

namespace perhaps::cli {
namespace {

struct Options {
  KeyOptions keys;
  std::string output;
  std::string family = "line";
  const Family* about = nullptr;
  Sizing sizing;
  std::uint32_t guard_bits = 0;
  std::uint32_t arity = 0;  // not given
  std::uint64_t memory = 0;
  FormatArgs format;
  std::uint64_t shards = 0;
  std::optional<std::uint64_t> only;
  Keyed keyed;
  std::uint64_t keys_expected = 0;
  std::uint32_t threads = 1;
  std::string seed;
  bool on_disk = false;
  bool json = false;
};

// Digests in pieces that never move, so that growing costs no copy.
class Digests {
 public:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  std::span<std::uint64_t> room(std::size_t most) {
    if (pieces_.empty() || used_ == kPiece) {
      pieces_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(kPiece));
      used_ = 0;
    }
    return {pieces_.back().get() + used_, std::min(most, kPiece - used_)};
  }
  void took(std::size_t count) noexcept { used_ += count; }
  std::size_t pieces() const noexcept { return pieces_.size(); }
  std::uint64_t size() const noexcept { return pieces_.empty() ? 0 : (pieces_.size() - 1) * kPiece + used_; }
  std::span<const std::uint64_t> piece(std::size_t i) const noexcept {
    return {pieces_[i].get(), i + 1 == pieces_.size() ? used_ : kPiece};
  }
  void drop(std::size_t i) noexcept { pieces_[i].reset(); }

 private:
  std::vector<std::unique_ptr<std::uint64_t[]>> pieces_;
  std::size_t used_ = 0;
};

AnyHasher hasher_of(const Options& options) {
  if (const auto secret = options.keyed.read()) {
    if (!options.seed.empty()) fail("--seed: a keyed hash has a secret and no seed");
    return *secret;
  }
  if (options.seed.empty()) return Hash();
  const auto seed = parse_u64(options.seed);
  if (!seed) fail("--seed {}: not a 64-bit number", options.seed);
  return Hash(*seed);
}

void check_size(std::string_view family, const Request& request, std::string_view advice = "") {
  check_memory(row_of(family, request).bytes, fmt::format("a {} filter for {} keys", family, grouped(request.keys)),
               advice);
}

// What is being filled.
class Target {
 public:
  virtual ~Target() = default;
  // As AnyBuilder's.
  virtual std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) = 0;
  virtual Description save(Record record) = 0;
};

class InMemory : public Target {
 public:
  InMemory(std::unique_ptr<AnyBuilder> builder, const Options& options, const Request& request)
      : builder_(std::move(builder)),
        request_(request),
        about_(*options.about),
        path_(options.output),
        max_bytes_(options.sizing.max_bytes) {}
  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override { return builder_->lanes(threads); }
  Description save(Record record) override {
    // Before the table of the others there were their keys to be read.
    if (!about_.sized_first && !about_.in_order) {
      request_.keys = std::max(request_.keys, record.keys);
      check_size(about_.name, request_);
    }
    auto built = builder_->finish();
    if (!built && built.error().code == Errc::full && max_bytes_ != 0)
      fail("--max-bytes {}: {}", max_bytes_, built.error().detail);
    const std::unique_ptr<AnyOwner> filter = take(std::move(built));
    check_interrupt();
    if (max_bytes_ != 0 && filter->byte_size() > max_bytes_) {
      fail("--max-bytes {}: these keys need {} bytes, whatever the false-positive rate", grouped(max_bytes_),
           grouped(filter->byte_size()));
    }
    // A family that makes its keys distinct has counted them itself.
    if (filter->record().keys < record.keys) record.keys = filter->record().keys;
    if (filter->record().capacity != 0) record.capacity = filter->record().capacity;
    save_filter(*filter, path_, record);
    return capped(filter->describe(), record.keys);
  }

 private:
  std::unique_ptr<AnyBuilder> builder_;
  Request request_;
  const Family& about_;
  std::string path_;
  std::uint64_t max_bytes_;
};

// Threads hash side by side and insert one after the other: the disk is what they wait for.
template <class L, class H>
class OnDisk : public Target {
 public:
  using Filter = Flat<L, H>;
  OnDisk(const std::string& path, const Request& request, const H& hasher)
      : path_(path), hasher_(hasher), file_(take(NewFile<Filter>::create(path, L::Shape::for_keys(request), hasher))) {}

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    std::vector<std::unique_ptr<AnyLane>> result;
    for (unsigned i = 0; i < threads; ++i) result.push_back(std::make_unique<Lane>(*this));
    return result;
  }
  Description save(Record record) override {
    {
      const Saving saving;
      take(file_.commit(record));
    }
    OpenOptions options{.verify = false, .secret = {}};
    if constexpr (std::same_as<H, KeyedHash>) options.secret = hasher_;
    return capped(take(File::open(path_, options)).any()->describe(), record.keys);
  }

 private:
  class Lane : public AnyLane {
   public:
    explicit Lane(OnDisk& to) : to_(to) {}
    bool insert(std::span<const Bytes> keys) noexcept override {
      in_batches(keys, [&](auto batch, auto out) { digests_of(to_.hasher_, batch, out); });
      return true;
    }
    bool insert_digests(std::span<const std::uint64_t> digests) noexcept override {
      in_batches(digests, [&](auto batch, auto out) {
        for (std::size_t i = 0; i < batch.size(); ++i) out[i] = Digest<H>::made_by(to_.hasher_, batch[i]);
      });
      return true;
    }

   private:
    template <class T, class Make>
    void in_batches(std::span<const T> all, Make make) noexcept {
      for (std::size_t from = 0; from < all.size(); from += digests_.size()) {
        const auto batch = all.subspan(from, std::min(digests_.size(), all.size() - from));
        make(batch, std::span(digests_));
        const std::lock_guard lock(to_.mutex_);
        to_.file_.span().insert(std::span<const Digest<H>>(digests_.data(), batch.size()));
      }
    }
    OnDisk& to_;
    std::array<Digest<H>, Parser::kColumn> digests_;
  };

  std::string path_;
  H hasher_;
  NewFile<Filter> file_;
  std::mutex mutex_;
};

std::unique_ptr<Target> on_disk(const Options& options, const Request& request, const AnyHasher& any) {
  return std::visit(
      [&]<class H>(const H& hasher) -> std::unique_ptr<Target> {
        if (options.family == BlockLayout::family)
          return std::make_unique<OnDisk<BlockLayout, H>>(options.output, request, hasher);
        if (options.family == LineLayout::family)
          return std::make_unique<OnDisk<LineLayout, H>>(options.output, request, hasher);
        return std::make_unique<OnDisk<BloomLayout<EnhancedDouble>, H>>(options.output, request, hasher);
      },
      any);
}

BuildOptions build_options(const Options& options) {
  BuildOptions result;
  result.threads = options.threads;
  result.memory = options.memory;
  // One bar for each phase after the reading, which has its own.
  result.progress = [bar = std::shared_ptr<Progress>(), phase = BuildPhase::collecting,
                     last = std::uint64_t{0}](const BuildProgress& now) mutable {
    if (now.phase == BuildPhase::collecting) return;
    if (now.phase != phase) {
      bar.reset();
      bar = std::make_shared<Progress>(now.phase == BuildPhase::sorting ? "sorting" : "building", now.total);
      phase = now.phase;
      last = 0;
    }
    bar->advance(now.done - last, now.done - last);
    last = now.done;
  };
  return result;
}

// A filter that is filled in its file.
bool fills_files(const Family& family) {
  return family.name == LineLayout::family || family.name == BlockLayout::family ||
         family.name == BloomLayout<EnhancedDouble>::family;
}

std::unique_ptr<Target> make(const Options& options, std::uint64_t keys, const AnyHasher& hasher) {
  Request request = options.sizing.request(keys);
  request.guard_bits = options.guard_bits;
  if (options.arity != 0) request.arity = options.arity;
  const std::uint64_t bytes = row_of(options.family, request).bytes;
  if (keys != 0 && options.sizing.by_fpr() && options.family == "block" && bytes > 4096) {
    const double times_line = static_cast<double>(bytes) / static_cast<double>(row_of("line", request).bytes);
    if (times_line > 1.3) {
      warn(fmt::format("at --fpr {} a block filter takes {:.2f} times the memory of --filter line", request.fpr,
                       times_line));
    }
  }
  const bool can_be_on_disk = fills_files(*options.about);
  if (!options.on_disk) check_size(options.family, request, can_be_on_disk ? "; --on-disk fills it in its file" : "");
  if (options.on_disk || (can_be_on_disk && bytes > physical_memory() / 5 * 4))
    return on_disk(options, request, hasher);
  return std::make_unique<InMemory>(take(make_builder(options.family, request, hasher, build_options(options))),
                                    options, request);
}

struct Built {
  std::unique_ptr<Target> filter;
  Record record;
  unsigned threads = 1;
};

// More threads than blocks of input would only cost memory.
unsigned threads_for(const Options& options, std::uint64_t blocks) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, options.threads));
}

// From files, with all threads.
Built build_mapped(const Options& options, Keys& keys, const AnyHasher& hasher) {
  Built built;
  built.threads = threads_for(options, keys.stored_bytes() >> 20);
  const bool count_first = options.keys_expected == 0 && options.about->sized_first;
  built.record.capacity = count_first ? keys.count(built.threads) : options.keys_expected;
  built.filter = make(options, built.record.capacity, hasher);
  Progress progress(options.about->sized_first ? "building" : "reading", keys.stored_bytes());
  std::atomic<std::uint64_t> inserted{0};
  struct NoRoom {};
  try {
    const auto lanes = built.filter->lanes(built.threads);
    built.threads = keys.for_each_parallel(built.threads, progress, [&](unsigned thread, const Batch& batch) {
      bool taken = true;
      if (options.keys.as == KeysAs::u64) {
        std::array<std::uint64_t, Parser::kColumn> digests;
        digest_keys(hasher, options.keys.as, batch.keys, digests);
        taken = lanes[thread]->insert_digests(std::span(digests).first(batch.keys.size()));
      } else {
        taken = lanes[thread]->insert(batch.keys);
      }
      if (!taken) throw NoRoom();
      inserted.fetch_add(batch.keys.size(), std::memory_order_relaxed);
    });
  } catch (NoRoom) {  // save() will say why
  }
  built.record.keys = inserted;
  return built;
}

// From a pipe, when the size is known before the keys are.
Built build_streamed(const Options& options, Keys& keys, const AnyHasher& hasher) {
  Built built;
  // Without a number of keys the best probe count is unknown: assume that the memory was meant for 10 bits a key.
  built.record.capacity = options.keys_expected != 0 || !options.about->sized_first ? options.keys_expected
                                                                                    : options.sizing.max_bytes * 8 / 10;
  built.filter = make(options, built.record.capacity, hasher);
  Progress progress("building", keys.stored_bytes());
  const auto lanes = built.filter->lanes(1);
  std::array<std::uint64_t, Parser::kColumn> digests;
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    digest_keys(hasher, options.keys.as, batch.keys, digests);
    built.record.keys += batch.keys.size();
    return lanes[0]->insert_digests(std::span(digests).first(batch.keys.size()));
  });
  return built;
}

// One after the other.
Built build_in_order(const Options& options, Keys& keys, const AnyHasher& hasher) {
  if (keys.all_mapped() && options.about->sized_first && options.keys_expected == 0) {
    Options counted = options;
    counted.keys_expected = std::max<std::uint64_t>(keys.count(threads_for(options, keys.stored_bytes() >> 20)), 1);
    return build_streamed(counted, keys, hasher);
  }
  if (options.about->sized_first && options.keys_expected == 0)
    fail("--filter {}: from a pipe it needs --keys-expected", options.family);
  return build_streamed(options, keys, hasher);
}

// From a pipe, when nothing is known.
Built build_from_digests(const Options& options, Keys& keys, const AnyHasher& hasher) {
  Built built;
  Digests digests;
  {
    Progress progress("reading", keys.stored_bytes());
    keys.for_each(progress, [&](const Batch& batch, const Source*) {
      for (std::size_t from = 0; from < batch.keys.size();) {
        const auto room = digests.room(batch.keys.size() - from);
        digest_keys(hasher, options.keys.as, batch.keys.subspan(from, room.size()), room);
        digests.took(room.size());
        from += room.size();
      }
      return true;
    });
  }
  built.record = {.keys = digests.size(), .capacity = digests.size()};
  built.filter = make(options, digests.size(), hasher);
  built.threads = threads_for(options, digests.pieces() / 2);
  Progress progress("building", digests.size());
  const auto lanes = built.filter->lanes(built.threads);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  const auto work = [&](unsigned thread) {
    while (!stop) {
      const std::size_t i = next++;
      if (i >= digests.pieces()) break;
      if (!lanes[thread]->insert_digests(digests.piece(i))) break;
      const std::size_t count = digests.piece(i).size();
      digests.drop(i);
      try {
        progress.advance(count, count);
      } catch (const Interrupted&) {
        stop = true;
      }
    }
  };
  built.threads = on_threads(built.threads, work);
  check_interrupt();
  return built;
}

// What was asked for and cannot be had.
void warn_if_missed(const Options& options, const Description& d) {
  if (!options.sizing.by_fpr()) return;
  const double fpr = d.capacity ? d.fpr_at_capacity : d.fpr;
  if (fpr > 1.01 * options.sizing.fpr) {
    warn(fmt::format("--fpr {} is out of reach of --filter {}: it is {}", options.sizing.fpr, options.family,
                     percent(fpr)));
  }
  const double wrong = std::ldexp(options.sizing.fpr, -static_cast<int>(options.guard_bits));
  if (options.guard_bits != 0 && d.wrong_erase.value_or(0) > 1.01 * wrong) {
    warn(
        fmt::format("--guard-bits {} are out of reach: of keys that were never added one in {} removes another, not "
                    "one in {}",
                    options.guard_bits, grouped(1 / *d.wrong_erase), grouped(1 / wrong)));
  }
}

void report(const Options& options, const Keys& keys, const Built& built, const Description& d, double seconds) {
  const auto count = static_cast<double>(built.record.keys);
  const double bits_per_key = count == 0 ? 0 : static_cast<double>(d.bits) / count;
  if (options.json) {
    Json json;
    json.add("file", options.output).add("family", d.family).add("hash", d.hash).add("keys", built.record.keys);
    json.add("keys_distinct", d.keys_estimated).add("bits", d.bits).add("bytes", d.bytes).add("probes", d.probes);
    json.add("bits_per_key", count == 0 ? std::optional<double>() : bits_per_key).add("fill", d.fill).add("fpr", d.fpr);
    json.add("fpr_at_capacity", d.fpr_at_capacity).add("threads", built.threads).add("seconds", seconds);
    json.add("keys_per_second", seconds > 0 ? count / seconds : 0);
    Out().write(json.text() + "\n");
    return;
  }
  Out out;
  const auto row = [&](std::string_view label, const std::string& text) {
    out.write(fmt::format("  {:<9}  {}\n", label, text));
  };
  out.write(bold(options.output) + "\n");
  const ShardChoice shard = options.keys.shard;
  row("keys",
      fmt::format("{}, about {} distinct, from {}{}", grouped(built.record.keys), grouped(d.keys_estimated),
                  keys.names(), shard.count == 0 ? "" : fmt::format(", shard {} of {}", shard.index, shard.count)));
  const std::string probes = d.probes == 0 ? "" : fmt::format(", {} probe{}", d.probes, d.probes == 1 ? "" : "s");
  row("filter", fmt::format("{}{}, {}", d.family, probes, d.hash));
  row("size",
      fmt::format("{} bytes{}", grouped(d.bytes), count == 0 ? "" : fmt::format(", {:.2f} bits a key", bits_per_key)));
  row("fpr", fmt::format("{} predicted", percent(d.fpr)));
  row("time", fmt::format("{}, {} keys/s, {} thread{}", seconds_text(seconds),
                          rate_text(count / std::max(seconds, 1e-9)), built.threads, built.threads == 1 ? "" : "s"));
}

void check_not_an_input(const Options& options) {
  struct stat output {};
  if (::stat(options.output.c_str(), &output) != 0) return;
  for (const std::string& path : options.keys.files) {
    struct stat input {};
    const int status = path == "-" ? ::fstat(STDIN_FILENO, &input) : ::stat(path.c_str(), &input);
    if (status == 0 && input.st_dev == output.st_dev && input.st_ino == output.st_ino)
      fail("{}: holds the keys and would be overwritten (-o {})", path, options.output);
  }
}

// The general options that were given, for formats that have their own names for them.
std::vector<Wish> wishes_of(const Options& options, const CLI::App& app) {
  using Means = format::Param::Means;
  std::vector<Wish> wishes;
  const auto wish = [&](Means means, std::string value) {
    const std::string_view option = option_for(means);
    if (app.count(std::string(option)) != 0) wishes.push_back({means, option, std::move(value)});
  };
  wish(Means::fpr, fmt::format("{}", options.sizing.fpr));
  wish(Means::bits_per_key, fmt::format("{}", options.sizing.bits_per_key));
  wish(Means::keys, fmt::format("{}", options.keys_expected));
  return wishes;
}

// "3/64"
ShardChoice parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_u64(text.substr(0, slash));
  const std::uint64_t count = slash == std::string::npos ? 0 : parse_u64(text.substr(slash + 1)).value_or(0);
  if (!index || count == 0 || count > kMostShards || *index >= count)
    fail("--shard {}: must be i/N, i from 0 to N-1, N at most {}", text, kMostShards);
  return {.index = *index, .count = count};
}

// What the union of all shards is to be equal to decides whether there can be such a filter.
void check_shard(const Options& options, const Keys& keys, bool size_is_known) {
  if (!options.about->merges || options.about->in_order) {
    fail("--shard: {} filters cannot be merged, so those of the shards would never be the one of all keys",
         options.family);
  }
  if (!keys.all_mapped() && !size_is_known)
    fail("--shard: from a pipe it needs --keys-expected, of all shards together");
}

int run(Options& options, const std::vector<Wish>& wishes) {
  const auto begin = std::chrono::steady_clock::now();
  check_output(options.output);
  if (options.only) {
    if (*options.only >= options.shards) fail("--only {}: there are shards 0 to {}", *options.only, options.shards - 1);
    options.keys.shard = {.index = *options.only, .count = options.shards};
  }
  if (!options.format.format.empty()) {
    read_stdin_if_none(options.keys);
    check_not_an_input(options);
    return build_format({options.format, wishes, options.keys, options.output, options.shards, options.json});
  }
  if (options.family == "smallest") options.family = "ribbon";
  options.about = find_family(options.family);
  check_room(options.sizing, options.family);
  if (options.on_disk && !fills_files(*options.about))
    fail("--on-disk: a {} filter is built in memory", options.family);
  if (options.guard_bits != 0 && !options.about->erases)
    fail("--guard-bits: a {} filter does not erase", options.family);
  if (options.guard_bits > CuckooShape::kMaxGuard)
    fail("--guard-bits {}: must be a number from 1 to {}", options.guard_bits, CuckooShape::kMaxGuard);
  if (options.memory != 0 && options.about->grows)
    fail("--memory: a {} filter is built in memory; fuse and ribbon can use a temporary file", options.family);
  if (options.arity != 0 && options.family != "fuse") fail("--arity: a {} filter has none", options.family);
  const AnyHasher hasher = hasher_of(options);
  read_stdin_if_none(options.keys);
  check_not_an_input(options);
  Keys keys(options.keys);
  const bool size_is_known = options.keys_expected != 0 || options.sizing.max_bytes != 0;
  const bool streams = size_is_known || !options.about->sized_first;
  if (options.keys.shard.count != 0) {
    check_shard(options, keys, size_is_known);
    // Sized for all, as if all were to come.
    if (!size_is_known) options.keys_expected = keys.count(threads_for(options, keys.stored_bytes() >> 20));
  }
  const Built built = options.about->in_order ? build_in_order(options, keys, hasher)
                      : keys.all_mapped()     ? build_mapped(options, keys, hasher)
                      : streams               ? build_streamed(options, keys, hasher)
                                              : build_from_digests(options, keys, hasher);
  if (options.about->sized_first && !options.about->in_order && options.keys_expected != 0 &&
      built.record.keys > options.keys_expected) {
    warn(fmt::format("{} keys came, {} were expected: the false-positive rate is higher than asked for",
                     grouped(built.record.keys), grouped(options.keys_expected)));
  }
  const Description d = built.filter->save(built.record);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  report(options, keys, built, d, seconds.count());
  warn_if_missed(options, d);
  return kYes;
}

}  // namespace

Command::Run build_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  auto* const filter = add_words(
      app, "--filter", options->family,
      {"line", "block", "classic", "counting", "scalable", "cuckoo", "quotient", "window", "fuse", "ribbon",
       "smallest"},
      "line: all probes of a key in one cache line (default); block: half a line, the layout of Parquet; classic: "
      "the smallest Bloom filter, and the slowest; counting, cuckoo, quotient: keys can be removed; scalable: "
      "grows; window: remembers the last --keys-expected keys; fuse, ribbon: built once, smaller than any of "
      "these, ribbon within 2 % of the limit (smallest is another name for it). perhaps size compares them");
  declare_sizing(app, options->sizing);
  add_count(
      app, "--keys-expected", options->keys_expected, "N",
      "Make room for N keys: nothing is counted or kept beforehand, and filters made for the same N can be merged");
  declare_threads(app, options->threads);
  add_count(
      app, "--guard-bits", options->guard_bits, "G",
      "counting, cuckoo, quotient: store G bits more of each key, 1 to 16, which only remove looks at: a key that was "
      "never added then removes another one 2^G times less often");
  add_choice<std::uint32_t>(app, "--arity", options->arity, {{"3", 3}, {"4", 4}},
                            "fuse: slots a key; 4 is 5 % smaller and slower; default: 3");
  add_count(app, "--memory", options->memory, "BYTES",
            "fuse, ribbon: keep at most BYTES of digests in memory, the others in a temporary file (TMPDIR); default: "
            "8 bytes a key, all in memory");
  app.add_flag("--on-disk", options->on_disk,
               "Fill the filter in its file instead of in memory; so it is if it takes more than 80 % of the memory");
  app.add_option("--seed", options->seed, "Seed of the hash; default: 0")->type_name("S");
  declare_keyed(app, options->keyed);
  auto* const format = add_format_name(
      app, "--format", options->format.format,
      "Write the file that another system would write of these keys (perhaps formats lists them); --fpr, "
      "--bits-per-key and --keys-expected stand for the parameters of its own that mean the same");
  add_sets(app, "--set", options->format.sets, "A parameter of that format; may be repeated")->needs(format);
  auto* const shard =
      app.add_option_function<std::string>(
             "--shard", [options](const std::string& text) { options->keys.shard = parse_shard(text); },
             "Take only the keys of shard i of N, by a hash, into a filter that is sized for all of them (by counting, "
             "or by --keys-expected): merge of all N is the filter of all keys. For line, block, classic, counting and "
             "quotient filters")
          ->type_name("I/N");
  shard->excludes(format);
  auto* const shards =
      add_count(app, "--shards", options->shards, "N",
                "With --format: a file of N filters, each of the keys of one shard, for a set that no single node has "
                "room for (perhaps push); --keys-expected is of all of them")
          ->needs(format);
  app.add_option("--only", options->only, "With --shards: only shard I; merge puts the files of all together")
      ->type_name("I")
      ->needs(shards);
  format->excludes(filter);
  for (const char* const own : {"--max-bytes", "--guard-bits", "--arity", "--memory", "--on-disk", "--seed", "--keyed"})
    format->excludes(app.get_option(own));
  declare_json(app, options->json);
  declare_keys(app, options->keys);
  return [options, &app] { return run(*options, wishes_of(*options, app)); };
}

}  // namespace perhaps::cli
