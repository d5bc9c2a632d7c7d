// SPDX-License-Identifier: MIT
/* system_facts.c - see system_facts.h
 *
 * Everything comes from /proc.  The process may write what it likes into some of it (its command line, names of
 * its files): whoever prints it escapes it. */
#include "format/writer/system_facts.h"

#include "format/files/trace_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fact {
    char name[12];
    const char *files[3]; /* "%u" is the process */
    bool has_nuls;        /* they stand between lines */
    bool is_files;        /* its open files */
    bool is_processes;    /* all that /proc shows */
};

static const struct fact facts[] = {
    { .name = "command", .files = { "/proc/%u/cmdline" }, .has_nuls = true },
    { .name = "environment", .files = { "/proc/%u/environ" }, .has_nuls = true },
    { .name = "limits", .files = { "/proc/%u/limits" } },
    { .name = "memory", .files = { "/proc/%u/status", "/proc/meminfo" } },
    { .name = "maps", .files = { "/proc/%u/maps" } },
    { .name = "files", .is_files = true },
    { .name = "load", .files = { "/proc/loadavg", "/proc/uptime" } },
    { .name = "mounts", .files = { "/proc/%u/mounts" } },
    { .name = "processes", .is_processes = true },
};
#define FACTS (sizeof(facts) / sizeof(facts[0]))

struct fact_text {
    char bytes[TBD_FACT_MAX_BYTES];
    size_t used;
    bool is_cut;
};

static void add_bytes(struct fact_text *text, const char *bytes, size_t count)
{
    size_t left = sizeof(text->bytes) - text->used;

    text->is_cut |= count > left;
    count = count < left ? count : left;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
}

static void add_file(struct fact_text *text, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char bytes[4096];
    ssize_t count;

    while (fd >= 0 && !text->is_cut && (count = read(fd, bytes, sizeof(bytes))) > 0)
        add_bytes(text, bytes, (size_t)count);
    if (fd >= 0)
        close(fd);
}

/* "pos:\t0\nflags:\t02\n..." */
static void read_fdinfo(uint32_t pid, unsigned fd, unsigned long long *offset, unsigned *flags)
{
    char path[64], line[128];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%u/fdinfo/%u", pid, fd);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "pos: %llu", offset) != 1)
            (void)!sscanf(line, "flags: %o", flags);
    }
    if (file != NULL)
        fclose(file);
}

static void add_open_file(struct fact_text *text, uint32_t pid, unsigned fd)
{
    char path[64], target[4096], line[4300];
    unsigned long long offset = 0;
    unsigned flags = 0;
    ssize_t length;
    int count;

    snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
    length = readlink(path, target, sizeof(target) - 1);
    target[length < 0 ? 0 : length] = '\0';
    for (char *at = target; *at != '\0'; at++)
        *at = *at == '\n' ? ' ' : *at;
    read_fdinfo(pid, fd, &offset, &flags);
    count =
        snprintf(line, sizeof(line), "%u  offset %llu  flags 0%o  %s\n", fd, offset, flags, target);
    add_bytes(text, line, (size_t)count);
}

static void add_open_files(struct fact_text *text, uint32_t pid)
{
    char path[64];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%u/fd", pid);
    folder = opendir(path);
    while (folder != NULL && !text->is_cut && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.')
            add_open_file(text, pid, (unsigned)strtoul(entry->d_name, NULL, 10));
    }
    if (folder != NULL)
        closedir(folder);
}

/* "12 (any) name) S 1 ...": what follows the last parenthesis are numbers, the first of them field 3. */
static void add_process(struct fact_text *text, const char *number)
{
    char path[300], line[1024], shown[1200];
    unsigned long long user = 0, system = 0;
    char *name, *end, state = '?';
    long parent = 0, pages = 0;
    struct stat status;
    FILE *file;
    size_t count;

    snprintf(path, sizeof(path), "/proc/%s/stat", number);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    count = fstat(fileno(file), &status) == 0 ? fread(line, 1, sizeof(line) - 1, file) : 0;
    fclose(file);
    line[count] = '\0';
    name = memchr(line, '(', count);
    end = strrchr(line, ')');
    if (name == NULL || end == NULL || end < name ||
        sscanf(
            end + 1,
            " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %ld",
            &state, &parent, &user, &system, &pages) != 5)
        return; /* it has ended meanwhile */
    for (char *at = name; at < end; at++)
        *at = *at == '\n' ? ' ' : *at;
    count = (size_t)snprintf(
        shown, sizeof(shown), "%s  parent %ld  user %u  %c  cpu %.2f s  memory %llu kB  %.*s\n",
        number, parent, status.st_uid, state,
        (double)(user + system) / (double)sysconf(_SC_CLK_TCK),
        (unsigned long long)pages * (unsigned long long)sysconf(_SC_PAGESIZE) / 1024,
        (int)(end - name - 1), name + 1);
    add_bytes(text, shown, count < sizeof(shown) ? count : sizeof(shown) - 1);
}

