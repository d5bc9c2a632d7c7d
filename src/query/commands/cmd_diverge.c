// SPDX-License-Identifier: MIT
/* cmd_diverge.c - a window that a replay cannot repeat: what differs first, and at its end all that differs
 *
 *   what differs first    in the log: play's next message, and where the replay was; or what a comparison of ends says
 *   registers, pages      of the ends, if the replay came there
 *
 * Rows of a window have no order of time: registers of threads as they come, pages by address. */
#include "query/commands/commands.h"
#include "query/commands/diverged.h"
#include "query/output/output.h"

#include "base/layout.h"
#include "base/safe_stream.h"
#include "hooks/table/syscalls.h"
#include "replay/window_ends.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 16u /* of a page */

struct diverging {
    struct tbd_command_run *run;
    uint32_t window;
    struct tbd_window_ends ends;
    struct tbd_divergence divergence;
};

static json_t *row_of(const struct diverging *d)
{
    return json_pack("{s:I}", "window", (json_int_t)d->window);
}

static void set_text(json_t *object, const char *name, const char *text)
{
    json_object_set_new(object, name, text ? tbd_output_text(text) : json_null());
}

/* ---- what differs first ---- */

static const char *name_at(const struct diverging *d, uint64_t address, char *out, size_t bytes)
{
    return tbd_symbols_format(d->run->session->symbols, d->window, address, out, bytes);
}

/* A system call that has no result yet. */
static void print_call(const struct tbd_regs *regs, char *out, size_t bytes)
{
    const uint64_t *gpr = regs->gpr;
    struct tbd_sys_call call = { .number = gpr[TBD_RAX],
                                 .args = { gpr[TBD_RDI], gpr[TBD_RSI], gpr[TBD_RDX], gpr[TBD_R10],
                                           gpr[TBD_R8], gpr[TBD_R9] } };
    char *result;

    tbd_syscall_print(&call, 0, NULL, NULL, out, bytes);
    result = strstr(out, ") = ");
    if (result)
        result[1] = 0;
}

static json_t *place_object(const struct diverging *d)
{
    const struct tbd_regs *regs = &d->divergence.regs;
    json_t *object = json_object();
    char text[256];

    json_object_set_new(object, "pc", tbd_output_hex(regs->rip));
    tbd_output_symbol(d->run->session, d->window, regs->rip, object);
    text[0] = 0;
    if (d->divergence.is_call)
        print_call(regs, text, sizeof(text));
    set_text(object, "call", text[0] ? text : NULL);
    return object;
}

static void put_sides(const struct diverging *d, json_t *row)
{
    char text[256];

    if (!d->divergence.has_place)
        return;
    if (d->ends.play &&
        tbd_diverged_logged(d->ends.play, d->divergence.log_next, text, sizeof(text)))
        set_text(row, "play", text);
    else
        set_text(row, "play", NULL);
    json_object_set_new(row, "replay", place_object(d));
}

static json_t *first_row(const struct diverging *d)
{
    const struct tbd_divergence *divergence = &d->divergence;
    json_t *row = row_of(d);

    json_object_set_new(row, "time", json_integer((json_int_t)divergence->position.time));
    json_object_set_new(row, "offset", json_integer((json_int_t)divergence->position.offset));
    if (divergence->thread)
        json_object_set_new(row, "thread", json_integer((json_int_t)divergence->thread));
    set_text(row, "what", divergence->what);
    put_sides(d, row);
    json_object_set_new(row, "before", tbd_diverged_before(d->run->session, divergence));
    set_text(row, "likely", tbd_diverged_cause(divergence->what));
    return row;
}

static void print_place(const struct diverging *d, FILE *out)
{
    const struct tbd_regs *regs = &d->divergence.regs;
    char text[256] = "";

    fprintf(out, "  replay   0x%" PRIx64 " %s", regs->rip,
            tbd_shown(name_at(d, regs->rip, text, sizeof(text))));
    if (d->divergence.is_call) {
        print_call(regs, text, sizeof(text));
        fprintf(out, "  %s", tbd_shown(text));
    }
    fputc('\n', out);
}

static void print_sides(const struct diverging *d, FILE *out)
{
    char text[256];

    if (!d->divergence.has_place)
        return;
    if (!d->ends.play ||
        !tbd_diverged_logged(d->ends.play, d->divergence.log_next, text, sizeof(text)))
        snprintf(text, sizeof(text), "nothing more in this window");
    fprintf(out, "  play     %s\n", tbd_shown(text));
    print_place(d, out);
}

