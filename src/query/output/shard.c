// SPDX-License-Identifier: MIT
/* shard.c - see shard.h */
#include "query/output/shard.h"

#include "query/output/output.h"

/* What all shards of an answer have in common. */
static json_t *common(const struct tbd_session *session, const struct tbd_shard_kind *kind)
{
    const struct tbd_trace_info *info = session->info;
    json_t *object = json_object(), *columns = json_array();

    for (size_t i = 0; kind->columns != NULL && kind->columns[i] != NULL; i++)
        json_array_append_new(columns, json_string(kind->columns[i]));
    json_object_set_new(object, "program", tbd_output_text(info->program));
    tbd_output_count(object, "pid", info->pid);
    tbd_output_count(object, "started_ns", info->realtime_ns);
    tbd_output_count(object, "blocks", info->blocks);
    json_object_set_new(object, "question", tbd_output_text(kind->question));
    json_object_set_new(object, "kind", json_string(kind->name));
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "type", json_string(kind->type == NULL ? "" : kind->type));
    json_object_set_new(object, "backward", json_boolean(kind->backward));
    tbd_output_count(object, "wanted", kind->wanted);
    if (kind->at != NULL)
        json_object_set_new(object, "at", json_string(kind->at));
    json_object_set_new(object, "form",
                        json_string(session->json  ? "json"
                                    : session->csv ? "csv"
                                                   : "text"));
    json_object_set_new(object, "wall", json_boolean(session->shows_wall));
    json_object_set_new(object, "threads",
                        json_boolean(tbd_trace_thread_count(session->trace) > 1));
    json_object_set_new(
        object, "since",
        json_integer(session->shard.given.has_since ? (json_int_t)session->shard.given.since : -1));
    json_object_set_new(
        object, "until",
        json_integer(session->shard.given.has_until ? (json_int_t)session->shard.given.until : -1));
    return object;
}

void tbd_shard_begin(struct tbd_session *session, const struct tbd_shard_kind *kind, FILE *out)
{
    json_t *object;

    if (session->shard.has_begun)
        return;
    session->shard.has_begun = true;
    object = json_object();
    tbd_output_count(object, "tbd_shard", TBD_SHARD_VERSION);
    tbd_output_count(object, "shard", session->shard.number);
    tbd_output_count(object, "shards", session->shard.count);
    tbd_output_count(object, "from", session->shard.from);
    tbd_output_count(object, "to", session->shard.to);
    json_object_set_new(object, "of", common(session, kind));
    tbd_output_line(object, out);
}

void tbd_shard_row(struct tbd_session *session, json_t *row, FILE *out)
{
    session->shard.rows++;
    tbd_output_line(row, out);
}

static json_t *left_out(const struct tbd_left_out *left)
{
    json_t *object = json_object();

    json_object_set_new(object, "windows", tbd_output_windows(left));
    json_object_set_new(object, "unlisted", json_boolean(left->has_unlisted));
    json_object_set_new(object, "lost_end", json_boolean(left->has_lost_end));
    tbd_output_count(object, "first", left->first);
    json_object_set_new(object, "why", tbd_output_text(left->why));
    return object;
}

void tbd_shard_end(struct tbd_session *session, int exit, FILE *out)
{
    json_t *object;

    if (!session->shard.has_begun)
        return;
    object = json_object();
    tbd_output_count(object, "tbd_shard_end", TBD_SHARD_VERSION);
    tbd_output_count(object, "rows", session->shard.rows);
    tbd_output_count(object, "exit", (uint64_t)exit);
    json_object_set_new(object, "left_out", left_out(&session->left_out));
    tbd_output_count(object, "divisions", session->stats.bad.divisions);
    tbd_output_count(object, "unmapped", session->stats.bad.unmapped);
    tbd_output_count(object, "optimized", session->stats.bad.optimized);
    tbd_output_line(object, out);
}
