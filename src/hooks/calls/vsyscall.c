// SPDX-License-Identifier: MIT
/* vsyscall.c - see vsyscall.h */
#include "hooks/calls/vsyscall.h"

#include "base/linux.h"
#include "hooks/calls/call_run.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"

static bool has_page;

bool tbd_vsyscall_number(uint64_t address, uint64_t *out)
{
    static const struct {
        uint64_t at;
        uint64_t number;
    } functions[] = {
        { TBD_VSYSCALL_PAGE, __NR_gettimeofday },
        { TBD_VSYSCALL_PAGE + 0x400, __NR_time },
        { TBD_VSYSCALL_PAGE + 0x800, __NR_getcpu },
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (functions[i].at != address)
            continue;
        *out = functions[i].number;
        return true;
    }
    return false;
}

void tbd_vsyscall_found(void)
{
    has_page = true;
}

void tbd_vsyscall_run(struct tbd_thread *thread, uint64_t number, uint64_t caller,
                      tbd_vsyscall_make make)
{
    struct tbd_regs *regs = &thread->regs;
    struct tbd_regs before = *regs;

    regs->gpr[TBD_RAX] = number;
    make(thread, 1);
    regs->gpr[TBD_RCX] = before.gpr[TBD_RCX]; /* the kernel changes neither */
    regs->gpr[TBD_R11] = before.gpr[TBD_R11];
    if (regs->rip == before.rip) {
        regs->gpr[TBD_RAX] = before.gpr[TBD_RAX];
        return;
    }
    regs->rip = caller;
    regs->gpr[TBD_RSP] += sizeof(caller);
}

static bool is_writable(uint64_t address)
{
    const struct tbd_mapped_region *region;

    if (!address)
        return true; /* nothing is written */
    region = tbd_regions_find(&tbd_memory.regions, address);
    return region && region->map.prot & PROT_WRITE;
}

bool tbd_vsyscall_perform(struct tbd_thread *thread)
{
    uint64_t number, caller;
    const uint64_t *gpr = thread->regs.gpr;

    if (!has_page || !tbd_vsyscall_number(thread->regs.rip, &number))
        return false;
    /* It faults natively, too: there is no return address, or the result cannot be written. */
    if (!tbd_copy_from_program(&caller, gpr[TBD_RSP], sizeof(caller)) ||
        !is_writable(gpr[TBD_RDI]) || (number != __NR_time && !is_writable(gpr[TBD_RSI])))
        return false;
    tbd_pages_mark_read(&tbd_memory.pages, gpr[TBD_RSP], gpr[TBD_RSP] + sizeof(caller));
    tbd_vsyscall_run(thread, number, caller, tbd_syscall_perform);
    return true;
}
