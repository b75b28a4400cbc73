#include "options.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "print.h"

namespace perhaps::cli {
namespace {

template <class T>
std::optional<std::string_view> number_at(std::string_view text, T& value) noexcept {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{}) return std::nullopt;
  return text.substr(static_cast<std::size_t>(end - text.data()));
}

std::optional<double> scale_of(std::string_view suffix) noexcept {
  if (suffix.ends_with('B')) suffix.remove_suffix(1);
  const bool binary = suffix.ends_with('i');
  if (binary) suffix.remove_suffix(1);
  if (suffix.empty()) return binary ? std::nullopt : std::optional(1.0);
  const std::size_t power = std::string_view("kMGTP").find(suffix[0] == 'K' ? 'k' : suffix[0]);
  if (suffix.size() != 1 || power == std::string_view::npos) return std::nullopt;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

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

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) noexcept {
  std::uint64_t whole = 0;
  if (const auto rest = number_at(text, whole); rest && rest->empty()) return whole;
  double value = 0;
  const auto rest = number_at(text, value);
  if (!rest) return std::nullopt;
  const auto scale = scale_of(*rest);
  if (!scale) return std::nullopt;
  value *= *scale;
  if (!(value >= 0 && value < 0x1p64)) return std::nullopt;
  return static_cast<std::uint64_t>(std::round(value));
}

std::optional<std::uint64_t> parse_u64(std::string_view text) noexcept {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (code == std::errc{} && end == text.data() + text.size()) return value;
  std::int64_t negative = 0;  // as the library: sign-extended
  if (const auto rest = number_at(text, negative); !hex && rest && rest->empty())
    return static_cast<std::uint64_t>(negative);
  return std::nullopt;
}

std::optional<double> parse_share(std::string_view text) noexcept {
  double value = 0;
  auto rest = number_at(text, value);
  if (!rest || !(rest->empty() || *rest == "%" || *rest == " %")) return std::nullopt;
  return rest->empty() ? value : value / 100;
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint64_t& value, const std::string& unit,
                       const std::string& text, std::uint64_t at_least) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, at_least](const std::string& given) {
            const auto parsed = parse_count(given);
            if (!parsed) fail("{} {}: not a number (such as 1000000, 1e9, 1.5M or 64Mi)", name, given);
            if (*parsed < at_least) fail("{} {}: must be at least {}", name, given, at_least);
            value = *parsed;
          },
          text)
      ->type_name(unit);
}

CLI::Option* add_count(CLI::App& app, const std::string& name, std::uint32_t& value, const std::string& unit,
                       const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&value, name](const std::string& given) {
            const auto parsed = parse_count(given);
            if (!parsed || *parsed < 1 || *parsed > 1'000'000)
              fail("{} {}: must be a number from 1 to 1000000", name, given);
            value = static_cast<std::uint32_t>(*parsed);
          },
          text)
      ->type_name(unit);
}

CLI::Option* add_words(CLI::App& app, const std::string& name, std::string& value,
                       std::initializer_list<std::string_view> words, const std::string& text) {
  const std::string all = fmt::format("{}", fmt::join(words, "|"));
  return app
      .add_option_function<std::string>(
          name,
          [&value, name, all](const std::string& given) {
            if (("|" + all + "|").find("|" + given + "|") == std::string::npos ||
                given.find('|') != std::string::npos) {
              fail("{} {}: must be one of {}", name, given, all);
            }
            value = given;
          },
          text)
      ->type_name(all);
}

void declare_json(CLI::App& app, bool& json) { app.add_flag("--json", json, "Print JSON, for programs"); }

void declare_threads(CLI::App& app, std::uint32_t& threads) {
  threads = std::max(1u, std::thread::hardware_concurrency());
  app.add_option_function<std::string>(
         "--threads",
         [&threads](const std::string& given) {
           const auto parsed = parse_u64(given);
           if (!parsed || *parsed < 1 || *parsed > 1024) fail("--threads {}: must be a number from 1 to 1024", given);
           threads = static_cast<std::uint32_t>(*parsed);
         },
         "How many threads build; default: one for each core")
      ->type_name("N");
}

std::optional<KeyedHash> Keyed::read() const {
  if (path.empty()) return std::nullopt;  // not given
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) fail("{}: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(::fileno(file.get()), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0) {
    warn(fmt::format("{}: everybody can read this secret (chmod o-r)", path));
  }
  char text[64];
  errno = 0;
  std::size_t size = std::fread(text, 1, sizeof text, file.get());
  if (std::ferror(file.get()) != 0) fail("{}: {}", path, std::strerror(errno));
  KeyedHash::Secret secret{};
  if (size == secret.size()) {
    std::memcpy(secret.data(), text, size);
    return KeyedHash(secret);
  }
  if (size == sizeof text) fail("{}: a secret is 16 bytes or 32 hex digits, this is {} bytes or more", path, size);
  std::size_t digits = size;
  if (digits != 0 && text[digits - 1] == '\n') --digits;
  if (digits != 2 * secret.size()) fail("{}: a secret is 16 bytes or 32 hex digits, this is {} bytes", path, size);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    unsigned char value = 0;
    const auto [end, code] = std::from_chars(text + 2 * i, text + 2 * i + 2, value, 16);
    if (code != std::errc{} || end != text + 2 * i + 2) fail("{}: 32 bytes, but not 32 hex digits", path);
    secret[i] = std::byte{value};
  }
  return KeyedHash(secret);
}

