# The storage engines: engine_leveldb and engine_rocksdb, where they are installed. The library and the tool need
# neither; perhaps-sst and the tests that ask the engines themselves do.
# Not find_package(leveldb), find_package(RocksDB): both ask for compressors that the packages do not bring along.
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
