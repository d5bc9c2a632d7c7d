// SPDX-License-Identifier: MIT
/* trace.c - opening a trace, and its tables
 *
 * trace_head.c, trace_index.c and trace_blocks.c read the files that are read as a whole.  Damage
 * is skipped, and reported (damage.h). */
#include "format/trace/trace.h"

#include "base/binary_search.h"
#include "base/open_file.h"
#include "format/files/crash_file.h"
#include "format/files/modules.h"
#include "format/trace/beginning.h"
#include "format/trace/trace_private.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where traces are ---- */

enum tbd_status tbd_trace_root(char *out, size_t bytes)
{
    const char *own = getenv("TBD_DIR");
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    char cwd[PATH_MAX];
    int length;

    if (own && *own) /* absolute, so that messages say which folder it is here */
        length = *own != '/' && getcwd(cwd, sizeof(cwd)) ? snprintf(out, bytes, "%s/%s", cwd, own)
                                                         : snprintf(out, bytes, "%s", own);
    else if (data && *data)
        length = snprintf(out, bytes, "%s/tbd", data);
    else if (home && *home)
        length = snprintf(out, bytes, "%s/.local/share/tbd", home);
    else
        return TBD_NOTRACE;
    return length > 0 && (size_t)length < bytes ? TBD_OK : TBD_NOTRACE;
}

/* ---- open, close ---- */

/* A copy that is not the file it was made from would give wrong names, lines and memory. */
static void refuse_exchanged(struct tbd_trace *trace)
{
    for (size_t m = 0; m < trace->index.module_count; m++) {
        struct tbd_index_module *module = &trace->index.modules[m];
        int fd = tbd_open_below(trace->dir.fd, module->copy, O_RDONLY);

        if (fd < 0)
            continue; /* who wants it says so */
        module->is_exchanged = !tbd_module_is(fd, &module->disk);
        if (module->is_exchanged)
            tbd_damage_note(trace, "%s: it is not the file that was recorded", module->copy);
        close(fd);
    }
    trace->info.damage_count = trace->damage.count;
}

static void find_copies(struct tbd_trace *trace)
{
    for (size_t i = 0; i < trace->mappings.event_count; i++) {
        struct tbd_region *region = &trace->mappings.events[i].region;

        if (!region->inode)
            continue;
        for (size_t m = 0; m < trace->index.module_count; m++)
            if (!trace->index.modules[m].is_exchanged &&
                trace->index.modules[m].disk.inode == region->inode &&
                trace->index.modules[m].disk.device == region->device &&
                strcmp(trace->index.modules[m].path, region->path) == 0)
                region->copy = trace->index.modules[m].copy;
    }
}

static enum tbd_status cannot_open(const char *path, struct tbd_error *why)
{
    return tbd_error_set(why,
                         errno == ENOMEM                       ? TBD_NOMEM
                         : errno == ENOENT || errno == ENOTDIR ? TBD_NOTRACE
                                                               : TBD_IO,
                         path, 0, "%s",
                         errno == ENOTDIR ? "it is no trace's folder, and no packed trace"
                                          : strerror(errno));
}

static enum tbd_status foreign(const char *path, unsigned owner, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_NOTRACE, path, 0,
                         "it is another user's (%u): only -t TRACE opens such a trace", owner);
}

static enum tbd_status beginning(const char *path, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_BUSY, path, 0,
                         "the recording has only begun: it can be asked when its first window has "
                         "ended, or the program");
}

/* A crash dump of a program that could not say anything before its end. */
static bool has_rings_only(const struct tbd_trace *trace)
{
    struct stat info;

    return !tbd_stat_below(trace->dir.fd, "header", &info) &&
           tbd_stat_below(trace->dir.fd, TBD_CRASH_FILE, &info);
}

/* What is known of it without the rings: when they were written, and that there is nothing else. */
static enum tbd_status take_rings_only(struct tbd_trace *trace)
{
    struct tbd_trace_info *info = &trace->info;
    struct stat file;

