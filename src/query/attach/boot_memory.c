// SPDX-License-Identifier: MIT
/* boot_memory.c - see boot_memory.h */
#include "query/attach/boot_memory.h"

#include "base/layout.h"
#include "base/string.h"
#include "format/probe/boot.h"
#include "query/attach/engine_image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BASE       TBD_PLAN_BASE
#define STACK_TOP  (BASE + (64u << 10))
#define BOOT_AT    STACK_TOP
#define WORDS_AT   (BASE + (128u << 10))
#define THREADS_AT (BASE + (4u << 20))
#define VECTORS_AT (BASE + (16u << 20))
#define BYTES      (64ull << 20)
#define MOST_TEXT  (1u << 20) /* of arguments, and of the environment */
#define AUXV_BYTES 1024u

_Static_assert(TBD_TAKEOVER_THREADS * sizeof(struct tbd_takeover_thread) <=
                       VECTORS_AT - THREADS_AT &&
                   TBD_TAKEOVER_THREADS * TBD_TAKEOVER_VECTORS <= BYTES - (VECTORS_AT - BASE),
               "all threads have space");

/* ---- texts of the process ---- */

/* Texts that end with NULs, one after the other; NULL: there are none, or too many. */
struct process_texts {
    char *bytes;
    size_t used, count;
};

static void read_texts(pid_t pid, const char *name, struct process_texts *out)
{
    char path[64];
    ssize_t got;
    int fd;

    *out = (struct process_texts){ .bytes = calloc(1, MOST_TEXT) };
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (out->bytes && fd >= 0 && out->used < MOST_TEXT - 1 &&
           (got = read(fd, out->bytes + out->used, MOST_TEXT - 1 - out->used)) > 0)
        out->used += (size_t)got;
    if (fd >= 0)
        close(fd);
    if (!out->bytes || out->used == MOST_TEXT - 1)
        out->used = 0;
    for (size_t i = 0; i < out->used; i++)
        out->count += !out->bytes[i];
}

/* What tbd itself is told is ours to say; the last text may lack its NUL. */
static bool is_passed(const char *text)
{
    return !tbd_starts_with(text, "TBD_") && !tbd_starts_with(text, "LD_PRELOAD=");
}

/* ---- words ---- */

struct boot_words {
    uint8_t *image;    /* of the memory from WORDS_AT on */
    size_t word, text; /* where the next one goes */
};

static uint64_t put_text(struct boot_words *words, const char *text)
{
    size_t bytes = strlen(text) + 1;
    uint64_t at = WORDS_AT + words->text;

    memcpy(words->image + words->text, text, bytes);
    words->text += bytes;
    return at;
}

static void put_word(struct boot_words *words, uint64_t value)
{
    memcpy(words->image + words->word, &value, sizeof(value));
    words->word += sizeof(value);
}

static void put_all(struct boot_words *words, const struct process_texts *texts,
                    bool (*is_wanted)(const char *))
{
    const char *at = texts->bytes;

    for (size_t i = 0; i < texts->count; i++, at += strlen(at) + 1)
        if (!is_wanted || is_wanted(at))
            put_word(words, put_text(words, at));
}

static void put_auxv(struct boot_words *words, pid_t pid)
{
    uint64_t auxv[AUXV_BYTES / 8] = { 0 };
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, auxv, sizeof(auxv) - 16) < 0)
        memset(auxv, 0, sizeof(auxv));
    if (fd >= 0)
        close(fd);
    memcpy(words->image + words->word, auxv, sizeof(auxv));
}

/* Our own, as an absolute path; where they are not the program's, its traces go where we look for them. */
static void put_folder(struct boot_words *words, const char *name)
{
    const char *given = getenv(name);
    char cwd[PATH_MAX] = "", text[2 * PATH_MAX];

    if (!given || !*given || (*given != '/' && !getcwd(cwd, sizeof(cwd))))
        return;
    if ((size_t)snprintf(text, sizeof(text), "%s=%s%s%s", name, cwd, *cwd ? "/" : "", given) <
        sizeof(text))
        put_word(words, put_text(words, text));
}

