// SPDX-License-Identifier: MIT
/* path_merged.c - see path_merged.h
 *
 * Stretches of threads (ring_order.h) are asked for their rows from the last one back, until there are enough, and then printed from there on. */
#include "query/commands/path_merged.h"
#include "query/rings/ring_order.h"

#include <stdio.h>
#include <stdlib.h>

struct merging {
    struct tbd_path_rows *path;
    struct tbd_rings_stretch *list;
    size_t count;
    uint32_t *beside; /* threads of the stretch whose rows come next */
    bool *is_beside;  /* of each thread */
};

static struct tbd_rings_thread *thread_of(const struct merging *m, size_t i)
{
    return &m->path->ring->threads[m->list[i].thread];
}

/* Threads that ran, in the same group, what may have been before or after it. */
static size_t find_beside(struct merging *m, size_t at)
{
    const struct tbd_rings_stretch *stretch = &m->list[at];
    uint32_t threads = m->path->ring->dump.head->thread_count;
    size_t count = 0;

    for (uint32_t i = 0; i < threads; i++)
        m->is_beside[i] = false;
    for (size_t i = stretch->beside_first; i < stretch->beside_end; i++)
        m->is_beside[m->list[i].thread] |= tbd_rings_overlap(stretch, &m->list[i]);
    for (uint32_t i = 0; i < threads; i++)
        if (m->is_beside[i])
            m->beside[count++] = m->path->ring->threads[i].tid;
    return count;
}

static struct tbd_path_merged stretch_of(struct merging *m, size_t at)
{
    const struct tbd_rings_stretch *stretch = &m->list[at];

    return (struct tbd_path_merged){
        .first = stretch->first, .end = stretch->end, .group = stretch->group, .beside = m->beside
    };
}

/* The stretches from *first on have the last rows, *of_first of them in the first one. */
static enum tbd_status find_rows(struct merging *m, size_t max, size_t *first, size_t *of_first)
{
    size_t left = max;

    *of_first = 0;
    for (*first = m->count; *first > 0 && left > 0; left -= *of_first) {
        struct tbd_path_merged merged = stretch_of(m, --*first);
        enum tbd_status status;

        m->path->merged = &merged;
        status = tbd_path_rows_count(m->path, thread_of(m, *first), left, of_first);
        if (status != TBD_OK)
            return status;
    }
    return TBD_OK;
}

static enum tbd_status add_rows(struct merging *m, size_t max, struct tbd_rows *rows)
{
    size_t first, of_first;
    enum tbd_status status = find_rows(m, max, &first, &of_first);

    for (size_t i = first; status == TBD_OK && i < m->count; i++) {
        struct tbd_path_merged merged = stretch_of(m, i);

        merged.beside_count = find_beside(m, i);
        m->path->merged = &merged;
        status = tbd_path_rows_add(m->path, thread_of(m, i), i == first ? of_first : max, rows);
    }
    return status;
}

/* Several threads, and nothing is known of any two of them. */
static void tell_unknown(const struct merging *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].began_ns != 0)
            return;
    if (m->count > 1)
        fputs("tbdq: note: nothing says in which order these threads ran: tbd crash --record=2, or "
              "more, records system calls\n",
              stderr);
}

enum tbd_status tbd_path_merged_add(struct tbd_path_rows *path, size_t max, struct tbd_rows *rows)
{
    uint32_t threads = path->ring->dump.head->thread_count;
    struct merging m = { .path = path,
                         .beside = calloc(threads + 1u, sizeof(*m.beside)),
                         .is_beside = calloc(threads + 1u, sizeof(*m.is_beside)) };
    enum tbd_status status = m.beside != NULL && m.is_beside != NULL
                                 ? tbd_rings_order(path->ring, &m.list, &m.count)
                                 : TBD_NOMEM;

    if (status == TBD_OK)
        status = add_rows(&m, max, rows);
    if (status == TBD_OK)
        tell_unknown(&m);
    path->merged = NULL;
    free(m.list);
    free(m.beside);
    free(m.is_beside);
    return status;
}
