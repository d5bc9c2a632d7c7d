// SPDX-License-Identifier: MIT
/* present_map.c - see present_map.h */
#include "replay/stub/present_map.h"

#include "base/layout.h"
#include "base/string.h"

static uint8_t *present_byte(uint64_t address)
{
    return (uint8_t *)TBD_PRESENT_BASE + (address >> (TBD_PAGE_SHIFT + 3));
}

static uint8_t present_bit(uint64_t address)
{
    return (uint8_t)(1u << (address >> TBD_PAGE_SHIFT & 7));
}

bool tbd_present_has(uint64_t address)
{
    return *present_byte(address) & present_bit(address);
}

/* Eight pages, which are one byte of the map, are handled at once where possible. */
#define EIGHT (8 * TBD_PAGE_SIZE)

static bool is_eight(uint64_t at, uint64_t end)
{
    return !(at & (EIGHT - 1)) && end - at >= EIGHT;
}

/* A summary byte for each page of the present map: not zero if bits of that page have been set.
 * With it, terabytes that a program reserves and never uses are skipped quickly.  The bytes lie in
 * the part of the map that stands for the engine's own addresses. */
#define SUMMARY_SPAN (TBD_PAGE_SIZE * EIGHT)

static uint8_t *summary_byte(uint64_t address)
{
    return present_byte(TBD_ENGINE_BASE) + address / SUMMARY_SPAN;
}

static uint64_t summary_end(uint64_t at, uint64_t end)
{
    uint64_t next = (at | (SUMMARY_SPAN - 1)) + 1;

    return next < end ? next : end;
}

/* A bit for each page of the touch map: the program's pages whose cells are there have been present. */
#define CELL_PAGES (TBD_TOUCH_BYTES / TBD_PAGE_SIZE)
#define CELL_SPAN  (TBD_TOUCH_SPAN / CELL_PAGES) /* of addresses */

static uint8_t cells[CELL_PAGES / 8];

static void note_cells(uint64_t start, uint64_t end)
{
    for (uint64_t i = start / CELL_SPAN; i <= (end - 1) / CELL_SPAN; i++)
        cells[i % CELL_PAGES / 8] |= (uint8_t)(1u << i % 8);
}

static bool has_cells(uint64_t index)
{
    return cells[index / 8] >> (index % 8) & 1;
}

bool tbd_present_cells(uint64_t start, uint64_t end, struct tbd_range *out)
{
    uint64_t index = start / TBD_PAGE_SIZE, last = end / TBD_PAGE_SIZE;

    while (index < last && !has_cells(index))
        index += cells[index / 8] ? 1 : 8 - index % 8;
    if (index >= last)
        return false;
    out->start = index * TBD_PAGE_SIZE;
    while (index < last && has_cells(index))
        index++;
    out->end = index * TBD_PAGE_SIZE;
    return true;
}

void tbd_present_set(uint64_t start, uint64_t end)
{
    if (start < end)
        note_cells(start, end);
    for (uint64_t at = start, step; at < end; at += step) {
        step = is_eight(at, end) ? EIGHT : TBD_PAGE_SIZE;
        *summary_byte(at) = 1;
        *present_byte(at) |= step == EIGHT ? 0xff : present_bit(at);
    }
}

static bool is_whole_summary(uint64_t at, uint64_t end)
{
    return !(at & (SUMMARY_SPAN - 1)) && end - at >= SUMMARY_SPAN;
}

void tbd_present_clear(uint64_t start, uint64_t end)
{
    for (uint64_t at = start, next; at < end; at = next) {
        next = at + (is_eight(at, end) ? EIGHT : TBD_PAGE_SIZE);
        if (is_whole_summary(at, end) && *summary_byte(at)) {
            memset(present_byte(at), 0, TBD_PAGE_SIZE);
            *summary_byte(at) = 0;
        }
        if (!*summary_byte(at))
            next = summary_end(at, end);
        else if (next - at == EIGHT && *present_byte(at))
            *present_byte(at) = 0;
        else if (next - at != EIGHT)
            *present_byte(at) &= (uint8_t)~present_bit(at);
    }
}

uint64_t tbd_present_run_end(uint64_t at, uint64_t end)
{
    uint8_t all = tbd_present_has(at) ? 0xff : 0;

    while (at < end) {
        if (!all && !*summary_byte(at))
            at = summary_end(at, end);
        else if (is_eight(at, end) && *present_byte(at) == all)
            at += EIGHT;
        else if (tbd_present_has(at) == (all != 0))
            at += TBD_PAGE_SIZE;
        else
            break;
    }
    return at;
}
