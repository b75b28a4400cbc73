# The storage engines: engine_leveldb and engine_rocksdb, where they are installed. The library and the tool need
# neither; perhaps-sst and the tests that run the engines themselves do.
# Not find_package(leveldb), find_package(RocksDB): both require compressors on which the packages do not depend.
function(perhaps_engine name header library)
  find_path(${name}_INCLUDE_DIR ${header})
  find_library(${name}_LIBRARY ${library})
  if(${name}_INCLUDE_DIR AND ${name}_LIBRARY)
    add_library(engine_${library} INTERFACE)
    target_include_directories(engine_${library} SYSTEM INTERFACE ${${name}_INCLUDE_DIR})
    target_link_libraries(engine_${library} INTERFACE ${${name}_LIBRARY})
  elseif(PERHAPS_TESTS)
    message(FATAL_ERROR "The tests need ${library}: run scripts/setup test, or configure with -DPERHAPS_TESTS=OFF")
  endif()
endfunction()
perhaps_engine(LEVELDB leveldb/table.h leveldb)
perhaps_engine(ROCKSDB rocksdb/sst_file_reader.h rocksdb)
if(TARGET engine_rocksdb)
  # Is it a version that our own filters are for? The header of the plug-in says which.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES ${ROCKSDB_INCLUDE_DIR} ${PROJECT_SOURCE_DIR}/plugins/rocksdb
      ${PROJECT_SOURCE_DIR}/include)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_cxx_source_compiles("#include <perhaps_rocksdb.h>\nstatic_assert(PERHAPS_ROCKSDB_FILTERS);" ROCKSDB_FILTERS)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
endif()

# perhaps_${engine}, which needs that engine: the library of a plug-in, of the sources given, and perhaps_${engine}.h.
# A project that uses the installed plug-in links the engine itself.
function(perhaps_plugin engine)
  set(name perhaps_${engine})
  add_library(${name} STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF EXPORT_NAME ${engine})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC perhaps $<BUILD_INTERFACE:engine_${engine}>)
  if(PERHAPS_INSTALL)
    install(TARGETS ${name} EXPORT perhaps)
    install(FILES ${name}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
  if(PERHAPS_TESTS)
    foreach(test IN ITEMS ${engine}_policy_test ${engine}_database_test)
      perhaps_test(${CMAKE_CURRENT_SOURCE_DIR}/${test}.cc fast)
      target_link_libraries(${test} PRIVATE ${name})
    endforeach()
    if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
      # Counts of reads and what survives a kill are the engine's, which is not instrumented.
      set_tests_properties(${engine}_database_test PROPERTIES
        ENVIRONMENT "GTEST_FILTER=-*Kill*:*FiltersWithStock*:*ReadsFewerBlocks*")
    endif()
  endif()
endfunction()
