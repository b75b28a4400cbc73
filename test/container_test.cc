// Promise: a damaged, truncated, foreign or newer file is refused with the fact; a writer that fails or dies leaves the
// old file intact. Would notice: one flipped bit that is not detected, one number that is trusted, one file left
// behind.
#include "perhaps/file/container.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "file/link_target.h"
#include "perhaps/file/mapping.h"
#include "perhaps/file/writer.h"
#include "perhaps/scalable_bloom.h"

namespace perhaps {
namespace {

// What borrows from a File cannot be taken from one that nobody keeps: none of these compiles.
template <class F>
concept HasView = requires(F f) {
  std::forward<F>(f).template as<LineBloomView>();
};
template <class F>
concept HasAny = requires(F f) {
  std::forward<F>(f).any();
};
static_assert(HasView<File&> && HasView<const File&> && !HasView<File> && !HasView<const File>);
static_assert(HasAny<File&> && HasAny<const File&> && !HasAny<File> && !HasAny<const File>);
template <class R>
concept HasArrow = requires(R r) {
  std::forward<R>(r).operator->();
};
static_assert(HasArrow<Result<File>&> && HasArrow<const Result<File>&>);
static_assert(!HasArrow<Result<File>> && !HasArrow<const Result<File>>, "open(path)->as<View>() dangles");
static_assert(HasArrow<Result<LineBloomView>>, "a view owns nothing");
template <class M>
concept HasBytes = requires(M m) {
  std::forward<M>(m).bytes();
};
static_assert(HasBytes<Mapping&> && !HasBytes<Mapping> && !HasArrow<Result<Mapping>>);

namespace fs = std::filesystem;
using KeyedLineBloom = BasicLineBloom<KeyedHash>;

const std::string kData = PERHAPS_TEST_DATA;

KeyedHash keyed(unsigned char first = 0) {
  KeyedHash::Secret secret;
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = std::byte(first + i);
  return KeyedHash(secret);
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.flush()) << path;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

template <class T>
std::string le(T value) {
  std::string bytes;
  for (unsigned i = 0; i < sizeof value; ++i) bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i);
  return bytes;
}

std::uint64_t xxh3(std::string_view bytes) { return Hash(0)(bytes_of(bytes)).value; }

// The format again, written from doc/container.md and sharing no line with the library.
struct Raw {
  std::string magic = "\x89perhaps";
  std::uint32_t version = 2;
  std::uint32_t header_bytes = 128;
  std::uint32_t kind = 2;
  std::uint32_t scheme = 1;
  std::uint64_t seed = 0;
  std::uint64_t keys = 0;
  std::uint64_t capacity = 0;
  std::uint64_t file_bytes = 256;
  std::uint32_t param_count = 2;
  std::uint32_t section_count = 1;
  std::string params = le<std::uint64_t>(2) + le<std::uint64_t>(8);  // two lines, eight probes
  std::uint32_t type = 0;
  std::uint32_t reserved = 0;
  std::uint64_t offset = 128;
  std::uint64_t size = 128;
  std::string padding;
  std::string table = std::string(128, '\xff');

  std::string header() const {
    const std::string before = magic + le(version) + le(header_bytes) + le(kind) + le(scheme) + le(seed) + le(keys) +
                               le(capacity) + le(file_bytes) + le(param_count) + le(section_count);
    std::string after = params + le(type) + le(reserved) + le(offset) + le(size) + le(xxh3(table)) + padding;
    after.resize(std::max<std::size_t>(after.size(), 128 - 72), '\0');
    return before + le(xxh3(before + le<std::uint64_t>(0) + after)) + after;
  }
  std::string bytes() const { return header() + table; }
};

Result<File> open_bytes(std::string_view bytes, const OpenOptions& options = {}) {
  return File::over(bytes_of(bytes), options, "f");
}

Errc code_of(std::string_view bytes, const OpenOptions& options = {}) {
  auto file = open_bytes(bytes, options);
  EXPECT_FALSE(file);
  return file ? Errc::io : file.error().code;
}

std::string why(std::string_view bytes, const OpenOptions& options = {}) {
  auto file = open_bytes(bytes, options);
  EXPECT_FALSE(file);
  return file ? "" : file.error().detail;
}

class ContainerTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("container_" + std::to_string(getpid()) + info->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  LineBloom some(std::uint64_t lines = 2) const {
    LineBloom filter(LineShape{.lines = lines, .probes = 8});
    filter.insert("hello");
    return filter;
  }

  fs::path folder_;
};

// ------------------------------------------------------------------------------------------------------- what is right

TEST_F(ContainerTest, ASecondWriterOfTheFormatIsUnderstood) {
  Raw raw;
  raw.seed = 5;
  raw.keys = 11;
  raw.capacity = 12;
  const std::string bytes = raw.bytes();
  auto file = open_bytes(bytes);
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_TRUE(file->verified());
  EXPECT_EQ(file->header().record.keys, 11u);
  EXPECT_EQ(file->header().record.capacity, 12u);
  EXPECT_EQ(file->hasher(), AnyHasher(Hash(5)));
  EXPECT_TRUE(file->any()->may_contain(bytes_of("anything")));  // every bit is set
  EXPECT_TRUE(is_container(bytes_of(bytes)));
  EXPECT_FALSE(is_container(bytes_of("\x89perhap")));
  EXPECT_FALSE(is_container({}));
}

TEST_F(ContainerTest, BytesNeedNoAlignment) {
  ASSERT_TRUE(save(folder_ / "f", some()));
  const std::string shifted = "x" + read(folder_ / "f");
  auto file = open_bytes(std::string_view(shifted).substr(1));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->as<LineBloomView>()->may_contain("hello"));
  EXPECT_FALSE(file->as<LineBloomView>()->may_contain("world"));
}

// -------------------------------------------------------------------------------------------------- what is not right

