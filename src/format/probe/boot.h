// SPDX-License-Identifier: MIT
/* boot.h - what libtbd.so's constructor hands to the engine, or who takes a running program over (query/attach), as addresses
 * in the program
 *
 * The engine's ELF entry point is preceded by two words: TBD_ENGINE_MAGIC and the address of
 * tbd_engine_boot().  All are always built together, so there is no version. */
#ifndef TBD_FORMAT_BOOT_H
#define TBD_FORMAT_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#define TBD_ENGINE_MAGIC 0x656e69676e656474ull

/* The state that the constructor must return to: callee-saved registers, stack and address. Filled
 * by loader_x86_64.S. */
struct tbd_boot_regs {
    uint64_t rbx, rbp, r12, r13, r14, r15;
    uint64_t rsp; /* after the return */
    uint64_t rip;
};

struct tbd_takeover; /* format/probe/takeover.h */

struct tbd_boot {
    const struct tbd_boot_regs *regs;
    uint64_t argc;
    char **argv;
    char **envp;
    uint64_t library; /* an address inside libtbd.so */
    uint64_t rseq;    /* address of the thread's registered rseq area, 0 = none */
    uint32_t rseq_bytes;
    uint32_t is_copied; /* the engine's image is in memory of its own, not in pages of a file */
    /* address of __rseq_size, by which the C library says that it has registered one; 0 = none */
    uint64_t rseq_size;
    /* NULL: the program begins.  Otherwise `regs`, argc and argv are not used. */
    struct tbd_takeover *takeover;
};

/* Does not return if the program is traced from now on.  Returns if it runs natively: true, the engine stays
 * mapped (mode=armed); false, it is not needed (the reason is on stderr already). */
typedef bool (*tbd_boot_function)(const struct tbd_boot *boot);

#endif
