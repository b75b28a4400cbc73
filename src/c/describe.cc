// The C API: descriptions, sizes, and the lists of families and formats.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "c/handle.h"
#include "c/options.h"
#include "c/status.h"
#include "c/structs.h"

namespace perhaps {
namespace {

template <std::size_t N>
void put(char (&to)[N], std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

Result<void> write_entry(const perhaps_entry& entry, perhaps_entry* to) { return answer(entry, to, "perhaps_entry"); }

}  // namespace
}  // namespace perhaps

using namespace perhaps;  // NOLINT(google-build-using-namespace): the names of the C API are not in it

uint64_t perhaps_byte_size(const perhaps_filter* filter) { return filter->filter->byte_size(); }

perhaps_status perhaps_describe(const perhaps_filter* filter, perhaps_description* description) {
  return guarded([&]() -> Result<void> {
    const Description from = filter->filter->describe();
    perhaps_description to{};
    put(to.format, from.format);
    put(to.family, from.family);
    put(to.hash, from.hash);
    to.bytes = from.bytes;
    to.bits = from.bits;
    to.probes = from.probes;
    to.keys = from.keys.value_or(0);
    to.capacity = from.capacity.value_or(0);
    to.keys_estimated = from.keys_estimated;
    to.fill = from.fill;
    to.fpr = from.fpr;
    to.fpr_at_capacity = from.fpr_at_capacity;
    to.read_only = filter->changing == nullptr ? 1 : 0;
    return answer(to, description, "perhaps_description");
  });
}

perhaps_status perhaps_size_of(const perhaps_options* options, perhaps_sizes* sizes) {
  return guarded([&]() -> Result<void> {
    const auto known = read(options, "perhaps_options");
    if (!known) return known.error();
    if (known->format != nullptr) return refused("a format of another system has no model of its size");
    const auto plan = plan_of(*known);
    if (!plan) return plan.error();
    const auto size = size_of(plan->kind, plan->request);
    if (!size) return size.error();
    return answer({.size = 0, .bytes = size->bytes, .bits = size->bits, .probes = size->probes, .fpr = size->fpr},
                  sizes, "perhaps_sizes");
  });
}

int perhaps_family_at(size_t index, perhaps_entry* entry) {
  if (index >= families().size()) return 0;
  const Family& family = families()[index];
  return guarded([&] {
           return write_entry({.size = 0,
                               .name = family.name.data(),
                               .summary = family.summary.data(),
                               .inserts = family.inserts,
                               .erases = family.erases,
                               .merges = family.merges,
                               .builds = 1},
                              entry);
         }) == PERHAPS_OK;
}

int perhaps_format_at(size_t index, perhaps_entry* entry) {
  if (index >= format::codecs().size()) return 0;
  const format::Codec& codec = *format::codecs()[index];
  return guarded([&] {
           return write_entry({.size = 0,
                               .name = codec.name.data(),
                               .summary = codec.summary.data(),
                               .inserts = 0,
                               .erases = 0,
                               .merges = 0,
                               .builds = codec.build != nullptr},
                              entry);
         }) == PERHAPS_OK;
}
