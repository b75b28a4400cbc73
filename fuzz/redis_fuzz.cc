// The Redis module in a host instead of a server (redis_host.h): any commands in any order, RESTORE of any payload, and
// memory that runs out. Checks that there is no crash and no leak, that every command gives exactly one reply, and that
// a filter that is saved, copied, rewritten to the append-only file or moved stays the same.
//   byte 0    what is there at first (kBeginnings)
//   the rest  a list of steps: one byte what, then what it takes (see step())
#include "redis_host.h"

extern "C" int RedisModule_OnLoad(perhaps::redis::Context* context, perhaps::redis::String** argv, int argc);

namespace perhaps::redis::fuzz {
namespace {

constexpr std::string_view kWords[] = {
    "a",
    "b",
    "c",
    "EXPANSION",
    "NONSCALING",
    "VALIDATESCALETO",
    "CAPACITY",
    "ERROR",
    "ITEMS",
    "NOCREATE",
    "WINDOW",
    "SECONDS",
    "LAYOUT",
    "LINE",
    "GROWING",
    "BUCKETSIZE",
    "0",
    "1",
    "2",
    "MAXITERATIONS",
    "100",
    "1000",
    "0.01",
    "0.25",
    "1e-9",
    "-1",
    "FPR",
    "HEADROOM",
    "TIGHTENING",
    "SEED",
    "64",
    "1e-300",
    "SIZE",
    "FILTERS",
    "255",
    "65535",
    "MAXSCALEDCAPACITY",
    "20",
    "100000000",
    "17179869",
    "9223372036854775807",
};

class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  unsigned byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // A few bytes of it changed, and perhaps its end gone.
  std::string damaged(std::string text) {
    for (unsigned edits = byte() % 4; edits != 0 && !text.empty(); --edits) {
      const std::size_t at = (byte() + 256 * byte()) % text.size();
      text[at] = static_cast<char>(byte());
    }
    if (byte() % 4 == 0) text.resize(text.size() - std::min<std::size_t>(text.size(), byte()));
    return text;
  }
  std::string key() { return std::string(1, static_cast<char>('a' + byte() % 3)); }
  std::string word() {
    const unsigned kind = byte();
    if (kind < std::size(kWords)) return std::string(kWords[kind]);
    if (kind < 100) return std::string(bytes(kind % 32));
    if (kind < 120) return host.last_bulk;
    if (kind < 130) return damaged(host.last_bulk);
    if (kind < 150) return host.last_number;
    if (kind < 180) return std::string(bytes(byte() + 256 * (byte() % 4)));
    return std::to_string(kind - 180);
  }

 private:
  std::string_view rest_;
};

// What is there before the first step: to find the way to each type again and again would take the fuzzer most of its
// time. A command after an exclamation mark comes from a primary.
constexpr std::string_view kBeginnings[] = {
    "",
    "bf.reserve a 0.01 20;bf.madd a 1 2 3 4 5 6;bf.reserve b 0.01 20;bf.madd b 7 8 9",
    "bf.reserve a 0.01 3;bf.madd a 1 2 3 4 5 6 7 8 9 10",
    "bf.reserve a 0.01 20 LAYOUT LINE;bf.madd a 1 2 3 4 5 6;bf.reserve b 0.01 20 LAYOUT LINE;bf.add b 7",
    "bf.reserve a 0.01 20 LAYOUT GROWING;bf.madd a 1 2 3 4 5 6;bf.reserve b 0.01 2000 LAYOUT GROWING;bf.add b 7",
    "bf.reserve a 0.01 20 WINDOW 30;bf.madd a 1 2 3 4 5 6",
    "bf.reserve a 0.01 20 WINDOW 30 SECONDS;bf.madd a 1 2 3 4 5 6",
    "cf.reserve a 16;cf.insert a ITEMS 1 2 3 4 5 6 6 6;cf.reserve b 8 EXPANSION 2 BUCKETSIZE 1;cf.add b 1",
    "cf.reserve a 4;cf.insert a ITEMS 1 2 3 4 5 6 7 8 9 10;cf.del a 3",
    ("bf.reserve a 0.01 20;bf.madd a 1 2 3;bf.reserve b 0.01 20;bf.madd b 4 5;bf.merge a 1 b;bf.merge c 2 a b;"
     "bf.info c FPR;bf.mexists c 1 2 3 4 5 6 7 8;bf.reserve d 0.02 20;bf.merge a 1 d;bf.reserve e 0.01 21;"
     "bf.merge a 1 e"),
    ("bf.reserve a 1e-7 20;bf.madd a 1 2 3;bf.mexists a 1 2 3 9 10 11;bf.reserve b 1e-7 20 EXPANSION 4;bf.merge a 1 b;"
     "bf.reserve c 1e-7 20 NONSCALING;bf.merge a 1 c"),
    ("bf.reserve a 0.01 20 LAYOUT LINE;bf.madd a 1 2;bf.merge b 1 a;bf.add b 3;bf.merge a 1 b;bf.info b FPR;"
     "bf.mexists b 1 2 3 4"),
    "bf.reserve a 0.01 20 LAYOUT GROWING;bf.madd a 1 2 3;bf.merge b 1 a;bf.merge b 1 a;bf.info b FPR",
    "!bf.insert a CAPACITY 4 SEED 0123456789abcdef0123456789abcdef ITEMS 1 2 3 4 5 6;bf.madd a 7 8 9",
};

void begin(std::string_view text) {
  while (!text.empty()) {
    std::string_view command = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), command.size() + 1));
    std::vector<std::string> words;
    while (!command.empty()) {
      words.emplace_back(command.substr(0, command.find(' ')));
      command.remove_prefix(std::min(command.size(), words.back().size() + 1));
    }
    const bool obeyed = words.front().front() == '!';
    if (obeyed) words.front().erase(0, 1);
    host.flags = obeyed ? kReplicated : 0;
    host.call(host.command_named(words.front()), words);
  }
  host.flags = 0;
}

