// SPDX-License-Identifier: MIT
/* cmd_traces.c - ls and rm: the traces of the trace root
 *
 * Both need no trace to ask: the run's session is not open. */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/commands/rows.h"

#include "base/array.h"
#include "base/open_file.h"
#include "base/safe_stream.h"
#include "format/files/crash_file.h"
#include "format/files/trace_dir.h"
#include "format/files/trace_remove.h"
#include "format/trace/beginning.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

struct trace_row {
    char *name;
    char *command; /* the arguments, joined by blanks */
    char end[64];
    uint64_t started; /* CLOCK_REALTIME in ns */
    uint64_t blocks;
    bool is_uncounted; /* of native play: nobody knows the blocks yet */
    uint64_t bytes;    /* on disk */
    uint32_t pid;
    bool is_open;  /* its end is not in it */
    bool is_empty; /* no window, or not yet: it cannot be opened */
};

struct trace_list {
    char root[4096];
    int fd;
    struct trace_row *rows; /* in order of their start */
    size_t count, capacity;
};

/* ---- reading ---- */

static void fill_row(struct trace_row *row, const struct tbd_trace_info *info)
{
    char end[64];

    row->command = tbd_command_arguments(info);
    row->started = info->realtime_ns;
    row->blocks = info->blocks;
    row->is_uncounted = info->counts_stops;
    row->pid = info->pid;
    row->is_open = !info->finished;
    snprintf(row->end, sizeof(row->end), "%s", tbd_command_end_text(info, end, sizeof(end)));
}

/* The dump of a program that was killed has what ran last, and is no trace (mode=crash). */
static bool fill_killed(struct trace_row *row, const struct trace_list *list, const char *name)
{
    char path[300];
    struct stat file;

    snprintf(path, sizeof(path), "%s/" TBD_CRASH_FILE, name);
    if (!tbd_stat_below(list->fd, path, &file) || !S_ISREG(file.st_mode))
        return false;
    row->command = strdup("");
    row->started = (uint64_t)file.st_mtim.tv_sec * NS_PER_S + (uint64_t)file.st_mtim.tv_nsec;
    snprintf(row->end, sizeof(row->end), "killed");
    return true;
}

/* A recording that has only begun, or never came further.  Process 0 is this one: it lives. */
static bool fill_begun(struct trace_row *row, const struct trace_list *list, const char *name)
{
    int dir = tbd_open_folder_below(list->fd, name);
    enum tbd_beginning what = dir < 0 ? TBD_NOT_BEGINNING : tbd_beginning_of(dir);
    struct stat info;

    if (what != TBD_NOT_BEGINNING && !fstat(dir, &info)) {
        row->command = strdup("");
        row->started = (uint64_t)info.st_ctim.tv_sec * NS_PER_S + (uint64_t)info.st_ctim.tv_nsec;
        row->is_open = what == TBD_BEGINNING;
        row->is_empty = true;
        snprintf(row->end, sizeof(row->end), "%s",
                 row->is_open ? "has only begun" : "nothing recorded");
    }
    if (dir >= 0)
        close(dir);
    return row->is_empty;
}

static bool fill_trace(struct trace_row *row, const struct trace_list *list, const char *name)
{
    struct tbd_trace *trace;
    struct tbd_error why;
    char path[4400];

    snprintf(path, sizeof(path), "%s/%s", list->root, name);
    if (tbd_trace_open_summary(path, &trace, &why) != TBD_OK)
        return false;
    fill_row(row, tbd_trace_info(trace));
    tbd_trace_close(trace);
    return true;
}

/* A folder that is no trace of this user's, and no dump, is left out. */
static enum tbd_status add_trace(struct trace_list *list, const char *name)
{
    struct trace_row filled = { .name = NULL };
    struct trace_row *row;
    struct stat folder;
    int dir;

    if (!tbd_stat_below(list->fd, name, &folder) || !S_ISDIR(folder.st_mode) ||
        folder.st_uid != geteuid())
        return TBD_OK;
    /* Twice: what had no header yet for the first question may have one for the third. */
    if (!fill_trace(&filled, list, name) && !fill_killed(&filled, list, name) &&
        !fill_begun(&filled, list, name) && !fill_trace(&filled, list, name))
        return TBD_OK;
    if (!tbd_array_grow(&list->rows, list->count, &list->capacity, sizeof(*row))) {
        free(filled.command);
        return TBD_NOMEM;
    }
    row = &list->rows[list->count++];
    *row = filled;
    row->name = strdup(name);
    dir = tbd_open_folder_below(list->fd, name);
    if (dir >= 0) {
        row->bytes = tbd_trace_disk_bytes(dir);
        close(dir);
    }
    return row->name == NULL || row->command == NULL ? TBD_NOMEM : TBD_OK;
}

static int compare_rows(const void *left, const void *right)
{
    const struct trace_row *one = left, *other = right;

    if (one->started != other->started)
        return one->started < other->started ? -1 : 1;
    return strcmp(one->name, other->name);
}

static void free_list(struct trace_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->rows[i].name);
        free(list->rows[i].command);
    }
    free(list->rows);
    if (list->fd >= 0)
        close(list->fd);
}

/* Free the list in any case. */
static enum tbd_status read_list(struct trace_list *list)
{
    enum tbd_status status;
    struct dirent *entry;
    DIR *entries;

    *list = (struct trace_list){ .fd = -1 };
    status = tbd_trace_root(list->root, sizeof(list->root));
    if (status != TBD_OK)
        return status;
    list->fd = tbd_dir_open(list->root);
    entries = list->fd < 0 ? NULL : tbd_dir_list(list->fd, ".");
    if (entries == NULL)
        return errno == ENOENT ? TBD_OK : TBD_IO;
    while (status == TBD_OK && (entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] != '.')
            status = add_trace(list, entry->d_name);
    }
    closedir(entries);
    if (list->count != 0)
        qsort(list->rows, list->count, sizeof(*list->rows), compare_rows);
    return status;
}

