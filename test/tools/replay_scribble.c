// SPDX-License-Identifier: MIT
/* replay_scribble TRACE SEED SECONDS: replays while somebody writes all over the shared memory
 *
 * What code in a trace can do at worst to tbdq: a thread maps the files that driver and replay
 * process share (it finds them among this process's descriptors) and writes to them, at random
 * moments: random words anywhere in what is used of them, every word of the plan's head in turn,
 * and values that hurt into the fields that somebody might rely on.  Meanwhile windows are replayed
 * in all ways and walked through, and whatever comes of that is fine: an error, or a wrong answer,
 * but not a wrong memory access (the driver may be built with sanitizers), and not a replay without
 * end.  Then the scribbling stops, and every window must verify.
 *
 * Prints what it did and exits 0; 1: something was not as it should be. */
#include "base/escape.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "replay/plan.h"
#include "replay/replay.h"
#include "replay/slices.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct tbd_trace *trace;
static struct tbd_replayer *replayer;

/* ---- random numbers, one sequence for each thread ---- */

static _Thread_local uint64_t seed;

static uint64_t any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint64_t below(uint64_t limit)
{
    return any() % limit;
}

/* Values that offsets, counts and addresses must not have, or just can have. */
static uint64_t hurtful(uint64_t now)
{
    switch (below(10)) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return now + 1;
    case 3: return now - 1;
    case 4: return below(64);
    case 5: return 1ull << below(64);
    case 6: return now ^ 1ull << below(64);
    case 7: return TBD_PLAN_MAX_BYTES - below(8192);
    case 8: return 0ull - below(1 << 20);
    default: return any();
    }
}

/* ---- the shared files ---- */

struct shared {
    uint8_t *at;
    size_t bytes;
};

/* Maps the file of one of our descriptors, if it has this name. */
static bool map_fd(const char *fd, const char *name, struct shared *out)
{
    char path[64], target[128];
    struct stat stat;
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/self/fd/%.20s", fd);
    length = readlink(path, target, sizeof(target) - 1);
    if (length <= 0)
        return false;
    target[length] = 0;
    if (!strstr(target, name))
        return false;
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    *out = (struct shared){ MAP_FAILED, 0 };
    if (!fstat(file, &stat) && stat.st_size >= (off_t)sizeof(struct tbd_plan_head) &&
        stat.st_nlink == 0) {
        out->bytes = (size_t)stat.st_size;
        out->at =
            mmap(NULL, out->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    }
    close(file);
    return out->at != MAP_FAILED;
}

static bool find(const char *name, struct shared *out)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    bool found = false;

    while (folder && !found && (entry = readdir(folder)))
        found = map_fd(entry->d_name, name, out);
    if (folder)
        closedir(folder);
    return found;
}

/* ---- what is written ---- */

static void put(const struct shared *shared, uint64_t offset, uint64_t value, size_t bytes)
{
    if (offset <= shared->bytes - bytes)
        memcpy(shared->at + offset, &value, bytes);
}

static uint64_t get(const struct shared *shared, uint64_t offset)
{
    uint64_t value = 0;

    if (offset <= shared->bytes - sizeof(value))
        memcpy(&value, shared->at + offset, sizeof(value));
    return value;
}

static void hurt(const struct shared *shared, uint64_t offset, size_t bytes)
{
    put(shared, offset, hurtful(get(shared, offset)), bytes);
}

/* There and back: what is read twice is not the same. */
static void flicker(const struct shared *shared, uint64_t offset, size_t bytes)
{
    uint64_t good = get(shared, offset), bad = hurtful(good);

    for (unsigned i = 0; i < 3000; i++)
        put(shared, offset, i & 1 ? good : bad, bytes);
}

static void every_word(const struct shared *shared, uint64_t from, uint64_t to)
{
    for (; from < to; from += 8)
        hurt(shared, from, 8);
}

#define PLAN(field)   offsetof(struct tbd_plan_head, field)
#define REPORT(field) (PLAN(report) + offsetof(struct tbd_plan_report, field))

