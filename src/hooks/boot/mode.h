// SPDX-License-Identifier: MIT
/* mode.h - the modes, and the one place where a mode is chosen
 *
 * A mode is a row of a table (mode.c): what is reported, whose turn it is, how code is entered,
 * where events go.  The rest of the engine does not ask for the mode: at the beginning it is given
 * what the row says (hook set, callbacks, how the program is let go).  Contexts: BOOT; a replay
 * process before its first window.
 *
 * MODE-1  A process enters one mode, once, and only a mode that exists: the modes of later versions
 *     have rows, too. */
#ifndef TBD_HOOKS_MODE_H
#define TBD_HOOKS_MODE_H

#include "hooks/boot/options.h"
#include "hooks/instructions/special.h"
#include "hooks/stream/leaving.h"
#include "patcher/patcher.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* 0 is none of these: a row that leaves one out is seen (test_mode.c). */
enum tbd_mode_turns {
    TBD_TURNS_ALONE = 1, /* one thread: when a second one starts, the program is let go */
    TBD_TURNS_LOCK,      /* one at a time: the holder of the turn lock (threads/threads.h) */
    TBD_TURNS_LOG,       /* as the log says */
    TBD_TURNS_ALL,       /* nobody waits */
};

enum tbd_mode_code {
    TBD_CODE_TRANSLATED = 1, /* blocks in patch areas */
    TBD_CODE_OWN,            /* the program's own, with patches where the engine must be called */
};

enum tbd_mode_events {
    TBD_EVENTS_NOWHERE = 1,
    TBD_EVENTS_STREAM, /* one stream of the process, in order */
    TBD_EVENTS_RINGS,  /* one ring for each thread, kept until somebody reads it */
};

struct tbd_mode {
    char name[8];
    enum tbd_mode_turns turns;
    enum tbd_mode_code code;
    enum tbd_mode_events events;
    uint32_t hooks;     /* TBD_HOOK_*: the events it can report */
    bool omits_records; /* translated code writes no operands, and entries only to be counted */
    bool exists;        /* in this version */
};

/* The code that differs between play and replay. */
struct tbd_mode_parts {
    const struct tbd_patcher_callbacks *callbacks;
    const struct tbd_leaving *leaving;
    tbd_next_others_function next_others; /* NULL: there is no log */
};

/* The row of a mode, also of one that is to come. */
const struct tbd_mode *tbd_mode_row(enum tbd_mode_kind kind);

/* The mode that these options ask for: `hooks=none` and `count=later` are other
 * ways to say `mode=patched` and `mode=later`. */
enum tbd_mode_kind tbd_mode_of(const struct tbd_options *options);

/* Enters the mode.  It reports the events in `hooks`, as far as it can.  `parts` is borrowed for
 * ever. */
void tbd_mode_enter(enum tbd_mode_kind kind, uint64_t hooks, const struct tbd_mode_parts *parts);
/* The row of the mode that was entered. */
const struct tbd_mode *tbd_mode(void);

/* Prepares translated code; `is_copied` as in hooks/instructions/decoder.h.  Returns NULL on success, else why the program's code cannot be
 * entered: one clause. */
const char *tbd_mode_start_code(const struct tbd_codegen_config *config, bool is_copied);

#pragma GCC visibility pop

#endif
