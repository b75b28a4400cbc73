// What the C API needs of our own filters besides AnyFilter's virtual functions, to which nothing can be added without
// breaking the ABI.
#pragma once
#include <cstdint>
#include <span>

#include "perhaps/any_filter.h"
#include "perhaps/file/container.h"

namespace perhaps {

// Null, both: another system's filter, or a file of many sets. The probe is the filter's digests().
struct OwnFilter {
  // As AnyFilter's column, of 64-bit numbers.  REQUIRES: answers.size() * kBatch >= integers.size()
  void (*may_contain_integers)(const DigestProbe& probe, std::span<const std::uint64_t> integers,
                               std::span<std::uint64_t> answers) noexcept = nullptr;
  // What AnyOwner::save writes; the sections borrow from the filter.
  Header (*header)(const DigestProbe& probe, const Record& record) = nullptr;
};
OwnFilter own_filter_of(const AnyFilter& filter);

}  // namespace perhaps
