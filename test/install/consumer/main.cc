// Uses every part of the package once: inline probes, batch kernels, sizing, algebra, threads, files.
#include <algorithm>
#include <cstdio>
#include <span>
#include <vector>

#include "perhaps/algebra.h"
#include "perhaps/bulk.h"
#include "perhaps/file/container.h"
#include "probes.h"

#define CHECK(what) \
  if (!(what)) return std::printf("%s:%d: %s\n", __FILE__, __LINE__, #what), 1

int main(int argc, char** argv) {
  CHECK(argc == 2);
  perhaps::LineBloom seen({.keys = 200'000, .fpr = 0.01});
  seen.insert("hello");
  CHECK(seen.may_contain("hello"));

  std::vector<std::uint64_t> keys(200'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  perhaps::insert_parallel(seen, std::span<const std::uint64_t>(keys), 2);
  std::vector<std::uint64_t> answers(keys.size() / perhaps::kBatch + 1);
  seen.may_contain(std::span<const std::uint64_t>(keys), answers);
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(answers[i / 64] >> i % 64 & 1);

  perhaps::BlockBloom block({.keys = 1000, .fpr = 0.01});
  block.insert(std::span<const std::uint64_t>(keys).first(1000));
  const int plain = plain_hits(seen, block, 300'000);
  CHECK(plain >= 202'000 && plain < 300'000);
#if defined(__x86_64__)
  const bool has_wide = __builtin_cpu_supports("avx2");
#else
  const bool has_wide = true;
#endif
  if (has_wide) CHECK(wide_hits(seen, block, 300'000) == plain);
  for (const std::uint32_t probes : {8, 5, 11}) {
    perhaps::LineBloom one(perhaps::LineShape{.lines = 50, .probes = probes});
    perhaps::LineBloom two(one.shape());
    perhaps::BlockBloom three(perhaps::BlockShape{.blocks = 100});
    perhaps::BlockBloom four(three.shape());
    const int added = plain_inserts(one.span(), three.span(), 5'000);
    CHECK(added >= 3'000 && added < 15'000);
    if (!has_wide) continue;
    CHECK(wide_inserts(two.span(), four.span(), 5'000) == added);
    CHECK(std::ranges::equal(one.bytes(), two.bytes()) && std::ranges::equal(three.bytes(), four.bytes()));
  }

  auto copy = seen;
  CHECK(perhaps::merge(copy, seen));
  CHECK(perhaps::save(argv[1], copy, {.keys = 200'001}));
  auto file = perhaps::File::open(argv[1]);
  CHECK(file);
  CHECK(file->as<perhaps::LineBloomView>()->may_contain("hello"));
  CHECK(file->any()->may_contain(perhaps::bytes_of("hello")));
  CHECK(!perhaps::File::over(perhaps::bytes_of("not a filter")));
  std::printf("ok: %d hits, %.4f %% predicted\n", plain, 100 * seen.shape().fpr(200'001));
  return 0;
}
