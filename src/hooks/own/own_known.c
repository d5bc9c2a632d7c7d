// SPDX-License-Identifier: MIT
/* own_known.c - see own_known.h
 *
 * A file for each mapping, `.code/NNN` in the folder of all traces: its key, and the places relative to its start.  There are SLOTS names, so the
 * folder stays small; of two mappings with one name the last one is kept.  It is not in the user's cache: a program whose home is empty, or whose
 * cache is looked at, would find it there.
 *
 * OWN_KNOWN-1  A file is used only if it belongs to the user, nobody else may change it, its sum is right and its key is the mapping's. (not
 *     checked: read_kept() does)
 * OWN_KNOWN-2  A file appears complete, by rename, or not at all; it is made in a folder that only the user may change. (not checked:
 *     open_folder() and write_kept() do)
 *
 * The kernel sets the time of a file's change with the precision of its clock's ticks, and that of a file that is written through a mapping when the
 * page is made writable: so only of files that have not changed for a while something is kept. */
#include "hooks/own/own_known.h"

#include "base/fmt.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "base/sys_limit.h"
#include "hooks/memory/pagemap.h"

#include <elf.h>

#define MAGIC 0x31657469736b6274ull /* "tbksite1" */
#define SLOTS 4096u
#define LEAST_BYTES                                                                                \
    (64u << 10)            /* of code: less is looked through in less time than the cache takes */
#define SETTLED        60u /* seconds since the file's last change */
#define NAME           ".code"
#define DATA           "XDG_DATA_HOME="
#define HOME           "HOME="
#define MOST_ROOT      480u
#define FOLDER_BYTES   512u
#define PATH_BYTES     (FOLDER_BYTES + 32u)
#define OTHERS_WRITE   022u
#define STAT_SYMBOLS   0170000u
#define STAT_REGULAR   0100000u
#define STAT_DIRECTORY 0040000u

/* struct stat in words of 8 bytes; the upper half of STAT_MODE is the owner. */
enum {
    STAT_DEVICE = 0,
    STAT_INODE = 1,
    STAT_LINKS = 2,
    STAT_MODE = 3,
    STAT_SIZE = 6,
    STAT_MODIFIED = 11,
    STAT_CHANGED = 13,
    STAT_WORDS = 18
};

struct known_places {
    uint64_t magic;
    uint64_t sum; /* of all that follows */
    struct tbd_known_key key;
    uint64_t count;
    uint64_t offsets[TBD_KNOWN_SITES];
};

static char folder[FOLDER_BYTES]; /* "": there is none; ends with a slash */

/* ---- whose engine ---- */

/* A hash of the build id in this image; 0: it has none. */
static uint64_t engine_id(void)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)TBD_ENGINE_BASE;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(TBD_ENGINE_BASE + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Nhdr *note = (const Elf64_Nhdr *)segments[i].p_vaddr;

        if (segments[i].p_type == PT_NOTE && segments[i].p_filesz >= sizeof(*note) &&
            note->n_type == NT_GNU_BUILD_ID)
            return tbd_hash64(note, segments[i].p_filesz);
    }
    return 0;
}

/* ---- the folder ---- */

void tbd_own_known_begin(const char *root, char *const *environment)
{
    const char *data = "", *home = "";

    for (; *environment; environment++) {
        if (tbd_starts_with(*environment, DATA))
            data = *environment + sizeof(DATA) - 1;
        if (tbd_starts_with(*environment, HOME))
            home = *environment + sizeof(HOME) - 1;
    }
    folder[0] = '\0';
    if (strlen(root) >= MOST_ROOT || strlen(data) >= MOST_ROOT || strlen(home) >= MOST_ROOT)
        return;
    if (*root == '/')
        tbd_fmt(folder, sizeof(folder), "%s/" NAME "/", root);
    else if (!*root && *data == '/')
        tbd_fmt(folder, sizeof(folder), "%s/tbd/" NAME "/", data);
    else if (!*root && !*data && *home == '/')
        tbd_fmt(folder, sizeof(folder), "%s/.local/share/tbd/" NAME "/", home);
}

