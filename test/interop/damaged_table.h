// A table of an engine with every possible single defect: its blocks have checksums, so whichever bit is flipped and
// wherever the file is truncated, no key may be denied.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perhaps/format/format.h"

namespace perhaps::test {

inline void expect_damage_denies_no_key(const format::Codec& codec, const std::vector<std::byte>& whole,
                                        const std::vector<std::string>& keys) {
  const auto check = [&](Bytes file, const std::string& what) {
    const auto opened = codec.open({.bytes = file, .on_damage = format::OnDamage::perhaps}, format::Params(codec));
    ASSERT_TRUE(opened) << what;
    for (const std::string& key : keys) ASSERT_TRUE(opened->whole->may_contain(bytes_of(key))) << what << ", " << key;
  };
  for (std::size_t size = 0; size <= whole.size(); ++size)
    ASSERT_NO_FATAL_FAILURE(check(Bytes(whole).first(size), std::to_string(size) + " bytes"));
  auto file = whole;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    const std::byte flipped = std::byte{1} << bit % 8;
    file[bit / 8] ^= flipped;
    ASSERT_NO_FATAL_FAILURE(check(file, "bit " + std::to_string(bit)));
    file[bit / 8] ^= flipped;
  }
}

}  // namespace perhaps::test
