// SPDX-License-Identifier: MIT
/* search_callers.c - the stacks of callers of all threads while a window is walked */
#include "query/search/search_private.h"

#include "base/array.h"
#include "base/layout.h"
#include "query/search/scan_threads.h"
#include "format/pages/pages.h"

#include <stdlib.h>

#define FRAMES_MAX 65536u

/* Pages as they were at the window's start: the stack, mostly. */
#define START_PAGES 4u

struct start_pages {
    struct tbd_search_run *run;
    uint64_t addresses[START_PAGES]; /* 1 = none */
    unsigned oldest;
    uint8_t bytes[START_PAGES][TBD_PAGE_SIZE];
};

static const uint8_t *start_page(struct start_pages *pages, uint64_t address)
{
    struct tbd_search_run *run = pages->run;
    unsigned use = pages->oldest;

    for (unsigned i = 0; i < START_PAGES; i++) {
        if (pages->addresses[i] == address)
            return pages->bytes[i];
    }
    pages->addresses[use] = 1;
    if (tbd_window_page_at_start(run->session->trace, run->window, address, pages->bytes[use]) !=
        TBD_OK)
        return NULL;
    pages->addresses[use] = address;
    pages->oldest = (use + 1) % START_PAGES;
    return pages->bytes[use];
}

static bool read_at_start(void *context, uint64_t address, void *out, size_t bytes)
{
    uint8_t *to = out;

    for (size_t i = 0; i < bytes; i++) {
        uint64_t at = address + i;
        const uint8_t *page = start_page(context, at & ~(TBD_PAGE_SIZE - 1));

        if (page == NULL)
            return false;
        to[i] = page[at & (TBD_PAGE_SIZE - 1)];
    }
    return true;
}

/* Frames of a thread at the window's start, innermost first; the caller owns them. NULL if there is
 * no memory. */
static struct tbd_frame *unwind_start(struct tbd_search_run *run, const struct tbd_regs *regs,
                                      size_t *out_count)
{
    struct start_pages pages = { .run = run, .addresses = { 1, 1, 1, 1 } };
    struct tbd_stack_memory memory = { .read = read_at_start, .context = &pages, 0 };
    struct tbd_frame *frames = NULL;

    *out_count = 0;
    for (size_t max = 256; max <= FRAMES_MAX; max *= 16) {
        free(frames);
        frames = calloc(max, sizeof(*frames));
        if (frames == NULL || tbd_stack_unwind(run->session->symbols, run->window->index, regs,
                                               &memory, frames, max, out_count) != TBD_OK)
            break;
        if (*out_count < max)
            return frames;
    }
    return frames;
}

/* Takes the frames, innermost first; NULL: none are known. */
static void take_frames(struct tbd_search_run *run, const struct tbd_frame *frames, size_t count)
{
    tbd_callers_clear(&run->callers);
    for (size_t i = frames == NULL ? 0 : count; i > 1; i--) {
        const struct tbd_frame *callee = &frames[i - 2];
        uint64_t cfa = callee->cfa != 0 ? callee->cfa : frames[i - 1].sp;

        (void)tbd_callers_call(&run->callers, cfa - 8, frames[i - 1].call_pc, 0);
    }
    run->callers.is_cut = count >= FRAMES_MAX;
}

/* Fills in the thread's stack at the window's start. */
static void seed_callers(struct tbd_search_run *run, const struct tbd_regs *regs)
{
    size_t count;
    struct tbd_frame *frames = unwind_start(run, regs, &count);

    take_frames(run, frames, count);
    free(frames);
}

bool tbd_search_needs_callers(const struct tbd_search_run *run)
{
    return run->question->keeps_frames ||
           ((run->uses | run->all_uses) & (TBD_USES_STACK | TBD_USES_FRAME)) != 0;
}

void tbd_search_forget_callers(struct tbd_search_run *run)
{
    for (size_t i = 0; i < run->other_count; i++)
        tbd_callers_free(&run->others[i].callers);
    free(run->others);
    run->others = NULL;
    run->other_count = run->other_capacity = 0;
}

/* A thread that was created in the window begins without callers. */
static void take_callers(struct tbd_search_run *run, uint32_t thread)
{
    const struct tbd_regs *regs = tbd_scan_thread_regs(run->window, thread);

    for (size_t i = 0; i < run->other_count; i++) {
        if (run->others[i].thread == thread) {
            run->callers = run->others[i].callers;
            run->others[i] = run->others[--run->other_count];
            return;
        }
    }
    run->callers = (struct tbd_callers){ 0 };
    if (regs != NULL)
        seed_callers(run, regs);
}

void tbd_search_change_turn(void *context, uint32_t from, uint32_t to)
{
    struct tbd_search_run *run = context;

    if (!run->has_callers)
        return;
    if (tbd_array_grow(&run->others, run->other_count, &run->other_capacity, sizeof(*run->others)))
        run->others[run->other_count++] = (struct tbd_thread_callers){ from, run->callers };
    else
        tbd_callers_free(&run->callers);
    take_callers(run, to);
}

void tbd_search_seed_callers(struct tbd_search_run *run)
{
    seed_callers(run, &run->window->regs);
}

#define FRAMES_THERE 4096u

/* The stack of the thread that runs at `time`. */
static bool find_seed(struct tbd_session *session, uint64_t time)
{
    uint32_t thread = session->thread;
    enum tbd_status status = TBD_NOMEM;

    free(session->seed.frames);
    session->seed.frames = calloc(FRAMES_THERE, sizeof(*session->seed.frames));
    session->seed.time = time;
    session->thread = 0;
    if (session->seed.frames != NULL)
        status = tbd_session_stack(session, (struct tbd_position){ .time = time },
                                   session->seed.frames, FRAMES_THERE, &session->seed.count);
    session->thread = thread;
    if (status == TBD_OK && session->seed.count < FRAMES_THERE)
        return true;
    free(session->seed.frames);
    session->seed.frames = NULL;
    return false;
}

uint64_t tbd_search_seed_near(struct tbd_search_run *run, uint64_t time)
{
    struct tbd_session *session = run->session;
    const struct tbd_window *window = run->window;
    uint64_t start = time > TBD_SEED_BEFORE ? time - TBD_SEED_BEFORE : 0;

    if (start <= window->first_time)
        return 0;
    if (session->seed.frames == NULL || session->seed.time <= window->first_time ||
        session->seed.time > time || time - session->seed.time > TBD_SEED_REACH) {
        if (!find_seed(session, start))
            return 0;
    }
    take_frames(run, session->seed.frames, session->seed.count);
    return session->seed.time;
}
