// SPDX-License-Identifier: MIT
/* keys_again.c - see keys_again.h
 *
 * The windows of one segment may need several: counted windows have more keys.  The first one takes the old one's place, by
 * its name, before the others appear, so that two segments never have the same window. */
#include "format/merging/keys_again.h"

#include "format/reading/trace_keys.h"

bool tbd_keys_segment_of(struct tbd_trace *trace, uint32_t index, size_t *out, uint32_t *out_last)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);
    size_t segment = tbd_trace_segment_from(trace, summary->first_time);

    for (; tbd_trace_segment_begins_before(trace, segment, summary->first_time + 1); segment++) {
        const struct tbd_keys *keys = tbd_trace_segment(trace, segment);
        uint32_t first = tbd_trace_segment_window(trace, segment);

        if (!keys || summary->number < first || summary->number - first >= keys->windows)
            continue;
        *out = segment;
        *out_last = tbd_trace_window_with(trace, first + keys->windows - 1);
        return *out_last != UINT32_MAX;
    }
    return false;
}

/* Are its windows still those that it was made of?  Where some were merged, it stays. */
static bool is_as_made(const struct tbd_trace *trace, const struct tbd_keys *keys, uint32_t first)
{
    uint32_t index = tbd_trace_window_with(trace, first);

    for (uint32_t i = 0; i < keys->windows; i++) {
        const struct tbd_window_summary *summary =
            index == UINT32_MAX ? NULL : tbd_trace_window(trace, index + i);

        if (!summary || summary->number != first + i || summary->span != 1 ||
            summary->first_time != keys->times[i])
            return false;
    }
    return true;
}

static void write_segment(const struct tbd_writer *writer, struct tbd_key_segment *segment)
{
    struct tbd_buffer file = { 0 };

    if (segment->windows) {
        tbd_writer_code_segment(writer, segment, &file);
        tbd_writer_segment(writer, segment, &file);
    }
    tbd_buffer_free(&file);
    tbd_key_segment_clear(segment);
}

void tbd_keys_write_again(struct tbd_trace *trace, const struct tbd_writer *writer, size_t index)
{
    const struct tbd_keys *keys = tbd_trace_segment(trace, index);
    uint32_t first = tbd_trace_segment_window(trace, index);
    struct tbd_key_segment segment = { 0 };

    if (!keys || !is_as_made(trace, keys, first))
        return;
    first = tbd_trace_window_with(trace, first);
    for (uint32_t i = 0; i < keys->windows; i++) {
        const struct tbd_window_summary *summary = tbd_trace_window(trace, first + i);
        struct tbd_buffer coded = { 0 };
        bool is_good = !tbd_window_keys_coded(trace, first + i, &coded);

        if (is_good && tbd_key_segment_is_full(&segment))
            write_segment(writer, &segment);
        is_good = is_good && tbd_key_segment_add(&segment, summary->number, summary->first_time,
                                                 summary->blocks, &coded);
        tbd_buffer_free(&coded);
        if (!is_good)
            break;
    }
    write_segment(writer, &segment);
}
