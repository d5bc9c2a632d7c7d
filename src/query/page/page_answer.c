// SPDX-License-Identifier: MIT
/* page_answer.c - see page_answer.h
 *
 * Questions are lines as somebody types them, and their answers are what tbdq prints with --json: the page knows all
 * that tbdq knows, and nothing is written twice.
 *
 * PAGE-ANSWER-1  The page changes no trace, but for bookmarks, and writes no file: commands that would are refused (the
 *     column `writes` of their table). */
#include "query/page/page_answer.h"

#include "query/page/page_rows.h"
#include "query/page/page_sums.h"
#include "query/prompt/command_line.h"
#include "query/prompt/complete.h"
#include "query/output/output.h"
#include "query/text/user_interrupt.h"

#include <stdlib.h>
#include <string.h>

/* ---- one line ---- */

static enum tbd_exit run_line(struct tbd_session *session, const char *line, FILE *out)
{
    struct tbd_line_options options = { .out = out, .quiet = true, .reads = true };

    if (session->unwritten.before.back != 0 && !session->info->is_dump) {
        fputs("tbdq: only a crash dump has positions -N\n", stderr);
        return TBD_EXIT_USAGE;
    }
    return tbd_line_run(session, &options, line);
}

/* Runs the line with its messages in `messages`. */
static enum tbd_exit run_apart(struct tbd_session *session, const char *line, FILE *out,
                               FILE *messages)
{
    FILE *before = stderr;
    enum tbd_exit result;

    stderr = messages;
    result = run_line(session, line, out);
    stderr = before;
    return result;
}

static json_t *answer_line(struct tbd_session *session, const char *line, size_t most)
{
    json_t *answer = json_object();
    struct tbd_page_rows rows;
    char *said = NULL;
    size_t bytes = 0;
    FILE *messages = open_memstream(&said, &bytes);
    enum tbd_exit result = TBD_EXIT_SYSTEM;

    if (tbd_page_rows_start(&rows, most) && messages != NULL)
        result = run_apart(session, line, rows.out, messages);
    json_object_set_new(answer, "line", tbd_output_text(line));
    json_object_set_new(answer, "status", json_integer(result));
    if (rows.out != NULL)
        tbd_page_rows_put(&rows, answer);
    if (messages != NULL && fclose(messages) == 0 && !rows.is_cut)
        json_object_set_new(answer, "messages", tbd_output_text(said));
    if (rows.is_cut) /* that was us, and nobody else is meant */
        tbd_interrupt_clear();
    tbd_page_rows_end(&rows);
    free(said);
    return answer;
}

/* ---- all kinds ---- */

static json_t *position_value(struct tbd_position position)
{
    return json_pack("[I,I]", (json_int_t)position.time, (json_int_t)position.offset);
}

/* Where questions are now: [TIME, K], or before a dump's end [-N, K]. */
static void put_place(const struct tbd_session *session, json_t *answer)
{
    struct tbd_session_before before = session->unwritten.before;
    bool is_before = before.back != 0;

    json_object_set_new(answer, "at",
                        is_before
                            ? json_pack("[I,I]", -(json_int_t)before.back, (json_int_t)before.insn)
                            : position_value(session->unwritten.position));
    json_object_set_new(
        answer, "thread",
        json_integer((json_int_t)(is_before ? before.thread : session->unwritten.thread)));
    json_object_set_new(answer, "frame", json_integer((json_int_t)session->unwritten.frame));
}

static void put_beginning(struct tbd_session *session, json_t *answer)
{
    const struct tbd_trace_info *info = session->info;
    json_t *args = json_array();

    for (int i = 0; i < info->argc; i++)
        json_array_append_new(args, tbd_output_text(info->argv[i]));
    json_object_set_new(answer, "args", args);
    json_object_set_new(answer, "end",
                        info->finished && info->end_text != NULL ? tbd_output_text(info->end_text)
                                                                 : json_null());
    json_object_set_new(answer, "version", json_string(TBD_VERSION));
    json_object_set_new(answer, "program", tbd_output_text(info->program));
    json_object_set_new(answer, "pid", json_integer((json_int_t)info->pid));
    json_object_set_new(answer, "dump", json_boolean(info->is_dump));
    json_object_set_new(answer, "finished", json_boolean(info->finished));
    json_object_set_new(answer, "blocks", json_integer((json_int_t)info->blocks));
    json_object_set_new(answer, "windows",
                        json_integer((json_int_t)tbd_trace_window_count(session->trace)));
    json_object_set_new(answer, "first", position_value(tbd_session_first(session)));
    json_object_set_new(answer, "last", position_value(tbd_session_last(session)));
}

static void put_completions(struct tbd_session *session, const char *line, json_t *answer)
{
    struct tbd_completions found;
    json_t *words = json_array();

    tbd_complete(session, line, strlen(line), &found);
    for (size_t i = 0; i < found.count; i++)
        json_array_append_new(words, tbd_output_text(found.words[i]));
    json_object_set_new(answer, "from", json_integer((json_int_t)found.from));
    json_object_set_new(answer, "words", words);
    tbd_completions_free(&found);
}

static void put_answers(struct tbd_session *session, const struct tbd_page_question *question,
                        json_t *answer)
{
    json_t *answers = json_array();

    session->json = !question->is_text;
    for (size_t i = 0; i < question->line_count && !tbd_is_interrupted(); i++)
        json_array_append_new(answers, answer_line(session, question->lines[i], question->rows));
    json_object_set_new(answer, "answers", answers);
}

static void prepare(struct tbd_session *session, const struct tbd_page_question *question)
{
    memset(&session->unwritten, 0, sizeof(session->unwritten));
    session->is_private = true;
    session->has_at = session->has_thread = false;
    session->unwritten.has_position = session->unwritten.has_frame = true;
    session->unwritten.position = question->place.at;
    session->unwritten.thread = session->thread = question->place.thread;
    session->unwritten.frame = question->place.frame;
    session->unwritten.before =
        (struct tbd_session_before){ question->place.back, question->place.at.offset,
                                     question->place.thread };
    session->span.has_since = session->span.has_until = question->has_span;
    session->span.since = question->since;
    session->span.until = question->until;
}

json_t *tbd_page_answer(struct tbd_session *session, const struct tbd_page_question *question)
{
    json_t *answer = json_object();

    prepare(session, question);
    switch (question->kind) {
    case TBD_PAGE_BEGINS: put_beginning(session, answer); break;
    case TBD_PAGE_COMPLETES: put_completions(session, question->lines[0], answer); break;
    case TBD_PAGE_SUMS: tbd_page_put_sums(session->trace, question, answer); break;
    case TBD_PAGE_ASKS: put_answers(session, question, answer); break;
    }
    put_place(session, answer);
    json_object_set_new(answer, "interrupted", json_boolean(tbd_is_interrupted()));
    return answer;
}
