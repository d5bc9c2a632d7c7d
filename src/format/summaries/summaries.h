// SPDX-License-Identifier: MIT
/* summaries.h - word and block summaries on disk: groups that are found and unpacked alone */
#ifndef TBD_FORMAT_SUMMARIES_H
#define TBD_FORMAT_SUMMARIES_H

#include "format/files/file.h"
#include "format/window/window.h"

/* Append one record.  `window` is the number of the window they belong to. */
void tbd_words_put(struct tbd_buffer *out, uint32_t window, const struct tbd_word_summary *words,
                   size_t count);
void tbd_block_summaries_put(struct tbd_buffer *out, uint32_t window,
                             const struct tbd_block_summary *blocks, size_t count);

/* Append the record of level 1: only which keys there are, as runs of consecutive keys. */
/* `pages`: addresses, sorted, of pages with all their words. */
void tbd_word_bits_put(struct tbd_buffer *out, const struct tbd_word_summary *words, size_t count,
                       const uint64_t *pages, size_t page_count);
/* `called`: only blocks that were entered by a call. */
void tbd_block_bits_put(struct tbd_buffer *out, const struct tbd_block_summary *blocks,
                        size_t count, bool called);

/* The number of keys in a record of level 1, and the keys. */
TBD_MUST_CHECK enum tbd_status tbd_bits_count(const struct tbd_record_view *record, size_t *out);
TBD_MUST_CHECK enum tbd_status tbd_word_bits_get(const struct tbd_record_view *record,
                                                 struct tbd_word_summary *out);
TBD_MUST_CHECK enum tbd_status tbd_block_bits_get(const struct tbd_record_view *record,
                                                  const struct tbd_record_view *called,
                                                  struct tbd_block_summary *out);
/* Does the record have this word, or block id?  Else TBD_NOTFOUND. */
TBD_MUST_CHECK enum tbd_status tbd_word_bits_find(const struct tbd_record_view *record,
                                                  uint64_t word);
TBD_MUST_CHECK enum tbd_status tbd_block_bits_find(const struct tbd_record_view *record,
                                                   uint32_t id);

/* The number of entries in a record; TBD_CORRUPT if its bytes cannot hold them. */
TBD_MUST_CHECK enum tbd_status tbd_summaries_count(const struct tbd_record_view *record,
                                                   size_t *out);
/* Reads all entries into an array of that size. */
TBD_MUST_CHECK enum tbd_status tbd_words_get(const struct tbd_record_view *record, uint32_t window,
                                             struct tbd_word_summary *out);
TBD_MUST_CHECK enum tbd_status tbd_block_summaries_get(const struct tbd_record_view *record,
                                                       uint32_t window,
                                                       struct tbd_block_summary *out);
/* Reads one entry; TBD_NOTFOUND. */
TBD_MUST_CHECK enum tbd_status tbd_words_find(const struct tbd_record_view *record, uint32_t window,
                                              uint64_t word, struct tbd_word_summary *out);
TBD_MUST_CHECK enum tbd_status tbd_block_summaries_find(const struct tbd_record_view *record,
                                                        uint32_t window, uint32_t id,
                                                        struct tbd_block_summary *out);

#endif
