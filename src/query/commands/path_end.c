// SPDX-License-Identifier: MIT
/* path_end.c - see path_end.h */
#include "query/commands/path_end.h"

#include "base/safe_stream.h"
#include "query/debuginfo/register_names.h"
#include "query/output/output.h"
#include "query/session/signal_info.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

static void put_instruction(struct tbd_rings *ring, json_t *object)
{
    uint64_t pc = ring->dump.head->regs.rip;
    struct tbd_rings_place place = tbd_rings_place_at(ring, pc);

    json_object_set_new(object, "pc", tbd_output_hex(pc));
    if (place.module != NULL)
        json_object_set_new(object, "module", tbd_output_text(place.module));
    if (place.function != NULL) {
        json_object_set_new(object, "function", tbd_output_text(place.function));
        tbd_output_count(object, "function_offset", pc - place.function_start);
    }
    if (place.line.line != 0)
        tbd_output_source(&place.line, object);
}

static json_t *regs_object(const struct tbd_regs *regs)
{
    json_t *object = json_object();

    for (uint32_t i = 0; i <= TBD_REGISTER_GS_BASE; i++)
        json_object_set_new(object, tbd_register_text(i),
                            tbd_output_hex(tbd_register_value(regs, i)));
    return object;
}

/* What is known of a signal is what the thread had when it came. */
json_t *tbd_path_end_object(struct tbd_rings *ring, bool with_regs)
{
    const struct tbd_crash_head *head = ring->dump.head;
    struct tbd_event event = { .number = head->signo, .flags = TBD_EVENT_FATAL };
    json_t *object = json_object();
    siginfo_t info;

    json_object_set_new(object, "type", json_string("end"));
    tbd_output_count(object, "pid", head->pid);
    if (head->tid != 0)
        tbd_output_count(object, "thread", head->tid);
    if (head->signo == 0)
        return object;
    memcpy(&info, head->siginfo, sizeof(info));
    if ((uint32_t)info.si_signo == head->signo) /* else the kernel said nothing */
        tbd_signal_take_info(&event, head->siginfo);
    tbd_output_signal(&event, object);
    put_instruction(ring, object);
    if (with_regs)
        json_object_set_new(object, "regs", regs_object(&head->regs));
    return object;
}

void tbd_path_end_print(const struct tbd_rings *ring, const json_t *object, bool with_regs,
                        FILE *out)
{
    const struct tbd_crash_head *head = ring->dump.head;

    if (head->signo == 0 && head->tid != 0) {
        fprintf(out, "thread %u  ended the program\n", head->tid);
        return;
    }
    if (head->signo == 0) {
        fprintf(out, "process %u  no signal of its own: it was killed, or goes on\n", head->pid);
        return;
    }
    fprintf(out, "thread %u  ", head->tid);
    tbd_output_print_signal(object, out);
    for (uint32_t i = 0; with_regs && i <= TBD_REGISTER_GS_BASE; i++)
        fprintf(out, "%-7s 0x%016" PRIx64 "%s", tbd_register_text(i),
                tbd_register_value(&head->regs, i), i % 2 == 1 ? "\n" : "   ");
}
