// SPDX-License-Identifier: MIT
/* turns.c - see turns.h */
#include "organizer/turns.h"

#include "base/array.h"
#include "format/window/window_make.h"

#include <stdlib.h>

static bool add_turn(struct tbd_turns *turns, uint32_t thread, bool is_open)
{
    if (!tbd_array_grow(&turns->turns, turns->count, &turns->capacity, sizeof(*turns->turns)))
        return false;
    turns->turns[turns->count++] = (struct tbd_turn){ .thread = thread, .is_open = is_open };
    return true;
}

bool tbd_turns_begin(struct tbd_turns *turns)
{
    return add_turn(turns, TBD_TURN_FIRST, true);
}

void tbd_turns_free(struct tbd_turns *turns)
{
    free(turns->turns);
    free(turns->opens);
    *turns = (struct tbd_turns){ 0 };
}

/* Index of the thread's turn, `count` if it has none. */
static size_t find(const struct tbd_turns *turns, uint32_t thread)
{
    size_t i = 0;

    while (i < turns->count && turns->turns[i].thread != thread)
        i++;
    return i;
}

static bool take_switch(struct tbd_turns *turns, const struct tbd_msg_thread *message,
                        uint32_t *called)
{
    struct tbd_turn *from = &turns->turns[turns->current];
    size_t to;

    from->called = *called;
    if (from->thread == TBD_TURN_FIRST) /* now the thread is known */
        from->thread = message->from;
    to = find(turns, message->thread);
    if (to == turns->count && !add_turn(turns, message->thread, true))
        return false;
    turns->current = to;
    *called = turns->turns[to].called;
    return true;
}

bool tbd_turns_take(struct tbd_turns *turns, const struct tbd_msg_thread *message, uint32_t *called)
{
    size_t known;

    switch (message->event) {
    case TBD_THREAD_SWITCH: return take_switch(turns, message, called);
    case TBD_THREAD_START: /* the tid may have been another thread's before */
        known = find(turns, message->thread);
        if (known == turns->count)
            return add_turn(turns, message->thread, false);
        turns->turns[known] = (struct tbd_turn){ .thread = message->thread };
        return true;
    default: return true;
    }
}

bool tbd_turns_open(struct tbd_turns *turns, uint32_t id, uint32_t time)
{
    struct tbd_turn *turn = &turns->turns[turns->current];

    turn->is_open = false;
    if (!tbd_array_grow(&turns->opens, turns->open_count, &turns->open_capacity,
                        sizeof(*turns->opens)))
        return false;
    turns->opens[turns->open_count++] =
        (struct tbd_open_entry){ .thread = turn->thread, .id = id, .time = time };
    return true;
}

/* ---- joining ---- */

static size_t find_called(const struct tbd_called *called, uint32_t thread)
{
    size_t i = 0;

    while (i < called->count && called->threads[i].thread != thread)
        i++;
    return i;
}

static bool set_called(struct tbd_called *called, uint32_t thread, uint32_t id)
{
    size_t at = find_called(called, thread);

    if (at < called->count)
        called->threads[at] = called->threads[--called->count];
    if (!id)
        return true;
    if (!tbd_array_grow(&called->threads, called->count, &called->capacity,
                        sizeof(*called->threads)))
        return false;
    called->threads[called->count++] = (struct tbd_called_thread){ thread, id };
    return true;
}

static uint32_t name_of(uint32_t thread, uint32_t first)
{
    return thread == TBD_TURN_FIRST ? first : thread;
}

bool tbd_turns_join(const struct tbd_turns *turns, struct tbd_called *called,
                    struct tbd_window *window)
{
    uint32_t first = window->regs.thread;
    struct tbd_early_call *calls = tbd_window_memory(window, turns->open_count * sizeof(*calls));
    bool good = calls != NULL;

    for (size_t i = 0; i < turns->open_count && good; i++) {
        const struct tbd_open_entry *open = &turns->opens[i];
        uint32_t thread = name_of(open->thread, first);

        if (find_called(called, thread) < called->count)
            calls[window->early_call_count++] =
                (struct tbd_early_call){ thread, open->id, open->time };
    }
    window->early_calls = calls;
    tbd_window_count_early_calls(window);
    for (size_t i = 0; i < turns->count; i++)
        if (!turns->turns[i].is_open)
            good = set_called(called, name_of(turns->turns[i].thread, first),
                              turns->turns[i].called) &&
                   good;
    return good;
}
