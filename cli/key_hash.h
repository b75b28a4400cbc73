// --hash: the digests that password lists and integrity lists hold instead of the text itself.
#pragma once
#include <cstddef>
#include <memory>

#include "perhaps/hash.h"
#include "recipe.h"

namespace perhaps::cli {

class KeyHasher {
 public:
  static constexpr std::size_t kMaxBytes = 32;

  explicit KeyHasher(KeyHash hash);  // REQUIRES: not KeyHash::none
  // The digest of `key`, of size() bytes. For ntlm the key is UTF-8; throws Failure if it is not.
  void digest(Bytes key, std::byte* out);
  std::size_t size() const noexcept { return size_; }

 private:
  struct State;
  struct Free {
    void operator()(State* state) const noexcept;
  };
  KeyHash hash_;
  std::size_t size_;
  std::unique_ptr<State, Free> state_;
};

}  // namespace perhaps::cli
