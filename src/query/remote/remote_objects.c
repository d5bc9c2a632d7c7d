// SPDX-License-Identifier: MIT
/* remote_objects.c - see remote_objects.h */
#include "query/remote/remote_objects.h"

#include "query/exports/auxiliary_vector.h"
#include "query/remote/remote_libraries.h"

#include "query/remote/remote_registers.h"

#include "base/layout.h"
#include "base/string.h"
#include "base/open_file.h"
#include "format/trace/trace_handle.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- threads ---- */

void tbd_remote_threads(struct tbd_remote_motion *motion,
                        void (*each)(void *context, const struct tbd_thread_info *thread),
                        void *context)
{
    struct tbd_trace *trace = motion->session->trace;

    for (uint32_t i = 0; i < tbd_trace_thread_count(trace); i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(trace, i);

        if (tbd_thread_lives_at(thread, motion->at.time))
            each(context, thread);
    }
}

/* What a list of threads is printed to. */
struct thread_list {
    FILE *out;
    uint32_t pid;
};

bool tbd_remote_lives(const struct tbd_remote_motion *motion, uint32_t tid)
{
    const struct tbd_thread_info *thread =
        tbd_trace_thread_of(motion->session->trace, tid, motion->at.time);

    return thread != NULL && tbd_thread_lives_at(thread, motion->at.time);
}

static void print_thread(void *context, const struct tbd_thread_info *thread)
{
    struct thread_list *list = context;

    fprintf(list->out, "<thread id=\"");
    if (list->pid != 0)
        fprintf(list->out, "p%" PRIx32 ".", list->pid);
    fprintf(list->out, "%" PRIx32 "\"/>", thread->tid);
}

/* ---- objects ---- */

static void print_threads(struct tbd_remote_motion *motion, FILE *out)
{
    struct thread_list list = { .out = out,
                                .pid = motion->names_process ? motion->session->info->pid : 0 };

    fprintf(out, "<?xml version=\"1.0\"?><threads>");
    tbd_remote_threads(motion, print_thread, &list);
    fprintf(out, "</threads>");
}

static void print_program(struct tbd_remote_motion *motion, FILE *out)
{
    fprintf(out, "%s", motion->session->info->program);
}

static void print_siginfo(struct tbd_remote_motion *motion, FILE *out)
{
    const uint8_t *siginfo = motion->session->info->end_siginfo;
    uint8_t handled[TBD_SIGINFO_BYTES];

    if (tbd_motion_siginfo(motion, handled))
        (void)!fwrite(handled, 1, TBD_SIGINFO_BYTES, out);
    else if (siginfo != NULL &&
             tbd_position_compare(motion->at, tbd_session_last(motion->session)) == 0)
        (void)!fwrite(siginfo, 1, TBD_SIGINFO_BYTES, out);
}

static void print_auxv(struct tbd_remote_motion *motion, FILE *out)
{
    tbd_auxiliary_vector_write(motion->session, out);
}

/* Any place may be mapped at some position, and clients read this once. */
static void print_memory_map(struct tbd_remote_motion *motion, FILE *out)
{
    (void)motion;
    fprintf(out,
            "<?xml version=\"1.0\"?><memory-map><memory type=\"ram\" start=\"0x0\" "
            "length=\"%#llx\"/></memory-map>",
            TBD_USER_END);
}

static const struct {
    const char *name;
    void (*print)(struct tbd_remote_motion *motion, FILE *out);
} objects[] = {
    { "threads", print_threads },       { "exec-file", print_program },
    { "siginfo", print_siginfo },       { "auxv", print_auxv },
    { "memory-map", print_memory_map }, { "libraries-svr4", tbd_remote_print_libraries },
};

char *tbd_remote_object(struct tbd_remote_motion *motion, const char *name, const char *annex,
                        size_t *out_bytes)
{
    char *text = NULL;
    FILE *out;

    if (strcmp(name, "features") == 0) {
        text =
            strcmp(annex, "target.xml") == 0 ? tbd_remote_description(motion->session->info) : NULL;
        *out_bytes = text == NULL ? 0 : strlen(text);
        return text;
    }
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        if (strcmp(objects[i].name, name) != 0)
            continue;
        out = open_memstream(&text, out_bytes);
        if (out == NULL)
            return NULL;
        objects[i].print(motion, out);
        if (fclose(out) == 0)
            return text;
        free(text);
        return NULL;
    }
    return NULL;
}

/* ---- files ---- */

