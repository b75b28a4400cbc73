// Filter files of ours, as commands read, change and write them.
#pragma once
#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock.h"
#include "options.h"
#include "perhaps/file/container.h"
#include "recipe.h"

namespace perhaps::cli {

// --keyed and --no-verify, of the commands that only read a filter. Commands that write a filter always check the old
// one: a new checksum over old damage would hide it for good.
struct OpenArgs {
  Keyed keyed;
  bool no_verify = false;
};
void declare_open(CLI::App& app, OpenArgs& args);

struct Opened {
  File file;
  std::unique_ptr<AnyFilter> filter;
};
Opened open_filter(const std::string& path, const OpenArgs& args);
std::unique_ptr<AnyMutable> load_filter(const File& file);

// Throws Failure, before any work is done, if a file cannot be written at `path`, the value of -o.
void check_output(const std::string& path);
// The same for a file that is there and will be replaced: it must be writable, though only its folder is written to.
void check_replaceable(const std::string& path);
// Throws Failure if one of the files, - for standard input, is the file that would be written.
void check_not_an_input(const std::string& output, const std::vector<std::string>& files);
// A filter file that add and remove change: locked from here to the end, loaded, and not yet replaced.
struct Changing {
  // `erases`: a family that cannot forget is refused before anything else.
  Changing(const std::string& path, const Keyed& keyed, bool erases);
  FileLock lock;
  Record record;
  AnyHasher hasher;
  std::unique_ptr<AnyMutable> filter;
};
// How the keys of a file of ours were made; none if it does not say. `path` is for messages.
std::optional<Recipe> recipe_of(const Record& record, const std::string& path);
// What a new file says about itself: the recipe, a note, when and by what it was made. SOURCE_DATE_EPOCH stands for the
// time, so that two builds give the same bytes.
Facts about_new(const Recipe& recipe, const std::string& note);
// --note
void declare_note(CLI::App& app, std::string& note);
// The estimate of distinct keys is never more than the keys that were inserted.
Description capped(Description d, std::optional<std::uint64_t> keys);
// Writes the file atomically; Ctrl-C meanwhile leaves the old one, and no temporary file.
void save_filter(const AnyOwner& filter, const std::string& path, const Record& record);
// Warns if the rate is more than twice the one the filter was made for. `record` is newer than the one in `d`.
void warn_if_saturated(const std::string& path, const Description& d, const Record& record);

}  // namespace perhaps::cli
