// SPDX-License-Identifier: MIT
/* cmd_path.c - path: what a program died of, and what its threads ran last (mode=crash)
 *
 * A crash dump is no trace, so the run's session is not open.  A row stands for blocks that follow each other
 * at one source line, or, without one, in one place.  Files may have changed since: names are those of the
 * files as they are now. */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/commands/rows.h"

#include "base/string.h"
#include "base/open_file.h"
#include "format/files/crash_file.h"
#include "format/files/file.h"
#include "format/files/trace_dir.h"
#include "query/debuginfo/dwarf_file.h"
#include "query/debuginfo/elf_file.h"
#include "query/debuginfo/register_names.h"
#include "query/session/signal_info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_OF_A_THREAD 40u

/* Where a block begins. */
struct place {
    uint64_t address;
    uint64_t offset; /* in the function */
    const char *module;
    const char *function;        /* NULL: not known */
    struct tbd_source_line line; /* line 0: not known */
};

struct path {
    struct tbd_crash_dump dump;
    struct place *places;        /* of blocks, once asked for: address not 0 */
    struct tbd_elf_file **files; /* of modules; NULL: not open */
    bool *tried;
    bool each_block; /* has a row of its own */
    bool with_regs;
};

/* ---- the dump ---- */

/* The folder in the trace root whose dump is the newest; "" if there is none. */
static enum tbd_status find_newest(char *out, size_t bytes)
{
    char root[4096];
    enum tbd_status status = tbd_trace_root(root, sizeof(root));
    int fd = status == TBD_OK ? tbd_dir_open(root) : -1;
    DIR *entries = fd < 0 ? NULL : tbd_dir_list(fd, ".");
    struct timespec newest = { 0 };
    struct dirent *entry;
    struct stat info;
    char name[320];

    *out = '\0';
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        snprintf(name, sizeof(name), "%s/" TBD_CRASH_FILE, entry->d_name);
        if (entry->d_name[0] == '.' || !tbd_stat_below(fd, name, &info) ||
            info.st_uid != geteuid() || info.st_mtim.tv_sec < newest.tv_sec ||
            (info.st_mtim.tv_sec == newest.tv_sec && info.st_mtim.tv_nsec < newest.tv_nsec))
            continue;
        newest = info.st_mtim;
        snprintf(out, bytes, "%s/%s", root, entry->d_name);
    }
    if (entries != NULL)
        closedir(entries);
    if (fd >= 0)
        close(fd);
    return status;
}

static enum tbd_status open_path(struct tbd_command_run *run, struct path *path)
{
    struct tbd_error *why = &run->session->why;
    char newest[4500], buffer[4096];
    enum tbd_status status = TBD_OK;

    *path = (struct path){ .files = NULL };
    if (run->trace == NULL) {
        status = find_newest(newest, sizeof(newest));
        if (status == TBD_OK && !*newest)
            status = tbd_error_set(why, TBD_NOTRACE, "", 0, "the trace root has no crash dump");
    } else {
        snprintf(newest, sizeof(newest), "%s",
                 tbd_session_find(run->trace, buffer, sizeof(buffer)));
    }
    if (status == TBD_OK)
        status = tbd_crash_open(newest, &path->dump, why);
    if (status != TBD_OK)
        return status;
    path->files = calloc(path->dump.head->module_count + 1u, sizeof(struct tbd_elf_file *));
    path->tried = calloc(path->dump.head->module_count + 1u, sizeof(bool));
    path->places = calloc(path->dump.head->block_count + 1u, sizeof(struct place));
    return path->files == NULL || path->tried == NULL || path->places == NULL ? TBD_NOMEM : TBD_OK;
}

static void close_path(struct path *path)
{
    for (uint32_t i = 0; path->files != NULL && i < path->dump.head->module_count; i++)
        tbd_elf_close(path->files[i]);
    free(path->files);
    free(path->tried);
    free(path->places);
    tbd_crash_close(&path->dump);
}

/* ---- places ---- */

static struct tbd_elf_file *file_of(struct path *path, uint32_t module)
{
    if (!path->tried[module] &&
        tbd_elf_open(path->dump.modules[module].path, &path->files[module]) != TBD_OK)
        path->files[module] = NULL;
    path->tried[module] = true;
    return path->files[module];
}

static struct place find_place(struct path *path, const struct tbd_crash_block *block)
{
    struct place place = { .address = block->start };
    const struct tbd_crash_module *module;
    const struct tbd_elf_symbol *symbol;
    struct tbd_elf_file *file;
    struct tbd_dwarf *dwarf;
    uint64_t bias;

