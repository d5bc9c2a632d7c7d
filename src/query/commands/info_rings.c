// SPDX-License-Identifier: MIT
/* info_rings.c - see info_rings.h */
#include "query/commands/info_rings.h"

#include "base/safe_stream.h"
#include "format/files/file.h"
#include "query/commands/path_end.h"
#include "query/output/output.h"
#include "query/past/past_kept.h"
#include "query/session/wall_time.h"

#include <inttypes.h>
#include <string.h>

/* NULL: they cannot be read, and session->why says why. */
static struct tbd_rings *rings_of(struct tbd_session *session)
{
    struct tbd_rings *rings;
    enum tbd_status status = tbd_past_rings(session, &rings);

    if (status != TBD_OK && session->why.status != status)
        (void)!tbd_error_set(&session->why, status, "", 0, "%s", tbd_status_text(status));
    return status == TBD_OK ? rings : NULL;
}

/* ---- JSON ---- */

static json_t *threads_array(const struct tbd_rings *rings)
{
    json_t *threads = json_array();

    for (uint32_t i = 0; i < rings->dump.head->thread_count; i++) {
        const struct tbd_rings_thread *thread = &rings->threads[i];
        json_t *object = json_object();

        tbd_output_count(object, "thread", thread->tid);
        tbd_output_count(object, "blocks", thread->newest.count);
        tbd_output_count(object, "condensed", thread->older);
        json_object_set_new(object, "lost_older", json_boolean(thread->has_older));
        json_array_append_new(threads, object);
    }
    return threads;
}

static json_t *parts_array(const struct tbd_rings *rings)
{
    json_t *parts = json_array();

    for (uint32_t i = 0; i < rings->dump.head->part_count; i++)
        json_array_append_new(parts, tbd_output_text(rings->dump.parts[i].name));
    return parts;
}

json_t *tbd_info_rings_object(struct tbd_session *session)
{
    const struct tbd_rings *rings = rings_of(session);
    json_t *object = json_object();

    if (rings == NULL) {
        json_object_set_new(object, "error", tbd_output_text(session->why.detail));
        return object;
    }
    json_object_set_new(object, "threads", threads_array(rings));
    tbd_output_count(object, "without_ring", rings->dump.head->without_ring);
    tbd_output_count(object, "modules", rings->dump.head->module_count);
    tbd_output_count(object, "distinct_blocks", rings->dump.head->block_count);
    tbd_output_count(object, "values", rings->dump.head->value_count);
    json_object_set_new(object, "parts", parts_array(rings));
    tbd_output_count(object, "first_entries", rings->dump.head->first_count);
    tbd_output_count(object, "last_entries", rings->dump.head->last_count);
    return object;
}

json_t *tbd_info_killed_object(struct tbd_session *session)
{
    struct tbd_wall_time written = { session->info->realtime_ns, true };
    struct tbd_rings *rings = rings_of(session);
    char text[TBD_WALL_TIME_BYTES];
    json_t *object = json_object();

    json_object_set_new(object, "trace", tbd_output_text(session->info->path));
    json_object_set_new(object, "dump", json_true());
    json_object_set_new(object, "rings_only", json_true());
    json_object_set_new(object, "finished", json_true());
    json_object_set_new(object, "ended", json_string(tbd_wall_time_text(&written, true, text)));
    if (rings != NULL)
        json_object_set_new(object, "end", tbd_path_end_object(rings, false));
    json_object_set_new(object, "rings", tbd_info_rings_object(session));
    return object;
}

/* ---- text ---- */

static void print_thread(const struct tbd_rings_thread *thread, bool is_first, FILE *out)
{
    fprintf(out, "%-10s thread %" PRIu32 ": %" PRIu64 " blocks", is_first ? "rings" : "",
            thread->tid, thread->newest.count);
    if (thread->older != 0)
        fprintf(out, ", and %" PRIu64 " before them, condensed", thread->older);
    fputs(thread->has_older ? "; what ran before is lost\n" : "; all that it ran\n", out);
}

/* Tables of option `tables`, parts, values: what there is of them. */
static void print_beside(const struct tbd_crash_dump *dump, FILE *out)
{
    const struct tbd_crash_head *head = dump->head;

    if (head->first_count != 0 || head->last_count != 0)
        fprintf(out, "tables     %" PRIu32 " first entries of blocks, %" PRIu32 " last ones\n",
                head->first_count, head->last_count);
    for (uint32_t i = 0; i < head->part_count; i++)
        fprintf(out, "%s%s", i == 0 ? "parts      " : ", ", tbd_shown(dump->parts[i].name));
    if (head->part_count != 0)
        fprintf(out, ": %" PRIu32 " entries\n", head->kept_count);
    if (head->value_count != 0)
        fprintf(out, "values     recorded beside the rings %" PRIu32 " times\n", head->value_count);
    fprintf(out, "code       %" PRIu32 " different blocks of %" PRIu32 " modules\n",
            head->block_count, head->module_count);
}

void tbd_info_rings_print(struct tbd_session *session, FILE *out)
{
    const struct tbd_rings *rings = rings_of(session);

    if (rings == NULL) {
        fprintf(out, "rings      none: %s\n", tbd_shown(session->why.detail));
        return;
    }
    for (uint32_t i = 0; i < rings->dump.head->thread_count; i++)
        print_thread(&rings->threads[i], i == 0, out);
    if (rings->dump.head->without_ring != 0)
        fprintf(out,
                "           %" PRIu32 " more threads had no ring: there were %u at the same time, "
                "which is all there can be\n",
                rings->dump.head->without_ring, TBD_CRASH_RINGS);
    print_beside(&rings->dump, out);
}

static void print_end(struct tbd_rings *rings, FILE *out)
{
    json_t *end = tbd_path_end_object(rings, false);

    fputs("end        ", out);
    tbd_path_end_print(rings, end, false, out);
    json_decref(end);
}

void tbd_info_killed_print(struct tbd_session *session, FILE *out)
{
    struct tbd_wall_time written = { session->info->realtime_ns, true };
    struct tbd_rings *rings = rings_of(session);
    char text[TBD_WALL_TIME_BYTES];

    fprintf(out, "trace      %s\n", tbd_shown(session->info->path));
    if (rings != NULL)
        print_end(rings, out);
    fprintf(
        out,
        "time       to %s\n"
        "events     none: a crash dump of a program that could not say anything before its end\n"
        "missing    registers, memory, stacks, arguments and facts of the system at its end: what ran last "
        "is there, and values as far as they follow from what was recorded beside the rings\n",
        tbd_wall_time_text(&written, true, text));
    tbd_info_rings_print(session, out);
}