// Every kind and scheme, small, and with padding.
std::map<std::string, std::string> small_files(const fs::path& folder) {
  const auto add = [&](const std::string& name, auto filter) {
    filter.insert("hello");
    EXPECT_TRUE(save(folder / name, filter, {.keys = 1, .capacity = 20}));
  };
  add("classic", Bloom(BloomShape{.bits = 777, .probes = 7}));
  add("line", LineBloom(LineShape{.lines = 3, .probes = 8}));
  add("block", BlockBloom(BlockShape{.blocks = 5}));
  add("classic keyed", BasicBloom<Multiplicative, KeyedHash>(BloomShape{.bits = 777, .probes = 7}, keyed()));
  add("line keyed", KeyedLineBloom(LineShape{.lines = 3, .probes = 8}, keyed()));
  add("block keyed", BasicBlockBloom<KeyedHash>(BlockShape{.blocks = 5}, keyed()));
  std::map<std::string, std::string> files;
  for (const std::string& name : names_in(folder)) files[name] = read(folder / name);
  return files;
}

TEST_F(ContainerTest, EveryFlippedBitIsNoticed) {
  const auto files = small_files(folder_);
  EXPECT_EQ(files.size(), 6u);
  for (const auto& [name, good] : files) {
    std::string bytes = good;
    OpenOptions options;
    if (name.ends_with("keyed")) options.secret = keyed();
    ASSERT_TRUE(open_bytes(bytes, options)) << name;
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const auto flip = [&] { bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8); };
      flip();
      options.verify = true;
      EXPECT_FALSE(open_bytes(bytes, options)) << name << " bit " << bit;
      // Without verification, the header is still covered.
      options.verify = false;
      EXPECT_EQ(static_cast<bool>(open_bytes(bytes, options)), bit >= 128 * 8) << name << " bit " << bit;
      flip();
    }
  }
}

TEST_F(ContainerTest, EveryCutAndEveryExtensionIsNoticed) {
  const std::string bytes = small_files(folder_)["classic"];
  for (const bool verify : {true, false}) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(code_of(bytes.substr(0, size), {.verify = verify, .secret = {}}), Errc::truncated) << size;
    }
    for (const std::size_t more : {1u, 63u, 64u, 4096u}) {
      EXPECT_EQ(code_of(bytes + std::string(more, '\0'), {.verify = verify, .secret = {}}), Errc::bad_parameter);
    }
  }
}

TEST_F(ContainerTest, RefusalsSayWhich) {
  const Raw good;
  ASSERT_TRUE(open_bytes(good.bytes()));
  EXPECT_EQ(why(""), "f: the file is empty");
  EXPECT_EQ(why("PK\3\4 and so on"), "f: not a perhaps file");
  EXPECT_EQ(why("\x89perhaps"), "f: truncated within the header");
  EXPECT_EQ(why(good.bytes().substr(0, 100)), "f: truncated: the header alone has 128 bytes, the file has 100");
  EXPECT_EQ(why(good.bytes().substr(0, 200)), "f: truncated: the header promises 256 bytes, the file has 200");
  EXPECT_EQ(why(good.bytes() + "x"), "f: too long: the header promises 256 bytes, the file has 257");

  const auto altered = [&](auto change) {
    Raw raw = good;
    change(raw);
    return why(raw.bytes());
  };
  EXPECT_EQ(altered([](Raw& r) { r.version = 3; }), "f: version 3 is newer than this library (2)");
  EXPECT_EQ(altered([](Raw& r) { r.version = 1; }),
            "f: version 1, written by perhaps before 0.2: its hash is no longer supported; build the filter again from "
            "its keys");
  EXPECT_EQ(altered([](Raw& r) { r.version = 0; }), "f: damaged header: version 0");
  EXPECT_EQ(altered([](Raw& r) { r.header_bytes = 0; }), "f: damaged header: a header of 0 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.header_bytes = 64; }), "f: damaged header: a header of 64 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.header_bytes = 130; }), "f: damaged header: a header of 130 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.header_bytes = 524352; }), "f: damaged header: a header of 524352 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.header_bytes = 192; }), "f: damaged: the header does not match its checksum");
  EXPECT_EQ(altered([](Raw& r) { r.kind = 77; }), "f: unknown kind of filter 77");
  EXPECT_EQ(altered([](Raw& r) { r.kind = 0; }), "f: unknown kind of filter 0");
  EXPECT_EQ(altered([](Raw& r) { r.scheme = 3; }), "f: unknown hash scheme 3");
  EXPECT_EQ(altered([](Raw& r) { r.file_bytes = UINT64_MAX; }),
            "f: truncated: the header promises 18446744073709551615 bytes, the file has 256");
  EXPECT_EQ(altered([](Raw& r) { r.param_count = UINT32_MAX; }),
            "f: 4294967295 parameters and 1 sections do not fit a header of 128 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.section_count = UINT32_MAX; }),
            "f: 2 parameters and 4294967295 sections do not fit a header of 128 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.section_count = 0; }), "f: the sections end at 128, the header promises 256 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.type = 9; }), "f: line: unknown section type 9");
  EXPECT_EQ(altered([](Raw& r) { r.reserved = 1; }), "f: section 0 uses a reserved field");
  EXPECT_EQ(altered([](Raw& r) { r.offset = 64; }), "f: section 0 starts at 64 instead of 128");
  EXPECT_EQ(altered([](Raw& r) { r.offset = UINT64_MAX; }),
            "f: section 0 starts at 18446744073709551615 instead of 128");
  EXPECT_EQ(altered([](Raw& r) { r.size = UINT64_MAX; }),
            "f: section 0 of 18446744073709551615 bytes does not fit the file");
  EXPECT_EQ(altered([](Raw& r) { r.size = 129; }), "f: section 0 of 129 bytes does not fit the file");
  EXPECT_EQ(altered([](Raw& r) { r.size = 64; }), "f: the sections end at 192, the header promises 256 bytes");
  EXPECT_EQ(altered([](Raw& r) { r.size = 127; }), "f: line: the shape needs 128 bytes, the section has 127");
  EXPECT_EQ(altered([](Raw& r) { r.padding = "later"; }), "f: the padding of the header is in use");

  const auto shaped = [&](std::uint32_t kind, std::initializer_list<std::uint64_t> params) {
    return altered([&](Raw& r) {
      r.kind = kind;
      r.param_count = static_cast<std::uint32_t>(params.size());
      r.params.clear();
      for (const std::uint64_t p : params) r.params += le(p);
    });
  };
  constexpr std::uint64_t k32 = std::uint64_t{1} << 32;
  EXPECT_EQ(shaped(2, {0, 8}), "f: line: 0 lines");
  EXPECT_EQ(shaped(2, {UINT64_MAX, 8}), "f: line: 18446744073709551615 lines");
  EXPECT_EQ(shaped(2, {k32 << 26, 8}), "f: line: 288230376151711744 lines");  // 2^64 bytes, which is 0
  EXPECT_EQ(shaped(2, {2, 0}), "f: line: 0 probes");
  EXPECT_EQ(shaped(2, {2, 17}), "f: line: 17 probes");
  EXPECT_EQ(shaped(2, {2, k32 + 8}), "f: line: 4294967304 probes");
  EXPECT_EQ(shaped(2, {2}), "f: line: 2 parameters expected, not 1");
  EXPECT_EQ(shaped(2, {2, 8, 1}), "f: line: 2 parameters expected, not 3");
  EXPECT_EQ(shaped(2, {3, 8}), "f: line: the shape needs 192 bytes, the section has 128");
  EXPECT_EQ(shaped(1, {0, 7}), "f: classic: 0 bits");
  EXPECT_EQ(shaped(1, {1024, 0}), "f: classic: 0 probes");
  EXPECT_EQ(shaped(1, {1024, 31}), "f: classic: 31 probes");
  EXPECT_EQ(shaped(1, {1024, k32 + 1}), "f: classic: 4294967297 probes");
  EXPECT_EQ(shaped(1, {1025, 7}), "f: classic: the shape needs 129 bytes, the section has 128");
  EXPECT_EQ(shaped(1, {UINT64_MAX, 7}), "f: classic: the shape needs 2305843009213693952 bytes, the section has 128");
  EXPECT_EQ(shaped(1, {}), "f: classic: 2 parameters expected, not 0");
  EXPECT_EQ(shaped(3, {0}), "f: block: 0 blocks");
  EXPECT_EQ(shaped(3, {k32 + 1}), "f: block: 4294967297 blocks");
  EXPECT_EQ(shaped(3, {5}), "f: block: the shape needs 160 bytes, the section has 128");
  EXPECT_EQ(shaped(3, {4, 8}), "f: block: 1 parameters expected, not 2");

  std::string damaged = good.bytes();
  damaged[200] = 0;
  EXPECT_EQ(why(damaged), "f: damaged: the 128 bytes at 128 do not match their checksum");
}

