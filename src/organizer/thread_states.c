// SPDX-License-Identifier: MIT
/* thread_states.c - see thread_states.h */
#include "organizer/thread_states.h"

#include "base/array.h"
#include "format/window/window_make.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* ---- from window to window ---- */

void tbd_end_state_free(struct tbd_end_state *state)
{
    free(state->others);
    free(state->images);
    *state = (struct tbd_end_state){ 0 };
}

static uint8_t *copy_image(struct tbd_thread_state *to, const struct tbd_regs *regs,
                           const uint8_t *xsave, uint8_t *at)
{
    to->regs = *regs;
    to->xsave = at;
    if (regs->xsave_bytes)
        memcpy(at, xsave, regs->xsave_bytes);
    return at + regs->xsave_bytes;
}

bool tbd_end_state_take(struct tbd_end_state *state, const struct tbd_window *window)
{
    size_t bytes = window->end_regs.xsave_bytes + 1ul;
    uint8_t *at;

    tbd_end_state_free(state);
    for (size_t i = 0; i < window->end_thread_count; i++)
        bytes += window->end_threads[i].regs.xsave_bytes;
    at = state->images = malloc(bytes);
    state->others = calloc(window->end_thread_count + 1, sizeof(*state->others));
    if (!at || !state->others)
        return false;
    at = copy_image(&state->running, &window->end_regs, window->end_xsave, at);
    for (size_t i = 0; i < window->end_thread_count; i++)
        at = copy_image(&state->others[i], &window->end_threads[i].regs,
                        window->end_threads[i].xsave, at);
    state->count = window->end_thread_count;
    return true;
}

bool tbd_end_state_give(const struct tbd_end_state *state, struct tbd_window *window)
{
    size_t bytes = state->running.regs.xsave_bytes;
    struct tbd_thread_state *threads;
    struct tbd_thread_state running;
    uint8_t *at;

    if (!state->running.xsave)
        return true;
    for (size_t i = 0; i < state->count; i++)
        bytes += state->others[i].regs.xsave_bytes;
    at = tbd_window_memory(window, bytes);
    threads = tbd_window_memory(window, state->count * sizeof(*threads));
    if (!at || !threads)
        return false;
    at = copy_image(&running, &state->running.regs, state->running.xsave, at);
    for (size_t i = 0; i < state->count; i++)
        at = copy_image(&threads[i], &state->others[i].regs, state->others[i].xsave, at);
    window->regs = running.regs;
    window->xsave = running.xsave;
    window->threads = threads;
    window->thread_count = state->count;
    return true;
}

/* ---- the index ---- */

struct tally {
    struct tbd_disk_ran *ran;
    size_t count, capacity;
    size_t running; /* index in ran */
    uint64_t since; /* relative time of its last turn's first block */
};

static bool give_control(struct tally *tally, uint32_t thread)
{
    size_t i = 0;

    while (i < tally->count && tally->ran[i].thread != thread)
        i++;
    if (i == tally->count) {
        if (!tbd_array_grow(&tally->ran, tally->count, &tally->capacity, sizeof(*tally->ran)))
            return false;
        tally->ran[tally->count++] = (struct tbd_disk_ran){ .thread = thread };
    }
    tally->running = i;
    return true;
}

static bool take_turn(struct tally *tally, const struct tbd_msg_thread *message, uint64_t time)
{
    tally->ran[tally->running].blocks += time - tally->since;
    tally->since = time;
    if (!give_control(tally, message->thread))
        return false;
    tally->ran[tally->running].switches++;
    return true;
}

static void note_event(struct tbd_writer *writer, const struct tbd_disk_when *when,
                       const struct tbd_disk_thread *thread)
{
    tbd_writer_event(writer, TBD_REC_THREAD, when, thread, sizeof(*thread));
}

/* prctl(PR_SET_NAME): a question reads the name itself from memory. */
static void note_name(struct tbd_writer *writer, const struct tbd_disk_when *when,
                      const struct tbd_message *message, uint32_t thread)
{
    struct tbd_disk_thread note = { .event = TBD_DISK_THREAD_NAMED, .thread = thread };
    struct tbd_msg_syscall call;

    memcpy(&call, (const uint8_t *)(const void *)message + sizeof(*message), sizeof(call));
    note.name = call.args[1];
    if (call.number == SYS_prctl && call.args[0] == PR_SET_NAME && !call.result)
        note_event(writer, when, &note);
}

static bool note_message(struct tbd_writer *writer, struct tally *tally,
                         const struct tbd_disk_when *when, const struct tbd_message *message)
{
    struct tbd_msg_thread thread;
    struct tbd_disk_thread note;

    if (tbd_message_kind(message) == TBD_MSG_SYSCALL)
        note_name(writer, when, message, tally->ran[tally->running].thread);
    if (tbd_message_kind(message) != TBD_MSG_THREAD)
        return true;
    thread = tbd_thread_message(message);
    note = (struct tbd_disk_thread){
        .event = thread.event, .thread = thread.thread, .from = thread.from, .value = thread.reason
    };
    if (thread.event == TBD_THREAD_SWITCH)
        return take_turn(tally, &thread, when->time);
    note_event(writer, when, &note);
    return true;
}

/* The thread in control at the end comes last. */
static void put_ran(struct tbd_writer *writer, const struct tbd_window *window, struct tally *tally)
{
    struct tbd_disk_when when = { .window = window->index };
    struct tbd_disk_ran *last = &tally->ran[tally->count - 1];
    struct tbd_disk_ran running = tally->ran[tally->running];

    running.blocks += window->blocks - tally->since;
    tally->ran[tally->running] = *last;
    *last = running;
    tbd_writer_event(writer, TBD_REC_RAN, &when, tally->ran, tally->count * sizeof(*tally->ran));
}

bool tbd_threads_note(struct tbd_writer *writer, const struct tbd_window *window, bool had_turns)
{
    struct tally tally = { 0 };
    bool good = give_control(&tally, window->regs.thread);

    for (size_t i = 0; i < window->log_count && good; i++) {
        const struct tbd_log_entry *entry = &window->log[i];
        struct tbd_disk_when when = { window->index, (uint32_t)i, entry->time };

        good = note_message(writer, &tally, &when, entry->message);
    }
    if (good && had_turns)
        put_ran(writer, window, &tally);
    free(tally.ran);
    return good;
}
