// portable TEST_FOLDER WORK_FOLDER: the same bytes and the same answers on every platform.
//
// Promises: every family, everything that is made of families and every foreign format, built from fixed keys, has the
// bytes of the texts in test/golden/portable and of the golden files, and answers as they say; golden files of our own
// format open and have their keys; a damaged file is refused everywhere or nowhere; every row of kernels equals the
// reference; what does not fit into the memory of a 32-bit machine is an error. Would notice: an integer stored in the
// byte order of the machine, a product or a size cut to 32 bits, a structure whose layout depends on the compiler.
//
// Uses no test framework, so that it can be built wherever the library can. Files that other systems wrote are the
// business of the program `conformance`, which is built and run beside this one. PERHAPS_UPDATE_GOLDEN=1 rewrites
// test/golden/portable.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <new>
#include <random>

#include "kernel/instruction_set.h"
#include "perhaps/counting_bloom.h"
#include "perhaps/cuckoo.h"
#include "perhaps/engine/filter_block.h"
#include "perhaps/engine/packed.h"
#include "perhaps/engine/set_index.h"
#include "perhaps/file/container.h"
#include "perhaps/file/mapping.h"
#include "perhaps/file/range_file.h"
#include "perhaps/file/shards.h"
#include "perhaps/format/format.h"
#include "perhaps/quotient.h"
#include "perhaps/window.h"
#include "support/golden_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace perhaps;
namespace fs = std::filesystem;

int passed = 0;
int failed = 0;

void check(bool holds, const std::string& what) {
  holds ? ++passed : ++failed;
  if (!holds) std::printf("FAILED %s\n", what.c_str());
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  check(bool(in), "reading " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string hex(std::uint64_t value) { return test::golden::hex(value); }
std::string checksum(Bytes bytes) { return hex(Hash(0)(bytes).value); }

KeyedHash keyed() {
  KeyedHash::Secret secret;
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = std::byte(i);
  return KeyedHash(secret);
}

// "<prefix>0", "<prefix>1" ..
struct Keys {
  Keys(const std::string& prefix, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) text.push_back(prefix + std::to_string(i));
    for (const std::string& key : text) bytes.push_back(bytes_of(key));
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  std::vector<std::string> text;
  std::vector<Bytes> bytes;
};

std::vector<std::uint64_t> answers_of(const AnyFilter& filter, std::span<const Bytes> keys, const std::string& what) {
  std::vector<std::uint64_t> answers(keys.size() / kBatch + 1);
  filter.may_contain(keys, answers);
  bool same = true;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    same &= filter.may_contain(keys[i]) == ((answers[i / 64] >> i % 64 & 1) != 0);
  }
  check(same, what + ": alone and in a column keys are answered alike");
  return answers;
}

bool all_in(const AnyFilter& filter, std::span<const Bytes> keys, const std::string& what) {
  const auto answers = answers_of(filter, keys, what);
  std::size_t in = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) in += answers[i / 64] >> i % 64 & 1;
  return in == keys.size();
}

// Answers depend on the order of bits in words, not of bytes: a number for each 64 of them.
std::string answers_sum(const std::vector<std::uint64_t>& answers) {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : answers) sum = (sum ^ word) * 0x9e3779b97f4a7c15u + 1;
  return hex(sum);
}

std::unique_ptr<AnyOwner> build(const Family& about, std::span<const Bytes> keys, AnyRequest request,
                                const AnyHasher& hasher) {
  if (request.keys == 0) request.keys = about.sized_first ? keys.size() : 0;
  auto builder = make_builder(about.kind, request, hasher, {.threads = 2});
  if (!builder) return nullptr;
  for (auto& lane : (*builder)->lanes(1)) check(lane->insert(keys), "insert");
  auto built = (*builder)->finish();
  return built ? *std::move(built) : nullptr;
}

// ------------------------------------------------------------------------------------------------------- golden files

