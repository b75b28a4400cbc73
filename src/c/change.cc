// The C API: inserting, erasing, merging.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "c/digests.h"
#include "c/handle.h"
#include "c/keys.h"
#include "c/status.h"
#include "c/structs.h"

namespace perhaps {
namespace {

Result<void> all_inserted(std::size_t count, std::size_t of) {
  if (count == of) return {};
  return Error{Errc::full, "full after " + std::to_string(count) + " of " + std::to_string(of) + " keys"};
}

template <class Key>
perhaps_status insert(perhaps_filter* filter, std::span<const Key> keys, std::size_t* inserted) noexcept {
  return guarded([&]() -> Result<void> {
    const auto to = changing(*filter);
    if (!to) return to.error();
    std::size_t count = 0;
    in_digests((*to)->digests()->hasher(), keys, [&](auto digests) {
      const std::size_t went_in = (*to)->insert_digests(digests);
      count += went_in;
      return went_in == digests.size();
    });
    if (inserted != nullptr) *inserted = count;
    return all_inserted(count, keys.size());
  });
}

template <class Key>
perhaps_status erase(perhaps_filter* filter, std::span<const Key> keys, perhaps_erased* erased) noexcept {
  return guarded([&]() -> Result<void> {
    const auto from = changing(*filter);
    if (!from) return from.error();
    Result<ErasedCounts> counts = (*from)->erase_digests({});  // refuses, where the family cannot
    if (!counts) return counts.error();
    ErasedCounts all;
    in_digests((*from)->digests()->hasher(), keys, [&](auto digests) {
      counts = (*from)->erase_digests(digests);
      if (!counts) return false;
      all.removed += counts->removed;
      all.absent += counts->absent;
      all.kept += counts->kept;
      return true;
    });
    if (!counts) return counts.error();
    if (erased == nullptr) return {};
    return answer({.size = 0, .removed = all.removed, .absent = all.absent, .kept = all.kept}, erased,
                  "perhaps_erased");
  });
}

// With itself, a filter is combined as with a copy.
template <class Combine>
perhaps_status combine(perhaps_filter* filter, const perhaps_filter* other, Combine with) noexcept {
  return guarded([&]() -> Result<void> {
    const auto to = changing(*filter);
    if (!to) return to.error();
    if (filter != other) return with(**to, *other->filter);
    const auto copy = copy_of(*other);
    if (!copy) return copy.error();
    return with(**to, *(*copy)->filter);
  });
}

}  // namespace

perhaps_status insert_digests(perhaps_filter& filter, std::span<const std::uint64_t> digests) noexcept {
  return guarded([&]() -> Result<void> {
    const auto to = changing(filter);
    if (!to) return to.error();
    return all_inserted((*to)->insert_digests(digests), digests.size());
  });
}

}  // namespace perhaps

using namespace perhaps;  // NOLINT(google-build-using-namespace): the names of the C API are not in it

perhaps_status perhaps_insert(perhaps_filter* filter, const perhaps_key* keys, size_t count, size_t* inserted) {
  return insert(filter, std::span(keys, count), inserted);
}

perhaps_status perhaps_insert_integers(perhaps_filter* filter, const uint64_t* integers, size_t count,
                                       size_t* inserted) {
  return insert(filter, std::span(integers, count), inserted);
}

perhaps_status perhaps_erase(perhaps_filter* filter, const perhaps_key* keys, size_t count, perhaps_erased* erased) {
  return erase(filter, std::span(keys, count), erased);
}

perhaps_status perhaps_erase_integers(perhaps_filter* filter, const uint64_t* integers, size_t count,
                                      perhaps_erased* erased) {
  return erase(filter, std::span(integers, count), erased);
}

perhaps_status perhaps_merge(perhaps_filter* filter, const perhaps_filter* other) {
  return combine(filter, other, [](AnyMutable& to, const AnyFilter& from) { return to.merge(from); });
}

perhaps_status perhaps_intersect(perhaps_filter* filter, const perhaps_filter* other) {
  return combine(filter, other, [](AnyMutable& to, const AnyFilter& from) { return to.intersect(from); });
}
