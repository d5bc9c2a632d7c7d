// SPDX-License-Identifier: MIT
/* dump_run.c - see dump_run.h */
#include "query/dumps/dump_run.h"

#include "base/safe_stream.h"
#include "base/string.h"
#include "query/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void take_thread(struct tbd_dump_run *dump)
{
    struct tbd_command_run *run = dump->run;
    unsigned long tid;
    char *end;

    dump->tid = run->session->has_thread ? run->session->thread : 0;
    if (run->argc < 2 || strcmp(run->argv[run->argc - 2], "thread") != 0)
        return;
    tid = strtoul(run->argv[run->argc - 1], &end, 10);
    if (*end != '\0' || tid == 0 || tid > UINT32_MAX)
        return;
    dump->tid = (uint32_t)tid;
    dump->names_thread = true;
    run->argc -= 2;
}

/* Threads are looked at where the position is: another one at its end. */
static enum tbd_status reach_position(struct tbd_dump_run *dump)
{
    struct tbd_session_before before = tbd_session_before(dump->run->session);
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; status == TBD_OK && i < dump->ring->dump.head->thread_count; i++) {
        struct tbd_rings_thread *thread = &dump->ring->threads[i];
        bool is_there = before.back != 0 &&
                        (before.thread == 0 ? thread->is_asked : thread->tid == before.thread);

        status = tbd_rings_reach(dump->ring, thread, is_there ? before.back : 1);
        if (status == TBD_NOTFOUND)
            status = TBD_OK; /* said where it is needed */
    }
    return status;
}

enum tbd_exit tbd_dump_open(struct tbd_command_run *run, struct tbd_dump_run *out)
{
    enum tbd_status status;

