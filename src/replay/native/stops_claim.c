// SPDX-License-Identifier: MIT
/* stops_claim.c - see stops_claim.h
 *
 * The holder removes old marks when it begins, so a mark is set again and again while somebody waits. */
#include "replay/native/stops_claim.h"

#include "base/open_file.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK_NAME   "wanted"
#define TOLD_NAME   "done"  /* a text: DONE COUNT */
#define LOCK_FOLDER "stops" /* goes away with the trace that is not counted */
#define WAIT_NS     20000000

static void set_mark(const struct tbd_stops_claim *claim)
{
    int root = tbd_dir_open(claim->root);

    if (root < 0) /* the holder has not made it yet, or has just finished */
        return;
    (void)!tbd_dir_write(root, MARK_NAME, "", 0);
    close(root);
}

/* Numbers of another process of this user: they are shown, and nothing else. */
static void show_told(const struct tbd_stops_claim *claim, const struct tbd_stops_waiting *waiting)
{
    int root = waiting->show ? tbd_dir_open(claim->root) : -1;
    int file = root < 0 ? -1 : tbd_open_below(root, TOLD_NAME, O_RDONLY);
    ssize_t got = -1;
    uint32_t done, count;
    char text[64];

    if (file >= 0) {
        got = read(file, text, sizeof(text) - 1);
        close(file);
    }
    if (root >= 0)
        close(root);
    text[got > 0 ? got : 0] = 0;
    if (sscanf(text, "%" SCNu32 " %" SCNu32, &done, &count) != 2 || done > count)
        done = count = 0;
    if (waiting->show)
        waiting->show(waiting->context, done, count);
}

static bool take_lock(int fd)
{
    return !flock(fd, LOCK_EX | LOCK_NB) ||
           (errno != EWOULDBLOCK && errno != EINTR); /* a file system without locks */
}

/* False: a signal has come. */
static bool wait_for_lock(const struct tbd_stops_claim *claim,
                          const struct tbd_stops_waiting *waiting)
{
    const struct timespec pause = { .tv_nsec = WAIT_NS };

    while (!take_lock(claim->stops)) {
        set_mark(claim);
        show_told(claim, waiting);
        if (nanosleep(&pause, NULL))
            return false;
    }
    return true;
}

enum tbd_status tbd_stops_claim(struct tbd_stops_claim *out, const char *path, const char *root,
                                const struct tbd_stops_waiting *waiting, struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    *out = (struct tbd_stops_claim){ .trace = tbd_dir_open(path), .stops = -1, .root = root };
    if (out->trace < 0)
        return tbd_error_set(why, TBD_NOTRACE, path, 0, "the folder cannot be opened");
    out->stops = tbd_open_folder_below(out->trace, LOCK_FOLDER);
    if (out->stops < 0) /* counted: nothing to claim */
        return TBD_OK;
    if (!waiting && !take_lock(out->stops))
        status = tbd_error_set(why, TBD_BUSY, path, 0, "somebody counts it already");
    else if (waiting && !wait_for_lock(out, waiting))
        status = TBD_INTERRUPTED;
    if (status)
        tbd_stops_claim_end(out);
    return status;
}

void tbd_stops_claim_end(struct tbd_stops_claim *claim)
{
    close(claim->trace);
    if (claim->stops >= 0)
        close(claim->stops);
}

bool tbd_stops_claim_is_wanted(const struct tbd_stops_claim *claim)
{
    int root = tbd_dir_open(claim->root);
    struct stat info;
    bool is_wanted = root >= 0 && tbd_stat_below(root, MARK_NAME, &info);

    if (root >= 0)
        close(root);
    return is_wanted;
}

void tbd_stops_claim_tell(const struct tbd_stops_claim *claim, uint32_t done, uint32_t count)
{
    int root = tbd_dir_open(claim->root);
    char text[64];
    int length = snprintf(text, sizeof(text), "%" PRIu32 " %" PRIu32 "\n", done, count);

    if (root < 0)
        return;
    (void)!tbd_dir_write(root, TOLD_NAME, text, (size_t)length);
    close(root);
}
