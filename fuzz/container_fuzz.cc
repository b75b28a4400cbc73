// Any bytes at all, opened as our own file: never a crash, and where they open, every question is answered and a copy
// answers the same. Each input is tried as it is, and with its checksums repaired, which is how the fuzzer gets past
// them. Seeds: test/golden/perhaps and test/corrupt/perhaps.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "perhaps/container.h"
#include "perhaps/detail/bits.h"

namespace {

using perhaps::Bytes;
using perhaps::detail::load;
using perhaps::detail::store;

void demand(bool truth) {
  if (!truth) std::abort();
}

perhaps::KeyedHash secret() {
  perhaps::KeyedHash::Secret key;
  for (unsigned i = 0; i < key.size(); ++i) key[i] = std::byte(i);
  return perhaps::KeyedHash(key);
}

void question(const perhaps::AnyFilter& filter, std::span<const Bytes> keys, std::span<std::uint64_t> answers) {
  filter.may_contain(keys, answers);
  demand(filter.may_contain(keys.first(64)) == answers[0]);
  std::vector<std::uint64_t> digests(keys.size());
  perhaps::hash_many(filter.digests()->hasher(), keys, digests);
  for (const std::uint64_t digest : digests) filter.digests()->prefetch(digest);
  std::array<std::uint64_t, 2> again{};
  filter.digests()->may_contain(digests, again);
  demand(std::equal(again.begin(), again.end(), answers.begin()));
}

void open(Bytes bytes, const perhaps::OpenOptions& options) {
  auto file = perhaps::File::over(bytes, options);
  if (!file) {
    demand(!file.error().detail.empty());
    return;
  }
  std::vector<std::string> text;
  for (int i = 0; i < 100; ++i) text.push_back(std::to_string(i * i));
  std::vector<Bytes> keys;
  for (const std::string& key : text) keys.push_back(perhaps::bytes_of(key));

  std::array<std::uint64_t, 2> answers{};
  const auto filter = file->any();
  question(*filter, keys, answers);
  const auto description = filter->describe();
  demand(description.fill >= 0 && description.fpr >= 0 && description.fpr <= 1 + 1e-9);

  auto copy = file->load();
  demand(static_cast<bool>(copy));
  std::array<std::uint64_t, 2> of_copy{};
  question(**copy, keys, of_copy);
  demand(of_copy == answers);
  (void)(*copy)->insert(keys);
  question(**copy, keys, of_copy);
  demand(of_copy[0] == ~std::uint64_t{0} && of_copy[1] == (std::uint64_t{1} << 36) - 1);
  demand(static_cast<bool>((*copy)->unite(*filter)));
  demand(static_cast<bool>((*copy)->intersect(*filter)));
  if (auto half = (*copy)->fold()) question(**half, keys, of_copy);
}

// What a writer would have put there, as far as the numbers allow. Keyed filters get our key's check value.
std::vector<std::byte> repaired(Bytes input) {
  std::vector<std::byte> file(input.begin(), input.end());
  if (file.size() < 128) return file;
  constexpr std::array<unsigned char, 8> kMagic = {0x89, 'p', 'e', 'r', 'h', 'a', 'p', 's'};
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  store<std::uint32_t>(file.data() + 8, 1);
  std::uint64_t header = load<std::uint32_t>(file.data() + 12);
  if (header < 128 || header > file.size()) {
    header = 128;
    store<std::uint32_t>(file.data() + 12, 128);
  }
  if (load<std::uint32_t>(file.data() + 20) == 2) store(file.data() + 24, secret().check_value());
  store<std::uint64_t>(file.data() + 48, file.size());
  const std::uint64_t table = 72 + 8 * std::uint64_t{load<std::uint32_t>(file.data() + 56)};
  const std::uint32_t sections = load<std::uint32_t>(file.data() + 60);
  for (std::uint64_t i = 0, at = table; i < sections && at + 32 <= header; ++i, at += 32) {
    const auto offset = load<std::uint64_t>(file.data() + at + 8);
    const auto size = load<std::uint64_t>(file.data() + at + 16);
    if (offset > file.size() || size > file.size() - offset) continue;
    const std::uint64_t padded = std::min((size + 63) / 64 * 64, file.size() - offset);
    store(file.data() + at + 24, perhaps::Hash{}(Bytes(file).subspan(offset, padded)).value);
  }
  store<std::uint64_t>(file.data() + 64, 0);
  store(file.data() + 64, perhaps::Hash{}(Bytes(file).first(header)).value);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy at its exact size, so that the address sanitizer sees a step past its end.
  const auto* start = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> input(start, start + size);
  const std::vector<std::byte> valid = repaired(input);
  for (const Bytes bytes : {Bytes(input), Bytes(valid)}) {
    for (const bool verify : {true, false}) {
      open(bytes, {.verify = verify, .secret = {}});
      open(bytes, {.verify = verify, .secret = secret()});
    }
  }
  return 0;
}
