// The C API: new filters, empty or from all of their keys.
#include <atomic>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "c/handle.h"
#include "c/keys.h"
#include "c/options.h"
#include "c/status.h"
#include "c/structs.h"
#include "perhaps/detail/threads.h"

namespace perhaps {
namespace {

template <class Key>
Result<std::unique_ptr<perhaps_filter>> built(const Plan& plan, std::span<const Key> keys) {
  auto builder = make_builder(plan.kind, plan.request, plan.hasher, {.threads = plan.threads});
  if (!builder) return std::move(builder).error();
  {
    auto lanes = (*builder)->lanes(plan.threads);
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < lanes.size(); i = next++) {
        const std::size_t from = keys.size() * i / lanes.size();
        const auto part = keys.subspan(from, keys.size() * (i + 1) / lanes.size() - from);
        in_digests(plan.hasher, part, [&](auto digests) { return lanes[i]->insert_digests(digests); });
      }
    };
    const detail::Threads others(static_cast<unsigned>(lanes.size()) - 1, work);
    work();
  }
  auto filter = (*builder)->finish();
  if (!filter) return std::move(filter).error();
  return handle_of(*std::move(filter));
}

Result<std::unique_ptr<perhaps_filter>> built_foreign(const perhaps_options& options,
                                                      std::span<const perhaps_key> keys) {
  auto codec = codec_named(options.format);
  if (!codec) return std::move(codec).error();
  if ((*codec)->build == nullptr) return refused(std::string((*codec)->name) + ": is read, but cannot be built");
  auto params = params_of(**codec, options);
  if (!params) return std::move(params).error();
  std::vector<Bytes> all;
  all.reserve(keys.size());
  for (const perhaps_key& key : keys) all.push_back(bytes_of(key));
  const auto bytes = (*codec)->build(all, *params);
  if (!bytes) return bytes.error();
  auto handle = std::make_unique<perhaps_filter>();
  handle->codec = *codec;
  handle->params = *std::move(params);
  if (auto done = open_foreign(*handle, *bytes, true); !done) return done.error();
  return handle;
}

template <class Key>
perhaps_status build(const perhaps_options* given, std::span<const Key> keys, perhaps_filter** filter) noexcept {
  return guarded([&]() -> Result<void> {
    const auto options = read(given, "perhaps_options");
    if (!options) return options.error();
    Result<std::unique_ptr<perhaps_filter>> made = refused("formats of other systems are built from bytes only");
    if (options->format == nullptr) {
      if (options->parameters != nullptr) return refused("parameters: only formats of other systems have them");
      const auto plan = plan_of(*options);
      if (!plan) return plan.error();
      made = built(*plan, keys);
    } else if constexpr (std::same_as<Key, perhaps_key>) {
      made = built_foreign(*options, keys);
    }
    if (!made) return made.error();
    *filter = made->release();
    return {};
  });
}

}  // namespace
}  // namespace perhaps

using namespace perhaps;  // NOLINT(google-build-using-namespace): the names of the C API are not in it

perhaps_status perhaps_new(const perhaps_options* options, perhaps_filter** filter) {
  return guarded([&]() -> Result<void> {
    const auto known = read(options, "perhaps_options");
    if (!known) return known.error();
    if (known->format != nullptr || known->parameters != nullptr)
      return refused("a format of another system is built from all of its keys at once");
    const auto plan = plan_of(*known);
    if (!plan) return plan.error();
    auto made = make_any(plan->kind, plan->request, plan->hasher);
    if (!made) return made.error();
    *filter = handle_of(*std::move(made)).release();
    return {};
  });
}

perhaps_status perhaps_build(const perhaps_options* options, const perhaps_key* keys, size_t count,
                             perhaps_filter** filter) {
  return build(options, std::span(keys, count), filter);
}

perhaps_status perhaps_build_integers(const perhaps_options* options, const uint64_t* integers, size_t count,
                                      perhaps_filter** filter) {
  return build(options, std::span(integers, count), filter);
}