static const struct tbd_region *regions_here(struct tbd_remote_motion *motion, size_t *out_count)
{
    struct tbd_session *session = motion->session;
    const struct tbd_region *regions = NULL;

    *out_count = 0;
    if (tbd_trace_regions_at(session->trace, motion->at.time, &regions, out_count, &session->why) !=
        TBD_OK)
        return NULL;
    return regions;
}

const struct tbd_region *tbd_remote_region(struct tbd_remote_motion *motion, uint64_t address,
                                           uint64_t *out_start, uint64_t *out_end)
{
    size_t count;
    const struct tbd_region *regions = regions_here(motion, &count);

    *out_start = 0;
    *out_end = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (address < regions[i].start) {
            *out_end = regions[i].start;
            return NULL;
        }
        *out_start = regions[i].end;
        if (address < regions[i].end) {
            *out_start = regions[i].start;
            *out_end = regions[i].end;
            return &regions[i];
        }
    }
    return NULL;
}

/* As in proc(5). */
static void print_maps(struct tbd_remote_motion *motion, FILE *out)
{
    size_t count;
    const struct tbd_region *regions = regions_here(motion, &count);

    for (size_t i = 0; i < count; i++) {
        const struct tbd_region *region = &regions[i];

        fprintf(out, "%08" PRIx64 "-%08" PRIx64 " %c%c%c%c %08" PRIx64 " 00:00 %" PRIu64 " %s\n",
                region->start, region->end, region->prot & PROT_READ ? 'r' : '-',
                region->prot & PROT_WRITE ? 'w' : '-', region->prot & PROT_EXEC ? 'x' : '-',
                region->map_flags & MAP_SHARED ? 's' : 'p', region->file_offset, region->inode,
                region->path);
    }
}

static int open_maps(struct tbd_remote_motion *motion)
{
    int fd = memfd_create("maps", MFD_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");

    if (out == NULL) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    print_maps(motion, out);
    fclose(out);
    return fd;
}

/* How well a mapped file's path fits a name that the program used, which may lead there by links: folders
 * that are links, and libz.so.1 for libz.so.1.2.13.  0: it does not. */
static unsigned fits(const char *path, const char *name)
{
    const char *file = tbd_base_name(path), *wanted = tbd_base_name(name);
    size_t bytes = strlen(wanted);

    if (strcmp(path, name) == 0)
        return 3;
    if (bytes == 0 || strncmp(file, wanted, bytes) != 0)
        return 0;
    return file[bytes] == '\0' ? 2 : file[bytes] == '.' && strstr(wanted, ".so") != NULL ? 1 : 0;
}

/* The region of the file that fits best; NULL: there is none. */
static const struct tbd_region *find_file(const struct tbd_region *regions, size_t count,
                                          const char *name)
{
    const struct tbd_region *best = NULL;
    unsigned best_fit = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned fit = regions[i].copy == NULL ? 0 : fits(regions[i].path, name);

        if (fit > best_fit) {
            best = &regions[i];
            best_fit = fit;
        }
    }
    return best;
}

/* The same among all files that were mapped while the program ran. */
static bool find_mapped(struct tbd_trace *trace, const char *name, struct tbd_region *out)
{
    size_t changes = tbd_trace_mapping_changes(trace, tbd_trace_window_count(trace));
    struct tbd_region region;
    bool found = false;

    for (size_t i = 0; i < changes && !found; i++) {
        found = tbd_trace_mapping_change(trace, i, &region) && find_file(&region, 1, name) != NULL;
        if (found)
            *out = region;
    }
    return found;
}

int tbd_remote_open(struct tbd_remote_motion *motion, const char *path)
{
    struct tbd_session *session = motion->session;
    const struct tbd_region *regions, *found;
    struct tbd_region later;
    char process[40];
    size_t count = 0, length = strlen(path);

    /* /proc/PID/maps, /proc/PID/task/TID/maps */
    snprintf(process, sizeof(process), "/proc/%" PRIu32 "/", session->info->pid);
    if (strncmp(path, process, strlen(process)) == 0 && length > strlen("/maps") &&
        strcmp(path + length - strlen("/maps"), "/maps") == 0)
        return open_maps(motion);
    regions = regions_here(motion, &count);
    found = find_file(regions, count, path);
    if (found == NULL &&
        tbd_trace_regions(session->trace, 0, &regions, &count, &session->why) == TBD_OK)
        found = find_file(regions, count, path); /* it was mapped at the beginning */
    if (found == NULL && find_mapped(session->trace, path, &later))
        found = &later;
    if (found != NULL)
        return tbd_open_below(tbd_trace_dir(session->trace).fd, found->copy, O_RDONLY);
    errno = ENOENT;
    return -1;
}
