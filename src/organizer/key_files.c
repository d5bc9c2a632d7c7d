// SPDX-License-Identifier: MIT
/* key_files.c - the keys of windows, on their way into files of keys (format/summaries/keys.h)
 *
 * A window's keys wait, in the order of windows, from when its files are written until it is
 * committed.  Then they go into `segment`, which becomes a file when it is full, or at the end. */
#include "organizer/organize_private.h"

#include <stdlib.h>

static void free_keys(struct window_keys *keys)
{
    tbd_buffer_free(&keys->keys);
    free(keys);
}

/* The keys of a window that may soon go into the trace. */
static struct window_keys *make_keys(const struct tbd_window *window)
{
    struct window_keys *keys = calloc(1, sizeof(*keys));

    if (!keys)
        return NULL;
    *keys = (struct window_keys){ .window = window->number,
                                  .first_time = window->first_time,
                                  .blocks = window->blocks };
    tbd_keys_collect(window, &keys->keys);
    return keys;
}

void tbd_key_files_collect(struct organizer *o, const struct tbd_job *job)
{
    struct window_keys *keys = job->keep ? make_keys(job->product.window) : NULL;
    struct window_keys **at = &o->keys;

    pthread_mutex_lock(&o->lock);
    while (keys && *at && (*at)->window < keys->window)
        at = &(*at)->next;
    if (keys) {
        keys->next = *at;
        *at = keys;
    }
    o->collected++;
    pthread_cond_signal(&o->idle);
    pthread_mutex_unlock(&o->lock);
}

struct tbd_key_segment *tbd_key_files_add_locked(struct organizer *o)
{
    struct window_keys *keys = o->keys;
    struct tbd_key_segment *full = NULL;

    o->keys = keys->next;
    if (!o->segment || !tbd_key_segment_add(o->segment, keys->window, keys->first_time,
                                            keys->blocks, &keys->keys)) {
        full = o->segment;
        o->segment = calloc(1, sizeof(*o->segment));
        if (o->segment && !tbd_key_segment_add(o->segment, keys->window, keys->first_time,
                                               keys->blocks, &keys->keys)) {
            free(o->segment); /* there was no memory for these keys: a gap */
            o->segment = NULL;
        }
    } else if (tbd_key_segment_is_full(o->segment)) { /* the program still runs */
        full = o->segment;
        o->segment = NULL;
    }
    free_keys(keys);
    return full;
}

static void wait_for_keys_space(struct organizer *o, uint64_t bytes)
{
    pthread_mutex_lock(&o->lock);
    tbd_ager_expect_keys_locked(o->ager, bytes);
    while (!tbd_ager_may_write_keys_locked(o->ager)) {
        pthread_cond_signal(&o->due);
        pthread_cond_wait(&o->space, &o->lock);
    }
    pthread_mutex_unlock(&o->lock);
}

static void count_keys(struct organizer *o, uint64_t bytes)
{
    pthread_mutex_lock(&o->lock);
    tbd_ager_add_keys_locked(o->ager, bytes);
    pthread_cond_broadcast(&o->space);
    pthread_mutex_unlock(&o->lock);
}

static void write_keys(struct organizer *o, struct tbd_key_segment *segment)
{
    struct tbd_buffer file = { 0 };

    tbd_writer_code_segment(o->writer, segment, &file);
    if (o->ager)
        wait_for_keys_space(o, file.used);
    tbd_writer_segment(o->writer, segment, &file);
    if (o->ager)
        count_keys(o, file.used);
    tbd_buffer_free(&file);
}

void tbd_key_files_write(struct organizer *o, struct tbd_key_segment *segment)
{
    if (!segment)
        return;
    if (segment->windows)
        write_keys(o, segment);
    tbd_key_segment_clear(segment);
    free(segment);
}

void tbd_key_files_write_so_far(struct organizer *o, uint32_t least)
{
    struct tbd_key_segment *segment = NULL;

    pthread_mutex_lock(&o->lock);
    if (o->segment && o->segment->windows >= least) {
        segment = o->segment;
        o->segment = NULL;
    }
    pthread_mutex_unlock(&o->lock);
    tbd_key_files_write(o, segment);
}

void tbd_key_files_write_last(struct organizer *o)
{
    struct tbd_key_segment *full;

    do {
        full = NULL;
        pthread_mutex_lock(&o->lock);
        while (o->collected < o->added)
            pthread_cond_wait(&o->idle, &o->lock);
        while (o->keys && !full)
            full = tbd_key_files_add_locked(o);
        pthread_mutex_unlock(&o->lock);
        tbd_key_files_write(o, full);
    } while (full);
    tbd_key_files_write_so_far(o, 1);
}
