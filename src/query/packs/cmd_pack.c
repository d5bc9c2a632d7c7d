// SPDX-License-Identifier: MIT
/* cmd_pack.c - pack, unpack: a trace in one file that has all that questions need, and back
 *
 *   pack [--sources] FILE     the trace that is asked, without what was only kept to be quicker
 *   unpack FILE [FOLDER]      into a folder, or the trace root
 *
 * The file is an archive of tar in a zstd frame (format/packed/archive.h).  It is made under another name, and gets its
 * own when it is complete. */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/packs/pack_extras.h"
#include "query/session/packed_trace.h"

#include "base/open_file.h"
#include "base/safe_stream.h"
#include "base/string.h"
#include "format/files/trace_dir.h"
#include "format/files/trace_remove.h"
#include "format/packed/archive.h"
#include "format/trace/trace_handle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX  8u
#define NAME_BYTES 4400u

struct packing {
    struct tbd_archive *archive; /* owned */
    int dir;                     /* of the trace */
    const char *top;             /* the folder in the archive */
    uint64_t files, bytes, left_out;
    enum tbd_status status;
    char unread[NAME_BYTES]; /* a file of the trace that cannot be read; "" */
};

/* ---- pack ---- */

static bool add_file(void *context, const char *name, int fd)
{
    struct packing *packing = context;
    char whole[NAME_BYTES];
    struct stat info;

    snprintf(whole, sizeof(whole), "%s/%s", packing->top, name);
    packing->status = tbd_archive_add(packing->archive, whole, fd);
    if (packing->status == TBD_USAGE) { /* its name is too long for an archive */
        packing->left_out++;
        packing->status = TBD_OK;
        return true;
    }
    packing->files++;
    packing->bytes += fstat(fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    return packing->status == TBD_OK;
}

/* What questions have kept, and files in the making. */
static bool is_left_out(const char *folder, const char *name)
{
    return name[0] == '.' || (strcmp(folder, ".") == 0 && strcmp(name, "cache") == 0);
}

static bool add_folder(struct packing *packing, const char *folder, unsigned depth);

static bool add_entry(struct packing *packing, const char *folder, const char *name, unsigned depth)
{
    char path[NAME_BYTES];
    struct stat info;
    bool is_good;
    int fd;

    if (strcmp(folder, ".") == 0)
        snprintf(path, sizeof(path), "%s", name);
    else
        snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!tbd_stat_below(packing->dir, path, &info))
        return true;
    if (S_ISDIR(info.st_mode))
        return depth == DEPTH_MAX || add_folder(packing, path, depth + 1);
    if (!S_ISREG(info.st_mode))
        return true;
    fd = tbd_open_below(packing->dir, path, O_RDONLY);
    if (fd < 0) {
        packing->status = tbd_dir_failure();
        strcpy(packing->unread, path);
        return false;
    }
    is_good = add_file(packing, path, fd);
    close(fd);
    return is_good;
}

static bool add_folder(struct packing *packing, const char *folder, unsigned depth)
{
    DIR *entries = tbd_dir_list(packing->dir, folder);
    bool is_good = true;
    struct dirent *entry;

    while (entries != NULL && is_good && (entry = readdir(entries)) != NULL)
        is_good =
            is_left_out(folder, entry->d_name) || add_entry(packing, folder, entry->d_name, depth);
    if (entries != NULL)
        closedir(entries);
    return is_good;
}

static bool has_folder(const struct packing *packing, const char *name)
{
    struct stat info;

    return tbd_stat_below(packing->dir, name, &info);
}

static enum tbd_status fill(struct packing *packing, struct tbd_session *session, bool with_sources,
                            int fd)
{
    struct tbd_pack_sink sink = { .each = add_file, .context = packing };

    packing->status = tbd_archive_new(fd, &packing->archive);
    if (packing->status != TBD_OK)
        return packing->status;
    if (!add_folder(packing, ".", 0) ||
        (!has_folder(packing, "debug") && !tbd_pack_debug_files(session, &sink)) ||
        (with_sources && !has_folder(packing, "sources") && !tbd_pack_sources(session, &sink)))
        return packing->status == TBD_OK ? TBD_NOMEM : packing->status;
    return tbd_archive_finish(packing->archive);
}

static enum tbd_exit say_failure(const char *path, const char *why)
{
    fprintf(stderr, "tbdq: %s: %s\n", tbd_shown(path), why);
    return TBD_EXIT_SYSTEM;
}

/* The folder that will hold the file, and the file's name in it. */
static int open_parent(const char *path, const char **out_name)
{
    char folder[4096];
    const char *name = tbd_base_name(path);

    *out_name = name;
    if (name == path)
        return tbd_dir_open(".");
    snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
    return tbd_dir_open(folder);
}

static void say_packed(const struct tbd_command_run *run, const struct packing *packing,
                       const char *path)
{
    if (run->session->json) {
        json_t *object = json_object();

        json_object_set_new(object, "file", tbd_output_text(path));
        json_object_set_new(object, "files", json_integer((json_int_t)packing->files));
        json_object_set_new(object, "bytes", json_integer((json_int_t)packing->bytes));
        tbd_output_line(object, run->out);
    } else {
        fprintf(run->out, "%s  %" PRIu64 " files, %" PRIu64 " bytes\n", tbd_shown(path),
                packing->files, packing->bytes);
    }
    if (packing->left_out != 0)
        fprintf(stderr, "tbdq: note: %" PRIu64 " files with long names are not in it\n",
                packing->left_out);
}

