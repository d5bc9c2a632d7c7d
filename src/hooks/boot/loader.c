// SPDX-License-Identifier: MIT
/* loader.c - libtbd.so: maps the engine that it carries and hands the program over
 *
 * Runs in the first constructor (-z initfirst), before every other library's.  If something goes
 * wrong, it prints one line and the program runs natively.  Context: BOOT. */
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "format/probe/boot.h"
#include "hooks/boot/space_limit.h"

#include <elf.h>
#include <tbd/tbd.h>

extern const uint8_t tbd_engine_image[];
extern const uint8_t tbd_engine_image_end[];

/* glibc 2.35 and later; others do not register rseq. */
extern const int64_t __rseq_offset __attribute__((weak, visibility("default")));
extern const unsigned __rseq_size __attribute__((weak, visibility("default")));

/* Runtimes of sanitizers, in the program or in a library: before main they check all mappings, and
 * the thread and memory sanitizers use the engine's addresses themselves. */
extern const char __asan_init __attribute__((weak, visibility("default")));
extern const char __tsan_init __attribute__((weak, visibility("default")));
extern const char __msan_init __attribute__((weak, visibility("default")));

/* The dynamic linker's list of libraries (link.h): the fields needed here. */
struct link_entry {
    uint64_t bias;
    const char *name;
    const Elf64_Dyn *dynamic;
    struct link_entry *next;
};
struct link_list {
    int version;
    struct link_entry *first;
};
extern const struct link_list _r_debug __attribute__((weak, visibility("default")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

static void say_unmapped(void)
{
    if (tbd_space_limit_say())
        return;
    tbd_say("cannot map the engine at %p: the program runs untraced", (void *)TBD_ENGINE_BASE);
    tbd_say("hint: the address range is taken, or memory is limited");
}

void tbd_loader_main(uint64_t argc, char **argv, char **envp, const struct tbd_boot_regs *regs);

void tbd_mark(const char *text)
{
    (void)text; /* the engine sees the call */
    __asm__ volatile("");
}

/* Translated code knows the nop, and puts the value in its place (patcher/translate.c). */
#define ASKS(function, letter)                                                                     \
    __asm__("        .text\n"                                                                      \
            "        .globl  " function "\n"                                                       \
            "        .type   " function ", @function\n" function ":\n"                             \
            "        .cfi_startproc\n" /* a signal may come here, and its handler unwind */        \
            "        xorl    %eax, %eax\n"                                                         \
            "        .byte   0x0f, 0x1f, 0x84, 0x00\n"                                             \
            "        .ascii  \"tbd" letter "\"\n"                                                  \
            "        ret\n"                                                                        \
            "        .cfi_endproc\n"                                                               \
            "        .size   " function ", . - " function "\n")

ASKS("tbd_context", "c");
ASKS("tbd_branch_context", "b");

const char *tbd_version(void)
{
    return TBD_VERSION;
}

static int segment_prot(const Elf64_Phdr *segment)
{
    return (segment->p_flags & PF_R ? 1 : 0) | (segment->p_flags & PF_W ? 2 : 0) |
           (segment->p_flags & PF_X ? 4 : 0);
}

static bool is_copied; /* some of the engine is no pages of the library's file */

static bool map_segment(const Elf64_Phdr *segment)
{
    uint64_t start = segment->p_vaddr & ~(TBD_PAGE_SIZE - 1), zeros;
    uint64_t end = (segment->p_vaddr + segment->p_memsz + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
    const uint8_t *bytes = tbd_engine_image + segment->p_offset;
    long result = tbd_sys_mmap(start, end - start, TBD_PROT_RW,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (result != (long)start)
        return false;
    if (!tbd_sys_share_pages(segment->p_vaddr, bytes, segment->p_filesz)) {
        is_copied = true;
        tbd_sys_populate(segment->p_vaddr, segment->p_vaddr + segment->p_filesz);
        memcpy((uint8_t *)segment->p_vaddr, bytes, segment->p_filesz);
    }
    if (tbd_sys_failed(tbd_sys_mprotect(start, end - start, segment_prot(segment))))
        return false;
    zeros = segment->p_vaddr + segment->p_filesz;
    if (segment->p_flags & PF_W) /* the file goes on where variables begin that are zero */
        memset((uint8_t *)zeros, 0, -zeros & (TBD_PAGE_SIZE - 1));
    return true;
}

static bool map_engine(const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(tbd_engine_image + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && !map_segment(&segments[i]))
            return false;
    return true;
}

static uint64_t thread_pointer(void)
{
    uint64_t value;

    __asm__("mov %%fs:0, %0" : "=r"(value));
    return value;
}

/* The address sanitizer ends the program if another library comes before it in the list, unless
 * that library has no name. */
static void hide_name(void)
{
    struct link_entry *entry = &_r_debug ? _r_debug.first : NULL;

    while (entry && entry->dynamic != _DYNAMIC)
        entry = entry->next;
    if (entry)
        entry->name = "";
}

static bool has_sanitizer(void)
{
    if (!&__asan_init && !&__tsan_init && !&__msan_init)
        return false;
    hide_name();
    tbd_say("process %u checks its own memory or threads (sanitizer): it runs untraced",
            (unsigned)tbd_sys_getpid());
    return true;
}

/* The client request RUNNING_ON_VALGRIND (valgrind.h): rotations by 128 bits in all, which change nothing, tell valgrind to put its
 * answer into rdx.  Programs under it are translated already; it knows neither the engine's clone() nor its seccomp filters. */
static bool has_valgrind(void)
{
    const uint64_t request[6] = { 0x1001 };
    uint64_t answer = 0;

    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(request)
                     : "cc", "memory");
    if (answer == 0)
        return false;
    tbd_say("process %u runs under valgrind: it runs untraced", (unsigned)tbd_sys_getpid());
    return true;
}

void tbd_loader_main(uint64_t argc, char **argv, char **envp, const struct tbd_boot_regs *regs)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)tbd_engine_image;
    const uint64_t *mark = (const uint64_t *)(header->e_entry - 16);
    struct tbd_boot boot = { .regs = regs,
                             .argc = argc,
                             .argv = argv,
                             .envp = envp,
                             .library = (uint64_t)(uintptr_t)tbd_engine_image };

    if (has_sanitizer() || has_valgrind())
        return;
    if (!map_engine(header)) {
        say_unmapped();
        return;
    }
    if (mark[0] != TBD_ENGINE_MAGIC) {
        tbd_say("libtbd.so carries no engine: the program runs untraced");
        tbd_say("hint: build it again");
        return;
    }
    if (&__rseq_offset && &__rseq_size) {
        boot.rseq = thread_pointer() + (uint64_t)__rseq_offset;
        boot.rseq_bytes = __rseq_size;
        boot.rseq_size = (uint64_t)(uintptr_t)&__rseq_size;
    }
    boot.is_copied = is_copied;
    if (!((tbd_boot_function)mark[1])(&boot))
        tbd_sys_munmap(TBD_ENGINE_BASE, TBD_ENGINE_END - TBD_ENGINE_BASE);
}
