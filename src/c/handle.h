// What a handle of the C API is. Private: the functions of the web module (web/module.cc) look into it as well.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "any/own_filter.h"
#include "perhaps/any_filter.h"
#include "perhaps/file/container.h"
#include "perhaps/file/mapping.h"
#include "perhaps/format/format.h"
#include "perhaps/memory.h"

// A filter and whatever it borrows from. Either `owner` is set, or `source` has the bytes that it was opened from.
struct perhaps_filter {
  perhaps::Memory copied;
  perhaps::Mapping mapping;
  perhaps::Bytes source;
  std::optional<perhaps::File> file;              // of our own
  const perhaps::format::Codec* codec = nullptr;  // or of another system, with what it was opened with
  std::optional<perhaps::format::Params> params;
  std::string file_name;
  perhaps::format::Opened opened;

  std::unique_ptr<perhaps::AnyFilter> own;
  const perhaps::AnyFilter* filter = nullptr;
  perhaps::OwnFilter ours;
  const perhaps::AnyOwner* owner = nullptr;
  perhaps::AnyMutable* changing = nullptr;
};

namespace perhaps {

// Makes `filter` what the handle answers from.
void hold(perhaps_filter& handle, std::unique_ptr<AnyFilter> filter);
std::unique_ptr<perhaps_filter> handle_of(std::unique_ptr<AnyFilter> filter);

// Another handle with bytes of its own.
Result<std::unique_ptr<perhaps_filter>> copy_of(const perhaps_filter& from);

// What changes it, or why nothing can.
Result<AnyMutable*> changing(perhaps_filter& filter);

// Over the bytes of another system, whose codec and parameters the handle has.
Result<void> open_foreign(perhaps_filter& handle, Bytes bytes, bool copy);

}  // namespace perhaps
