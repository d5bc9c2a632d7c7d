// SPDX-License-Identifier: MIT
/* processor.c - see processor.h */
#include "hooks/instructions/processor.h"

#include "base/layout.h"
#include "base/sys.h"

struct tbd_processor tbd_processor;

void tbd_processor_decode(void (*fn)(void *), void *arg)
{
    _Alignas(16) uint8_t save[TBD_VECTOR_CALL_BYTES];

    tbd_vector_call(fn, arg, save);
}

/* Only with five levels can anything be mapped beyond bit 47 (Linux, arch/x86/x86_64/5level-paging).
 * The engine's own mapping tells: it is at the lowest such address, and may be the program's. */
bool tbd_processor_has_long_addresses(void)
{
    const uint64_t lowest = 1ull << 47;
    long got =
        tbd_sys_mmap(lowest, TBD_PAGE_SIZE, PROT_NONE, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0);

    if (got == (long)lowest)
        tbd_sys_munmap(lowest, TBD_PAGE_SIZE);
    return got == (long)lowest || got == -EEXIST;
}

void tbd_set_gs_base(uint64_t base)
{
    if (tbd_processor.has_fsgsbase)
        __asm__ volatile("wrgsbase %0" : : "r"(base));
    else
        tbd_sys3(__NR_arch_prctl, ARCH_SET_GS, base, 0);
}

void tbd_set_fs_base(uint64_t base)
{
    if (tbd_processor.has_fsgsbase)
        __asm__ volatile("wrfsbase %0" : : "r"(base));
    else
        tbd_sys3(__NR_arch_prctl, ARCH_SET_FS, base, 0);
}

uint64_t tbd_gs_base_take_sigsafe(uint64_t engine)
{
    uint64_t was = engine;

    if (tbd_processor.has_fsgsbase)
        __asm__ volatile("rdgsbase %0" : "=r"(was));
    if (was != engine)
        tbd_set_gs_base(engine);
    return was;
}
