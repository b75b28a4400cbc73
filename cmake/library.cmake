# The library itself. Nothing third-party appears in its headers or its link interface.
add_library(perhaps
  src/algebra.cc
  src/any_filter.cc
  src/container.cc
  src/hash/siphash.cc
  src/hash/xxh3.cc
  src/kernel/dispatch.cc
  src/kernel/portable.cc
  src/memory.cc
  src/sizing.cc)
add_library(perhaps::perhaps ALIAS perhaps)
target_include_directories(perhaps PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                                          $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(perhaps PUBLIC cxx_std_20)
target_compile_definitions(perhaps PUBLIC PERHAPS_CHECK_DIGESTS=$<BOOL:${PERHAPS_CHECK_DIGESTS}>
                                   PRIVATE PERHAPS_SIMD=$<BOOL:${PERHAPS_SIMD}>)
target_link_libraries(perhaps PUBLIC Threads::Threads)
target_include_directories(perhaps PRIVATE src)
# xxHash is inlined where it is used (XXH_INLINE_ALL): its headers are needed, its library is not.
target_include_directories(perhaps SYSTEM PRIVATE ${XXHASH_INCLUDE_DIRS})
if(PERHAPS_SIMD)
  pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
  target_sources(perhaps PRIVATE src/kernel/simd.cc)
  target_link_libraries(perhaps PRIVATE PkgConfig::HWY)
endif()
set_target_properties(perhaps PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
