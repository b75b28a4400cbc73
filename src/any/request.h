// A request at run time as the request of a typed family, or why the family cannot honour it. Private to src/any.
#pragma once
#include <algorithm>
#include <string>

#include "any/family.h"
#include "sizing/rate_text.h"

namespace perhaps {

inline Error cannot_honour(Kind kind, std::string_view field, std::string_view why, Errc code = Errc::unsupported) {
  return {code, std::string(name_of(kind)) + ": " + std::string(field) + ": " + std::string(why)};
}

inline Error no_family(Kind kind) {
  return {Errc::unsupported, std::string(name_of(kind)) + " is not a family that can be built"};
}

inline Result<void> check_rate(Kind kind, const AnyRequest& request) {
  const bool decides = request.max_bytes == 0 && request.bits_per_key == 0;
  if (decides && !(request.fpr > 0 && request.fpr < 1))
    return cannot_honour(kind, "fpr", "a rate lies between 0 and 1", Errc::bad_parameter);
  if (decides && request.fpr < kLeastFpr)
    return cannot_honour(kind, "fpr", "no rate below " + detail::rate_text(kLeastFpr) + " can be promised",
                         Errc::bad_parameter);
  if (!(request.bits_per_key >= 0))
    return cannot_honour(kind, "bits_per_key", "must not be negative", Errc::bad_parameter);
  return {};
}

// A shape is searched for by its model in floating point, and some searches end a little early.
inline constexpr double kRateSlack = 0.01;

template <class L>
Result<RequestOf<typename L::Shape>> request_for(const AnyRequest& from) {
  RequestOf<typename L::Shape> to = Request{from.keys, from.fpr, from.bits_per_key, from.max_bytes};
  if (auto rate = check_rate(L::kind, from); !rate) return std::move(rate).error();
  if constexpr (requires { to.guard_bits; }) {
    if (from.guard_bits > to.kMaxGuardBits)
      return cannot_honour(L::kind, "guard_bits", "at most " + std::to_string(to.kMaxGuardBits), Errc::bad_parameter);
    to.guard_bits = from.guard_bits;
  } else if (from.guard_bits != 0) {
    return cannot_honour(L::kind, "guard_bits",
                         ErasableLayout<L> ? "the family has none" : "the family does not erase");
  }
  if constexpr (requires { to.arity; }) {
    if (from.arity != 0 && from.arity != 3 && from.arity != 4)
      return cannot_honour(L::kind, "arity", "must be 3 or 4", Errc::bad_parameter);
    if (from.arity != 0) to.arity = from.arity;
  } else if (from.arity != 0) {
    return cannot_honour(L::kind, "arity", "the family has none");
  }
  if (from.max_bytes == 0 && from.bits_per_key == 0) {
    // Whatever the limit is: the width of fingerprints, the number of blocks, the 64 bits of a digest.
    const auto keys = static_cast<double>(std::max<std::uint64_t>(from.keys, 1));
    auto sized = to;
    sized.keys = std::max<std::uint64_t>(from.keys, 1);
    if (const double met = L::Shape::for_keys(sized).fpr(keys); met > from.fpr * (1 + kRateSlack)) {
      return cannot_honour(L::kind, "fpr",
                           detail::rate_text(from.fpr) + " is out of reach for " + std::to_string(sized.keys) +
                               " keys: at best " + detail::rate_text(met));
    }
  }
  return to;
}

// The 80th link of a chain of 1e-9 still has a share of 1e-12.
inline constexpr double kLeastChainFpr = 1e-9;

inline Result<Growth> growth_for(const AnyRequest& from) {
  if (from.max_bytes != 0 || from.bits_per_key != 0) {
    return cannot_honour(Kind::scalable, from.max_bytes != 0 ? "max_bytes" : "bits_per_key",
                         "its size follows from the rate and from the keys that come");
  }
  if (from.guard_bits != 0) return cannot_honour(Kind::scalable, "guard_bits", "the family does not erase");
  if (from.arity != 0) return cannot_honour(Kind::scalable, "arity", "the family has none");
  if (auto rate = check_rate(Kind::scalable, from); !rate) return std::move(rate).error();
  if (from.fpr < kLeastChainFpr)
    return cannot_honour(Kind::scalable, "fpr", "below 1e-9 the links' shares of the rate are out of reach");
  return Growth{.fpr = from.fpr, .first = from.keys == 0 ? Growth{}.first : from.keys};
}

}  // namespace perhaps
