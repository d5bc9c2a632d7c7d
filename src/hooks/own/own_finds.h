// SPDX-License-Identifier: MIT
/* own_finds.h - where code may have an instruction that native play must stop at, by two bytes */
#ifndef TBD_HOOKS_OWN_FINDS_H
#define TBD_HOOKS_OWN_FINDS_H

#include <stddef.h>
#include <stdint.h>

/* Sets marks[0] to marks[count - 1], for 16 bytes each: a bit for each byte with which begins a pair that nearly nothing but such an
 * instruction begins with, or 60 ff, with which the address of a function of the vsyscall page ends.  Most of a program's code is passed by
 * them.  Reads one byte more.  Uses the decoder's registers (tbd_processor_decode()). */
void tbd_own_mark_finds(const uint8_t *bytes, uint16_t *marks, size_t count);

#endif