TEST_F(ContainerTest, CorruptFilesAreRefusedWithTheirDefect) {
  const std::map<std::string, Errc> expected = {
      {"cut-in-header", Errc::truncated},
      {"cut-in-table", Errc::truncated},
      {"cut-to-the-header", Errc::truncated},
      {"empty", Errc::truncated},
      {"file-bytes-absurd", Errc::truncated},
      {"foreign-png", Errc::bad_magic},
      {"foreign-text", Errc::bad_magic},
      {"growing-table-contradicts-itself", Errc::bad_checksum},
      {"header-bit-flipped", Errc::bad_checksum},
      {"header-bytes-huge", Errc::bad_parameter},
      {"header-bytes-zero", Errc::bad_parameter},
      {"header-padding-used", Errc::unsupported},
      {"kind-unknown", Errc::unsupported},
      {"lines-absurd", Errc::bad_parameter},
      {"lines-zero", Errc::bad_parameter},
      {"magic-only", Errc::truncated},
      {"one-byte-too-long", Errc::bad_parameter},
      {"params-absurd", Errc::bad_parameter},
      {"params-missing", Errc::bad_parameter},
      {"probes-17", Errc::bad_parameter},
      {"probes-narrow-to-8", Errc::bad_parameter},
      {"probes-zero", Errc::bad_parameter},
      {"scheme-unknown", Errc::unsupported},
      {"section-inside-header", Errc::bad_parameter},
      {"section-reserved-used", Errc::unsupported},
      {"section-size-overflows", Errc::bad_parameter},
      {"section-type-unknown", Errc::unsupported},
      {"sections-absurd", Errc::bad_parameter},
      {"sections-none", Errc::bad_parameter},
      {"sections-overlap", Errc::bad_parameter},
      {"table-bit-flipped", Errc::bad_checksum},
      {"table-too-small-for-shape", Errc::bad_parameter},
      {"version-0", Errc::bad_parameter},
      {"version-1", Errc::bad_version},
      {"version-3", Errc::bad_version},
  };
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(kData + "/corrupt/perhaps")) {
    if (entry.path().extension() != ".perhaps") continue;
    const std::string defect = entry.path().stem();
    seen.insert(defect);
    ASSERT_TRUE(expected.contains(defect)) << defect;
    const auto file = File::open(entry.path());
    ASSERT_FALSE(file) << defect;
    EXPECT_EQ(file.error().code, expected.at(defect)) << file.error().detail;
    EXPECT_TRUE(file.error().detail.starts_with(entry.path().string() + ": ")) << file.error().detail;
  }
  EXPECT_EQ(seen.size(), expected.size());
}

const Facts kAbout = {
    {"recipe", "lower, trim"}, {"note", "two\nlines, a \\ and a \\n"}, {"empty", ""}, {"tool", "\xc3\xa9"}};

// A file of one line filter with this text about it, written from doc/container.md.
std::string raw_with_about(const std::string& text, std::uint32_t type = 2, std::uint64_t size = UINT64_MAX) {
  Raw raw;
  std::string padded = text;
  padded.resize((text.size() + 63) / 64 * 64, '\0');
  raw.header_bytes = 192;
  raw.offset = 192;
  raw.section_count = 2;
  raw.padding = le(type) + le<std::uint32_t>(0) + le<std::uint64_t>(320) +
                le<std::uint64_t>(size == UINT64_MAX ? text.size() : size) + le(xxh3(padded));
  raw.padding.resize(192 - 72 - 16 - 32, '\0');
  raw.file_bytes = 320 + padded.size();
  return raw.bytes() + padded;
}