void golden_files(const fs::path& golden, const fs::path& work) {
  const Keys keys("key", 300);
  for (const Family& about : families()) {
    for (const bool secret : {false, true}) {
      const std::string name = std::string(about.name) + (secret ? "-300-keyed" : "-300") + ".perhaps";
      const AnyHasher hasher = secret ? AnyHasher(keyed()) : AnyHasher(Hash(7));
      const OpenOptions options{.verify = true, .secret = secret ? std::optional(keyed()) : std::nullopt};
      const auto built = build(about, keys.bytes, {.fpr = 0.001}, hasher);
      check(built != nullptr, name + ": builds");
      if (built == nullptr) continue;
      const auto saved = built->save((work / name).string(), built->record());
      check(bool(saved), name + ": " + (saved ? "" : saved.error().detail));
      check(read(work / name) == read(golden / name), name + ": has the golden bytes");
      const auto file = File::open((golden / name).string(), options);
      check(bool(file), name + ": " + (file ? "" : file.error().detail));
      if (file) check(all_in(*file->any(), keys.bytes, name), name + ": has its keys");
    }
  }
  for (const std::string name :
       {"classic", "line", "line-11-probes", "block", "classic-keyed", "line-keyed", "block-keyed"}) {
    const bool secret = name.ends_with("-keyed");
    const std::string bytes = read(golden / (name + ".perhaps"));
    const auto file =
        File::over(bytes_of(bytes), {.verify = true, .secret = secret ? std::optional(keyed()) : std::nullopt});
    check(bool(file), name + ": " + (file ? "" : file.error().detail));
    if (!file) continue;
    const auto* probe = file->any()->digests();
    check(probe != nullptr, name);
    std::vector<std::uint64_t> digests;
    std::visit(
        [&](const auto& hasher) {
          for (const std::string_view text : {"", "hello", "world", "42"})
            digests.push_back(digest_of(hasher, text).value);
          for (const int number : {0, 1, 42, -1}) digests.push_back(digest_of(hasher, number).value);
        },
        file->hasher());
    check(file->any()->digests()->may_contain(digests) == 0xff, name + ": has its keys");
  }
}

// ---------------------------------------------------------------------------------------------- test/golden/portable

// The text of each file. A family has one of its own.
class Lines {
 public:
  void begin(std::string_view file) { text = &files[std::string(file) + ".txt"]; }
  void add(const std::string& name, Bytes bytes, const std::string& answers) {
    add(name + ": " + std::to_string(bytes.size()) + " bytes " + checksum(bytes) + ", answers " + answers);
  }
  void add(const std::string& line) { *text += line + "\n"; }

  std::map<std::string, std::string> files;
  std::string* text = nullptr;
};

void add_families(Lines& lines, const fs::path& work) {
  const Keys keys("portable-", 5000);
  const Keys others("absent-", 5000);
  const Keys many("many-", 60'000);
  for (const Family& about : families()) {
    lines.begin(about.name);
    const auto add = [&](const std::string& name, const Keys& in, const Request& request) {
      const auto built = build(about, in.bytes, request, Hash(3));
      check(built != nullptr, name + ": builds");
      if (built == nullptr) return;
      check(all_in(*built, in.bytes, name), name + ": has its keys");
      const fs::path path = work / "family";
      check(bool(built->save(path.string(), built->record())), name + ": saves");
      lines.add(name, bytes_of(read(path)), answers_sum(answers_of(*built, others.bytes, name)));
    };
    for (const double fpr : {0.05, 0.01, 1e-6}) {
      std::array<char, 32> rate;
      std::snprintf(rate.data(), rate.size(), ", 5000 keys at %g", fpr);
      add(std::string(about.name) + rate.data(), keys, {.fpr = fpr});
    }
    add(std::string(about.name) + ", 60000 keys at 0.01", many, {.fpr = 0.01});
  }
}

template <class F>
void add_churned(Lines& lines, const std::string& name, typename F::Shape shape) {
  lines.begin(F::layout::family);
  F filter(shape, Hash(5));
  std::mt19937_64 random(11);
  std::uint64_t outcomes = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t key = random() % 600;
    if (random() % 3 != 0) {
      outcomes = outcomes * 31 + static_cast<std::uint64_t>(filter.insert(key));
    } else if constexpr (requires { filter.erase(key); }) {
      if (filter.may_contain(key)) outcomes = outcomes * 31 + static_cast<std::uint64_t>(filter.erase(key));
    }
  }
  std::vector<std::uint64_t> answers;
  for (std::uint64_t from = 0; from < 6400; from += 64) {
    answers.push_back(0);
    for (std::uint64_t i = 0; i < 64; ++i) answers.back() |= std::uint64_t{filter.may_contain(from + i)} << i;
  }
  lines.add(name, filter.bytes(), hex(outcomes) + " " + answers_sum(answers));
}

