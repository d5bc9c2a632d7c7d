// SPDX-License-Identifier: MIT
/* rseq_calls.c - rseq: the kernel says whether it would take a registration, and the engine keeps it
 * (hooks/threads/rseq.h)
 *
 * Context: APP. */
#include "base/linux_abi.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"
#include "hooks/memory/safe_copy.h"

#define MOST_BYTES 256u /* of an area; the kernel writes fewer */

struct request {
    uint64_t area;
    uint32_t bytes, signature;
};

static struct tbd_rseq *own_rseq(void)
{
    return &tbd_context_now()->rseq;
}

/* The program's, as it would be natively; 0: none. */
static uint64_t own_area(void)
{
    return own_rseq()->area ? own_rseq()->area : own_rseq()->kept;
}

static int64_t compare_with_own(const struct request *wanted)
{
    const struct tbd_rseq *own = own_rseq();

    if (!own_area() || own_area() != wanted->area || own->bytes != wanted->bytes)
        return -EINVAL;
    return own->signature == wanted->signature ? 0 : -EPERM;
}

static bool is_writable(const struct request *wanted)
{
    static const uint32_t never;

    return !tbd_touch_faultable(wanted->area, true, &never) &&
           !tbd_touch_faultable(wanted->area + TBD_RSEQ_ORIGINAL_BYTES - 1, true, &never);
}

static bool is_readable(const struct request *wanted)
{
    uint8_t area[TBD_RSEQ_ORIGINAL_BYTES];

    return tbd_copy_from_program(area, wanted->area, sizeof(area));
}

/* The kernel has it for a moment: it clears the pointer to a critical section. */
static int64_t ask(const struct request *wanted)
{
    int64_t answer = tbd_sys4(__NR_rseq, wanted->area, wanted->bytes, 0, wanted->signature);

    if (answer == 0)
        tbd_sys4(__NR_rseq, wanted->area, wanted->bytes, RSEQ_FLAG_UNREGISTER, wanted->signature);
    return answer;
}

static void register_area(struct tbd_call *call, const struct request *wanted)
{
    struct tbd_sys_range range = { wanted->area,
                                   wanted->bytes < MOST_BYTES ? wanted->bytes : MOST_BYTES };

    if (own_area()) {
        int64_t differs = compare_with_own(wanted);

        call->result = differs ? differs : -EBUSY;
        return;
    }
    tbd_effects_watch(call->effects, &range, 1);
    call->result = ask(wanted);
    if (call->result == 0 && tbd_threads.is_free) {
        call->result = -ENOSYS;
    } else if (call->result == 0) {
        *own_rseq() =
            (struct tbd_rseq){ wanted->area, wanted->bytes, wanted->signature, 0, false, 0 };
        tbd_rseq_show(own_rseq(), NULL);
    }
    tbd_effects_compare(call->effects);
}

/* The kernel would accept an area that can only be read, and end the program when it writes there. */
static bool is_trap(const struct request *wanted)
{
    return !own_area() && is_readable(wanted) && !is_writable(wanted);
}

static void forget_area(struct tbd_call *call, const struct request *wanted)
{
    call->result = compare_with_own(wanted);
    if (call->result == 0 && !tbd_rseq_forget(own_rseq(), call->effects))
        call->result = -EFAULT;
}

void tbd_call_rseq(struct tbd_call *call)
{
    const uint64_t *args = call->sys.args;
    struct request wanted = { args[0], (uint32_t)args[1], (uint32_t)args[3] };
    uint32_t flags = (uint32_t)args[2];
    bool is_wrong = false;

    if (flags == RSEQ_FLAG_UNREGISTER)
        forget_area(call, &wanted);
    else if (flags)
        call->result = -EINVAL;
    else if ((is_wrong = is_trap(&wanted)))
        call->result = 0;
    else
        register_area(call, &wanted);
    tbd_call_finish(call);
    if (is_wrong)
        tbd_signals_force_segv(call->thread);
}
