// Which instruction sets Highway compiles the kernels for, and how a family's file tells them apart. A file is
//
//   #if PERHAPS_SIMD
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernel/<file>.cc"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   #if PERHAPS_ON_TARGET
//   HWY_BEFORE_NAMESPACE();
//   namespace perhaps::kernel::HWY_NAMESPACE {         void simd_kernels(InstructionSet& set);
//   HWY_AFTER_NAMESPACE();
//   #endif
//   #endif
//   #if !PERHAPS_SIMD || HWY_ONCE
//   namespace perhaps::kernel {                        void portable_kernels(InstructionSet& set);
//   void <family>_kernels(Target target, InstructionSet& set) { PERHAPS_FOR_TARGET(target, set) }
//   #endif
#pragma once

#if PERHAPS_SIMD
// SSSE3 adds nothing over SSE4 here, nor VBMI over AVX-512; SVE has no fixed width to cut a line into.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/detect_targets.h>

// Not for a baseline without vectors: the portable kernels are as good.
#define PERHAPS_ON_TARGET \
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

#define PERHAPS_FOR_TARGET(target, set) \
  switch (target) {                     \
    case Target::portable:              \
      return portable_kernels(set);     \
      PERHAPS_CASE_SSE4(set)            \
      PERHAPS_CASE_AVX2(set)            \
      PERHAPS_CASE_AVX512(set)          \
      PERHAPS_CASE_NEON(set)            \
    default:                            \
      return;                           \
  }
// For kernels that have a form for BMI2 only.
#define PERHAPS_FOR_BMI2(target, set) \
  switch (target) {                   \
    case Target::portable:            \
      return portable_kernels(set);   \
      PERHAPS_CASE_AVX2(set)          \
    default:                          \
      return;                         \
  }
