// SPDX-License-Identifier: MIT
/* other_places.h - where files that debug information names are, if not at their own paths
 *
 * Debug files and sources that travel with a trace, and `--source-map FROM=TO`.  Places are added before questions are
 * asked, by one thread; any thread may look afterwards. */
#ifndef TBD_QUERY_OTHER_PLACES_H
#define TBD_QUERY_OTHER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TBD_PLACES_MAX 16u

/* A folder of files called BUILD-ID.debug.  Adding it again does nothing. */
void tbd_places_add_debug(const char *folder);
/* The path of such a file in folder `index` (from 0); false: there are no more folders, or it is too long. */
bool tbd_places_debug(size_t index, const char *build_id, char *out, size_t bytes);

/* "FROM=TO": sources whose path begins with FROM are looked for below TO.  False: that is none, or there are too many. */
bool tbd_places_add_source(const char *rule);
/* The same of a trace's own sources, below `folder`. */
void tbd_places_add_own_sources(const char *folder);
/* The path without ".", ".." and empty parts, by its text alone; false: it is not absolute, or too long. */
bool tbd_places_plain(const char *path, char *out, size_t bytes);
/* Where a source may be instead of `path`; false: there are no more places. */
bool tbd_places_source(size_t index, const char *path, char *out, size_t bytes);

/* Sources that were changed after this time (CLOCK_REALTIME) may have other lines than the program; 0: not known. */
void tbd_places_set_recorded(uint64_t ns);
/* A source was read from its own path, and had this time of change. */
void tbd_places_note_source(const char *path, uint64_t changed_ns);
/* What is to be said about sources, one line each; NULL past the last. */
const char *tbd_places_note(size_t index);

#endif
