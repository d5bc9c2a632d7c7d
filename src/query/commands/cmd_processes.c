// SPDX-License-Identifier: MIT
/* cmd_processes.c - processes: the tree of traces that one trace belongs to
 *
 * The headers of the traces in one folder give process ids and start times, no more.  A process id
 * may have been used again, so the time decides: a trace's parent is the latest trace of the parent's
 * process that began before it.
 *
 * CMD_PROCESSES-1  list.rows are in order of their start; `parent` is an index below the row's own,
 *     so the tree has no cycles. */
#include "query/commands/commands.h"
#include "query/output/output.h"

#include "base/assert.h"
#include "base/escape.h"
#include "base/safe_stream.h"
#include "base/array.h"
#include <dirent.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_PARENT SIZE_MAX

struct process_row {
    char *path;
    char *arguments; /* joined by blanks */
    char end[64];
    uint32_t pid, parent_pid;
    uint64_t started; /* CLOCK_REALTIME in ns */
    uint64_t blocks;
    size_t parent;
    bool is_forked, is_asked, is_member;
    bool ended_by_exec;
};

struct process_list {
    struct process_row *rows;
    size_t count, capacity;
};

/* ---- reading ---- */

struct process_folder {
    const char *folder;
    const struct tbd_trace_info *asked;
};

static enum tbd_status add_row(struct process_list *list, const struct tbd_trace_info *info,
                               const char *asked)
{
    struct process_row *row;

    if (!tbd_array_grow(&list->rows, list->count, &list->capacity, sizeof(*row)))
        return TBD_NOMEM;
    row = &list->rows[list->count];
    *row = (struct process_row){ .path = strdup(info->path),
                                 .arguments = tbd_command_arguments(info),
                                 .pid = info->pid,
                                 .parent_pid = info->parent_pid,
                                 .started = info->realtime_ns,
                                 .blocks = info->blocks,
                                 .parent = NO_PARENT,
                                 .is_forked = info->is_forked,
                                 .is_asked = strcmp(info->path, asked) == 0 };
    row->ended_by_exec = info->finished && info->end.how == TBD_ENDED_EXEC;
    list->count++;
    if (row->path == NULL || row->arguments == NULL)
        return TBD_NOMEM;
    snprintf(row->end, sizeof(row->end), "%s",
             tbd_command_end_text(info, (char[64]){ 0 }, sizeof(row->end)));
    return TBD_OK;
}

/* A folder that is no trace, or a damaged one, is left out, and so are traces of others than this
 * user and the owner of the trace that is asked: nobody has asked for them. */
static enum tbd_status add_trace(struct process_list *list, const struct process_folder *in,
                                 const char *name)
{
    const char *asked = in->asked->path;
    struct tbd_trace *trace;
    struct tbd_error why;
    struct stat info;
    char path[4096];
    enum tbd_status status;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", in->folder, name) >= sizeof(path) ||
        lstat(path, &info) != 0 || !S_ISDIR(info.st_mode) ||
        (info.st_uid != geteuid() && info.st_uid != in->asked->owner) ||
        tbd_trace_open_summary(path, &trace, &why) != TBD_OK)
        return TBD_OK;
    status = add_row(list, tbd_trace_info(trace), asked);
    tbd_trace_close(trace);
    return status;
}

static enum tbd_status read_folder(struct process_list *list, const struct process_folder *in)
{
    DIR *directory = opendir(in->folder);
    enum tbd_status status = TBD_OK;
    struct dirent *entry;

    if (directory == NULL)
        return TBD_IO;
    while (status == TBD_OK && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.' && entry->d_type != DT_LNK && entry->d_type != DT_REG)
            status = add_trace(list, in, entry->d_name);
    }
    closedir(directory);
    return status;
}

static void free_list(struct process_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->rows[i].path);
        free(list->rows[i].arguments);
    }
    free(list->rows);
}

/* ---- the tree ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct process_row *one = a;
    const struct process_row *other = b;

    return one->started != other->started ? (one->started < other->started ? -1 : 1)
                                          : strcmp(one->path, other->path);
}

static size_t latest_of(const struct process_list *list, size_t before, uint32_t pid)
{
    for (size_t i = before; i-- > 0;)
        if (list->rows[i].pid == pid)
            return i;
    return NO_PARENT;
}

/* execve keeps the process: the new program's trace is a child of the program before it. */
static size_t find_parent(const struct process_list *list, size_t index)
{
    const struct process_row *row = &list->rows[index];
    size_t before = latest_of(list, index, row->pid);

    if (!row->is_forked && before != NO_PARENT && list->rows[before].ended_by_exec)
        return before;
    return latest_of(list, index, row->parent_pid);
}

