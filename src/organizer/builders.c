// SPDX-License-Identifier: MIT
/* builders.c - see builders.h */
#include "organizer/builders.h"

struct tbd_builder *tbd_builders_take(struct tbd_builders *builders)
{
    struct tbd_builder *builder = NULL;

    pthread_mutex_lock(&builders->lock);
    if (builders->count)
        builder = builders->spare[--builders->count];
    pthread_mutex_unlock(&builders->lock);
    return builder ? builder : tbd_builder_new();
}

void tbd_builders_give(struct tbd_builders *builders, struct tbd_builder *builder)
{
    pthread_mutex_lock(&builders->lock);
    if (builders->count < TBD_BUILDERS_MOST) {
        builders->spare[builders->count++] = builder;
        builder = NULL;
    }
    pthread_mutex_unlock(&builders->lock);
    tbd_builder_free(builder);
}

void tbd_builders_free(struct tbd_builders *builders)
{
    while (builders->count)
        tbd_builder_free(builders->spare[--builders->count]);
    pthread_mutex_destroy(&builders->lock);
}