TEST_F(ContainerTest, WhatAFileSaysAboutItsFilterIsKept) {
  // Saved, and filled in place: the same bytes.
  ASSERT_TRUE(save(folder_ / "saved", some(), {.keys = 1, .capacity = 9, .about = kAbout}));
  auto fresh = NewFile<LineBloom>::create(folder_ / "filled", some().shape(), Hash(), kAbout);
  ASSERT_TRUE(fresh) << fresh.error().detail;
  fresh->span().insert("hello");
  ASSERT_TRUE(fresh->commit({.keys = 1, .capacity = 9}));
  EXPECT_TRUE(read(folder_ / "saved") == read(folder_ / "filled"));
  for (const bool verify : {true, false}) {
    const auto file = File::open(folder_ / "saved", {.verify = verify, .secret = {}});
    ASSERT_TRUE(file) << file.error().detail;
    EXPECT_EQ(file->header().record.about, kAbout);
    EXPECT_EQ(file->header().sections.size(), 1u);
    EXPECT_EQ(*file->header().record.find("recipe"), "lower, trim");
    EXPECT_EQ(file->header().record.find("absent"), nullptr);
    EXPECT_TRUE(file->as<LineBloomView>()->may_contain("hello"));
    EXPECT_EQ(file->any()->record().about, kAbout);
    // Loaded, changed and saved again; merged with a file that says the same of the recipe only.
    auto loaded = file->load();
    ASSERT_TRUE(loaded);
    ASSERT_TRUE((*loaded)->save(folder_ / "again", (*loaded)->record()));
    EXPECT_TRUE(read(folder_ / "again") == read(folder_ / "saved"));
    ASSERT_TRUE(save(folder_ / "other", some(), {.keys = 1, .about = {{"tool", "e"}, {"recipe", "lower, trim"}}}));
    const auto other = File::open(folder_ / "other");
    ASSERT_TRUE((*loaded)->merge(*other->any()));
    EXPECT_EQ((*loaded)->record().about, (Facts{{"recipe", "lower, trim"}}));
  }
  // By hand, from the page; and without it the bytes are as if there were no such section.
  const std::string by_hand =
      raw_with_about("recipe=lower, trim\nnote=two\\nlines, a \\\\ and a \\\\n\nempty=\ntool=\xc3\xa9\n");
  const auto file = open_bytes(by_hand);
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(file->header().record.about, kAbout);
}

TEST_F(ContainerTest, DamageToWhatIsSaidIsNoticed) {
  const std::string good = raw_with_about("note=x\n");
  ASSERT_TRUE(open_bytes(good));
  // Also without a look at the table.
  for (std::size_t at = 320; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1 << bit);
      ASSERT_EQ(code_of(bad, {.verify = false, .secret = {}}), Errc::bad_checksum) << at;
    }
  }
  EXPECT_EQ(why(raw_with_about("note=x")), "f: about: does not end with a whole line");
  EXPECT_EQ(why(raw_with_about("note=x\nmore")), "f: about: does not end with a whole line");
  EXPECT_EQ(why(raw_with_about("note\n")), "f: about: line 1 is not name=value");
  EXPECT_EQ(why(raw_with_about("note=x\n\n")), "f: about: line 2 is not name=value");
  EXPECT_EQ(why(raw_with_about("=x\n")), "f: about: line 1 is not name=value");
  EXPECT_EQ(why(raw_with_about("Note=x\n")), "f: about: line 1 is not name=value");
  EXPECT_EQ(why(raw_with_about(std::string(65, 'n') + "=x\n")), "f: about: line 1 is not name=value");
  EXPECT_EQ(why(raw_with_about("note=\\x\n")), "f: about: line 1 has an unknown escape");
  EXPECT_EQ(why(raw_with_about("note=\\\n")), "f: about: line 1 has an unknown escape");
  EXPECT_EQ(why(raw_with_about("note=x\nnote=x\n")), "f: about: 'note' occurs twice");
  // Not UTF-8: a lone byte, an overlong form, a surrogate, above 10ffff, cut short.
  for (const char* const text : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_EQ(why(raw_with_about("note=" + std::string(text) + "\n")), "f: about: the value of 'note' is not UTF-8");
  }
  EXPECT_EQ(why(raw_with_about(std::string(64, ' '), 2, 0)), "f: section 1: a text of 0 bytes about the filter");
  EXPECT_EQ(why(raw_with_about("note=" + std::string(65536, 'x') + "\n")),
            "f: section 1: a text of 65542 bytes about the filter");
  EXPECT_TRUE(open_bytes(raw_with_about("note=" + std::string(65530, 'x') + "\n")));
  EXPECT_EQ(why(raw_with_about("note=x\n", 3)), "f: line: one section expected, not 2");
  EXPECT_EQ(why([] {
              Raw only;
              only.type = 2;
              return only.bytes();
            }()),
            "f: line: one section expected, not 0");
}

TEST_F(ContainerTest, WhatCannotBeSaidIsRefused) {
  const auto refused = [&](const Facts& about) {
    const auto done = save(folder_ / "f", some(), {.about = about});
    EXPECT_FALSE(done);
    EXPECT_EQ(names_in(folder_), std::set<std::string>{});
    return done ? "" : done.error().detail.substr((folder_ / "f").string().size());
  };
  EXPECT_EQ(refused({{"", "x"}}), ": about: a name has 1 to 64 of a-z, 0-9, '.', '_' and '-'");
  EXPECT_EQ(refused({{"a=b", "x"}}), ": about: a name has 1 to 64 of a-z, 0-9, '.', '_' and '-'");
  EXPECT_EQ(refused({{"a", "x"}, {"a", "x"}}), ": about: 'a' occurs twice");
  EXPECT_EQ(refused({{"a", "\xff"}}), ": about: the value of 'a' is not UTF-8");
  EXPECT_EQ(refused({{"a", std::string(65536, 'x')}}), ": about: more than 64 KiB");
  auto fresh = NewFile<LineBloom>::create(folder_ / "f", some().shape());
  ASSERT_TRUE(fresh);
  EXPECT_FALSE(fresh->commit({.about = {{"a", "b"}}}));
}

