// Every codec, by name. A new format is a file, a line here and an entry in registry.cc.
#pragma once
#include "perhaps/format.h"

namespace perhaps::format {

extern const Codec kLab;
extern const Codec kNori;

}  // namespace perhaps::format
