// SPDX-License-Identifier: MIT
/* process_tree.c - see process_tree.h
 *
 * PROCESS_TREE-1  Rows are in order of their start; `parent` is an index below the row's own, so the
 *     tree has no cycles. */
#include "query/channels/process_tree.h"

#include "base/array.h"
#include "base/assert.h"

#include <dirent.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
/* The first of a pipeline's processes may end before the last one begins. */
#define PIPELINE_NS (10 * NS_PER_S)

/* ---- reading ---- */

struct process_folder {
    char path[4096];
    const struct tbd_trace_info *asked;
    void *(*describe)(const struct tbd_trace_info *info);
};

/* When its list of windows was written last: by the recording, or later. */
static uint64_t changed_at(const struct tbd_trace_info *info)
{
    char path[4096];
    struct stat file;

    if ((size_t)snprintf(path, sizeof(path), "%s/index", info->path) >= sizeof(path) ||
        lstat(path, &file) != 0)
        return info->realtime_ns;
    return (uint64_t)file.st_mtim.tv_sec * NS_PER_S + (uint64_t)file.st_mtim.tv_nsec;
}

static enum tbd_status add_row(struct tbd_process_tree *tree, const struct process_folder *in,
                               const struct tbd_trace_info *info)
{
    struct tbd_process_row *row;

    if (!tbd_array_grow(&tree->rows, tree->count, &tree->capacity, sizeof(*row)))
        return TBD_NOMEM;
    row = &tree->rows[tree->count++];
    *row = (struct tbd_process_row){ .path = strdup(info->path),
                                     .more = in->describe == NULL ? NULL : in->describe(info),
                                     .pid = info->pid,
                                     .parent_pid = info->parent_pid,
                                     .started = info->realtime_ns,
                                     .changed = changed_at(info),
                                     .blocks = info->blocks,
                                     .parent = TBD_NO_PARENT,
                                     .is_forked = info->is_forked,
                                     .is_asked = strcmp(info->path, in->asked->path) == 0 };
    row->ended_by_exec = info->finished && info->end.how == TBD_ENDED_EXEC;
    if (row->path == NULL || (row->more == NULL && in->describe != NULL))
        return TBD_NOMEM;
    return TBD_OK;
}

/* A folder that is no trace, or a damaged one, is left out, and so are traces of others than this
 * user and the owner of the trace that is asked: nobody has asked for them. */
static enum tbd_status add_trace(struct tbd_process_tree *tree, const struct process_folder *in,
                                 const char *name)
{
    struct tbd_trace *trace;
    struct tbd_error why;
    struct stat info;
    char path[4096];
    enum tbd_status status;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", in->path, name) >= sizeof(path) ||
        lstat(path, &info) != 0 || !S_ISDIR(info.st_mode) ||
        (info.st_uid != geteuid() && info.st_uid != in->asked->owner) ||
        tbd_trace_open_summary(path, &trace, &why) != TBD_OK)
        return TBD_OK;
    status = add_row(tree, in, tbd_trace_info(trace));
    tbd_trace_close(trace);
    return status;
}

static enum tbd_status read_folder(struct tbd_process_tree *tree, const struct process_folder *in)
{
    DIR *directory = opendir(in->path);
    enum tbd_status status = TBD_OK;
    struct dirent *entry;

    if (directory == NULL)
        return TBD_IO;
    while (status == TBD_OK && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.' && entry->d_type != DT_LNK && entry->d_type != DT_REG)
            status = add_trace(tree, in, entry->d_name);
    }
    closedir(directory);
    return status;
}

void tbd_process_tree_free(struct tbd_process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->rows[i].path);
        free(tree->rows[i].more);
    }
    free(tree->rows);
    *tree = (struct tbd_process_tree){ .rows = NULL };
}

/* ---- the tree ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct tbd_process_row *one = a;
    const struct tbd_process_row *other = b;

    return one->started != other->started ? (one->started < other->started ? -1 : 1)
                                          : strcmp(one->path, other->path);
}

static size_t latest_of(const struct tbd_process_tree *tree, size_t before, uint32_t pid)
{
    for (size_t i = before; i-- > 0;)
        if (tree->rows[i].pid == pid)
            return i;
    return TBD_NO_PARENT;
}

/* execve keeps the process: the new program's trace is a child of the program before it. */
static size_t find_parent(const struct tbd_process_tree *tree, size_t index)
{
    const struct tbd_process_row *row = &tree->rows[index];
    size_t before = latest_of(tree, index, row->pid);

    if (!row->is_forked && before != TBD_NO_PARENT && tree->rows[before].ended_by_exec)
        return before;
    return latest_of(tree, index, row->parent_pid);
}

static size_t root_of(const struct tbd_process_tree *tree, size_t index)
{
    while (tree->rows[index].parent != TBD_NO_PARENT)
        index = tree->rows[index].parent;
    return index;
}

/* The first ancestor of the trace that is asked; TBD_NO_PARENT: it is not there. */
static size_t asked_root(const struct tbd_process_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->rows[i].is_asked)
            return root_of(tree, i);
    return TBD_NO_PARENT;
}

/* Marks the rows that have the same first ancestor as the trace that is asked, `root`. */
static void mark_members(struct tbd_process_tree *tree, size_t root)
{
    for (size_t i = 0; i < tree->count; i++) {
        struct tbd_process_row *row = &tree->rows[i];

        row->is_member =
            i == root || (row->parent != TBD_NO_PARENT && tree->rows[row->parent].is_member);
    }
}

static bool may_share_pipes(const struct tbd_process_row *a, const struct tbd_process_row *b)
{
    return a->parent_pid > 1 && a->parent_pid == b->parent_pid &&
           a->started <= b->changed + PIPELINE_NS && b->started <= a->changed + PIPELINE_NS;
}

static void mark_beside(struct tbd_process_tree *tree, size_t root)
{
    for (size_t i = 0; i < tree->count && root != TBD_NO_PARENT; i++)
        tree->rows[i].is_beside = !tree->rows[i].is_member &&
                                  may_share_pipes(&tree->rows[root], &tree->rows[root_of(tree, i)]);
}

static void make_tree(struct tbd_process_tree *tree)
{
    size_t root;

    qsort(tree->rows, tree->count, sizeof(*tree->rows), compare_rows);
    for (size_t i = 0; i < tree->count; i++) {
        tree->rows[i].parent = find_parent(tree, i);
        TBD_INVARIANT("PROCESS_TREE-1",
                      tree->rows[i].parent == TBD_NO_PARENT || tree->rows[i].parent < i);
    }
    root = asked_root(tree);
    mark_members(tree, root);
    mark_beside(tree, root);
}

enum tbd_status tbd_process_tree_read(const struct tbd_trace_info *asked,
                                      void *(*describe)(const struct tbd_trace_info *info),
                                      struct tbd_process_tree *out)
{
    struct process_folder in = { .asked = asked, .describe = describe };
    char path[sizeof(in.path)];
    enum tbd_status status;

    *out = (struct tbd_process_tree){ .rows = NULL };
    snprintf(path, sizeof(path), "%s", asked->path);
    snprintf(in.path, sizeof(in.path), "%s", dirname(path));
    status = read_folder(out, &in);
    if (status == TBD_OK && out->count != 0)
        make_tree(out);
    return status;
}

const char *tbd_process_began(const struct tbd_process_tree *tree, size_t index)
{
    const struct tbd_process_row *row = &tree->rows[index];

    if (row->is_forked)
        return "fork";
    return row->parent != TBD_NO_PARENT && tree->rows[row->parent].pid == row->pid ? "exec"
                                                                                   : "start";
}