// As many links as there can be: 64 bytes of the header for each.
TEST_F(ContainerTest, AChainOf4096LinksIsSavedAndOpened) {
  Scalable<Bloom> chain({.fpr = 0.5, .factor = 1, .first = 1});
  for (std::uint64_t i = 0; chain.links().size() < 4096; ++i) chain.insert(i);
  const auto header = [&] {
    Header h = Header::of(chain.hasher());
    h.kind = Kind::scalable;
    h.params = chain.numbers();
    for (const auto& link : chain.links()) h.sections.push_back({.type = 0, .bytes = link.bytes()});
    return h;
  }();
  const auto done = write_container(folder_ / "f", header);
  ASSERT_TRUE(done) << done.error().detail;
  const auto file = File::open(folder_ / "f");
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(file->header().sections.size(), 4096u);
  auto loaded = file->load();
  ASSERT_TRUE(loaded) << loaded.error().detail;
  ASSERT_TRUE((*loaded)->save(folder_ / "again", (*loaded)->record()));
  EXPECT_TRUE(read(folder_ / "again") == read(folder_ / "f"));
}

TEST_F(ContainerTest, KeyedFilesNeedTheirKey) {
  const std::string path = folder_ / "k";
  KeyedLineBloom filter({.keys = 10}, keyed());
  filter.insert("hello");
  ASSERT_TRUE(save(path, filter));

  const auto refused = [&](const std::string& file, std::optional<KeyedHash> secret) {
    for (const bool verify : {true, false}) {
      auto opened = File::open(file, {.verify = verify, .secret = secret});
      EXPECT_FALSE(opened);
      if (opened) continue;
      EXPECT_EQ(opened.error().code, Errc::bad_key);
      if (verify) return opened.error().detail;
    }
    return std::string();
  };
  EXPECT_EQ(refused(path, std::nullopt), path + ": the filter is keyed, and no key was given");
  EXPECT_EQ(refused(path, keyed(1)), path + ": the key is not the one the filter was built with");
  EXPECT_EQ(refused(path, KeyedHash(KeyedHash::Secret{})), path + ": the key is not the one the filter was built with");
  ASSERT_TRUE(save(folder_ / "plain", some()));
  EXPECT_EQ(refused(folder_ / "plain", keyed()),
            (folder_ / "plain").string() + ": a key was given, but the filter is not keyed");

  auto file = File::open(path, {.secret = keyed()});
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->as<KeyedLineBloom::View>()->may_contain("hello"));
  EXPECT_TRUE(file->any()->may_contain(bytes_of("hello")));

  // The secret is not in the file, nor is any half of it.
  const std::string bytes = read(path);
  EXPECT_EQ(bytes.find(std::string("\0\1\2\3\4\5\6\7", 8)), std::string::npos);
  EXPECT_EQ(bytes.find("\x8\x9\xa\xb\xc\xd\xe\xf"), std::string::npos);
}

TEST_F(ContainerTest, ATypedViewIsGivenForItsOwnKindOnly) {
  const std::string path = folder_ / "f";
  ASSERT_TRUE(save(path, some()));
  auto file = File::open(path);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->as<LineBloomView>());
  const auto other = file->as<BlockBloomView>();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::mismatch);
  EXPECT_EQ(other.error().detail, path + ": holds a line filter hashed with xxh3-64, not block with xxh3-64");
  const auto other_hash = file->as<KeyedLineBloom::View>();
  ASSERT_FALSE(other_hash);
  EXPECT_EQ(other_hash.error().detail, path + ": holds a line filter hashed with xxh3-64, not line with siphash-1-3");
}

TEST_F(ContainerTest, WhatIsNotAFileIsRefused) {
  const auto refused = [&](const fs::path& path) {
    auto file = File::open(path);
    EXPECT_FALSE(file);
    if (file) return std::string();
    EXPECT_EQ(file.error().code, Errc::io);
    return file.error().detail;
  };
  EXPECT_EQ(refused(folder_), folder_.string() + ": is a folder");
  EXPECT_EQ(refused(folder_ / "none"), (folder_ / "none").string() + ": cannot open: No such file or directory");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refused(folder_ / "pipe"), (folder_ / "pipe").string() + ": is not a regular file");
  EXPECT_EQ(refused("/dev/null"), "/dev/null: is not a regular file");
}

// ------------------------------------------------------------------------------------------------------------ mapping

TEST_F(ContainerTest, TheTableIsAlignedToALineAndNotCopied) {
  ASSERT_TRUE(save(folder_ / "f", some(1000)));
  auto file = File::open(folder_ / "f");
  ASSERT_TRUE(file);
  auto view = file->as<LineBloomView>();
  ASSERT_TRUE(view);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view->bytes().data()) % kLineBytes, 0u);
  EXPECT_EQ(view->bytes().data(), file->header().sections[0].bytes.data());
  // A view follows its File when that moves.
  const File moved = *std::move(file);
  EXPECT_TRUE(view->may_contain("hello"));
}

// A filter of 1 TiB on any machine: the file is sparse except for its header. Opening reads nothing else.
TEST_F(ContainerTest, AFileFarLargerThanMemoryOpensAndAnswers) {
  Raw raw;
  const std::uint64_t lines = std::uint64_t{1} << 34;
  raw.params = le(lines) + le<std::uint64_t>(8);
  raw.size = lines * 64;
  raw.file_bytes = 128 + raw.size;
  write(folder_ / "huge", raw.header());
  if (truncate((folder_ / "huge").c_str(), static_cast<off_t>(raw.file_bytes)) != 0) {
    GTEST_SKIP() << "this file system does not support files of 1 TiB";
  }
  auto file = File::open(folder_ / "huge", {.verify = false, .secret = {}});
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_FALSE(file->verified());
  const auto view = file->as<LineBloomView>();
  ASSERT_TRUE(view);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(view->may_contain(i));
  const auto any = file->any();
  EXPECT_FALSE(any->may_contain(bytes_of("hello")));
}

