// SPDX-License-Identifier: MIT
/* trigger.h - what leaves a dump of a program that goes on, as `tbd set` and the collector ask its engine
 *
 * A request lies in the rings' memory, TBD_TRIGGER_AT bytes into area 0 (format/stream/crash.h).  Who asks fills it
 * and sets `state` to POSTED; the engine copies it, checks the copy, and answers.  One asks at a time.
 *
 *     FREE or an answer --asker--> FILLING --asker--> POSTED --engine--> DONE or REFUSED
 *
 * Triggers and parts that name code which is in no module may wait.  The request then has the function that the dynamic loader
 * calls when it has mapped or unmapped something.  A thread that comes there waits until another request has what is found now
 * (struct tbd_crash_look).
 *
 * A condition is probe code (format/probe/probe.h) that only computes: register 0 at its end says whether
 * it holds.  If a value cannot be read it does not. */
#ifndef TBD_FORMAT_TRIGGER_H
#define TBD_FORMAT_TRIGGER_H

#include "format/probe/probe.h"
#include "format/stream/crash.h"

#define TBD_TRIGGER_AT         (192u << 10)
#define TBD_TRIGGER_MAX        32u
#define TBD_TRIGGER_PLACES     256u
#define TBD_TRIGGER_CODE       2048u
#define TBD_TRIGGER_TEXT_BYTES 108u
#define TBD_TRIGGER_ALWAYS     UINT32_MAX /* as a place's code */
#define TBD_TRIGGER_TIMES      1000u      /* dumps of one trigger at most */

/* No module has its place yet.  It had to wait, and cannot be placed in what came: its condition has no value there, or there are
 * too many places.  It has had a place.  The engine keeps the last two as long as it has the trigger. */
#define TBD_TRIGGER_WAITS 1u
#define TBD_TRIGGER_FAILS 2u
#define TBD_TRIGGER_FOUND 4u
/* It leaves no dump: registers, stack and a value are recorded at its places (format/stream/crash_values.h). */
#define TBD_TRIGGER_RECORDS 8u

struct tbd_trigger {
    uint64_t signals; /*  0: bit SIGNO - 1; 0: it is about places */
    uint32_t times;   /*  8: dumps that it will leave */
    uint32_t flags;   /* 12: TBD_TRIGGER_WAITS, _FAILS, _FOUND */
    uint32_t keeps;   /* 16: what its dumps have, as in struct tbd_crash; 0: everything */
    char
        text[TBD_TRIGGER_TEXT_BYTES]; /* 20: as it was written, or the beginning; ends with a NUL */
};
_Static_assert(sizeof(struct tbd_trigger) == 128, "tbd_trigger is 128 bytes");

struct tbd_trigger_place {
    uint64_t address;
    uint32_t trigger; /* index */
    uint32_t code;    /* index of the condition's first instruction, or TBD_TRIGGER_ALWAYS */
    /* What is recorded: where its address and its size begin, or TBD_TRIGGER_ALWAYS: no memory. */
    uint32_t value;
    uint32_t size;
};
_Static_assert(sizeof(struct tbd_trigger_place) == 24, "tbd_trigger_place is 24 bytes");

/* Loads from this memory are recorded, wherever code of the program does it: registers, stack and what is loaded. */
#define TBD_TRIGGER_LOADS       4u
#define TBD_TRIGGER_LOADS_BYTES (1ull << 31) /* of one at most */
struct tbd_trigger_loads {
    uint64_t from, to; /*  0: to: the address after it */
    uint32_t trigger;  /* 16: index */
    uint32_t reserved;
};
_Static_assert(sizeof(struct tbd_trigger_loads) == 24, "tbd_trigger_loads is 24 bytes");

enum tbd_request_state {
    TBD_REQUEST_FREE = 0,
    TBD_REQUEST_FILLING,
    TBD_REQUEST_POSTED,
    TBD_REQUEST_DONE,
    TBD_REQUEST_REFUSED, /* it is not as described here, or a place is no code */
};

#define TBD_REQUEST_TRIGGERS 1u /* in place of those before; none if there are no rows */
#define TBD_REQUEST_RING     2u
#define TBD_REQUEST_PARTS    4u /* blocks that are made from now on belong to these */
#define TBD_REQUEST_RECORD   8u
#define TBD_REQUEST_AGAIN                                                                          \
    16u /* the triggers that the engine has, in what is mapped now; it ignores others */

struct tbd_crash_request {
    uint32_t state;      /* futex: enum tbd_request_state */
    uint32_t what;       /* TBD_REQUEST_* */
    uint64_t ring_bytes; /* of each thread's ring; the engine's answer is what it is then */
    uint32_t trigger_count, place_count, code_count,
        refused; /* refused: the place's index + 1, or 0 */
    struct tbd_trigger triggers[TBD_TRIGGER_MAX];
    struct tbd_trigger_place places[TBD_TRIGGER_PLACES];
    struct tbd_probe_insn code[TBD_TRIGGER_CODE];
    uint32_t range_count;
    uint32_t record; /* TBD_REQUEST_RECORD: the dial (format/stream/record.def) */
    struct tbd_part_range ranges[TBD_PART_RANGES];
    uint64_t loader;        /* the address of its function; 0: nobody waits */
    uint32_t waiting_parts; /* how many */
    uint32_t load_count;
    struct tbd_trigger_loads loads[TBD_TRIGGER_LOADS];
    char left_out
        [TBD_CRASH_PART_NAME]; /* the first part for all of whose code there was no space; "": none; ends with a NUL */
    char wishes[TBD_CRASH_WISHES]; /* with TBD_REQUEST_TRIGGERS: their text; ends with a NUL */
};
_Static_assert(TBD_TRIGGER_AT + sizeof(struct tbd_crash_request) <= 256u << 10, "area 0 has it");

#endif
