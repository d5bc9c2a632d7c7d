// SPDX-License-Identifier: MIT
/* sys_bounds.c - where a system call may have written, from its arguments alone
 *
 * For calls of the past, of which nothing but some registers is known, or these and the result: no memory of a program is looked at.  What the table states
 * by a rule over the arguments is answered, all else is not.  Host only. */
#include "sys_table.h"

#include "base/linux_abi.h"

#include <asm/unistd_64.h>

/* Calls that the engine carries out itself, and that write no more than their rows say. */
static bool is_plain(uint64_t number)
{
    switch (number) {
    case __NR_rt_sigaction:
    case __NR_rt_sigprocmask:
    case __NR_sigaltstack:
    case __NR_prlimit64: return true;
    default: return tbd_syscall_mode(number) == TBD_SYS_EMULATE;
    }
}

/* The most that is written at the pointer; false: that is not in the arguments. */
static bool most_bytes(const struct tbd_sys_arg *arg, const struct tbd_sys_call *call,
                       unsigned known, uint64_t *out)
{
    uint64_t count = call->args[arg->length];

    *out = arg->unit;
    if (arg->effect == TBD_EFFECT_FIXED)
        return true;
    if ((arg->effect != TBD_EFFECT_ARRAY && arg->effect != TBD_EFFECT_RESULT) ||
        (known >> arg->length & 1) == 0)
        return false;
    if (arg->width != TBD_WIDTH_64)
        count = (uint32_t)count;
    return !__builtin_mul_overflow(count, (uint64_t)arg->unit, out);
}

/* Commands of fcntl that take and return numbers, or read memory alone. */
static bool is_fcntl_of_numbers(uint64_t command)
{
    switch ((uint32_t)command) {
    case F_DUPFD:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_SETFL:
    case F_SETLK:
    case F_SETLKW:
    case F_DUPFD_CLOEXEC: return true;
    default: return false;
    }
}

bool tbd_syscall_bounds(const struct tbd_sys_call *call, unsigned known,
                        struct tbd_sys_range out[6], size_t *out_count)
{
    const struct tbd_sys_row *row = tbd_sys_row(call->number);

    *out_count = 0;
    if (!row || !is_plain(call->number))
        return false;
    if (call->number == __NR_fcntl && known >> 1 & 1 && is_fcntl_of_numbers(call->args[1]))
        return true;
    for (unsigned i = 0; i < 6; i++) {
        struct tbd_sys_range *range = &out[*out_count];

        if (row->args[i].effect == TBD_EFFECT_NONE)
            continue;
        if ((known >> i & 1) == 0)
            return false;
        range->address = call->args[i];
        if (range->address == 0) /* not wanted */
            continue;
        if (!most_bytes(&row->args[i], call, known, &range->bytes))
            return false;
        ++*out_count;
    }
    return true;
}

static bool has_failed(int64_t result)
{
    return result < 0 && result >= -4095;
}

/* Calls that change what is mapped.  False: it is none of these. */
static bool changed_pages(const struct tbd_sys_call *call, int64_t result,
                          struct tbd_sys_range out[6], size_t *out_count)
{
    *out_count = has_failed(result) ? 0 : 1;
    switch (call->number) {
    case __NR_mmap:
        out[0] = (struct tbd_sys_range){ (uint64_t)result, call->args[1] + 4095 };
        return true;
    case __NR_munmap:
    case __NR_madvise:
        out[0] = (struct tbd_sys_range){ call->args[0], call->args[1] + 4095 };
        return true;
    case __NR_mprotect: *out_count = 0; return true;
    default: return false;
    }
}

bool tbd_syscall_changed(const struct tbd_sys_call *call, int64_t result,
                         struct tbd_sys_range out[6], size_t *out_count)
{
    return changed_pages(call, result, out, out_count) ||
           tbd_syscall_bounds(call, 0x3f, out, out_count);
}
