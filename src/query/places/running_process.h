// SPDX-License-Identifier: MIT
/* running_process.h - the modules of a running process, and places in their code
 *
 * Files are those that the process has mapped (/proc/PID/map_files, or the path below its root); names, lines
 * and frames come from query/debuginfo.  One thread. */
#ifndef TBD_QUERY_RUNNING_PROCESS_H
#define TBD_QUERY_RUNNING_PROCESS_H

#include "query/debuginfo/elf_file.h"
#include "format/probe/probe.h"
#include "query/places/where.h"
#include "query/text/query_error.h"

#include <sys/types.h>

#define TBD_PROCESS_PATH_BYTES 4096u

struct tbd_process_module {
    char *path;                /* owned; as in /proc/PID/maps */
    struct tbd_elf_file *file; /* owned; NULL: not opened yet, or it cannot be */
    uint64_t start, end;       /* of its executable mapping */
    uint64_t offset;
    uint64_t bias;
    bool is_tried;
    bool is_other; /* the reading before, or after this one, does not have it */
};

struct tbd_probe_process {
    pid_t pid;
    struct tbd_process_module *modules; /* owned; by address */
    size_t module_count;
    char program[TBD_PROCESS_PATH_BYTES]; /* its file, and the name of its command line */
    char called[TBD_PROCESS_PATH_BYTES];
    char comm[32]; /* the name of its first thread, now */
};

bool tbd_process_read(struct tbd_probe_process *process, pid_t pid, struct tbd_query_error *error);
/* Its modules now; *before has those of the last reading, without the files, which stay open. */
bool tbd_process_read_again(struct tbd_probe_process *process, struct tbd_probe_process *before,
                            struct tbd_query_error *error);
/* Is the address executable in it now?  Also code that is of no file. */
bool tbd_process_has_code(const struct tbd_probe_process *process, uint64_t address);
void tbd_process_free(struct tbd_probe_process *process);
/* NULL if it cannot be read. */
struct tbd_elf_file *tbd_process_file(struct tbd_probe_process *process,
                                      struct tbd_process_module *module);

/* "libc" is libc.so.6; "*" is any; else the name, or the path. */
bool tbd_process_is_called(const struct tbd_probe_process *process,
                           const struct tbd_process_module *module, const char *name);

struct tbd_probe_places {
    struct tbd_probe_place *all; /* owned */
    size_t count, capacity;
    uint32_t code; /* of those that are added */
};

/* Adds the places of one `where`, as addresses of the process. */
bool tbd_process_find(struct tbd_probe_process *process, const struct tbd_where *where,
                      struct tbd_probe_places *out, struct tbd_query_error *error);

/* The same in modules that the last reading has found (tbd_process_read_again()). */
bool tbd_process_find_new(struct tbd_probe_process *process, const struct tbd_where *where,
                          struct tbd_probe_places *out, struct tbd_query_error *error);
/* Where the code of its inlined copies begins, of a function without * in its name; none found is no error. */
bool tbd_process_find_inlined(struct tbd_probe_process *process, const struct tbd_where *where,
                              bool only_new, struct tbd_probe_places *out);
/* False: no memory. */
bool tbd_process_add_place(struct tbd_probe_places *out, uint64_t address);

/* NULL: none has the address in its code. */
struct tbd_process_module *tbd_process_module_at(struct tbd_probe_process *process,
                                                 uint64_t address);
/* "libc.so.6!malloc+0x10", or the address alone. */
void tbd_process_name(struct tbd_probe_process *process, uint64_t address, char *out, size_t bytes);

#endif
