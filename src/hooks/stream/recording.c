// SPDX-License-Identifier: MIT
/* recording.c - see recording.h */
#include "hooks/stream/recording.h"

#include "base/fmt.h"
#include "base/log.h"
#include "base/sys.h"

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
    if (__atomic_load_n(&thread->kick, __ATOMIC_RELAXED))
        tbd_ring_protect_sigsafe(&tbd_recording.ring);
}

uint32_t tbd_recording_last_insns(const struct tbd_thread *thread)
{
    const struct tbd_stream_head *head = tbd_recording.ring.head;
    const struct tbd_block_def *defs =
        (const struct tbd_block_def *)((const uint8_t *)head + head->defs_offset);
    uint32_t id = tbd_ring_last_block(&tbd_recording.ring, thread);

    if (!tbd_recording_has_blocks() || id == 0 || id > head->def_count)
        return 0;
    return defs[id - 1].insn_count;
}

void tbd_recording_wait_done(void)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;

    if (!tbd_recording.is_on)
        return;
    for (;;) {
        uint32_t state = __atomic_load_n(&head->organizer_state, __ATOMIC_ACQUIRE);
        uint32_t lock = __atomic_load_n(&head->organizer_lock, __ATOMIC_ACQUIRE);

        if (state == TBD_ORGANIZER_DONE || state == TBD_ORGANIZER_FAILED || (lock & 0x40000000u))
            return;
        tbd_sys_futex_wait(&head->organizer_state, state, 50);
    }
}