    trace->argv = calloc(1, sizeof(*trace->argv));
    if (!trace->argv)
        return TBD_NOMEM;
    if (tbd_stat_below(trace->dir.fd, TBD_CRASH_FILE, &file))
        info->realtime_ns =
            (uint64_t)file.st_mtim.tv_sec * 1000000000ull + (uint64_t)file.st_mtim.tv_nsec;
    info->argv = trace->argv;
    info->program = info->cwd = info->end_text = "";
    info->is_dump = info->has_rings_only = info->finished = true;
    info->end = (struct tbd_msg_end){ .how = TBD_ENDED_KILLED, .offset = TBD_END_WHOLE };
    info->max_insns = TBD_BLOCK_MAX_INSNS;
    return TBD_OK;
}

/* A directory that is no trace, or not yet: says so. */
static enum tbd_status check_begun(const struct tbd_trace *trace, struct tbd_error *why)
{
    if (has_rings_only(trace))
        return tbd_error_set(why, TBD_NOTKEPT, trace->path, 0, "%s", TBD_RINGS_ONLY_TEXT);
    switch (tbd_beginning_of(trace->dir.fd)) {
    case TBD_BEGINNING: return beginning(trace->path, why);
    case TBD_BEGUN_ONLY:
        return tbd_error_set(
            why, TBD_NOTRACE, trace->path, 0,
            "nothing was recorded: the organizer died before the first window had ended");
    case TBD_NOT_BEGINNING: break;
    }
    return TBD_OK;
}

/* The trace to which `latest` in the root leads, unless somebody else put the link there. */
static enum tbd_status find_latest(char *out, size_t bytes, struct tbd_error *why)
{
    char root[3072];
    struct stat link;

    if (tbd_trace_root(root, sizeof(root)))
        return tbd_error_set(why, TBD_NOTRACE, "", 0,
                             "none of TBD_DIR, XDG_DATA_HOME, HOME is set");
    snprintf(out, bytes, "%s/latest", root);
    if (lstat(out, &link)) {
        enum tbd_status status = cannot_open(out, why);

        return status == TBD_NOTRACE && tbd_find_beginning(root, out, bytes) ? beginning(out, why)
                                                                             : status;
    }
    return link.st_uid == geteuid() ? TBD_OK : foreign(out, link.st_uid, why);
}

/* Fills in path, directory and owner.  `path` NULL: the latest trace. */
static enum tbd_status open_directory(struct tbd_trace *trace, const char *path,
                                      struct tbd_error *why)
{
    bool is_named = path != NULL;
    char latest[4096];
    enum tbd_status status = is_named ? TBD_OK : find_latest(latest, sizeof(latest), why);
    struct stat info;

    if (status)
        return status;
    path = is_named ? path : latest;
    trace->path = realpath(path, NULL);
    if (!trace->path)
        return cannot_open(path, why);
    trace->info.path = trace->dir.path = trace->path;
    trace->dir.fd = tbd_dir_open(trace->path);
    if (trace->dir.fd < 0 || fstat(trace->dir.fd, &info))
        return cannot_open(trace->path, why);
    trace->info.owner = info.st_uid;
    trace->info.is_foreign = info.st_uid != geteuid();
    return trace->info.is_foreign && !is_named ? foreign(trace->path, info.st_uid, why) : TBD_OK;
}

/* The same directory, even if another one has its path by now. */
static enum tbd_status share_directory(struct tbd_trace *trace, const struct tbd_trace *of,
                                       struct tbd_error *why)
{
    trace->path = strdup(of->path);
    if (!trace->path)
        return TBD_NOMEM;
    trace->info.path = trace->dir.path = trace->path;
    trace->info.owner = of->info.owner;
    trace->info.is_foreign = of->info.is_foreign;
    trace->dir.fd = fcntl(of->dir.fd, F_DUPFD_CLOEXEC, 0);
    return trace->dir.fd < 0 ? cannot_open(of->path, why) : TBD_OK;
}

