// perhaps: the command line. This file is the command table; each command is a file of its own.
//
// A word that is not in the table runs the program `perhaps-WORD`, as in git: commands that link a storage engine are
// programs of their own, and this tool stays light.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "command.h"
#include "interrupt.h"
#include "print.h"
#include "schema.h"

namespace perhaps::cli {
namespace {

using Examples = const std::string_view[];

constexpr Examples kBuild = {
    "perhaps build -o seen.perhaps keys.txt",
    "zcat keys.gz | perhaps build -o seen.perhaps --fpr 0.001",
    "perhaps build -o mail.perhaps --field 2 --delimiter , --lower people.csv",
    "perhaps build -o csv.perhaps --csv --field mail --note 'May' table.csv",
    "perhaps build -o small.perhaps --max-bytes 64Ki keys.txt more.txt",
    "perhaps build --format guava --set fpp=0.001 -o seen.guava keys.txt",
    "perhaps build --format redisbloom-bf --shards 4 -o seen.shards keys.txt",
    "perhaps build --filter range --bits-per-key 16 -o words.perhaps keys.txt",
};
constexpr Examples kQuery = {
    "perhaps query seen.perhaps -e hello",
    "perhaps query seen.perhaps new.txt > known.txt",
    "cat new.txt | perhaps query -v seen.perhaps > certainly-new.txt",
    "perhaps query -c mail.perhaps people.csv",
    "perhaps query --csv --field mail csv.perhaps table.csv --rest others.csv",
    "cat new.txt | perhaps query --answers seen.perhaps",
    "perhaps query words.perhaps --range hello..help",
};
constexpr Examples kAdd = {
    "perhaps add seen.perhaps more.txt",
    "perhaps add seen.perhaps -e hello -e world",
};
constexpr Examples kRemove = {
    "perhaps build --filter cuckoo -o live.perhaps keys.txt",
    "perhaps remove live.perhaps -e hello",
};
constexpr Examples kMerge = {
    "perhaps merge -o all.perhaps monday.perhaps tuesday.perhaps",
    "perhaps merge --intersect -o both.perhaps monday.perhaps tuesday.perhaps",
    "perhaps build --shard 0/2 -o half.0 keys.txt",
    "perhaps build --shard 1/2 -o half.1 keys.txt",
    "perhaps merge -o all.perhaps half.0 half.1",
};
constexpr Examples kFold = {
    "perhaps fold -o half.perhaps monday.perhaps",
    "perhaps fold -o quarter.perhaps --times 2 monday.perhaps",
};
constexpr Examples kSplit = {
    "perhaps split --shards 2 -o part.%d keys.txt",
    "perhaps build --keys-expected 1e6 -o half.0 part.0",
};
constexpr Examples kDedup = {
    "perhaps dedup keys.txt more.txt > once.txt",
    "cat keys.txt | perhaps dedup --window 100k --suspects dropped.txt > once.txt",
    "perhaps dedup --for 10m --field 2 --delimiter , people.csv",
    "perhaps dedup --exact keys.txt more.txt > once.txt",
    "perhaps dedup --seen log.perhaps keys.txt > fresh.txt",
};
constexpr Examples kVerify = {
    "perhaps verify seen.perhaps --keys keys.txt",
    "perhaps verify seen.perhaps --keys keys.txt --absent absent.txt --json",
    "perhaps verify seen.perhaps --keys keys.txt --certificate seen.json",
    "perhaps verify --check seen.json",
};
constexpr Examples kInfo = {
    "perhaps info seen.perhaps",
    "perhaps info --json seen.perhaps mail.perhaps",
    "perhaps info seen.guava",
};
constexpr Examples kExplain = {
    "perhaps explain seen.perhaps -e hello",
    "perhaps explain --json seen.perhaps -e hello -e world",
};
constexpr Examples kExact = {
    "perhaps exact build -o e1 --members keys.txt --universe absent.txt",
    "perhaps query e1 keys.txt > members.txt",
    "perhaps verify e1 --members keys.txt --universe absent.txt",
    "perhaps exact build -o e2 --members keys.txt --universe absent.txt --note 2",
    "perhaps exact diff e1 e2 --universe keys.txt --universe absent.txt -o d",
    "perhaps exact apply e1 d -o e3",
};
constexpr Examples kConvert = {
    "perhaps build --format fuse8 -o keys.fuse8 keys.txt",
    "perhaps convert --to fuse8 --set packed=true -o small.fuse8 keys.fuse8",
};
constexpr Examples kFormats = {
    "perhaps formats",
    "perhaps formats guava cassandra",
};
constexpr Examples kSize = {
    "perhaps size --keys 1e9 --fpr 0.001",
    "perhaps size --keys 50M --max-bytes 64Mi",
    "perhaps size --max-bytes 64Mi --fpr 0.001",
    "perhaps size --keys 1e6 --bits-per-key 12 --probes 5 --plot size.svg",
};
constexpr Examples kBench = {
    "perhaps bench --keys 100k",
    "perhaps bench --keys 100k --filter line --filter ribbon --svg bench.svg",
    "perhaps bench hash --keys 100k",
};

constexpr Examples kAdvise = {
    "perhaps advise keys.txt",
    "perhaps advise keys.txt --queries new.txt --needs delete --saves 2ms",
    "perhaps advise --keys 100k --wrong-price 0.4 --memory-price 3 --lookups 1000",
};

constexpr Examples kAllocate = {
    "perhaps allocate --levels 4 --ratio 10 --keys 1e9 --budget 1G",
    "perhaps allocate --keys 1e9 --budget 1G --ribbon 1 --plot levels.svg",
};

constexpr Examples kMap = {
    "perhaps map build -o codes.perhaps codes.tsv --key 1 --value 2",
    "perhaps map get codes.perhaps -e hello",
    "perhaps map build -o words.map words.tsv --key 1 --value 2 --text --check 8",
    "cut -f 1 words.tsv | perhaps map get words.map",
};
constexpr Examples kRoute = {
    "perhaps route --build sets.perhaps old=keys.txt new=more.txt",
    "perhaps route sets.perhaps new.txt",
    "perhaps route --remove sets.perhaps old",
};

constexpr Examples kPush = {
    "perhaps push seen.bf redis://localhost/seen",
    "perhaps push --shards 64 seen.shards redis-cluster://localhost/seen",
};
constexpr Examples kPull = {
    "perhaps pull redis://localhost/seen -o seen.bf",
};

constexpr Command kCommands[] = {
    {"build", "make a filter file from keys",
     "Reads keys and writes a filter of them to a file. The number of keys need not be known: files are read twice, "
     "the first time to count; for a pipe, 8 bytes are kept for each key until the end. If many keys repeat, room is "
     "made for the distinct ones only. The file appears, or replaces "
     "the old one, only when it is whole.",
     kBuild, &build_command, kJsonBuild},
    {"query", "print the keys that are perhaps in a filter",
     "Prints the records whose key is perhaps in the filter, in their order and as they were written; with -v the ones "
     "that are certainly not in it. Keys are made by the recipe that is stored in the filter (fields, case, numbers); "
     "options that contradict it are refused. Exit code: 0 if any was printed (or would have been), 1 if none, 2 on an "
     "error; a file that cannot be opened is an error, but the others are read. "
     "Binary records (--keys-as len32 or u64) are printed as they came. With --redis the filter is queried "
     "on the server; keys are split by node, and all nodes are queried at once.",
     kQuery, &query_command, kJsonQuery},
    {"add", "add keys to a filter file",
     "Writes a new file with the old keys and the new ones, which replaces the old file when it is whole. A second "
     "add to the same file waits for the first. A filter that is given many more keys than it was made for answers "
     "perhaps too often, and add warns about it. A full cuckoo filter is left as it was; a quotient filter grows, and "
     "its rate with it; scalable and growing filters grow and keep their rate.",
     kAdd, &add_command, kJsonAdd},
    {"remove", "take keys out of a filter file",
     "For counting, cuckoo, quotient and growing filters. Remove only keys that were added: a key that was never added "
     "is mostly recognised as such, and then nothing is removed at all, unless --partial is given. With the "
     "probability of the filter's false-positive rate it looks present, and keys that share its place in the filter "
     "are lost instead.",
     kRemove, &remove_command, kJsonRemove},
    {"info", "describe filter files",
     "Recognises our own files and those of other systems, and lists every filter inside. The false-positive rate is "
     "that of the system's own probing, measured if its formula promises a lower one; then both are shown. A folder "
     "stands for the filter files in and below it. A filter at a redis:// address is copied first, as by pull.",
     kInfo, &info_command, kJsonInfo},
    {"explain", "why a filter answers perhaps or no",
     "Shows what a lookup of each key reads: the digest, the line, block or buckets, and every bit, counter, slot or "
     "parity with what it holds. Positions are bits of the table, counted from the lowest bit of its first byte. "
     "Of other systems' files it shows the bits of classic Bloom filters, and of the others the answer of each filter "
     "inside; of an exact set in parts, the answer alone. Exit code: 0 if any answer is perhaps, 1 if none is, 2 on an "
     "error.",
     kExplain, &explain_command, kJsonExplain},
    {"exact", "make a set that is right for every key of a known universe",
     "If all keys that will ever be queried are known (all certificates, all domains), a set can answer without "
     "a single error: query then selects exactly the members. The answer for a key outside the universe means "
     "nothing. Members that are not in the universe count as part of it. build reads files twice, the universe in any "
     "order and repeated or not, and keeps only the few keys that pass a filter. diff writes the answers that change "
     "from one set to another, over the universe of the new one, unless that takes as many bytes as the new set: exit "
     "code 1. apply puts an update above the set that it was made for; every update makes lookups a little slower, "
     "so build the set anew from time to time. verify proves that there is no error.",
     kExact, &exact_command, kJsonExact},
    {"convert", "write a filter in the format of another system",
     "Only if nothing is lost: the two formats hash and place a key alike, or one contains the other. Otherwise it "
     "says why not, and which command makes the filter from its keys.",
     kConvert, &convert_command, kJsonConvert},
    {"formats", "which systems' files are read and written",
     "With names: the parameters of those formats, their values, and the general option of build that means the same.",
     kFormats, &formats_command, kJsonFormats},
    {"merge", "merge or intersect filters",
     "The filters must have the same family, size and hash: build them with the same --keys-expected. The union is "
     "exactly the filter of all the keys. The intersection holds every key that is in all of them, and answers perhaps "
     "somewhat more often than a filter made of those keys alone. Files of shards (build --shards) become one file.",
     kMerge, &merge_command, kJsonMerge},
    {"fold", "halve a filter",
     "The result is exactly the filter that the same keys would have made at half the size, so its false-positive "
     "rate is higher. The number of lines, blocks or bits must be even: filters made with --max-bytes 64Mi, or "
     "another power of two, can be folded often.",
     kFold, &fold_command, kJsonFold},
    {"split", "share out keys among files, one for each shard of a build",
     "Reads keys once and writes N files of records as they came, so that each job of a build in shards reads its own "
     "keys only: file i has the records whose key is of shard i, by the hash of build --shard and --shards, in their "
     "order. Options that say how a key is made of a record are those of build, and each job needs them again. The "
     "files appear only when all of them are whole.",
     kSplit, &split_command, kJsonSplit},
    {"dedup", "print the lines of a stream that were not seen before",
     "Prints the records whose key was not seen before, in their order and as they were written, and a report on "
     "standard error. The memory is a small part of what a set of the lines would take. A false positive drops a line "
     "that was never seen: the report says how many such drops to expect, --suspects keeps all that was dropped, and "
     "--exact has none. With --seen the memory is a file, and the next run goes on from there. "
     "A window forgets: with --window N a line is dropped if it is among the last N lines, and may also be dropped if "
     "it is among the N/7 lines before those.",
     kDedup, &dedup_command, kJsonDedup},
    {"verify", "prove no key is missing, and measure the false-positive rate",
     "Queries every key of --keys: each must be answered perhaps. Then queries keys that are not in the filter: "
     "those of --absent, or random ones. A filter at a redis:// address is copied first, as by pull. With "
     "--certificate what was proved is written to a file; anyone who has the files that it names, at the same paths "
     "relative to it, can prove it again with --check. Of an exact set it queries every key of --members and "
     "--universe: no answer may be wrong. Exit code: 1 if a key is missing, an exact answer is wrong or --check finds "
     "a difference, 2 on an error.",
     kVerify, &verify_command, kJsonVerify},
    {"size", "how large would a filter be",
     "Of keys, rate, memory, bits per key and probes, some are given and the others follow: what the keys need at a "
     "rate, the rate that they reach in the memory, how many keys fit.",
     kSize, &size_command, kJsonSize},
    {"advise", "which family for these keys: measure and rank them",
     "Builds a filter of each family from a sample of the keys, queries it, and ranks the families by the total cost "
     "of a lookup: its time, the work that a wrong perhaps causes, and the memory. The last line is the command to "
     "run. If --wrong-price, --memory-price and --lookups say what a wrong perhaps and the memory cost, the rate is "
     "chosen so that both together cost least. With --keys there need be no keys yet. Exit code: 1 if no family can do "
     "all of it, 2 on an error.",
     kAdvise, &advise_command, kJsonAdvise},
    {"map", "a value for each key, without storing the keys",
     "map build makes a file that gives every key of its input the value beside it: a number of up to 64 bits or, with "
     "--text, one of a few words. A key is stored in as many bits as its value has. map get FILE prints the keys that "
     "it finds, each with a tab and its value. Every key of the input is found and has its value. Any other key gets "
     "some value, unless the map was built with --check B: then it is found once in 2^B times only. A key that is "
     "given twice with one value counts once; with two values the build fails and names it. Exit code of get: 0 if any "
     "key was found, 1 if none, 2 on an error.",
     kMap, &map_command, kJsonMap},
    {"route", "which of many sets may have a key",
     "Prints each key, a tab, and the names of the sets that may have it, with commas between them: which server, "
     "shard or file to query; with --json one object per key. One index of all sets answers at once, so their number "
     "hardly matters; they should be of similar size, because each takes the room of the largest. With --build, "
     "--add and --remove it changes the index instead. Exit code: 0 if any key was in a set, 1 if none, 2 on an "
     "error.",
     kRoute, &route_command, kJsonRoute},
    {"allocate", "spread a memory budget over the levels of an LSM tree",
     "How many bits per key the filters of each level should have, so that the lookup of an absent key wastes as few "
     "reads as the memory allows; beside it, the same number of bits per key on every level.",
     kAllocate, &allocate_command, kJsonAllocate},
    {"push", "put a filter file into a Redis server",
     "Streams a filter into a key, with LOADCHUNK: of format redisbloom-bf or redisbloom-cf, or a line or growing "
     "filter of ours, which becomes one of LAYOUT LINE or GROWING (its keys must be bytes, not numbers: --keys-as "
     "u64 is hashed otherwise). The key appears, or is replaced, only when the filter is whole. A file of shards "
     "(build --shards) becomes the keys NAME:{0}, NAME:{1} and so on, spread over the nodes of a cluster, and "
     "NAME:shards says how many there are.",
     kPush, &push_command, kJsonPush},
    {"pull", "get a filter out of a Redis server",
     "Streams the filter of a key into a file, with SCANDUMP: of format redisbloom-bf or redisbloom-cf, or a filter "
     "of ours: growing if it is of LAYOUT GROWING, line if it is of LAYOUT LINE and has not grown. If NAME:shards is "
     "there, all shards of NAME are one file. The file appears only when it is whole. Keys that are added meanwhile "
     "may or may not be in it.",
     kPull, &pull_command, kJsonPull},
    {"bench", "measure the families on this machine",
     "A quick look: the time to build a filter of each family and to look up absent keys, with the spread of the "
     "rounds. `perhaps bench hash` measures hashes by the length of the key, and their share of a whole lookup. "
     "`perhaps bench lsm` builds real databases instead, of RocksDB or LevelDB, and counts what filters save there; it "
     "has a --help of its own.",
     kBench, &bench_command, kJsonBench},
    {"man", "print the man page", "", {}, &man_command, {}, true},
    {"completion", "print a shell's completions", "", {}, &completion_command, {}, true},
};

constexpr std::string_view kProgram = "perhaps-";

// The folder of this program, its libexec, and PATH.
std::vector<std::filesystem::path> program_folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  if (const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored); !self.empty()) {
    folders.push_back(self.parent_path());
    folders.push_back(self.parent_path().parent_path() / "libexec" / "perhaps");
  }
  const char* const path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty()) folders.emplace_back(folder);
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
  }
  return folders;
}