/* ---- ls ---- */

/* "1.5M" */
static void print_size(uint64_t bytes, char *out, size_t capacity)
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 1024 && unit + 1 < strlen(units); unit++)
        value /= 1024;
    snprintf(out, capacity, unit == 0 || value >= 100 ? "%.0f%c" : "%.1f%c", value, units[unit]);
}

static void print_when(uint64_t ns, char *out, size_t capacity)
{
    time_t seconds = (time_t)(ns / NS_PER_S);
    struct tm local;

    if (localtime_r(&seconds, &local) == NULL || strftime(out, capacity, "%F %T", &local) == 0)
        snprintf(out, capacity, "?");
}

static json_t *row_object(const struct tbd_command_run *run, const struct trace_row *row)
{
    json_t *object = json_object();
    char text[64];

    json_object_set_new(object, "trace", tbd_output_text(row->name));
    print_when(row->started, text, sizeof(text));
    json_object_set_new(object, "started", json_string(text));
    json_object_set_new(object, "end", json_string(row->end));
    if (row->is_uncounted)
        json_object_set_new(object, "blocks",
                            run->session->json ? json_null()
                                               : json_string(run->session->csv ? "" : "-"));
    else
        json_object_set_new(object, "blocks", json_integer((json_int_t)row->blocks));
    if (run->session->json) {
        json_object_set_new(object, "bytes", json_integer((json_int_t)row->bytes));
        json_object_set_new(object, "started_ns", json_integer((json_int_t)row->started));
        json_object_set_new(object, "pid", json_integer(row->pid));
    }
    print_size(row->bytes, text, sizeof(text));
    json_object_set_new(object, "size", json_string(text));
    json_object_set_new(object, "command", tbd_output_text(row->command));
    return object;
}

enum tbd_exit tbd_command_ls(struct tbd_command_run *run)
{
    static const char *const columns[] = { "trace", "started", "end", "blocks",
                                           "size",  "command", NULL };
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct trace_list list;
    struct tbd_rows rows;
    enum tbd_status status;

    if (run->argc != 0)
        return tbd_command_usage(run, "ls takes no arguments");
    status = read_list(&list);
    if (status == TBD_OK) {
        tbd_rows_start(&rows, run, columns);
        for (size_t i = 0; i < list.count; i++)
            tbd_rows_add(&rows, row_object(run, &list.rows[i]));
        result = tbd_rows_end(&rows);
    } else {
        result = tbd_command_fail(run, status);
    }
    free_list(&list);
    return result;
}

/* ---- rm ---- */

/* Its process lives and its end is not in the trace. */
static bool is_being_recorded(const struct trace_row *row)
{
    return row->is_open && (kill((pid_t)row->pid, 0) == 0 || errno == EPERM);
}

static enum tbd_exit refuse(const char *name, const char *why)
{
    fprintf(stderr, "tbdq: %s: %s\nhint: `tbdq ls` lists the traces\n", tbd_shown(name), why);
    return TBD_EXIT_USAGE;
}

static struct trace_row *find_row(struct trace_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->rows[i].name, name) == 0)
            return &list->rows[i];
    }
    return NULL;
}

static enum tbd_exit remove_row(struct tbd_command_run *run, struct trace_list *list,
                                struct trace_row *row)
{
    if (tbd_trace_remove(list->fd, row->name) != TBD_OK) {
        fprintf(stderr, "tbdq: %s: not all of it could be removed\n", tbd_shown(row->name));
        return TBD_EXIT_SYSTEM;
    }
    if (run->session->json)
        tbd_output_line(row_object(run, row), run->out);
    row->name[0] = '\0';
    return TBD_EXIT_FOUND;
}

/* `latest` leads to the newest trace that is left. */
static enum tbd_exit set_latest(const struct trace_list *list)
{
    enum tbd_status status = tbd_dir_remove_latest(list->fd);
    const struct trace_row *newest = NULL;

    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].name[0] != '\0' && !list->rows[i].is_empty)
            newest = &list->rows[i];
    }
    if (status == TBD_OK && newest != NULL)
        status = tbd_dir_set_latest(list->fd, newest->name, newest->started);
    return status == TBD_OK ? TBD_EXIT_FOUND : TBD_EXIT_SYSTEM;
}

/* Nothing is removed unless all that are named can be. */
static enum tbd_exit check_names(struct tbd_command_run *run, struct trace_list *list)
{
    for (unsigned i = 0; i < run->argc; i++) {
        const struct trace_row *row = find_row(list, run->argv[i]);

        if (row == NULL)
            return refuse(run->argv[i], "no trace of yours has this name");
        if (is_being_recorded(row))
            return refuse(run->argv[i], "it is being recorded");
    }
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_rm(struct tbd_command_run *run)
{
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct trace_list list;
    enum tbd_status status;

    if (run->argc == 0)
        return tbd_command_usage(run, "rm takes names of traces");
    status = read_list(&list);
    result = status == TBD_OK ? check_names(run, &list) : tbd_command_fail(run, status);
    for (unsigned i = 0; i < run->argc && result == TBD_EXIT_FOUND; i++) {
        struct trace_row *row = find_row(&list, run->argv[i]);

        if (row != NULL) /* named twice */
            result = remove_row(run, &list, row);
    }
    if (result == TBD_EXIT_FOUND)
        result = set_latest(&list);
    free_list(&list);
    return result;
}
