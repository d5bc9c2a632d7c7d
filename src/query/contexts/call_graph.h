// SPDX-License-Identifier: MIT
/* call_graph.h - which calls a program's files have, and the stacks that have a value (base/calling.h)
 *
 * Functions and their calls come from the files' code: direct calls, calls through import stubs and slots (to the
 * function of this name in the first file that has it), and all others, which may lead to every function whose
 * address is taken somewhere.  A jump out of a function is a call without a return address.
 *
 * Generated code is in no file: its calls have one number, and it may be called, and call, wherever a pointer may lead.
 *
 * A stack is searched from its end: the value without the last call's number is the caller's.  Calls that few lead to come
 * first; the search meets the stacks that begin at the program's start, and ends when it has found some, or at
 * its limit.
 *
 * All files are hostile input.  One object from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_CALL_GRAPH_H
#define TBD_QUERY_CALL_GRAPH_H

#include "base/calling.h"
#include "base/status.h"
#include "query/debuginfo/elf_file.h"

#define TBD_CALL_GRAPH_FILES  64u
#define TBD_CALL_GRAPH_FRAMES 200u
#define TBD_CALL_GRAPH_STACKS 64u

struct tbd_call_graph;

/* Reads the program and the libraries that it names, where the dynamic linker looks for them, and `more` files. */
TBD_MUST_CHECK enum tbd_status tbd_call_graph_new(const char *program, char *const *more,
                                                  size_t more_count, struct tbd_call_graph **out);
void tbd_call_graph_free(struct tbd_call_graph *graph); /* NULL is fine */

/* Libraries that were not found; NULL past the last. */
const char *tbd_call_graph_missing(const struct tbd_call_graph *graph, size_t index);

/* One call of a stack, from the innermost on. */
struct tbd_call_frame {
    const char *
        module; /* last part of the path; NULL: a signal's handler was called, or code in no file calls */
    const char *function;
    uint64_t offset;           /* of the return address in the function */
    uint64_t address;          /* of the return address in the file's addresses */
    struct tbd_elf_file *file; /* NULL: it cannot be opened, or there is none */
    uint32_t signo;            /* 0: code in no file */
    bool is_indirect;
};

struct tbd_call_stack {
    struct tbd_call_frame *frames; /* owned by the answer */
    size_t count;
    bool from_start; /* it begins where the program does, else where nothing had been called */
};

struct tbd_call_answer {
    struct tbd_call_stack stacks[TBD_CALL_GRAPH_STACKS];
    size_t count;
    uint64_t tried;   /* calls */
    bool is_complete; /* false: the search ended at its limit */
};

/* What stacks are wanted. */
struct tbd_call_question {
    enum tbd_calling_scheme scheme;
    const char *log;  /* one of the three innermost functions has this text; NULL: any */
    uint32_t seconds; /* of processor time, at most */
};
#define TBD_CALL_GRAPH_SECONDS 10u

/* Those with the value.  What was reached from the program's start stays for the next value: it takes a second. */
TBD_MUST_CHECK enum tbd_status tbd_call_graph_find(struct tbd_call_graph *graph,
                                                   const struct tbd_call_question *question,
                                                   uint64_t value, struct tbd_call_answer *out);
void tbd_call_answer_free(struct tbd_call_answer *answer);

#endif