    if (block->module == TBD_NO_MODULE)
        return place;
    module = &path->dump.modules[block->module];
    place.module = tbd_base_name(module->path);
    file = file_of(path, block->module);
    if (file == NULL || !tbd_elf_bias(file, module->start, module->file_offset, &bias))
        return place;
    symbol = tbd_elf_symbol_at(file, block->start - bias);
    if (symbol != NULL) {
        place.function = tbd_elf_symbol_name(file, symbol);
        place.offset = block->start - bias - symbol->start;
    }
    dwarf = tbd_dwarf_of(file);
    if (dwarf == NULL || !tbd_dwarf_line_at(dwarf, block->start - bias, &place.line))
        place.line.line = 0;
    return place;
}

static const struct place *place_of(struct path *path, uint32_t block)
{
    struct place *place = &path->places[block];

    if (place->address == 0)
        *place = find_place(path, &path->dump.blocks[block]);
    return place;
}

static bool same_text(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* Do the two belong into one row? */
static bool is_same(const struct place *one, const struct place *other)
{
    if (one->line.line == 0 || other->line.line == 0)
        return one->address == other->address;
    return one->line.line == other->line.line && same_text(one->line.file, other->line.file) &&
           same_text(one->function, other->function);
}

/* ---- the end ---- */

/* The file that was mapped there last: a later module lies over an earlier one. */
static uint32_t module_at(const struct tbd_crash_dump *dump, uint64_t address)
{
    for (uint32_t i = dump->head->module_count; i-- > 0;)
        if (address >= dump->modules[i].start && address < dump->modules[i].end)
            return *dump->modules[i].path ? i : TBD_NO_MODULE;
    return TBD_NO_MODULE;
}

static void put_instruction(struct path *path, json_t *object)
{
    uint64_t pc = path->dump.head->regs.rip;
    struct tbd_crash_block block = { .start = pc, .module = module_at(&path->dump, pc) };
    struct place place = find_place(path, &block);

    json_object_set_new(object, "pc", tbd_output_hex(pc));
    if (place.module != NULL)
        json_object_set_new(object, "module", tbd_output_text(place.module));
    if (place.function != NULL) {
        json_object_set_new(object, "function", tbd_output_text(place.function));
        json_object_set_new(object, "function_offset", json_integer((json_int_t)place.offset));
    }
    if (place.line.line != 0)
        tbd_output_source(&place.line, object);
}

static json_t *regs_object(const struct tbd_regs *regs)
{
    json_t *object = json_object();

    for (uint32_t i = 0; i <= TBD_REGISTER_GS_BASE; i++)
        json_object_set_new(object, tbd_register_text(i),
                            tbd_output_hex(tbd_register_value(regs, i)));
    return object;
}

/* How the program ended.  What is known of a signal is what the thread had when it came. */
static json_t *end_object(struct path *path)
{
    const struct tbd_crash_head *head = path->dump.head;
    struct tbd_event event = { .number = head->signo, .flags = TBD_EVENT_FATAL };
    json_t *object = json_object();
    siginfo_t info;

    json_object_set_new(object, "type", json_string("end"));
    json_object_set_new(object, "pid", json_integer(head->pid));
    if (head->tid != 0)
        json_object_set_new(object, "thread", json_integer(head->tid));
    if (head->signo == 0)
        return object;
    memcpy(&info, head->siginfo, sizeof(info));
    if ((uint32_t)info.si_signo == head->signo) /* else the kernel said nothing */
        tbd_signal_take_info(&event, head->siginfo);
    tbd_output_signal(&event, object);
    put_instruction(path, object);
    if (path->with_regs)
        json_object_set_new(object, "regs", regs_object(&head->regs));
    return object;
}

static void print_end_text(const struct path *path, const json_t *object, FILE *out)
{
    const struct tbd_crash_head *head = path->dump.head;

    if (head->signo == 0 && head->tid != 0) {
        fprintf(out, "thread %u  ended the program\n", head->tid);
        return;
    }
    if (head->signo == 0) {
        fprintf(out, "process %u  no signal of its own: it was killed, or goes on\n", head->pid);
        return;
    }
    fprintf(out, "thread %u  ", head->tid);
    tbd_output_print_signal(object, out);
    for (uint32_t i = 0; path->with_regs && i <= TBD_REGISTER_GS_BASE; i++)
        fprintf(out, "%-7s 0x%016" PRIx64 "%s", tbd_register_text(i),
                tbd_register_value(&head->regs, i), i % 2 == 1 ? "\n" : "   ");
}

/* CSV has rows only. */
static void print_end(const struct tbd_command_run *run, struct path *path)
{
    json_t *object = run->session->csv ? NULL : end_object(path);

    if (object != NULL && run->session->json) {
        tbd_output_line(object, run->out);
        return;
    }
    if (object != NULL)
        print_end_text(path, object, run->out);
    json_decref(object);
}

/* ---- rows ---- */

static json_t *row_object(const struct tbd_crash_thread *thread, uint64_t back, uint64_t times,
                          const struct place *place)
{
    json_t *object = json_object();
    char text[64], function[512];

    snprintf(text, sizeof(text), "-%" PRIu64, back);
    json_object_set_new(object, "back", json_string(text));
    json_object_set_new(object, "thread", json_integer(thread->tid));
    json_object_set_new(object, "blocks", json_integer((json_int_t)times));
    json_object_set_new(object, "pc", tbd_output_hex(place->address));
    if (place->function != NULL) {
        snprintf(function, sizeof(function), "%s!%s", place->module, place->function);
        json_object_set_new(object, "function", tbd_output_text(function));
    } else if (place->module != NULL) {
        json_object_set_new(object, "function", tbd_output_text(place->module));
    }
    if (place->line.line != 0) {
        snprintf(function, sizeof(function), "%s:%u", tbd_base_name(place->line.file),
                 place->line.line);
        json_object_set_new(object, "source", tbd_output_text(function));
    }
    return object;
}

struct row {
    uint64_t first, end; /* of the thread's entries */
};

static uint64_t first_of_row(struct path *path, const uint32_t *entries, uint64_t last)
{
    const struct place *place = place_of(path, entries[last]);

    while (last > 0 && !path->each_block && is_same(place_of(path, entries[last - 1]), place))
        last--;
    return last;
}

/* The last rows of a thread, found from its end; returns how many. */
static size_t find_rows(struct path *path, const uint32_t *entries, uint64_t count,
                        struct row *rows, size_t max)
{
    size_t found = 0;
    uint64_t end = count;

    while (end > 0 && found < max) {
        uint64_t first = first_of_row(path, entries, end - 1);

        rows[found++] = (struct row){ first, end };
        end = first;
    }
    return found;
}

static void add_thread(struct path *path, struct tbd_rows *rows, struct row *found, size_t max,
                       const struct tbd_crash_thread *thread, const uint32_t *entries)
{
    size_t count = find_rows(path, entries, thread->count, found, max);

    while (count-- > 0) {
        const struct row *row = &found[count];

        tbd_rows_add(rows, row_object(thread, thread->count - row->first, row->end - row->first,
                                      place_of(path, entries[row->first])));
    }
}

static void add_threads(struct path *path, struct tbd_rows *rows, struct row *found, size_t max,
                        bool dying)
{
    const struct tbd_crash_head *head = path->dump.head;
    const uint32_t *entries = path->dump.entries;

    for (uint32_t i = 0; i < head->thread_count; i++) {
        const struct tbd_crash_thread *thread = &path->dump.threads[i];

        if ((head->tid != 0 && thread->tid == head->tid) == dying)
            add_thread(path, rows, found, max, thread, entries);
        entries += thread->count;
    }
}

static enum tbd_exit print(struct tbd_command_run *run, struct path *path, size_t max)
{
    static const char *const columns[] = { "back",     "thread", "blocks", "pc",
                                           "function", "source", NULL };
    struct row *found = calloc(max, sizeof(*found));
    struct tbd_rows rows;

    if (found == NULL)
        return tbd_command_no_memory();
    print_end(run, path);
    tbd_rows_start(&rows, run, columns);
    add_threads(path, &rows, found, max, false);
    add_threads(path, &rows, found, max, true);
    free(found);
    return tbd_rows_end(&rows);
}

/* Takes `word` from the end of the arguments. */
static bool take_last(const struct tbd_command_run *run, unsigned *count, const char *word)
{
    if (*count == 0 || strcmp(run->argv[*count - 1], word) != 0)
        return false;
    --*count;
    return true;
}

/* The thread that died comes last. */
enum tbd_exit tbd_command_path(struct tbd_command_run *run)
{
    unsigned long max = ROWS_OF_A_THREAD;
    struct path path;
    enum tbd_status status;
    enum tbd_exit result;
    char none[1] = "", *end = none;
    unsigned numbers = run->argc;
    bool with_regs = take_last(run, &numbers, "regs");
    bool each_block = take_last(run, &numbers, "blocks");

    if (numbers == 1)
        max = strtoul(run->argv[0], &end, 10);
    if (numbers > 1 || *end || max == 0 || max > 1u << 24)
        return tbd_command_usage(run,
                                 "path takes the number of rows of a thread, `blocks`, and `regs`");
    status = open_path(run, &path);
    path.each_block = each_block;
    path.with_regs = with_regs;
    result = status == TBD_OK ? print(run, &path, max) : tbd_command_fail(run, status);
    close_path(&path);
    return result;
}
