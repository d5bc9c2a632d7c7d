// SPDX-License-Identifier: MIT
/* cmd_path.c - path: what a program died of, and what its threads ran last (mode=crash)
 *
 * It needs nothing of the dump but its rings, so the run's session is not open. */
#include "base/safe_stream.h"
#include "query/commands/commands.h"
#include "query/commands/path_end.h"
#include "query/commands/path_merged.h"
#include "query/commands/path_rows.h"
#include "query/commands/path_values.h"
#include "query/commands/rows.h"
#include "query/output/output.h"

#include "query/session/packed_trace.h"
#include "query/text/user_cache.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_OF_A_THREAD 40u

struct path {
    struct tbd_rings ring;
    struct tbd_path_rows rows;
    unsigned long max;
    uint32_t tid; /* 0: all threads */
    bool with_regs;
    bool is_first, is_last; /* a table, not threads */
    bool is_merged;         /* threads together, not one after the other */
    const char *part;       /* with rows.is_kept: of this one alone; NULL: all */
    bool with_past;         /* rows need values */
    struct tbd_path_wanted wanted;
};

/* ---- rows ---- */

/* CSV has rows only. */
static void print_end(const struct tbd_command_run *run, struct path *path)
{
    json_t *object = run->session->csv ? NULL : tbd_path_end_object(&path->ring, path->with_regs);

    if (object != NULL && run->session->json) {
        tbd_output_line(object, run->out);
        return;
    }
    if (object != NULL)
        tbd_path_end_print(&path->ring, object, path->with_regs, run->out);
    json_decref(object);
}

static enum tbd_exit add_threads(struct tbd_command_run *run, struct path *path,
                                 struct tbd_rows *rows, bool dying)
{
    const struct tbd_crash_head *head = path->ring.dump.head;
    enum tbd_status status;

    for (uint32_t i = 0; i < head->thread_count; i++) {
        struct tbd_rings_thread *thread = &path->ring.threads[i];

        if (thread->is_dying != dying || (path->tid != 0 && thread->tid != path->tid))
            continue;
        status = tbd_path_rows_add(&path->rows, thread, path->max, rows);
        if (status != TBD_OK)
            return tbd_command_fail(run, status);
        if (path->rows.on != 0)
            fprintf(stderr, "tbdq: note: thread %u goes on: path from -%" PRIu64 "%s thread %u\n",
                    thread->tid, path->rows.on, path->rows.forward ? " forward" : "", thread->tid);
    }
    return TBD_EXIT_FOUND;
}

static enum tbd_exit print_table(struct tbd_command_run *run, struct path *path,
                                 struct tbd_rings_thread *table)
{
    struct tbd_rows rows;

    if (table->count == 0) {
        fprintf(
            stderr,
            "tbdq: the dump has no such table\ntbdq: hint: tbd crash --tables=both -- PROGRAM\n");
        return TBD_EXIT_NOT_FOUND;
    }
    path->rows.when = table->when;
    tbd_rows_start(&rows, run, tbd_path_rows_columns(&path->rows));
    if (tbd_path_rows_add(&path->rows, table, path->max, &rows) == TBD_OK)
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return tbd_command_no_memory();
}

/* Why no row is there: no part has a ring of its own, another one has, or nothing of it ran. */
static enum tbd_exit no_part(const struct path *path, enum tbd_status status)
{
    const struct tbd_crash_dump *dump = &path->ring.dump;

    if (dump->head->part_count == 0) {
        fprintf(stderr, "tbdq: no part of the program had a ring of its own\n"
                        "hint: tbd crash --parts='libz.so.1;modules' -- PROGRAM\n");
        return TBD_EXIT_NOT_FOUND;
    }
    if (status != TBD_NOTFOUND)
        fprintf(stderr, "tbdq: nothing of %s ran\n",
                path->part != NULL ? tbd_shown(path->part) : "the parts");
    else
        fprintf(stderr, "tbdq: '%s' had no ring of its own\n", tbd_shown(path->part));
    for (uint32_t i = 0; i < dump->head->part_count; i++)
        fprintf(stderr, "%s%s", i == 0 ? "hint: these had: " : ", ",
                tbd_shown(dump->parts[i].name));
    fputc('\n', stderr);
    return TBD_EXIT_NOT_FOUND;
}

static enum tbd_exit print_kept(struct tbd_command_run *run, struct path *path)
{
    enum tbd_status status = tbd_rings_keep(&path->ring, path->part);
    bool is_modules = path->part != NULL && strcmp(path->part, "modules") == 0;

