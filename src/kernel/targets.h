// Which instruction sets Highway compiles the kernels for, and the choice among them. The file of a family is
//
//   #define PERHAPS_KERNELS "kernel/<family>.inc"      the kernels in vectors, and simd_kernels(InstructionSet&)
//   #define PERHAPS_KERNELS_ON PERHAPS_ON_TARGET       or PERHAPS_ON_CPU, PERHAPS_ON_BMI2
//   #include "kernel/each_target.inc"
//   namespace perhaps::kernel {
//   namespace { void portable_kernels(InstructionSet&); }
//   PERHAPS_CHOOSE_KERNELS(<family>)                   <family>_kernels(Target, InstructionSet&)
//   }
#pragma once

#if PERHAPS_SIMD
// SSSE3 adds nothing over SSE4 here, nor VBMI over AVX-512; SVE has no fixed width to cut a line into.
#define PERHAPS_NOT_COMPILED (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// Under a sanitizer one width of each kind is enough, half a line in a register and a quarter of one: they take long to
// compile, and the release build compares all of them.
#if defined(PERHAPS_FEW_TARGETS)
#define HWY_DISABLED_TARGETS (PERHAPS_NOT_COMPILED | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS PERHAPS_NOT_COMPILED
#endif
#include <hwy/detect_targets.h>

// Not for a baseline without vectors: the portable kernels are as good.
#define PERHAPS_ON_TARGET (PERHAPS_ON_CPU || HWY_TARGET == HWY_WASM)
// Shifts of 64-bit lanes by different numbers, which Highway 1.0 lacks for WebAssembly.
#define PERHAPS_ON_CPU \
  (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON)
// BMI2, whose PDEP finds the n-th set bit of a word.
#define PERHAPS_ON_BMI2 (HWY_TARGET == HWY_AVX2)
#endif

#if PERHAPS_SIMD && (HWY_TARGETS & HWY_SSE4)
#define PERHAPS_CASE_SSE4(set) \
  case Target::sse4:           \
    return N_SSE4::simd_kernels(set);
#else
#define PERHAPS_CASE_SSE4(set)
#endif
#if PERHAPS_SIMD && (HWY_TARGETS & HWY_AVX2)
#define PERHAPS_CASE_AVX2(set) \
  case Target::avx2:           \
    return N_AVX2::simd_kernels(set);
#else
#define PERHAPS_CASE_AVX2(set)
#endif
#if PERHAPS_SIMD && (HWY_TARGETS & HWY_AVX3)
#define PERHAPS_CASE_AVX512(set) \
  case Target::avx512:           \
    return N_AVX3::simd_kernels(set);
#else
#define PERHAPS_CASE_AVX512(set)
#endif
#if PERHAPS_SIMD && (HWY_TARGETS & HWY_NEON)
#define PERHAPS_CASE_NEON(set) \
  case Target::neon:           \
    return N_NEON::simd_kernels(set);
#else
#define PERHAPS_CASE_NEON(set)
#endif

#if PERHAPS_SIMD && (HWY_TARGETS & HWY_WASM)
#define PERHAPS_CASE_SIMD128(set) \
  case Target::simd128:           \
    return N_WASM::simd_kernels(set);
#else
#define PERHAPS_CASE_SIMD128(set)
#endif

#define PERHAPS_CHOOSE_KERNELS(family)                        \
  void family##_kernels(Target target, InstructionSet& set) { \
    switch (target) {                                         \
      case Target::portable:                                  \
        return portable_kernels(set);                         \
        PERHAPS_CASE_SSE4(set)                                \
        PERHAPS_CASE_AVX2(set)                                \
        PERHAPS_CASE_AVX512(set)                              \
        PERHAPS_CASE_NEON(set)                                \
        PERHAPS_CASE_SIMD128(set)                             \
      default:                                                \
        return;                                               \
    }                                                         \
  }