void add_engine(Lines& lines, const fs::path& work) {
  std::mt19937_64 random(5);
  lines.begin("engine");
  for (const Kind kind :
       {Kind::dense, Kind::line, Kind::block, Kind::classic, Kind::cuckoo, Kind::fuse, Kind::ribbon, Kind::quotient}) {
    const std::string family(name_of(kind));
    for (const std::size_t count : {1, 2, 7, 40, 64, 65, 300, 4000}) {
      std::vector<std::uint64_t> digests(count);
      for (std::uint64_t& digest : digests) digest = random();
      const auto packed = pack(kind, digests, 9.3);
      const auto view = PackedView::over(packed);
      std::vector<std::uint64_t> answers(count / 64 + 1);
      view.may_contain(digests, answers);
      bool all = true;
      for (std::size_t i = 0; i < count; ++i)
        all &= packed_may_contain(packed, digests[i]) && (answers[i / 64] >> i % 64 & 1) != 0;
      const std::string name = "packed " + family + ", " + std::to_string(count) + " keys";
      check(all, name + ": has its keys");
      std::vector<std::uint64_t> absent(640);
      for (std::uint64_t& digest : absent) digest = random();
      answers.assign(10, 0);
      view.may_contain(absent, answers);
      lines.add(name, packed, answers_sum(answers));
    }
  }

  for (const FilterMode mode : {FilterMode::full, FilterMode::partitioned, FilterMode::per_block}) {
    FilterBlockOptions options;
    options.mode = mode;
    options.prefix = PrefixExtractor::fixed(4);
    options.piece_bytes = 512;
    FilterBlockBuilder builder(options);
    for (unsigned i = 0; i < 3000; ++i) {
      std::array<char, 16> key;
      std::snprintf(key.data(), key.size(), "%08u", i * 3);
      builder.add(key.data());
      if (mode == FilterMode::per_block && i % 50 == 49) builder.next_block();
    }
    const auto block = builder.finish();
    const FilterBlock filter = FilterBlock::over(block);
    const std::string name = "filter block, mode " + std::to_string(static_cast<int>(mode));
    check(filter.damage().empty(), name + ": " + std::string(filter.damage()));
    std::vector<std::uint64_t> answers(9000 / 64 + 1);
    bool all = true;
    for (unsigned i = 0; i < 9000; ++i) {
      std::array<char, 16> key;
      std::snprintf(key.data(), key.size(), "%08u", i);
      const Bytes bytes = bytes_of(key.data());
      const bool answer =
          mode == FilterMode::per_block ? filter.may_contain(i / 150, bytes) : filter.may_contain(bytes);
      all &= answer || i % 3 != 0;
      answers[i / 64] |= std::uint64_t{answer} << i % 64;
    }
    check(all, name + ": has its keys");
    lines.add(name, block, answers_sum(answers));
  }

  SetIndex index(BloomShape{.bits = 4001, .probes = 5}, Hash(2));
  std::vector<SetIndex::Column> columns;
  std::vector<Bloom> filters;
  for (std::uint64_t set = 0; set < 600; ++set) {
    filters.emplace_back(BloomShape{.bits = 4001, .probes = 5}, Hash(2));
    for (std::uint64_t key = 0; key < 100; ++key) filters.back().insert("s" + std::to_string(set * 1000 + key));
  }
  for (std::uint64_t set = 0; set < 600; ++set)
    columns.push_back({"set" + std::to_string(set), 100, filters[set].bytes()});
  check(bool(index.add(columns)), "set index: adds");
  std::vector<std::uint64_t> all;
  bool found = true;
  for (std::uint64_t set = 0; set < 600; ++set) {
    std::vector<std::uint64_t> answers(index.words());
    index.may_contain(bytes_of("s" + std::to_string(set * 1000 + set % 100)), answers);
    found &= (answers[set / 64] >> set % 64 & 1) != 0;
    all.insert(all.end(), answers.begin(), answers.end());
  }
  check(found, "set index: has its keys");
  check(bool(index.save((work / "sets").string())), "set index: saves");
  const std::string sets = read(work / "sets");
  check(bool(File::over(bytes_of(sets))), "set index: opens");
  lines.add("set index, 600 sets", bytes_of(sets), answers_sum(all));

  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < 7; ++i) shards.push_back({i, filters[i].bytes()});
  check(bool(write_shards((work / "shards").string(), 9, shards)), "shards: writes");
  const std::string file = read(work / "shards");
  const auto opened = Shards::over(bytes_of(file));
  check(opened && opened->count() == 9 && opened->here().size() == 7, "shards: opens");
  std::uint64_t numbers = 0;
  for (const std::string_view key : {"", "a", "hello", "a longer key than those before it"})
    numbers = numbers * 1000 + shard_of(bytes_of(key), 1000);
  lines.add("shards, 7 of 9", bytes_of(file), hex(numbers));
}