static void print_first(const struct diverging *d)
{
    const struct tbd_divergence *divergence = &d->divergence;
    const char *cause = tbd_diverged_cause(divergence->what);
    json_t *lines = tbd_diverged_before(d->run->session, divergence);
    FILE *out = d->run->out;

    fprintf(out, "window %" PRIu32 " diverged at %" PRIu64 "+%" PRIu32, d->window,
            divergence->position.time, divergence->position.offset);
    if (divergence->thread)
        fprintf(out, " in thread %" PRIu32, divergence->thread);
    fprintf(out, ": %s\n", tbd_shown(divergence->what));
    for (size_t i = 0; i < json_array_size(lines); i++)
        fprintf(out, "    %s\n", tbd_shown(json_string_value(json_array_get(lines, i))));
    json_decref(lines);
    print_sides(d, out);
    if (cause)
        fprintf(out, "  likely: %s\n", cause);
}

/* ---- registers at the end ---- */

static void show_register(const struct diverging *d, uint32_t thread, const char *name,
                          uint64_t play, uint64_t replay)
{
    json_t *row;

    if (play == replay)
        return;
    if (!d->run->session->json) {
        fprintf(d->run->out,
                "  thread %" PRIu32 " %s: in play 0x%" PRIx64 ", in the replay 0x%" PRIx64 "\n",
                thread, name, play, replay);
        return;
    }
    row = row_of(d);
    json_object_set_new(row, "thread", json_integer((json_int_t)thread));
    set_text(row, "register", name);
    json_object_set_new(row, "play", tbd_output_hex(play));
    json_object_set_new(row, "replay", tbd_output_hex(replay));
    tbd_output_line(row, d->run->out);
}

static void show_registers(const struct diverging *d, const struct tbd_regs *play,
                           const struct tbd_regs *replay)
{
    static const char *const names[TBD_REG_COUNT] = {
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
    };

    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        show_register(d, play->thread, names[r], play->gpr[r], replay->gpr[r]);
    show_register(d, play->thread, "rip", play->rip, replay->rip);
    show_register(d, play->thread, "rflags", play->rflags, replay->rflags);
    show_register(d, play->thread, "fs_base", play->fs_base, replay->fs_base);
    show_register(d, play->thread, "gs_base", play->gs_base, replay->gs_base);
}

/* The thread in control, and those that wait on both sides. */
static void show_threads(const struct diverging *d)
{
    const struct tbd_window *play = d->ends.play, *replay = d->ends.replay;

    if (play->end_regs.thread == replay->end_regs.thread)
        show_registers(d, &play->end_regs, &replay->end_regs);
    for (size_t i = 0; i < play->end_thread_count; i++)
        for (size_t k = 0; k < replay->end_thread_count; k++)
            if (play->end_threads[i].regs.thread == replay->end_threads[k].regs.thread)
                show_registers(d, &play->end_threads[i].regs, &replay->end_threads[k].regs);
}

/* ---- pages at the end ---- */

static size_t count_differing(const uint8_t *play, const uint8_t *replay, size_t *out_first)
{
    size_t count = 0;

    for (size_t i = TBD_PAGE_SIZE; i-- > 0;)
        if (play[i] != replay[i]) {
            count++;
            *out_first = i;
        }
    return count;
}

static char *hex(const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        sprintf(out + 3 * i, "%02x ", bytes[i]);
    out[count ? 3 * count - 1 : 0] = 0;
    return out;
}

