// SPDX-License-Identifier: MIT
/* other_places.c - see other_places.h */
#include "query/text/other_places.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096u

struct source_place {
    char *from, *to; /* owned, for the life of the process */
};

static struct {
    char *debug[TBD_PLACES_MAX]; /* owned, for the life of the process */
    size_t debug_count;
    struct source_place sources[TBD_PLACES_MAX];
    size_t source_count;
    uint64_t recorded;
    pthread_mutex_t lock;        /* of `notes` */
    char *notes[TBD_PLACES_MAX]; /* owned, for the life of the process */
    size_t note_count;
} places = { .lock = PTHREAD_MUTEX_INITIALIZER };

void tbd_places_add_debug(const char *folder)
{
    for (size_t i = 0; i < places.debug_count; i++)
        if (strcmp(places.debug[i], folder) == 0)
            return;
    if (places.debug_count == TBD_PLACES_MAX)
        return;
    places.debug[places.debug_count] = strdup(folder);
    places.debug_count += places.debug[places.debug_count] != NULL;
}

bool tbd_places_debug(size_t index, const char *build_id, char *out, size_t bytes)
{
    int used;

    if (index >= places.debug_count)
        return false;
    used = snprintf(out, bytes, "%s/%s.debug", places.debug[index], build_id);
    return used > 0 && (size_t)used < bytes;
}

static bool add_source(const char *from, size_t from_bytes, const char *to)
{
    struct source_place *place = &places.sources[places.source_count];

    for (size_t i = 0; i < places.source_count; i++)
        if (strlen(places.sources[i].from) == from_bytes &&
            memcmp(places.sources[i].from, from, from_bytes) == 0 &&
            strcmp(places.sources[i].to, to) == 0)
            return true;
    if (places.source_count == TBD_PLACES_MAX)
        return false;
    place->from = strndup(from, from_bytes);
    place->to = strdup(to);
    if (place->from == NULL || place->to == NULL)
        return false;
    places.source_count++;
    return true;
}

bool tbd_places_add_source(const char *rule)
{
    const char *sign = strchr(rule, '=');

    return sign != NULL && sign != rule && sign[1] != '\0' &&
           add_source(rule, (size_t)(sign - rule), sign + 1);
}

void tbd_places_add_own_sources(const char *folder)
{
    (void)add_source("", 0, folder);
}

/* `path` without `from`, which ends where a part of the path does; NULL: it does not begin with it. */
static const char *rest_of(const char *path, const char *from)
{
    size_t length = strlen(from);

    while (length != 0 && from[length - 1] == '/')
        length--;
    if (strncmp(path, from, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path + length;
}

bool tbd_places_plain(const char *path, char *out, size_t bytes)
{
    size_t used = 0;

    if (*path != '/' || bytes < 2)
        return false;
    while (*path != '\0') {
        size_t length = strcspn(++path, "/");

        if (length == 2 && memcmp(path, "..", 2) == 0) {
            while (used != 0 && out[--used] != '/')
                continue;
        } else if (length != 0 && !(length == 1 && *path == '.')) {
            if (used + length + 2 > bytes)
                return false;
            out[used++] = '/';
            memcpy(out + used, path, length);
            used += length;
        }
        path += length;
    }
    out[used] = '\0';
    return used != 0;
}

bool tbd_places_source(size_t index, const char *path, char *out, size_t bytes)
{
    char plain[PATH_BYTES];
    const char *rest;
    int used;

    if (index >= places.source_count)
        return false;
    rest = rest_of(tbd_places_plain(path, plain, sizeof(plain)) ? plain : path,
                   places.sources[index].from);
    used = rest == NULL ? 0 : snprintf(out, bytes, "%s%s", places.sources[index].to, rest);
    if (used <= 0 || (size_t)used >= bytes)
        *out = '\0';
    return true;
}

void tbd_places_set_recorded(uint64_t ns)
{
    places.recorded = ns;
}

static bool is_noted(const char *text)
{
    for (size_t i = 0; i < places.note_count; i++) {
        if (strcmp(places.notes[i], text) == 0)
            return true;
    }
    return false;
}

void tbd_places_note_source(const char *path, uint64_t changed_ns)
{
    char text[PATH_BYTES + 64];

    if (places.recorded == 0 || changed_ns <= places.recorded)
        return;
    snprintf(text, sizeof(text), "%s has changed since the recording", path);
    pthread_mutex_lock(&places.lock);
    if (places.note_count < TBD_PLACES_MAX && !is_noted(text)) {
        places.notes[places.note_count] = strdup(text);
        places.note_count += places.notes[places.note_count] != NULL;
    }
    pthread_mutex_unlock(&places.lock);
}

const char *tbd_places_note(size_t index)
{
    return index < places.note_count ? places.notes[index] : NULL;
}
