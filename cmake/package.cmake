# Install rules: both libraries, the headers, find_package(perhaps), pkg-config perhaps, the tool with its man page and
# completions; and the Debian package made of them.
include(CMakePackageConfigHelpers)

install(TARGETS ${perhaps_libraries} EXPORT perhaps)
install(DIRECTORY include/perhaps DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

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
configure_file(cmake/perhaps.pc.in perhaps.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/perhaps.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(program IN ITEMS perhaps-sst perhaps-bench-lsm)
  if(TARGET ${program})
    install(TARGETS ${program})
  endif()
endforeach()
if(TARGET perhaps-cli)
  install(TARGETS perhaps-cli)
  # The tool writes its own man page and completions, from the table that also parses its arguments.
  set(manual ${PROJECT_BINARY_DIR}/share/perhaps.1)
  set(completion_bash ${PROJECT_BINARY_DIR}/share/perhaps.bash)
  set(completion_zsh ${PROJECT_BINARY_DIR}/share/_perhaps)
  set(completion_fish ${PROJECT_BINARY_DIR}/share/perhaps.fish)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share)
  add_custom_command(
    OUTPUT ${manual} ${completion_bash} ${completion_zsh} ${completion_fish}
    COMMAND perhaps-cli man > ${manual}
    COMMAND perhaps-cli completion bash > ${completion_bash}
    COMMAND perhaps-cli completion zsh > ${completion_zsh}
    COMMAND perhaps-cli completion fish > ${completion_fish}
    DEPENDS perhaps-cli VERBATIM)
  add_custom_target(perhaps-manual ALL DEPENDS ${manual})
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${completion_bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME perhaps)
  install(FILES ${completion_zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${completion_fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The perhaps authors <perhaps@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Whoever links libperhaps.a needs what it was built against.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libhwy-dev)
include(CPack)
