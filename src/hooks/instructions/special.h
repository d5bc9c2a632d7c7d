// SPDX-License-Identifier: MIT
/* special.h - an instruction that the engine executes: shared by special.c, shared_insn.c and
 * others.  Context: APP. */
#ifndef TBD_HOOKS_SPECIAL_H
#define TBD_HOOKS_SPECIAL_H

#include "hooks/memory/effects.h"
#include "hooks/instructions/slot.h"
#include "hooks/memory/userfault.h"

struct tbd_special_run {
    struct tbd_thread *thread;
    struct tbd_effects *effects;
    const struct tbd_slot *slot;
    enum tbd_special kind;
    uint32_t insn_bytes;
    /* number of writes of others, which precede the instruction's own in the effects */
    uint32_t others;
    bool is_left;              /* only a part of a repeated instruction can be executed now */
    struct tbd_page_wait wait; /* if the block was left: the page to wait for */
    struct tbd_regs before;
};

/* NULL in play.  In a replay process: makes the log's stores of others for the present piece of an
 * instruction, and adds them to the effects.  Returns their message, or NULL. */
typedef const struct tbd_msg_special *(*tbd_next_others_function)(struct tbd_effects *effects,
                                                                  uint32_t *others);
extern tbd_next_others_function tbd_next_others;

/* In a replay process: play has logged nothing of the present instruction (TBD_MSG_UNLOGGED). */
extern bool tbd_special_is_unlogged;

/* Set in native play: a store that the engine executes is supplied from the log in a replay. */
extern bool tbd_special_logs_stores;

/* special.c: executes the instruction, or returns the page to wait for before the block is entered
 * again. */
struct tbd_page_wait tbd_special_perform(struct tbd_thread *thread, enum tbd_special kind,
                                         uint32_t insn_bytes);

/* Handles memory that others fill (hooks/memory/userfault.h).  True: a page is missing, so the
 * block was left and the instruction must not be executed now.  False: all pages are present, and
 * logged. */
bool tbd_special_leaves(struct tbd_special_run *s, const struct tbd_sys_range *ranges, size_t count,
                        bool is_write);
void tbd_special_leave_block(struct tbd_special_run *s, uint64_t address, bool is_write);

/* Tells a replay that was asked for loads that the instruction has read this memory; 0 bytes: nothing.
 * Before the message about the part that read it. */
void tbd_special_tell_read(struct tbd_special_run *s, const struct tbd_sys_range *range);
/* Sends a message about the part executed so far. */
void tbd_special_send(struct tbd_special_run *s, uint32_t flags);
/* Ends the instruction: advances rip and sends its message. */
void tbd_special_finish(struct tbd_special_run *s, uint32_t flags);

/* Lets the program go before the instruction. */
_Noreturn void tbd_special_give_up(struct tbd_special_run *s, const char *why);

/* Executes repeated movs and stos; lods, scas and cmps. */
void tbd_special_string_stores(struct tbd_special_run *s);
void tbd_special_string_loads(struct tbd_special_run *s);

/* Executes an instruction of the set in patcher/forced_specials.h. */
void tbd_shared_perform(struct tbd_special_run *s);

/* Runs a gather; the caller sends its message. */
void tbd_shared_gather(struct tbd_special_run *s);
/* Runs an instruction that stores to `ranges` (exactly: to all of them), if it is a scatter or some
 * lie in memory that other processes may write, and adds its stores to the effects.  False: the
 * caller runs it. */
bool tbd_shared_store(struct tbd_special_run *s, const struct tbd_sys_range *ranges, size_t count,
                      bool exactly);
bool tbd_shared_is_writable(const struct tbd_sys_range *range);

/* tiles.c: loads or stores a tile. */
void tbd_tile_load(struct tbd_special_run *s);
void tbd_tile_store(struct tbd_special_run *s, uint32_t flags);

/* A piece of a repeated string store: movs or stos. */
struct tbd_string_piece {
    struct tbd_sys_range to;
    struct tbd_sys_range from; /* bytes 0: stos */
    uint32_t size;             /* of an element */
    bool backward;
};
/* Does it use memory that other processes may write?  Such a piece has at most this many bytes. */
#define TBD_SHARED_PIECE_BYTES 16384u
bool tbd_shared_has_piece(const struct tbd_string_piece *piece);
/* Executes it, except for the registers. */
bool tbd_shared_copy_piece(struct tbd_special_run *s, const struct tbd_string_piece *piece);

#endif
