#include "build_target.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "command.h"
#include "distinct.h"
#include "filter_file.h"
#include "interrupt.h"
#include "memory_check.h"
#include "parser.h"
#include "perhaps/perhaps.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace {

void check_size(Kind family, const AnyRequest& request, std::string_view advice = "") {
  check_memory(take(size_of(family, request)).bytes,
               fmt::format("a {} filter for {} keys", name_of(family), grouped(request.keys)), advice);
}

class InMemory : public BuildTarget {
 public:
  InMemory(std::unique_ptr<AnyBuilder> builder, const BuildArgs& options, const AnyRequest& request)
      : builder_(std::move(builder)),
        request_(request),
        family_(*options.about),
        about_(about_new(options.keys, options.note)),
        path_(options.output),
        sizing_(options.sizing) {}
  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override { return builder_->lanes(threads); }
  double distinct() override {
    filter_ = take(builder_->finish());
    const Description d = filter_->describe();
    return d.fill < kTellingFill ? d.keys_estimated : 0;
  }
  Description save(Record record) override {
    // The other families know their size only now.
    if (!family_.sized_first && !family_.in_order) {
      request_.keys = std::max(request_.keys, record.keys);
      check_size(family_.kind, request_);
    }
    if (filter_ == nullptr) {
      auto built = builder_->finish();
      if (!built && built.error().code == Errc::full && sizing_.max_bytes != 0)
        fail("--max-bytes {}: {}", sizing_.max_bytes, built.error().detail);
      filter_ = take(std::move(built));
    }
    check_interrupt();
    // A family that removes duplicates has counted its keys itself.
    if (filter_->record().keys < record.keys) record.keys = filter_->record().keys;
    if (filter_->record().capacity != 0) record.capacity = filter_->record().capacity;
    check_kept(sizing_, family_, filter_->byte_size(), std::max(record.capacity, record.keys));
    record.about = about_;
    save_filter(*filter_, path_, record);
    return capped(filter_->describe(), record.keys);
  }

 private:
  std::unique_ptr<AnyOwner> filter_{};
  std::unique_ptr<AnyBuilder> builder_;
  AnyRequest request_;
  const Family& family_;
  Facts about_;
  std::string path_;
  Sizing sizing_;
};

// Threads hash in parallel and insert one at a time: the disk is the bottleneck.
template <class L, class H>
class OnDisk : public BuildTarget {
 public:
  using Filter = Flat<L, H>;
  OnDisk(const std::string& path, const Request& request, const H& hasher, Facts about)
      : path_(path),
        hasher_(hasher),
        file_(take(NewFile<Filter>::create(path, L::Shape::for_keys(request), hasher, std::move(about)))) {}

  std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) override {
    std::vector<std::unique_ptr<AnyLane>> result;
    for (unsigned i = 0; i < threads; ++i) result.push_back(std::make_unique<Lane>(*this));
    return result;
  }
  double distinct() override {
    const Condition now = condition_of(file_.span().shape(), file_.span().bytes());
    return now.fill < kTellingFill ? now.keys : 0;
  }
  Description save(Record record) override {
    {
      const Saving saving;
      take(file_.commit(record));
    }
    OpenOptions options{.verify = false, .secret = {}};
    if constexpr (std::same_as<H, KeyedHash>) options.secret = hasher_;
    const File file = take(File::open(path_, options));
    return capped(file.any()->describe(), record.keys);
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

// REQUIRES: options.about->sets_bits
std::unique_ptr<BuildTarget> on_disk(const BuildArgs& options, std::uint64_t keys, const AnyHasher& any) {
  std::unique_ptr<BuildTarget> target;
  const auto make_if = [&]<class L>() {
    if constexpr (BitLayout<L>) {
      if (L::kind != options.about->kind) return;
      std::visit(
          [&]<class H>(const H& hasher) {
            target = std::make_unique<OnDisk<L, H>>(options.output, options.sizing.request(keys), hasher,
                                                    about_new(options.keys, options.note));
          },
          any);
    }
  };
#define PERHAPS_FAMILY(name, number, Type, summary) make_if.template operator()<Type>();
  PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
  return target;
}

BuildOptions build_options(const BuildArgs& options) {
  BuildOptions result;
  result.threads = options.threads;
  result.memory = options.memory;
  // A bar of its own for each phase after reading.
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

}  // namespace

std::unique_ptr<BuildTarget> make_target(const BuildArgs& options, std::uint64_t keys, const AnyHasher& hasher) {
  AnyRequest request = options.sizing.any_request(keys);
  request.guard_bits = options.guard_bits;
  request.arity = options.arity;
  const Kind kind = options.about->kind;
  const std::uint64_t bytes = take(size_of(kind, request)).bytes;
  if (keys != 0 && options.sizing.by_fpr() && kind == Kind::block && bytes > 4096) {
    const double times_line =
        static_cast<double>(bytes) / static_cast<double>(take(size_of(Kind::line, request)).bytes);
    if (times_line > 1.3) {
      warn(fmt::format("at --fpr {} a block filter takes {:.2f} times the memory of --filter line", plain(request.fpr),
                       times_line));
    }
  }
  const bool can_be_on_disk = options.about->sets_bits;
  if (!options.on_disk) check_size(kind, request, can_be_on_disk ? "; --on-disk fills it in its file" : "");
  if (options.on_disk || (can_be_on_disk && bytes > physical_memory() / 5 * 4)) return on_disk(options, keys, hasher);
  return std::make_unique<InMemory>(take(make_builder(kind, request, hasher, build_options(options))), options,
                                    request);
}

}  // namespace perhaps::cli
