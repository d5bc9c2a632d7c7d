// SPDX-License-Identifier: MIT
/* dump_run.h - a command that is being carried out over the rings of a dump: what its parts share */
#ifndef TBD_QUERY_DUMP_RUN_H
#define TBD_QUERY_DUMP_RUN_H

#include "query/commands/rows.h"
#include "query/past/past_kept.h"
#include "query/rings/dump_rings.h"

struct tbd_dump_run {
    struct tbd_command_run *run;
    struct tbd_rings *ring;  /* borrowed from the session */
    struct tbd_disas *disas; /* owned; NULL until needed */
    uint32_t tid;            /* 0: all threads */
    bool names_thread;       /* the arguments do */
    enum tbd_status failed;  /* why what is looked for may be there all the same; TBD_OK */
};

/* An instruction that ran. */
struct tbd_dump_place {
    struct tbd_rings_thread *thread;
    uint64_t step;
    uint32_t insn;
};

/* Opens the session's dump, and takes "thread N" from the end of the arguments.  Prints errors; close it all the same. */
enum tbd_exit tbd_dump_open(struct tbd_command_run *run, struct tbd_dump_run *out);
void tbd_dump_close(struct tbd_dump_run *dump);
/* The same, with up to `insns` instructions before the position simulated, and the past standing there.  *past is to be
 * given back. */
enum tbd_exit tbd_dump_open_past(struct tbd_command_run *run, struct tbd_dump_run *out,
                                 size_t insns, struct tbd_past **past);

/* The thread that a position is about: the one that was asked for, or that died; NULL: it has no ring. */
struct tbd_rings_thread *tbd_dump_thread(struct tbd_dump_run *dump);
/* Looks at where it has its `back`-th entry from the end, with the steps there.  False: it has none; or dump->failed says why. */
bool tbd_dump_reach(struct tbd_dump_run *dump, struct tbd_rings_thread *thread, uint64_t back);
/* Remembers the first one that is a failure, not only TBD_NOTFOUND. */
void tbd_dump_note_failure(struct tbd_dump_run *dump, enum tbd_status status);
/* "-N" or "-N+K" of that thread.  False if it is none; *out_lies: it lies in the ring. */
bool tbd_dump_position(struct tbd_dump_run *dump, const char *text, struct tbd_dump_place *out,
                       bool *out_lies);

/* Says on standard error which part of a thread was looked at, if it has more. */
void tbd_dump_tell_part(const struct tbd_dump_run *dump, const struct tbd_rings_thread *thread);

/* A name without memory too: never NULL. */
const struct tbd_rings_place *tbd_dump_names(struct tbd_dump_run *dump,
                                             const struct tbd_dump_place *place);
/* position, thread, pc, function, source. */
json_t *tbd_dump_row(struct tbd_dump_run *dump, const struct tbd_dump_place *place);
/* "-12" or "-12+3" */
json_t *tbd_dump_position_text(const struct tbd_dump_place *place);
/* "module!function+0x12" */
json_t *tbd_dump_function_text(const struct tbd_rings_place *place, bool with_offset);
/* A row of its own, with the instruction. */
enum tbd_exit tbd_dump_print_place(struct tbd_dump_run *dump, const struct tbd_dump_place *place);
/* "goto: ... is not in the ring of thread N", or why the ring cannot be read */
enum tbd_exit tbd_dump_not_in_ring(const struct tbd_dump_run *dump, const char *name);
/* "a crash dump has what ran last, and takes no conditions about that: ..." */
enum tbd_exit tbd_dump_refuse(const struct tbd_command_run *run, const char *what);

#endif
