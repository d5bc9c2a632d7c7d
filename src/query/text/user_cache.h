// SPDX-License-Identifier: MIT
/* user_cache.h - files that make the next question faster, in the user's cache folder
 *
 * $XDG_CACHE_HOME/tbd (~/.cache/tbd), folders 0700.  Any number of processes may read and write it;
 * a file appears under its name complete or not at all, and only files that belong to the user, and
 * that nobody else can write, are used. Each folder holds a gigabyte at most: the least recently
 * used files are deleted. Without a cache everything works, but slower. */
#ifndef TBD_QUERY_USER_CACHE_H
#define TBD_QUERY_USER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_USER_CACHE_PATH 4608u

/* Turns the cache off: from now on nothing is read or written. */
void tbd_user_cache_off(void);
/* The path of `name` in `folder` ("debug/"); the folder is made.  False: there is no cache. */
bool tbd_user_cache_path(const char *folder, const char *name, char *out, size_t bytes);
/* Opens a file of the cache, and records that it was used; -1 if it does not exist, or cannot be
 * trusted. */
int tbd_user_cache_open(const char *path);
/* Makes the file at `path`: `fill` writes it.  `bytes`: about how large it will be. */
bool tbd_user_cache_make(const char *path, uint64_t bytes, bool (*fill)(void *context, int fd),
                         void *context);

#endif
