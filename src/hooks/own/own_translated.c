// SPDX-License-Identifier: MIT
/* own_translated.c - see own.h: native play goes on with translated code
 *
 *     native --> a stop after which native play cannot follow --> the window ends --> translated, to the program's end
 *
 * The other threads are in the engine, at stops of theirs: each goes on translated when it has its turn.
 *
 * OWN_TRANSLATED-1  A window is of stops alone, or of block entries alone. (not checked: the window is due where the mode
 *     changes, and each later one begins with TBD_MSG_TRANSLATED) */
#include "hooks/own/own.h"

#include "base/log.h"
#include "hooks/instructions/special.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/window_end.h"

static const char *wanted;
static bool is_translated;

void tbd_own_translate_soon(const char *why)
{
    wanted = wanted ? wanted : why;
}

bool tbd_own_translate_is_due(void)
{
    return wanted && !is_translated;
}

bool tbd_own_is_translated(void)
{
    return is_translated;
}

void tbd_own_translate(struct tbd_thread *thread)
{
    tbd_own_end();
    is_translated = true;
    tbd_recording.has_stops = false;
    tbd_special_logs_stores = false;
    tbd_recording_note(0, "translated from time %lu on: %s",
                       tbd_ring_time(&tbd_recording.ring, thread), wanted);
    TBD_LOG(TBD_LOG_INFO, "own", "pid %u is translated: %s", tbd_recording.pid, wanted);
    tbd_window_translates();
    tbd_recording.window_due = tbd_ring_time(&tbd_recording.ring, thread);
}
