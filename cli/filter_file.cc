#include "filter_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "interrupt.h"
#include "memory_check.h"
#include "print.h"

namespace perhaps::cli {
namespace {

void check_folder(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail("{}: is a directory", path);
    if (!S_ISREG(status.st_mode)) fail("{}: is not a regular file", path);
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::stat(folder.c_str(), &status) != 0) fail("{}: {}", folder, std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) fail("{}: is not a directory", folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    fail("{}: cannot write to this directory: {}", folder, std::strerror(errno));
}

const std::string& replaceable(const std::string& path) {
  check_replaceable(path);
  return path;
}

}  // namespace

void declare_open(CLI::App& app, OpenArgs& args) {
  declare_keyed(app, args.keyed);
  app.add_flag("--no-verify", args.no_verify,
               "Do not check the checksum of the table first: opens at once, whatever the size");
}

Opened open_filter(const std::string& path, const OpenArgs& args) {
  auto file = File::open(path, {.verify = !args.no_verify, .secret = args.keyed.read()});
  if (!file) {
    std::string text = file.error().detail;
    if (file.error().code == Errc::bad_key && args.keyed.path.empty()) text += " (--keyed)";
    throw Failure(text);
  }
  auto filter = file->any();
  return {*std::move(file), std::move(filter)};
}

std::unique_ptr<AnyMutable> load_filter(const File& file) {
  check_memory(file.any()->byte_size(), "the filter");
  return take(file.load());
}

void check_output(const std::string& path) {
  if (path == "-") fail("-o -: a filter cannot be written to a pipe; name a file");
  check_folder(path);
}

void check_replaceable(const std::string& path) {
  check_folder(path);
  if (::access(path.c_str(), F_OK) == 0 && ::access(path.c_str(), W_OK) != 0)
    fail("{}: cannot be written to: {}", path, std::strerror(errno));
}

void check_not_an_input(const std::string& output, const std::vector<std::string>& files) {
  struct stat written {};
  if (::stat(output.c_str(), &written) != 0) return;
  for (const std::string& path : files) {
    struct stat input {};
    const int status = path == "-" ? ::fstat(STDIN_FILENO, &input) : ::stat(path.c_str(), &input);
    if (status == 0 && input.st_dev == written.st_dev && input.st_ino == written.st_ino)
      fail("{}: holds the keys and would be overwritten (-o {})", path, output);
  }
}

Changing::Changing(const std::string& path, const Keyed& keyed, bool erases) : lock(replaceable(path)) {
  const Opened opened = open_filter(path, {.keyed = keyed});
  const Kind kind = opened.file.header().kind;
  if (const Family* family = find_family(kind); erases && (family == nullptr || !family->erases)) {
    fail("{}: a {} filter cannot forget a key; --filter {} can", path, name_of(kind),
         families_text([](const Family& f) { return f.erases; }));
  }
  record = opened.file.header().record;
  hasher = opened.file.hasher();
  filter = load_filter(opened.file);
}

std::optional<Recipe> recipe_of(const Record& record, const std::string& path) {
  const std::string* const text = record.find("recipe");
  if (text == nullptr) return std::nullopt;
  try {
    return Recipe::parse(*text);
  } catch (const Failure& failure) {
    fail("{}: {}", path, failure.what());
  }
}

Facts about_new(const Recipe& recipe, const std::string& note) {
  std::time_t now = std::time(nullptr);
  if (const char* const fixed = std::getenv("SOURCE_DATE_EPOCH"); fixed != nullptr) {
    const auto seconds = parse_u64(fixed);
    if (!seconds || *seconds > 253'402'300'799) fail("SOURCE_DATE_EPOCH {}: not a number of seconds", fixed);
    now = static_cast<std::time_t>(*seconds);
  }
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  Facts about = {{"recipe", recipe.text()}, {"created", text}, {"tool", "perhaps " PERHAPS_VERSION}};
  if (!note.empty()) about.emplace_back("note", note);
  return about;
}

void declare_note(CLI::App& app, std::string& note) {
  app.add_option_function<std::string>(
         "--note",
         [&note](const std::string& given) {
           if (given.size() > 4096) fail("--note: {} bytes; the limit is 4096", given.size());
           if (given.find('\n') != std::string::npos) fail("--note: must be one line");
           note = given;
         },
         "A line of text to store in the file, which info shows")
      ->type_name("TEXT");
}

Description capped(Description d, std::optional<std::uint64_t> keys) {
  if (keys) d.keys_estimated = std::min(d.keys_estimated, static_cast<double>(*keys));
  return d;
}

void save_filter(const AnyOwner& filter, const std::string& path, const Record& record) {
  const Saving uninterrupted;
  take(filter.save(path, record));
}

void warn_if_saturated(const std::string& path, const Description& d, const Record& record) {
  if (record.capacity == 0 || !(d.fpr > 2 * d.fpr_at_capacity)) return;
  warn(fmt::format(
      "{}: saturated: about {} keys in a filter made for {}, so {} instead of {} of absent keys are answered "
      "perhaps",
      path, grouped(d.keys_estimated), grouped(record.capacity), percent(d.fpr), percent(d.fpr_at_capacity)));
}

}  // namespace perhaps::cli