enum what { SUMMARY, WITH_BLOCKS, RINGS_TOO };

static enum tbd_status read_files(struct tbd_trace *trace, enum what what,
                                  const struct tbd_trace *of, struct tbd_error *why)
{
    enum tbd_status status;

    if (what == RINGS_TOO && has_rings_only(trace))
        return take_rings_only(trace);
    status = of ? TBD_OK : check_begun(trace, why);
    if (!status)
        status = tbd_trace_read_head(trace, why);
    if (!status)
        status = tbd_trace_read_index(trace, of && !of->damage.count ? of : NULL, why);
    if (!status && what != SUMMARY)
        status = tbd_trace_read_blocks(trace, why);
    return status;
}

/* `of`: NULL, or the handle whose directory, and if it is undamaged whose index, is read. */
static enum tbd_status open_trace(const char *path, enum what what, const struct tbd_trace *of,
                                  struct tbd_trace **out, struct tbd_error *why)
{
    struct tbd_trace *trace = calloc(1, sizeof(*trace));
    enum tbd_status status;

    *out = NULL;
    if (!trace)
        return TBD_NOMEM;
    trace->dir.fd = -1;
    pthread_mutex_init(&trace->lock, NULL);
    trace->blocks = tbd_block_table_new();
    status = !trace->blocks ? TBD_NOMEM
             : of           ? share_directory(trace, of, why)
                            : open_directory(trace, path, why);
    if (!status)
        status = read_files(trace, what, of, why);
    if (status == TBD_NOMEM)
        tbd_error_set(why, TBD_NOMEM, trace->path ? trace->path : "", 0,
                      "the tables do not fit into memory");
    if (status) {
        tbd_trace_close(trace);
        return status;
    }
    if (what != SUMMARY)
        refuse_exchanged(trace);
    find_copies(trace);
    *out = trace;
    return TBD_OK;
}

enum tbd_status tbd_trace_open(const char *path, struct tbd_trace **out, struct tbd_error *why)
{
    return open_trace(path, WITH_BLOCKS, NULL, out, why);
}

enum tbd_status tbd_trace_open_again(const struct tbd_trace *of, struct tbd_trace **out,
                                     struct tbd_error *why)
{
    return open_trace(NULL, WITH_BLOCKS, of, out, why);
}

enum tbd_status tbd_trace_open_summary(const char *path, struct tbd_trace **out,
                                       struct tbd_error *why)
{
    return open_trace(path, SUMMARY, NULL, out, why);
}

enum tbd_status tbd_trace_open_rings(const char *path, struct tbd_trace **out,
                                     struct tbd_error *why)
{
    return open_trace(path, RINGS_TOO, NULL, out, why);
}

static void free_parts(struct tbd_trace *trace)
{
    for (size_t i = 0; i < TBD_TRACE_PART_COUNT; i++) {
        if (trace->parts[i].part)
            trace->parts[i].class->release(trace->parts[i].part);
        free(trace->parts[i].part);
    }
}

void tbd_trace_close(struct tbd_trace *trace)
{
    if (!trace)
        return;
    free_parts(trace);
    tbd_open_tocs_free(&trace->open_tocs);
    tbd_mappings_free(&trace->mappings);
    tbd_thread_table_free(&trace->threads);
    tbd_trace_index_free(trace);
    tbd_block_table_release(trace->blocks);
    tbd_file_close(&trace->header);
    tbd_file_close(&trace->header_copy);
    tbd_damage_free(trace);
    if (trace->dir.fd >= 0)
        close(trace->dir.fd);
    pthread_mutex_destroy(&trace->lock);
    free(trace->crash_modules);
    free(trace->argv);
    free(trace->path);
    free(trace);
}

/* ---- the handle, for other folders ---- */

