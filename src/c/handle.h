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
