// SPDX-License-Identifier: MIT
/* shard_file.h - the answer of one shard, read again (query/output/shard.h)
 *
 * The file may come from anywhere: each line is checked, and none may be longer than TBD_SHARD_LINE_MAX.
 *
 * SHARD_FILE-1  A row's time lies in the shard, and rows come in the order of the search. (not checked: a file that does not keep it
 *     is refused) */
#ifndef TBD_QUERY_SHARD_FILE_H
#define TBD_QUERY_SHARD_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TBD_SHARD_LINE_MAX (16u << 20)

struct tbd_shard_file {
    const char *path; /* borrowed */
    FILE *file;       /* owned; NULL: closed */
    json_t *of;       /* owned: what all shards of an answer have in common */
    uint64_t number, count, from, to;
    bool backward;
    /* while it is read */
    uint64_t rows, last_time;
    bool has_last;
    json_t *end; /* owned: the last line; NULL: not read yet, or the file is cut */
    char *line;  /* owned */
    size_t capacity;
    char why[160]; /* of the last failure */
};

/* Opens the file and reads its first line; false: `why` says what is wrong.  Close it in any case. */
bool tbd_shard_file_open(struct tbd_shard_file *shard, const char *path);
/* The next row, the caller's to release.  NULL: there is none; `end` is there then, or the file is cut, or `why` says what is
 * wrong with it. */
json_t *tbd_shard_file_next(struct tbd_shard_file *shard);
/* Closes the file; what was read of its first line stays. */
void tbd_shard_file_rest(struct tbd_shard_file *shard);
void tbd_shard_file_close(struct tbd_shard_file *shard);

/* A number that cannot be negative; false: the key is not there, or no such number. */
bool tbd_shard_number(const json_t *object, const char *key, uint64_t *out);
/* "" if it is not there. */
const char *tbd_shard_text(const json_t *object, const char *key);

#endif