static void make_folders(void)
{
    char path[FOLDER_BYTES];

    for (size_t i = 0; folder[i]; i++) {
        path[i] = folder[i];
        path[i + 1] = '\0';
        if (folder[i + 1] == '/')
            tbd_sys3(__NR_mkdir, tbd_sys_pointer(path), 0700, 0);
    }
}

static bool is_private(const uint64_t *stat, uint64_t type)
{
    uint64_t mode = (uint32_t)stat[STAT_MODE];

    return (mode & STAT_SYMBOLS) == type && !(mode & OTHERS_WRITE) &&
           stat[STAT_MODE] >> 32 == (uint64_t)tbd_sys3(__NR_geteuid, 0, 0, 0);
}

static bool fstat_private(int fd, uint64_t *stat, uint64_t type)
{
    return !tbd_sys_failed(
               tbd_sys3(__NR_fstat, (uint64_t)(unsigned)fd, tbd_sys_pointer(stat), 0)) &&
           is_private(stat, type);
}

static long open_folder_once(void)
{
    return tbd_sys_open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

static int open_folder(void)
{
    uint64_t stat[STAT_WORDS];
    long fd = open_folder_once();

    if (fd == -ENOENT) {
        make_folders();
        fd = open_folder_once();
    }
    if (tbd_sys_failed(fd))
        return -1;
    if (fstat_private((int)fd, stat, STAT_DIRECTORY))
        return (int)fd;
    tbd_sys_close((int)fd);
    return -1;
}

static void name_of(const struct tbd_known_key *key, char *out, size_t bytes)
{
    const uint64_t place[] = { key->device, key->inode, key->offset, key->bytes };

    tbd_fmt(out, bytes, "%lx", tbd_hash64(place, sizeof(place)) % SLOTS);
}

/* ---- the mapping ---- */

static bool stat_of(const char *path, uint64_t *stat)
{
    return !tbd_sys_failed(tbd_sys3(__NR_stat, tbd_sys_pointer(path), tbd_sys_pointer(stat), 0));
}

static bool is_settled(const uint64_t *stat)
{
    int64_t now[2] = { 0, 0 };

    tbd_sys3(__NR_clock_gettime, CLOCK_REALTIME, tbd_sys_pointer(now), 0);
    return stat[STAT_CHANGED] + SETTLED < (uint64_t)now[0] &&
           stat[STAT_MODIFIED] + SETTLED < (uint64_t)now[0];
}

static bool is_of_file(const uint64_t *stat, const struct tbd_msg_region *map)
{
    return ((uint32_t)stat[STAT_MODE] & STAT_SYMBOLS) == STAT_REGULAR &&
           stat[STAT_INODE] == map->inode && stat[STAT_DEVICE] == map->device;
}

static void count_page(void *context, uint64_t address)
{
    (void)address;
    ++*(size_t *)context;
}

/* Text that was relocated, breakpoints. */
static bool has_own_pages(const struct tbd_msg_region *map)
{
    struct tbd_pagemap pagemap;
    size_t count = 0;

    tbd_pagemap_open(&pagemap);
    tbd_pagemap_visit(&pagemap, TBD_PAGES_PRIVATE, map->start, map->end, count_page, &count);
    tbd_pagemap_close(&pagemap);
    return count;
}

static struct tbd_known_key key_of(const uint64_t *stat, const struct tbd_msg_region *map)
{
    return (struct tbd_known_key){
        .engine = engine_id(),
        .device = stat[STAT_DEVICE],
        .inode = stat[STAT_INODE],
        .size = stat[STAT_SIZE],
        .modified = { stat[STAT_MODIFIED], stat[STAT_MODIFIED + 1] },
        .changed = { stat[STAT_CHANGED], stat[STAT_CHANGED + 1] },
        .offset = map->file_offset,
        .bytes = map->end - map->start,
    };
}

bool tbd_own_known_describe(struct tbd_known_key *out, const struct tbd_mapped_region *region)
{
    const struct tbd_msg_region *map = &region->map;
    uint64_t stat[STAT_WORDS];

    if (!folder[0] || map->end - map->start < LEAST_BYTES || region->path[0] != '/' ||
        !stat_of(region->path, stat) || !is_of_file(stat, map) || !is_settled(stat))
        return false;
    *out = key_of(stat, map);
    return out->engine && !has_own_pages(map);
}

/* ---- files ---- */

static uint64_t sum_of(const struct known_places *kept)
{
    return tbd_hash64(&kept->key,
                      sizeof(kept->key) + sizeof(kept->count) + kept->count * sizeof(uint64_t));
}

static size_t size_of(uint64_t count)
{
    return offsetof(struct known_places, offsets) + count * sizeof(uint64_t);
}

static bool is_right(const struct known_places *kept, size_t bytes, const struct tbd_known_key *key)
{
    if (bytes < size_of(0) || kept->magic != MAGIC || kept->count > TBD_KNOWN_SITES ||
        bytes != size_of(kept->count) || kept->sum != sum_of(kept) ||
        memcmp(&kept->key, key, sizeof(*key)) != 0)
        return false;
    for (size_t i = 0; i < kept->count; i++)
        if (kept->offsets[i] >= key->bytes || (i && kept->offsets[i] < kept->offsets[i - 1]))
            return false;
    return true;
}

static bool read_kept(const struct tbd_known_key *key, struct known_places *out)
{
    char path[PATH_BYTES], name[16];
    uint64_t stat[STAT_WORDS];
    long fd, bytes = -1;

    name_of(key, name, sizeof(name));
    tbd_fmt(path, sizeof(path), "%s%s", folder, name);
    fd = tbd_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    if (tbd_sys_failed(fd))
        return false;
    if (fstat_private((int)fd, stat, STAT_REGULAR))
        bytes = tbd_sys_read((int)fd, out, sizeof(*out));
    tbd_sys_close((int)fd);
    return !tbd_sys_failed(bytes) && is_right(out, (size_t)bytes, key);
}

static bool write_new(int dir, const char *name, const struct known_places *kept)
{
    size_t bytes = size_of(kept->count);
    long fd = tbd_sys4(__NR_openat, (uint64_t)(unsigned)dir, tbd_sys_pointer(name),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok;

    if (tbd_sys_failed(fd))
        return false;
    ok = tbd_sys_write((int)fd, kept, bytes) == (long)bytes;
    tbd_sys_close((int)fd);
    return ok;
}

static void write_kept(const struct known_places *kept)
{
    struct tbd_sys_limit limit = tbd_sys_limit_lift(RLIMIT_FSIZE);
    int dir = limit.upper > sizeof(*kept) ? open_folder() : -1;
    char made[32], name[16];

    name_of(&kept->key, name, sizeof(name));
    tbd_fmt(made, sizeof(made), "%u.new", (uint32_t)tbd_sys_gettid());
    if (dir >= 0 &&
        (!write_new(dir, made, kept) ||
         tbd_sys_failed(tbd_sys4(__NR_renameat, (uint64_t)(unsigned)dir, tbd_sys_pointer(made),
                                 (uint64_t)(unsigned)dir, tbd_sys_pointer(name)))))
        tbd_sys3(__NR_unlinkat, (uint64_t)(unsigned)dir, tbd_sys_pointer(made), 0);
    if (dir >= 0)
        tbd_sys_close(dir);
    tbd_sys_limit_put_back(RLIMIT_FSIZE, &limit);
}

static struct known_places kept;

size_t tbd_own_known_get(const struct tbd_known_key *key, const struct tbd_mapped_region *region,
                         uint64_t *sites)
{
    if (!read_kept(key, &kept))
        return TBD_KNOWN_SITES + 1;
    for (size_t i = 0; i < kept.count; i++)
        sites[i] = region->map.start + kept.offsets[i];
    return kept.count;
}

void tbd_own_known_put(const struct tbd_known_key *key, const struct tbd_mapped_region *region,
                       const uint64_t *sites, size_t count)
{
    struct tbd_known_key now;

    if (count > TBD_KNOWN_SITES || !tbd_own_known_describe(&now, region) ||
        memcmp(&now, key, sizeof(now)) != 0)
        return;
    kept = (struct known_places){ .magic = MAGIC, .key = *key, .count = count };
    for (size_t i = 0; i < count; i++)
        kept.offsets[i] = sites[i] - region->map.start;
    kept.sum = sum_of(&kept);
    write_kept(&kept);
}
