// SPDX-License-Identifier: MIT
/* recording.c - see recording.h */
#include "hooks/stream/recording.h"

#include "base/fmt.h"
#include "base/linux.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/stream/patience.h"

struct tbd_recording tbd_recording;

void tbd_recording_note(uint32_t severity, const char *format, ...)
{
    char text[256];
    struct tbd_part parts[2] = { { &severity, sizeof(severity) }, { text, 0 } };
    va_list list;

    va_start(list, format);
    parts[1].bytes = tbd_fmt_list(text, sizeof(text), format, list) + 1;
    va_end(list);
    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_NOTE, parts, 2);
    TBD_LOG(TBD_LOG_INFO, "note", "%s", text);
}

void tbd_recording_interrupted(uint64_t instructions)
{
    struct tbd_part part = { &instructions, sizeof(instructions) };

    tbd_ring_send(&tbd_recording.ring, tbd_thread_now(), TBD_MSG_INTERRUPTED, &part, 1);
}

void tbd_recording_keep_kick(struct tbd_thread *thread)
{
    if (tbd_recording_kicks() && __atomic_load_n(&thread->kick, __ATOMIC_RELAXED))
        tbd_ring_protect_sigsafe(&tbd_recording.ring);
}

uint32_t tbd_recording_last_insns(const struct tbd_thread *thread)
{
    const struct tbd_stream_head *head = tbd_recording.ring.head;
    const struct tbd_block_def *defs =
        (const struct tbd_block_def *)((const uint8_t *)head + head->defs_offset);
    uint32_t id;

    if (!tbd_recording_has_blocks())
        return 0; /* the thread may have no place in the stream */
    id = tbd_ring_last_block(&tbd_recording.ring, thread);
    if (id == 0 || id > head->def_count)
        return 0;
    return defs[id - 1].insn_count;
}

const char *tbd_recording_gone_why(void)
{
    static char text[TBD_FAILURE_BYTES + 32];
    const struct tbd_stream_head *head = tbd_recording.ring.head;
    char failure[TBD_FAILURE_BYTES];

    if (__atomic_load_n(&head->organizer_state, __ATOMIC_ACQUIRE) != TBD_ORGANIZER_FAILED)
        return "the organizer is gone: it was killed";
    memcpy(failure, head->failure, sizeof(failure));
    failure[sizeof(failure) - 1] = '\0';
    tbd_fmt(text, sizeof(text), "the trace cannot be written: %s", failure);
    return text;
}

void tbd_recording_wait_done(void)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;
    struct tbd_patience patience = { 0 };

    if (!tbd_recording.is_on)
        return;
    for (;;) {
        /* First: an organizer that ended as it should was done before. */
        bool died = tbd_ring_consumer_died(&tbd_recording.ring);
        uint32_t state = __atomic_load_n(&head->organizer_state, __ATOMIC_ACQUIRE);

        if (state == TBD_ORGANIZER_DONE)
            return;
        if (died) {
            if (tbd_log_level >= TBD_LOG_WARN)
                tbd_say("the trace of process %u ends early: %s", tbd_recording.pid,
                        tbd_recording_gone_why());
            return;
        }
        tbd_patience_wait(&patience, &head->organizer_state, state, head->organizer_lock);
    }
}