void add_ranges(Lines& lines) {
  std::mt19937_64 random(6);
  lines.begin("range");
  const auto ask = [&](const std::string& name, const RangeFilter& filter, bool all) {
    std::vector<Interval> ranges;
    for (unsigned i = 0; i < 6400; ++i) {
      const std::uint64_t low = random() >> i % 64;
      const std::uint64_t size = random() >> (20 + i % 44);
      ranges.push_back({low, size > UINT64_MAX - low ? UINT64_MAX : low + size});
    }
    std::vector<std::uint64_t> answers(100);
    filter.may_contain_any(std::span<const Interval>(ranges), std::span(answers));
    for (std::size_t i = 0; i < ranges.size(); ++i)
      all &= filter.may_contain_any(ranges[i]) == ((answers[i / 64] >> i % 64 & 1) != 0);
    check(all, name + ": has its keys");
    lines.add(name, filter.bytes(), answers_sum(answers));
  };
  for (const std::size_t count : {0, 1, 2, 50, 5000}) {
    for (const double bits : {6.0, 15.5, 16.0, 50.0}) {
      std::vector<std::uint64_t> keys(count);
      for (std::size_t i = 0; i < count; ++i) keys[i] = i % 3 == 0 ? i : random() >> i % 64;
      const auto filter = RangeFilter::of(keys, {.bits_per_key = bits}, count);
      bool all = true;
      for (const std::uint64_t key : keys) all &= filter.may_contain(key);
      ask(std::to_string(count) + " numbers, " + std::to_string(static_cast<int>(bits * 2)) + " half bits", filter,
          all);
    }
  }
  for (const unsigned code_bits : {64u, 30u, 9u}) {
    const Keys keys("key/", 4000);
    const auto filter =
        RangeFilter::of(std::span<const Bytes>(keys.bytes), {.bits_per_key = 14, .code_bits = code_bits});
    bool all = true;
    for (const Bytes key : keys.bytes) all &= filter.may_contain(key);
    all &= !filter.may_contain(bytes_of("kex")) && !filter.may_contain_any(bytes_of("l"), bytes_of("m"));
    ask("4000 texts, codes of " + std::to_string(code_bits) + " bits", filter, all);
  }
}

// The initial parameters, and each word and flag changed one at a time.
std::vector<std::pair<std::string, format::Params>> variants(const format::Codec& codec) {
  std::vector<std::pair<std::string, format::Params>> result;
  result.emplace_back(codec.name, format::Params(codec));
  for (const format::Param& param : codec.params) {
    std::string words(param.type == format::Param::Type::flag ? "true|false" : param.words);
    for (std::size_t from = 0; from < words.size();) {
      const std::size_t to = std::min(words.find('|', from), words.size());
      const std::string word = words.substr(from, to - from);
      from = to + 1;
      if (word == param.initial) continue;
      format::Params params(codec);
      check(bool(params.set(param.name, word)), std::string(codec.name) + ": " + word);
      result.emplace_back(std::string(codec.name) + ", " + std::string(param.name) + "=" + word, std::move(params));
    }
  }
  return result;
}

