// SPDX-License-Identifier: MIT
/* builders.h - a pool of builders: each window is built by one
 *
 * A builder is faster with code that it has seen, so the one given back last is taken first.  Any
 * thread. */
#ifndef TBD_ORGANIZER_BUILDERS_H
#define TBD_ORGANIZER_BUILDERS_H

#include "organizer/build.h"

#include <pthread.h>

#define TBD_BUILDERS_MOST 16u

/* {PTHREAD_MUTEX_INITIALIZER} is empty; tbd_builders_free() when all have been given back. */
struct tbd_builders {
    pthread_mutex_t lock;
    struct tbd_builder *spare[TBD_BUILDERS_MOST]; /* owned */
    unsigned count;
};

struct tbd_builder *tbd_builders_take(struct tbd_builders *builders); /* NULL without memory */
void tbd_builders_give(struct tbd_builders *builders, struct tbd_builder *builder);
void tbd_builders_free(struct tbd_builders *builders);

#endif
