// SPDX-License-Identifier: MIT
/* proc.h - reading files of proc(5) without libc
 *
 * For this process' own files, callers use "/proc/thread-self": "/proc/self" is empty once the main
 * thread has exited.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_PROC_H
#define TBD_HOOKS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called for every line, without its newline.  `line` is borrowed until the function returns and
 * may be changed.  False stops. */
typedef bool (*tbd_proc_visitor)(void *context, char *line);

/* False when the file cannot be read.  The beginning of a line of more than 8 KiB is left out. */
bool tbd_proc_lines(const char *path, tbd_proc_visitor visit, void *context);

/* The beginning of a file, terminated; `bytes` >= 1 is the size of `text`.  Returns its length
 * without the terminator, or -errno. */
long tbd_proc_read(const char *path, char *text, size_t bytes);

/* The file of a descriptor, named as in /proc/self/maps, terminated and cut to `bytes` >= 1.
 * Returns its length; 0: there is no file. */
size_t tbd_proc_path(int fd, char *path, size_t bytes);

/* The number at `text`, in small letters if hexadecimal; 0: there is none.  Returns where it ends. */
const char *tbd_proc_decimal(const char *text, uint64_t *out);
const char *tbd_proc_hexadecimal(const char *text, uint64_t *out);

#endif
