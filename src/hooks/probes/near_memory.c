// SPDX-License-Identifier: MIT
/* near_memory.c - see near_memory.h
 *
 *   area:  entries ->  | <- code      half of it each; who owns each 64 bytes of code is kept elsewhere */
#include "hooks/probes/near_memory.h"

#include "base/linux_abi.h"
#include "base/sys.h"

#define AREA_BYTES (16ull << 20)
#define HALF       (AREA_BYTES / 2)
#define MAX_AREAS  32u
#define GRANULE    64u
#define REACH                                                                                      \
    (2000ll << 20) /* a little less than 2 GiB: code in an area reaches what the place does */
#define LOW_MEMORY  (1ull << 32)
#define FIRST_BELOW 8u   /* halves; the next mappings of the program come just below its modules */
#define FIRST_ABOVE 136u /* past the heap of a program that is not position-independent */
#define LAST_TRY    240u
#define SPARE       8192u /* of an area for code, that one more entry is of use */
#define TOP_BYTE    0xff000000u

struct near_area {
    uint64_t start;
    uint64_t hint; /* entries are looked for from here */
    uint8_t *high; /* code begins here */
    void **owner;  /* of each granule */
};

static struct near_area areas[MAX_AREAS];
static uint32_t area_count; /* atomic: grows when an area is complete */

/* ---- what is mapped ---- */

#define MAX_MAPPED 1024u

/* Between two of these an area fits. */
static struct {
    uint64_t start, end;
} mapped[MAX_MAPPED];
static uint32_t mapped_count;

void tbd_near_forget_mapped(void)
{
    mapped_count = 0;
}

void tbd_near_note_mapped(uint64_t start, uint64_t end)
{
    if (mapped_count &&
        (start - mapped[mapped_count - 1].end < AREA_BYTES || mapped_count == MAX_MAPPED)) {
        mapped[mapped_count - 1].end = end;
        return;
    }
    mapped[mapped_count].start = start;
    mapped[mapped_count++].end = end;
}

/* The kernel would say so, too, but takes its time for each try where many threads map and fault. */
static bool is_mapped(uint64_t start)
{
    for (uint32_t i = 0; i < mapped_count; i++)
        if (start < mapped[i].end && mapped[i].start < start + AREA_BYTES)
            return true;
    return false;
}

/* ---- areas ---- */

static bool add_area(uint64_t start)
{
    struct near_area *area = &areas[area_count];
    long owner, at;

    if (area_count == MAX_AREAS || start < AREA_BYTES)
        return false;
    at = tbd_sys_mmap(start, AREA_BYTES, TBD_PROT_RWX, TBD_MAP_MEMORY | MAP_FIXED_NOREPLACE, -1, 0);
    if (tbd_sys_failed(at))
        return false;
    owner =
        tbd_sys_mmap(0, AREA_BYTES / GRANULE * sizeof(void *), TBD_PROT_RW, TBD_MAP_MEMORY, -1, 0);
    if (at != (long)start || tbd_sys_failed(owner)) {
        tbd_sys_munmap((uint64_t)at, AREA_BYTES);
        return false;
    }
    tbd_sys_madvise(start, AREA_BYTES, MADV_NOHUGEPAGE);
    *area = (struct near_area){ .start = start,
                                .hint = start,
                                .high = (uint8_t *)(uintptr_t)start + AREA_BYTES,
                                .owner = (void **)owner };
    __atomic_store_n(&area_count, area_count + 1, __ATOMIC_RELEASE);
    return true;
}

static struct near_area *area_of(uint64_t address)
{
    uint32_t count = __atomic_load_n(&area_count, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < count; i++)
        if (address - areas[i].start < AREA_BYTES)
            return &areas[i];
    return NULL;
}

/* ---- entries ---- */

/* The first number from `d` on whose bits in `mask`, of whole bytes, are those of `value`.  False: there is none. */
static bool next_match(uint32_t *d, uint32_t mask, uint32_t value)
{
    while ((*d & mask) != value) {
        uint32_t wrong = (*d ^ value) & mask;
        unsigned shift = (31u - (unsigned)__builtin_clz(wrong)) & ~7u; /* the highest wrong byte */
        uint32_t below = (1u << shift) - 1;

        if ((*d >> shift & 0xff) < (value >> shift & 0xff)) {
            *d = (*d & ~(below | 0xffu << shift)) | (value & (0xffu << shift));
        } else {
            uint64_t carried = (uint64_t)(*d | below | 0xffu << shift) + 1;

            if (carried > UINT32_MAX)
                return false;
            *d = (uint32_t)carried;
        }
    }
    return true;
}

