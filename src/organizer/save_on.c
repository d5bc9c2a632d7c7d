// SPDX-License-Identifier: MIT
/* save_on.c - see save_on.h
 *
 * What cannot be read is kept. */
#include "organizer/save_on.h"

#include "format/files/trace_dir.h"
#include "format/files/trace_remove.h"
#include "format/trace/trace.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool tbd_save_on_read(const char *text, enum tbd_save_on *out)
{
    static const char *const names[] = { "always", "exit", "failure", "signal" };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) != 0)
            continue;
        *out = (enum tbd_save_on)i;
        return true;
    }
    return false;
}

static bool is_kept(const struct tbd_trace_info *info, enum tbd_save_on when)
{
    uint32_t how = info->end.how;
    bool is_signal = how == TBD_ENDED_SIGNAL || how == TBD_ENDED_KILLED;

    if (!info->finished)
        return true;
    switch (when) {
    case TBD_SAVE_ON_EXIT: return is_signal || how == TBD_ENDED_EXIT;
    case TBD_SAVE_ON_FAILURE: return is_signal || (how == TBD_ENDED_EXIT && info->end.value != 0);
    case TBD_SAVE_ON_SIGNAL: return is_signal;
    default: return true;
    }
}

/* When the trace was started; 0: it is none of this user's. */
static uint64_t started(const char *root, const char *name)
{
    struct tbd_trace *trace;
    struct tbd_error why;
    uint64_t time = 0;
    char path[4400];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    if (tbd_trace_open_summary(path, &trace, &why) != TBD_OK)
        return 0;
    if (!tbd_trace_info(trace)->is_foreign)
        time = tbd_trace_info(trace)->realtime_ns;
    tbd_trace_close(trace);
    return time;
}

static void set_latest(int root_fd, const char *root)
{
    DIR *entries = tbd_dir_list(root_fd, ".");
    char newest[256] = "";
    struct dirent *entry;
    uint64_t best = 0;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        uint64_t time = entry->d_name[0] == '.' || strcmp(entry->d_name, "latest") == 0
                            ? 0
                            : started(root, entry->d_name);

        if (time <= best)
            continue;
        best = time;
        snprintf(newest, sizeof(newest), "%s", entry->d_name);
    }
    if (entries != NULL)
        closedir(entries);
    if (tbd_dir_remove_latest(root_fd) == TBD_OK && best != 0)
        (void)tbd_dir_set_latest(root_fd, newest, best);
}

bool tbd_save_on_end(const char *path, enum tbd_save_on when)
{
    const char *name = strrchr(path, '/');
    struct tbd_trace *trace;
    struct tbd_error why;
    char root[4096];
    bool is_wanted, is_removed;
    int fd;

    if (when == TBD_SAVE_ON_ANY || name == NULL || name == path ||
        (size_t)(name - path) >= sizeof(root) ||
        tbd_trace_open_summary(path, &trace, &why) != TBD_OK)
        return false;
    is_wanted = is_kept(tbd_trace_info(trace), when);
    tbd_trace_close(trace);
    snprintf(root, sizeof(root), "%.*s", (int)(name - path), path);
    fd = is_wanted ? -1 : tbd_dir_open(root);
    if (fd < 0)
        return false;
    is_removed = tbd_trace_remove(fd, name + 1) == TBD_OK;
    set_latest(fd, root);
    close(fd);
    return is_removed;
}