// "refused", or the answers for a number of keys.
std::string outcome_of(const format::Codec& codec, const format::Params& params, Bytes bytes,
                       std::span<const Bytes> keys) {
  const auto opened = codec.open({.bytes = bytes}, params);
  return opened ? answers_sum(answers_of(*opened->whole, keys, std::string(codec.name))) : "refused";
}

// The file with each byte of its head and of its end changed, one at a time: among these are sizes and counts with
// 2^32 and more added, which a cut to 32 bits would take away again.
std::string outcome_of_changes(const format::Codec& codec, const format::Params& params, std::vector<std::byte> file,
                               std::span<const Bytes> keys) {
  std::string outcomes;
  std::size_t refused = 0;
  for (std::size_t at = 0; at < file.size(); ++at) {
    if (at >= 48 && at + 48 < file.size()) continue;
    const std::byte before = file[at];
    for (const unsigned change : {0x01u, 0x08u, 0x20u, 0xffu}) {
      file[at] = before ^ std::byte(change);
      const std::string outcome = outcome_of(codec, params, file, keys);
      refused += outcome == "refused";
      outcomes += outcome + " ";
    }
    file[at] = before;
  }
  return std::to_string(refused) + " changes refused, " + checksum(bytes_of(outcomes));
}

void add_formats(Lines& lines) {
  const Keys keys("portable-", 300);
  const Keys others("absent-", 640);
  const Keys few("absent-", 64);
  lines.begin("formats");
  for (const format::Codec* codec : format::codecs()) {
    if (codec->build == nullptr) continue;
    for (const auto& [name, params] : variants(*codec)) {
      const auto built = codec->build(keys.bytes, params);
      check(bool(built), name + ": " + (built ? "" : built.error().detail));
      if (!built) continue;
      const auto opened = codec->open({.bytes = *built}, params);
      check(bool(opened), name + ": " + (opened ? "" : opened.error().detail));
      if (!opened) continue;
      check(all_in(*opened->whole, keys.bytes, name), name + ": has its keys");
      lines.add(name, *built, answers_sum(answers_of(*opened->whole, others.bytes, name)));
      if (name == codec->name) lines.add("  " + outcome_of_changes(*codec, params, *built, few.bytes));
    }
  }
}

// Files named for their defects: test/corrupt/{format}/{defect}.
void add_damaged(Lines& lines, const fs::path& corrupt) {
  const Keys keys("absent-", 64);
  for (const format::Codec* codec : format::codecs()) {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(corrupt / codec->name)) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    std::string outcomes;
    for (const fs::path& file : files) {
      const std::string bytes = read(file);
      const std::string outcome = outcome_of(*codec, format::Params(*codec), bytes_of(bytes), keys.bytes);
      check((outcome == "refused") == (file.extension() == ".refused"), file.string() + ": " + outcome);
      outcomes += outcome + " ";
    }
    lines.add("damaged " + std::string(codec->name) + ": " + std::to_string(files.size()) + " files, " +
              checksum(bytes_of(outcomes)));
  }
}

void golden_text(const fs::path& test, const fs::path& work) {
  const fs::path golden = test / "golden";
  Lines lines;
  add_families(lines, work);
  add_churned<Cuckoo>(lines, "cuckoo, 13 bits", {.buckets = 150, .fingerprint_bits = 13, .guard_bits = 8});
  add_churned<Cuckoo>(lines, "cuckoo, 27 bits", {.buckets = 150, .fingerprint_bits = 27, .guard_bits = 0});
  add_churned<CountingBloom>(lines, "counting", CountingShape::for_keys({.keys = 500}));
  add_churned<Quotient>(lines, "quotient", QuotientShape::for_keys({.keys = 4000}));
  add_churned<Window>(lines, "window", WindowShape::for_keys({.keys = 1000}));
  add_engine(lines, work);
  add_ranges(lines);
  add_formats(lines);
  add_damaged(lines, test / "corrupt");
  for (const auto& [name, text] : lines.files) {
    const fs::path path = golden / "portable" / name;
    if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::istringstream expected(read(path));
    std::istringstream now(text);
    std::string wanted;
    std::string line;
    while (std::getline(expected, wanted)) {
      line.clear();
      std::getline(now, line);
      check(line == wanted, name + " has\n  " + wanted + "\nand this machine\n  " + line);
    }
    check(!std::getline(now, line), name + " ends before\n  " + line);
  }
  check(test::golden_lines() == read(golden / "digests.txt"), "digests.txt");
}

