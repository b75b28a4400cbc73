#include "perhaps/filter.h"

namespace perhaps {

std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::classic:
      return "classic";
    case Kind::line:
      return "line";
    case Kind::block:
      return "block";
    case Kind::counting:
      return "counting";
    case Kind::scalable:
      return "scalable";
    case Kind::cuckoo:
      return "cuckoo";
    case Kind::quotient:
      return "quotient";
    case Kind::window:
      return "window";
    case Kind::fuse:
      return "fuse";
    case Kind::ribbon:
      return "ribbon";
    case Kind::sets:
      return "sets";
  }
  return "unknown";
}

}  // namespace perhaps
