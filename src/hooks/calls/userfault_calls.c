// SPDX-License-Identifier: MIT
/* userfault_calls.c - userfaultfd and its ioctls; the calls that name memory whose pages may be
 * missing (hooks/memory/userfault.h)
 *
 * Descriptors of this process's own memory are known by their inodes.  Context: APP. */
#include "hooks/calls/userfault_calls.h"

#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/call_families.h"

#include "hooks/memory/safe_copy.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"
#include "hooks/table/sys_table.h"

enum { MAX_DESCRIPTORS = 64 };
/* linux/userfaultfd.h */
struct descriptor {
    uint64_t inode;
    uint64_t features;
};

static struct {
    struct descriptor descriptor[MAX_DESCRIPTORS];
    uint32_t count;
} known;

void tbd_userfault_forget_descriptors(void)
{
    known.count = 0;
}

/* ---- which calls may wait for a page ---- */

static bool is_pointer(const struct tbd_sys_arg *arg)
{
    return arg->show == TBD_SHOW_PTR || arg->show == TBD_SHOW_STR || arg->show == TBD_SHOW_DATA ||
           arg->show == TBD_SHOW_IOVEC || arg->show == TBD_SHOW_MASK ||
           arg->show == TBD_SHOW_MASK_IN || arg->show == TBD_SHOW_OUT;
}

static bool is_output_missing(const struct tbd_sys_call *sys)
{
    static struct tbd_sys_range may[TBD_SYS_MAX_RANGES];
    size_t count = tbd_syscall_may_write(sys, may, TBD_SYS_MAX_RANGES);

    for (size_t i = 0; i < count; i++)
        for (uint64_t at = may[i].address; at < may[i].address + may[i].bytes;
             at = tbd_userfault_page_of(at) + TBD_PAGE_SIZE)
            if (tbd_userfault_may_miss(at))
                return true;
    return false;
}

bool tbd_userfault_has_pointer(const struct tbd_sys_call *sys)
{
    const struct tbd_sys_row *row = tbd_userfault_count ? tbd_sys_row(sys->number) : NULL;

    for (unsigned i = 0; row && i < 6; i++)
        if (is_pointer(&row->args[i]) && tbd_userfault_may_miss(sys->args[i]))
            return true;
    return row && is_output_missing(sys);
}

/* ---- userfaultfd and its ioctls ---- */

static uint64_t inode_of(int64_t fd)
{
    uint64_t stat[18];

    if (tbd_sys_failed(tbd_sys3(__NR_fstat, (uint64_t)fd, tbd_sys_pointer(stat), 0)))
        return 0;
    return stat[1];
}

static struct descriptor *find_own(int64_t fd)
{
    uint64_t inode = known.count ? inode_of(fd) : 0;

    for (uint32_t i = 0; inode && i < known.count; i++)
        if (known.descriptor[i].inode == inode)
            return &known.descriptor[i];
    return NULL;
}

static void note_descriptor(const struct tbd_call *call, uint64_t flags)
{
    struct descriptor *old = call->result < 0 ? NULL : find_own(call->result);

    if (call->result < 0)
        return;
    tbd_userfault_note_descriptor(0, !(flags & UFFD_USER_MODE_ONLY));
    if (!old)
        old = &known.descriptor[known.count < MAX_DESCRIPTORS ? known.count++ : 0];
    *old = (struct descriptor){ .inode = inode_of(call->result) };
}

static void open_descriptor(struct tbd_call *call, uint64_t flags)
{
    if (!tbd_recording_has_pages())
        tbd_call_detach(call, "it handles its own page faults (userfaultfd)");
    call->result = tbd_call_perform(&call->sys);
    note_descriptor(call, flags);
    tbd_call_finish(call);
}

void tbd_call_userfaultfd(struct tbd_call *call)
{
    open_descriptor(call, call->sys.args[0]);
}

/* Pages that another descriptor has moved away are missing now, or zero. */
static void note_moved_from(struct tbd_call *call, uint64_t from, int64_t bytes)
{
    struct tbd_sys_range range = { from, bytes > 0 ? (uint64_t)bytes : 0 };

    tbd_userfault_dropped(range.address, range.address + range.bytes);
    tbd_effects_written(call->effects, &range, 1);
}

/* Notes the words of the argument before and after. */
static void note_ioctl(struct tbd_call *call, struct descriptor *own, const uint64_t *before,
                       const uint64_t *after)
{
    struct tbd_sys_range filled = { before[0], before[1] };
    struct tbd_userfault_range registered = { before[0], before[0] + before[1], before[2],
                                              own->features };
    uint32_t others = 0;

    switch (call->sys.args[1] & 0xff) {
    case _UFFDIO_API:
        own->features = call->result == 0 ? before[1] : own->features;
        tbd_userfault_note_descriptor(own->features, false);
        return;
    case _UFFDIO_REGISTER:
        if (call->result == 0)
            tbd_userfault_register(&registered);
        return;
    case _UFFDIO_UNREGISTER:
        if (call->result == 0)
            tbd_userfault_unregister(before[0], before[0] + before[1]);
        return;
    case _UFFDIO_MOVE:
        note_moved_from(call, before[1], (int64_t)after[4]);
        filled.bytes = before[2];
        break;
    case _UFFDIO_COPY: filled.bytes = before[2]; break;
    case _UFFDIO_ZEROPAGE:
    case _UFFDIO_CONTINUE: break;
    default: return;
    }
    tbd_userfault_adopt(call->effects, &filled, &others); /* of those pages that are present */
}

static void read_words(uint64_t address, uint64_t words[5], uint32_t bytes)
{
    memset(words, 0, 5 * sizeof(*words));
    tbd_copy_from_program(words, address, bytes < 40 ? bytes : 40);
}

/* False: it is none of these commands. */
static bool command_descriptor(struct tbd_call *call)
{
    uint32_t command = (uint32_t)call->sys.args[1];
    uint32_t bytes = command >> 16 & 0x3fff;
    uint64_t before[5], after[5];
    struct descriptor *own;

    if ((command >> 8 & 0xff) != UFFDIO)
        return false;
    if (!bytes) { /* USERFAULTFD_IOC_NEW */
        open_descriptor(call, 0);
        return true;
    }
    own = find_own((int32_t)call->sys.args[0]);
    if (!own)
        return false;
    read_words(call->sys.args[2], before, bytes);
    if ((command & 0xff) == _UFFDIO_MOVE)
        tbd_effects_watch(call->effects, &(struct tbd_sys_range){ before[1], before[2] }, 1);
    tbd_call_perform_here(call);
    if (call->result != TBD_CALL_INTERRUPTED) {
        read_words(call->sys.args[2], after, bytes);
        note_ioctl(call, own, before, after);
    }
    tbd_call_finish(call);
    return true;
}

void tbd_call_ioctl(struct tbd_call *call)
{
    if (!command_descriptor(call))
        tbd_call_plain(call);
}