void save_and_load(const std::string& name) {
  const auto found = host.keys.find(name);
  if (found == host.keys.end()) return;
  const auto [type, at] = found->second;
  const std::string before = host.digest(found->second);
  Io io{.in = {}};
  type->methods.rdb_save(&io, at);
  const std::string saved = io.out;
  Io back{.in = saved};
  void* const again = type->methods.rdb_load(&back, type->encoding);
  if (again == nullptr) return;  // no memory
  demand(back.in.empty() && host.digest({type, again}) == before);
  host.erase(name);
  host.keys[name] = {type, again};
}

void copy(const std::string& from, const std::string& to) {
  const auto found = host.keys.find(from);
  if (found == host.keys.end() || from == to) return;
  const auto [type, at] = found->second;
  void* const twin = type->methods.copy(nullptr, nullptr, at);
  if (twin == nullptr) return;
  demand(host.digest({type, twin}) == host.digest(found->second));
  host.erase(to);
  host.keys[to] = {type, twin};
}

// The rewritten append-only file makes the same filter.
void rewrite(const std::string& name) {
  const auto found = host.keys.find(name);
  if (found == host.keys.end() || host.allocated > kMaxMemory / 2) return;
  const Value value = found->second;
  const std::string before = host.digest(value);
  Io io{.in = {}};
  io.rewritten = "rewritten";
  const int flags = std::exchange(host.flags, kLoading);
  value.type->methods.aof_rewrite(&io, nullptr, value.at);
  host.flags = flags;
  const auto made = host.keys.find("rewritten");
  demand(made != host.keys.end() && made->second.type == value.type && host.digest(made->second) == before);
  host.erase("rewritten");
}

void defragment(const std::string& name) {
  const auto found = host.keys.find(name);
  if (found == host.keys.end()) return;
  const std::string before = host.digest(found->second);
  DefragContext context;
  while (found->second.type->methods.defrag(&context, nullptr, &found->second.at) != 0) {
  }
  demand(host.digest(found->second) == before);
}

void restore(Input& input) {
  auto type = host.types.begin();
  std::advance(type, input.byte() % host.types.size());
  const std::string name = input.key();
  const int encoding = static_cast<int>(input.byte() % 6);
  Io io{.in = input.bytes(input.byte() + 256 * (input.byte() % 16))};
  void* const value = type->second->methods.rdb_load(&io, encoding);
  if (value == nullptr) return;
  host.erase(name);
  host.keys[name] = {type->second, value};
}

// A saved value that comes back damaged.
void restore_damaged(Input& input) {
  const auto found = host.keys.find(input.key());
  if (found == host.keys.end()) return;
  DataType* const type = found->second.type;
  Io io{.in = {}};
  type->methods.rdb_save(&io, found->second.at);
  const std::string saved = input.damaged(io.out);
  Io back{.in = saved};
  const std::string name = input.key();
  void* const value = type->methods.rdb_load(&back, type->encoding);
  if (value == nullptr) return;
  host.erase(name);
  host.keys[name] = {type, value};
}

void step(Input& input) {
  const unsigned what = input.byte();
  if (what < 200) {
    const std::size_t command = what % host.commands.size();
    std::vector<std::string> words = {host.commands[command].first, input.key()};
    for (unsigned more = input.byte() % 12; more != 0; --more) words.push_back(input.word());
    return host.call(command, words);
  }
  switch (what % 8) {
    case 0:
      return restore(input);
    case 1:
      return restore_damaged(input);
    case 2:
      return save_and_load(input.key());
    case 3: {
      const std::string from = input.key();
      return copy(from, input.key());
    }
    case 4:
      return rewrite(input.key());
    case 5:
      return defragment(input.key());
    case 6:
      host.now += input.byte() * 64;
      return;
    default:
      constexpr std::array kFlags = {0, kResp3, kReplicated, kLoading, kReplica};
      host.flags = kFlags[input.byte() % kFlags.size()];
  }
}

}  // namespace
}  // namespace perhaps::redis::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace perhaps::redis::fuzz;
  host.context.find = [](const char* name, void** to) {
    const auto found = functions().find(std::string_view(name).substr(std::strlen("RedisModule_")));
    if (found == functions().end()) return perhaps::redis::kError;
    *to = found->second;
    return perhaps::redis::kOk;
  };
  demand(RedisModule_OnLoad(&host.context, nullptr, 0) == perhaps::redis::kOk);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace perhaps::redis::fuzz;
  host.flags = 0;
  host.now = 1'000'000;
  host.last_bulk.clear();
  host.last_number = "0";
  Input input({reinterpret_cast<const char*>(data), size});
  begin(kBeginnings[input.byte() % std::size(kBeginnings)]);
  for (int steps = 0; steps < 200 && !input.empty(); ++steps) step(input);
  while (!host.keys.empty()) host.erase(host.keys.begin()->first);
  demand(host.allocated == 0 && host.blocks == 0);
  return 0;
}