uint64_t tbd_trace_id(const struct tbd_trace *trace)
{
    return trace->id;
}

const char *tbd_trace_path(const struct tbd_trace *trace)
{
    return trace->path;
}

bool tbd_trace_stand_for(struct tbd_trace *trace, const char *path, uint32_t owner)
{
    char *copy = strdup(path);

    if (!copy)
        return false;
    free(trace->path);
    trace->path = copy;
    trace->info.path = trace->dir.path = copy;
    trace->info.owner = owner;
    trace->info.is_foreign = owner != geteuid();
    return true;
}

struct tbd_dir tbd_trace_dir(const struct tbd_trace *trace)
{
    return trace->dir;
}

const struct tbd_file *tbd_trace_header(const struct tbd_trace *trace)
{
    return &trace->header;
}

void tbd_trace_lock(struct tbd_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
}

void tbd_trace_unlock(struct tbd_trace *trace)
{
    pthread_mutex_unlock(&trace->lock);
}

void tbd_trace_adopt(const struct tbd_trace *trace, struct tbd_window *window)
{
    const struct tbd_trace_info *info = &trace->info;

    window->trace = trace;
    window->has_last_block = info->finished && info->blocks;
    window->last_time = info->blocks - 1;
    window->last_offset = info->end.offset;
}

void *tbd_trace_part_locked(struct tbd_trace *trace, const struct tbd_trace_part_class *of)
{
    void **part = &trace->parts[of->kind].part;

    trace->parts[of->kind].class = of;
    if (!*part)
        *part = calloc(1, of->bytes);
    return *part;
}

/* ---- tables ---- */

const struct tbd_trace_info *tbd_trace_info(const struct tbd_trace *trace)
{
    return &trace->info;
}

const char *tbd_trace_module(const struct tbd_trace *trace, uint32_t index)
{
    return index < trace->index.module_count ? trace->index.modules[index].path : NULL;
}

const char *tbd_trace_note(const struct tbd_trace *trace, uint64_t index)
{
    return index < trace->index.note_count ? trace->index.notes[index] : NULL;
}

uint32_t tbd_trace_block_count(const struct tbd_trace *trace)
{
    return tbd_block_table_count(trace->blocks);
}

const struct tbd_block *tbd_trace_block(const struct tbd_trace *trace, uint32_t id)
{
    return tbd_block_table_get(trace->blocks, id);
}

struct tbd_block_table *tbd_trace_blocks(const struct tbd_trace *trace)
{
    return trace->blocks;
}

uint32_t tbd_trace_window_count(const struct tbd_trace *trace)
{
    return (uint32_t)trace->index.window_count;
}

const struct tbd_window_summary *tbd_trace_window(const struct tbd_trace *trace, uint32_t window)
{
    return window < trace->index.window_count ? &trace->index.windows[window].summary : NULL;
}

uint32_t tbd_trace_window_with(const struct tbd_trace *trace, uint32_t number)
{
    size_t upto = TBD_COUNT_BEFORE(i, trace->index.window_count,
                                   trace->index.windows[i].summary.number <= number);
    const struct tbd_window_summary *s = upto ? &trace->index.windows[upto - 1].summary : NULL;

    return s && number - s->number < s->span ? (uint32_t)(upto - 1) : UINT32_MAX;
}

static bool ends_by(const struct tbd_window_summary *window, uint64_t time)
{
    return window->first_time <= time && time - window->first_time >= window->blocks;
}

uint32_t tbd_trace_window_of(const struct tbd_trace *trace, uint64_t time)
{
    /* windows without blocks begin where the next one does */
    size_t i = TBD_COUNT_BEFORE(k, trace->index.window_count,
                                ends_by(&trace->index.windows[k].summary, time));

    if (trace->info.has_rings_only)
        return 0;
    return i < trace->index.window_count && trace->index.windows[i].summary.first_time <= time
               ? (uint32_t)i
               : UINT32_MAX;
}
