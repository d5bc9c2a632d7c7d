// SPDX-License-Identifier: MIT
/* begin.c - see begin.h.  Context: BOOT, FORK_CHILD. */
#include "hooks/boot/begin.h"

#include "base/fmt.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/log.h"
#include "base/string.h"
#include "base/sys.h"
#include "base/sys_limit.h"
#include "hooks/calls/growth.h"
#include "hooks/calls/vsyscall.h"
#include "hooks/boot/mode.h"
#include "hooks/boot/runtime.h"
#include "hooks/boot/space_limit.h"
#include "hooks/boot/spawn.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/program_memory.h"
#include "hooks/own/own.h"
#include "hooks/stream/crash_ring.h"
#include "hooks/stream/recording.h"

/* ---- the environment ---- */

/* A forked child may have changed its folder: makes `dir` (or TBD_DIR) an absolute path now, so
 * that it keeps its meaning. */
static void fix_folder(char *const *environment)
{
    char *dir = tbd_runtime.options.dir;
    char given[TBD_OPTION_TEXT_BYTES];
    char cwd[4096];
    long length;

    for (; !*dir && *environment; environment++)
        if (tbd_starts_with(*environment, "TBD_DIR="))
            tbd_fmt(dir, TBD_OPTION_TEXT_BYTES, "%s", *environment + 8);
    if (!*dir || *dir == '/')
        return;
    length = tbd_sys3(__NR_getcwd, tbd_sys_pointer(cwd), sizeof(cwd), 0);
    if (tbd_sys_failed(length) || strlen(cwd) + strlen(dir) + 2 > TBD_OPTION_TEXT_BYTES)
        return;
    memcpy(given, dir, strlen(dir) + 1);
    tbd_fmt(dir, TBD_OPTION_TEXT_BYTES, "%s/%s", cwd, given);
}

void tbd_begin_say_no_proc(void)
{
    tbd_say("cannot read /proc/self/maps: process %u runs untraced", (uint32_t)tbd_sys_getpid());
    tbd_say("hint: /proc must be mounted where the program runs");
}

void tbd_begin_say_no_memory(void)
{
    if (tbd_space_limit_say())
        return;
    tbd_say("cannot reserve the engine's address space: the program runs untraced");
    tbd_say("hint: memory is limited (vm.overcommit_memory=2)");
}

/* Makes a copy, because the program may overwrite its own environment. */
bool tbd_begin_environment(char **envp)
{
    struct tbd_arena arena;
    size_t count = 0;
    size_t bytes = 0;

    for (; envp[count]; count++)
        bytes += strlen(envp[count]) + 1;
    bytes += (count + 1) * sizeof(char *);
    if (!tbd_arena_init(&arena, bytes)) {
        tbd_begin_say_no_memory();
        return false;
    }
    tbd_runtime.environment = tbd_arena_alloc(&arena, (count + 1) * sizeof(char *), 8);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(envp[i]) + 1;

        tbd_runtime.environment[i] = tbd_arena_alloc(&arena, length, 1);
        memcpy(tbd_runtime.environment[i], envp[i], length);
    }
    fix_folder(tbd_runtime.environment);
    return true;
}

static bool has_rings(void)
{
    return tbd_mode()->events == TBD_EVENTS_RINGS;
}

/* ---- the size of rings ---- */

#define LONGEST_RING (4u << 20)

