# The library: compiled once, linked twice.
#   perhaps          libperhaps.a; what our own tools, tests and benchmarks use (they look behind the API)
#   perhaps_shared   libperhaps.so; exports what the public headers declare with PERHAPS_API and nothing else
#   perhaps::perhaps the one an embedding project should name
# Nothing third-party appears in the headers. xxHash is inlined where it is used (XXH_INLINE_ALL): its headers are
# needed, its library is not. Highway's library is: it is what asks the CPU which instructions it has.
pkg_check_modules(XXHASH REQUIRED libxxhash)

file(GLOB perhaps_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  src/*.cc src/build/*.cc src/format/*.cc src/hash/*.cc src/kernel/*.cc src/sizing/*.cc)
list(REMOVE_ITEM perhaps_sources src/kernel/simd.cc)
add_library(perhaps_objects OBJECT ${perhaps_sources})
# Each file has small names of its own, whatever an embedding project does with its files.
set_target_properties(perhaps_objects PROPERTIES UNITY_BUILD OFF)
target_compile_definitions(perhaps_objects PRIVATE PERHAPS_SIMD=$<BOOL:${PERHAPS_SIMD}>)
target_include_directories(perhaps_objects PRIVATE src)
target_include_directories(perhaps_objects SYSTEM PRIVATE ${XXHASH_INCLUDE_DIRS})
# A third of the time to compile a file goes into these. Not with gcc: 12 then takes warnings about std::string for ours
# (-Warray-bounds in moved errors), and someone has to see whether each file includes what it uses.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  target_precompile_headers(perhaps_objects PRIVATE <algorithm> <array> <cmath> <cstring> <functional> <memory>
    <optional> <span> <string> <string_view> <vector> "include/perhaps/format.h")
endif()
if(PERHAPS_TESTS AND CMAKE_CXX_FLAGS MATCHES "fsanitize=address")
  # Every family meets every hasher in these: optimised, they take a fourth of the time to compile the library. Not
  # under ThreadSanitizer, whose tests then run longer than was saved.
  set_source_files_properties(src/any_filter.cc src/container.cc PROPERTIES
    COMPILE_OPTIONS -O0 SKIP_PRECOMPILE_HEADERS ON)
endif()

add_library(perhaps STATIC $<TARGET_OBJECTS:perhaps_objects>)
set(perhaps_libraries perhaps)
if(PERHAPS_SHARED)
  add_library(perhaps_shared SHARED $<TARGET_OBJECTS:perhaps_objects>)
  list(APPEND perhaps_libraries perhaps_shared)
  # Hidden visibility keeps our own internals in; the script also keeps in what the standard library's templates emit.
  set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
  target_link_options(perhaps_shared PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
  # Before 1.0 the ABI may change with every minor version.
  set_target_properties(perhaps_shared PROPERTIES
    OUTPUT_NAME perhaps EXPORT_NAME shared LINK_DEPENDS ${exports}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(perhaps PROPERTIES EXPORT_NAME static)

foreach(target IN ITEMS perhaps_objects ${perhaps_libraries})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_definitions(${target} PUBLIC PERHAPS_CHECK_DIGESTS=$<BOOL:${PERHAPS_CHECK_DIGESTS}>)
  target_link_libraries(${target} PUBLIC Threads::Threads)
endforeach()

if(PERHAPS_SIMD)
  pkg_check_modules(HWY REQUIRED libhwy)
  target_sources(perhaps_objects PRIVATE src/kernel/simd.cc)
  target_include_directories(perhaps_objects SYSTEM PRIVATE ${HWY_INCLUDE_DIRS})
  target_compile_options(perhaps_objects PRIVATE ${HWY_CFLAGS_OTHER})
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
