// Promise: every later library reads a file of version 2 and writes it again bit for bit; doc/container.md is true.
// Would notice: one changed byte of a golden file, of the page's hexdump, or of its hash values.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "perhaps/file/container.h"

namespace perhaps {
namespace {

namespace fs = std::filesystem;

const std::string kData = PERHAPS_TEST_DATA;

KeyedHash keyed() {
  KeyedHash::Secret secret;
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = std::byte(i);
  return KeyedHash(secret);
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

class ContainerGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("container_golden_" + std::to_string(getpid()) + info->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

template <class F>
F golden_filter(typename F::Shape shape, typename F::hasher_type hasher) {
  F filter(shape, hasher);
  for (const std::string_view text : {"", "hello", "world", "42"}) filter.insert(text);
  for (const int number : {0, 1, 42, -1}) filter.insert(number);
  return filter;
}

template <class F>
void expect_golden(const fs::path& folder, const std::string& name, typename F::Shape shape,
                   typename F::hasher_type hasher, const Facts& about = {}) {
  const fs::path golden = fs::path(kData) / "golden/perhaps" / (name + ".perhaps");
  ASSERT_TRUE(save(folder / name, golden_filter<F>(shape, hasher), {.keys = 8, .capacity = 20, .about = about}));
  if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr)
    fs::copy_file(folder / name, golden, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(read(folder / name) == read(golden)) << name << ": the bytes of version 2 have changed";

  OpenOptions options;
  if constexpr (std::same_as<typename F::hasher_type, KeyedHash>) options.secret = hasher;
  auto file = File::open(golden, options);
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(file->header().record.keys, 8u);
  EXPECT_EQ(file->header().record.capacity, 20u);
  EXPECT_EQ(file->header().record.about, about);
  auto view = file->as<typename F::View>();
  ASSERT_TRUE(view) << view.error().detail;
  EXPECT_EQ(view->shape(), shape);
  EXPECT_EQ(view->hasher(), hasher);
  for (const std::string_view text : {"", "hello", "world", "42"}) EXPECT_TRUE(view->may_contain(text)) << text;
  for (const int number : {0, 1, 42, -1}) EXPECT_TRUE(view->may_contain(number)) << number;
}

TEST_F(ContainerGoldenTest, GoldenFilesAreWrittenAndReadToTheBit) {
  using KeyedBloom = BasicBloom<Multiplicative, KeyedHash>;
  using KeyedBlockBloom = BasicBlockBloom<KeyedHash>;
  expect_golden<Bloom>(folder_, "classic", {.bits = 777, .probes = 7}, Hash(1));
  expect_golden<LineBloom>(folder_, "line", {.lines = 3, .probes = 8}, Hash(1));
  expect_golden<LineBloom>(folder_, "line-11-probes", {.lines = 2, .probes = 11}, Hash(1));
  expect_golden<BlockBloom>(folder_, "block", {.blocks = 5}, Hash(1));
  expect_golden<LineBloom>(folder_, "line-about", {.lines = 3, .probes = 8}, Hash(1),
                           {{"recipe", "lower"}, {"note", "two\nlines"}});
  expect_golden<KeyedBloom>(folder_, "classic-keyed", {.bits = 777, .probes = 7}, keyed());
  expect_golden<BasicLineBloom<KeyedHash>>(folder_, "line-keyed", {.lines = 3, .probes = 8}, keyed());
  expect_golden<KeyedBlockBloom>(folder_, "block-keyed", {.blocks = 5}, keyed());
}

// The page is the specification: its hexdump is a real file, and its hash values are what the hashers return.
TEST_F(ContainerGoldenTest, TheDocumentedExampleAndHashValuesAreTrue) {
  const std::string page = read(kData + "/../doc/container.md");
  const auto expect_row = [&](const std::string& row) {
    EXPECT_NE(page.find("\n" + row), std::string::npos) << "doc/container.md should have: " << row;
  };

  LineBloom filter(LineShape{.lines = 1, .probes = 8});
  filter.insert("hello");
  filter.insert(42);
  ASSERT_TRUE(save(folder_ / "example", filter, {.keys = 2, .capacity = 50}));
  const std::string example = read(folder_ / "example");
  if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr)
    fs::copy_file(folder_ / "example", kData + "/golden/perhaps/example.perhaps", fs::copy_options::overwrite_existing);
  EXPECT_TRUE(example == read(kData + "/golden/perhaps/example.perhaps"));
  ASSERT_EQ(example.size(), 192u);
  for (std::size_t from = 0; from < example.size(); from += 16) {
    std::array<char, 24> offset;
    std::snprintf(offset.data(), offset.size(), "%08zx ", from);
    std::string row = offset.data();
    for (std::size_t i = 0; i < 16; ++i) {
      std::array<char, 8> byte;
      std::snprintf(byte.data(), byte.size(), i == 8 ? "  %02x" : " %02x",
                    static_cast<unsigned>(static_cast<unsigned char>(example[from + i])));
      row += byte.data();
    }
    expect_row(row);
  }

  const auto hex = [](std::uint64_t value) {
    std::array<char, 24> text;
    std::snprintf(text.data(), text.size(), "`%016llx`", static_cast<unsigned long long>(value));
    return std::string(text.data());
  };
  const std::uint64_t forty_two = 42;
  const Bytes eight = std::as_bytes(std::span(&forty_two, 1));
  const auto row = [&](const std::string& key, auto digest) {
    expect_row("| " + key + " | " + hex(digest(Hash())) + " | " + hex(digest(Hash(1))) + " | " + hex(digest(keyed())) +
               " |");
  };
  for (const std::string text : {"", "hello", "42"}) {
    row("text `\"" + text + "\"`", [&](const auto& h) { return digest_of(h, text).value; });
  }
  row("the bytes `2a 00 00 00 00 00 00 00`", [&](const auto& h) { return digest_of(h, eight).value; });
  for (const int n : {0, 1, 42, -1}) {
    row("integer `" + std::to_string(n) + "`", [&](const auto& h) { return digest_of(h, n).value; });
  }
  expect_row("| check value | | | " + hex(keyed().check_value()) + " |");
  // CPython also hashes text with SipHash-1-3, and PYTHONHASHSEED=0 is the all-zero secret.
  expect_row("| `\"siphash\"`, all-zero secret | | | " +
             hex(digest_of(KeyedHash(KeyedHash::Secret{}), "siphash").value) + " |");
}

}  // namespace
}  // namespace perhaps
