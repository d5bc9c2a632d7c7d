// SPDX-License-Identifier: MIT
/* unread.c - memory for what translated code writes and nobody reads
 *
 * Entries that are only counted, and records that are only written because the code that does so is to be run, would go through
 * megabytes of memory, and so push everything else out of the processor's caches.  So a few pages are mapped again and again,
 * one after the other: a pointer into such an area grows for half a million entries before there is a fault, and the stores stay in the
 * first cache.
 *
 *     TBD_UNREAD_BASE   entries, again and again the same pages | nothing | records, likewise | nothing
 *
 * UNREAD-1  What is read back (the entry, or the record, that was written last) is shorter than the pages of its area.  (not checked: the assertion
 *     below does) */
#include "replay/stub/stub.h"

#include "base/linux.h"
#include "base/sys.h"
#include "hooks/stream/ring.h"

#define PAGES_BYTES (16ull << 10)
#define AREA_BYTES  (2ull << 20)
#define RECORDS     (TBD_UNREAD_BASE + 2 * AREA_BYTES)
_Static_assert(PAGES_BYTES > TBD_RECORD_MAX_BYTES, "UNREAD-1");

static bool map_again_and_again(uint64_t start, int fd)
{
    int flags = MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE;

    for (uint64_t at = start; at < start + AREA_BYTES; at += PAGES_BYTES)
        if (tbd_sys_mmap(at, PAGES_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0) != (long)at)
            return false;
    return true;
}

static bool map_area(uint64_t start)
{
    static const char name[] = "tbd-unread";
    long fd = tbd_sys6(__NR_memfd_create, tbd_sys_pointer(name), 0, 0, 0, 0, 0);
    bool is_mapped;

    if (tbd_sys_failed(fd))
        return false;
    is_mapped = !tbd_sys_failed(tbd_sys3(__NR_ftruncate, (uint64_t)fd, PAGES_BYTES, 0)) &&
                map_again_and_again(start, (int)fd);
    tbd_sys3(__NR_close, (uint64_t)fd, 0, 0);
    return is_mapped;
}

bool tbd_stub_map_unread(struct tbd_ring *ring)
{
    ring->discards_into = TBD_UNREAD_BASE;
    ring->discards_bytes = AREA_BYTES;
    return map_area(TBD_UNREAD_BASE) && map_area(RECORDS);
}

void tbd_stub_use_unread(struct tbd_ring *ring)
{
    ring->counting = TBD_UNREAD_BASE;
    ring->counting_bytes = ring->aside_bytes = AREA_BYTES;
    ring->aside = RECORDS;
}
