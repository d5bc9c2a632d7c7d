# Compiler flags: one set for ordinary processes (tbd_host), one for the freestanding engine (tbd_engine).
add_library(tbd_warnings INTERFACE)
target_compile_options(tbd_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wundef -Wvla -Wformat=2
  -Wcast-qual -Wwrite-strings -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wimplicit-fallthrough
  -Wnull-dereference>
  $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-Wduplicated-cond -Wlogical-op>
  $<$<BOOL:${TBD_WERROR}>:-Werror>)
target_include_directories(tbd_warnings INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(tbd_warnings INTERFACE _GNU_SOURCE TBD_VERSION="${PROJECT_VERSION}"
  $<$<BOOL:${TBD_ASSERTS}>:TBD_ASSERTS=1>)

add_library(tbd_host INTERFACE)
target_link_libraries(tbd_host INTERFACE tbd_warnings)
if(TBD_SANITIZE)
  # clang reports NULL + 0, which an empty list is, as an overflow of a pointer.  gcc (preset asan) reports real ones only.
  target_compile_options(tbd_host INTERFACE -fsanitize=${TBD_SANITIZE} -fno-sanitize-recover=all
    $<$<C_COMPILER_ID:Clang>:-fno-sanitize=pointer-overflow>)
  target_link_options(tbd_host INTERFACE -fsanitize=${TBD_SANITIZE})
endif()

# No libc, no vector registers, no stack protector; linked at a fixed address with rip-relative code.
add_library(tbd_engine INTERFACE)
target_link_libraries(tbd_engine INTERFACE tbd_warnings)
target_compile_definitions(tbd_engine INTERFACE TBD_ENGINE=1)
target_compile_options(tbd_engine INTERFACE
  -ffreestanding -fno-stack-protector -fvisibility=hidden -fno-asynchronous-unwind-tables -fno-builtin-memcpy
  -U_FORTIFY_SOURCE -O2 -g
  $<$<COMPILE_LANGUAGE:C>:-mgeneral-regs-only -fpie -fno-exceptions>
  # gcc would begin `rep movsq` and `rep stosq` for structs, which take longer than their moves (base/string.c)
  $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-mmemcpy-strategy=unrolled_loop:256:noalign,libcall:-1:noalign>
  $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:GNU>>:-mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign>
  # clang would reach variables of other files through a GOT, which code at a fixed address does not need
  $<$<AND:$<COMPILE_LANGUAGE:C>,$<C_COMPILER_ID:Clang>>:-fdirect-access-external-data>)
