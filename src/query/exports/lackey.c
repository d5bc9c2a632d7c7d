// SPDX-License-Identifier: MIT
/* lackey.c - see lackey.h
 *
 *   I  00401000,5      an instruction of 5 bytes is fetched
 *    L 004030a0,4      it loads, stores, or does both at the same place (M)
 *
 * Threads follow one another as they ran.  What the kernel writes is no reference of the program.  Instructions that the
 * engine executes itself (`rep movs`, xsave) have their stores in a message, one for all the bytes in a row; their
 * loads are not in the trace.
 *
 * LACKEY-1  A load is joined with the store that follows it only if both are of one instruction that reads and
 *     writes this place. (not checked: test_exports compares with lackey) */
#include "query/exports/lackey.h"

#include "format/window/cursor.h"
#include "format/window/window_make.h"
#include "query/text/user_interrupt.h"

#include <inttypes.h>
#include <string.h>

struct lackey {
    struct tbd_session *session;
    struct tbd_lackey_span span;
    FILE *out;
    uint64_t blocks; /* that were written */
    /* the block that is being written: */
    uint32_t id;
    uint64_t insn, limit; /* the next instruction, and the one before which it was left */
    /* a load whose store may follow; size 0: none */
    uint64_t load;
    uint32_t load_size;
};

static void put(const struct lackey *l, const char *kind, uint64_t address, uint64_t size)
{
    fprintf(l->out, "%s %08" PRIx64 ",%" PRIu64 "\n", kind, address, size);
}

static void put_load(struct lackey *l)
{
    if (l->load_size != 0)
        put(l, " L", l->load, l->load_size);
    l->load_size = 0;
}

/* The instructions before `end`, an index. */
static void put_insns(struct lackey *l, uint64_t end)
{
    struct tbd_block_insn insn;

    if (l->insn < end)
        put_load(l);
    for (; l->insn < end && l->insn < l->limit; l->insn++) {
        if (!tbd_disas_insn(l->session->disas, l->id, (uint32_t)l->insn, &insn) || insn.length == 0)
            break;
        put(l, "I ", insn.pc, insn.length);
    }
}

static void put_access(struct lackey *l, const struct tbd_cursor *cursor)
{
    const struct tbd_op *op = cursor->op;
    uint64_t address = tbd_cursor_address(cursor);
    bool is_both = (op->flags & TBD_OPF_RMW) != 0;

    if (op->kind == TBD_OP_STORE && is_both && l->load_size == op->size && l->load == address) {
        put(l, " M", address, op->size);
        l->load_size = 0;
        return;
    }
    put_load(l);
    if (op->kind == TBD_OP_LOAD && is_both) {
        l->load = address;
        l->load_size = op->size;
    } else {
        put(l, op->kind == TBD_OP_LOAD ? " L" : " S", address, op->size);
    }
}

static void put_special(const struct lackey *l, const struct tbd_message *at)
{
    struct tbd_message message;
    struct tbd_msg_read read;
    struct tbd_write_cursor writes;
    struct tbd_write_view view;

    memcpy(&message, at, sizeof(message));
    if (message.kind == TBD_MSG_READ) {
        memcpy(&read, (const uint8_t *)at + sizeof(message), sizeof(read));
        put(l, " L", read.address, read.bytes);
    }
    if (message.kind != TBD_MSG_SPECIAL && message.kind != TBD_MSG_UNLOGGED)
        return;
    tbd_writes_first(message.kind, (const uint8_t *)at + sizeof(message), message.bytes, &writes);
    while (tbd_writes_next(&writes, &view))
        put(l, " S", view.address, view.bytes);
}

static void begin_block(struct lackey *l, const struct tbd_cursor *cursor)
{
    l->id = cursor->id;
    l->insn = 0;
    l->limit = tbd_cursor_insn_limit(cursor);
    l->blocks++;
}

static void end_block(struct lackey *l)
{
    if (l->id != 0)
        put_insns(l, UINT64_MAX);
    put_load(l);
    l->id = 0;
}

static void put_event(struct lackey *l, const struct tbd_cursor *cursor)
{
    bool is_wanted = cursor->time >= l->span.first && cursor->time < l->span.end;

    if (cursor->kind != TBD_AT_OP)
        end_block(l);
    if (!is_wanted)
        return;
    if (cursor->kind == TBD_AT_BLOCK)
        begin_block(l, cursor);
    if (cursor->kind == TBD_AT_MESSAGE)
        put_special(l, cursor->message);
    if (cursor->kind != TBD_AT_OP || l->id == 0)
        return;
    put_insns(l, (uint64_t)cursor->op->insn + 1);
    if (cursor->op->kind == TBD_OP_LOAD || cursor->op->kind == TBD_OP_STORE)
        put_access(l, cursor);
}

static void put_events(struct lackey *l, const struct tbd_window *window)
{
    struct tbd_cursor cursor;

    tbd_cursor_first(window, &cursor);
    for (; cursor.kind != TBD_AT_END; (void)tbd_cursor_next(&cursor))
        put_event(l, &cursor);
    end_block(l);
}

static enum tbd_status put_window(struct lackey *l, uint32_t index)
{
    uint32_t slices = tbd_session_slices(l->session, index, true);
    const struct tbd_window *window;
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < slices && status == TBD_OK; i++) {
        struct tbd_session_slice slice = {
            .window = index, .slice = i, .last = slices - 1, .with_loads = true
        };

        status =
            tbd_is_interrupted() ? TBD_INTERRUPTED : tbd_session_slice(l->session, &slice, &window);
        if (status == TBD_OK)
            put_events(l, window);
    }
    if (slices > 1)
        tbd_session_end_slices(l->session);
    return status;
}

static bool is_outside(const struct lackey *l, uint32_t index)
{
    const struct tbd_window_summary *summary = tbd_trace_window(l->session->trace, index);

    return summary->first_time >= l->span.end ||
           summary->first_time + summary->blocks <= l->span.first;
}

enum tbd_status tbd_lackey_write(struct tbd_session *session, struct tbd_lackey_span span,
                                 FILE *out)
{
    struct lackey l = { .session = session, .span = span, .out = out };
    uint32_t windows = tbd_trace_window_count(session->trace);

    for (uint32_t i = 0; i < windows; i++) {
        enum tbd_status status = is_outside(&l, i) ? TBD_OK : put_window(&l, i);

        if (tbd_session_is_of_window(status))
            tbd_session_leave_out(session, i, status);
        else if (status != TBD_OK)
            return status;
    }
    return l.blocks == 0 ? TBD_NOTFOUND : TBD_OK;
}
