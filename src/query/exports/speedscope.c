// SPDX-License-Identifier: MIT
/* speedscope.c - an evented profile for speedscope.app: one for each thread, times in block entries */
#include "query/exports/timeline.h"

#include "query/output/output.h"

#include <inttypes.h>

struct speedscoping {
    const struct tbd_export *export;
    uint32_t threads, events; /* of the thread */
};

static void print_frames(const struct tbd_export *export)
{
    const struct tbd_timeline *timeline = export->timeline;

    for (size_t i = 0; i < timeline->name_count; i++) {
        const struct tbd_timeline_name *name = &timeline->names[i];
        json_t *frame = json_object();

        json_object_set_new(frame, "name", tbd_output_text(name->text));
        if (name->line != 0) {
            json_object_set_new(frame, "file", tbd_output_text(name->file));
            json_object_set_new(frame, "line", json_integer(name->line));
        }
        fputs(i == 0 ? "\n" : ",\n", export->out);
        (void)json_dumpf(frame, export->out, JSON_COMPACT);
        json_decref(frame);
    }
}

static void end_thread(struct speedscoping *own)
{
    if (own->threads != 0)
        fputs("\n]}", own->export->out);
}

static void begin_thread(void *context, uint32_t thread)
{
    struct speedscoping *own = context;

    end_thread(own);
    fprintf(own->export->out,
            "%s{\"type\":\"evented\",\"name\":\"thread %" PRIu32
            "\",\"unit\":\"none\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"events\":[",
            own->threads++ == 0 ? "\n" : ",\n", thread, own->export->run->session->info->blocks);
    own->events = 0;
}

static void print_event(struct speedscoping *own, char type, const struct tbd_timeline_slice *slice,
                        uint64_t at)
{
    fprintf(own->export->out, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
            own->events++ == 0 ? "\n" : ",\n", type, slice->name, at);
}

static void print_open(void *context, const struct tbd_timeline_slice *slice)
{
    print_event(context, 'O', slice, slice->start);
}

static void print_close(void *context, const struct tbd_timeline_slice *slice, uint64_t self)
{
    (void)self;
    print_event(context, 'C', slice, slice->end);
}

bool tbd_export_speedscope(const struct tbd_export *export)
{
    struct speedscoping own = { .export = export };
    struct tbd_timeline_visitor visitor = {
        .thread = begin_thread, .open = print_open, .close = print_close, .context = &own
    };
    bool is_good;

    fputs(
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"tbdq\","
        "\"shared\":{\"frames\":[",
        export->out);
    print_frames(export);
    fputs("]},\n\"profiles\":[", export->out);
    is_good = tbd_timeline_walk(export->timeline, &visitor);
    end_thread(&own);
    fputs("]}\n", export->out);
    return is_good;
}