    if (is_modules && path->rows.unit == TBD_PATH_LINES) /* a row is an entry */
        path->rows.unit = TBD_PATH_BLOCKS;
    if (status == TBD_NOTFOUND || (status == TBD_OK && path->ring.kept.count == 0))
        return no_part(path, status);
    return status == TBD_OK ? print_table(run, path, &path->ring.kept) : tbd_command_no_memory();
}

static enum tbd_exit add_merged(struct tbd_command_run *run, struct path *path,
                                struct tbd_rows *rows)
{
    static const struct tbd_path_merged none;
    enum tbd_status status;

    path->rows.merged = &none; /* its columns */
    tbd_rows_start(rows, run, tbd_path_rows_columns(&path->rows));
    status = tbd_path_merged_add(&path->rows, path->max, rows);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

/* The thread that died comes last. */
static enum tbd_exit add_apart(struct tbd_command_run *run, struct path *path,
                               struct tbd_rows *rows)
{
    enum tbd_exit result;

    tbd_rows_start(rows, run, tbd_path_rows_columns(&path->rows));
    result = add_threads(run, path, rows, false);
    return result == TBD_EXIT_FOUND ? add_threads(run, path, rows, true) : result;
}

static enum tbd_exit print(struct tbd_command_run *run, struct path *path)
{
    struct tbd_rows rows;
    enum tbd_exit result;

    if (path->rows.is_kept)
        return print_kept(run, path);
    if (path->is_first || path->is_last)
        return print_table(run, path, path->is_first ? &path->ring.first : &path->ring.last);
    print_end(run, path);
    result = path->is_merged ? add_merged(run, path, &rows) : add_apart(run, path, &rows);
    if (result == TBD_EXIT_FOUND)
        return tbd_rows_end(&rows);
    tbd_rows_drop(&rows);
    return result;
}

/* ---- arguments ---- */

static bool take_number(const char *text, unsigned long most, unsigned long *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    *out = strtoul(text, &end, 10);
    return *end == '\0' && *out != 0 && *out <= most;
}

/* "-12" or "-12+3" */
static bool take_from(struct tbd_path_rows *rows, const char *text)
{
    char number[32];
    size_t length = strcspn(text, "+");
    unsigned long back, insn = 0;

    if (*text != '-' || length >= sizeof(number))
        return false;
    snprintf(number, sizeof(number), "%.*s", (int)length - 1, text + 1);
    if (!take_number(number, ULONG_MAX, &back) ||
        (text[length] == '+' && strcmp(text + length, "+0") != 0 &&
         !take_number(text + length + 1, UINT32_MAX, &insn)))
        return false;
    rows->from = back;
    rows->from_insn = (uint32_t)insn;
    return true;
}

/* The words with an argument of their own. */
static bool take_pair(struct path *path, const char *word, const char *value)
{
    unsigned long number;

    if (strcmp(word, "thread") == 0 && take_number(value, UINT32_MAX, &number))
        path->tid = (uint32_t)number;
    else if (strcmp(word, "from") == 0)
        return take_from(&path->rows, value);
    else if (strcmp(word, "part") == 0 && !path->rows.is_kept)
        path->rows.is_kept = (path->part = value) != NULL;
    else if (strcmp(word, "--only") == 0)
        path->wanted.only = value;
    else if (strcmp(word, "--where") == 0)
        path->wanted.where = value;
    else
        return false;
    return true;
}

static bool take_word(struct path *path, const char *word)
{
    struct tbd_path_rows *rows = &path->rows;

    if (strcmp(word, "blocks") == 0 && rows->unit == TBD_PATH_LINES)
        rows->unit = TBD_PATH_BLOCKS;
    else if (strcmp(word, "insns") == 0 && rows->unit == TBD_PATH_LINES)
        rows->unit = TBD_PATH_INSNS;
    else if (strcmp(word, "first") == 0 && !path->is_last)
        path->is_first = true;
    else if (strcmp(word, "last") == 0 && !path->is_first)
        path->is_last = true;
    else if (strcmp(word, "parts") == 0 && !path->rows.is_kept)
        rows->is_kept = true;
    else if (strcmp(word, "merged") == 0)
        path->is_merged = true;
    else if (strcmp(word, "fold") == 0)
        rows->folds = true;
    else if (strcmp(word, "text") == 0)
        rows->with_text = true;
    else if (strcmp(word, "forward") == 0)
        rows->forward = true;
    else if (strcmp(word, "regs") == 0)
        path->with_regs = true;
    else if (strcmp(word, "--values") == 0)
        path->wanted.values = rows->with_text = true;
    else if (strcmp(word, "--why") == 0)
        path->wanted.why = true;
    else if (strcmp(word, "--exact") == 0)
        path->wanted.exact = true;
    else if (strcmp(word, "--variables") == 0)
        path->wanted.variables = true;
    else
        return take_number(word, 1u << 24, &path->max);
    return true;
}

static bool takes_value(const char *word)
{
    return strcmp(word, "thread") == 0 || strcmp(word, "from") == 0 || strcmp(word, "part") == 0 ||
           strcmp(word, "--only") == 0 || strcmp(word, "--where") == 0;
}

static bool take_arguments(const struct tbd_command_run *run, struct path *path)
{
    for (unsigned i = 0; i < run->argc; i++) {
        const char *word = run->argv[i];
        bool has_value = takes_value(word);

        if (has_value ? i + 1 == run->argc || !take_pair(path, word, run->argv[i + 1])
                      : !take_word(path, word))
            return false;
        i += has_value;
    }
    return (!path->rows.forward || path->rows.from != 0) &&
           (path->rows.forward || path->rows.from_insn == 0) &&
           path->is_first + path->is_last + path->rows.is_kept + path->is_merged <= 1 &&
           !(path->is_merged && (path->wanted.values || path->wanted.where != NULL ||
                                 path->tid != 0 || path->rows.from != 0)) &&
           !((path->is_first || path->is_last || path->rows.is_kept) &&
             (path->wanted.values || path->wanted.where != NULL || path->with_regs ||
              path->rows.folds || path->tid != 0)) &&
           (path->wanted.values || !(path->wanted.only != NULL || path->wanted.why ||
                                     path->wanted.exact || path->wanted.variables)) &&
           (path->wanted.where == NULL || !path->rows.folds);
}

static enum tbd_status open_ring(struct tbd_command_run *run, struct path *path)
{
    char buffer[4096], unpacked[TBD_USER_CACHE_PATH + 128];
    const char *name =
        run->trace == NULL ? NULL : tbd_session_find(run->trace, buffer, sizeof(buffer));
    enum tbd_status status = TBD_OK;

