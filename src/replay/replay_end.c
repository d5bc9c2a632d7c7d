// SPDX-License-Identifier: MIT
/* replay_end.c - see replay_end.h */
#include "replay/replay_end.h"

#include "base/array.h"
#include "base/copy_once.h"
#include "base/layout.h"
#include "format/files/large_buffers.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>

struct tbd_end_page {
    uint64_t address;
    size_t offset; /* in page_bytes */
};

void tbd_replay_end_free(struct tbd_replay_end *state)
{
    tbd_large_buffer_give(state->page_bytes);
    tbd_end_regs_free(&state->regs);
    free(state->pages);
    *state = (struct tbd_replay_end){ 0 };
}

void tbd_replay_end_clear(struct tbd_replay_end *state)
{
    tbd_replay_end_go_on(state);
    state->has_end = false;
}

/* ---- messages ---- */

static bool reserve_page(struct tbd_replay_end *state)
{
    uint8_t *grown = state->page_bytes;

    if (!tbd_array_grow(&state->pages, state->page_count, &state->page_capacity,
                        sizeof(*state->pages)))
        return false;
    if (!grown || tbd_large_buffer_bytes(grown) < (state->page_count + 1) * TBD_PAGE_SIZE)
        grown = tbd_large_buffer_grow(grown, state->page_count * TBD_PAGE_SIZE,
                                      (state->page_count * 2 + 64) * TBD_PAGE_SIZE);
    if (grown)
        state->page_bytes = grown;
    return grown != NULL;
}

static enum tbd_status take_page(struct tbd_replay_end *state, const uint8_t *payload,
                                 uint32_t bytes, const char **out_wrong)
{
    struct tbd_msg_page head;

    if (bytes != sizeof(head) + TBD_PAGE_SIZE) {
        *out_wrong = "a page message of another length";
        return TBD_OK;
    }
    tbd_copy_once(&head, payload, sizeof(head));
    if (head.address % TBD_PAGE_SIZE || head.address >= TBD_USER_END) {
        *out_wrong = "an impossible page";
        return TBD_OK;
    }
    if (!(head.flags & TBD_PAGE_DIRTY))
        return TBD_OK;
    if (state->page_count >= state->page_most) {
        *out_wrong = "more pages than there can be";
        return TBD_OK;
    }
    if (!reserve_page(state))
        return TBD_NOMEM;
    memcpy(state->page_bytes + state->page_count * TBD_PAGE_SIZE, payload + sizeof(head),
           TBD_PAGE_SIZE);
    state->pages[state->page_count] =
        (struct tbd_end_page){ head.address, state->page_count * TBD_PAGE_SIZE };
    state->page_count++;
    return TBD_OK;
}

static enum tbd_status take_regs(struct tbd_replay_end *state, struct tbd_window *window,
                                 const uint8_t *payload, uint32_t bytes, const char **out_wrong)
{
    struct tbd_thread_state taken;
    uint8_t *xsave;

    if (bytes >= sizeof(taken.regs))
        tbd_copy_once(&taken.regs, payload, sizeof(taken.regs));
    if (bytes < sizeof(taken.regs) || taken.regs.xsave_bytes > bytes - sizeof(taken.regs)) {
        *out_wrong = "a register message that is too short";
        return TBD_OK;
    }
    xsave = tbd_window_memory(window, taken.regs.xsave_bytes);
    if (!xsave)
        return TBD_NOMEM;
    memcpy(xsave, payload + sizeof(taken.regs), taken.regs.xsave_bytes);
    taken.xsave = xsave;
    return tbd_end_regs_put(&state->regs, &taken) ? TBD_OK : TBD_NOMEM;
}

enum tbd_status tbd_replay_end_take(struct tbd_replay_end *state, struct tbd_window *window,
                                    uint32_t kind, const uint8_t *payload, uint32_t bytes,
                                    const char **out_wrong)
{
    *out_wrong = NULL;
    if (kind == TBD_MSG_PAGE)
        return take_page(state, payload, bytes, out_wrong);
    if (kind == TBD_MSG_REGS)
        return take_regs(state, window, payload, bytes, out_wrong);
    state->has_end = true;
    return TBD_OK;
}

/* Play has already sent mappings, pages read, and the end of the program. */
static bool is_ignored(uint32_t kind)
{
    return kind == TBD_MSG_READ_PAGES || kind == TBD_MSG_REGION || kind == TBD_MSG_UNMAP ||
           kind == TBD_MSG_NOTE || kind == TBD_MSG_CLOCK || kind == TBD_MSG_OPENED ||
           kind == TBD_MSG_END;
}

enum tbd_status tbd_replay_end_message(struct tbd_replay_end *state, struct tbd_window *window,
                                       uint32_t kind, const uint8_t *payload, uint32_t bytes,
                                       const char **out_wrong)
{
    if (tbd_replay_end_takes(kind))
        return tbd_replay_end_take(state, window, kind, payload, bytes, out_wrong);
    *out_wrong = is_ignored(kind) ? NULL : "a message of unknown kind";
    return TBD_OK;
}

/* ---- the window ---- */

static int compare_pages(const void *left, const void *right)
{
    const struct tbd_page_contents *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

bool tbd_replay_end_finish(const struct tbd_replay_end *state, struct tbd_window *window,
                           uint64_t time, uint32_t order)
{
    struct tbd_page_contents *pages = tbd_window_memory(window, state->page_count * sizeof(*pages));

    if (!pages || !tbd_end_regs_finish(&state->regs, window))
        return false;
    for (size_t i = 0; i < state->page_count; i++)
        pages[i] =
            (struct tbd_page_contents){ .address = state->pages[i].address,
                                        .time = time,
                                        .order = order,
                                        .bytes = state->page_bytes + state->pages[i].offset };
    qsort(pages, state->page_count, sizeof(*pages), compare_pages);
    window->dirty = pages;
    window->dirty_count = state->page_count;
    window->complete = state->has_end && state->regs.count;
    return true;
}
