// The C API: queries. Nothing here allocates.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "any/other_kinds.h"
#include "c/digests.h"
#include "c/handle.h"
#include "c/keys.h"
#include "c/status.h"

namespace perhaps {

std::optional<AnyHasher> hasher_of(const perhaps_filter& filter) {
  const DigestProbe* const probe = filter.filter->digests();
  if (probe == nullptr) return {};
  return probe->hasher();
}

void query_digests(const perhaps_filter& filter, std::span<const std::uint64_t> digests,
                   std::uint64_t* answers) noexcept {
  filter.filter->digests()->may_contain(digests, std::span(answers, words_of(digests.size())));
}

}  // namespace perhaps

using namespace perhaps;  // NOLINT(google-build-using-namespace): the names of the C API are not in it

perhaps_status perhaps_query(const perhaps_filter* filter, const perhaps_key* keys, size_t count, uint64_t* answers) {
  if (count == 1) {
    *answers = filter->filter->may_contain(bytes_of(*keys)) ? 1 : 0;
    return PERHAPS_OK;
  }
  in_chunks(std::span(keys, count), [&](std::span<const Bytes> chunk) {
    filter->filter->may_contain(chunk, std::span(answers, words_of(chunk.size())));
    answers += words_of(chunk.size());
    return true;
  });
  return PERHAPS_OK;
}

perhaps_status perhaps_query_integers(const perhaps_filter* filter, const uint64_t* integers, size_t count,
                                      uint64_t* answers) {
  const DigestProbe* const probe = filter->filter->digests();
  if (filter->ours.may_contain_integers != nullptr) {
    filter->ours.may_contain_integers(*probe, std::span(integers, count), std::span(answers, words_of(count)));
    return PERHAPS_OK;
  }
  if (filter->file && filter->file->header().kind == Kind::range) {
    const auto done = query_range(*filter->file, std::span(integers, count), answers);
    return done ? PERHAPS_OK : failed(PERHAPS_UNSUPPORTED, done.error().detail);
  }
  if (probe == nullptr) return failed(PERHAPS_UNSUPPORTED, "this format hashes bytes: it has no integers");
  in_digests(probe->hasher(), std::span(integers, count), [&](auto digests) {
    probe->may_contain(digests, std::span(answers, words_of(digests.size())));
    answers += words_of(digests.size());
    return true;
  });
  return PERHAPS_OK;
}
