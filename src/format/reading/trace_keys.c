// SPDX-License-Identifier: MIT
/* trace_keys.c - see trace_keys.h */
#include "format/reading/trace_keys.h"

#include "format/files/codec.h"
#include "format/reading/window_read.h"
#include "format/trace/trace_handle.h"

#include <stdlib.h>

static void release(void *part)
{
    tbd_key_files_free(part);
}

/* With the trace locked.  NULL without memory: then there are none. */
static struct tbd_key_files *files_locked(struct tbd_trace *trace)
{
    static const struct tbd_trace_part_class class = {
        .kind = TBD_TRACE_PART_KEYS,
        .bytes = sizeof(struct tbd_key_files),
        .release = release,
    };
    struct tbd_key_files *files = tbd_trace_part_locked(trace, &class);

    if (files)
        tbd_key_files_list(files, tbd_trace_dir(trace).fd);
    return files;
}

size_t tbd_trace_segment_count(struct tbd_trace *trace)
{
    const struct tbd_key_files *files;
    size_t count;

    tbd_trace_lock(trace);
    files = files_locked(trace);
    count = files ? files->count : 0;
    tbd_trace_unlock(trace);
    return count;
}

size_t tbd_trace_segment_from(struct tbd_trace *trace, uint64_t time)
{
    const struct tbd_key_files *files;
    size_t from;

    tbd_trace_lock(trace);
    files = files_locked(trace);
    from = files ? tbd_key_files_from(files, time) : 0;
    tbd_trace_unlock(trace);
    return from;
}

uint32_t tbd_trace_segment_window(struct tbd_trace *trace, size_t index)
{
    const struct tbd_key_files *files;
    uint32_t window;

    tbd_trace_lock(trace);
    files = files_locked(trace);
    window = files && index < files->count ? tbd_key_files_window(files, index) : UINT32_MAX;
    tbd_trace_unlock(trace);
    return window;
}

bool tbd_trace_segment_begins_before(struct tbd_trace *trace, size_t index, uint64_t time)
{
    const struct tbd_key_files *files;
    bool begins;

    tbd_trace_lock(trace);
    files = files_locked(trace);
    begins = files && tbd_key_files_begins_before(files, index, time);
    tbd_trace_unlock(trace);
    return begins;
}

const struct tbd_keys *tbd_trace_segment(struct tbd_trace *trace, size_t index)
{
    const struct tbd_keys *keys;
    struct tbd_key_files *files;

    tbd_trace_lock(trace);
    files = files_locked(trace);
    keys =
        files ? tbd_key_files_get(files, index, tbd_trace_dir(trace), tbd_trace_id(trace)) : NULL;
    tbd_trace_unlock(trace);
    return keys;
}

/* ---- one window, from its TOC ---- */

enum tbd_status tbd_window_keys_coded(struct tbd_trace *trace, uint32_t index,
                                      struct tbd_buffer *out)
{
    struct tbd_window *window;
    enum tbd_status status = tbd_window_load_summaries(trace, index, &window, NULL);

    if (status)
        return status;
    tbd_keys_collect(window, out);
    tbd_window_free(window);
    return out->failed ? TBD_NOMEM : TBD_OK;
}

enum tbd_status tbd_window_keys(struct tbd_trace *trace, uint32_t index, struct tbd_keys *out)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);
    struct tbd_buffer coded = { 0 };
    enum tbd_status status = tbd_window_keys_coded(trace, index, &coded);
    struct tbd_reader in;
    uint64_t key = 0;

    *out = (struct tbd_keys){ 0 };
    if (!status)
        out->own = malloc((coded.used + 1) * sizeof(*out->own)); /* a key has at least a byte */
    if (!status && !out->own)
        status = TBD_NOMEM;
    in = (struct tbd_reader){ coded.bytes, coded.bytes + coded.used, false };
    while (!status && in.at < in.end)
        out->own[out->count++] = key += tbd_reader_varint(&in);
    tbd_buffer_free(&coded);
    if (status) {
        tbd_keys_free(out);
        return status;
    }
    out->windows = 1;
    out->times[0] = summary->first_time;
    out->times[1] = summary->first_time + summary->blocks;
    return TBD_OK;
}
