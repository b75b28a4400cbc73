# Install rules: both libraries, the headers, find_package(perhaps), pkg-config perhaps, the tool with its man page,
# completions and pages, the programs for storage engines. debian/ makes packages of what is installed.
include(CMakePackageConfigHelpers)

install(TARGETS ${perhaps_libraries} EXPORT perhaps)
install(DIRECTORY include/perhaps DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES include/perhaps.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/perhaps)
install(EXPORT perhaps NAMESPACE perhaps:: DESTINATION ${package_dir} FILE perhaps-targets.cmake)
configure_package_config_file(cmake/perhaps-config.cmake.in perhaps-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break the API.
write_basic_package_version_file(perhaps-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/perhaps-config.cmake ${PROJECT_BINARY_DIR}/perhaps-config-version.cmake
        DESTINATION ${package_dir})

# The .pc file is relocatable: it finds the prefix from its own place.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
if(PERHAPS_CHECK_DIGESTS)
  set(check_digests 1)
else()
  set(check_digests 0)
endif()
set(private_libraries "")
foreach(library IN LISTS HWY_LIBRARIES)
  string(APPEND private_libraries " -l${library}")
endforeach()
set(atomic_library "")
if(perhaps_atomic_library)
  set(atomic_library " -l${perhaps_atomic_library}")
endif()
configure_file(cmake/perhaps.pc.in perhaps.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/perhaps.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(engine_title_leveldb LevelDB)
set(engine_title_rocksdb RocksDB)
foreach(engine IN ITEMS leveldb rocksdb)
  if(TARGET perhaps_${engine})
    set(engine_title ${engine_title_${engine}})
    configure_file(cmake/perhaps-plugin.pc.in perhaps_${engine}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/perhaps_${engine}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()

# The pages as they lie in the tree, so that their links hold; the headers are elsewhere.
set(share ${PROJECT_BINARY_DIR}/share)
file(MAKE_DIRECTORY ${share})
file(RELATIVE_PATH prefix_from_doc /${CMAKE_INSTALL_DOCDIR} /)
file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} *.md)
foreach(page IN LISTS pages)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} text)
  string(REPLACE "](include/" "](${prefix_from_doc}${CMAKE_INSTALL_INCLUDEDIR}/" text "${text}")
  file(CONFIGURE OUTPUT share/${page} CONTENT "${text}" @ONLY)
  install(FILES ${share}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY doc DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")

if(TARGET perhaps-redis)
  # The line that a server needs, with the folder that was installed to.
  string(CONCAT conf [[${CMAKE_INSTALL_PREFIX}/]] ${CMAKE_INSTALL_DATAROOTDIR} /doc/perhaps-redis/examples)
  string(CONCAT line "loadmodule " [[${CMAKE_INSTALL_PREFIX}/]] ${CMAKE_INSTALL_LIBDIR} /perhaps/perhaps-redis.so)
  install(CODE "file(WRITE \"\$ENV{DESTDIR}${conf}/perhaps-redis.conf\" \"${line}\\n\")")
endif()

# Programs that link a storage engine are commands of the tool, which finds them there. mpirun looks for perhaps-mpi in
# PATH.
set(described "")
set(descriptions "")
foreach(program IN ITEMS perhaps-sst perhaps-bench-lsm perhaps-mpi)
  if(TARGET ${program})
    if(program STREQUAL perhaps-mpi)
      install(TARGETS ${program})
    else()
      install(TARGETS ${program} DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/perhaps)
    endif()
    list(APPEND described --with ${share}/${program}.txt)
    list(APPEND descriptions ${share}/${program}.txt)
    add_custom_command(OUTPUT ${share}/${program}.txt COMMAND ${program} --describe > ${share}/${program}.txt
                       DEPENDS ${program} VERBATIM)
    file(WRITE ${share}/${program}.1 ".so man1/perhaps.1\n")
    install(FILES ${share}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endif()
endforeach()
if(TARGET perhaps-cli)
  install(TARGETS perhaps-cli)
  # The tool writes its own man page and completions, from the table that also parses its arguments.
  set(manual ${share}/perhaps.1)
  set(completion_bash ${share}/perhaps.bash)
  set(completion_zsh ${share}/_perhaps)
  set(completion_fish ${share}/perhaps.fish)
  add_custom_command(
    OUTPUT ${manual} ${completion_bash} ${completion_zsh} ${completion_fish}
    COMMAND perhaps-cli man ${described} > ${manual}
    COMMAND perhaps-cli completion bash ${described} > ${completion_bash}
    COMMAND perhaps-cli completion zsh ${described} > ${completion_zsh}
    COMMAND perhaps-cli completion fish ${described} > ${completion_fish}
    DEPENDS perhaps-cli ${descriptions} VERBATIM)
  add_custom_target(perhaps-manual ALL DEPENDS ${manual})
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${completion_bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME perhaps)
  install(FILES ${completion_zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${completion_fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