static bool is_free(uint64_t address)
{
    const uint8_t *at = (const uint8_t *)(uintptr_t)address;
    uint8_t used = 0;

    for (unsigned i = 0; i < TBD_NEAR_ENTRY_BYTES; i++)
        used |= at[i];
    return !used;
}

/* The first address from `low` on that matches, if it is below `end`; 0. */
static uint64_t next_address(uint64_t low, uint64_t end, uint64_t from, uint32_t mask,
                             uint32_t value)
{
    int64_t first = (int64_t)(low - from);
    uint32_t d = (uint32_t)first;
    uint64_t address;

    if (first < -REACH || first + (int64_t)AREA_BYTES > REACH || !next_match(&d, mask, value) ||
        (first < 0 && (int32_t)d >= 0))
        return 0;
    address = from + (uint64_t)(int64_t)(int32_t)d;
    return address < end ? address : 0;
}

static uint64_t find_in(const struct near_area *area, uint64_t low, uint64_t from, uint32_t mask,
                        uint32_t value)
{
    uint64_t end = area->start + HALF - TBD_NEAR_ENTRY_BYTES;
    uint64_t address = next_address(low, end, from, mask, value);

    while (address && !is_free(address))
        address = next_address(address + 1, end, from, mask, value);
    return address;
}

static uint64_t find_in_areas(uint64_t from, uint32_t mask, uint32_t value)
{
    for (uint32_t i = area_count; i-- > 0;) {
        struct near_area *area = &areas[i];
        uint64_t found;

        if ((uint64_t)(uintptr_t)area->high < area->start + HALF + SPARE)
            continue;
        found = find_in(area, area->hint, from, mask, value);
        if (!found)
            found = find_in(area, area->start, from, mask, value);
        if (found) {
            area->hint = found + TBD_NEAR_ENTRY_BYTES;
            return found;
        }
    }
    return 0;
}

struct near_wanted {
    uint64_t from;
    uint32_t mask, value;
};

static bool try_area(uint64_t start, const struct near_wanted *wanted)
{
    return next_address(start, start + HALF - TBD_NEAR_ENTRY_BYTES, wanted->from, wanted->mask,
                        wanted->value) &&
           !is_mapped(start) && add_area(start);
}

static bool add_area_for(const struct near_wanted *wanted)
{
    uint64_t base = wanted->from & ~(HALF - 1);

    if (wanted->mask & TOP_BYTE) {
        uint64_t low =
            (wanted->from + (uint64_t)(int64_t)(int32_t)(wanted->value & TOP_BYTE)) & ~(HALF - 1);

        return low < base && (try_area(low + HALF, wanted) || try_area(low, wanted) ||
                              try_area(low + 2 * HALF, wanted));
    }
    for (uint64_t i = FIRST_BELOW; i < LAST_TRY && base > i * HALF; i++)
        if (try_area(base - i * HALF, wanted))
            return true;
    for (uint64_t i = FIRST_ABOVE; i < LAST_TRY && base < LOW_MEMORY; i++)
        if (try_area(base + i * HALF, wanted))
            return true;
    return false;
}

uint64_t tbd_near_entry(uint64_t from, uint32_t mask, uint32_t value)
{
    const struct near_wanted wanted = { from, mask, value };
    uint64_t found = find_in_areas(from, mask, value);

    if (!found && add_area_for(&wanted))
        found = find_in_areas(from, mask, value);
    return found;
}

/* ---- code ---- */

uint8_t *tbd_near_alloc(uint64_t entry, size_t bytes, void *owner)
{
    struct near_area *area = area_of(entry);
    size_t whole = (bytes + GRANULE - 1) & ~(size_t)(GRANULE - 1);
    uint64_t at;

    if (!area || whole > HALF)
        return NULL;
    at = (uint64_t)(uintptr_t)area->high - whole;
    if (at < area->start + HALF)
        return NULL;
    for (uint64_t i = (at - area->start) / GRANULE; i < (at + whole - area->start) / GRANULE; i++)
        __atomic_store_n(&area->owner[i], owner, __ATOMIC_RELEASE);
    area->high = (uint8_t *)(uintptr_t)at;
    return area->high;
}

bool tbd_near_find(uint64_t address, void **out)
{
    const struct near_area *area = area_of(address);

    if (area)
        *out = __atomic_load_n(&area->owner[(address - area->start) / GRANULE], __ATOMIC_ACQUIRE);
    return area;
}
