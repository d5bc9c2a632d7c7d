// SPDX-License-Identifier: MIT
/* cut_file.h - a file that is cut short while it is mapped
 *
 * Reading a page beyond its new end is SIGBUS.  Only files that nobody but this user may write are
 * mapped (format/files/file.c), so it is a mistake, not an attack: it ends the process with one
 * line, not as a crash.  For ordinary processes. */
#ifndef TBD_BASE_CUT_FILE_H
#define TBD_BASE_CUT_FILE_H

/* From now on such a fault ends the process with exit status `status`, after the line
 * "NAME: FILE: it was cut short while it was read" and with the terminal as it is now.  `name` is
 * kept.  Other SIGBUSes do what they did. */
void tbd_cut_file_guard(const char *name, int status);

#endif
