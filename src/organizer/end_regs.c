// SPDX-License-Identifier: MIT
/* end_regs.c - see end_regs.h */
#include "organizer/end_regs.h"

#include "base/array.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

void tbd_end_regs_free(struct tbd_end_regs *regs)
{
    free(regs->all);
    *regs = (struct tbd_end_regs){ 0 };
}

bool tbd_end_regs_put(struct tbd_end_regs *regs, const struct tbd_thread_state *state)
{
    size_t kept = 0;

    if (!tbd_array_grow(&regs->all, regs->count, &regs->capacity, sizeof(*regs->all)))
        return false;
    for (size_t i = 0; i < regs->count; i++)
        if (regs->all[i].regs.thread != state->regs.thread)
            regs->all[kept++] = regs->all[i];
    regs->all[kept++] = *state;
    regs->count = kept;
    return true;
}

static int compare_threads(const void *left, const void *right)
{
    const struct tbd_thread_state *a = left, *b = right;

    return (a->regs.thread > b->regs.thread) - (a->regs.thread < b->regs.thread);
}

bool tbd_end_regs_finish(const struct tbd_end_regs *regs, struct tbd_window *window)
{
    size_t others = regs->count ? regs->count - 1 : 0;
    struct tbd_thread_state *threads = tbd_window_memory(window, others * sizeof(*threads));

    if (!threads)
        return false;
    if (regs->count) {
        window->end_regs = regs->all[others].regs;
        window->end_xsave = regs->all[others].xsave;
    }
    if (others) {
        memcpy(threads, regs->all, others * sizeof(*threads));
        qsort(threads, others, sizeof(*threads), compare_threads);
    }
    window->end_threads = threads;
    window->end_thread_count = others;
    return true;
}