    *out = (struct tbd_dump_run){ .run = run };
    take_thread(out);
    status = tbd_past_rings(run->session, &out->ring);
    if (status == TBD_OK)
        status = reach_position(out);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

void tbd_dump_close(struct tbd_dump_run *dump)
{
    tbd_disas_free(dump->disas);
}

struct tbd_rings_thread *tbd_dump_thread(struct tbd_dump_run *dump)
{
    for (uint32_t i = 0; i < dump->ring->dump.head->thread_count; i++) {
        struct tbd_rings_thread *thread = &dump->ring->threads[i];

        if ((dump->tid != 0 ? thread->tid == dump->tid : thread->is_asked) &&
            tbd_rings_steps(dump->ring, thread) != NULL)
            return thread;
    }
    return NULL;
}

enum tbd_exit tbd_dump_open_past(struct tbd_command_run *run, struct tbd_dump_run *out,
                                 size_t insns, struct tbd_past **past)
{
    struct tbd_session_before before = tbd_session_before(run->session);
    struct tbd_rings_thread *thread;
    enum tbd_exit result = tbd_dump_open(run, out);
    enum tbd_status status;
    uint64_t step;

    if (result != TBD_EXIT_FOUND)
        return result;
    if (before.thread != 0)
        out->tid = before.thread;
    thread = tbd_dump_thread(out);
    if (thread == NULL || thread->count == 0 ||
        (before.back != 0 && !tbd_rings_has(thread, before.back))) {
        fprintf(stderr, "tbdq: %.*s: the thread has no ring, or not as much of it\n",
                (int)strcspn(run->text, " "), run->text);
        return TBD_EXIT_NOT_FOUND;
    }
    step = tbd_rings_step_at(thread, before.back != 0 ? before.back : 1);
    status = tbd_past_take(run->session, thread, step, insns, step, past);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    return tbd_past_go(*past, step,
                       before.back != 0 ? before.insn : thread->walked.steps[step].insns)
               ? TBD_EXIT_FOUND
               : TBD_EXIT_NOT_FOUND;
}

bool tbd_dump_reach(struct tbd_dump_run *dump, struct tbd_rings_thread *thread, uint64_t back)
{
    enum tbd_status status = tbd_rings_reach(dump->ring, thread, back);

    if (status == TBD_OK && tbd_rings_steps(dump->ring, thread) == NULL)
        status = TBD_NOMEM;
    tbd_dump_note_failure(dump, status);
    return status == TBD_OK;
}

void tbd_dump_note_failure(struct tbd_dump_run *dump, enum tbd_status status)
{
    if (status != TBD_NOTFOUND && dump->failed == TBD_OK)
        dump->failed = status;
}

bool tbd_dump_position(struct tbd_dump_run *dump, const char *text, struct tbd_dump_place *out,
                       bool *out_lies)
{
    struct tbd_rings_thread *thread = tbd_dump_thread(dump);
    unsigned long long back, insn = 0;
    char *end;

    if (text[0] != '-' || text[1] < '0' || text[1] > '9')
        return false;
    back = strtoull(text + 1, &end, 10);
    if (*end == '+' && end[1] >= '0' && end[1] <= '9')
        insn = strtoull(end + 1, &end, 10);
    if (*end != '\0' || back == 0)
        return false;
    *out_lies = thread != NULL && tbd_dump_reach(dump, thread, back) &&
                insn < thread->walked.steps[tbd_rings_step_at(thread, back)].insns;
    if (*out_lies)
        *out = (struct tbd_dump_place){ thread, tbd_rings_step_at(thread, back), (uint32_t)insn };
    return true;
}

void tbd_dump_tell_part(const struct tbd_dump_run *dump, const struct tbd_rings_thread *thread)
{
    if (thread->older != 0)
        fprintf(stderr,
                "tbdq: note: %.*s looks at -%" PRIu64 " to -%" PRIu64
                " of thread %u, which has %" PRIu64 " block entries: `goto -N` first, for others\n",
                (int)strcspn(dump->run->text, " "), dump->run->text, tbd_rings_back(thread, 0),
                thread->after + 1, thread->tid, thread->older + thread->newest.count);
}

/* ---- names ---- */

const struct tbd_rings_place *tbd_dump_names(struct tbd_dump_run *dump,
                                             const struct tbd_dump_place *place)
{
    static const struct tbd_rings_place none;
    const struct tbd_rings_place *found =
        tbd_rings_place(dump->ring, place->thread->walked.steps[place->step].block, place->insn);

    return found != NULL ? found : &none;
}

/* ---- rows ---- */

json_t *tbd_dump_position_text(const struct tbd_dump_place *place)
{
    char text[64];

    snprintf(text, sizeof(text), place->insn != 0 ? "-%" PRIu64 "+%" PRIu32 : "-%" PRIu64,
             tbd_rings_back(place->thread, place->step), place->insn);
    return json_string(text);
}

json_t *tbd_dump_function_text(const struct tbd_rings_place *place, bool with_offset)
{
    uint64_t offset = place->address - place->function_start;
    char text[600];

    if (place->function != NULL && with_offset && offset != 0)
        snprintf(text, sizeof(text), "%s!%s+0x%" PRIx64, place->module, place->function, offset);
    else if (place->function != NULL)
        snprintf(text, sizeof(text), "%s!%s", place->module, place->function);
    else if (place->module != NULL)
        snprintf(text, sizeof(text), "%s", place->module);
    else
        snprintf(text, sizeof(text), "0x%" PRIx64, place->address);
    return tbd_output_text(text);
}

json_t *tbd_dump_row(struct tbd_dump_run *dump, const struct tbd_dump_place *place)
{
    struct tbd_rings_place names = *tbd_dump_names(dump, place);
    json_t *row = json_object();

    json_object_set_new(row, "position", tbd_dump_position_text(place));
    json_object_set_new(row, "thread", json_integer(place->thread->tid));
    json_object_set_new(row, "pc", tbd_output_hex(names.address));
    json_object_set_new(row, "function", tbd_dump_function_text(&names, false));
    if (names.line.line != 0)
        tbd_output_source_cell(names.line.file, names.line.line, row);
    return row;
}

enum tbd_exit tbd_dump_print_place(struct tbd_dump_run *dump, const struct tbd_dump_place *place)
{
    static const char *const columns[] = { "position", "thread", "pc", "insn",
                                           "function", "source", NULL };
    const struct tbd_rings_step *step = &place->thread->walked.steps[place->step];
    const struct tbd_rings_insn *insn = &dump->ring->blocks[step->block].insns[place->insn];
    const uint8_t *code = tbd_rings_code(dump->ring, step->block, place->insn);
    json_t *row = tbd_dump_row(dump, place);
    struct tbd_rows rows;
    char text[256];

    if (code != NULL &&
        tbd_disas_new(NULL, NULL, dump->run->session->syntax, &dump->disas) == TBD_OK) {
        tbd_disas_text(dump->disas, 0, code, insn->length, insn->pc, text, sizeof(text));
        json_object_set_new(row, "insn", tbd_output_text(text));
    }
    tbd_rows_start(&rows, dump->run, columns);
    tbd_rows_add(&rows, row);
    return tbd_rows_end(&rows);
}

enum tbd_exit tbd_dump_not_in_ring(const struct tbd_dump_run *dump, const char *name)
{
    uint32_t tid = dump->tid != 0 ? dump->tid : dump->ring->dump.head->tid;

    if (dump->failed == TBD_NOMEM)
        return tbd_command_no_memory();
    if (dump->failed != TBD_OK) {
        fprintf(stderr, "tbdq: %.*s: the older entries of thread %u cannot be read: %s\n",
                (int)strcspn(dump->run->text, " "), dump->run->text, tid,
                tbd_status_text(dump->failed));
        return TBD_EXIT_TRACE;
    }
    fprintf(stderr, "tbdq: goto: %s is not in the ring of thread %u\n", tbd_shown(name), tid);
    return TBD_EXIT_NOT_FOUND;
}

enum tbd_exit tbd_dump_refuse(const struct tbd_command_run *run, const char *what)
{
    fprintf(stderr,
            "tbdq: %.*s: a crash dump has what ran last, and takes no conditions about that: %s\n"
            "hint: `tbd record` keeps the whole run\n",
            (int)strcspn(run->text, " "), run->text, what);
    return TBD_EXIT_TRACE;
}
