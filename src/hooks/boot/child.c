// SPDX-License-Identifier: MIT
/* child.c - see child.h
 *
 * The child has a copy of everything but the parent's stream and the patch areas, which are not
 * inherited (MADV_DONTFORK): so the child cannot write into the parent's stream.  All that refers
 * to the parent's trace is forgotten: block ids, known pages, marks in the touch map.  Patch areas
 * are made again at the same addresses, because tables of engine and decoder contain these
 * addresses. */
#include "hooks/boot/child.h"

#include "base/linux.h"
#include "base/log.h"
#include "base/sys.h"
#include "hooks/boot/begin.h"
#include "hooks/boot/image.h"
#include "hooks/boot/runtime.h"
#include "hooks/calls/changed_files.h"
#include "hooks/calls/lock_calls.h"
#include "hooks/calls/userfault_calls.h"
#include "hooks/instructions/slot.h"
#include "hooks/memory/code_areas.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"
#include "hooks/threads/threads.h"
#include "patcher/patcher.h"

/* madvise(DONTNEED) clears these tables: private anonymous memory reads as zero afterwards. */
static void forget_pages(void)
{
    struct tbd_pages *pages = &tbd_memory.pages;

    tbd_sys_madvise(tbd_sys_pointer(pages->touch), TBD_TOUCH_BYTES, MADV_DONTNEED);
    tbd_sys_madvise(tbd_sys_pointer(pages->known), TBD_KNOWN_BYTES, MADV_DONTNEED);
    pages->dirty = 0;
    pages->read = 0;
}

static void forget_code(void)
{
    struct tbd_codegen_config config = tbd_begin_codegen();

    tbd_patcher_configure(&config);
    tbd_slot_forget();
}

/* Reads the mappings before the patch areas exist: patch areas are not the program's. */
static bool begin(void)
{
    if (!tbd_begin_mappings(0)) {
        tbd_begin_say_no_proc();
        return false;
    }
    if (tbd_code_areas_map())
        return tbd_begin_stream() && tbd_begin_recording();
    tbd_say("no memory for a trace of process %u: it runs untraced", tbd_recording.pid);
    return false;
}

bool tbd_child_record(struct tbd_thread *thread)
{
    uint32_t parent = tbd_recording.pid;

    tbd_lock_forget();
    tbd_userfault_reset();
    tbd_userfault_forget_descriptors();
    tbd_shared_reset();
    tbd_recording.pid = (uint32_t)tbd_sys_getpid();
    tbd_recording.unknown_calls = 0;
    if (tbd_recording.pid == 1)
        return false; /* the organizer would become its child, and it would wait for it */
    if (!tbd_runtime.options.children || !tbd_recording.is_on || !begin())
        return false;
    tbd_signals_block_all();
    forget_pages();
    forget_code();
    tbd_shared_take_over();
    tbd_changed_files_child();
    tbd_recording.window_due = tbd_recording.window;
    tbd_ring_start(&tbd_recording.ring, thread, 0, tbd_recording.window_due);
    tbd_image_send_child(parent);
    TBD_LOG(TBD_LOG_INFO, "child", "pid %u, forked by %u, is recorded", tbd_recording.pid, parent);
    return true;
}
