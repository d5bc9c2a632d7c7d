// SPDX-License-Identifier: MIT
/* dump_values_private.h - what the commands about values before a dump's end have in common */
#ifndef TBD_QUERY_DUMP_VALUES_PRIVATE_H
#define TBD_QUERY_DUMP_VALUES_PRIVATE_H

#include "query/dumps/dump_run.h"
#include "query/past/past.h"

#include <jansson.h>

/* A command at the session's position in a dump. */
struct tbd_dump_values {
    struct tbd_dump_run dump;
    struct tbd_past *past; /* to be given back */
};

/* Prints errors; close it all the same. */
enum tbd_exit tbd_dump_values_open(struct tbd_command_run *run, struct tbd_dump_values *out);
void tbd_dump_values_close(struct tbd_dump_values *values);
/* What is unknown may follow from what ran longer ago.  False: there is nothing more, and nothing has changed. */
bool tbd_dump_values_look_farther(struct tbd_dump_values *values);

void tbd_dump_values_put_position(const struct tbd_dump_values *values, json_t *object);
void tbd_dump_values_put_certainty(json_t *object, enum tbd_certainty certainty);

/* dump_ask.c */
typedef enum tbd_exit tbd_dump_command(struct tbd_command_run *run);

/* What the command answers, as objects: with what is exact alone, or all that is known. */
json_t *tbd_dump_answers_of(struct tbd_dump_values *values, tbd_dump_command *command,
                            bool exact_only, enum tbd_exit *result);

#endif
