// Runs the kernel comparison of fuzz/kernels_fuzz.cc with fixed inputs where there is no fuzzer: in an ARM binary under
// qemu-user.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "kernel/instruction_set.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main() {
  bool neon = false;
  for (const auto* row : perhaps::kernel::instruction_sets()) neon |= std::string_view(row->name) == "neon";
  if (!neon) return std::puts("no NEON row in this binary"), 1;

  constexpr std::uint64_t kSeed = 20;
  std::mt19937_64 random(kSeed);
  constexpr int kInputs = 4000;
  for (int i = 0; i < kInputs; ++i) {
    std::vector<std::uint64_t> input(2 + random() % 100);
    for (auto& word : input) word = random();
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size() * 8);
  }
  std::printf("neon: %d inputs from seed %llu, every bit equals the reference\n", kInputs,
              static_cast<unsigned long long>(kSeed));
  return 0;
}
