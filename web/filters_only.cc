// The npm package opens filters: what src/any/other_kinds.cc has of maps, exact sets and ranges is a twentieth of a
// module. These take its place; the page opens all of them.
#include "any/other_kinds.h"

namespace perhaps {

Result<void> check_other(const Header& header) {
  return Error{Errc::unsupported, "a file of kind '" + std::string(name_of(header.kind)) +
                                      "': this package opens filters; the page and the command line open it"};
}
std::unique_ptr<AnyFilter> open_other(const Header&, const AnyHasher&) { return nullptr; }
void find_other(const DigestProbe*, OwnFilter&) {}
Result<void> query_range(const File& file, std::span<const std::uint64_t>, std::uint64_t*) {
  return check_other(file.header());
}

}  // namespace perhaps
