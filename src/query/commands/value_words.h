// SPDX-License-Identifier: MIT
/* value_words.h - the words of a command that asks what a value of include/tbd/tbd.h stands for
 *
 * `context` and `branches` take a value, files (--library), and options of their own, each with a value. */
#ifndef TBD_QUERY_VALUE_WORDS_H
#define TBD_QUERY_VALUE_WORDS_H

#include "query/commands/commands.h"
#include "query/contexts/call_graph.h"

/* An option.  `names` NULL: *text becomes its value; else *chosen becomes the index of its value among them. */
struct tbd_value_option {
    const char *name; /* with its dashes; a list ends with NULL */
    const char **text;
    const char *const *names; /* NULL where no name belongs to an index */
    unsigned name_count;
    unsigned *chosen;
    const char *wrong; /* what to say of a value that is none of the names */
};

struct tbd_value_words {
    uint64_t value;
    bool has_value;
    char *more[TBD_CALL_GRAPH_FILES]; /* borrowed from the command line */
    size_t more_count;
};

/* A hexadecimal number of at most 16 digits. */
bool tbd_value_word_take(const char *word, uint64_t *out);

/* NULL: well; otherwise what is wrong. */
const char *tbd_value_words_take(const struct tbd_command_run *run,
                                 const struct tbd_value_option *options,
                                 struct tbd_value_words *out);

#endif
