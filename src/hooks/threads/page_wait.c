// SPDX-License-Identifier: MIT
/* page_wait.c - see page_wait.h */
#include "hooks/threads/page_wait.h"

#include "hooks/memory/safe_copy.h"
#include "hooks/threads/native.h"

void tbd_page_wait(struct tbd_thread *thread, const struct tbd_page_wait *wait)
{
    struct tbd_saved_context *saved = tbd_threads.holder;
    bool many = tbd_threads_are_many();
    size_t left;

    if (many)
        tbd_threads_give(thread, TBD_SWITCH_BLOCKED, TBD_NO_BLOCK_TIME);
    left = tbd_touch_faultable(wait->address, wait->is_write, &saved->signals.pending);
    if (many && !tbd_threads_take(thread, saved))
        tbd_threads_leave(saved);
    if (left && !__atomic_load_n(&saved->signals.pending, __ATOMIC_ACQUIRE))
        tbd_userfault_set_run_once(tbd_userfault_page_of(wait->address));
}

/* A signal that comes meanwhile is delivered after the call. */
void tbd_page_fill(const struct tbd_saved_context *saved, uint64_t address, uint64_t bytes)
{
    static const uint32_t never;
    uint64_t end = address + bytes;

    while (address < end) {
        bool had_signal = __atomic_load_n(&saved->signals.pending, __ATOMIC_ACQUIRE);

        if (tbd_touch_faultable(address, true, &never) && had_signal)
            return;
        address = tbd_userfault_page_of(address) + TBD_PAGE_SIZE;
    }
}