/* Makes the file `name` in the folder `parent`.  NULL, or why not. */
static const char *make_file(struct packing *packing, struct tbd_session *session, int parent,
                             const char *name, bool with_sources)
{
    struct tbd_new_file file;
    struct stat info;
    enum tbd_status status;

    if (tbd_stat_below(parent, name, &info) && !S_ISREG(info.st_mode))
        return "what is there is no regular file";
    if (tbd_new_file(parent, name, &file) != TBD_OK)
        return strerror(errno);
    status = fill(packing, session, with_sources, file.fd);
    if (status == TBD_OK)
        status = tbd_new_file_finish(&file);
    else
        tbd_new_file_drop(&file);
    if (status != TBD_OK)
        return packing->unread[0] != '\0' ? "a file of the trace cannot be read"
                                          : tbd_status_text(status);
    close(file.fd);
    return NULL;
}

static enum tbd_exit pack(struct tbd_command_run *run, const char *path, bool with_sources)
{
    struct packing packing = { .dir = tbd_dir_open(run->session->info->path) };
    const char *name, *why = packing.dir < 0 ? strerror(errno) : NULL;
    char top[256];
    int parent = open_parent(path, &name);

    snprintf(top, sizeof(top), "%s", tbd_base_name(run->session->info->path));
    packing.top = strcmp(top, "latest") == 0 ? "trace" : top;
    if (why == NULL)
        why = parent < 0 ? strerror(errno)
                         : make_file(&packing, run->session, parent, name, with_sources);
    tbd_archive_free(packing.archive);
    if (packing.dir >= 0)
        close(packing.dir);
    if (parent >= 0)
        close(parent);
    if (why == NULL) {
        say_packed(run, &packing, path);
        return TBD_EXIT_FOUND;
    }
    return say_failure(packing.unread[0] != '\0' ? packing.unread : path, why);
}

enum tbd_exit tbd_command_pack(struct tbd_command_run *run)
{
    bool with_sources = run->argc == 2 && strcmp(run->argv[0], "--sources") == 0;

    if (run->argc != 1u + with_sources || run->argv[run->argc - 1][0] == '-')
        return tbd_command_usage(run, "pack takes a file to be made: pack [--sources] FILE");
    if (!run->session->info->finished && kill((pid_t)run->session->info->pid, 0) == 0)
        return tbd_command_usage(run, "the trace is being recorded");
    return pack(run, run->argv[run->argc - 1], with_sources);
}

/* ---- unpack ---- */

/* "gzip-1" of "/tmp/gzip-1.tbd". */
static bool default_folder(const char *path, char *out, size_t bytes)
{
    const char *name = tbd_base_name(path);
    size_t used;

    if (tbd_trace_root(out, bytes) != TBD_OK)
        return false;
    used = strlen(out);
    snprintf(out + used, bytes - used, "/%.*s", (int)strcspn(name, "."), name);
    return name[0] != '.';
}

static enum tbd_exit unpack(struct tbd_command_run *run, int fd, const char *path,
                            const char *folder)
{
    const char *name, *why = NULL;
    int parent = open_parent(folder, &name), dir = -1;
    enum tbd_status status = parent < 0 ? TBD_IO : TBD_OK;
    struct stat info;

    if (status == TBD_OK && tbd_stat_below(parent, name, &info)) {
        close(parent);
        return say_failure(folder, "it exists");
    }
    if (status == TBD_OK)
        status = tbd_dir_make_folder(parent, name);
    if (status == TBD_OK)
        dir = tbd_open_folder_below(parent, name);
    if (dir < 0 && status == TBD_OK)
        status = TBD_IO;
    if (status == TBD_OK)
        status = tbd_archive_unpack(fd, dir, tbd_packed_most(fd), &why);
    if (dir >= 0)
        close(dir);
    if (status != TBD_OK && dir >= 0 && tbd_trace_remove(parent, name) != TBD_OK)
        fprintf(stderr, "tbdq: note: %s could not be removed\n", tbd_shown(folder));
    if (parent >= 0)
        close(parent);
    if (status != TBD_OK)
        return why == NULL ? say_failure(folder, tbd_status_text(status)) : say_failure(path, why);
    fprintf(run->out, "%s\n", tbd_shown(folder));
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_unpack(struct tbd_command_run *run)
{
    enum tbd_exit result;
    char folder[4200];
    int fd;

    if (run->argc < 1 || run->argc > 2 || run->argv[0][0] == '-')
        return tbd_command_usage(run,
                                 "unpack takes a packed trace, and perhaps a folder to be made");
    if (run->argc == 2)
        snprintf(folder, sizeof(folder), "%s", run->argv[1]);
    else if (!default_folder(run->argv[0], folder, sizeof(folder)))
        return tbd_command_usage(run, "unpack takes a folder to be made");
    fd = tbd_open_named(run->argv[0]);
    if (fd < 0)
        return say_failure(run->argv[0], strerror(errno));
    result = tbd_archive_is(fd) ? unpack(run, fd, run->argv[0], folder)
                                : say_failure(run->argv[0], "it is no packed trace");
    close(fd);
    return result;
}
