// SPDX-License-Identifier: MIT
/* cache.h - translated blocks: storage, lookup, links
 *
 * An area is a range of address space near code of the program.  It begins with its exit jumps (one
 * for each exit kind); blocks are added upward from there, exit stubs downward from its end.
 *
 * CACHE-1  A block's code is [cache_start, cache_end) in one area; blocks of an area are in address
 *     order.
 * CACHE-2  A live block is in the map under its start.  A dead one (flushed) is not in the map, no
 *     jump leads to it and no indirect target names it; its code stays until everything is flushed.
 * CACHE-3  An exit site leads to its stub or to the entry of a live block (through its stub, if the
 *     block is out of a jump's reach); in the second case the site is in that block's list of
 *     incoming sites.
 * CACHE-4  A block that is made for an exit of the block directly before it in memory replaces that
 *     exit's jump (rel32 = 0): control falls through into it.  When it dies its first bytes become
 *     the jump, which ends before all displacements of its own exits: a block that is too short for that keeps its jump.
 *     A block that begins with a comparison of its code never replaces a jump.
 * CACHE-5  Of code that other threads may be running, only the displacement of a jump changes, by one
 *     aligned store.  So in free run a stub never becomes a far jump, and a dead block, which a thread
 *     may still be in, stays in the lists of the blocks that it leads to.  From the second thread on
 *     no block replaces a jump any more; of those that have, a block dies together with the one that
 *     control falls through from. (not checked: is_free and is_shared leave the other ways out) */
#ifndef TBD_PATCHER_CACHE_H
#define TBD_PATCHER_CACHE_H

#include "patcher/translate.h"

#define TBD_NO_INDEX UINT32_MAX

struct tbd_block_code {
    uint64_t start; /* application address */
    uint64_t cache_start;
    uint64_t cache_end;
    uint64_t entry;    /* the entry store, or the comparison of its code before it; registers in
                        place */
    uint64_t answered; /* where it goes on after TBD_EXIT_ASKED or _RECORD; 0: it has neither */
    uint64_t tail;     /* where the jumps of its exits begin */
    uint64_t tagged;   /* entry for indirect branches; 0 if none yet */
    uint32_t id;
    uint32_t incoming;   /* first exit site linked to it, TBD_NO_INDEX if none */
    uint32_t first_exit; /* its own exit sites */
    uint32_t code_bytes;
    uint16_t last_insn; /* offset of the last instruction */
    uint8_t last_bytes; /* and its length */
    uint8_t exit_count;
    uint8_t end; /* enum tbd_end */
    uint8_t special;
    bool live;
    bool foretells_later; /* its jump's target is to be foretold, but not yet (foretell.c) */
    uint64_t foretold;    /* that target; 0: none */
    uint64_t read;        /* the constant that it is; 0: it is none */
    bool is_stop;         /* made by tbd_patcher_stop_inside: not in the map */
    uint32_t stop_insns;
    uint32_t next[2]; /* in the lists of cache_pages.c: index + 1, 0 = the last one */
    const struct tbd_thread
        *found_by; /* whose indirect branches find it: NULL nobody's, TBD_FOUND_BY_MANY */
};

struct tbd_exit_site {
    uint64_t rel32; /* address of the displacement; 0: 0: control falls through into `linked` */
    uint64_t stub;
    uint64_t target; /* application address */
    uint32_t block;  /* whose exit it is */
    uint32_t linked; /* block it leads to, TBD_NO_INDEX if the stub */
    uint32_t area;   /* index of its area */
    uint32_t next;   /* in the list of incoming sites */
};

struct tbd_patch_area {
    uint64_t base;
    uint64_t end;
    uint64_t hot;  /* next block */
    uint64_t cold; /* lowest stub */
    uint64_t head[TBD_EXIT_KINDS];
    uint64_t miss;   /* exit of a tagged entry with another target, in r11 */
    uint32_t *block; /* indices in address order; lives in the cache arena */
    uint32_t count;
};