/* Marks the rows that have the same first ancestor as the trace of this session. */
static void mark_members(struct process_list *list)
{
    size_t root = NO_PARENT;

    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].is_asked)
            root = i;
    while (root != NO_PARENT && list->rows[root].parent != NO_PARENT)
        root = list->rows[root].parent;
    for (size_t i = 0; i < list->count; i++) {
        struct process_row *row = &list->rows[i];

        row->is_member =
            i == root || (row->parent != NO_PARENT && list->rows[row->parent].is_member);
    }
}

static void make_tree(struct process_list *list)
{
    qsort(list->rows, list->count, sizeof(*list->rows), compare_rows);
    for (size_t i = 0; i < list->count; i++) {
        list->rows[i].parent = find_parent(list, i);
        TBD_INVARIANT("CMD_PROCESSES-1",
                      list->rows[i].parent == NO_PARENT || list->rows[i].parent < i);
    }
    mark_members(list);
}

/* ---- printing ---- */

static const char *how_started(const struct process_list *list, const struct process_row *row)
{
    if (row->is_forked)
        return "fork";
    return row->parent != NO_PARENT && list->rows[row->parent].pid == row->pid ? "exec" : "start";
}

static void print_object(const struct tbd_command_run *run, const struct process_list *list,
                         const struct process_row *row, unsigned depth)
{
    json_t *object = json_object();

    json_object_set_new(object, "trace", tbd_output_text(row->path));
    json_object_set_new(object, "pid", json_integer((json_int_t)row->pid));
    json_object_set_new(object, "parent_pid", json_integer((json_int_t)row->parent_pid));
    json_object_set_new(object, "parent",
                        row->parent == NO_PARENT ? json_null()
                                                 : tbd_output_text(list->rows[row->parent].path));
    json_object_set_new(object, "by", json_string(how_started(list, row)));
    json_object_set_new(object, "depth", json_integer((json_int_t)depth));
    json_object_set_new(object, "started_ns", json_integer((json_int_t)row->started));
    json_object_set_new(object, "blocks", json_integer((json_int_t)row->blocks));
    json_object_set_new(object, "end", tbd_output_text(row->end));
    json_object_set_new(object, "command", tbd_output_text(row->arguments));
    json_object_set_new(object, "asked", json_boolean(row->is_asked));
    tbd_output_line(object, run->out);
}

/* The beginning of the command line, on one line. */
static const char *short_command(const struct process_row *row, char *out, size_t bytes)
{
    (void)tbd_escape(TBD_ESCAPE_FIELD, row->arguments, strlen(row->arguments), out, bytes);
    return out;
}

static void print_text(const struct tbd_command_run *run, const struct process_list *list,
                       const struct process_row *row, unsigned depth, uint64_t began)
{
    const char *name = strrchr(row->path, '/');
    char command[61];

    fprintf(run->out, "%c %*s%" PRIu32 "  %-5s  %s  +%.3f s  %" PRIu64 " blocks  %s  %s\n",
            row->is_asked ? '*' : ' ', (int)(2 * depth), "", row->pid, how_started(list, row),
            tbd_shown(name == NULL ? row->path : name + 1), (double)(row->started - began) / 1e9,
            row->blocks, tbd_shown(row->end), short_command(row, command, sizeof(command)));
}

/* Depth first, children in the order of their start. */
static void print_tree(const struct tbd_command_run *run, const struct process_list *list,
                       size_t index, unsigned depth, uint64_t began)
{
    const struct process_row *row = &list->rows[index];

    if (run->session->json)
        print_object(run, list, row, depth);
    else
        print_text(run, list, row, depth, began);
    for (size_t i = index + 1; i < list->count; i++)
        if (list->rows[i].parent == index)
            print_tree(run, list, i, depth + 1, began);
}

enum tbd_exit tbd_command_processes(struct tbd_command_run *run)
{
    const struct tbd_trace_info *asked = run->session->info;
    struct process_list list = { 0 };
    enum tbd_status status;
    char folder[4096];

    if (run->argc != 0)
        return tbd_command_usage(run, "processes takes no arguments");
    snprintf(folder, sizeof(folder), "%s", asked->path);
    status =
        read_folder(&list, &(struct process_folder){ .folder = dirname(folder), .asked = asked });
    if (status == TBD_OK)
        make_tree(&list);
    for (size_t i = 0; status == TBD_OK && i < list.count; i++)
        if (list.rows[i].is_member && list.rows[i].parent == NO_PARENT)
            print_tree(run, &list, i, 0, list.rows[i].started);
    free_list(&list);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}
