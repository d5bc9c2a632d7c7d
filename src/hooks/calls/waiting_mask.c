// SPDX-License-Identifier: MIT
/* waiting_mask.c - see waiting_mask.h */
#include "hooks/calls/waiting_mask.h"

#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/table/sys_table.h"
#include "hooks/threads/threads.h"

#define NO_ARGUMENT 6u
#define PAIR_BYTES  16u

/* io_uring_enter: only a call that waits has a mask, which its fifth argument leads to, or the start of what that leads to. */
#define URING_GETEVENTS 1u
#define URING_EXT_ARG   8u
#define URING_ARGUMENT  4u

/* The argument that leads to the mask. */
static unsigned argument_of(const struct tbd_sys_call *sys, enum tbd_sys_show *out_how)
{
    const struct tbd_sys_row *row = tbd_sys_row(sys->number);

    *out_how = TBD_SHOW_MASK;
    if (sys->number == __NR_rt_sigsuspend)
        return 0;
    if (sys->number == __NR_io_uring_enter) {
        *out_how = sys->args[3] & URING_EXT_ARG ? TBD_SHOW_MASK_IN : TBD_SHOW_MASK;
        return sys->args[3] & URING_GETEVENTS ? URING_ARGUMENT : NO_ARGUMENT;
    }
    for (unsigned i = 0; row && i < NO_ARGUMENT; i++) {
        *out_how = row->args[i].show;
        if (*out_how == TBD_SHOW_MASK || *out_how == TBD_SHOW_MASK_IN)
            return i;
    }
    return NO_ARGUMENT;
}

/* 0: the call has none. */
static uint64_t mask_of(const struct tbd_sys_call *sys)
{
    enum tbd_sys_show how;
    unsigned argument = argument_of(sys, &how);
    uint64_t pointer = argument < NO_ARGUMENT ? sys->args[argument] : 0;

    if (pointer && how == TBD_SHOW_MASK_IN &&
        !tbd_copy_from_program(&pointer, pointer, sizeof(pointer)))
        return 0;
    return pointer;
}

void tbd_call_note_temporary_mask(const struct tbd_sys_call *sys)
{
    struct tbd_signals *signals = tbd_signals_now();
    uint64_t pointer = mask_of(sys);

    signals->has_temporary = false;
    if (pointer)
        signals->has_temporary = tbd_copy_from_program(&signals->temporary_mask, pointer,
                                                       sizeof(signals->temporary_mask));
}

const struct tbd_sys_call *tbd_waiting_mask_open(const struct tbd_signals *signals,
                                                 const struct tbd_sys_call *sys,
                                                 struct tbd_waiting_mask *out)
{
    const uint64_t trap = 1ull << (SIGTRAP - 1);
    enum tbd_sys_show how;
    unsigned argument;

    if (!tbd_threads.is_free || !signals->has_temporary || !(signals->temporary_mask & trap))
        return sys;
    argument = argument_of(sys, &how);
    if (argument == NO_ARGUMENT)
        return sys;
    out->sys = *sys;
    out->mask = signals->temporary_mask & ~trap;
    if (how == TBD_SHOW_MASK) {
        out->sys.args[argument] = tbd_sys_pointer(&out->mask);
        return &out->sys;
    }
    if (!tbd_copy_from_program(&out->pair, sys->args[argument],
                               sys->number == __NR_io_uring_enter ? sizeof(out->pair) : PAIR_BYTES))
        return sys;
    out->pair.pointer = tbd_sys_pointer(&out->mask);
    out->sys.args[argument] = tbd_sys_pointer(&out->pair);
    return &out->sys;
}
