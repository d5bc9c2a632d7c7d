// SPDX-License-Identifier: MIT
/* cmd_du.c - du: what a trace takes on disk, by what it is for */
#include "query/commands/commands.h"
#include "query/commands/rows.h"

#include "base/open_file.h"
#include "format/files/trace_dir.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX  8u
#define NAME_BYTES 4400u

/* A part of the trace: files of one folder, or with one ending in the folder of windows. */
struct disk_part {
    const char *name, *folder, *ending, *what;
    uint64_t files, bytes;
};

#define PARTS 11u
static const struct disk_part all_parts[PARTS] = {
    { "summaries", "windows", ".toc",
      "each window's start state, system calls, changed pages, lists", 0, 0 },
    { "events", "windows", ".trace", "what each block did, where it is kept", 0, 0 },
    { "entries", "windows", ".blocks", "the order of blocks, where it is kept", 0, 0 },
    { "windows", "windows", "", "other files of windows", 0, 0 },
    { "keys", "keys", "", "which windows have what: for searches", 0, 0 },
    { "modules", "modules", "", "program and libraries; traces of one folder share them", 0, 0 },
    { "debug", "debug", "", "separate debug files, of a packed trace", 0, 0 },
    { "sources", "sources", "", "of a packed trace", 0, 0 },
    { "cache", "cache", "", "what questions have kept: may be removed", 0, 0 },
    { "image", "", "image", "memory at the start", 0, 0 },
    { "other", "", "", "header, index, code of blocks, marks", 0, 0 },
};

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), of = strlen(ending);

    return length >= of && strcmp(name + length - of, ending) == 0;
}

static struct disk_part *part_of(struct disk_part *parts, const char *path)
{
    for (size_t i = 0; i < PARTS; i++) {
        size_t folder = strlen(parts[i].folder);

        if (strncmp(path, parts[i].folder, folder) == 0 && (folder == 0 || path[folder] == '/') &&
            ends_with(path, parts[i].ending))
            return &parts[i];
    }
    return &parts[PARTS - 1];
}

static void add_folder(int dir, const char *folder, struct disk_part *parts, unsigned depth)
{
    DIR *entries = tbd_dir_list(dir, folder);
    struct dirent *entry;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        char path[NAME_BYTES];
        struct stat info;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (strcmp(folder, ".") == 0)
            snprintf(path, sizeof(path), "%s", entry->d_name);
        else
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (!tbd_stat_below(dir, path, &info))
            continue;
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
            add_folder(dir, path, parts, depth + 1);
        } else if (S_ISREG(info.st_mode)) {
            struct disk_part *part = part_of(parts, path);

            part->files++;
            part->bytes += (uint64_t)info.st_blocks * 512u;
        }
    }
    if (entries != NULL)
        closedir(entries);
}

static json_t *row_of(const char *name, uint64_t files, uint64_t bytes, const char *what)
{
    return json_pack("{s:s, s:I, s:I, s:s}", "part", name, "files", (json_int_t)files, "bytes",
                     (json_int_t)bytes, "what", what);
}

enum tbd_exit tbd_command_du(struct tbd_command_run *run)
{
    static const char *const columns[] = { "part", "files", "bytes", "what", NULL };
    struct disk_part parts[PARTS];
    struct tbd_rows rows;
    uint64_t files = 0, bytes = 0;
    int dir;

    if (run->argc != 0)
        return tbd_command_usage(run, "du takes no arguments");
    dir = tbd_dir_open(run->session->info->path);
    if (dir < 0)
        return tbd_command_fail(run, TBD_IO);
    memcpy(parts, all_parts, sizeof(parts));
    add_folder(dir, ".", parts, 0);
    close(dir);
    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < PARTS; i++) {
        files += parts[i].files;
        bytes += parts[i].bytes;
        if (parts[i].files != 0)
            tbd_rows_add(&rows,
                         row_of(parts[i].name, parts[i].files, parts[i].bytes, parts[i].what));
    }
    tbd_rows_add(&rows, row_of("total", files, bytes, ""));
    return tbd_rows_end(&rows);
}
