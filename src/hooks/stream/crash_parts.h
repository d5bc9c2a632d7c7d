// SPDX-License-Identifier: MIT
/* crash_parts.h - parts of the program whose entries are kept longer than rings do (format/stream/crash.h)
 *
 * Translated code knows nothing of it: when a lap of a ring is over, its entries are sorted out.
 *
 * Contexts: BOOT, APP with the engine lock; _sigsafe SIG, several threads at once. */
#ifndef TBD_HOOKS_CRASH_PARTS_H
#define TBD_HOOKS_CRASH_PARTS_H

#include "format/stream/crash.h"

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

/* BOOT, the memory has just been formatted: what the option `parts` says.  False: there is something in it that cannot be;
 * the rest is taken. */
bool tbd_crash_parts_format(struct tbd_crash *crash, const char *text);
/* The rings begin; `tables` is where the area of that name begins. */
void tbd_crash_parts_start(struct tbd_crash *crash, uint8_t *tables);
/* Code of parts, in place of what was given before; copied.  At most TBD_PART_RANGES; a name may not end. */
void tbd_crash_parts_set_ranges(const struct tbd_part_range *given, uint32_t count);
/* The names of functions and source files of which no module had the code, and their length, which may be 0. */
size_t tbd_crash_parts_missing(char *out, size_t bytes);
/* The block that begins at `start` has got this id; it belongs to module number `module`, whose file is `path`. */
void tbd_crash_parts_note(uint32_t id, uint64_t start, uint32_t module, const char *path);
/* The lap of ring number `index` that has `count` entries is over, at this time. */
void tbd_crash_parts_lap_sigsafe(uint32_t index, const uint32_t *ring, uint64_t count,
                                 uint64_t time);
/* The ring's next lap begins: its first place is empty. */
void tbd_crash_parts_next_lap_sigsafe(uint32_t index);
/* Another thread begins with this ring. */
void tbd_crash_parts_reset(uint32_t index);

#pragma GCC visibility pop

#endif
