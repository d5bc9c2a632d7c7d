// SPDX-License-Identifier: MIT
/* code_areas.h - address space for code that the engine makes: patch areas, and slots for one
 * instruction each
 *
 * One list, tbd_code_areas.  An area is kept until the process ends; a forked child maps its own at
 * the same address, or inherits it.  Context: APP; tbd_code_areas_map() FORK_CHILD. */
#ifndef TBD_HOOKS_CODE_AREAS_H
#define TBD_HOOKS_CODE_AREAS_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

#define TBD_MAX_AREAS 256u

struct tbd_code_areas {
    bool are_inherited; /* free run: a forked child goes on in the code that its parent has made */
    struct tbd_range area[TBD_MAX_AREAS];
    size_t count;
};

extern struct tbd_code_areas tbd_code_areas;

/* A patcher's callback: reserves `bytes` within reach of [lo, hi), with hi == 0 anywhere, and tells
 * the trace; 0: there is no space, or was none at the last search (searches.h). */
uint64_t tbd_code_areas_reserve(uint64_t lo, uint64_t hi, uint64_t bytes);
/* Adds an area that a replay has reserved.  With TBD_MAX_AREAS it is left out. */
void tbd_code_areas_add(uint64_t start, uint64_t bytes);
/* Sends REGION for every area. */
void tbd_code_areas_send(void);
/* No thread is in translated code any more, nor will be: gives the areas back. */
void tbd_code_areas_release(void);
/* In a child, which does not inherit the areas: maps them at the same addresses, empty. */
bool tbd_code_areas_map(void);

#endif
