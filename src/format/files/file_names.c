// SPDX-License-Identifier: MIT
/* file_names.c - see file_names.h */
#include "format/files/file_names.h"

#include <inttypes.h>
#include <stdio.h>

void tbd_window_file_name(uint32_t number, uint32_t span, const char *suffix, char *out,
                          size_t bytes)
{
    if (span > 1)
        snprintf(out, bytes, "windows/%u/%03u-%u.%s", number / 1000, number % 1000, span, suffix);
    else
        snprintf(out, bytes, "windows/%u/%03u.%s", number / 1000, number % 1000, suffix);
}

void tbd_stops_file_name(uint64_t number, char *out, size_t bytes)
{
    snprintf(out, bytes, "stops/%" PRIu64, number);
}

void tbd_image_name(const struct tbd_disk_base *base, char *out, size_t bytes)
{
    if (base->image)
        snprintf(out, bytes, "image-%u", base->image);
    else
        snprintf(out, bytes, "image");
}