static uint64_t ring_bytes(void)
{
    return (tbd_runtime.options.ring + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
}

static bool is_limited(uint32_t resource)
{
    uint64_t limit[2] = { RLIM64_INFINITY, RLIM64_INFINITY };

    tbd_sys4(__NR_prlimit64, 0, resource, 0, tbd_sys_pointer(limit));
    return limit[0] != RLIM64_INFINITY || limit[1] != RLIM64_INFINITY;
}

static bool is_space_scarce(void)
{
    return is_limited(RLIMIT_AS) || is_limited(RLIMIT_FSIZE);
}

/* Address space in which rings can get longer while the program runs, unless that is scarce. */
static uint64_t area_bytes(void)
{
    return ring_bytes() > LONGEST_RING || is_space_scarce() ? ring_bytes() : LONGEST_RING;
}

#define ENTRIES_FOR_SLOT 128u /* half a ring's registers every 256 entries, and system calls */

static bool has_in_triggers(const char *word)
{
    size_t length = strlen(word);

    for (const char *text = tbd_runtime.options.trigger; strlen(text) >= length; text++)
        if (memcmp(text, word, length) == 0)
            return true;
    return false;
}

/* Does it look as if loads are recorded, or a trigger records? */
static bool has_recorded_loads(void)
{
    return has_in_triggers("loads of ");
}

static bool has_recording_triggers(void)
{
    return has_in_triggers(" records") || has_recorded_loads();
}

static const struct tbd_record_dial *dial(void)
{
    return &tbd_record_dials[tbd_runtime.options.record];
}

/* A ring has as many bytes for values as for entries, or more if registers come often, or loads are recorded; none where address space is scarce. */
static uint64_t value_bytes(void)
{
    uint64_t entries = dial()->entries;
    uint64_t bytes = ring_bytes();

    if ((!tbd_runtime.options.record && !has_recording_triggers()) || is_space_scarce())
        return 0;
    if (has_recorded_loads())
        return TBD_VALUE_MOST_BYTES;
    if (entries && entries < ENTRIES_FOR_SLOT)
        bytes *= ENTRIES_FOR_SLOT / entries;
    return bytes < TBD_VALUE_MOST_BYTES ? bytes : TBD_VALUE_MOST_BYTES;
}

/* And the first one for copies of memory; they may begin while the program runs. */
static uint64_t memory_bytes(void)
{
    return value_bytes() && tbd_runtime.options.record ? TBD_MEMORY_MOST_BYTES : 0;
}

/* What each ring has for its older laps. */
static uint64_t condensed_bytes(void)
{
    if (is_space_scarce())
        return 0;
    return (tbd_runtime.options.condensed + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
}

/* ---- translation ---- */

struct tbd_codegen_config tbd_begin_codegen(void)
{
    return (struct tbd_codegen_config){
        .hook_set = has_rings() ? tbd_mode()->hooks : (uint32_t)tbd_recording.hooks,
        .max_insns = (uint32_t)tbd_runtime.options.max_insns,
        .omits_records = tbd_mode()->omits_records,
        .link = tbd_runtime.options.link,
        .is_free = tbd_mode()->turns == TBD_TURNS_ALL,
        .records = has_rings() && value_bytes() && dial()->entries,
        .calling = tbd_runtime.options.contexts ? (uint32_t)tbd_runtime.options.scheme : 0,
        .counts_branches = tbd_runtime.options.contexts && tbd_runtime.options.branches[0],
    };
}

/* ---- the program's mappings ---- */

static bool is_engine(uint64_t start)
{
    return start >= TBD_ENGINE_BASE && start < TBD_ENGINE_END;
}

struct mappings {
    uint64_t library;
    bool has_begun, ok;
};

static void note_library(const char *path)
{
    size_t length = strlen(path);

    while (length && path[length - 1] != '/')
        length--;
    if (length < sizeof(tbd_runtime.lib_dir)) {
        memcpy(tbd_runtime.lib_dir, path, length);
        tbd_runtime.lib_dir[length] = '\0';
    }
}

static bool add_mapping(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct mappings *mappings = context;

    if (!mappings->has_begun)
        tbd_regions_clear(&tbd_memory.regions);
    mappings->has_begun = true;
    if (map->start == TBD_VSYSCALL_PAGE)
        tbd_vsyscall_found();
    if (is_engine(map->start) || map->start >= TBD_USER_END)
        return true;
    if (mappings->library >= map->start && mappings->library < map->end)
        note_library(path);
    mappings->ok = tbd_regions_add(&tbd_memory.regions, map, path);
    return mappings->ok;
}

/* Where nothing can be read the table stays as it was: a forked child's is its parent's, whose traps it has. */
bool tbd_begin_mappings(uint64_t library)
{
    struct mappings mappings = { .library = library, .ok = true };
    struct tbd_regions *regions = &tbd_memory.regions;

    if (!tbd_maps_read(add_mapping, &mappings) || !mappings.ok)
        return false;
    tbd_memory.brk_end = (uint64_t)tbd_sys3(__NR_brk, 0, 0, 0);
    tbd_memory.brk_start = tbd_memory.brk_end;
    for (size_t i = 0; i < regions->count; i++)
        if ((regions->table[i].map.flags & TBD_REGION_HEAP) &&
            regions->table[i].map.start < tbd_memory.brk_start)
            tbd_memory.brk_start = regions->table[i].map.start;
    tbd_growth_begin();
    return true;
}

/* ---- stream and organizer ---- */

/* What there is beside the rings. */
static uint32_t crash_tables(void)
{
    return (uint32_t)tbd_runtime.options.tables |
           (tbd_runtime.options.parts[0] ? TBD_CRASH_KEPT : 0);
}

/* All rings have slots for values, the first one others for memory. */
static uint64_t all_value_bytes(void)
{
    return value_bytes() * TBD_CRASH_RINGS + memory_bytes();
}

/* Areas for what there is beside the rings. */
static uint32_t areas_beside(uint64_t bytes_of_area)
{
    uint64_t bytes = (crash_tables() ? TBD_CRASH_ALL_BYTES : 0) + all_value_bytes();

    if (condensed_bytes())
        bytes += tbd_condensed_rings(condensed_bytes()) * (condensed_bytes() + TBD_CONDENSED_MORE);
    return bytes ? (uint32_t)(bytes / bytes_of_area + 1) : 0;
}

/* Native play fills chunks in bursts, with a window's pages, and waits a little for fewer; fewer stay in the caches. */
#define CHUNKS        32u
#define NATIVE_CHUNKS 16u

static struct tbd_ring_config stream_config(void)
{
    const struct tbd_options *options = &tbd_runtime.options;
    bool is_native = tbd_mode()->code == TBD_CODE_OWN && !tbd_own_is_translated();
    struct tbd_ring_config config = {
        .chunks = options->chunks ? (uint32_t)options->chunks
                  : is_native     ? NATIVE_CHUNKS
                                  : CHUNKS,
        .def_capacity = 1u << 20,
        .heap_capacity = 1ull << 30,
        .window_blocks = options->window,
        .only_counts = tbd_mode()->omits_records,
        .is_native = is_native,
        .hook_set = (uint32_t)tbd_recording.hooks,
        .pid = tbd_recording.pid,
    };

    if (has_rings()) {
        config.area_bytes = area_bytes();
        config.areas = TBD_CRASH_TABLES; /* format/stream/crash.h, and one that nobody reads */
        config.areas += areas_beside(config.area_bytes);
    }
    return config;
}

static bool make_stream(int fd)
{
    struct tbd_ring_config config = stream_config();

    if (tbd_ring_create(&tbd_recording.ring, fd, &config) != TBD_OK)
        return false;
    if (fd >= 0)
        tbd_sys_madvise(TBD_STREAM_BASE, tbd_recording.ring.bytes, MADV_DONTFORK);
    tbd_sys_madvise(TBD_STREAM_BASE, tbd_recording.ring.bytes, MADV_DONTDUMP);
    return true;
}

#define ORGANIZER_FILES 64u /* that its threads have open at a time */

/* The limit on file sizes holds for shared memory, too; exceeding it would send the program a
 * signal. */
static bool allow(const struct tbd_sys_limit *bytes, const struct tbd_sys_limit *files)
{
    struct tbd_ring_config config = stream_config();

    if (bytes->upper < tbd_ring_bytes(&config)) {
        tbd_say("the file size limit is too small for the stream: the program runs untraced");
        tbd_say("hint: ulimit -f unlimited");
        return false;
    }
    if (files->upper < ORGANIZER_FILES) {
        tbd_say("the limit of %lu open files is too small: the program runs untraced",
                files->upper);
        tbd_say("hint: ulimit -n %u", ORGANIZER_FILES);
        return false;
    }
    return true;
}

static bool make_recording(void)
{
    long fd = tbd_sys3(__NR_memfd_create, tbd_sys_pointer("tbd-stream"), MFD_CLOEXEC, 0);

    if (tbd_sys_failed(fd)) {
        tbd_say("cannot make the shared memory for the stream: the program runs untraced");
        return false;
    }
    if (!make_stream((int)fd)) {
        tbd_begin_say_no_memory();
        tbd_sys_close((int)fd);
        return false;
    }
    if (has_rings())
        tbd_crash_format(&(struct tbd_crash_format){ .ring_bytes = ring_bytes(),
                                                     .value_bytes = value_bytes(),
                                                     .memory_bytes = memory_bytes(),
                                                     .condensed_bytes = condensed_bytes(),
                                                     .tables = crash_tables(),
                                                     .record = (uint32_t)tbd_runtime.options.record,
                                                     .parts = tbd_runtime.options.parts });
    tbd_recording.is_on = tbd_spawn_begin((int)fd, tbd_runtime.environment);
    tbd_sys_close((int)fd);
    return tbd_recording.is_on;
}

static bool start_recording(void)
{
    struct tbd_sys_limit bytes = tbd_sys_limit_lift(RLIMIT_FSIZE);
    struct tbd_sys_limit files = tbd_sys_limit_lift(RLIMIT_NOFILE);
    bool done = allow(&bytes, &files) && make_recording();

    tbd_sys_limit_put_back(RLIMIT_FSIZE, &bytes);
    tbd_sys_limit_put_back(RLIMIT_NOFILE, &files);
    return done;
}

bool tbd_begin_stream(void)
{
    bool wanted = tbd_mode()->events != TBD_EVENTS_NOWHERE &&
                  strcmp(tbd_runtime.options.organizer, "none") != 0;

    if (wanted)
        return start_recording();
    if (make_stream(-1))
        return true;
    tbd_begin_say_no_memory();
    return false;
}

void tbd_begin_nothing(void)
{
    struct tbd_stream_head *head = tbd_recording.ring.head;

    tbd_crash_ends();
    if (!tbd_recording.is_on)
        return;
    __atomic_store_n(&head->engine_state, TBD_ENGINE_ENDED, __ATOMIC_RELEASE);
    tbd_sys_futex_wake(&head->published);
    (void)tbd_spawn_finish();
    tbd_recording.is_on = false;
}

/* The collector has the rings; nothing is handed over. */
static bool begin_rings(void)
{
    bool is_ready = tbd_recording.is_on && tbd_spawn_finish();

    tbd_recording.is_on = false;
    if (is_ready)
        tbd_crash_start();
    return is_ready;
}

bool tbd_begin_recording(void)
{
    if (has_rings())
        return begin_rings();
    if (!tbd_ring_guard(&tbd_recording.ring)) {
        tbd_say("cannot protect the stream's guard pages: the program runs untraced");
        tbd_begin_nothing();
        return false;
    }
    if (!tbd_recording.is_on)
        return true;
    tbd_recording.is_on = tbd_spawn_finish();
    return tbd_recording.is_on;
}
