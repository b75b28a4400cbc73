// perhaps-push and perhaps-pull: filters between files and a Redis server. Each is found as a command of `perhaps`; the
// name under which the program runs says which it is.
//
// A file travels as RedisBloom's own stream: the header and pieces of 16 MiB at most, so that neither side holds a
// filter twice and none is too large for one reply.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "options.h"
#include "perhaps/format.h"
#include "print.h"
#include "redis_client.h"

namespace perhaps::cli {
namespace {

struct Options {
  std::string file;
  std::string url;
  bool replace = false;
};

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::uint64_t number_at(Bytes bytes, std::size_t at) {
  std::uint64_t number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

void expect_ok(const RedisReply& reply, const RedisUrl& url) {
  if (reply.kind == '-') fail("{}: {}", url.key, reply.text);
}

int push(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  if (!in) fail("{}: cannot be read", options.file);
  const std::vector<char> raw((std::istreambuf_iterator<char>(in)), {});
  const format::Source source{.bytes = std::as_bytes(std::span(raw)), .file_name = options.file};
  const format::Opened opened = take(format::open(source));
  const bool bloom = opened.format == "redisbloom-bf";
  if (!bloom && opened.format != "redisbloom-cf") {
    fail(
        "{}: {}: Redis takes redisbloom-bf and redisbloom-cf; `perhaps build --format redisbloom-bf` makes one of keys",
        options.file, opened.format);
  }
  const format::Codec& codec = *format::find(opened.format);
  format::Params params(codec);
  take(params.set("form", "stream"));
  const auto stream = take(format::convert(source, opened, codec, params));
  if (stream.bytes.empty()) fail("{}: holds no items: nothing to push", options.file);

  RedisClient client{RedisUrl(options.url)};
  const std::string& key = client.url().key;
  const RedisReply there = client.call({"EXISTS", key});
  expect_ok(there, client.url());
  // It becomes visible under its name only when it is whole.
  const std::string part = key.find('{') == std::string::npos ? "{" + key + "}:push" : key + ":push";
  if (there.number != 0 && !options.replace) fail("{}: exists (--replace to put this one in its place)", key);
  expect_ok(client.call({"DEL", part}), client.url());
  std::uint64_t chunks = 0;
  for (Bytes rest = stream.bytes; rest.size() >= 16; ++chunks) {
    const std::string iterator = std::to_string(number_at(rest, 0));
    const std::uint64_t size = number_at(rest, 8);
    expect_ok(client.call({bloom ? "BF.LOADCHUNK" : "CF.LOADCHUNK", part, iterator, text_of(rest.subspan(16, size))}),
              client.url());
    rest = rest.subspan(16 + size);
  }
  expect_ok(client.call({"RENAME", part, key}), client.url());
  Out().write(fmt::format("{}: {} as {}, {} bytes in {} pieces\n", key, options.file, opened.format,
                          grouped(std::uint64_t{stream.bytes.size()}), chunks));
  return kYes;
}

int pull(const Options& options) {
  RedisClient client{RedisUrl(options.url)};
  const std::string& key = client.url().key;
  const RedisReply type = client.call({"TYPE", key});
  expect_ok(type, client.url());
  const bool bloom = type.text == "MBbloom--";
  if (!bloom && type.text != "MBbloomCF") {
    fail("{}: {}", key,
         type.text == "none" ? "no such key" : fmt::format("of type {}, no filter of RedisBloom", type.text));
  }
  // Beside the file, and in its place when it is whole.
  const std::string part = options.file + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  std::uint64_t bytes = 0;
  const auto put = [&](std::uint64_t number) { out.write(reinterpret_cast<const char*>(&number), sizeof number); };
  for (std::string iterator = "0";;) {
    const RedisReply reply = client.call({bloom ? "BF.SCANDUMP" : "CF.SCANDUMP", key, iterator});
    if (reply.kind == '-' || reply.items.size() != 2) {
      std::remove(part.c_str());
      fail("{}: {}", key, reply.kind == '-' ? reply.text : "not what SCANDUMP answers");
    }
    if (reply.items[0].number == 0) break;
    iterator = std::to_string(reply.items[0].number);
    put(static_cast<std::uint64_t>(reply.items[0].number));
    put(reply.items[1].text.size());
    out.write(reply.items[1].text.data(), static_cast<std::streamsize>(reply.items[1].text.size()));
    bytes += 16 + reply.items[1].text.size();
  }
  out.close();
  if (!out || std::rename(part.c_str(), options.file.c_str()) != 0) {
    std::remove(part.c_str());
    fail("{}: cannot be written", options.file);
  }
  Out().write(
      fmt::format("{}: {} as redisbloom-{}, {} bytes\n", options.file, key, bloom ? "bf" : "cf", grouped(bytes)));
  return kYes;
}

Command::Run push_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->file, "A file of format redisbloom-bf or redisbloom-cf")
      ->type_name("FILE")
      ->required();
  app.add_option("url", options->url, "redis://[[user]:password@]host[:port]/key")->type_name("URL")->required();
  app.add_flag("--replace", options->replace, "Take the place of a key that is there");
  return [options] { return push(*options); };
}

Command::Run pull_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("url", options->url, "redis://[[user]:password@]host[:port]/key")->type_name("URL")->required();
  app.add_option("-o,--output", options->file, "The file to write")->type_name("FILE")->required();
  return [options] { return pull(*options); };
}

constexpr std::string_view kPushExamples[] = {"perhaps push seen.bf redis://localhost/seen"};
constexpr std::string_view kPullExamples[] = {"perhaps pull redis://localhost/seen -o seen.bf"};

constexpr Command kCommands[] = {
    {"push", "put a filter file into a Redis server",
     "Streams a file of format redisbloom-bf or redisbloom-cf into a key, with LOADCHUNK. The key appears, or is "
     "replaced, only when the filter is whole. In a cluster any node may be named.",
     kPushExamples, &push_command},
    {"pull", "get a filter out of a Redis server",
     "Streams the filter of a key into a file of format redisbloom-bf or redisbloom-cf, with SCANDUMP. The file "
     "appears only when it is whole. Keys that are added meanwhile may or may not be in it.",
     kPullExamples, &pull_command},
};

int run(int argc, char** argv) {
  return run_command(kCommands[std::string_view(argv[0]).ends_with("pull") ? 1 : 0], argc, argv);
}

}  // namespace

std::span<const Command> commands() noexcept { return kCommands; }
const Command* find_command(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kCommands, name, &Command::name);
  return found == std::end(kCommands) ? nullptr : found;
}
std::vector<std::string> other_commands() { return {}; }

}  // namespace perhaps::cli

int main(int argc, char** argv) { return perhaps::cli::run_program(perhaps::cli::run, argc, argv); }
