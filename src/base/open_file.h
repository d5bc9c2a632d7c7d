// SPDX-License-Identifier: MIT
/* open_file.h - files whose names or places others chose are opened here, and nowhere else
 *
 * A name may lead to a FIFO, a device or a link that somebody planted: opening one must not wait,
 * must do nothing to a device, and must not reach another file than the name says.
 *
 * For ordinary processes; any thread.  Returned descriptors have O_CLOEXEC; -1 with errno. */
#ifndef TBD_BASE_OPEN_FILE_H
#define TBD_BASE_OPEN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* The regular file `name` ("index", "windows/0/001.toc") below the folder `dir`, for O_RDONLY, or
 * to be changed in place: O_WRONLY, O_RDWR (a file that has another name, too, is refused then).
 * No part of the name may be a link (ELOOP, ENOTDIR), "." or "..".  What is not a regular file gives
 * EINVAL or EISDIR. */
int tbd_open_below(int dir, const char *name, int access);
/* The folder `name` below `dir`, in the same way; "." is `dir` itself. */
int tbd_open_folder_below(int dir, const char *name);
/* The folder that holds `name`, and in *out_last the last part of `name`. */
int tbd_open_parent_below(int dir, const char *name, const char **out_last);
/* What is there, without following links. */
bool tbd_stat_below(int dir, const char *name, struct stat *out);

/* A regular file that a trace names, anywhere: a debug file, a source, a mapped file.  The path's
 * last part may be a link only if root or this user made it, as in /usr/lib/debug. */
int tbd_open_named(const char *path);
/* May only this user change the file? */
bool tbd_is_private(const struct stat *info);
/* Does the file have far fewer bytes than it says?  Ours are written from end to end, but a file
 * system may compress them; reading one must not take longer than what is there can. */
bool tbd_is_sparse(const struct stat *info);
/* What one thing that a file describes may take of this machine's memory: half of it. */
uint64_t tbd_memory_most(void);
/* May such a file be given to a library that opens it by itself?  True also if it does not exist. */
bool tbd_is_openable(const char *path);

#endif
