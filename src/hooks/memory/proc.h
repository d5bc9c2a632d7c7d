// SPDX-License-Identifier: MIT
/* proc.h - reading files of proc(5) without libc
 *
 * For this process' own, callers say "/proc/thread-self": "self" has nothing any more when the main
 * thread has left first.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_PROC_H
#define TBD_HOOKS_PROC_H

#include <stdbool.h>
#include <stddef.h>

/* Called for every line, which lacks its end and is borrowed until it returns; it may be changed.
 * False stops. */
typedef bool (*tbd_proc_visitor)(void *context, char *line);

/* False when the file cannot be read.  The beginning of a line of more than 8 KiB is left out. */
bool tbd_proc_lines(const char *path, tbd_proc_visitor visit, void *context);

/* The beginning of a file, terminated; `bytes` >= 1 is the size of `text`.  Returns its length
 * without the terminator, or -errno. */
long tbd_proc_read(const char *path, char *text, size_t bytes);

/* What /proc/self/maps would call the file behind a descriptor, terminated and cut to `bytes` >= 1;
 * returns its length, 0 when there is none. */
size_t tbd_proc_path(int fd, char *path, size_t bytes);

#endif
