# The library: compiled once, linked twice.
#   perhaps          libperhaps.a; what our own tools, tests and benchmarks use (they look behind the API)
#   perhaps_shared   libperhaps.so; exports what the public headers declare with PERHAPS_API and nothing else
#   perhaps::perhaps the one an embedding project should name
# Nothing third-party appears in the headers. xxHash is inlined where it is used (XXH_INLINE_ALL): its headers are
# needed, its library is not. Highway's library is: it detects which instructions the CPU has.
if(CMAKE_CROSSCOMPILING)
  # A header without code of any machine. Not its whole folder, which has this machine's C library.
  set(XXHASH_INCLUDE_DIRS ${PROJECT_BINARY_DIR}/headers)
  file(MAKE_DIRECTORY ${XXHASH_INCLUDE_DIRS})
  file(CREATE_LINK /usr/include/xxhash.h ${XXHASH_INCLUDE_DIRS}/xxhash.h SYMBOLIC)
else()
  pkg_check_modules(XXHASH REQUIRED libxxhash)
endif()

# Three parts, by how they are optimised in a release. What a key passes through on its way to its bit is hot. No key
# passes through the small ones, and the others are a fifth larger at -O3 and no faster.
file(GLOB sources_small CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  src/any/explain.cc src/any/families.cc src/any/own_filter.cc src/any/sizes.cc src/engine/allocate.cc src/file/*.cc
  src/sizing/*.cc src/c/bytes.cc src/c/describe.cc src/c/handle.cc src/c/options.cc src/c/status.cc
  src/format/codec.cc src/format/params.cc src/format/redis_rdb.cc src/format/registry.cc
  # Their keys go to the kernels of our own families: half the size, the same speed.
  src/format/parquet.cc src/format/redisbloom_codecs.cc src/format/rocksdb.cc src/format/rocksdb_table.cc)
file(GLOB sources_warm CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  src/any/any_filter.cc src/c/*.cc src/format/*.cc)
list(REMOVE_ITEM sources_warm ${sources_small})
file(GLOB sources_hot CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  src/*.cc src/any/*.cc src/build/*.cc src/engine/*.cc src/exact/*.cc src/hash/*.cc src/kernel/*.cc src/redisbloom/*.cc)
list(REMOVE_ITEM sources_hot ${sources_warm} ${sources_small})
set(perhaps_parts perhaps_hot perhaps_warm perhaps_small)

set(perhaps_options
  # What a program does not call can be left out of it (python/CMakeLists.txt does).
  -ffunction-sections
  # Sizes are computed with real numbers and must be the same on every machine: no fused multiplications, and not the
  # 80 bits of the x87 registers.
  -ffp-contract=off)
if(CMAKE_SIZEOF_VOID_P EQUAL 4 AND NOT EMSCRIPTEN)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag("-msse2 -mfpmath=sse" PERHAPS_HAS_SSE_MATHS)
  if(PERHAPS_HAS_SSE_MATHS)
    list(APPEND perhaps_options -msse2 -mfpmath=sse)
  endif()
endif()
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # gcc 12 sees overflows in std::string that are not there (gcc PR 105651), and a precompiled system header is no
  # longer one.
  list(APPEND perhaps_options -Wno-array-bounds -Wno-stringop-overflow -Wno-restrict -Wno-stringop-overread)
endif()

# Not as WebAssembly: the size of its modules was measured without groups.
set(perhaps_groups ${PERHAPS_UNITY})
if(PERHAPS_WEB)
  set(perhaps_groups OFF)
endif()
foreach(part IN ITEMS hot warm small)
  set(target perhaps_${part})
  add_library(${target} OBJECT ${sources_${part}})
  # File by file but for the groups below, whatever an embedding project does with its files.
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${perhaps_groups} UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE ${perhaps_options})
  # Files may have more than 2 GiB on 32-bit machines as well.
  target_compile_definitions(${target} PRIVATE PERHAPS_SIMD=$<BOOL:${PERHAPS_SIMD}> _FILE_OFFSET_BITS=64)
  target_include_directories(${target} PRIVATE src)
  target_include_directories(${target} SYSTEM PRIVATE ${XXHASH_INCLUDE_DIRS})
  # A third of the time to compile a file goes into these. Only in our own build: `make lint` and an embedding project
  # see whether each file includes what it uses. gcc accepts them at any -O but -Os, clang at any but -O0.
  if(PROJECT_IS_TOP_LEVEL AND part STREQUAL warm)
    target_precompile_headers(${target} REUSE_FROM perhaps_hot)
  elseif(PROJECT_IS_TOP_LEVEL)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <bit> <charconv> <cmath> <cstring> <functional>
      <limits> <memory> <optional> <span> <string> <string_view> <vector> "include/perhaps/format/format.h")
  endif()
endforeach()

# Files that a program needs together or not at all are compiled together, because most of the time goes into what they
# all include. The others stay apart: a program takes whole files from libperhaps.a.
function(perhaps_compiled_together group)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
endfunction()
perhaps_compiled_together(classic_codecs src/format/cassandra.cc src/format/datasketches.cc src/format/dcso.cc
  src/format/go_bloom.cc src/format/guava.cc src/format/hadoop.cc src/format/lab.cc)
perhaps_compiled_together(other_codecs src/format/fuse.cc src/format/mini_lsm.cc src/format/mmh3.cc src/format/nori.cc
  src/format/spark.cc src/format/xor.cc)
perhaps_compiled_together(any src/any/families.cc src/any/own_filter.cc src/any/sizes.cc)
perhaps_compiled_together(container src/file/about.cc src/file/container_header.cc src/file/container_write.cc)
perhaps_compiled_together(writer src/file/link_target.cc src/file/temp_file.cc src/file/writer.cc)
perhaps_compiled_together(c src/c/bytes.cc src/c/describe.cc src/c/handle.cc src/c/options.cc)
perhaps_compiled_together(c_keys src/c/change.cc src/c/make.cc src/c/query.cc)

set_source_files_properties(src/c/status.cc PROPERTIES COMPILE_DEFINITIONS PERHAPS_VERSION="${PROJECT_VERSION}")
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT PERHAPS_PORTABLE)
  target_compile_options(perhaps_warm PRIVATE -O2
    $<$<CXX_COMPILER_ID:GNU>:-falign-functions=1 -falign-jumps=1 -falign-loops=1>)
  target_compile_options(perhaps_small PRIVATE -Os)
endif()
# The loops of the kernels are some twenty instructions long: where one crosses a 32-byte boundary decides 10 % of its
# time.
file(GLOB kernel_sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/kernel/*.cc)
set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS -falign-loops=32)
# The preset of WebAssembly builds for size. It says -finline-functions because emscripten turns inlining off at -Oz:
# then no accessor of a vector is inlined, and a module has twice the size. Only the families that are used most are
# worth -O3; the kernels of the window alone would be a tenth of the module.
if(PERHAPS_WEB)
  set(perhaps_fast src/kernel/line.cc src/kernel/block.cc src/kernel/classic.cc src/hash/xxhash.cc)
  set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "")
  set_source_files_properties(${perhaps_fast} PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
endif()

# Every family meets every hasher in any_filter.cc: optimised, it takes a fifth of the time to compile the library. Two
# kernels, all inlined, take ten times as long (under AddressSanitizer fuse.cc 31 and 2.4 s). The other kernels run so
# often in the tests that optimising them pays. Under ThreadSanitizer all are optimised, or its tests would lose more
# time than compiling saves.
set(unoptimised "")
if(PERHAPS_PORTABLE AND NOT PERHAPS_WEB OR PERHAPS_TESTS AND CMAKE_CXX_FLAGS MATCHES "fsanitize=address")
  set(unoptimised src/any/any_filter.cc src/kernel/fuse.cc src/kernel/window.cc)
endif()
set_source_files_properties(${unoptimised} PROPERTIES COMPILE_OPTIONS -O0 SKIP_PRECOMPILE_HEADERS ON)
if(PERHAPS_TESTS AND CMAKE_CXX_FLAGS MATCHES "fsanitize")
  foreach(part IN LISTS perhaps_parts)  # all, for their common precompiled header
    target_compile_definitions(${part} PRIVATE PERHAPS_FEW_TARGETS)
  endforeach()
endif()

set(perhaps_compiled "")
foreach(part IN LISTS perhaps_parts)
  list(APPEND perhaps_compiled $<TARGET_OBJECTS:${part}>)
endforeach()
add_library(perhaps STATIC ${perhaps_compiled})
set(perhaps_libraries perhaps)
if(PERHAPS_SHARED)
  add_library(perhaps_shared SHARED ${perhaps_compiled})
  list(APPEND perhaps_libraries perhaps_shared)
  # Hidden visibility keeps our own internals in; the script also keeps in what the standard library's templates emit.
  set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
  target_link_options(perhaps_shared PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
  # The number goes up with every release that breaks the ABI, and only then (doc/compatibility.md).
  set_target_properties(perhaps_shared PROPERTIES
    OUTPUT_NAME perhaps EXPORT_NAME shared LINK_DEPENDS ${exports}
    VERSION ${PROJECT_VERSION} SOVERSION 0)
endif()
set_target_properties(perhaps PROPERTIES EXPORT_NAME static)

# A classic filter sets one byte of a shared table at a time. gcc 12 has no instruction for that on riscv64 and calls
# libatomic: also from the headers, so whoever includes them needs it.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("int main(int n, char** v) { return __atomic_fetch_or(v[n - 1], 1, __ATOMIC_RELAXED); }"
                          PERHAPS_HAS_BYTE_ATOMICS)
set(perhaps_atomic_library "")
if(NOT PERHAPS_HAS_BYTE_ATOMICS)
  set(perhaps_atomic_library atomic)
endif()

foreach(target IN LISTS perhaps_parts perhaps_libraries)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PUBLIC PERHAPS_CHECK_DIGESTS=$<BOOL:${PERHAPS_CHECK_DIGESTS}>)
  target_link_libraries(${target} PUBLIC Threads::Threads ${perhaps_atomic_library})
endforeach()

if(PERHAPS_SIMD)
  pkg_check_modules(HWY REQUIRED libhwy)
  foreach(part IN ITEMS hot warm)  # both, for their common precompiled header
    target_include_directories(perhaps_${part} SYSTEM PRIVATE ${HWY_INCLUDE_DIRS})
    target_compile_options(perhaps_${part} PRIVATE ${HWY_CFLAGS_OTHER})
  endforeach()
  foreach(target IN LISTS perhaps_libraries)
    target_link_directories(${target} PRIVATE ${HWY_LIBRARY_DIRS})
    target_link_libraries(${target} PRIVATE ${HWY_LIBRARIES})
  endforeach()
endif()

add_library(perhaps::static ALIAS perhaps)
if(PERHAPS_SHARED AND BUILD_SHARED_LIBS)
  add_library(perhaps::perhaps ALIAS perhaps_shared)
else()
  add_library(perhaps::perhaps ALIAS perhaps)
endif()