static void add_processes(struct fact_text *text)
{
    struct dirent *entry;
    DIR *folder = opendir("/proc");

    while (folder != NULL && !text->is_cut && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            add_process(text, entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
}

/* In a pid namespace without a /proc of its own, a number there is that of another process. */
static bool is_proc_ours(void)
{
    char own[24];
    ssize_t length = readlink("/proc/self", own, sizeof(own) - 1);

    own[length < 0 ? 0 : length] = '\0';
    return strtol(own, NULL, 10) == getpid();
}

/* `pid` 0: nothing of /proc/PID. */
static void fill(struct fact_text *text, const struct fact *fact, uint32_t pid)
{
    char path[64];

    text->used = 0;
    text->is_cut = false;
    for (unsigned i = 0; i < 3 && fact->files[i] != NULL; i++) {
        const char *number = strstr(fact->files[i], "%u");

        if (number != NULL && pid == 0)
            continue;
        if (number != NULL)
            snprintf(path, sizeof(path), "%.*s%u%s", (int)(number - fact->files[i]), fact->files[i],
                     pid, number + 2);
        else
            snprintf(path, sizeof(path), "%s", fact->files[i]);
        add_file(text, path);
    }
    if (fact->is_files && pid != 0)
        add_open_files(text, pid);
    if (fact->is_processes)
        add_processes(text);
    for (size_t i = 0; fact->has_nuls && i < text->used; i++)
        text->bytes[i] = text->bytes[i] == '\0' ? '\n' : text->bytes[i];
}

static bool is_wanted(const char *wanted, const char *name)
{
    size_t bytes = strlen(name);

    if (wanted == NULL || strcmp(wanted, "all") == 0)
        return true;
    for (const char *at = wanted; *at != '\0'; at += strcspn(at, "+"), at += *at == '+') {
        if (strcspn(at, "+") == bytes && strncmp(at, name, bytes) == 0)
            return true;
    }
    return false;
}

const char *tbd_facts_unknown(const char *wanted, size_t *out_length)
{
    if (strcmp(wanted, "all") == 0 || strcmp(wanted, "none") == 0)
        return NULL;
    for (const char *at = wanted; *at != '\0'; at += *at == '+') {
        size_t length = strcspn(at, "+");
        bool is_known = length == 0;

        for (unsigned i = 0; i < FACTS && !is_known; i++)
            is_known = strlen(facts[i].name) == length && strncmp(at, facts[i].name, length) == 0;
        *out_length = length;
        if (!is_known)
            return at;
        at += length;
    }
    return NULL;
}

enum tbd_status tbd_facts_write(int dir, uint32_t pid, const char *wanted)
{
    struct fact_text *text = malloc(sizeof(*text));
    enum tbd_status status = TBD_NOMEM;
    char *all = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&all, &bytes);
    uint32_t shown = is_proc_ours() ? pid : 0;

    for (unsigned i = 0; text != NULL && out != NULL && i < FACTS; i++) {
        if (!is_wanted(wanted, facts[i].name))
            continue;
        fill(text, &facts[i], shown);
        fprintf(out, "%s %zu%s\n", facts[i].name, text->used, text->is_cut ? " cut" : "");
        fwrite(text->bytes, 1, text->used, out);
        fputc('\n', out);
    }
    if (out != NULL && fclose(out) == 0 && text != NULL)
        status = bytes ? tbd_dir_write(dir, TBD_FACTS_FILE, all, bytes) : TBD_OK;
    free(text);
    free(all);
    return status;
}
