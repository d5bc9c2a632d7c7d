// SPDX-License-Identifier: MIT
/* other_threads.c - see other_threads.h */
#include "format/coding/other_threads.h"

#include "format/files/disk_window.h"
#include "format/window/window_make.h"

#include <string.h>

static void put_states(struct tbd_buffer *out, struct tbd_buffer *images,
                       const struct tbd_thread_state *states, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tbd_buffer_put(out, &states[i].regs, sizeof(states[i].regs));
        tbd_buffer_put(images, states[i].xsave, states[i].regs.xsave_bytes);
    }
}

void tbd_thread_states_put(struct tbd_buffer *out, const struct tbd_window *window)
{
    size_t at_end = window->complete ? window->end_thread_count : 0;
    struct tbd_disk_threads head = { window->thread_count, at_end };
    struct tbd_buffer images = { 0 };
    size_t begin;

    if (!window->thread_count && !at_end)
        return; /* then `called` is empty too */
    begin = tbd_file_begin_record(out, TBD_REC_THREADS);
    tbd_buffer_put(out, &head, sizeof(head));
    put_states(out, &images, window->threads, window->thread_count);
    put_states(out, &images, window->end_threads, at_end);
    tbd_lz4_pack(out, images.bytes, images.used);
    tbd_file_finish_record(out, begin);
    if (images.failed)
        out->failed = true;
    tbd_buffer_free(&images);
    if (window->called_count)
        tbd_file_put_record(out, TBD_REC_CALLED, window->called,
                            window->called_count * sizeof(*window->called));
}

/* Ids are not checked: callers ignore ids that the trace does not have. */
bool tbd_called_threads_get(const struct tbd_record_view *record, struct tbd_window *window)
{
    size_t count = record->payload ? record->bytes / sizeof(struct tbd_called_thread) : 0;
    struct tbd_called_thread *called = tbd_window_memory(window, count * sizeof(*called));

    if (called && count)
        memcpy(called, record->payload, count * sizeof(*called));
    window->called = called;
    window->called_count = called ? count : 0;
    return called;
}

/* Reads the registers of `count` threads; adds the lengths of their images to *total. */
static struct tbd_thread_state *get_states(const uint8_t *regs, uint64_t count,
                                           struct tbd_window *window, uint64_t *total)
{
    struct tbd_thread_state *states = tbd_window_memory(window, count * sizeof(*states));

    for (uint64_t i = 0; states && i < count; i++) {
        memcpy(&states[i].regs, regs + i * sizeof(states->regs), sizeof(states->regs));
        *total += states[i].regs.xsave_bytes;
    }
    return states;
}

static const uint8_t *place_images(struct tbd_thread_state *states, uint64_t count,
                                   const uint8_t *image)
{
    for (uint64_t i = 0; i < count; i++) {
        states[i].xsave = image;
        image += states[i].regs.xsave_bytes;
    }
    return image;
}

enum tbd_status tbd_thread_states_get(const struct tbd_record_view *record,
                                      struct tbd_window *window)
{
    struct tbd_disk_threads head;
    struct tbd_thread_state *threads, *end_threads;
    const uint8_t *at, *rest;
    uint64_t most, total = 0;
    enum tbd_status status;
    uint8_t *images;

    if (!record->payload)
        return TBD_OK;
    if (record->bytes < sizeof(head))
        return TBD_CORRUPT;
    memcpy(&head, record->payload, sizeof(head));
    at = record->payload + sizeof(head);
    most = (record->bytes - sizeof(head)) / sizeof(struct tbd_regs);
    if (head.at_start > most || head.at_end > most - head.at_start)
        return TBD_CORRUPT;
    threads = get_states(at, head.at_start, window, &total);
    at += head.at_start * sizeof(struct tbd_regs);
    end_threads = get_states(at, head.at_end, window, &total);
    rest = at + head.at_end * sizeof(struct tbd_regs);
    if (!threads || !end_threads)
        return TBD_NOMEM;
    most = record->bytes - (uint64_t)(rest - record->payload);
    if (total > tbd_lz4_most(most))
        return TBD_CORRUPT;
    images = tbd_window_memory(window, total);
    if (!images)
        return TBD_NOMEM;
    status = tbd_unpack(rest, most, images, total);
    if (status)
        return status;
    place_images(end_threads, head.at_end, place_images(threads, head.at_start, images));
    window->threads = threads;
    window->thread_count = head.at_start;
    window->end_threads = end_threads;
    window->end_thread_count = head.at_end;
    return TBD_OK;
}
