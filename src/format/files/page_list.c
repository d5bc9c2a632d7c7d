// SPDX-License-Identifier: MIT
/* page_list.c - see page_list.h */
#include "format/files/page_list.h"

void tbd_page_list_put(const struct tbd_disk_page *pages, size_t count, struct tbd_buffer *out)
{
    uint64_t last = 0;

    for (size_t i = 0; i < count;) {
        uint64_t address = pages[i].address;
        uint64_t kinds = 0;

        for (; i < count && pages[i].address == address; i++)
            kinds |= pages[i].flags & TBD_DISK_PAGE_FIRST ? TBD_PAGES_FIRST : TBD_PAGES_CAPTURED;
        tbd_buffer_varint(out, (address / 4096 - last) << 2 | kinds);
        last = address / 4096;
    }
}
