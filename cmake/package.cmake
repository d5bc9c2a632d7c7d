# cpack -G DEB: a package for Debian and its descendants (README.md).  What a package needs beyond
# `cmake --install` is made in cmake/package-debian.cmake, in the folder that is packed.
set(TBD_MAINTAINER "the tbd authors <tbd@example.org>" CACHE STRING "Name and address of who makes packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tbd)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${TBD_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "time-travel tracer and replay debugger for native programs")
set(CPACK_PACKAGE_DESCRIPTION "tbd records a run of an unmodified program, with its threads, signals
and system calls.  tbdq then answers questions about it: who stored a
value, where two runs part, what the state was at any instruction; from
the shell, gdb, an editor or a browser.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libmicrohttpd12")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gdb, libdebuginfod1")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package-debian.cmake)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
include(CPack)