static void scribble_plan(const struct shared *shared)
{
    static const struct {
        uint64_t offset;
        size_t bytes;
    } aims[] = {
        { PLAN(turn), 4 },
        { REPORT(outcome), 4 },
        { REPORT(time), 8 },
        { REPORT(instruction), 4 },
        { REPORT(area_count), 8 },
        { REPORT(code_changed), 4 },
        { REPORT(what), 8 },
        { REPORT(what) + 248, 8 },
        { PLAN(page.address), 8 },
        { PLAN(page.order), 8 },
        { PLAN(stops.offset), 8 },
        { PLAN(pages.offset), 8 },
        { PLAN(pages.count), 8 },
        { PLAN(avoid.offset), 8 },
        { PLAN(avoid.count), 8 },
        { PLAN(keep.count), 8 },
        { PLAN(log.offset), 8 },
        { PLAN(regs.xsave_bytes), 4 },
        { PLAN(regions.count), 8 },
        { PLAN(prefer.count), 8 },
        { PLAN(forced_specials.offset), 8 },
        { PLAN(area), 4 },
        { PLAN(threads.offset), 8 },
        { PLAN(xsave), 8 },
    };
    size_t aim = below(sizeof(aims) / sizeof(aims[0]));
    uint64_t stop = get(shared, PLAN(stops.offset)) + below(8) * sizeof(struct tbd_plan_stop);

    switch (below(9)) {
    case 0:
    case 1: hurt(shared, aims[aim].offset, aims[aim].bytes); break;
    case 2: flicker(shared, aims[aim].offset, aims[aim].bytes); break;
    case 3: every_word(shared, 0, sizeof(struct tbd_plan_head)); break;
    case 4: every_word(shared, PLAN(page), sizeof(struct tbd_plan_head)); break;
    case 5: hurt(shared, sizeof(struct tbd_plan_head) + below(1 << 16), 8); break;
    case 6: hurt(shared, TBD_PLAN_BULK + below(1 << 20), 8); break;
    case 7: hurt(shared, stop + below(sizeof(struct tbd_plan_stop) / 4) * 4, 4); break;
    case 8: /* it is done, it says, or wants a page */
        put(shared, REPORT(outcome), below(6), 4);
        put(shared, PLAN(turn), 1 + 2 * below(2), 4);
        break;
    }
}

#define STREAM(field) offsetof(struct tbd_stream_head, field)

/* Writes over a chunk, a definition, or the memory that they refer to. */
static void scribble_parts(const struct shared *shared, const struct tbd_stream_head *head)
{
    uint64_t chunk = STREAM(chunks) + below(head->chunk_count ? head->chunk_count : 1) * 32;
    uint64_t slot = head->chunks_offset + below(4) * TBD_CHUNK_STRIDE;
    uint64_t last = head->def_count ? head->def_count - 1 : 0;
    uint64_t def = head->defs_offset + (last + below(8)) * sizeof(struct tbd_block_def);
    uint64_t area = head->areas_offset + below(3) * (head->area_bytes + 4096);
    uint32_t entry = (uint32_t)(below(2) ? TBD_ENTRY_MESSAGE | below(20) : below(1 << 12));

    switch (below(9)) {
    case 0: hurt(shared, chunk + below(8) * 4, 4); break;
    case 1: flicker(shared, chunk + below(8) * 4, 4); break;
    case 2: hurt(shared, def + below(12) * 4, 4); break;
    case 3: flicker(shared, def + below(12) * 4, 4); break;
    case 4: hurt(shared, head->heap_offset + head->heap_used + below(4096), 8); break;
    case 5: put(shared, slot + TBD_ENTRIES_BYTES - 4 - 4 * below(2000), entry, 4); break;
    case 6: put(shared, slot + 4 * below(4000), entry, 4); break;
    case 7: hurt(shared, slot + TBD_ENTRIES_BYTES + 4096 + below(1 << 16), 4); break;
    case 8:
        for (unsigned i = 0; i < 100; i++)
            hurt(shared, area + below(1 << 18), 8);
        break;
    }
}

