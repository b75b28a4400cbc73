// One field of a line of JSON (RFC 8259), without a tree: the line is checked from end to end, and only the value that
// the path leads to is looked at. Of a name that occurs twice in an object the last one counts, as in most parsers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "arena.h"
#include "perhaps/hash.h"

namespace perhaps::cli::json {

// "user.id", "tags.0": the names of members, and numbers of elements from 0.
std::vector<std::string> path_of(std::string_view text);

enum class Found : std::uint8_t { value, missing, fault };
struct Field {
  Found found = Found::missing;
  Bytes value{};           // text of a string, unescaped; numbers, true and false as they are written
  const char* fault = "";  // what is wrong with the line
  std::size_t column = 0;  // and where, from 1
};
// A null, like a member that is not there, is missing. Strings with escapes go into the arena.
Field find(Bytes line, const std::vector<std::string>& path, Arena& arena);
// The elements of the array that the path leads to, as they are written. None if there is no such array, or if the line
// has a fault, which find() reports.
std::vector<Bytes> elements(Bytes line, const std::vector<std::string>& path);

}  // namespace perhaps::cli::json
