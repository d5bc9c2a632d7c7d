// SPDX-License-Identifier: MIT
/* small_trace.h - a small trace in a folder of its own, for fuzzers that patch its files */
#ifndef TBD_TEST_SMALL_TRACE_H
#define TBD_TEST_SMALL_TRACE_H

#include "folder.h"
#include "format/files/file.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void check(bool fine)
{
    if (!fine)
        abort();
}

/* Windows of `steps` simulated steps each, `windows` of them and an end, from `seed`.
 * `root` (FOLDER_BYTES) is told where: a new folder; the trace is in ROOT/fuzz-1, and
 * ROOT/latest leads to it. */
static inline void record_small(char *root, uint64_t seed, uint32_t windows, uint32_t steps,
                                struct tbd_age_limits age)
{
    struct tbd_organize_options options = {
        .root = root, .program = "fuzz", .threads = 1, .age = age
    };
    static struct sim s;
    struct maker m;

    check(folder_make(root, "fuzz"));
    maker_open(&m, 0);
    m.alone = true;
    sim_run(&s, &m, seed, windows * steps, steps);
    options.stream_fd = m.fd;
    check(!tbd_organize(&options, NULL));
    maker_close(&m);
    sim_free(&s);
}

static inline void remove_small(const char *root)
{
    if (!folder_remove(root))
        perror(root);
}

static inline void write_whole(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && !tbd_write_all(fd, data, bytes));
    close(fd);
}

#endif