    if (tbd_packed_trace(run->session, name, unpacked, sizeof(unpacked), &status)) {
        name = unpacked;
        tbd_packed_use_extras(name);
    }
    return status == TBD_OK ? tbd_rings_open(name, &path->ring, &run->session->why) : status;
}

static bool has_thread(const struct path *path)
{
    bool found = path->tid == 0;

    for (uint32_t i = 0; !found && i < path->ring.dump.head->thread_count; i++)
        found = path->ring.threads[i].tid == path->tid;
    return found;
}

static enum tbd_exit worse(enum tbd_exit a, enum tbd_exit b)
{
    return a > b ? a : b;
}

enum tbd_exit tbd_command_path(struct tbd_command_run *run)
{
    struct path path = { .max = ROWS_OF_A_THREAD };
    enum tbd_status status;
    enum tbd_exit result;

    path.rows.ring = &path.ring;
    path.rows.syntax = run->session->syntax;
    if (!take_arguments(run, &path))
        return tbd_command_usage(
            run, "path does not take that, or not together with what comes before it (help path)");
    status = open_ring(run, &path);
    result = status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
    if (result == TBD_EXIT_FOUND && !has_thread(&path))
        result = tbd_command_usage(run, "the dump has no such thread: see `tbdq threads`");
    path.with_past = path.wanted.values || path.wanted.where != NULL;
    path.rows.with_values = path.wanted.values;
    if (result == TBD_EXIT_FOUND && path.with_past)
        result = tbd_path_values_new(run, &path.ring, &path.wanted, &path.rows.values);
    if (result == TBD_EXIT_FOUND)
        result = print(run, &path);
    if (result <= TBD_EXIT_NOT_FOUND && path.with_past)
        result = worse(result, tbd_path_values_tell(path.rows.values));
    tbd_path_values_free(path.rows.values);
    tbd_path_rows_free(&path.rows);
    tbd_rings_close(&path.ring);
    return result;
}

/* A dump's own is in query/dumps. */
enum tbd_exit tbd_command_advise(struct tbd_command_run *run)
{
    (void)run;
    fputs("tbdq: advise: it looks at crash dumps: a recording knows all values\n", stderr);
    return TBD_EXIT_TRACE;
}
