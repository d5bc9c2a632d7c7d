// SPDX-License-Identifier: MIT
/* code_files.h - the files whose code the program has mapped, for those who walk its stacks
 *
 * Only the keeper looks, when a session places probes.  Handlers of all threads ask, without a lock.
 * Contexts: keeper to look; SIG to ask. */
#ifndef TBD_HOOKS_CODE_FILES_H
#define TBD_HOOKS_CODE_FILES_H

#include "format/stream/messages.h"

#include <stdbool.h>
#include <stdint.h>

struct tbd_code_file {
    uint64_t start, end;  /* executable addresses */
    uint64_t file_offset; /* of `start` */
    uint64_t module;      /* tbd_calling_module() of its path */
    uint64_t table;       /* .eh_frame_hdr, in memory; 0: it has none */
};

/* False: no memory.  Once. */
bool tbd_code_files_begin(void);

/* A look: all mappings in the order of their addresses, `memory` is the program's /proc/self/mem. */
void tbd_code_files_look(void);
void tbd_code_files_note(const struct tbd_msg_region *map, const char *path, int memory);
void tbd_code_files_publish(void);

/* False: the address was in no file when the keeper looked last, or it is just noting that the files have changed.
 * *out_look: another number after each change. */
bool tbd_code_file_of(uint64_t address, struct tbd_code_file *out, uint32_t *out_look);

#endif
