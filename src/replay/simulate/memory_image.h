// SPDX-License-Identifier: MIT
/* memory_image.h - what is known of memory at one moment, while a simulation passes over its steps
 *
 * Words of 8 bytes, each with the bits that are known, since when, and why.  A word that was not touched yet has what
 * the caller's function says (memory at the end, constant data).
 *
 * A store to an unknown address may have changed any word.  Either everything is forgotten then, or the store is noted, and
 * who reads a word learns which of its bits such stores may have changed since it became known. */
#ifndef TBD_REPLAY_SIMULATE_MEMORY_IMAGE_H
#define TBD_REPLAY_SIMULATE_MEMORY_IMAGE_H

#include "replay/simulate/bits.h"

#include <stddef.h>

/* Bits of the 8 bytes at `address`, a multiple of 8. */
typedef struct tbd_bits (*tbd_image_source)(void *arg, uint64_t address);

struct tbd_image_word {
    uint64_t address;
    struct tbd_bits bits;
    uint32_t generation; /* another one than the image's: not there */
    uint32_t step;       /* where it was learned first */
    uint32_t counter;    /* how many unknown stores it has been compared with */
    uint32_t why;        /* the assumption that it rests on; 0: none */
    uint64_t doubt;      /* known bits that stores since then may have changed */
    uint64_t fields;     /* set of struct tbd_sim_insn's `field` of these */
    uint32_t stores;     /* how many */
    uint32_t store;      /* the last one's step */
    uint32_t account;    /* the caller's; 0 at first */
    uint32_t done;       /* the caller's */
    bool has_byte;       /* one of them stores a byte */
    bool crossed;        /* there was an interruption among them */
};

/* A store of `bytes` bytes at an address that is not known, or only in part; 0 bytes: anywhere, anything. */
struct tbd_image_store {
    struct tbd_bits address, data;
    uint64_t stand_in; /* for its address; 0: nothing does (linear.c) */
    uint32_t step;
    uint32_t why; /* what its address and data rest on */
    uint8_t bytes;
    uint8_t field;     /* of its instruction (insn.h) */
    bool stirs;        /* of 0 bytes: steps are missing there, those of a signal's way */
    uint32_t anything; /* 1 + the number of the last one of 0 bytes up to this one; 0: none */
    uint32_t stirred;  /* the same of the last one that stirs */
};

/* Words from `from` to before `to`, which step `step` replaced. */
struct tbd_image_range {
    uint64_t from, to;
    uint32_t step;
};

struct tbd_image {
    struct tbd_image_word *words; /* owned; a hash table, a power of two large */
    size_t size, count;
    uint32_t generation;
    struct tbd_image_store *stores; /* owned; unknown ones, as the pass came by */
    size_t store_count, store_capacity;
    uint32_t begin;                   /* the step where words that come from the source are known */
    uint32_t begin_counter;           /* how many unknown stores there were then */
    struct tbd_image_range *replaced; /* owned */
    size_t replaced_count, replaced_capacity;
    tbd_image_source source;
    tbd_image_source after; /* of words in `replaced` */
    void *arg;
    uint64_t forgotten; /* the caller's: when all was forgotten; 0: not since the beginning */
    bool no_memory;     /* an allocation failed: words are missing, which means unknown */
};

/* Empty, for a pass that begins at step `begin`. */
void tbd_image_begin(struct tbd_image *image, uint32_t begin, tbd_image_source source, void *arg);
void tbd_image_free(struct tbd_image *image);
/* What *to has had is gone.  False: no memory; *to is empty. */
bool tbd_image_copy(struct tbd_image *to, const struct tbd_image *from);

/* Nothing is known any more but what the source says. */
void tbd_image_forget(struct tbd_image *image, tbd_image_source source);

/* What `source` says is all that is known any more of words in the range.  It is the same for all ranges. */
void tbd_image_replace(struct tbd_image *image, struct tbd_image_range range,
                       tbd_image_source source);

/* The same of one word. */
void tbd_image_replace_word(const struct tbd_image *image, struct tbd_image_word *word);

/* The image's words in the range, one after the other; NULL: no more.  *cursor is 0 at first. */
struct tbd_image_word *tbd_image_next_in(const struct tbd_image *image,
                                         const struct tbd_image_range *range, uint64_t *cursor);

/* What a word has at first, if the first `replaced` of the ranges were replaced before. */
struct tbd_bits tbd_image_first(const struct tbd_image *image, uint64_t address, size_t replaced);

/* Notes an unknown store. */
void tbd_image_note_store(struct tbd_image *image, const struct tbd_image_store *store);

/* The bits of a word that the store may have changed.  `back`: the word is as after the store, else as before it. */
uint64_t tbd_image_may_change(const struct tbd_image_store *store,
                              const struct tbd_image_word *word, bool back);

/* The word at `address`; *out_is_new: it was not there, and nothing is known of it (tbd_image_first()).  NULL: no memory.  Valid until the
 * next call. */
struct tbd_image_word *tbd_image_place(struct tbd_image *image, uint64_t address, bool *out_is_new);
bool tbd_image_has(const struct tbd_image *image, uint64_t address);

#endif
