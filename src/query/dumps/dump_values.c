// SPDX-License-Identifier: MIT
/* dump_values.c - see dump_values.h: the position, and its registers */
#include "query/dumps/dump_values.h"

#include "query/dumps/dump_values_private.h"
#include "query/debuginfo/register_names.h"
#include "query/output/output.h"

#include <inttypes.h>
#include <string.h>

/* ---- the position ---- */

static struct tbd_rings_thread *thread_of(struct tbd_dump_run *dump, uint32_t tid)
{
    if (tid != 0)
        dump->tid = tid;
    return tbd_dump_thread(dump);
}

static enum tbd_exit not_there(const struct tbd_command_run *run,
                               const struct tbd_session_before *before)
{
    fprintf(stderr, "tbdq: %.*s: -%" PRIu64 "+%" PRIu32 " is not in the ring of the thread\n",
            (int)strcspn(run->text, " "), run->text, before->back, before->insn);
    return TBD_EXIT_NOT_FOUND;
}

enum tbd_exit tbd_dump_values_open(struct tbd_command_run *run, struct tbd_dump_values *out)
{
    struct tbd_session_before before = tbd_session_before(run->session);
    struct tbd_rings_thread *thread;
    enum tbd_status status;
    enum tbd_exit result;
    uint64_t step;

    out->past = NULL;
    result = tbd_dump_open(run, &out->dump);
    if (result != TBD_EXIT_FOUND)
        return result;
    thread = thread_of(&out->dump, before.thread);
    if (thread == NULL || !tbd_rings_has(thread, before.back) ||
        before.insn >= thread->walked.steps[tbd_rings_step_at(thread, before.back)].insns)
        return not_there(run, &before);
    step = tbd_rings_step_at(thread, before.back);
    status = tbd_past_take(run->session, thread, step, TBD_PAST_BEFORE, step, &out->past);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    return tbd_past_go(out->past, step, before.insn) ? TBD_EXIT_FOUND : not_there(run, &before);
}

void tbd_dump_values_close(struct tbd_dump_values *values)
{
    tbd_past_give_back(values->past);
    tbd_dump_close(&values->dump);
}

bool tbd_dump_values_look_farther(struct tbd_dump_values *values)
{
    struct tbd_past *near = values->past, *far = NULL;
    uint64_t after = tbd_past_insns_from(near->thread, near->step);

    if (near->first_step == 0 || after + TBD_PAST_FAR >= TBD_PAST_MOST ||
        tbd_past_take(near->session, near->thread, near->step, TBD_PAST_FAR, near->step, &far) !=
            TBD_OK)
        return false;
    if (!tbd_past_go(far, near->step, near->insn)) {
        tbd_past_give_back(far);
        return false;
    }
    values->past = far;
    tbd_past_give_back(near);
    return true;
}

void tbd_dump_values_put_position(const struct tbd_dump_values *values, json_t *object)
{
    const struct tbd_past *past = values->past;
    struct tbd_dump_place place = { past->thread, past->step, past->insn };

    json_object_set_new(object, "position", tbd_dump_position_text(&place));
    json_object_set_new(object, "thread", json_integer(past->thread->tid));
}

void tbd_dump_values_put_certainty(json_t *object, enum tbd_certainty certainty)
{
    json_object_set_new(object, "certainty", json_string(tbd_certainty_text(certainty)));
}

/* ---- regs ---- */

/* The registers of `regs`, and what of each is a status or other bit that is followed. */
struct shown_register {
    uint32_t which;
    unsigned place;
    uint64_t bits;
};

static struct shown_register shown_register(uint32_t which)
{
    if (which < TBD_REG_COUNT)
        return (struct shown_register){ which, which, UINT64_MAX };
    if (which == TBD_REGISTER_RFLAGS)
        return (struct shown_register){ which, TBD_PLACE_FLAGS, TBD_STATUS_FLAGS };
    return (struct shown_register){ which,
                                    which == TBD_REGISTER_FS_BASE ? TBD_PLACE_FS : TBD_PLACE_GS,
                                    UINT64_MAX };
}

static json_t *register_object(const struct tbd_past *past, uint32_t which)
{
    struct shown_register shown = shown_register(which);
    struct tbd_simulated value = tbd_past_place(past, shown.place);
    enum tbd_certainty certainty = tbd_past_certainty(value, shown.bits);
    json_t *object = json_object();

    if (which == TBD_REGISTER_RIP) {
        value.bits.value = tbd_past_pc(past);
        certainty = TBD_EXACT;
    }
    json_object_set_new(object, "value",
                        certainty == TBD_UNKNOWN ? json_null() : tbd_output_hex(value.bits.value));
    tbd_dump_values_put_certainty(object, certainty);
    return object;
}

static bool all_registers_known(const struct tbd_past *past)
{
    for (unsigned place = 0; place < TBD_REG_COUNT; place++)
        if (tbd_past_certainty(tbd_past_place(past, place), UINT64_MAX) == TBD_UNKNOWN)
            return false;
    return true;
}

static void print_register(FILE *out, uint32_t which, const json_t *object)
{
    const char *value = json_string_value(json_object_get(object, "value"));
    const char *certainty = json_string_value(json_object_get(object, "certainty"));
    char text[64];

    snprintf(text, sizeof(text), "%s%s%s", value != NULL ? value : "", value != NULL ? "  " : "",
             value != NULL && strcmp(certainty, "exact") == 0 ? "" : certainty);
    fprintf(out, "%-7s %-30s%s", tbd_register_text(which), text, which % 2 == 1 ? "\n" : " ");
}

enum tbd_exit tbd_dump_run_regs(struct tbd_command_run *run)
{
    struct tbd_dump_values values;
    enum tbd_exit result = tbd_dump_values_open(run, &values);
    json_t *all = json_object();

    if (result == TBD_EXIT_FOUND && run->argc != 0)
        result = tbd_command_usage(run, "regs takes no arguments but a thread");
    if (result == TBD_EXIT_FOUND)
        tbd_dump_values_put_position(&values, all);
    if (result == TBD_EXIT_FOUND && !all_registers_known(values.past))
        (void)tbd_dump_values_look_farther(&values);
    for (uint32_t i = 0; result == TBD_EXIT_FOUND && i <= TBD_REGISTER_GS_BASE; i++) {
        json_t *object = register_object(values.past, i);

        if (!run->session->json)
            print_register(run->out, i, object);
        json_object_set_new(all, tbd_register_text(i), object);
    }
    if (result == TBD_EXIT_FOUND && run->session->json)
        tbd_output_line(json_incref(all), run->out);
    json_decref(all);
    tbd_dump_values_close(&values);
    return result;
}
