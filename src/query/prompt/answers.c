// SPDX-License-Identifier: MIT
/* answers.c - see answers.h
 *
 * Invariants
 * ANSWERS-1  An answer is printed line by line while it is made, as it would be without the cache;
 *     a copy is kept. (not checked: test_cache.py compares answers with and without it)
 * ANSWERS-2  Only a whole answer is kept: none whose reader went away, none that ended early. (not
 *     checked: test_cache.py compares answers with and without it)
 * ANSWERS-3  An answer that needed no window is not kept: it is quickly found again. (not checked:
 *     it is about what is not done) */
#include "query/prompt/answers.h"
#include "query/commands/functions.h"
#include "query/text/shortage.h"

#include "query/text/user_interrupt.h"
#include "format/files/trace_dir.h"
#include "format/merging/answer.h"
#include "format/trace/trace_handle.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOWS_MIN   8u         /* windows searched; after fewer the answer is not kept */
#define DECIDED_BYTES (1u << 20) /* what is longer must have needed them before this was printed */

/* ---- what an answer depends on ---- */

static bool is_about_all(const struct tbd_command *command)
{
    static const char *const names[] = { "all",     "stores", "calls",   "lines", "syscalls",
                                         "signals", "count",  "history", "log" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(command->name, names[i]) == 0)
            return true;
    }
    return false;
}

/* A C expression denotes something else at another position. */
static bool is_about_position(const struct tbd_command_run *run, const struct tbd_command *command)
{
    if (strcmp(command->name, "history") == 0)
        return true;
    for (unsigned i = 0; i < run->argc; i++) {
        if (strcmp(run->argv[i], "of") == 0)
            return true;
    }
    return strstr(run->text, " of ") != NULL;
}

static void put_stamp(FILE *out, int dir, const char *name)
{
    struct stat info;

    if (fstatat(dir, name, &info, 0) == 0)
        fprintf(out, "%s %" PRIu64 " %" PRIu64 ".%ld %" PRIu64 "\n", name, (uint64_t)info.st_ino,
                (uint64_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0);
}

/* Separate debug files by build id: a folder changes when one comes or goes. */
static void put_debug_folders(FILE *out)
{
    DIR *dir = opendir("/usr/lib/debug/.build-id");
    struct dirent *entry;
    uint64_t sum = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat info;

        if (fstatat(dirfd(dir), entry->d_name, &info, 0) == 0)
            sum += ((uint64_t)info.st_mtim.tv_sec * 1000000007u + (uint64_t)info.st_mtim.tv_nsec) ^
                   (uint64_t)info.st_ino << 20; /* in any order */
    }
    if (dir != NULL)
        closedir(dir);
    fprintf(out, "debug files %" PRIx64 "\n", sum);
}

/* Separate debug files by debug link: beside the file, in its .debug, below /usr/lib/debug. */
static void put_link_folders(FILE *out, const char *module)
{
    const char *slash = strrchr(module, '/');
    char path[4096];
    int length = slash == NULL ? 0 : (int)(slash - module);

    if (length == 0 || length > 4000)
        return;
    snprintf(path, sizeof(path), "%.*s", length, module);
    put_stamp(out, AT_FDCWD, path);
    snprintf(path, sizeof(path), "%.*s/.debug", length, module);
    put_stamp(out, AT_FDCWD, path);
    snprintf(path, sizeof(path), "/usr/lib/debug%.*s", length, module);
    put_stamp(out, AT_FDCWD, path);
}

static void put_position(FILE *out, const struct tbd_session *session)
{
    char line[256];

    if (session->has_at)
        fprintf(out, "at %" PRIu64 "+%" PRIu32 "\n", session->at.time, session->at.offset);
    if (session->unwritten.has_position || session->unwritten.has_frame)
        fprintf(out, "own %" PRIu64 "+%" PRIu32 " frame %zu\n", session->unwritten.position.time,
                session->unwritten.position.offset, session->unwritten.frame);
    for (int i = 0; i < 2; i++) { /* what goto and frame remember */
        FILE *file = tbd_dir_text(tbd_trace_dir(session->trace).fd, i == 0 ? "position" : "frame");

        if (file != NULL && fgets(line, sizeof(line), file) != NULL)
            fprintf(out, "%d %s", i, line);
        if (file != NULL)
            fclose(file);
    }
}

