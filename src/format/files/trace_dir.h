// SPDX-License-Identifier: MIT
/* trace_dir.h - a trace's directory: every file in it is read, made, listed and removed through here
 *
 * The directory may be a stranger's, or others may write to it: so names are looked up below its
 * descriptor and never through links (base/open_file.h), and new files are made under names that
 * nobody can have planted, then renamed.  Names are relative: "index", "windows/0/001.toc". */
#ifndef TBD_FORMAT_TRACE_DIR_H
#define TBD_FORMAT_TRACE_DIR_H

#include "base/status.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tbd_dir {
    int fd;
    const char *path; /* for messages */
};

/* The directory itself; its path may contain links.  -1 with errno. */
int tbd_dir_open(const char *path);
/* TBD_NOSPACE or TBD_IO, from errno. */
enum tbd_status tbd_dir_failure(void);

/* The entries of a folder below it ("." is the directory).  NULL: none. */
DIR *tbd_dir_list(int dir, const char *name);
/* A file as lines of text.  NULL: there is none. */
FILE *tbd_dir_text(int dir, const char *name);
/* Makes a folder, unless it exists. */
TBD_MUST_CHECK enum tbd_status tbd_dir_make_folder(int dir, const char *name);
void tbd_dir_remove(int dir, const char *name); /* a file, or an empty folder */
/* An entry of `dir` itself gets another name; what had that is replaced. */
TBD_MUST_CHECK enum tbd_status tbd_dir_rename(int dir, const char *from, const char *to);

/* Creates `name`, mode 0600, complete or not at all; what had the name before is replaced. */
TBD_MUST_CHECK enum tbd_status tbd_dir_write(int dir, const char *name, const void *data,
                                             size_t bytes);
/* A file in the making: put content into fd, then finish or drop it. */
struct tbd_new_file {
    int fd;         /* O_RDWR; the caller's after tbd_new_file_finish() */
    int folder;     /* that will hold it */
    char name[300]; /* its last part */
    char temporary[64];
};
TBD_MUST_CHECK enum tbd_status tbd_new_file(int dir, const char *name, struct tbd_new_file *out);
/* Gives it its name.  On failure it is dropped. */
TBD_MUST_CHECK enum tbd_status tbd_new_file_finish(struct tbd_new_file *file);
void tbd_new_file_drop(struct tbd_new_file *file);
/* Removes files that processes that have ended left unfinished in this folder. */
void tbd_dir_clean(int folder);

/* Lets `latest` of the trace root lead to the trace `name`, unless it leads to one that was started
 * later.  started_ns: CLOCK_REALTIME. */
enum tbd_status tbd_dir_set_latest(int root, const char *name, uint64_t started_ns);
enum tbd_status tbd_dir_remove_latest(int root);

/* Writes all bytes at the descriptor's position. */
TBD_MUST_CHECK enum tbd_status tbd_write_all(int fd, const void *data, size_t bytes);

#endif
