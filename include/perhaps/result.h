// Result<T>: a value, or the reason there is none.
//
// Wrong bytes are an Error, a broken REQUIRES is an assert, lack of memory is std::bad_alloc. The spelling is
// the part of std::expected that we use, and the type is the same on every compiler and under every -std: a type
// that changed with the compiler's version would change the ABI of every function that returns it.
#pragma once
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "perhaps/detail/config.h"

namespace perhaps {

// What went wrong, for programs.
enum class Errc : std::uint8_t {
  truncated,      // fewer bytes than the header promises
  bad_magic,      // not a file of this kind
  bad_version,    // newer than this library
  bad_checksum,   // damaged
  bad_parameter,  // a number outside its range, or a header that contradicts itself
  bad_key,        // a keyed filter opened without its key, or with another one
  mismatch,       // two filters that cannot be combined
  full,           // no room for another key
  unsupported,    // well-formed, but not something this build can do
  io,             // the operating system reported an error
};

// Why there is no result.
struct Error {
  Errc code;
  std::string detail;  // For people: names the thing and the fact. Programs look at `code`.
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Not explicit: a function returns a value or an Error as it is.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  // There is a value.
  explicit operator bool() const noexcept { return state_.index() == 0; }

  // REQUIRES: *this holds a value.
  T& operator*() & noexcept { return *value(); }
  const T& operator*() const& noexcept { return *value(); }
  T&& operator*() && noexcept { return std::move(*value()); }
  T* operator->() & noexcept { return value(); }
  const T* operator->() const& noexcept { return value(); }
  // What a temporary owns is gone after the full expression, and whatever borrowed from it dangles: open(path)->as<V>()
  // does not compile. A value that owns nothing, such as a view, can be used as a temporary.
  T* operator->() && noexcept requires std::is_trivially_destructible_v<T> { return value(); }
  T* operator->() && = delete;
  const T* operator->() const&& = delete;

  // REQUIRES: *this holds an error.
  const Error& error() const& noexcept { return *reason(); }
  Error&& error() && noexcept { return std::move(*const_cast<Error*>(reason())); }

 private:
  T* value() noexcept { return const_cast<T*>(std::as_const(*this).value()); }
  const T* value() const noexcept {
    assert(*this);
    return std::get_if<0>(&state_);
  }
  const Error* reason() const noexcept {
    assert(!*this);
    return std::get_if<1>(&state_);
  }

  std::variant<T, Error> state_;
};

// Something was done, or the reason it was not.
template <>
class [[nodiscard]] Result<void> {
 public:
  // Success.
  Result() = default;
  // Failure.
  Result(Error error) : error_(std::move(error)) {}

  // True on success.
  explicit operator bool() const noexcept { return !error_; }
  // REQUIRES: *this holds an error.
  const Error& error() const& noexcept {
    assert(error_);
    return *error_;
  }
  Error&& error() && noexcept {
    assert(error_);
    return *std::move(error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace perhaps