/* BOOT.  False if there is no address space.  `is_free`: threads may run at the same time. */
bool tbd_cache_init(bool is_free);
/* Unlinks all blocks, and waits until no other thread is in one.  tbd_cache_flush_all() and
 * tbd_engine_drain_end() come next. */
void tbd_cache_drain(struct tbd_thread *thread);
/* Forgets all translations and reuses the areas.  Ids survive. */
void tbd_cache_flush_all(void);
/* Forgets ids, too: the hook set changed. */
void tbd_cache_forget_ids(void);

/* Makes the pages that even a short run uses: cheaper than a fault for each. */
void tbd_cache_populate(void);

void tbd_cache_count(uint32_t *out_blocks, uint32_t *out_areas);
struct tbd_block_code *tbd_cache_block(uint32_t index);
struct tbd_exit_site *tbd_cache_site(uint32_t index);
/* The whole block with this id that was made last; there is one.  Looks at all of them. */
const struct tbd_block_code *tbd_cache_with_id(uint32_t id);
/* The live block that starts at `pc`, NULL if none. */
struct tbd_block_code *tbd_cache_find(uint64_t pc);
uint32_t tbd_cache_index(const struct tbd_block_code *block);

struct tbd_make {
    uint64_t pc;
    uint32_t after; /* exit site to link to the new block; TBD_NO_INDEX if none */
    /* > 0: a separate block that leaves by TBD_EXIT_STOP after this many instructions */
    uint32_t stop_insns;
    bool tagged; /* with an entry for indirect branches before it */
};

/* Translates a block.  NULL when the cache is full: flush everything and try again. */
struct tbd_block_code *tbd_cache_make(const struct tbd_patcher_callbacks *callbacks,
                                      const struct tbd_codegen_config *config,
                                      const struct tbd_make *make);
/* Makes a tagged entry for a block that has none.  False when the cache is full. */
bool tbd_cache_add_tag(struct tbd_block_code *block);
/* Links the site to the block: its jump no longer leaves translated code. */
void tbd_cache_link(struct tbd_exit_site *site, struct tbd_block_code *block);
/* May there be translations of code in this range, or that were made from constants there? */
bool tbd_cache_has_blocks(uint64_t start, uint64_t end);
/* Constants only. */
bool tbd_cache_may_read(uint64_t start, uint64_t end);
void tbd_cache_flush_range(uint64_t start, uint64_t end);
/* Forgets one block, if it is not forgotten yet. */
void tbd_cache_kill(struct tbd_block_code *block);
/* Adds a thread that runs translated code: its tables of indirect targets name blocks. */
void tbd_cache_add_thread(struct tbd_thread *thread);
/* Makes the thread's indirect branches find the block, which must have a tagged entry. */
void tbd_cache_set_target(struct tbd_thread *thread, struct tbd_block_code *block);
void tbd_cache_remove_thread(struct tbd_thread *thread);
/* No thread but the calling one, which is in the engine, runs translated code. */
void tbd_cache_after_fork(void);

/* Any context: the area and the block (NULL: between blocks) that own a cache address. */
const struct tbd_patch_area *tbd_cache_area_of(uint64_t cache_pc);
struct tbd_block_code *tbd_cache_block_at(uint64_t cache_pc);

/* The block whose check for indirect branches contains `cache_pc` and was added apart from it; NULL:
 * there is none. */
const struct tbd_block_code *tbd_cache_added_tag(uint64_t cache_pc);

/* Application address the exit stub at `cache_pc` goes to; 0 if there is none. */
uint64_t tbd_cache_stub_target(uint64_t cache_pc);

/* Runs the translation of `block` again without keeping it, to find the state at cache address
 * watch->pc.  Any context.  False if the program's code is gone. */
bool tbd_cache_dry_run(const struct tbd_patcher_callbacks *callbacks,
                       const struct tbd_codegen_config *config, const struct tbd_block_code *block,
                       struct tbd_watch *watch, struct tbd_cut *cut);

#endif
