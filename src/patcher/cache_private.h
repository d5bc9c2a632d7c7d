// SPDX-License-Identifier: MIT
/* cache_private.h - shared by the files of the cache
 *
 *   cache.c         makes blocks, and forgets them
 *   cache_tables.c  finds them: blocks by start, ids by start and code, pages that have blocks
 *   cache_areas.c   where they are put
 *   cache_links.c   which block an exit leads to
 *   foretell.c      where indirect jumps are expected to lead
 *   cache_targets.c where threads' indirect branches find them
 *
 * One thread runs here at a time: that with the turn lock or, in free run, the engine lock.  Signal handlers only read (tbd_cache_area_of,
 * tbd_cache_block_at, tbd_cache_dry_run), and they interrupt translated code, not these files. */
#ifndef TBD_PATCHER_CACHE_PRIVATE_H
#define TBD_PATCHER_CACHE_PRIVATE_H

#include "patcher/cache.h"

enum {
    TBD_CACHE_AREAS = 64,
    TBD_CACHE_THREADS = 4800,
    TBD_CACHE_BLOCKS = 1 << 20,
    TBD_CACHE_SITES = 1 << 21,
    TBD_CACHE_BLOCK_SPACE = 32 << 10, /* no block's code is longer */
    TBD_CACHE_STUB_BYTES = 24,
    TBD_CACHE_STUB_SPACE = 256,
    TBD_CACHE_READ_PAGES = 256, /* a library has one or two */
    TBD_CACHE_TAG_BYTES = 48,   /* no check for indirect branches is longer */
    TBD_CACHE_PAGE_SLOTS = 1 << 16,
};

/* More than one thread, or one that is not known. */
#define TBD_FOUND_BY_MANY ((const struct tbd_thread *)1)

struct tbd_known_id {
    uint64_t start;
    uint64_t code_hash;
    uint32_t id;
    uint32_t code_bytes;
    uint8_t end;     /* the same bytes may end differently (patcher/forced_specials.h) */
    bool is_entered; /* in the table */
};

struct tbd_cache_slot {
    uint32_t index_1; /* index + 1 into an array, 0 = empty */
    uint32_t check; /* a part of the key: most other entries are passed by without a look at them */
};

/* Lives in the cache arena. */
struct tbd_cache_table {
    struct tbd_cache_slot *slot;
    uint32_t slots; /* power of two */
    uint32_t used;
};

struct tbd_cache {
    struct tbd_block_code *block;
    struct tbd_exit_site *site;
    struct tbd_known_id *id;
    struct tbd_cache_table map; /* of blocks by start */
    struct tbd_cache_table
        ids; /* of ids by start and code; in free run only of those that a block has had */
    uint32_t *on_page; /* lists of blocks, by a hash of the page that they start on: index + 1 */
    uint32_t reading;  /* list of those that were made from constants */
    uint32_t block_count;
    uint32_t site_count;
    uint32_t id_count;
    struct tbd_patch_area area[TBD_CACHE_AREAS];
    uint32_t area_count;
    uint32_t last_area; /* where the last block was put */
    struct tbd_thread *thread[TBD_CACHE_THREADS];
    uint32_t thread_count;
    uint64_t read_page[TBD_CACHE_READ_PAGES]; /* with the constants that blocks were made from */
    uint32_t read_pages;
    bool is_free;       /* threads may run at the same time */
    bool is_shared;     /* they do, or did: from the second thread on */
    struct tbd_cut cut; /* of the block being made */
};
extern struct tbd_cache tbd_cache; /* cache_tables.c */

/* cache_tables.c: enters the block into the map. */
void tbd_cache_map(uint32_t index);
void tbd_cache_empty_map(void);
/* In free run: the block is about to be forgotten, and has its id again if it is made once more. */
void tbd_cache_remember_id(const struct tbd_block_code *block);
/* The id that the block had before, or a new one. */
uint32_t tbd_cache_id_of(const struct tbd_cut *cut, const struct tbd_patcher_callbacks *callbacks,
                         const struct tbd_codegen_config *config);

/* cache_pages.c: enters the block into the lists by which tbd_cache_flush_range() finds it. */
void tbd_cache_enter_pages(struct tbd_block_code *block);
void tbd_cache_empty_pages(void);

/* cache_areas.c; NULL: no address space is left. */
struct tbd_patch_area *tbd_cache_area_for(const struct tbd_patcher_callbacks *callbacks,
                                          const struct tbd_codegen_config *config, uint64_t pc);
void tbd_cache_reset_area(struct tbd_patch_area *area);
/* Can code at `pc` be put into the area? */
bool tbd_cache_area_serves(const struct tbd_patch_area *area, uint64_t pc);

/* cache_links.c: the one function that changes code that has run. */
void tbd_cache_set_rel32(uint64_t rel32, uint64_t target);
void tbd_cache_emit_stub(struct tbd_exit_site *site);
/* Enters the link into the lists only; the jump is not changed. */
void tbd_cache_join(struct tbd_exit_site *site, struct tbd_block_code *block);
void tbd_cache_unlink_incoming(struct tbd_block_code *block);
void tbd_cache_leave_list(uint32_t index);
bool tbd_cache_open_tail(struct tbd_patch_area *area, struct tbd_exit_site *site);

/* cache_targets.c: removes the block, or all blocks, from the threads' tables. */
void tbd_cache_forget_target(const struct tbd_block_code *block);
void tbd_cache_forget_targets(void);

/* foretell.c: where the block's indirect jump will lead. */
struct tbd_foretold {
    uint64_t target; /* 0: nowhere in particular */
    uint64_t
        read; /* it was read here, and stays the same until this memory is flushed; 0: it may change */
    bool is_due; /* the block is to be made again once it has jumped */
};
struct tbd_foretold tbd_foretell(const struct tbd_patcher_callbacks *callbacks,
                                 const struct tbd_codegen_config *config,
                                 const struct tbd_patch_area *area, const struct tbd_cut *cut);

#endif
