// SPDX-License-Identifier: MIT
/* trace_head.c - a trace's header: the program, and how it is recorded
 *
 * The index begins with a copy of the header, used if the header is damaged. */
#include "format/trace/trace_private.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static enum tbd_status read_start(struct tbd_trace *trace, const struct tbd_record_view *record,
                                  struct tbd_error *why)
{
    struct tbd_trace_info *info = &trace->info;
    const uint8_t *at = record->payload + sizeof(struct tbd_msg_start);
    struct tbd_msg_start start;

    if (trace->argv || !tbd_start_check(record->payload, record->bytes))
        return tbd_record_corrupt(&trace->header, record, "an impossible start record", why);
    memcpy(&start, record->payload, sizeof(start));
    trace->argv = calloc((size_t)start.argc + 1, sizeof(*trace->argv));
    if (!trace->argv)
        return TBD_NOMEM;
    for (uint32_t i = 0; i < start.argc + 2; i++) {
        const char *text = (const char *)at;

        at += strlen(text) + 1;
        if (i == 0)
            info->program = text;
        else if (i <= start.argc)
            trace->argv[i - 1] = (char *)(uintptr_t)text;
        else
            info->cwd = text;
    }
    info->argv = trace->argv;
    info->argc = (int)start.argc;
    info->pid = start.pid;
    info->main_thread = start.tid;
    info->parent_pid = start.parent_pid;
    info->is_forked = start.flags & TBD_START_FORKED;
    info->is_dump = start.flags & TBD_START_DUMP;
    info->realtime_ns = start.realtime_ns;
    info->xcr0 = start.xcr0;
    info->brk_end = start.brk_end;
    info->hook_set = (uint32_t)start.hook_set;
    info->max_insns = start.max_insns;
    if (!start.max_insns || start.max_insns > TBD_BLOCK_MAX_INSNS)
        info->max_insns = TBD_BLOCK_MAX_INSNS;
    info->xsave_bytes = start.xsave_bytes;
    return TBD_OK;
}

/* START and CONFIG are in the header, and in the index once more. */
static enum tbd_status read_head_record(struct tbd_trace *trace,
                                        const struct tbd_record_view *record, struct tbd_error *why)
{
    struct tbd_disk_config config;
    struct tbd_disk_closed closed;

    if (record->type == TBD_REC_START)
        return read_start(trace, record, why);
    if (record->type == TBD_REC_CLOSED && record->bytes >= sizeof(closed)) {
        memcpy(&closed, record->payload, sizeof(closed));
        trace->reading.closed_bytes = closed.index_bytes;
    }
    if (record->type == TBD_REC_CONFIG && record->bytes >= sizeof(config)) {
        memcpy(&config, record->payload, sizeof(config));
        trace->info.window_blocks = config.window_blocks;
        trace->info.budget = config.budget;
        trace->info.counts_later = config.flags & TBD_CONFIG_COUNT_LATER;
        trace->info.counts_stops = config.flags & TBD_CONFIG_COUNT_STOPS;
        trace->info.own_code = config.flags & TBD_CONFIG_OWN_CODE;
        trace->has_config = true;
    }
    return TBD_OK;
}

static bool has_head(const struct tbd_trace *trace)
{
    return trace->info.program && trace->has_config;
}

static enum tbd_status read_header(struct tbd_trace *trace, struct tbd_error *why)
{
    enum tbd_status status =
        tbd_file_open(trace->dir, "header", TBD_FILE_HEADER, 0, &trace->header, why);
    struct tbd_record_view record;

    if (status)
        return status;
    trace->id = tbd_file_header(&trace->header)->trace_id;
    while (!(status = tbd_file_next(&trace->header, &record, why))) {
        status = read_head_record(trace, &record, why);
        if (status)
            return status;
    }
    if (status != TBD_NOTFOUND)
        return status;
    if (!has_head(trace))
        return tbd_error_set(why, TBD_TRUNCATED, "header", trace->header.size,
                             "a record is missing");
    return TBD_OK;
}

/* The header is damaged: the index has a copy of what is in it. */
static enum tbd_status read_header_copy(struct tbd_trace *trace)
{
    enum tbd_status status =
        tbd_file_open(trace->dir, "index", TBD_FILE_INDEX, trace->id, &trace->header_copy, NULL);
    struct tbd_record_view record;

    if (status)
        return status;
    trace->id = tbd_file_header(&trace->header_copy)->trace_id;
    for (int i = 0; i < 2 && !has_head(trace); i++) {
        status = tbd_file_next(&trace->header_copy, &record, NULL);
        if (status || (record.type != TBD_REC_START && record.type != TBD_REC_CONFIG) ||
            (record.type == TBD_REC_START && trace->info.program))
            continue;
        status = read_head_record(trace, &record, NULL);
        if (status)
            return status;
    }
    return has_head(trace) ? TBD_OK : TBD_NOTFOUND;
}

static enum tbd_status read_head(struct tbd_trace *trace, struct tbd_error *why)
{
    struct tbd_error own = { 0 };
    enum tbd_status status = read_header(trace, &own);

    if (status && status != TBD_NOTRACE && status != TBD_NOMEM && !read_header_copy(trace)) {
        tbd_damage_note(trace, "header, offset %llu: %s", (unsigned long long)own.offset,
                        own.detail);
        return TBD_OK;
    }
    if (status && why)
        *why = own;
    return status;
}

/* A trace's folder exists a moment before its header; making files in a folder changes the folder's
 * time. */
#define MOMENT_SECONDS 2

static bool is_being_made(const struct tbd_trace *trace)
{
    struct stat info;

    return !fstat(trace->dir.fd, &info) && time(NULL) - info.st_mtime <= MOMENT_SECONDS;
}

enum tbd_status tbd_trace_read_head(struct tbd_trace *trace, struct tbd_error *why)
{
    static const struct timespec moment = { .tv_nsec = 5000000 };
    enum tbd_status status = read_head(trace, why);

    while (status == TBD_NOTRACE && is_being_made(trace)) {
        nanosleep(&moment, NULL);
        status = read_head(trace, why);
    }
    return status;
}
