// SPDX-License-Identifier: MIT
/* shard.h - the answer of one of several shards of a trace (--shard K/N), as lines of JSON
 *
 *     {"tbd_shard":1, ...}      which shard of which trace, the question, how its rows are to be shown
 *     one object for each row   as the question has them in the whole run, with their positions
 *     {"tbd_shard_end":1, ...}  how many there were, how the search ended, what it had to leave out
 *
 * docs/JSON.md has the keys.  `tbdq unite` (query/shards) makes the answer of the whole run from them.  A file without its
 * last line is cut. */
#ifndef TBD_QUERY_SHARD_H
#define TBD_QUERY_SHARD_H

#include "query/session/session.h"

#include <jansson.h>
#include <stdio.h>

#define TBD_SHARD_VERSION 1
#define TBD_SHARDS_MAX    1000000u

/* What a reader needs to show the rows. */
struct tbd_shard_kind {
    const char *name; /* rows, counts, events, found, log, heap, "heap of", "heap errors" */
    const char *question;
    const char *const *columns; /* of rows; NULL: none */
    const char *type;           /* of events; NULL: none */
    bool backward;              /* events come in that order */
    uint64_t wanted;            /* the event that counts, from 1; 0: all */
    const char *at;             /* the position that the answer is about; NULL: none */
};

/* Writes the first line. */
void tbd_shard_begin(struct tbd_session *session, const struct tbd_shard_kind *kind, FILE *out);
/* Writes a row; releases it. */
void tbd_shard_row(struct tbd_session *session, json_t *row, FILE *out);
/* Writes the last line; `exit` is the exit status of the question.  Nothing, if nothing has begun. */
void tbd_shard_end(struct tbd_session *session, int exit, FILE *out);

static inline bool tbd_shard_is_on(const struct tbd_session *session)
{
    return session->shard.count != 0;
}

#endif
