# Run by cpack in the folder that is packed: what Debian's policy asks of every package.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(doc ${root}/share/doc/${CPACK_PACKAGE_NAME})

# Not a folder just below usr/lib: for a library there cpack calls ldconfig when the package comes and goes, and dpkg
# remembers a package that has something to do when it goes.
set(private lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/tbd)
if(IS_DIRECTORY ${root}/lib/tbd)
  get_filename_component(parent ${root}/${private} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(RENAME ${root}/lib/tbd ${root}/${private})
  foreach(tool tbd tbdq)
    file(REMOVE ${root}/bin/${tool})
    file(CREATE_LINK ../${private}/${tool} ${root}/bin/${tool} SYMBOLIC)
  endforeach()
endif()

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
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog.Debian "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Packed by cpack.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
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
