// SPDX-License-Identifier: MIT
/* syscalls.c - the table itself: rows of syscalls.def as constant data, and the look-ups by number and name
 *
 * No state, no calls, any context.  What the rows mean for memory is in sys_effects.c.
 */
#include "hooks/table/syscalls.h"

#include "hooks/table/sys_table.h"

// clang-format off
/* Words of syscalls.def: flags. */
#define BLOCKS TBD_SYS_BLOCKS
#define YIELDS TBD_SYS_YIELDS
#define ASYNC TBD_SYS_ASYNC
#define OPENS TBD_SYS_OPENS
#define WRITES TBD_SYS_WRITES
#define VDSO TBD_SYS_VDSO
#define STRICT TBD_SYS_STRICT
#define CHANGES TBD_SYS_CHANGES
#define CONNECTS TBD_SYS_CONNECTS

/* Words of syscalls.def: arguments that are only shown. */
#define VOID { .show = TBD_SHOW_NONE }
#define FD { .show = TBD_SHOW_FD }
#define INT { .show = TBD_SHOW_INT }
#define UINT { .show = TBD_SHOW_UINT }
#define LONG { .show = TBD_SHOW_LONG }
#define ULONG { .show = TBD_SHOW_ULONG }
#define HEX { .show = TBD_SHOW_HEX }
#define PTR { .show = TBD_SHOW_PTR }
#define STR { .show = TBD_SHOW_STR }
#define MODE { .show = TBD_SHOW_MODE }
#define SIGNAL { .show = TBD_SHOW_SIGNAL }
#define ATFD { .show = TBD_SHOW_ATFD }
#define DATA(arg) { .show = TBD_SHOW_DATA, .length = (arg) }
#define IOVEC(arg) { .show = TBD_SHOW_IOVEC, .length = (arg) }
#define MASK { .show = TBD_SHOW_MASK }
#define MASK_IN { .show = TBD_SHOW_MASK_IN }
#define FLAGS(name) { .show = TBD_SHOW_FLAGS, .set = TBD_SET_##name }

/* Words of syscalls.def: memory that the kernel writes. */
#define WRITTEN(kind, cases, arg, type, size)                                                       \
    { .show = TBD_SHOW_OUT, .effect = TBD_EFFECT_##kind, .when = TBD_WHEN_##cases,                 \
      .length = (arg), .width = TBD_WIDTH_##type, .unit = (size) }
#define OUT(bytes) WRITTEN(FIXED, SUCCESS, 0, 64, bytes)
#define OUT_POSITIVE(bytes) WRITTEN(FIXED, POSITIVE, 0, 64, bytes)
#define OUT_EINTR(bytes) WRITTEN(FIXED, EINTR, 0, 64, bytes)
#define OUT_ALWAYS(bytes) WRITTEN(FIXED, ALWAYS, 0, 64, bytes)
#define OUT_BYTES(arg) WRITTEN(ARRAY, SUCCESS, arg, 64, 1)
#define OUT_BYTES_U32(arg) WRITTEN(ARRAY, SUCCESS, arg, U32, 1)
#define OUT_ARRAY(arg, bytes) WRITTEN(ARRAY, RESULT_OR_EINTR, arg, U32, bytes)
#define OUT_ARRAY_ALWAYS(arg, bytes) WRITTEN(ARRAY, ALWAYS, arg, 64, bytes)
#define OUT_RESULT(arg) WRITTEN(RESULT, SUCCESS, arg, 64, 1)
#define OUT_RESULT_U32(arg) WRITTEN(RESULT, SUCCESS, arg, U32, 1)
#define OUT_RESULT_I32(arg) WRITTEN(RESULT, SUCCESS, arg, I32, 1)
#define OUT_ITEMS(arg, bytes) WRITTEN(RESULT, SUCCESS, arg, I32, bytes)
#define OUT_ITEMS_64(arg, bytes) WRITTEN(RESULT, SUCCESS, arg, 64, bytes)
#define OUT_LENGTH(arg) WRITTEN(LENGTH, SUCCESS, arg, 64, 1)
#define OUT_FD_SET WRITTEN(FD_SET, SUCCESS, 0, I32, 1)
#define OUT_IOVEC(arg) WRITTEN(IOVEC, SUCCESS, arg, 64, 1)
#define OTHER(name) WRITTEN(OTHER, ALWAYS, 0, 64, TBD_OTHER_##name)
// clang-format on

static const struct tbd_sys_row rows[] = {
#define X(number, word, mode_, facts, ...)                                                         \
    [number] = {                                                                                   \
        .name = #word, .mode = TBD_SYS_##mode_, .flags = (facts), .args = { __VA_ARGS__ }          \
    },
#include "hooks/table/syscalls.def"
#undef X
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) == TBD_SYS_COUNT,
               "TBD_SYS_COUNT follows the last row");

const struct tbd_sys_row *tbd_sys_row(uint64_t number)
{
    if (number >= TBD_SYS_COUNT || !rows[number].name)
        return NULL;
    return &rows[number];
}

enum tbd_sys_mode tbd_syscall_mode(uint64_t number)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);

    return row ? (enum tbd_sys_mode)row->mode : TBD_SYS_UNKNOWN;
}

uint32_t tbd_syscall_flags(uint64_t number)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);

    return row ? row->flags : 0;
}

const char *tbd_syscall_name(uint64_t number)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);

    return row ? row->name : NULL;
}

static bool is_same(const char *name, const char *other, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] == '\0' || name[i] != other[i])
            return false;
    }
    return name[bytes] == '\0';
}

int64_t tbd_syscall_number(const char *name, size_t bytes)
{
    for (uint32_t number = 0; number < TBD_SYS_COUNT; number++) {
        if (rows[number].name && is_same(rows[number].name, name, bytes))
            return number;
    }
    return -1;
}

bool tbd_syscall_is_descriptor(uint64_t number, unsigned arg)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);

    return row != NULL && arg < 6 &&
           (row->args[arg].show == TBD_SHOW_FD || row->args[arg].show == TBD_SHOW_ATFD);
}

unsigned tbd_syscall_arg_count(uint64_t number)
{
    const struct tbd_sys_row *row = tbd_sys_row(number);
    unsigned count = 0;

    while (row && count < 6 && row->args[count].show != TBD_SHOW_NONE)
        count++;
    return count;
}