// ---------------------------------------------------------------------------------------------- words, kernels, sizes

void words() {
  using detail::WordPair;
  std::mt19937_64 random(3);
  std::uint64_t sum = 0;
  const auto add = [&](WordPair word) { sum = (sum ^ word.low) * 31 + (sum ^ word.high); };
  for (int i = 0; i < 2000; ++i) {
    const WordPair a{random() >> random() % 64, random() >> random() % 64};  // braces: from left to right
    const WordPair b{random() >> random() % 64, random() >> random() % 64};
    const auto by = static_cast<unsigned>(random() % 128);
    const WordPair results[] = {a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, a << by, a >> by};
    for (const WordPair result : results) add(result);
#if defined(__SIZEOF_INT128__)
    using detail::Wide;
    const auto wide = [](WordPair pair) { return static_cast<Wide>(pair.high) << 64 | pair.low; };
    const Wide x = wide(a), y = wide(b);
    const Wide expected[] = {x + y, x - y, x * y, x & y, x | y, x ^ y, ~x, x << by, x >> by};
    for (std::size_t j = 0; j < std::size(results); ++j) {
      if (wide(results[j]) != expected[j]) return check(false, "WordPair, operation " + std::to_string(j));
    }
#endif
  }
  check(sum == 0xed909d0aee385f03u, "the words add up to " + hex(sum));
  alignas(16) std::array<std::byte, 32> bytes;
  for (unsigned i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i);
  const std::byte* const at = bytes.data() + 1;
  check(detail::load<std::uint16_t>(at) == 0x0201 && detail::load<std::uint32_t>(at) == 0x04030201 &&
            detail::load<std::uint64_t>(at) == 0x0807060504030201,
        "words are loaded as little-endian");
  check(detail::load<detail::Wide>(at) ==
            ((static_cast<detail::Wide>(0x100f0e0d0c0b0a09) << 64) | std::uint64_t{0x0807060504030201}),
        "wide words are loaded as little-endian");
  check(detail::load_shared<std::uint32_t>(bytes.data() + 4) == 0x07060504 &&
            detail::set_bits_shared<std::uint64_t>(bytes.data() + 8, 0x80) && bytes[8] == std::byte{0x88},
        "shared words are little-endian");
}

// Drives the comparison of fuzz/kernels_fuzz.cc, which aborts at the first difference, with fixed inputs.
void kernels() {
  std::mt19937_64 random(20);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint64_t> input(2 + random() % 100);
    for (auto& word : input) word = random();
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size() * 8);
  }
  check(true, "kernels");
}

template <class Make>
bool is_refused(Make make) {
  try {
    return !make();
  } catch (const std::bad_alloc&) {
    return true;
  }
}