TEST_F(ContainerTest, AMappingHoldsTheBytesOfARegularFile) {
  write(folder_ / "f", "hello");
  write(folder_ / "empty", "");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  auto mapping = Mapping::open(folder_ / "f");
  ASSERT_TRUE(mapping) << mapping.error().detail;
  const Mapping moved = *std::move(mapping);
  EXPECT_TRUE(std::ranges::equal(moved.bytes(), bytes_of("hello")));
  moved.drop(moved.bytes());
  EXPECT_TRUE(std::ranges::equal(moved.bytes(), bytes_of("hello"))) << "dropped pages are read again";
  const auto empty = Mapping::open(folder_ / "empty");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  const auto refused = [&](const fs::path& path) {
    const auto opened = Mapping::open(path);
    return opened ? std::string("opened") : opened.error().detail.substr(path.string().size());
  };
  EXPECT_EQ(refused(folder_ / "none"), ": cannot open: No such file or directory");
  EXPECT_EQ(refused(folder_), ": is a folder");
  EXPECT_EQ(refused(folder_ / "pipe"), ": is not a regular file");
}

// A mapped file changes under its reader; a copy does not. Small, and large enough for huge pages.
TEST_F(ContainerTest, AFileInMemoryIsACopy) {
  const fs::path path = folder_ / "f";
  for (const std::uint64_t keys : {1'000u, 5'000'000u}) {
    SCOPED_TRACE(keys);
    LineBloom filter({.keys = keys, .fpr = 0.01});
    for (std::uint64_t i = 0; i < keys; i += 97) filter.insert(i);
    ASSERT_TRUE(save(path, filter));
    auto file = File::open(path, {.secret = {}, .in_memory = true});
    ASSERT_TRUE(file) << file.error().detail;
    const File moved = *std::move(file);
    // In place, not by renaming: what is mapped shows it.
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << std::string(fs::file_size(path), '\0');
    const auto view = moved.as<LineBloomView>();
    ASSERT_TRUE(view) << view.error().detail;
    EXPECT_TRUE(std::ranges::equal(view->bytes(), filter.bytes()));
    for (std::uint64_t i = 0; i < keys; i += 97) ASSERT_TRUE(view->may_contain(i)) << i;
    const auto again = File::open(path, {.secret = {}, .in_memory = true});
    ASSERT_FALSE(again) << "zeros";
  }
}

TEST_F(ContainerTest, AReaderKeepsTheFileItOpened) {
  const fs::path path = folder_ / "f";
  ASSERT_TRUE(save(path, some()));
  auto before = File::open(path);
  LineBloom filter = some();
  filter.insert("world");
  ASSERT_TRUE(save(path, filter));
  auto after = File::open(path);
  EXPECT_FALSE(before->as<LineBloomView>()->may_contain("world"));
  EXPECT_TRUE(after->as<LineBloomView>()->may_contain("world"));
}

// Not a test: prints the figures of doc/container.md.
TEST_F(ContainerTest, DISABLED_SpeedOfOpening) {
  const LineBloom filter(LineShape{.lines = std::uint64_t{1} << 25, .probes = 8});
  ASSERT_TRUE(save(folder_ / "f", filter));
  for (const bool verify : {true, true, true, false, false, false}) {
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(File::open(folder_ / "f", {.verify = verify, .secret = {}}));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("2 GiB, %s: %.3f ms", verify ? "verified" : "not verified", seconds * 1e3);
    verify ? std::printf(", %.1f GB/s\n", static_cast<double>(filter.byte_size()) / seconds / 1e9) : std::printf("\n");
  }
}

// ------------------------------------------------------------------------------------------------------------ writing

// Runs `body` in a child process and returns its result: for changes to a process that cannot be undone.
template <class Body>
bool in_a_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// After this, the process cannot create unnamed files, as on file systems without O_TMPFILE.
bool forbid_unnamed_files() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog all{.len = std::size(program), .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0 &&
         open(".", O_TMPFILE | O_RDWR, 0600) == -1 && errno == EOPNOTSUPP;
}

// From here on this process dies where it would rename a file.
bool die_of_renaming() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#ifdef __NR_renameat
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_renameat, 1, 0),
#else
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_renameat2, 1, 0),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog all{.len = std::size(program), .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
}

void expect_careful_writes(const fs::path& folder, const LineBloom& filter) {
  const mode_t usual = umask(022);
  umask(027);
  const std::string fresh = folder / "fresh";
  ASSERT_TRUE(save(fresh, filter));
  EXPECT_EQ(mode_of(fresh), 0640u);
  umask(usual);

  ASSERT_EQ(chmod(fresh.c_str(), 0604), 0);
  ASSERT_TRUE(save(fresh, filter));
  EXPECT_EQ(mode_of(fresh), 0604u);

  // Links stay links, whatever they point to.
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink("fresh", folder / "link");
  fs::create_symlink("elsewhere/new", folder / "dangling");
  fs::create_symlink("link", folder / "twice");
  const auto before = fs::last_write_time(fresh);
  const auto inode = [](const fs::path& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  };
  const auto old_inode = inode(fresh);
  ASSERT_TRUE(save(folder / "twice", filter));
  EXPECT_TRUE(fs::is_symlink(folder / "twice") && fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(fresh)));
  EXPECT_TRUE(inode(fresh) != old_inode || fs::last_write_time(fresh) != before)
      << "the target of the link was not written";
  EXPECT_EQ(mode_of(fresh), 0604u);
  ASSERT_TRUE(save(folder / "dangling", filter));
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_TRUE(File::open(folder / "elsewhere/new"));

  EXPECT_EQ(names_in(folder), (std::set<std::string>{"fresh", "elsewhere", "link", "dangling", "twice"}));
  EXPECT_EQ(names_in(folder / "elsewhere"), (std::set<std::string>{"new"}));
}

TEST_F(ContainerTest, WritingKeepsModesAndLinksAndLeavesNothingElse) { expect_careful_writes(folder_, some()); }

TEST_F(ContainerTest, WritingWorksWhereFilesNeedAName) {
  EXPECT_TRUE(in_a_child([&] {
    if (!forbid_unnamed_files()) return false;
    expect_careful_writes(folder_, some());
    auto file = NewFile<LineBloom>::create(folder_ / "fresh", {.lines = 10, .probes = 8});
    if (!file || !file->commit()) return false;
    {
      auto dropped = NewFile<LineBloom>::create(folder_ / "dropped", {.lines = 10, .probes = 8});
      if (!dropped) return false;
    }
    return names_in(folder_).size() == 5 && !HasFailure();
  }));
}