/* Words first, texts after all of these. */
static size_t write_words(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                          const char *options, struct boot_words *words)
{
    struct process_texts arguments, environment;
    char given[65536];

    read_texts(remote->pid, "cmdline", &arguments);
    read_texts(remote->pid, "environ", &environment);
    words->text = (arguments.count + environment.count + 8) * sizeof(uint64_t) + AUXV_BYTES;
    memory->argc = arguments.count;
    memory->argv = WORDS_AT + words->word;
    put_all(words, &arguments, NULL);
    put_word(words, 0);
    memory->envp = WORDS_AT + words->word;
    put_all(words, &environment, is_passed);
    snprintf(given, sizeof(given), "TBD_OPTIONS=%s", options);
    put_word(words, put_text(words, given));
    put_folder(words, "TBD_DIR");
    put_word(words, 0);
    put_auxv(words, remote->pid);
    free(arguments.bytes);
    free(environment.bytes);
    return words->text;
}

static bool fill(struct tbd_boot_memory *memory, struct tbd_remote *remote, const char *options)
{
    struct boot_words words = { .image = calloc(1, THREADS_AT - WORDS_AT) };
    const uint8_t trap = 0xcc;
    bool done;

    if (!words.image)
        return false;
    done = tbd_remote_write(remote, WORDS_AT, words.image,
                            write_words(memory, remote, options, &words)) &&
           tbd_remote_write(remote, BASE, &trap, sizeof(trap));
    free(words.image);
    return done;
}

/* ---- all of it ---- */

static void find_library(struct tbd_takeover *takeover)
{
    char path[PATH_MAX];
    char *slash;

    if (!tbd_engine_find_beside("libtbd.so", path, sizeof(path)))
        return;
    slash = strrchr(path, '/');
    slash[1] = '\0';
    if (strlen(path) < sizeof(takeover->lib_dir))
        strcpy(takeover->lib_dir, path);
}

long tbd_boot_memory_make(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                          const char *options)
{
    long at = tbd_remote_map(remote, BASE, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                             MAP_FIXED_NOREPLACE | MAP_NORESERVE);

    *memory = (struct tbd_boot_memory){ 0 };
    if (at != (long)BASE)
        return at < 0 ? at : -EEXIST;
    find_library(&memory->takeover);
    return fill(memory, remote, options) ? 0 : -ENOMEM;
}

void tbd_boot_memory_free(struct tbd_remote *remote)
{
    tbd_remote_unmap(remote, BASE, BYTES);
}

bool tbd_boot_memory_call(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                          uint64_t function, enum tbd_takeover_phase phase)
{
    const uint64_t takeover = BOOT_AT + sizeof(struct tbd_boot);
    const struct tbd_boot boot = { .argc = memory->argc,
                                   .argv = (char **)memory->argv,
                                   .envp = (char **)memory->envp,
                                   .takeover = (struct tbd_takeover *)takeover };
    uint64_t result = 0;
    bool done;

    memory->takeover.phase = phase;
    done = tbd_remote_write(remote, BOOT_AT, &boot, sizeof(boot)) &&
           tbd_remote_write(remote, takeover, &memory->takeover, sizeof(memory->takeover)) &&
           tbd_remote_call(remote, function, BOOT_AT, STACK_TOP, BASE, &result);
    memory->takeover.why[0] = '\0';
    if (done)
        tbd_remote_read(remote, takeover, &memory->takeover, sizeof(memory->takeover));
    memory->takeover.why[sizeof(memory->takeover.why) - 1] = '\0';
    return done && (result & 0xff);
}

bool tbd_boot_memory_put_threads(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                                 const struct tbd_takeover_thread *threads, size_t count)
{
    memory->takeover.thread_count = (uint32_t)count;
    memory->takeover.threads = (struct tbd_takeover_thread *)THREADS_AT;
    return tbd_remote_write(remote, THREADS_AT, threads, count * sizeof(*threads));
}

bool tbd_boot_memory_put_vectors(struct tbd_boot_memory *memory, struct tbd_remote *remote,
                                 size_t index, const void *vectors)
{
    memory->takeover.vectors = (const uint8_t *)VECTORS_AT;
    return tbd_remote_write(remote, VECTORS_AT + index * TBD_TAKEOVER_VECTORS, vectors,
                            TBD_TAKEOVER_VECTORS);
}

bool tbd_boot_memory_get_threads(struct tbd_remote *remote, struct tbd_takeover_thread *threads,
                                 size_t count)
{
    return tbd_remote_read(remote, THREADS_AT, threads, count * sizeof(*threads));
}
