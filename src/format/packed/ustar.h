// SPDX-License-Identifier: MIT
/* ustar.h - the headers of ustar (POSIX.1-2001, pax) */
#ifndef TBD_FORMAT_USTAR_H
#define TBD_FORMAT_USTAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_USTAR_BLOCK 512u

struct tbd_ustar {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12]; /* octal, or base 256 if the highest bit is set */
    char time[12];
    char sum[8];
    char type; /* '0', NUL: a file; '5': a folder */
    char link[100];
    char magic[8]; /* "ustar\0" "00" */
    char user[32];
    char group[32];
    char major[8];
    char minor[8];
    char prefix[155]; /* before the name, with a slash between them */
    char unused[12];
};
_Static_assert(sizeof(struct tbd_ustar) == TBD_USTAR_BLOCK, "a header is one block");

/* The bytes' sum, the sum's own counted as blanks. */
uint64_t tbd_ustar_sum(const struct tbd_ustar *header);
bool tbd_ustar_number(const char *field, size_t bytes, uint64_t *out);

#endif
