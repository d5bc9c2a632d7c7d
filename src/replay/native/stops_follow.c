// SPDX-License-Identifier: MIT
/* stops_follow.c - a trace of native play is counted while it is recorded (count_stops_private.h)
 *
 * A handle knows the windows that there were when it was opened.  So the trace is opened again every now and then, and the
 * replayer made anew.  Opening takes longer the more windows there are: it is given a tenth of the time at most.
 * The last window of a handle waits for the next one: only the trace's end says where the last one of all ends. */
#include "replay/native/count_stops_private.h"

#include "base/clock.h"
#include "format/trace/trace_index.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAUSE_NS   300000000ull
#define LOOK_NS    20000000ull
#define OPEN_SHARE 10u

/* ---- what there is ---- */

void tbd_stops_take_windows(struct stops_counting *c)
{
    uint32_t count = tbd_trace_window_count(c->trace);

    c->is_live = !tbd_trace_info(c->trace)->finished;
    c->windows = c->is_live && count ? count - 1 : count;
}

static bool fill_module(struct tbd_kept_module *out, const struct tbd_index_module *from)
{
    *out = (struct tbd_kept_module){ from->disk, strdup(from->path), strdup(from->copy) };
    return out->path && out->copy;
}

static void free_list(const struct tbd_kept_modules *modules)
{
    for (size_t i = 0; modules->list && i < modules->count; i++) {
        free((void *)(uintptr_t)modules->list[i].path);
        free((void *)(uintptr_t)modules->list[i].copy);
    }
    free((void *)(uintptr_t)modules->list);
}

/* Those from number `first` on. */
static bool fill_list(struct stops_counting *c, struct tbd_kept_modules *out, size_t first)
{
    const struct tbd_trace_index *index = tbd_trace_index(c->trace);
    size_t count = index->module_count > first ? index->module_count - first : 0;
    struct tbd_kept_module *list = calloc(count + 1, sizeof(*list));
    bool is_good = list != NULL;

    *out = (struct tbd_kept_modules){ c->dir.fd, count, list, NULL };
    for (size_t i = 0; is_good && i < count; i++)
        is_good = fill_module(&list[i], &index->modules[first + i]);
    if (!is_good) {
        free_list(out);
        *out = (struct tbd_kept_modules){ 0 };
    }
    return is_good;
}

bool tbd_stops_find_modules(struct stops_counting *c)
{
    struct tbd_kept_modules *last = &c->modules, *more;
    size_t known;

    if (!last->list)
        return fill_list(c, last, 0);
    for (known = last->count; last->more; known += last->count)
        last = (struct tbd_kept_modules *)(uintptr_t)last->more;
    if (tbd_trace_index(c->trace)->module_count <= known)
        return true;
    more = malloc(sizeof(*more));
    if (!more || !fill_list(c, more, known)) {
        free(more);
        return false;
    }
    __atomic_store_n(&last->more, more, __ATOMIC_RELEASE);
    return true;
}

void tbd_stops_free_modules(struct stops_counting *c)
{
    const struct tbd_kept_modules *more = c->modules.more;

    free_list(&c->modules);
    while (more) {
        const struct tbd_kept_modules *next = more->more;

        free_list(more);
        free((void *)(uintptr_t)more);
        more = next;
    }
}

/* ---- waiting for more ---- */

static bool pause_ns(uint64_t ns)
{
    const struct timespec pause = { .tv_sec = (time_t)(ns / 1000000000u),
                                    .tv_nsec = (long)(ns % 1000000000u) };

    return nanosleep(&pause, NULL) == 0;
}

static bool is_stopped(const struct stops_counting *c)
{
    return c->how->goes_on && !c->how->goes_on(c->how->context);
}

/* Has it windows that were not counted, or is it complete?  */
static bool has_grown(const struct tbd_trace *trace, uint64_t next_number)
{
    uint32_t count = tbd_trace_window_count(trace);

    return tbd_trace_info(trace)->finished ||
           (count > 1 && tbd_trace_window(trace, count - 1)->number > next_number);
}

/* Who waits for the trace has seen its end. */
static enum tbd_status await_growth(struct stops_counting *c, struct tbd_trace **out,
                                    struct tbd_error *why)
{
    uint64_t pause = PAUSE_NS;

    for (;;) {
        uint64_t begun;
        enum tbd_status status;

        for (uint64_t waited = 0; waited < pause && !tbd_stops_workers_hurry(c); waited += LOOK_NS)
            if (is_stopped(c) || !pause_ns(LOOK_NS))
                return TBD_INTERRUPTED;
        begun = tbd_clock_ns();
        status = tbd_trace_open(c->how->path, out, why);
        if (status || has_grown(*out, c->next_number))
            return status;
        tbd_trace_close(*out);
        *out = NULL;
        pause = (tbd_clock_ns() - begun) * OPEN_SHARE + PAUSE_NS;
    }
}

/* ---- going on ---- */

static void free_left(struct stops_left *left)
{
    tbd_replayer_free(left->replayer);
    tbd_trace_close(left->trace);
    free(left);
}

void tbd_stops_free_left(struct stops_counting *c)
{
    struct stops_left *left = c->left;

    while (left) {
        struct stops_left *next = left->next;

        free_left(left);
        left = next;
    }
    c->left = NULL;
}

/* All workers wait meanwhile, as every window that was taken was awaited; but if helpers go on, an idle one may still be at a window that
 * a helper has replayed, and for long.  The organizer has the first handle. */
static enum tbd_status change_trace(struct stops_counting *c, struct tbd_trace *trace,
                                    struct tbd_error *why)
{
    struct stops_left *left = malloc(sizeof(*left));
    struct tbd_replayer *replayer = NULL;
    enum tbd_status status =
        left ? tbd_replayer_new(trace, tbd_stops_workers_most(c->how), &replayer, why) : TBD_NOMEM;

    if (status) {
        free(left);
        return status;
    }
    *left = (struct stops_left){ c->trace == c->begun ? NULL : c->trace, c->replayer, NULL };
    pthread_mutex_lock(&c->lock);
    c->trace = trace;
    c->replayer = replayer;
    tbd_stops_take_windows(c);
    c->from = 0;
    c->to = c->windows;
    c->taken = c->written = c->next;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    if (c->is_hurried) {
        left->next = c->left;
        c->left = left;
    } else {
        free_left(left);
    }
    return TBD_OK;
}

void tbd_stops_say_ended(struct stops_counting *c)
{
    if (!c->has_said_ended && c->how->ended)
        c->how->ended(c->how->context);
    c->has_said_ended = true;
}

static enum tbd_status go_on_with(struct stops_counting *c, struct tbd_trace *trace,
                                  struct tbd_error *why)
{
    uint64_t first =
        tbd_trace_window_count(trace) ? tbd_trace_window(trace, 0)->number : c->next_number;

    if (first > c->next_number || first + tbd_trace_window_count(trace) < c->next_number)
        return tbd_error_set(why, TBD_NOWINDOW, c->dir.path, 0,
                             "windows were dropped before they were counted");
    c->next = (uint32_t)(c->next_number - first);
    return change_trace(c, trace, why);
}

enum tbd_status tbd_stops_follow(struct stops_counting *c, struct tbd_error *why)
{
    struct tbd_trace *trace = NULL;
    enum tbd_status status = await_growth(c, &trace, why);

    if (status)
        return status;
    status = go_on_with(c, trace, why);
    if (status) {
        tbd_trace_close(trace);
        return status;
    }
    if (!c->is_live)
        tbd_stops_say_ended(c);
    return tbd_stops_find_modules(c) ? TBD_OK : TBD_NOMEM;
}
