// SPDX-License-Identifier: MIT
/* stops_turns.c - see stops_turns.h */
#include "replay/native/stops_turns.h"

#include "base/array.h"

#include <stdlib.h>

struct tbd_stops_turn {
    uint32_t thread;
    uint64_t block_time; /* of the block that it had entered last */
};

static struct tbd_stops_turn *of_thread(struct tbd_stops_turns *turns, uint32_t thread)
{
    for (size_t i = 0; i < turns->count; i++)
        if (turns->last[i].thread == thread)
            return &turns->last[i];
    if (!tbd_array_grow(&turns->last, turns->count, &turns->capacity, sizeof(*turns->last)))
        return NULL;
    turns->last[turns->count] =
        (struct tbd_stops_turn){ thread, turns->dropped ? turns->dropped - 1 : TBD_NO_BLOCK_TIME };
    return &turns->last[turns->count++];
}

bool tbd_stops_turn(struct tbd_stops_turns *turns, struct tbd_msg_thread *message, uint64_t time)
{
    struct tbd_stops_turn *from, *to;

    if (message->event != TBD_THREAD_SWITCH)
        return true;
    from = of_thread(turns, message->from);
    if (!from)
        return false;
    from->block_time = time ? time - 1 : TBD_NO_BLOCK_TIME;
    to = of_thread(turns, message->thread);
    if (!to)
        return false;
    if (message->block_time != TBD_NO_BLOCK_TIME)
        message->block_time = to->block_time;
    return true;
}

void tbd_stops_turns_free(struct tbd_stops_turns *turns)
{
    free(turns->last);
}