static void scribble_stream(const struct shared *shared)
{
    static const uint64_t aims[] = {
        STREAM(published),     STREAM(def_count),    STREAM(heap_used),   STREAM(released),
        STREAM(chunk_count),   STREAM(defs_offset),  STREAM(heap_offset), STREAM(chunks_offset),
        STREAM(heap_capacity), STREAM(areas_offset), STREAM(area_bytes),  STREAM(area_count)
    };
    struct tbd_stream_head head;

    memcpy(&head, shared->at, sizeof(head));
    switch (below(12)) {
    case 0: hurt(shared, aims[below(sizeof(aims) / sizeof(aims[0]))], 4); break;
    case 1: every_word(shared, below(2) ? 0 : STREAM(published), sizeof(head)); break;
    case 2: put(shared, STREAM(published), head.published + 1, 4); break;
    case 3: put(shared, STREAM(def_count), head.def_count + below(3), 4); break;
    default: scribble_parts(shared, &head); break;
    }
}

/* Only what events say, in the operand areas: replays go on, and their windows are walked through
 * while their values change. */
static void scribble_values(const struct shared *shared)
{
    struct tbd_stream_head head;
    uint64_t area;

    memcpy(&head, shared->at, sizeof(head));
    area = head.areas_offset + below(3) * (head.area_bytes + 4096);
    for (unsigned i = 0; i < 200; i++)
        hurt(shared, area + below(below(2) ? 1 << 12 : 1 << 20), 8);
}

/* ---- the one who scribbles ---- */

static int has_ended;
static uint64_t first_seed, blows;

enum mood { WILD, RARE, VALUES, MOODS };

static void scribble(enum mood mood)
{
    bool is_plan = mood != VALUES && below(2);
    struct shared shared;

    if (!find(is_plan ? "tbd-plan" : "tbd-replay-stream", &shared))
        return;
    for (uint64_t i = mood == WILD ? below(30) : 1; i; i--, blows++)
        (mood == VALUES ? scribble_values : is_plan ? scribble_plan : scribble_stream)(&shared);
    munmap(shared.at, shared.bytes);
}

static void *scribbler(void *unused)
{
    seed = first_seed * 2654435761u + 7;
    while (!__atomic_load_n(&has_ended, __ATOMIC_ACQUIRE)) {
        enum mood mood = (enum mood)below(MOODS);

        for (uint64_t left = below(100); left; left--) {
            struct timespec pause = { .tv_nsec = (long)below(mood == RARE ? 8000000 : 200000) };

            nanosleep(&pause, NULL);
            scribble(mood);
        }
    }
    return unused;
}

/* ---- replays ---- */

static uint64_t sum;

/* Looks at everything that a window says. */
static void walk(struct tbd_window *window)
{
    struct tbd_cursor cursor;

    tbd_cursor_first(window, &cursor);
    for (bool more = true; more && cursor.kind != TBD_AT_END; more = tbd_cursor_next(&cursor)) {
        if (cursor.kind == TBD_AT_MESSAGE) {
            const uint8_t *bytes = (const uint8_t *)cursor.message;
            uint32_t count = tbd_message_payload_bytes(cursor.message);

            for (uint32_t i = 0; i < count; i += 7)
                sum += bytes[sizeof(struct tbd_message) + i];
        } else if (cursor.kind == TBD_AT_OP && cursor.op->kind == TBD_OP_STORE) {
            sum +=
                tbd_cursor_address(&cursor) + cursor.record[cursor.op->data + cursor.op->size - 1];
        }
    }
    for (size_t i = 0; i < window->dirty_count; i++)
        sum += window->dirty[i].bytes[below(4096)];
    if (tbd_cursor_seek(window, window->first_time + below(window->blocks + 1), &cursor))
        sum += cursor.time;
}

static enum tbd_status some_registers(const struct tbd_window_summary *summary, uint32_t index,
                                      struct tbd_error *why)
{
    static struct tbd_reg_state states[6];
    static uint8_t stacks[6][4096];
    struct tbd_divergence divergence;
    uint64_t step = summary->blocks / 6;

    memset(states, 0, sizeof(states));
    for (unsigned i = 0; i < 6; i++) {
        states[i].position.time = summary->first_time + i * step + (step ? below(step) : 0);
        states[i].stack = stacks[i];
        states[i].stack_capacity = sizeof(stacks[i]);
    }
    return tbd_replay_regs(replayer, 0, index, NULL, states, 6, &divergence, why);
}

static enum tbd_status some_notes(uint32_t index, struct tbd_window **out, struct tbd_error *why)
{
    struct tbd_note_site site = { .registers = 0x1ffff };
    struct tbd_divergence divergence;
    struct tbd_window *toc;
    enum tbd_status status = tbd_window_load(trace, index, false, &toc, why);

