// SPDX-License-Identifier: MIT
/* probe_script.h - what a user wants to know of a running program, as code for its engine
 *
 * The language has bpftrace's words (man tbd, PROBES).  A script is a list of clauses: where, under
 * which condition, what.  Clauses at places in the program become code (format/probe/probe.h), which the
 * engine carries out there; `begin`, `end` and `interval` are the consumer's own business.  The text is
 * untrusted input: nothing in it can make a table grow past its bound. */
#ifndef TBD_QUERY_PROBE_SCRIPT_H
#define TBD_QUERY_PROBE_SCRIPT_H

#include "format/probe/probe.h"
#include "query/places/running_process.h"
#include "query/places/where.h"
#include "query/text/query_error.h"

#define TBD_SCRIPT_MAX_CLAUSES 256u
#define TBD_SCRIPT_MAX_PARTS   16u /* arguments of a printf, parts of a key */
#define TBD_SCRIPT_MAX_PRINTS  256u
#define TBD_SCRIPT_MAX_ACTIONS 256u
#define TBD_SCRIPT_NAME_BYTES  64u

struct tbd_script_where {
    struct tbd_where place;
    size_t body; /* in the text: its condition, or its statements */
    bool
        asks_program; /* it has expressions of the program's: made for each place (tbd_script_compile()) */
    bool asks_arguments;   /* arg0 to arg9: at a function's entry only */
    bool is_made;          /* for a place, from `code` on */
    uint32_t first_print;  /* of its own */
    uint32_t code;         /* its first instruction */
    uint32_t first_action; /* BEGIN, END, INTERVAL */
    uint32_t action_count;
};

enum tbd_part_kind { TBD_PART_NUMBER = 1, TBD_PART_TEXT, TBD_PART_COMM, TBD_PART_STACK };

struct tbd_script_part {
    uint32_t kind; /* enum tbd_part_kind */
    uint32_t bytes;
};

struct tbd_script_map {
    char name[TBD_SCRIPT_NAME_BYTES];
    struct tbd_script_part parts[TBD_SCRIPT_MAX_PARTS];
    uint32_t part_count;
};

/* What happens at a hit beside records: a trigger.  RECORD and DUMP end the session, and begin then. */
enum tbd_trigger_kind {
    TBD_TRIGGER_NONE = 0,
    TBD_TRIGGER_STOP,
    TBD_TRIGGER_RECORD,
    TBD_TRIGGER_DUMP
};

/* A printf: `format` is unescaped.  A trigger is one, too: with the thread and the instruction. */
struct tbd_script_print {
    char *format;     /* owned */
    uint32_t trigger; /* enum tbd_trigger_kind */
    uint32_t seconds; /* RECORD */
    struct tbd_script_part parts[TBD_SCRIPT_MAX_PARTS];
    uint32_t part_count;
};

enum tbd_action_kind { TBD_ACTION_PRINTF = 1, TBD_ACTION_PRINT, TBD_ACTION_CLEAR, TBD_ACTION_EXIT };

struct tbd_script_action {
    uint32_t kind; /* enum tbd_action_kind */
    uint32_t what; /* PRINTF: print; PRINT, CLEAR: map */
};

struct tbd_probe_script {
    const char *text; /* borrowed */
    struct tbd_script_where where[TBD_SCRIPT_MAX_CLAUSES];
    uint32_t where_count;
    struct tbd_probe_insn code[TBD_PROBE_MAX_CODE];
    uint32_t code_count;
    struct tbd_probe_map maps[TBD_PROBE_MAX_MAPS];
    struct tbd_script_map map_names[TBD_PROBE_MAX_MAPS];
    uint32_t map_count;
    struct tbd_script_print prints[TBD_SCRIPT_MAX_PRINTS]; /* record N is print N - 1 */
    uint32_t print_count;
    struct tbd_script_action actions[TBD_SCRIPT_MAX_ACTIONS];
    uint32_t action_count;
    bool walks_stacks; /* ustack, context: the engine must know each library that comes or goes */
};

/* Where a clause will be carried out. */
struct tbd_script_place {
    struct tbd_probe_process *process;
    uint64_t address;
    bool is_entry; /* a function's first instruction */
};

/* NULL: *error says why.  Free it with tbd_script_free(); `text` is needed until then. */
struct tbd_probe_script *tbd_script_parse(const char *text, struct tbd_query_error *error);
/* Makes the code of where[index] for one place; places where it is the same have one.  False, and nothing has
 * changed: *error says why. */
bool tbd_script_compile(struct tbd_probe_script *script, uint32_t index,
                        const struct tbd_script_place *place, uint32_t *out_code,
                        struct tbd_query_error *error);
void tbd_script_free(struct tbd_probe_script *script);

#endif
