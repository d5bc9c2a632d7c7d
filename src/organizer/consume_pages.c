// SPDX-License-Identifier: MIT
/* consume_pages.c - native play: pages that were written are packed when they come (page_packer.h)
 *
 * Keeps CONSUME-1: a page is copied, then packed. */
#include "organizer/consume_private.h"

#include "base/copy_once.h"
#include "base/layout.h"

#include <string.h>

/* Where pages are packed when they come, little is left.  What was not used may be kept (large_buffers.h) as if it had been. */
#define NATIVE_OPERANDS ((size_t)1 << 20)
#define NATIVE_ENTRIES  ((size_t)64 << 10)

void tbd_consumer_take_frames(struct tbd_consumer *c)
{
    c->takes_frames = true;
}

void tbd_consumer_pack(struct tbd_consumer *c, struct tbd_page_packer *packer)
{
    c->packer = packer;
    c->entry_hint = c->entry_least = NATIVE_ENTRIES;
    c->operand_hint = c->operand_least = NATIVE_OPERANDS;
}

/* A message's page as it was a moment ago (CONSUME-1). */
struct copied_page {
    struct tbd_message message;
    struct tbd_msg_page head;
    uint8_t bytes[TBD_PAGE_SIZE];
};

/* False without memory. */
static bool pack_page(struct tbd_consumer *c, const uint8_t *message)
{
    struct copied_page page;
    bool is_last;

    memcpy(&page, message, sizeof(page));
    is_last = page.head.flags & TBD_PAGE_LAST;
    page.message = (struct tbd_message){ TBD_MSG_PAGE, sizeof(page.head) };
    page.head.address &= ~(uint64_t)(TBD_PAGE_SIZE - 1);
    page.head.flags = TBD_PAGE_DIRTY | TBD_PAGE_PACKED;
    if (!tbd_page_packer_add(c->packer, &c->raw.packed, page.head.address, page.bytes, is_last))
        return false;
    tbd_consumer_append(c, (const uint8_t *)&page, sizeof(page.message) + sizeof(page.head));
    return true;
}

/* What the packer keeps of pages is not what they held before the next window any more, if a message says so. */
static void forget_pages(struct tbd_consumer *c, const struct tbd_message *head,
                         const uint8_t *payload)
{
    struct tbd_range range;

    if (head->bytes < sizeof(range))
        return;
    tbd_copy_once(&range, payload, sizeof(range));
    if (head->kind == TBD_MSG_PAGE) /* struct tbd_msg_page begins with the address */
        range.end = range.start + TBD_PAGE_SIZE;
    tbd_page_packer_forget(c->packer, range.start, range.end);
}

/* The initial image, and pages that were only read, stay as they come. */
static bool is_written_page(const struct tbd_message *head, const uint8_t *payload)
{
    struct tbd_msg_page page;

    if (head->kind != TBD_MSG_PAGE || head->bytes != sizeof(page) + TBD_PAGE_SIZE)
        return false;
    tbd_copy_once(&page, payload, sizeof(page));
    return (page.flags & ~(uint64_t)TBD_PAGE_LAST) == TBD_PAGE_DIRTY;
}

/* Native play: messages, of which pages that were written are packed.  False without memory. */
bool tbd_consumer_take_messages(struct tbd_consumer *c, const uint8_t *from, size_t bytes)
{
    const uint8_t *copied = from, *at = from, *end = from + bytes;
    struct tbd_message head;

    while ((size_t)(end - at) >= sizeof(head)) {
        const uint8_t *payload = at + sizeof(head);

        tbd_copy_once(&head, at, sizeof(head));
        if (head.bytes > (size_t)(end - payload))
            break;
        if (is_written_page(&head, payload)) {
            tbd_consumer_append(c, copied, (size_t)(at - copied));
            if (!pack_page(c, at))
                return false;
            copied = payload + head.bytes;
        } else if (head.kind == TBD_MSG_PAGE || head.kind == TBD_MSG_UNMAP) {
            forget_pages(c, &head, payload);
        }
        at = payload + head.bytes;
    }
    tbd_consumer_append(c, copied, (size_t)(end - copied));
    return true;
}
