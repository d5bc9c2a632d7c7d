// SPDX-License-Identifier: MIT
/* file_names.h - what the files of a trace are called, below its directory */
#ifndef TBD_FORMAT_FILE_NAMES_H
#define TBD_FORMAT_FILE_NAMES_H

#include "format/files/disk.h"

#include <stddef.h>
#include <stdint.h>

/* A file of the window with this number, `span` as in struct tbd_window_summary; `suffix`: "toc",
 * "trace" or "blocks". */
void tbd_window_file_name(uint32_t number, uint32_t span, const char *suffix, char *out,
                          size_t bytes);
/* The stops of a window of native play. */
void tbd_stops_file_name(uint64_t number, char *out, size_t bytes);
void tbd_image_name(const struct tbd_disk_base *base, char *out, size_t bytes);

#endif
