// SPDX-License-Identifier: MIT
/* safe_copy.c - see safe_copy.h; the copying itself is in safe_copy_x86_64.S */
#include "hooks/memory/safe_copy.h"

#include "base/layout.h"
#include "hooks/memory/userfault.h"
#include "hooks/memory/userfault_ranges.h"

size_t tbd_copy_faultable(void *dst, const void *src, size_t bytes);
size_t tbd_move_faultable(void *dst, const void *src, size_t bytes);

/* A missing page that somebody will fill (userfaultfd) counts as absent: the engine does not wait
 * for it. */
static bool is_there(uint64_t address, size_t bytes)
{
    return !tbd_userfault_count || tbd_userfault_readable(address, bytes) == bytes;
}

static bool is_user(uint64_t address, size_t bytes)
{
    return address < TBD_USER_END && bytes <= TBD_USER_END - address && is_there(address, bytes);
}

bool tbd_copy_from_program(void *dst, uint64_t src, size_t bytes)
{
    return is_user(src, bytes) && tbd_copy_faultable(dst, (const void *)src, bytes) == 0;
}

bool tbd_copy_to_program(uint64_t dst, const void *src, size_t bytes)
{
    return is_user(dst, bytes) && tbd_copy_faultable((void *)dst, src, bytes) == 0;
}

size_t tbd_copy_prefix_from_program(void *dst, uint64_t src, size_t bytes)
{
    if (src >= TBD_USER_END)
        return 0;
    if (bytes > TBD_USER_END - src)
        bytes = TBD_USER_END - src;
    if (tbd_userfault_count)
        bytes = tbd_userfault_readable(src, bytes);
    return bytes - tbd_copy_faultable(dst, (const void *)src, bytes);
}

static bool move(void *dst, const void *src, size_t bytes)
{
    uint8_t *to = dst;
    const uint8_t *from = src;

    while (bytes) {
        size_t part = bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;

        if (tbd_move_faultable(to, from, part) != 0)
            return false;
        to += part;
        from += part;
        bytes -= part;
    }
    return true;
}

bool tbd_load_from_program(void *dst, uint64_t src, size_t bytes)
{
    return is_user(src, bytes) && move(dst, (const void *)src, bytes);
}

bool tbd_store_to_program(uint64_t dst, const void *src, size_t bytes)
{
    return is_user(dst, bytes) && move((void *)dst, src, bytes);
}
