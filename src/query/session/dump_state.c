// SPDX-License-Identifier: MIT
/* dump_state.c - see dump_state.h
 *
 * The window begins with the registers of the thread that died; those of the others came as it began. */
#include "query/session/dump_state.h"

#include "format/reading/window_read.h"
#include "format/window/window_make.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum tbd_status refuse(struct tbd_session *session, const char *why)
{
    session->why = (struct tbd_error){ .status = TBD_NOREPLAY };
    snprintf(session->why.detail, sizeof(session->why.detail), "%s", why);
    return TBD_NOREPLAY;
}

/* A THREAD message with registers: its fixed part, struct tbd_regs, the image. */
static bool take_thread(const struct tbd_message *message, uint32_t tid, struct tbd_reg_state *out)
{
    const uint8_t *payload = (const uint8_t *)(const void *)message + sizeof(*message);
    size_t bytes = tbd_message_payload_bytes(message), used = sizeof(struct tbd_msg_thread);
    struct tbd_msg_thread thread;
    struct tbd_regs regs;

    if (tbd_message_kind(message) != TBD_MSG_THREAD || bytes < used + sizeof(regs))
        return false;
    thread = tbd_thread_message(message);
    if (thread.event != TBD_THREAD_START || thread.thread != tid)
        return false;
    memcpy(&regs, payload + used, sizeof(regs));
    used += sizeof(regs);
    if (regs.xsave_bytes > bytes - used)
        return false;
    tbd_reg_state_put(out, &regs, payload + used);
    return true;
}

static bool find(const struct tbd_window *window, uint32_t tid, struct tbd_reg_state *out)
{
    if (tid == 0 || tid == window->regs.thread) {
        tbd_reg_state_put(out, &window->regs, window->xsave);
        return true;
    }
    for (size_t i = 0; i < window->log_count; i++)
        if (take_thread(window->log[i].message, tid, out))
            return true;
    return false;
}

enum tbd_status tbd_dump_regs(struct tbd_session *session, uint32_t index,
                              struct tbd_position position, struct tbd_reg_state *out)
{
    struct tbd_window *window;
    enum tbd_status status;
    bool found;

    if (position.offset != 0)
        return refuse(session, "a crash dump has registers at 0+0 only");
    status = tbd_window_load(session->trace, index, false, &window, &session->why);
    if (status != TBD_OK)
        return status;
    memset(out, 0, sizeof(*out));
    out->position = position;
    found = find(window, session->thread, out);
    tbd_window_free(window);
    return found ? TBD_OK : refuse(session, "the crash dump has no registers of this thread");
}

static bool take_calling(const struct tbd_message *message, uint32_t tid,
                         struct tbd_msg_calling *out)
{
    if (tbd_message_kind(message) != TBD_MSG_CALLING)
        return false;
    memcpy(out, (const uint8_t *)(const void *)message + sizeof(*message), sizeof(*out));
    return out->thread == tid;
}

enum tbd_status tbd_dump_calling(struct tbd_session *session, uint32_t index, uint32_t tid,
                                 struct tbd_msg_calling *out)
{
    struct tbd_window *window;
    enum tbd_status status = tbd_window_load(session->trace, index, false, &window, &session->why);
    bool found = false;

    if (status != TBD_OK)
        return status;
    for (size_t i = 0; i < window->log_count && !found; i++)
        found = take_calling(window->log[i].message, tid, out);
    tbd_window_free(window);
    return found ? TBD_OK : TBD_NOTFOUND;
}