// In a folder that everybody may write to, somebody else's link is not followed, as the kernel would not.
TEST_F(ContainerTest, OnlyTrustedLinksAreFollowed) {
  const auto may = [](mode_t folder_mode, uid_t folder_owner, uid_t link_owner, uid_t user) {
    struct stat folder {};
    struct stat link {};
    folder.st_mode = S_IFDIR | folder_mode;
    folder.st_uid = folder_owner;
    link.st_uid = link_owner;
    return may_follow(link, folder, user);
  };
  EXPECT_TRUE(may(0755, 0, 7, 8));
  EXPECT_TRUE(may(0777, 0, 7, 8)) << "without the sticky bit nothing is safe, and nothing is expected to be";
  EXPECT_TRUE(may(01755, 0, 7, 8));
  EXPECT_TRUE(may(01775, 0, 7, 8)) << "only the group may write there";
  EXPECT_TRUE(may(01777, 0, 8, 8)) << "one's own";
  EXPECT_TRUE(may(01777, 7, 7, 8)) << "the folder's owner's";
  EXPECT_FALSE(may(01777, 0, 7, 8));
  EXPECT_FALSE(may(01777, 0, 7, 0)) << "root least of all";
}

// The same with a real link. Only root can make the link of somebody else.
TEST_F(ContainerTest, SomebodyElsesLinkInASharedFolderIsRefused) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  const fs::path shared = folder_ / "shared";
  fs::create_directory(shared);
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  ASSERT_TRUE(save(folder_ / "mine", some()));
  const std::string before = read(folder_ / "mine");
  const std::string link = shared / "link";
  fs::create_symlink("../mine", link);
  ASSERT_TRUE(save(link, some(5))) << "one's own";
  ASSERT_EQ(lchown(link.c_str(), 65534, 65534), 0);
  ASSERT_TRUE(save(folder_ / "mine", some()));
  const auto saved = save(link, some(5));
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().detail, link + ": cannot write: the link " + link +
                                      " belongs to somebody else, and everybody may write to its folder");
  EXPECT_TRUE(read(folder_ / "mine") == before);
  // Also where it is the second link on the way.
  fs::create_symlink("shared/link", folder_ / "first");
  EXPECT_FALSE(save(folder_ / "first", some(5)));
  EXPECT_TRUE(read(folder_ / "mine") == before);
  EXPECT_EQ(names_in(shared), (std::set<std::string>{"link"}));
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"shared", "mine", "first"}));
}

// A writer that dies between naming its file and renaming it leaves that name; the next one removes it.
TEST_F(ContainerTest, WhatAKilledWriterLeftIsRemovedByTheNextOne) {
  for (const bool unnamed : {true, false}) {
    ASSERT_TRUE(save(folder_ / "f", some()));
    for (int deaths = 0; deaths < 2; ++deaths) {
      ASSERT_FALSE(in_a_child([&] {
        return die_of_renaming() && (unnamed || forbid_unnamed_files()) &&
               static_cast<bool>(save(folder_ / "f", some()));
      }));
      ASSERT_EQ(names_in(folder_).size(), 2u) << "one more than f, and never two";
    }
    ASSERT_TRUE(save(folder_ / "f", some()));
    EXPECT_EQ(names_in(folder_), (std::set<std::string>{"f"}));
  }
}

TEST_F(ContainerTest, WhatALiveWriterHoldsIsNotRemoved) {
  EXPECT_TRUE(in_a_child([&] {
    if (!forbid_unnamed_files()) return false;
    std::vector<NewFile<LineBloom>> writers;
    for (int i = 0; i < 20; ++i) {  // more than there are names to be told by
      auto file = NewFile<LineBloom>::create(folder_ / "f", {.lines = 10, .probes = 8});
      if (!file) return false;
      writers.push_back(*std::move(file));
    }
    if (!save(folder_ / "f", some())) return false;
    if (names_in(folder_).size() != 21) return false;
    for (auto& writer : writers) {
      if (!writer.commit()) return false;
    }
    return names_in(folder_) == std::set<std::string>{"f"};
  }));
}

TEST_F(ContainerTest, ARelativePathIsRelativeToTheWorkingFolder) {
  EXPECT_TRUE(in_a_child([&] {
    return chdir(folder_.c_str()) == 0 && save("here", some()) && File::open("here") && symlink("here", "there") == 0 &&
           save("there", some()) && fs::is_symlink("there") && names_in(".") == std::set<std::string>{"here", "there"};
  }));
}

TEST_F(ContainerTest, AFailedWriteLeavesNothingBehind) {
  const LineBloom filter = some();
  const auto refused = [&](const std::string& path) {
    const auto saved = save(path, filter);
    EXPECT_FALSE(saved);
    const auto made = NewFile<LineBloom>::create(path, {.lines = 1, .probes = 8});
    EXPECT_FALSE(made);
    if (saved || made) return std::string();
    EXPECT_EQ(saved.error().code, Errc::io);
    EXPECT_EQ(saved.error().detail, made.error().detail);
    return saved.error().detail;
  };
  const std::string in = folder_.string() + "/";
  fs::create_directory(folder_ / "d");
  write(folder_ / "file", "not a folder");
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(refused(in + "none/f"), in + "none/f: cannot open the folder " + in + "none/: No such file or directory");
  EXPECT_EQ(refused(in + "file/f"), in + "file/f: cannot open the folder " + in + "file/: Not a directory");
  EXPECT_EQ(refused(in + "d"), in + "d: is a folder");
  EXPECT_EQ(refused(in + "d/"), in + "d/: cannot write: Is a directory");
  EXPECT_EQ(refused(in + "loop"), in + "loop: cannot write: Too many levels of symbolic links");
  EXPECT_EQ(refused("/dev/null"), "/dev/null: is not a regular file");
  EXPECT_EQ(refused(""), ": cannot write: No such file or directory");
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"d", "file", "loop"}));
  EXPECT_EQ(read(folder_ / "file"), "not a folder");
}