/* The caller frees the result; NULL without memory. */
static char *describe(const struct tbd_command_run *run, const struct tbd_command *command)
{
    const struct tbd_session *session = run->session;
    const struct tbd_window_summary *first = tbd_trace_window(session->trace, 0);
    const char *module;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    fprintf(out, "%s\njson %d csv %d syntax %d thread %" PRIu32 "\n", run->text, session->json,
            session->csv, (int)session->syntax, session->thread);
    if (session->span.has_since)
        fprintf(out, "since %" PRIu64 "\n", session->span.since);
    if (session->span.has_until)
        fprintf(out, "until %" PRIu64 "\n", session->span.until);
    if (session->shows_wall)
        fprintf(out, "wall %s\n", getenv("TZ") == NULL ? "" : getenv("TZ"));
    fprintf(out, "from %" PRIu64 " to %" PRIu64 "\n", first == NULL ? 0 : first->first_time,
            session->info->blocks);
    if (is_about_position(run, command))
        put_position(out, session);
    put_stamp(out, AT_FDCWD, "/proc/self/exe");
    put_debug_folders(out);
    for (uint32_t i = 0; (module = tbd_trace_module(session->trace, i)) != NULL; i++)
        put_link_folders(out, module);
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* There was no note beside the answer, and it took some work to find it. */
static bool is_worth_keeping(const struct tbd_session *session)
{
    const struct tbd_session_stats *stats = &session->stats;

    return !tbd_shortage_seen() && tbd_left_out_is_empty(&session->left_out) &&
           stats->bad.divisions == 0 && stats->bad.unmapped == 0 && stats->bad.optimized == 0 &&
           stats->shadowed[0] == '\0' && !stats->told &&
           tbd_symbols_note(session->symbols, 0) == NULL &&
           (stats->scanned >= WINDOWS_MIN || stats->raised + stats->cached != 0);
}

/* ---- a stream that also keeps what goes through it ---- */

struct copying {
    const struct tbd_session *session; /* borrowed */
    FILE *out;
    struct tbd_buffer kept;
    bool is_dropped;
};

/* To copy a long answer takes time, too: it goes on only if the search has been worth it by now. */
static bool may_be_kept(const struct copying *copying, size_t bytes)
{
    return bytes <= DECIDED_BYTES ||
           (bytes <= TBD_ANSWER_MAX && is_worth_keeping(copying->session));
}

static ssize_t copy_on(void *context, const char *bytes, size_t count)
{
    struct copying *copying = context;

    if (fwrite(bytes, 1, count, copying->out) != count)
        return 0;
    if (copying->is_dropped)
        return (ssize_t)count;
    copying->is_dropped = !may_be_kept(copying, copying->kept.used + count);
    if (copying->is_dropped)
        tbd_buffer_free(&copying->kept);
    else
        tbd_buffer_put(&copying->kept, bytes, count);
    return (ssize_t)count;
}

static void keep(const struct tbd_session *session, const struct tbd_answer *answer)
{
    struct tbd_buffer file = { 0 };
    char name[64];

    tbd_answer_name(answer->question, name, sizeof(name));
    tbd_answer_put(session->trace, answer, &file);
    if (!file.failed)
        tbd_window_cache_keep(session->cache, name, &file);
    tbd_buffer_free(&file);
}

/* Keeps ANSWERS-1 and ANSWERS-2. */
static enum tbd_exit run_and_keep(struct tbd_command_run *run, const struct tbd_command *command,
                                  const char *question)
{
    struct copying copying = { .session = run->session, .out = run->out };
    FILE *stream = fopencookie(&copying, "w", (cookie_io_functions_t){ .write = copy_on });
    enum tbd_exit result;
    bool good;

    if (stream == NULL)
        return command->run(run);
    setvbuf(stream, NULL, _IOLBF, 0);
    run->out = stream;
    result = command->run(run);
    good = fflush(stream) == 0 && ferror(stream) == 0;
    fclose(stream);
    run->out = copying.out;
    if (good && result <= TBD_EXIT_NOT_FOUND && !tbd_is_interrupted() && !copying.is_dropped &&
        !copying.kept.failed && is_worth_keeping(run->session))
        keep(run->session, &(struct tbd_answer){ .question = question,
                                                 .text = (const char *)copying.kept.bytes,
                                                 .bytes = copying.kept.used,
                                                 .result = (uint32_t)result });
    tbd_buffer_free(&copying.kept);
    return result;
}

/* A kept answer is without the notes beside it. */
static void tell_again(struct tbd_command_run *run, const struct tbd_command *command)
{
    if (command->run == tbd_command_calls && run->argc != 0)
        (void)tbd_functions_tell_inlined(run->session, run->argv[0]);
}

enum tbd_exit tbd_answers_run(struct tbd_command_run *run, const struct tbd_command *command)
{
    const struct tbd_session *session = run->session;
    struct tbd_answer answer = { 0 };
    enum tbd_exit result;
    char *question;

    /* --explain asks about the search, not only for what it finds */
    if (session->cache == NULL || session->shard.count != 0 || run->explain ||
        !session->info->finished || session->info->damage_count != 0 || !is_about_all(command))
        return command->run(run);
    question = describe(run, command);
    answer.question = question;
    if (question == NULL) {
        result = command->run(run);
    } else if (tbd_window_cache_answer(session->cache, session->trace, &answer)) {
        fwrite(answer.text, 1, answer.bytes, run->out);
        result = (enum tbd_exit)answer.result;
        free((void *)(uintptr_t)answer.text);
        tell_again(run, command);
    } else {
        result = run_and_keep(run, command, question);
    }
    free(question);
    return result;
}