// Five GiB: on a 32-bit machine a size that wraps is one GiB, and would be there.
void sizes(const fs::path& golden, const fs::path& work) {
  constexpr std::uint64_t kTooMuch = std::uint64_t{5} << 30;
  if (sizeof(std::size_t) == 8) return;
  check(is_refused([] { return Memory(kTooMuch).size() != 0; }), "Memory of 5 GiB");
  check(is_refused([] { return Bloom(BloomShape{.bits = kTooMuch * 8, .probes = 8}).byte_size() != 0; }),
        "Bloom of 5 GiB");
  check(is_refused([] { return LineBloom(LineShape{.lines = kTooMuch / 64, .probes = 8}).byte_size() != 0; }),
        "LineBloom of 5 GiB");
  check(is_refused([] { return BlockBloom(BlockShape{.blocks = kTooMuch / 32}).byte_size() != 0; }),
        "BlockBloom of 5 GiB");
  check(is_refused([] { return CountingBloom({.keys = 5'000'000'000}).byte_size() != 0; }), "CountingBloom");
  check(is_refused([] { return Cuckoo({.keys = 5'000'000'000}).byte_size() != 0; }), "Cuckoo of 5 GiB");
  check(is_refused([] { return Quotient({.keys = 5'000'000'000}).byte_size() != 0; }), "Quotient of 5 GiB");
  check(is_refused([] { return Window({.keys = 5'000'000'000}).byte_size() != 0; }), "Window of 5 GiB");
  check(is_refused([] { return SetIndex(BloomShape{.bits = kTooMuch / 8, .probes = 5}, Hash()).words() != 0; }),
        "SetIndex of 5 GiB");
  for (const Family& about : families()) {
    if (!about.sized_first) continue;
    const std::string name = std::string(about.name) + " of 5e9 keys";
    check(is_refused([&] { return bool(make_builder(about.kind, {.keys = 5'000'000'000}, Hash())); }), name);
    if (!about.inserts) continue;
    check(is_refused([&] { return bool(make_any(about.kind, {.keys = 5'000'000'000}, Hash())); }), name + ", any");
  }
  // A file with a hole: of its size, 2^32 and a bit, one that wraps would leave the front, which is a whole filter.
  const auto open_hollow = [&](const std::string& name, const std::string& front, const auto& open) {
    const fs::path path = work / name;
    std::ofstream out(path, std::ios::binary);
    out.write(front.data(), static_cast<std::streamsize>(front.size()));
    out.seekp(static_cast<std::streamoff>((std::uint64_t{1} << 32) + front.size() - 1));
    out.put(front.back());
    out.close();
    check(bool(out) && fs::file_size(path) > std::uint64_t{1} << 32, name + ": cannot be written");
    check(!open(path.string()), name + ": opens");
    fs::remove(path);
  };
  const std::string filter = read(golden / "line-300.perhaps");
  open_hollow("a filter in 4 GiB", filter, [](const std::string& path) { return bool(File::open(path)); });
  open_hollow("a mapping of 4 GiB", filter, [](const std::string& path) { return bool(Mapping::open(path)); });
  const LineShape shape{.lines = kTooMuch / 64, .probes = 8};
  const auto file =
      NewContainer::create((work / "large").string(), Header::of<LineLayout>(shape, Hash()), shape.bytes());
  check(!file, "a file of 5 GiB to be filled");
  const std::array<std::byte, 64> table{};
  check(!LineBloomView::over(table, LineShape{.lines = (std::uint64_t{1} << 26) + 1, .probes = 8}),
        "a view of 4 GiB and 64 bytes over 64 bytes");
  const std::vector<Bytes> keys = {bytes_of("key")};
  for (const format::Codec* codec : format::codecs()) {
    if (codec->build == nullptr) continue;
    for (const std::string_view name :
         {"n", "numKeys", "expectedInsertions", "num_bits_requested", "bits", "capacity", "m"}) {
      for (const std::string_view much : {"4.4e10", "2e11"}) {
        format::Params params(*codec);
        if (!params.set(name, much)) continue;
        check(is_refused([&] { return bool(codec->build(keys, params)); }),
              std::string(codec->name) + " with " + std::string(name) + "=" + std::string(much));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("usage: portable TEST_FOLDER WORK_FOLDER"), 2;
  const fs::path golden = fs::path(argv[1]) / "golden";
  const fs::path work = argv[2];
  fs::create_directories(work);
  words();
  kernels();
  golden_files(golden / "perhaps", work);
  golden_text(argv[1], work);
  sizes(golden / "perhaps", work);
  std::printf("%zu-bit, %s-endian: %d passed, %d failed\n", 8 * sizeof(std::size_t),
              std::endian::native == std::endian::little ? "little" : "big", passed, failed);
  return failed == 0 && passed != 0 ? 0 : 1;
}
