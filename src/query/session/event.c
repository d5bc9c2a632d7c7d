// SPDX-License-Identifier: MIT
/* event.c - names of event types, and the registers that an event knows without a replay
 *
 * The calling convention and the system call convention say which argument is in which register. A
 * call's operands are recorded just before the call, which changes only rsp, so they are also valid
 * at the function's first instruction. */
#include "query/session/event.h"

#include <string.h>

static const char *const type_names[TBD_EVENT_TYPE_COUNT] = {
    [TBD_EVENT_POSITION] = "position",   [TBD_EVENT_FUNC_ENTER] = "func_enter",
    [TBD_EVENT_FUNC_EXIT] = "func_exit", [TBD_EVENT_BLOCK_ENTRY] = "block_entry",
    [TBD_EVENT_STORE] = "store",         [TBD_EVENT_LOAD] = "load",
    [TBD_EVENT_SYSCALL] = "syscall",     [TBD_EVENT_THREAD_SWITCH] = "thread_switch",
    [TBD_EVENT_LINE] = "line",           [TBD_EVENT_SIGNAL] = "signal",
    [TBD_EVENT_STATE] = "state",
};

static const uint8_t call_args[6] = { TBD_RDI, TBD_RSI, TBD_RDX, TBD_RCX, TBD_R8, TBD_R9 };
static const uint8_t syscall_args[6] = { TBD_RDI, TBD_RSI, TBD_RDX, TBD_R10, TBD_R8, TBD_R9 };

const char *tbd_event_type_name(enum tbd_event_type type)
{
    if (type == TBD_EVENT_CALL)
        return "row of calls";
    return (unsigned)type < TBD_EVENT_TYPE_COUNT ? type_names[type] : "unknown";
}

enum tbd_event_type tbd_event_type_find(const char *name, size_t bytes)
{
    for (unsigned i = TBD_EVENT_FUNC_ENTER; i < TBD_EVENT_TYPE_COUNT; i++) {
        if (strlen(type_names[i]) == bytes && memcmp(type_names[i], name, bytes) == 0)
            return (enum tbd_event_type)i;
    }
    return TBD_EVENT_POSITION;
}

uint64_t tbd_event_bytes_value(const uint8_t *bytes, uint64_t size)
{
    uint64_t value = 0;

    memcpy(&value, bytes, size < 8 ? (size_t)size : 8);
    return value;
}

static bool find_argument(const uint8_t *order, const struct tbd_event *event, unsigned reg,
                          uint64_t *out)
{
    for (unsigned i = 0; i < 6; i++) {
        if (order[i] == reg) {
            *out = event->args[i];
            return true;
        }
    }
    return false;
}

void tbd_event_take_operands(struct tbd_event *event, const struct tbd_regs *regs)
{
    event->sp = regs->gpr[TBD_RSP];
    for (unsigned i = 0; i < 6; i++)
        event->args[i] = regs->gpr[call_args[i]];
    event->flags |= TBD_EVENT_HAS_SP;
    event->flags &= ~TBD_EVENT_BARE;
}

bool tbd_event_register(const struct tbd_event *event, unsigned reg, uint64_t *out)
{
    if (reg == TBD_RSP && (event->flags & TBD_EVENT_HAS_SP) != 0) {
        *out = event->sp;
        return true;
    }
    if ((event->flags & TBD_EVENT_BARE) != 0)
        return false;
    if (event->type == TBD_EVENT_FUNC_ENTER || event->type == TBD_EVENT_CALL)
        return find_argument(call_args, event, reg, out);
    if (event->type == TBD_EVENT_FUNC_EXIT && reg == TBD_RAX) {
        *out = event->retval;
        return true;
    }
    if (event->type != TBD_EVENT_SYSCALL)
        return false;
    if (reg == TBD_RAX) {
        *out = event->number;
        return true;
    }
    return find_argument(syscall_args, event, reg, out);
}

struct tbd_call_entry tbd_call_entry_of(const struct tbd_event *enter)
{
    struct tbd_call_entry entry = {
        .position = enter->position,
        .pc = enter->pc,
        .from = enter->from,
        .called_at = enter->called_at,
        .sp = enter->sp,
        .kept = enter->kept,
        .nesting = (uint32_t)enter->number,
        .thread = enter->thread,
        .flags = enter->flags,
        .block = enter->block,
    };

    memcpy(entry.args, enter->args, sizeof(entry.args));
    return entry;
}

struct tbd_event tbd_call_entry_event(const struct tbd_call_entry *entry)
{
    struct tbd_event event = {
        .type = TBD_EVENT_FUNC_ENTER,
        .position = entry->position,
        .pc = entry->pc,
        .from = entry->from,
        .called_at = entry->called_at,
        .sp = entry->sp,
        .kept = entry->kept,
        .number = entry->nesting,
        .thread = entry->thread,
        .flags = entry->flags,
        .block = entry->block,
    };

    memcpy(event.args, entry->args, sizeof(event.args));
    return event;
}