    if (status != TBD_OK)
        return status;
    if (toc->block_summary_count) {
        size_t at = below(toc->block_summary_count);
        const struct tbd_block *block =
            tbd_block_table_get(toc->blocks_by_id, toc->block_summaries[at].id);

        site.pc = block ? block->def.start : 0;
    }
    status = tbd_replay_notes(replayer, 0, toc, &site, 1, out, &divergence, why);
    tbd_window_free(toc);
    return status;
}

static enum tbd_status replay_some(uint32_t index, struct tbd_error *why)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);
    struct tbd_window *window = NULL;
    struct tbd_divergence divergence;
    enum tbd_status status = TBD_OK;

    switch (below(6)) {
    case 0:
    case 1: status = some_registers(summary, index, why); break;
    case 2:
        status =
            tbd_replay_full(replayer, 0, index, TBD_HOOKS_FULL | (below(2) ? TBD_HOOK_LOADS : 0),
                            &window, &divergence, why);
        break;
    case 3:
        status = tbd_replay_events(replayer, 0, index, TBD_HOOKS_FULL, &window, &divergence, why);
        break;
    case 4: status = some_notes(index, &window, why); break;
    case 5:
        status = tbd_replay_verify(replayer, 0, index, below(2) ? TBD_VERIFY_ALL : TBD_VERIFY_QUICK,
                                   &divergence, why);
        break;
    }
    if (window) /* more than once: it may change */
        walk(window);
    if (window)
        walk(window);
    tbd_window_free(window);
    return status;
}

/* It goes to terminals. */
static bool is_clean(const char *text)
{
    return tbd_escape_is_plain(TBD_ESCAPE_FIELD, text, strlen(text));
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* On a busy machine it goes on until some replays have failed and some have not. */
static int run(uint64_t seconds)
{
    uint64_t end = now_ms() + seconds * 1000, last = now_ms() + seconds * 20000;
    uint64_t longest = 0, replays = 0, refused = 0;
    uint32_t count = tbd_trace_window_count(trace);
    struct rusage usage;
    pthread_t thread;

    pthread_create(&thread, NULL, scribbler, NULL);
    while (now_ms() < end || ((refused == 0 || refused == replays) && now_ms() < last)) {
        uint64_t begun = now_ms();
        struct tbd_error why = { 0 };

        refused += replay_some((uint32_t)below(count), &why) != TBD_OK;
        replays++;
        if (now_ms() - begun > longest)
            longest = now_ms() - begun;
        if (!is_clean(why.detail) || !is_clean(why.file)) {
            printf("a message with control characters\n");
            return 1;
        }
    }
    __atomic_store_n(&has_ended, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    getrusage(RUSAGE_SELF, &usage);
    printf("%lu blows, %lu replays, %lu of them failed, longest %lu ms, %ld MB\n", blows, replays,
           refused, longest, usage.ru_maxrss / 1024);
    return refused > 0 && refused < replays ? 0 : 1;
}

/* With a new replayer: what could be told from the outside has not changed. */
static int check(void)
{
    struct tbd_divergence divergence = { 0 };
    struct tbd_error why = { 0 };

    tbd_replayer_free(replayer);
    if (tbd_replayer_new(trace, 1, &replayer, &why))
        return 1;
    for (uint32_t i = 0; i < tbd_trace_window_count(trace); i++)
        if (tbd_replay_verify(replayer, 0, i, TBD_VERIFY_ALL, &divergence, &why)) {
            printf("window %u: %s: %s\n", i, why.detail, divergence.what);
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    struct tbd_error why = { 0 };
    int result;

    if (argc != 4) {
        fprintf(stderr, "usage: replay_scribble TRACE SEED SECONDS\n");
        return 2;
    }
    first_seed = seed = strtoull(argv[2], NULL, 10) + 1;
    if (tbd_trace_open(argv[1], &trace, &why) || tbd_replayer_new(trace, 1, &replayer, &why)) {
        printf("%s: %s: %s\n", tbd_status_text(why.status), why.file, why.detail);
        return 1;
    }
    result = run(strtoull(argv[3], NULL, 10));
    if (result == 0)
        result = check();
    tbd_replayer_free(replayer);
    tbd_trace_close(trace);
    return result;
}