TEST_F(ContainerTest, AFullDiskLeavesTheOldFile) {
  const fs::path path = folder_ / "f";
  ASSERT_TRUE(save(path, some()));
  const std::string before = read(path);
  EXPECT_TRUE(in_a_child([&] {
    // Beyond this limit write() fails, as on a full disk.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const LineBloom large = some(10'000);
    const auto replaced = save(path, large);
    const auto fresh = save(folder_ / "g", large);
    const auto made = NewFile<LineBloom>::create(folder_ / "h", large.shape());
    return !replaced && replaced.error().detail == path.string() + ": cannot write: File too large" && !fresh &&
           !made && made.error().detail == (folder_ / "h").string() + ": cannot reserve 640128 bytes: File too large";
  }));
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"f"}));
  EXPECT_TRUE(read(path) == before);
}

TEST_F(ContainerTest, AForbiddenFolderIsAnError) {
  ASSERT_TRUE(save(folder_ / "f", some()));
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  EXPECT_TRUE(in_a_child([&] {
    if (getuid() == 0 && setuid(65534) != 0) return false;  // Nothing is forbidden to root.
    const auto saved = save(folder_ / "f", some());
    return !saved && saved.error().code == Errc::io && saved.error().detail.ends_with("Permission denied");
  }));
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"f"}));
}

// A writer replaces the file as fast as it can and is killed at some point. At every moment, a reader finds one of the
// two filters, complete.
TEST_F(ContainerTest, AReaderSeesTheOldFileOrTheNewOneWhateverHappensToTheWriter) {
  const fs::path path = folder_ / "f";
  LineBloom a(LineShape{.lines = 3000, .probes = 8});
  a.insert("a");
  LineBloom b(LineShape{.lines = 5000, .probes = 8});
  b.insert("b");
  ASSERT_TRUE(save(path, a, {.keys = 1}));
  const auto check = [&] {
    auto file = File::open(path);
    ASSERT_TRUE(file) << file.error().detail;
    auto view = file->as<LineBloomView>();
    ASSERT_TRUE(view);
    ASSERT_EQ(file->header().record.keys, view->shape() == a.shape() ? 1u : 2u);
    ASSERT_TRUE(view->may_contain(view->shape() == a.shape() ? "a" : "b"));
  };
  for (int round = 0; round < 20; ++round) {
    std::array<int, 2> ready;
    ASSERT_EQ(pipe(ready.data()), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      for (;;) {
        if (!save(path, b, {.keys = 2}) || ::write(ready[1], "x", 1) != 1) _exit(1);
        auto file = NewFile<LineBloom>::create(path, a.shape());
        if (!file) _exit(1);
        file->span().insert("a");
        if (!file->commit({.keys = 1})) _exit(1);
      }
    }
    char one = 0;
    ASSERT_EQ(::read(ready[0], &one, 1), 1);
    for (int opens = 0; opens < 1 + round * 3; ++opens) check();
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the writer failed on its own";
    close(ready[0]);
    close(ready[1]);
    check();
  }
  // A process killed between naming the new file and renaming it leaves the temporary name, until the next write.
  for (const std::string& name : names_in(folder_)) EXPECT_TRUE(name == "f" || name.starts_with(".perhaps-")) << name;
  ASSERT_TRUE(save(path, a));
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"f"}));
}

// ------------------------------------------------------------------------------------------------------------ NewFile

TEST_F(ContainerTest, AFileFilledInPlaceEqualsOneThatIsSaved) {
  LineBloom filter(LineShape{.lines = 12'345, .probes = 8}, Hash(3));
  auto file = NewFile<LineBloom>::create(folder_ / "new", filter.shape(), filter.hasher());
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file->span().bytes().data()) % kLineBytes, 0u);
  for (int i = 0; i < 100'000; ++i) filter.insert(i);
  auto moved = *std::move(file);
  for (int i = 0; i < 100'000; ++i) moved.span().insert(i);
  EXPECT_TRUE(names_in(folder_).empty()) << "visible before it is committed";
  ASSERT_TRUE(moved.commit({.keys = 100'000, .capacity = 5}));
  ASSERT_TRUE(save(folder_ / "saved", filter, {.keys = 100'000, .capacity = 5}));
  EXPECT_TRUE(read(folder_ / "new") == read(folder_ / "saved"));
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"new", "saved"}));
}

TEST_F(ContainerTest, AFileFilledInPlaceCanHaveATableThatEndsAnywhere) {
  for (const std::uint64_t bits : {1u, 8u, 9u, 511u, 512u, 513u}) {
    Bloom filter(BloomShape{.bits = bits, .probes = 3});
    auto file = NewFile<Bloom>::create(folder_ / "new", filter.shape());
    ASSERT_TRUE(file);
    filter.insert("hello");
    file->span().insert("hello");
    ASSERT_TRUE(file->commit());
    ASSERT_TRUE(save(folder_ / "saved", filter));
    EXPECT_TRUE(read(folder_ / "new") == read(folder_ / "saved")) << bits;
    ASSERT_TRUE(File::open(folder_ / "new"));
  }
}

TEST_F(ContainerTest, AnUncommittedFileLeavesNothing) {
  ASSERT_TRUE(save(folder_ / "old", some()));
  const std::string before = read(folder_ / "old");
  for (const char* name : {"old", "new"}) {
    auto file = NewFile<LineBloom>::create(folder_ / name, {.lines = 1000, .probes = 8});
    ASSERT_TRUE(file);
    file->span().insert("world");
  }
  EXPECT_EQ(names_in(folder_), (std::set<std::string>{"old"}));
  EXPECT_TRUE(read(folder_ / "old") == before);
}

TEST_F(ContainerTest, AnAbsurdSizeIsAnError) {
  const auto file = NewFile<LineBloom>::create(folder_ / "f", {.lines = UINT64_MAX / 512, .probes = 8});
  ASSERT_FALSE(file);
  const auto disk = NewFile<LineBloom>::create(folder_ / "f", {.lines = std::uint64_t{1} << 50, .probes = 8});
  ASSERT_FALSE(disk);
  EXPECT_EQ(disk.error().code, Errc::io) << disk.error().detail;
  EXPECT_TRUE(names_in(folder_).empty());
}

}  // namespace
}  // namespace perhaps
