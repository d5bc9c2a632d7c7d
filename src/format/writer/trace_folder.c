// SPDX-License-Identifier: MIT
/* trace_folder.c - see trace_folder.h */
#include "format/writer/trace_folder.h"

#include "base/open_file.h"
#include "format/files/trace_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_parents(const char *path)
{
    char part[4096];

    snprintf(part, sizeof(part), "%s", path);
    for (char *at = part + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        if (mkdir(part, 0700) && errno != EEXIST)
            return -1;
        *at = '/';
    }
    return mkdir(part, 0700) && errno != EEXIST ? -1 : 0;
}

void tbd_plain_name(const char *program, char *out, size_t bytes)
{
    const char *slash = strrchr(program, '/');

    snprintf(out, bytes, "%s", slash ? slash + 1 : program);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '/' || (at == out && (*at == '.' || *at == '-')))
            *at = '_';
    if (!*out)
        snprintf(out, bytes, "program");
}

static unsigned long highest_number(int root, const char *name)
{
    size_t length = strlen(name);
    unsigned long highest = 0;
    struct dirent *entry;
    DIR *dir = tbd_dir_list(root, ".");

    while (dir && (entry = readdir(dir))) {
        unsigned long n;
        char *end;

        if (strncmp(entry->d_name, name, length) != 0 || entry->d_name[length] != '-')
            continue;
        n = strtoul(entry->d_name + length + 1, &end, 10);
        if (!*end && n > highest)
            highest = n;
    }
    if (dir)
        closedir(dir);
    return highest;
}

/* In a root where others may rename, what has the name may not be what was made. */
static bool is_ours(int dir)
{
    struct stat info;

    if (fstat(dir, &info))
        return false;
    errno = EPERM;
    return info.st_uid == geteuid();
}

/* With the first free number. */
static enum tbd_status make_numbered(const char *root, const char *name,
                                     struct tbd_trace_folder *out)
{
    for (unsigned long n = highest_number(out->root_dir, name) + 1;; n++) {
        if (asprintf(&out->path, "%s/%s-%lu", root, name, n) < 0) {
            out->path = NULL;
            return TBD_NOMEM;
        }
        if (!mkdirat(out->root_dir, strrchr(out->path, '/') + 1, 0700))
            return TBD_OK;
        free(out->path);
        out->path = NULL;
        if (errno != EEXIST)
            return tbd_dir_failure();
    }
}

enum tbd_status tbd_trace_folder_make(const char *root, const char *program,
                                      struct tbd_trace_folder *out)
{
    enum tbd_status status;
    char name[128];

    *out = (struct tbd_trace_folder){ .root_dir = -1, .dir = -1 };
    tbd_plain_name(program, name, sizeof(name));
    if (make_parents(root))
        return tbd_dir_failure();
    out->root_dir = tbd_dir_open(root);
    if (out->root_dir < 0)
        return tbd_dir_failure();
    status = make_numbered(root, name, out);
    if (status)
        return status;
    out->dir = tbd_open_folder_below(out->root_dir, strrchr(out->path, '/') + 1);
    return out->dir < 0 || !is_ours(out->dir) ? tbd_dir_failure() : TBD_OK;
}
