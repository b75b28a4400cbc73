// What an input or a key of the command line shows about keys that were made in another way than the recipe makes them.
// A filter would answer no to such keys, which is certain and misleading, so it is said: once, whichever input has it.
#pragma once
#include <string>

#include "key_options.h"
#include "perhaps/hash.h"

namespace perhaps::cli {

// `text` begins at the first record of the input `name`, and holds all of it if it is short. Byte order marks and line
// ends of other systems, UTF-16, separators that are others, digests. Throws Failure for an archive.
void say_doubts(const std::string& name, Bytes text, const KeyOptions& options);
// The keys of -e, for a filter whose keys were made of so many fields.
void say_doubts_of_literals(const KeyOptions& options, std::size_t fields);

}  // namespace perhaps::cli
