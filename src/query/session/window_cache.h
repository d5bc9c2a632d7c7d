// SPDX-License-Identifier: MIT
/* window_cache.h - keeps replayed windows, and answers, on disk, below the trace's cache/
 *
 * The next question reads them from there. It is a convenience: any failure (a full disk, a folder
 * that cannot be written, damage) only costs a replay.  Any number of processes may use the folder
 * of a trace at once, also while it is recorded; one struct may be used from several threads. */
#ifndef TBD_QUERY_WINDOW_CACHE_H
#define TBD_QUERY_WINDOW_CACHE_H

#include "format/merging/answer.h"
#include "format/trace/trace.h"

struct tbd_window_cache;

/* `limit`: bytes that the folder may have; 0: tbd_window_cache_limit().  NULL without memory. */
struct tbd_window_cache *tbd_window_cache_new(const struct tbd_trace *trace, uint64_t limit);
void tbd_window_cache_free(struct tbd_window_cache *cache); /* NULL is fine */

/* A sixteenth of the trace's limit, 256 MiB at most. */
uint64_t tbd_window_cache_limit(const struct tbd_trace *trace);

/* The window with its events, as a replay with TBD_HOOKS_FULL gives it; the caller owns it. NULL:
 * it is not in the cache.  `trace` is any handle on the cache's trace. */
struct tbd_window *tbd_window_cache_get(struct tbd_window_cache *cache, struct tbd_trace *trace,
                                        uint32_t index);
/* Keeps a window from such a replay. */
void tbd_window_cache_put(struct tbd_window_cache *cache, const struct tbd_trace *trace,
                          const struct tbd_window *window);

/* The text of the answer to answer->question, if it is in the cache; the caller frees it. */
bool tbd_window_cache_answer(struct tbd_window_cache *cache, const struct tbd_trace *trace,
                             struct tbd_answer *answer);
/* Keeps another file, unless it would take more than an eighth of the folder's limit. */
void tbd_window_cache_keep(struct tbd_window_cache *cache, const char *name,
                           const struct tbd_buffer *content);

#endif
