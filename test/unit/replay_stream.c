// SPDX-License-Identifier: MIT
/* replay_stream.c - see replay_stream.h */
#include "replay_stream.h"

#include "base/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t code[4] = { 0x48, 0x89, 0x03, 0xc3 }; /* mov [rbx], rax; ret */

void replay_stream_open(struct replay_stream *s, const struct tbd_ring_config *config,
                        uint32_t record_bytes)
{
    struct tbd_op op = { .kind = TBD_OP_STORE, .size = 8, .data = 8, .base = 0 };
    struct tbd_block_def def = { .start = 0x400000,
                                 .code_bytes = 4,
                                 .op_count = 1,
                                 .operand_bytes = record_bytes,
                                 .insn_count = 2,
                                 .end = TBD_END_RETURN,
                                 .last_insn = 3 };

    s->record_bytes = record_bytes;
    s->fd = memfd_create("stream", 0);
    assert_int_equal(tbd_ring_create(&s->ring, s->fd, config), TBD_OK);
    assert_true(tbd_ring_guard(&s->ring));
    s->id = tbd_ring_define(&s->ring, &def, &op, code);
    s->table = tbd_block_table_new();
    assert_int_equal(tbd_consumer_new(s->fd, s->table, NULL, &s->consumer, NULL), TBD_OK);
}

void replay_stream_close(struct replay_stream *s)
{
    tbd_consumer_free(s->consumer);
    tbd_block_table_release(s->table);
    munmap((void *)TBD_STREAM_BASE, s->ring.bytes);
    close(s->fd);
}

void replay_stream_enter(struct replay_stream *s, uint32_t entry, uint32_t number)
{
    struct tbd_thread *thread = &s->thread;

    if (thread->operand_next + s->record_bytes > tbd_ring_records_end_sigsafe(&s->ring))
        tbd_ring_turn(&s->ring, thread, 0); /* as at the guard page */
    memcpy((void *)thread->entry_next, &entry, sizeof(entry));
    thread->entry_next += sizeof(entry);
    for (size_t at = 0; at < s->record_bytes; at += sizeof(number))
        memcpy((uint8_t *)thread->operand_next + at, &number, sizeof(number));
    thread->operand_next += s->record_bytes;
}

void replay_stream_send(struct replay_stream *s, enum tbd_message_kind kind, const void *payload,
                        size_t bytes)
{
    struct tbd_part part = { payload, bytes };

    tbd_ring_send(&s->ring, &s->thread, kind, &part, 1);
}

void replay_stream_send_pages(struct replay_stream *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct {
            struct tbd_msg_page head;
            uint8_t bytes[TBD_PAGE_SIZE];
        } page = { .head = { (0x500000ull + i * TBD_PAGE_SIZE), TBD_PAGE_DIRTY } };

        memset(page.bytes, (int)i + 1, sizeof(page.bytes));
        replay_stream_send(s, TBD_MSG_PAGE, &page, sizeof(page));
    }
}

void replay_stream_end_window(struct replay_stream *s, uint32_t blocks)
{
    struct tbd_msg_window_end end = { .time = blocks };
    struct tbd_regs regs = { .thread = 7, .rip = 0x400000 };

    replay_stream_send(s, TBD_MSG_REGS, &regs, sizeof(regs));
    replay_stream_send(s, TBD_MSG_WINDOW_END, &end, sizeof(end));
    tbd_ring_turn(&s->ring, &s->thread, TBD_CHUNK_ENDS_WINDOW);
}

void replay_stream_check(const struct tbd_window *window, uint32_t blocks, uint32_t messages,
                         uint32_t pages)
{
    assert_true(window->complete);
    assert_int_equal(window->blocks, blocks);
    assert_int_equal(window->log_count, messages);
    assert_int_equal(window->dirty_count, pages);
    for (uint32_t i = 0; i < pages; i++)
        assert_int_equal(window->dirty[i].bytes[TBD_PAGE_SIZE - 1], (uint8_t)(i + 1));
}
