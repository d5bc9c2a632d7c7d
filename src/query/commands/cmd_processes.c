// SPDX-License-Identifier: MIT
/* cmd_processes.c - processes: the tree of traces that one trace belongs to
 *
 * query/channels/process_tree.h says who is whose child. */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/channels/process_tree.h"

#include "base/escape.h"
#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is printed of a process and not known by the tree. */
struct process_shown {
    char end[64];
    char arguments[]; /* joined by blanks */
};

static void *describe(const struct tbd_trace_info *info)
{
    char *arguments = tbd_command_arguments(info);
    struct process_shown *shown;
    char end[64] = { 0 };

    if (arguments == NULL)
        return NULL;
    shown = malloc(sizeof(*shown) + strlen(arguments) + 1);
    if (shown != NULL) {
        snprintf(shown->end, sizeof(shown->end), "%s",
                 tbd_command_end_text(info, end, sizeof(end)));
        memcpy(shown->arguments, arguments, strlen(arguments) + 1);
    }
    free(arguments);
    return shown;
}

/* ---- printing ---- */

static void print_object(const struct tbd_command_run *run, const struct tbd_process_tree *tree,
                         const struct tbd_process_row *row, unsigned depth)
{
    const struct process_shown *shown = row->more;
    json_t *object = json_object();

    json_object_set_new(object, "trace", tbd_output_text(row->path));
    json_object_set_new(object, "pid", json_integer((json_int_t)row->pid));
    json_object_set_new(object, "parent_pid", json_integer((json_int_t)row->parent_pid));
    json_object_set_new(
        object, "parent",
        row->parent == TBD_NO_PARENT ? json_null() : tbd_output_text(tree->rows[row->parent].path));
    json_object_set_new(object, "by",
                        json_string(tbd_process_began(tree, (size_t)(row - tree->rows))));
    json_object_set_new(object, "depth", json_integer((json_int_t)depth));
    json_object_set_new(object, "started_ns", json_integer((json_int_t)row->started));
    json_object_set_new(object, "blocks", json_integer((json_int_t)row->blocks));
    json_object_set_new(object, "end", tbd_output_text(shown->end));
    json_object_set_new(object, "command", tbd_output_text(shown->arguments));
    json_object_set_new(object, "asked", json_boolean(row->is_asked));
    tbd_output_line(object, run->out);
}

/* The beginning of the command line, on one line. */
static const char *short_command(const struct process_shown *shown, char *out, size_t bytes)
{
    (void)tbd_escape(TBD_ESCAPE_FIELD, shown->arguments, strlen(shown->arguments), out, bytes);
    return out;
}

static void print_text(const struct tbd_command_run *run, const struct tbd_process_tree *tree,
                       const struct tbd_process_row *row, unsigned depth, uint64_t began)
{
    const struct process_shown *shown = row->more;
    const char *name = strrchr(row->path, '/');
    char command[61];

    fprintf(run->out, "%c %*s%" PRIu32 "  %-5s  %s  +%.3f s  %" PRIu64 " blocks  %s  %s\n",
            row->is_asked ? '*' : ' ', (int)(2 * depth), "", row->pid,
            tbd_process_began(tree, (size_t)(row - tree->rows)),
            tbd_shown(name == NULL ? row->path : name + 1), (double)(row->started - began) / 1e9,
            row->blocks, tbd_shown(shown->end), short_command(shown, command, sizeof(command)));
}

/* Depth first, children in the order of their start. */
static void print_tree(const struct tbd_command_run *run, const struct tbd_process_tree *tree,
                       size_t index, unsigned depth, uint64_t began)
{
    const struct tbd_process_row *row = &tree->rows[index];

    if (run->session->json)
        print_object(run, tree, row, depth);
    else
        print_text(run, tree, row, depth, began);
    for (size_t i = index + 1; i < tree->count; i++)
        if (tree->rows[i].parent == index)
            print_tree(run, tree, i, depth + 1, began);
}

enum tbd_exit tbd_command_processes(struct tbd_command_run *run)
{
    struct tbd_process_tree tree;
    enum tbd_status status;

    if (run->argc != 0)
        return tbd_command_usage(run, "processes takes no arguments");
    status = tbd_process_tree_read(run->session->info, describe, &tree);
    for (size_t i = 0; status == TBD_OK && i < tree.count; i++)
        if (tree.rows[i].is_member && tree.rows[i].parent == TBD_NO_PARENT)
            print_tree(run, &tree, i, 0, tree.rows[i].started);
    tbd_process_tree_free(&tree);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}