void run_elsewhere(const std::string& word, char** argv) {
  if (word.find('/') != std::string::npos) return;
  for (const auto& folder : program_folders()) ::execv((folder / (std::string(kProgram) + word)).c_str(), argv);
}

[[noreturn]] void fail_unknown(std::string_view word) {
  std::vector<std::string> names = other_commands();
  for (const Command& command : kCommands) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  const std::string_view meant = nearest(word, names);
  fail("'{}' is not a command{} (see perhaps --help)", word,
       meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

// If a standard descriptor is closed, the next file opened would take its number, and messages would be written into
// that file. /dev/null takes it instead, opened in the wrong direction, so that using it is still an error.
void occupy_closed_descriptors() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run(int argc, char** argv) {
  const std::string_view word = argc < 2 ? std::string_view("--help") : argv[1];
  if (word == "--version" || word == "-V") {
    Out().write(fmt::format("perhaps {}\n", PERHAPS_VERSION));
    return kYes;
  }
  if (word == "--help" || word == "-h" || word == "help") {
    const Command* about = argc > 2 ? find_command(argv[2]) : nullptr;
    if (argc > 2 && about == nullptr) fail_unknown(argv[2]);
    Out().write(about == nullptr ? help_of_all() : help_of(*about));
    return argc < 2 ? kError : kYes;
  }
  if (word.starts_with('-')) fail("{}: an option needs a command before it (see perhaps --help)", word);
  // `bench` alone is in the table; `bench lsm` is a program of its own.
  if (word == "bench" && argc > 2 && argv[2][0] != '-') run_elsewhere("bench-" + std::string(argv[2]), argv + 2);
  const Command* command = find_command(word);
  if (command == nullptr) {
    run_elsewhere(std::string(word), argv + 1);
    fail_unknown(word);
  }
  return run_command(*command, argc - 1, argv + 1);
}

}  // namespace

std::span<const Command> commands() noexcept { return kCommands; }
const Command* find_command(std::string_view name) noexcept {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<std::string> other_commands() {
  std::vector<std::string> names;
  for (const auto& folder : program_folders()) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      if (!name.starts_with(kProgram) || ::access(at->path().c_str(), X_OK) != 0) continue;
      std::error_code gone;
      if (!at->is_regular_file(gone) || name.find('.') != std::string::npos) continue;
      std::string word = name.substr(kProgram.size());
      if (find_command(word) == nullptr) names.push_back(std::move(word));
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace perhaps::cli

int main(int argc, char** argv) {
  perhaps::cli::occupy_closed_descriptors();
  perhaps::cli::catch_signals();
  return perhaps::cli::run_program(perhaps::cli::run, argc, argv);
}
