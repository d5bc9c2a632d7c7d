// SPDX-License-Identifier: MIT
/* limit_calls.c - system calls about limits: that of stacks (growth.h), those of address space and data (program_limits.h), and the others, which
 * are the kernel's
 *
 * Context: APP. */
#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/calls/growth.h"
#include "hooks/calls/program_limits.h"
#include "hooks/memory/safe_copy.h"

_Static_assert(sizeof(struct tbd_sys_limit) == sizeof(struct rlimit64) &&
                   sizeof(struct rlimit64) == sizeof(struct rlimit),
               "linux/resource.h");

/* `set` and `old` are addresses of the program's, 0: none. */
static int64_t exchange(struct tbd_call *call, uint32_t resource, uint64_t set, uint64_t old)
{
    struct tbd_sys_limit asked, was;
    int64_t result;

    if (set && !tbd_copy_from_program(&asked, set, sizeof(asked)))
        return -EFAULT;
    result = tbd_program_limits_exchange(resource, set ? &asked : NULL, &was);
    if (result == 0 && old && !tbd_call_answer(call, old, &was, sizeof(was)))
        result = -EFAULT;
    return result;
}

/* The process may be another one, whose limits are no concern of this one's table. */
static void pass_on(struct tbd_call *call)
{
    tbd_call_plain(call);
    tbd_growth_changed();
    tbd_growth_update(call->thread);
}

static void limit(struct tbd_call *call, uint64_t pid, uint32_t resource, uint64_t set,
                  uint64_t old)
{
    if (!tbd_program_limits_answers(pid, resource)) {
        pass_on(call);
        return;
    }
    call->result = exchange(call, resource, set, old);
    tbd_call_finish(call);
}

void tbd_call_prlimit64(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;

    limit(call, args[0], (uint32_t)args[1], args[2], args[3]);
}

void tbd_call_getrlimit(struct tbd_call *call)
{
    limit(call, 0, (uint32_t)call->sys.args[0], 0, call->sys.args[1]);
}

/* Without an address the kernel has nothing to read. */
void tbd_call_setrlimit(struct tbd_call *call)
{
    if (call->sys.args[1])
        limit(call, 0, (uint32_t)call->sys.args[0], call->sys.args[1], 0);
    else
        pass_on(call);
}
