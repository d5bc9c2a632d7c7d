# Run by cpack in the folder that is packed: what Debian's policy asks of every package.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(doc ${root}/share/doc/${CPACK_PACKAGE_NAME})

# Policy 12.5: the licence.
file(READ ${CPACK_RESOURCE_FILE_LICENSE} license)
string(REGEX MATCH "Copyright[^\n]*" copyright "${license}")
string(REGEX REPLACE "^.*Copyright[^\n]*\n" "" license "${license}")
string(STRIP "${license}" license)
string(REPLACE "\n\n" "\n.\n" license "${license}")
string(REPLACE "\n" "\n " license "${license}")
string(REPLACE "Copyright (c) " "" copyright "${copyright}")
file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tbd

Files: *
Copyright: ${copyright}
License: Expat
 ${license}
")

# Policy 12.7: the changelog.
file(WRITE ${doc}/changelog.Debian "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Packed by cpack.

 -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000
")

# What lintian calls an error or asks about, and is meant.
file(WRITE ${root}/share/lintian/overrides/${CPACK_PACKAGE_NAME} "# The process that replays has no C library and no loader: it takes the place of the program that was recorded.
tbd: statically-linked-binary [usr/lib/*tbd/tbd-replay]
# The library is loaded into programs, and must not bring others with it.
tbd: shared-library-lacks-prerequisites [usr/lib/*tbd/libtbd.so]
")

# Policy 10.1 and 12.1: programs without symbols, manual pages packed.
file(GLOB binaries ${root}/lib/*/tbd/* ${root}/lib/tbd/*)
foreach(binary ${binaries})
  if(NOT IS_SYMLINK ${binary} AND NOT IS_DIRECTORY ${binary})
    execute_process(COMMAND strip --strip-unneeded --remove-section=.comment ${binary} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
file(GLOB pages ${root}/share/man/man*/*.[0-9])
execute_process(COMMAND gzip -9n ${doc}/changelog.Debian ${pages} COMMAND_ERROR_IS_FATAL ANY)
