#include "any_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "file/descriptor.h"
#include "filter_file.h"
#include "interrupt.h"
#include "memory_check.h"
#include "print.h"
#include "sharded.h"

namespace perhaps::cli {
namespace {

bool is_gzip(Bytes bytes) noexcept {
  constexpr std::array kMagic = {std::byte{0x1f}, std::byte{0x8b}, std::byte{8}};
  return bytes.size() > kMagic.size() && std::ranges::equal(bytes.first(kMagic.size()), kMagic);
}

// Empty if these bytes only look like a gzip file. Inflating makes at most some thousand bytes of one.
std::vector<std::byte> inflate_all(const std::string& path, Bytes packed) {
  z_stream stream{};
  if (::inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, &::inflateEnd);
  std::vector<std::byte> out;
  std::size_t used = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (used == out.size()) {
      check_memory(out.size() * 2, path + ", unpacked,");
      out.resize(std::max<std::size_t>(out.size() * 2, 1 << 16));
    }
    constexpr std::size_t kMax = std::size_t{1} << 30;  // zlib counts in 32 bits
    const auto in = static_cast<uInt>(std::min(packed.size(), kMax));
    const auto room = static_cast<uInt>(std::min(out.size() - used, kMax));
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream.avail_in = in;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = room;
    status = ::inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) return {};
    packed = packed.subspan(in - stream.avail_in);
    used += room - stream.avail_out;
    if (status == Z_OK && packed.empty() && stream.avail_out != 0) return {};  // cut short
    check_interrupt();
  }
  out.resize(used);
  return out;
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

bool begins_as_ours(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return true;  // File::open says why
  std::array<std::byte, 64> start{};
  const ssize_t size = ::pread(file.get(), start.data(), start.size(), 0);
  return size < 0 || is_container(Bytes(start).first(static_cast<std::size_t>(size)));
}

// A shard that is a file of ours, and the filter that borrows from it.
struct OwnShard {
  explicit OwnShard(File bytes) : file(std::move(bytes)), filter(file.any()) {}
  File file;
  std::unique_ptr<AnyFilter> filter;
};

std::string names_of_formats() {
  std::vector<std::string_view> names;
  for (const format::Codec* codec : format::codecs()) names.push_back(codec->name);
  return fmt::format("{}", fmt::join(names, "|"));
}

}  // namespace

CLI::Option* add_format_name(CLI::App& app, const std::string& name, std::string& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&value](const std::string& given) {
            find_codec(given);
            value = given;
          },
          text)
      ->type_name(names_of_formats());
}

CLI::Option* add_sets(CLI::App& app, const std::string& name, std::vector<std::string>& sets, const std::string& text) {
  return app.add_option(name, sets, text)->type_name("NAME=VALUE")->allow_extra_args(false);
}

void declare_format(CLI::App& app, FormatArgs& args) {
  auto* const format = add_format_name(app, "--format", args.format,
                                       "The file is of this system (perhaps formats lists them), where its content "
                                       "and name do not tell");
  add_sets(app, "--set", args.sets, "A parameter that this format is read with; may be repeated")->needs(format);
}

const format::Codec& find_codec(std::string_view name) {
  const format::Codec* const codec = format::find(name);
  if (codec == nullptr) {
    std::string names = names_of_formats();
    for (std::size_t at = 0; (at = names.find('|', at)) != std::string::npos;) names.replace(at, 1, ", ");
    fail("'{}' is not a format; there are {}", name, names);
  }
  return *codec;
}

format::Params params_of(const format::Codec& codec, std::span<const std::string> sets) {
  format::Params params(codec);
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos) fail("--set {}: must be name=value", set);
    if (params.given(set.substr(0, equals))) fail("--set {}: {} is set twice", set, set.substr(0, equals));
    if (auto done = params.set(set.substr(0, equals), set.substr(equals + 1)); !done)
      fail("{}: {}", codec.name, done.error().detail);
  }
  return params;
}

