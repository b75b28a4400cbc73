// Which keys, and how they are read: files, standard input, literals; lines or binary records; a field of each record.
//
// A *record* is what the input holds and what `query` prints again; its *key* is what is hashed: the record itself, or
// its field, trimmed, lower-cased, decoded from hex.
#pragma once
#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "records.h"

namespace perhaps::cli {

// Only the keys of one shard of many (perhaps/file/shards.h). Of a number, its eight bytes decide.
struct ShardChoice {
  std::uint64_t index = 0;
  std::uint64_t count = 0;  // 0: all keys
};

struct KeyOptions {
  std::vector<std::string> files;     // "-" is standard input
  std::vector<std::string> literals;  // of -e
  KeysAs as = KeysAs::lines;
  std::uint32_t field = 0;  // 1 is the first; 0: the whole record
  char delimiter = '\t';
  bool lower = false;
  bool trim = false;
  ShardChoice shard{};
  bool frugal = false;  // gives back the pages of mapped files once they are read: they count as our memory

  bool key_is_record() const noexcept { return as != KeysAs::hex && field == 0 && !lower && !trim; }
};

// --keys-as, -0, --field, --delimiter, --lower, --trim
void declare_key_format(CLI::App& app, KeyOptions& options);
// The same, -e, and the positional files.
void declare_keys(CLI::App& app, KeyOptions& options);

// Standard input if nothing was named; refuses options that do not go together.
void read_stdin_if_none(KeyOptions& options);
void check_key_format(const KeyOptions& options);
// `used`: how many options name it elsewhere. It can be read once.
void check_stdin_once(const std::vector<std::string>& files, std::ptrdiff_t used = 0);

}  // namespace perhaps::cli
