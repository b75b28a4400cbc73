// A range filter (range.h) in our own file (container.h, kind `range`).
//
//   save("ids.perhaps", filter.view(), {.keys = n});
//   auto file = File::open("ids.perhaps");
//   auto ids = range_in(*file);                       // a RangeView over the mapped bytes
//
// Behind AnyFilter it answers single keys. A filter of integers takes the eight little-endian bytes of a number, and
// answers *perhaps* to anything else.
#pragma once
#include <string>

#include "perhaps/file/container.h"
#include "perhaps/range.h"

namespace perhaps {

// To a file, atomically, as write_container does.
PERHAPS_API Result<void> save(const std::string& path, const RangeView& filter, const Record& record = {});
// The same bytes in memory: what an engine stores beside its data.
PERHAPS_API Result<std::vector<std::byte>> file_bytes(const RangeView& filter, const Record& record = {});

// The filter of a file. Refuses what is not a file of kind `range`, or does not fit its header.
PERHAPS_API Result<RangeView> range_in(const Header& header);
inline Result<RangeView> range_in(const File& file) { return range_in(file.header()); }
Result<RangeView> range_in(const File&&) = delete;  // The File must outlive the view.

}  // namespace perhaps