void declare_keyed(CLI::App& app, Keyed& keyed) {
  app.add_option_function<std::string>(
         "--keyed",
         [&keyed](const std::string& given) {
           if (given.empty()) fail("--keyed: the name of the file is empty");
           keyed.path = given;
         },
         "Hash under the secret in FILE (16 bytes, or 32 hex digits), for keys that an adversary may choose. To "
         "make one: head -c 16 /dev/urandom > FILE")
      ->type_name("FILE");
}

void declare_sizing(CLI::App& app, Sizing& sizing) {
  auto* fpr = app.add_option_function<std::string>(
                     "--fpr",
                     [&sizing](const std::string& given) {
                       const auto parsed = parse_share(given);
                       if (!parsed || !(*parsed > 0 && *parsed < 1)) {
                         fail("--fpr {}: must be between 0 and 1, such as 0.01 or 1%", given);
                       }
                       sizing.fpr = *parsed;
                     },
                     "The false-positive rate wanted; default: 0.01")
                  ->type_name("P");
  auto* bits = app.add_option_function<std::string>(
                      "--bits-per-key",
                      [&sizing](const std::string& given) {
                        const auto parsed = parse_share(given);
                        if (!parsed || !(*parsed > 0 && *parsed <= 1024) || given.ends_with('%')) {
                          fail("--bits-per-key {}: must be a number up to 1024", given);
                        }
                        sizing.bits_per_key = *parsed;
                      },
                      "Spend this much instead")
                   ->type_name("B");
  auto* bytes =
      add_count(app, "--max-bytes", sizing.max_bytes, "SIZE", "Use at most this much memory instead (64M, 1Gi)");
  fpr->excludes(bits)->excludes(bytes);
  bits->excludes(bytes);
}

SizeRow row_of(std::string_view family, const Request& request) {
  const auto rows = size_table(request);
  return *std::ranges::find(rows, family, &SizeRow::family);
}

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

FileLock::FileLock(const std::string& path) {
  for (bool said = false;;) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return;  // whoever opens it next says why
    while (::flock(fd_, said ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        say("", fmt::format("{}: waiting for another perhaps that is adding to it", path));
        said = true;
      } else if (errno == EINTR) {
        check_interrupt();
      } else {
        warn(fmt::format("{}: cannot be locked ({}): what others add meanwhile is lost", path, std::strerror(errno)));
        return;
      }
    }
    struct stat locked {};
    struct stat named {};
    if (::fstat(fd_, &locked) == 0 && ::stat(path.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
        locked.st_ino == named.st_ino) {
      return;
    }
    release();  // it was replaced while we waited
  }
}

void FileLock::release() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

namespace {
const std::string& replaceable(const std::string& path) {
  check_replaceable(path);
  return path;
}
}  // namespace

Changing::Changing(const std::string& path, const Keyed& keyed, bool erases) : lock(replaceable(path)) {
  const Opened opened = open_filter(path, {.keyed = keyed});
  const std::string_view name = name_of(opened.file.header().kind);
  if (const Family* family = find_family(name); erases && (family == nullptr || !family->erases))
    fail("{}: a {} filter cannot forget a key; --filter counting, cuckoo and quotient can", path, name);
  record = opened.file.header().record;
  hasher = opened.file.hasher();
  filter = load_filter(opened.file);
}

std::uint64_t smallest_bytes(std::string_view family) noexcept {
  if (family == "line" || family == "counting") return 64;
  return family == "block" ? 32 : 1;
}

void check_room(const Sizing& sizing, std::string_view family) {
  if (family == "scalable" && (sizing.max_bytes != 0 || sizing.bits_per_key != 0))
    fail("--filter scalable: its size follows from --fpr and from the keys that come");
  const std::uint64_t least = smallest_bytes(family);
  if (sizing.max_bytes != 0 && sizing.max_bytes < least)
    fail("--max-bytes {}: a {} filter has at least {} bytes", sizing.max_bytes, family, least);
}

Description capped(Description d, std::optional<std::uint64_t> keys) {
  if (keys) d.keys_estimated = std::min(d.keys_estimated, static_cast<double>(*keys));
  return d;
}

std::uint64_t physical_memory() noexcept {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void check_memory(std::uint64_t bytes, const std::string& what, std::string_view advice) {
  const std::uint64_t memory = physical_memory();
  if (bytes > memory) {
    fail("{} needs {}, this machine has {} of memory{}", what, bytes_text(static_cast<double>(bytes)),
         bytes_text(static_cast<double>(memory)), advice);
  }
}

void save_filter(const AnyOwner& filter, const std::string& path, Record record) {
  const Saving saving;
  take(filter.save(path, record));
}

void warn_if_saturated(const std::string& path, const Description& d, Record record) {
  if (record.capacity == 0 || !(d.fpr > 2 * d.fpr_at_capacity)) return;
  warn(fmt::format(
      "{}: saturated: about {} keys in a filter made for {}, so {} instead of {} of absent keys are answered "
      "perhaps",
      path, grouped(d.keys_estimated), grouped(record.capacity), percent(d.fpr), percent(d.fpr_at_capacity)));
}

}  // namespace perhaps::cli
