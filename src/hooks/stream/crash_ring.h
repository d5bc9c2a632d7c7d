// SPDX-License-Identifier: MIT
/* crash_ring.h - the engine's side of format/stream/crash.h
 *
 * Contexts: BOOT, APP with the engine lock; _sigsafe SIG. */
#ifndef TBD_HOOKS_CRASH_RING_H
#define TBD_HOOKS_CRASH_RING_H

#include "format/stream/crash.h"
#include "hooks/table/syscalls.h"
#include "patcher/thread.h"

#include <stdbool.h>

struct tbd_crash_format {
    uint64_t ring_bytes;      /* of each ring that are used as long as it is not changed */
    uint64_t value_bytes;     /* of each ring's slots for values; 0: none */
    uint64_t memory_bytes;    /* of the first one's for copies of memory; 0: none */
    uint64_t condensed_bytes; /* of each ring's chunks; 0: none */
    uint32_t tables;          /* TBD_CRASH_FIRST, _LAST, _KEPT */
    uint32_t record;          /* the dial */
    const char *parts;        /* what is kept */
};

/* The stream has just been formatted with rings. */
void tbd_crash_format(const struct tbd_crash_format *format);
/* Its collector is ready. */
void tbd_crash_start(void);
bool tbd_crash_is_on(void);
/* FORK_CHILD: the rings are the parent's, and are not mapped here. */
void tbd_crash_forget(void);

/* Lets thread number `index` write to its own ring, which becomes empty.  Threads for which there is none
 * share one that nobody reads.  `tid` 0: not known yet. */
void tbd_crash_give_ring(struct tbd_thread *thread, uint32_t index, uint32_t tid);
/* Any thread, without the lock: this is the thread's number. */
void tbd_crash_note_thread(uint32_t index, uint32_t tid);
/* Where area 0 has requests for triggers; NULL: there are no rings. */
void *tbd_crash_at(uint32_t offset);
/* All threads are at a boundary.  Rings have this many bytes from now on, a multiple of the page size; `entry_of` gives
 * the place where a thread's block has its next entry, NULL if no thread has this number.  False: they cannot. */
bool tbd_crash_resize(uint64_t bytes, uint32_t threads, uint64_t *(*entry_of)(uint32_t index));
uint64_t tbd_crash_ring_bytes(void);
/* Beside the thread's ring (hooks/stream/value_slots.h): its registers before the block at regs.rip, `due` or only if the last ones
 * are from long ago; a system call that it has just made, with the result in rax, and its registers.  After that a signal may come
 * before the block. */
void tbd_crash_note_values(struct tbd_thread *thread, uint32_t index, bool due);
void tbd_crash_begin_call(uint32_t index); /* before it; no entry follows before the next two */
void tbd_crash_goes_on_after_call(uint32_t index); /* not as one that is complete */
void tbd_crash_note_call(struct tbd_thread *thread, uint32_t index,
                         const struct tbd_sys_call *call);
/* The same registers, because a probe is there, whatever the dial says; and after that memory. */
void tbd_crash_note_probe(struct tbd_thread *thread, uint32_t index);
void tbd_crash_note_bytes(struct tbd_thread *thread, uint32_t index, uint64_t address,
                          uint64_t bytes);
/* The same after the first registers of a lap: how many bytes of memory may follow, once; else 0. */
uint64_t tbd_crash_memory_due(struct tbd_thread *thread, uint32_t index);
/* It follows; then parts of it.  Returns how many of these bytes there were. */
void tbd_crash_begin_memory(struct tbd_thread *thread, uint32_t index);
uint64_t tbd_crash_note_memory(struct tbd_thread *thread, uint32_t index, uint64_t address,
                               uint64_t bytes);
void tbd_crash_cancel_values(struct tbd_thread *thread, uint32_t index);
/* The definition of the block at `start` in the mapping `region` has got this id; `path` is its file's. */
void tbd_crash_note_module(uint32_t id, uint64_t start, const struct tbd_msg_region *region,
                           const char *path);

/* The block is made, and will be entered. */
void tbd_crash_note_first(uint32_t id);

/* The program dies of this signal, in this thread. */
void tbd_crash_dies(const struct tbd_thread *thread, uint32_t signo, const uint8_t *info);
/* There are rings; the dump that is sent next is not the program's end. */
void tbd_crash_goes_on(bool goes_on);
/* A dump begins that `tbd dump` has asked for, or the collector has it: it waits for both. */
void tbd_crash_note_asked(void);
void tbd_crash_note_answered(void);
/* What the dump that is sent next has of rings and parts: as in struct tbd_crash. */
void tbd_crash_keeps(uint32_t keeps);
/* That dump is complete, and the program runs; the next one has everything. */
void tbd_crash_resumes(void);
/* The program ends by itself, or goes on without the engine: there is nothing to collect. */
void tbd_crash_ends(void);

/* A store to `address` has faulted; *entry_next is where the thread stores its next entry. */
enum tbd_crash_wrap {
    TBD_WRAP_NONE,    /* its ring is not full */
    TBD_WRAP_DONE,    /* it was, and *entry_next is its start */
    TBD_WRAP_RECORDS, /* the same, and registers are due (tbd_crash_note_values()) */
};
enum tbd_crash_wrap tbd_crash_wraps_sigsafe(struct tbd_thread *thread, uint32_t index,
                                            uint64_t address, uint64_t *entry_next);

#endif