static void show_bytes(const struct diverging *d, uint64_t page, const uint8_t *play,
                       const uint8_t *replay)
{
    size_t first = 0, count = count_differing(play, replay, &first);
    size_t shown = TBD_PAGE_SIZE - first < SHOWN_BYTES ? TBD_PAGE_SIZE - first : SHOWN_BYTES;
    char expected[3 * SHOWN_BYTES + 1], found[3 * SHOWN_BYTES + 1], text[256];
    const char *name = name_at(d, page + first, text, sizeof(text));
    json_t *row;

    if (!count)
        return;
    hex(play + first, shown, expected);
    hex(replay + first, shown, found);
    if (!d->run->session->json) {
        fprintf(d->run->out,
                "  page 0x%" PRIx64 ": %zu bytes differ, from 0x%" PRIx64 "%s%s\n"
                "    play     %s\n    replay   %s\n",
                page, count, page + first, *name == '0' ? "" : " ",
                *name == '0' ? "" : tbd_shown(name), expected, found);
        return;
    }
    row = row_of(d);
    json_object_set_new(row, "page", tbd_output_hex(page));
    json_object_set_new(row, "differing", json_integer((json_int_t)count));
    json_object_set_new(row, "address", tbd_output_hex(page + first));
    set_text(row, "where", name);
    set_text(row, "play", expected);
    set_text(row, "replay", found);
    tbd_output_line(row, d->run->out);
}

static void show_one_side(const struct diverging *d, uint64_t page, bool in_play)
{
    json_t *row;

    if (!d->run->session->json) {
        fprintf(d->run->out, "  page 0x%" PRIx64 ": modified only in %s\n", page,
                in_play ? "play" : "the replay");
        return;
    }
    row = row_of(d);
    json_object_set_new(row, "page", tbd_output_hex(page));
    set_text(row, "only", in_play ? "play" : "replay");
    tbd_output_line(row, d->run->out);
}

/* Both lists are sorted. */
static void show_pages(const struct diverging *d)
{
    static const struct tbd_page_contents none = { .address = UINT64_MAX };
    const struct tbd_window *play = d->ends.play, *replay = d->ends.replay;

    for (size_t i = 0, k = 0; i < play->dirty_count || k < replay->dirty_count;) {
        const struct tbd_page_contents *a = i < play->dirty_count ? &play->dirty[i] : &none;
        const struct tbd_page_contents *b = k < replay->dirty_count ? &replay->dirty[k] : &none;

        if (a->address == b->address)
            show_bytes(d, a->address, a->bytes, b->bytes);
        else
            show_one_side(d, a->address < b->address ? a->address : b->address,
                          a->address < b->address);
        i += a->address <= b->address;
        k += b->address <= a->address;
    }
}

/* ---- the command ---- */

static void show(const struct diverging *d)
{
    if (d->run->session->json)
        tbd_output_line(first_row(d), d->run->out);
    else
        print_first(d);
    if (!d->ends.play || !d->ends.replay || !d->ends.play->complete || !d->ends.replay->complete)
        return;
    show_threads(d);
    show_pages(d);
}

static enum tbd_exit tell_of(struct tbd_command_run *run, uint32_t window)
{
    struct tbd_session *session = run->session;
    struct diverging d = { .run = run, .window = window };
    enum tbd_status status =
        tbd_replay_ends(session->replayer, 0, window, &d.ends, &d.divergence, &session->why);

    if (status == TBD_DIVERGED)
        show(&d);
    tbd_window_ends_free(&d.ends);
    if (status == TBD_DIVERGED)
        return TBD_EXIT_FOUND;
    return status ? tbd_command_fail(run, status) : TBD_EXIT_NOT_FOUND;
}

static bool parse_window(const struct tbd_command_run *run, uint32_t *out)
{
    char *end;
    unsigned long long value = strtoull(run->argv[0], &end, 10);

    *out = (uint32_t)value;
    return *run->argv[0] && !*end && value < tbd_trace_window_count(run->session->trace);
}

static enum tbd_exit none(const struct tbd_command_run *run)
{
    if (!run->session->json)
        fprintf(run->out, "every window replays as it was recorded\n");
    return TBD_EXIT_NOT_FOUND;
}

enum tbd_exit tbd_command_diverge(struct tbd_command_run *run)
{
    enum tbd_status status;
    enum tbd_exit result;
    uint32_t window;

    if (run->argc > 1)
        return tbd_command_usage(run, "diverge takes one window at most");
    if (run->argc && !parse_window(run, &window))
        return tbd_command_usage(run, "there is no such window");
    status = tbd_session_replayer(run->session);
    if (!status && !run->argc)
        status = tbd_verify_find(run, &window);
    if (status == TBD_NOTFOUND)
        return none(run);
    if (status)
        return tbd_command_fail(run, status);
    result = tell_of(run, window);
    if (result == TBD_EXIT_NOT_FOUND && !run->session->json)
        fprintf(run->out, "window %" PRIu32 " replays as it was recorded\n", window);
    return result;
}
