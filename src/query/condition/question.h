// SPDX-License-Identifier: MIT
/* question.h - "goto <from> <dir> <type> <count> [where <context>]" and positions, from text */
#ifndef TBD_QUERY_QUESTION_H
#define TBD_QUERY_QUESTION_H

#include "query/condition/expr.h"

enum tbd_from { TBD_FROM_CURRENT = 0, TBD_FROM_FIRST, TBD_FROM_LAST, TBD_FROM_POSITION };

struct tbd_question {
    enum tbd_from from;
    struct tbd_position position; /* TBD_FROM_POSITION */
    bool is_search;               /* false: go to `from`, nothing else is filled */
    bool backward;
    bool is_states; /* all instructions count: no events need to be searched */
    enum tbd_event_type type;
    uint64_t count;         /* >= 1 */
    struct tbd_expr *where; /* owned; NULL = every event of the type */
    size_t where_at;        /* where its text begins */
    const char *text;       /* that this was parsed from; borrowed */
};

/* Parses text[from..): a position, or a search.  On failure *error points at the wrong word. */
TBD_MUST_CHECK enum tbd_status tbd_question_parse(const char *text, size_t from,
                                                  struct tbd_question *out,
                                                  struct tbd_query_error *error);
/* Parses text[from..): "<type> [where <context>]", all occurrences from first to last. */
TBD_MUST_CHECK enum tbd_status tbd_question_parse_all(const char *text, size_t from,
                                                      struct tbd_question *out,
                                                      struct tbd_query_error *error);
/* A copy with a condition of its own, not bound to any names. */
TBD_MUST_CHECK enum tbd_status tbd_question_copy(const struct tbd_question *question,
                                                 struct tbd_question *out);
void tbd_question_free(struct tbd_question *question);

#endif