FileBytes::FileBytes(const std::string& path) : mapped_(take(Mapping::open(path))) {
  if (is_gzip(mapped_.bytes())) inflated_ = inflate_all(path, mapped_.bytes());
}

void AnyFile::open_shards(const std::string& path) {
  const Shards shards = take(Shards::over(source.bytes, path));
  std::vector<std::shared_ptr<const AnyFilter>> filters(shards.count());
  for (const Shard& shard : shards.here()) {
    std::shared_ptr<const AnyFilter> filter;
    std::string_view format = "perhaps";
    Record record;
    if (is_container(shard.bytes)) {
      auto file = File::over(shard.bytes, {}, path);
      if (!file) fail("{}: shard {}: {}", path, shard.index, file.error().detail);
      auto own_shard = std::make_shared<OwnShard>(*std::move(file));
      record = own_shard->file.header().record;
      filter = std::shared_ptr<const AnyFilter>(own_shard, own_shard->filter.get());
    } else {
      auto one = format::open({.bytes = shard.bytes, .file_name = {}});
      if (!one) fail("{}: shard {}: {}", path, shard.index, one.error().detail);
      filter = one->whole;
      format = one->format;
    }
    // One recipe makes the keys of all shards: with another one, a *no* would be wrong.
    const Recipe recipe = recipe_of(record, path).value_or(Recipe{});
    if (!opened.entries.empty() && !recipe.same_key(recipe_of(shards_record, path).value_or(Recipe{})))
      fail("{}: shard {} has another recipe than the one before it", path, shard.index);
    shards_record = std::move(record);
    filters[shard.index] = filter;
    opened.entries.push_back({.name = fmt::format("shard {}", shard.index),
                              .offset = static_cast<std::uint64_t>(shard.bytes.data() - source.bytes.data()),
                              .size = shard.bytes.size(),
                              .format = format,
                              .filter = std::move(filter)});
  }
  opened.format = "shards";
  opened.whole = std::make_shared<Sharded>(std::move(filters));
  if (!shards.whole())
    opened.notes.push_back(fmt::format("{} of {} shards: the keys of the others are answered perhaps",
                                       shards.here().size(), shards.count()));
}

AnyFile::AnyFile(const std::string& path, const OpenArgs& args, const FormatArgs& format) {
  if (format.format.empty() && begins_as_ours(path)) {
    auto [file, filter] = open_filter(path, args);
    own = std::move(file);
    opened.format = "perhaps";
    opened.whole = std::move(filter);
    opened.entries.push_back(
        {.name = {}, .offset = 0, .size = opened.whole->byte_size(), .format = {}, .filter = opened.whole});
    return;
  }
  bytes = std::make_unique<FileBytes>(path);
  source = {.bytes = bytes->bytes(), .file_name = base_name(path)};
  if (bytes->inflated() && source.file_name.ends_with(".gz")) source.file_name.resize(source.file_name.size() - 3);
  if (format.format.empty() && is_shards(source.bytes)) {
    if (!args.keyed.path.empty()) fail("{}: a file of shards: its hash has no secret (--keyed)", path);
    open_shards(path);
    return;
  }
  if (format.format.empty()) {
    auto found = format::detect(source);
    if (!found) {
      const std::string& why = found.error().detail;  // begins with the name of the file
      fail("{}{} (--format)", path, why.substr(source.file_name.size()));
    }
    codec = *found;
  } else {
    codec = &find_codec(format.format);
  }
  if (!args.keyed.path.empty()) fail("{}: {}: its hash has no secret (--keyed)", path, codec->name);
  auto result = codec->open(source, params_of(*codec, format.sets));
  if (!result) fail("{}: {}", path, result.error().detail);
  opened = *std::move(result);
  if (bytes->inflated()) opened.notes.push_back(fmt::format("gzip: {} bytes unpacked", grouped(source.bytes.size())));
}

}  // namespace perhaps::cli
