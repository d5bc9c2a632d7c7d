# The system-call table: sources for the engine (the including CMakeLists.txt compiles them), and a host
# library for tests and for printing.
set(TBD_SYSCALLS_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/syscalls.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_effects.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_file.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_ioctl.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_ipc.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_net.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_process.c)

add_library(tbd_syscalls STATIC ${TBD_SYSCALLS_SOURCES}
  ${CMAKE_CURRENT_LIST_DIR}/sys_bounds.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_print.c
  ${CMAKE_CURRENT_LIST_DIR}/sys_host.c)
target_link_libraries(tbd_syscalls PUBLIC tbd_host)

# Compiles the table as the engine does, independently of the rest of the engine.
add_library(tbd_syscalls_engine_check OBJECT EXCLUDE_FROM_ALL ${TBD_SYSCALLS_SOURCES})
target_link_libraries(tbd_syscalls_engine_check PUBLIC tbd_engine)

# The signal frame's layout, for its test against the kernel's own frames.
add_library(tbd_sigframe STATIC ${CMAKE_CURRENT_LIST_DIR}/../threads/sigframe_x86_64.c)
target_link_libraries(tbd_sigframe PUBLIC tbd_host)
