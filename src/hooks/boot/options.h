// SPDX-License-Identifier: MIT
/* options.h - TBD_OPTIONS=key=value,...
 *
 * One table (options.c) gives names, kinds and help.  A comma or backslash in a value is written \,
 * or \\.  Context: BOOT, and tools/tbd.c for the help text. */
#ifndef TBD_HOOKS_OPTIONS_H
#define TBD_HOOKS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_OPTION_TEXT_BYTES 1024

#define TBD_KEEP_SECONDS (1ull << 63)

enum tbd_lean_choice { TBD_LEAN_AUTO = 0, TBD_LEAN_ALWAYS = 1, TBD_LEAN_NEVER = 2 };

enum tbd_count_choice { TBD_COUNT_NOW = 0, TBD_COUNT_LATER = 1, TBD_COUNT_AUTO = 2 };

/* What leaves a dump (mode=crash): each beside those before it. */
enum tbd_dump_choice { TBD_DUMP_SIGNAL = 0, TBD_DUMP_FAIL = 1, TBD_DUMP_EXIT = 2 };

enum tbd_memory_choice { TBD_MEMORY_REACHABLE = 0, TBD_MEMORY_STACKS = 1, TBD_MEMORY_ALL = 2 };

/* Beside the rings, each block once: TBD_CRASH_FIRST, TBD_CRASH_LAST (format/stream/crash.h). */
enum tbd_tables_choice {
    TBD_TABLES_NONE = 0,
    TBD_TABLES_FIRST = 1,
    TBD_TABLES_LAST = 2,
    TBD_TABLES_BOTH = 3
};

/* What the program is told about AVX-512.  V3: the processor has none.  V3_TEST: in addition, its
 * state is not saved; only for programs that do not use it. */
enum tbd_cpu_choice { TBD_CPU_OWN = 0, TBD_CPU_V3 = 1, TBD_CPU_V3_TEST = 2 };

/* The ways to run: hooks/boot/mode.h. */
enum tbd_mode_kind {
    TBD_MODE_TRACED, /* play: every block translated, every event in the stream */
    TBD_MODE_LATER, /* the same blocks, of which only time and pages are recorded; a replay finds the events */
    TBD_MODE_PATCHED, /* translated, nothing reported: for measurement */
    TBD_MODE_REPLAY,  /* a window of a trace is run again */
    TBD_MODE_NATIVE, /* the program's own code; system calls are recorded, a replay finds the events */
    TBD_MODE_FREE,    /* translated, threads at the same time, nothing reported */
    TBD_MODE_CRASH,   /* the same, and each thread keeps a ring of the blocks that it ran */
    TBD_MODE_ARMED,   /* native, until probes are wanted (hooks/probes/arm.h) */
    TBD_MODE_CONTEXT, /* as free, and each thread has the value of its calls (base/calling.h) */
    TBD_MODE_COUNT,
    TBD_MODE_AUTO =
        TBD_MODE_COUNT /* only as an option: native, unless another option is about blocks */
};

enum tbd_save_choice { TBD_SAVE_ALWAYS = 0, TBD_SAVE_EXIT, TBD_SAVE_FAILURE, TBD_SAVE_SIGNAL };

struct tbd_options {
    char dir[TBD_OPTION_TEXT_BYTES]; /* "" = the organizer's default */
    /* "" = beside libtbd.so; "none" = events are thrown away */
    char organizer[TBD_OPTION_TEXT_BYTES];
    /* what a dump has of the system, for the collector; "" = all */
    char facts[TBD_OPTION_TEXT_BYTES];
    /* what leaves a dump while the program goes on, for the collector; "" = nothing */
    char trigger[TBD_OPTION_TEXT_BYTES];
    /* parts of the program that have longer rings; "" = none */
    char parts[TBD_OPTION_TEXT_BYTES];
    /* functions whose branches count (mode=context), by files and offsets; "" = none */
    char branches[TBD_OPTION_TEXT_BYTES];
    uint64_t pause;  /* milliseconds, for who takes a process over */
    uint64_t window; /* block entries in a window */
    /* block entries of a thread until it is another one's turn */
    uint64_t quantum;
    uint64_t chaos;     /* seed of threads/chaos.h; 0: none */
    uint64_t ring;      /* bytes of a thread's ring (mode=crash) */
    uint64_t condensed; /* bytes for laps of each ring that are over (mode=crash); 0: none */
    uint64_t record;    /* what there is beside rings (mode=crash): format/stream/record.def */
    uint64_t dump;      /* enum tbd_dump_choice */
    uint64_t tables;    /* enum tbd_tables_choice (mode=crash) */
    uint64_t memory;    /* enum tbd_memory_choice: what a dump has of the program's memory */
    uint64_t scheme;    /* enum tbd_calling_scheme (mode=context, also beside another) */
    uint64_t tally;     /* enum tbd_branch_scheme (mode=context) */
    uint64_t cut;       /* microseconds of a window; 0: as its costs say (mode=native) */
    uint64_t chunks;    /* 0: as many as the mode wants */
    uint64_t max_insns;
    uint64_t mode;  /* enum tbd_mode_kind, or TBD_MODE_AUTO */
    bool contexts;  /* threads have the values of their calls: mode=context, or crash,context */
    bool of_blocks; /* an option is given that says how blocks are reported: for translated code */
    uint64_t hooks; /* TBD_HOOK_* */
    uint64_t log;   /* enum tbd_log_level */
    uint64_t link;  /* 0 or 1 */
    uint64_t threads; /* 0 or 1: several threads are recorded */
    uint64_t budget;  /* bytes; 0: no limit */
    uint64_t level3;  /* windows; 0: no limit */
    uint64_t level2;
    /* bytes, or TBD_KEEP_SECONDS and seconds; 0: everything */
    uint64_t keep;
    uint64_t lean;  /* enum tbd_lean_choice: are windows written without events? */
    uint64_t count; /* enum tbd_count_choice: who counts the events, play or a replay? */
    uint64_t
        aftercount; /* 0 or 1: windows that play does not count are counted after the program's end */
    uint64_t save;     /* enum tbd_save_choice: is the trace kept when the program has ended? */
    uint64_t cpu;      /* enum tbd_cpu_choice */
    uint64_t wait;     /* 0 or 1: with mode=armed the program waits for its first probes */
    uint64_t children; /* 0 or 1: forked children get traces of their own */
    /* to be assumed (TBD_PROCESSORS, no option); 0: those that the program may use */
    uint64_t processors;
};

/* Fills *options from `text` (NULL = all defaults).  False: `why` says what is
 * wrong, one clause. */
bool tbd_options_parse(struct tbd_options *options, const char *text, char *why, size_t why_bytes);

/* Row `index` of the table for help texts; false after the last. */
bool tbd_options_describe(size_t index, const char **name, const char **values, const char **help);

#endif
