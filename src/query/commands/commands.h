// SPDX-License-Identifier: MIT
/* commands.h - the commands of tbdq, from one table, and what they share
 *
 * A command of the table may be defined in a folder of its own (query/stepping, query/calls, query/why),
 * which includes this header; nothing here includes them. */
#ifndef TBD_QUERY_COMMANDS_H
#define TBD_QUERY_COMMANDS_H

#include "query/condition/question.h"
#include "query/session/session.h"

#include <stdio.h>

/* Exit statuses. */
enum tbd_exit {
    TBD_EXIT_FOUND = 0,
    TBD_EXIT_NOT_FOUND = 1,
    TBD_EXIT_USAGE = 2,
    TBD_EXIT_TRACE = 3,
    TBD_EXIT_SYSTEM = 4
};

struct tbd_source_place;
struct tbd_data;

/* One command being carried out. */
struct tbd_command_run {
    struct tbd_session *session;
    const char *trace; /* as the user has named it; NULL: not at all */
    const char *text;  /* the whole question: command and arguments joined by blanks */
    size_t arguments;  /* offset of the first argument in it */
    unsigned argc;     /* words after the command's name */
    char *const *argv;
    FILE *out;
    bool quiet;   /* no progress line */
    bool silent;  /* an intermediate answer, which is not printed */
    bool explain; /* say how a search went */
    bool numbers; /* printed values have numbers: "$1 = 5" */
    /* "thread N" after the command is about this answer only */
    bool names_thread;
    uint32_t thread_before; /* the session's */
};

struct tbd_command {
    const char *name;
    /* NULL: a command of the shell alone, which query/remote carries out */
    enum tbd_exit (*run)(struct tbd_command_run *run);
    const char *synopsis; /* after the name */
    const char *summary;
    const char *help; /* paragraphs */
    const char *example;
    bool wants_position; /* the session's has_at matters */
    bool needs_no_trace; /* the session need not be open */
    bool writes;         /* traces, or files; bookmarks and the current position do not count */
};

/* Ends with a NULL name. */
extern const struct tbd_command tbd_commands[];
const struct tbd_command *tbd_command_find(const char *name);
/* Does a crash dump answer it (struct tbd_trace_info, is_dump)?  All others need a recording. */
bool tbd_command_is_of_dumps(const struct tbd_command *command);
/* Says which events could not be decided: an answer must not look more certain than it is. */
void tbd_command_report_bad(const struct tbd_session *session);
/* Says what the answer had to leave out; returns the exit status that takes it into account. */
enum tbd_exit tbd_command_tell_left_out(const struct tbd_command_run *run, enum tbd_exit result);
/* Prints that there is no such event, or only `found` of them; returns TBD_EXIT_NOT_FOUND. */
enum tbd_exit tbd_command_none(const struct tbd_command_run *run, const char *type, uint64_t found);
/* Is its answer for some windows a part of that for all (--shard)? */
bool tbd_command_takes_shards(const struct tbd_command *command);
/* The text of `tbdq help context`: all names and operators. */
void tbd_command_help_context(FILE *out);

/* For commands: a message on stderr, and the exit status that goes with it. */
enum tbd_exit tbd_command_no_memory(void);
enum tbd_exit tbd_command_fail(struct tbd_command_run *run, enum tbd_status status);
enum tbd_exit tbd_command_wrong(const struct tbd_command_run *run,
                                const struct tbd_query_error *error);
/* tbd_source_evaluate() of the run's text[from, to); prints errors.  After TBD_EXIT_FOUND the
 * caller closes *place; otherwise there is nothing to close. */
enum tbd_exit tbd_command_value_of(struct tbd_command_run *run, struct tbd_position position,
                                   size_t from, size_t to, struct tbd_source_place *place,
                                   struct tbd_data *out);
/* The address that run->text[from, to) means at `position`: that of an array, struct or function, a
 * pointer's or a number's value.  Prints errors. */
enum tbd_exit tbd_command_address(struct tbd_command_run *run, struct tbd_position position,
                                  size_t from, size_t to, uint64_t *out);
/* For arguments that the command does not take. */
enum tbd_exit tbd_command_usage(const struct tbd_command_run *run, const char *message);
/* gdb's `set print NAME`; NULL if there is none. */
bool *tbd_command_print_setting(struct tbd_print_options *options, const char *name);
/* Are the arguments "$NAME = EXPRESSION"? */
bool tbd_command_is_setting(const struct tbd_command_run *run);
/* A thread as people name it: its id, or its number in `threads` (1 is the first one). */
bool tbd_command_find_thread(struct tbd_session *session, const char *text, uint32_t *out);
/* Takes the arguments if they are "thread N": the session asks about that thread from now on. */
bool tbd_command_take_thread(struct tbd_command_run *run);
/* Evaluates the argument `index` (from 0) as an expression at `position`. */
TBD_MUST_CHECK enum tbd_exit tbd_command_value(struct tbd_command_run *run, unsigned index,
                                               struct tbd_position position, uint64_t *out);

/* One frame of `bt`, as text or JSON; the place becomes that frame. */
struct tbd_source_place;
void tbd_command_print_frame(const struct tbd_command_run *run, struct tbd_source_place *place,
                             size_t number);

/* The call stack of the session's thread, and those of all threads that live at the position. */
enum tbd_exit tbd_command_print_stack(struct tbd_command_run *run, struct tbd_position position);
enum tbd_exit tbd_command_bt_threads(struct tbd_command_run *run, struct tbd_position position);

/* ---- questions ---- */

/* Adds what the user wrote after the type, "of EXPRESSION where CONTEXT", to *question.  The
 * expression is evaluated where the question starts, or at the current position if the question is
 * about all events.  Prints errors. */
enum tbd_exit tbd_command_take_words(struct tbd_command_run *run,
                                     const struct tbd_question_words *words,
                                     struct tbd_question *question);
/* Reads "TYPE [of EXPRESSION] [where CONTEXT]" from the run's text[from, to).  Prints errors; *out
 * is a question only after TBD_EXIT_FOUND. */
enum tbd_exit tbd_command_read_all(struct tbd_command_run *run, size_t from, size_t to,
                                   struct tbd_question *out);
struct tbd_position tbd_command_start(struct tbd_session *session,
                                      const struct tbd_question *question);

/* The event that the question is about, with progress and notes; TBD_EXIT_NOT_FOUND: there are only
 * *out_found.  Moves nothing. */
enum tbd_exit tbd_command_search(struct tbd_command_run *run, struct tbd_question *question,
                                 struct tbd_event *out, uint64_t *out_found);

/* The next four free *question. */

/* Moves to the event and prints it, or prints that there is none. */
enum tbd_exit tbd_command_ask(struct tbd_command_run *run, struct tbd_question *question);
/* Calls `each` for all events from the question's start; the search ends when it returns false. */
enum tbd_exit tbd_command_each(struct tbd_command_run *run, struct tbd_question *question,
                               bool (*each)(void *context, const struct tbd_event *event),
                               void *context);
/* The same for a search with its question and callbacks (query/search/search.h). */
struct tbd_search;
enum tbd_exit tbd_command_each_of(struct tbd_command_run *run, struct tbd_search *search);
/* Finds the event without printing or moving. */
TBD_MUST_CHECK enum tbd_status tbd_command_find_event(struct tbd_command_run *run,
                                                      struct tbd_question *question,
                                                      struct tbd_event *out);

/* ---- values and positions ---- */

/* The value of a C expression at the current position, as a truth and as text, which the caller
 * frees (`text` NULL: not wanted). */
enum tbd_exit tbd_command_evaluate(struct tbd_session *session, const char *expression, bool *truth,
                                   char **text);
/* The next part of a chain starts from there, even if the position is not remembered. */
void tbd_command_move(struct tbd_command_run *run, struct tbd_position position, uint32_t thread);
/* The same to an event, with the thread of one that its thread has resumed. */
void tbd_command_move_to(struct tbd_command_run *run, const struct tbd_event *event);
/* Moves to a position and prints what is there. */
enum tbd_exit tbd_command_go(struct tbd_command_run *run, struct tbd_position position);
/* Adds the signal that ended the program, if that was at the event's position. */
void tbd_command_take_end(struct tbd_session *session, struct tbd_event *event);
/* The position `count` instructions before or after another; TBD_NOTIME past the ends. */
TBD_MUST_CHECK enum tbd_status tbd_command_states(struct tbd_session *session,
                                                  struct tbd_position from, bool backward,
                                                  uint64_t count, struct tbd_position *out);

/* "exit 0", "signal 11", "exec", "recording", ...; `out` is a buffer that it may use. */
const char *tbd_command_end_text(const struct tbd_trace_info *info, char *out, size_t bytes);

/* The traced program's arguments, joined by blanks; the caller's to free, NULL without memory. */
char *tbd_command_arguments(const struct tbd_trace_info *info);

enum tbd_exit tbd_command_info(struct tbd_command_run *run);
enum tbd_exit tbd_command_windows(struct tbd_command_run *run);
enum tbd_exit tbd_command_modules(struct tbd_command_run *run);
enum tbd_exit tbd_command_processes(struct tbd_command_run *run);
enum tbd_exit tbd_command_ls(struct tbd_command_run *run);
enum tbd_exit tbd_command_pack(struct tbd_command_run *run);
enum tbd_exit tbd_command_unpack(struct tbd_command_run *run);
enum tbd_exit tbd_command_du(struct tbd_command_run *run);
enum tbd_exit tbd_command_rm(struct tbd_command_run *run);
enum tbd_exit tbd_command_path(struct tbd_command_run *run);
enum tbd_exit tbd_command_advise(struct tbd_command_run *run);
enum tbd_exit tbd_command_facts(struct tbd_command_run *run);
enum tbd_exit tbd_command_branches(struct tbd_command_run *run);
enum tbd_exit tbd_command_context(struct tbd_command_run *run);
enum tbd_exit tbd_command_goto(struct tbd_command_run *run);
enum tbd_exit tbd_command_all(struct tbd_command_run *run);
enum tbd_exit tbd_command_thread(struct tbd_command_run *run);
enum tbd_exit tbd_command_threads(struct tbd_command_run *run);
enum tbd_exit tbd_command_stores(struct tbd_command_run *run);
enum tbd_exit tbd_command_calls(struct tbd_command_run *run);
enum tbd_exit tbd_command_lines(struct tbd_command_run *run);
enum tbd_exit tbd_command_syscalls(struct tbd_command_run *run);
enum tbd_exit tbd_command_signals(struct tbd_command_run *run);
enum tbd_exit tbd_command_log(struct tbd_command_run *run);
enum tbd_exit tbd_command_heap(struct tbd_command_run *run);
enum tbd_exit tbd_command_fds(struct tbd_command_run *run);
enum tbd_exit tbd_command_diff(struct tbd_command_run *run);
enum tbd_exit tbd_command_unite(struct tbd_command_run *run);
enum tbd_exit tbd_command_export(struct tbd_command_run *run);
enum tbd_exit tbd_command_count(struct tbd_command_run *run);
enum tbd_exit tbd_command_history(struct tbd_command_run *run);
enum tbd_exit tbd_command_first(struct tbd_command_run *run);
enum tbd_exit tbd_command_last(struct tbd_command_run *run);
enum tbd_exit tbd_command_trace(struct tbd_command_run *run);
enum tbd_exit tbd_command_why(struct tbd_command_run *run);
enum tbd_exit tbd_command_assert(struct tbd_command_run *run);
enum tbd_exit tbd_command_mark(struct tbd_command_run *run);
enum tbd_exit tbd_command_marks(struct tbd_command_run *run);
enum tbd_exit tbd_command_step(struct tbd_command_run *run);
enum tbd_exit tbd_command_next(struct tbd_command_run *run);
enum tbd_exit tbd_command_nexti(struct tbd_command_run *run);
enum tbd_exit tbd_command_reverse_nexti(struct tbd_command_run *run);
enum tbd_exit tbd_command_until(struct tbd_command_run *run);
enum tbd_exit tbd_command_finish(struct tbd_command_run *run);
enum tbd_exit tbd_command_stepi(struct tbd_command_run *run);
enum tbd_exit tbd_command_reverse_step(struct tbd_command_run *run);
enum tbd_exit tbd_command_reverse_next(struct tbd_command_run *run);
enum tbd_exit tbd_command_reverse_finish(struct tbd_command_run *run);
enum tbd_exit tbd_command_reverse_stepi(struct tbd_command_run *run);
enum tbd_exit tbd_command_break(struct tbd_command_run *run);
enum tbd_exit tbd_command_tbreak(struct tbd_command_run *run);
enum tbd_exit tbd_command_watch(struct tbd_command_run *run);
enum tbd_exit tbd_command_rwatch(struct tbd_command_run *run);
enum tbd_exit tbd_command_breakpoints(struct tbd_command_run *run);
enum tbd_exit tbd_command_delete(struct tbd_command_run *run);
enum tbd_exit tbd_command_continue(struct tbd_command_run *run);
enum tbd_exit tbd_command_reverse_continue(struct tbd_command_run *run);
/* "PLACE", a function, FILE:LINE or a line's number: goes to the next time that it is reached. */
enum tbd_exit tbd_command_go_to_place(struct tbd_command_run *run, bool also_before);
enum tbd_exit tbd_command_where(struct tbd_command_run *run);
enum tbd_exit tbd_command_regs(struct tbd_command_run *run);
enum tbd_exit tbd_command_mem(struct tbd_command_run *run);
enum tbd_exit tbd_command_bt(struct tbd_command_run *run);
enum tbd_exit tbd_command_frame(struct tbd_command_run *run);
enum tbd_exit tbd_command_up(struct tbd_command_run *run);
enum tbd_exit tbd_command_down(struct tbd_command_run *run);
enum tbd_exit tbd_command_list(struct tbd_command_run *run);
enum tbd_exit tbd_command_print(struct tbd_command_run *run);
enum tbd_exit tbd_command_set(struct tbd_command_run *run);
enum tbd_exit tbd_command_examine(struct tbd_command_run *run);
enum tbd_exit tbd_command_locals(struct tbd_command_run *run);
enum tbd_exit tbd_command_printf(struct tbd_command_run *run);
enum tbd_exit tbd_command_symbol(struct tbd_command_run *run);
enum tbd_exit tbd_command_line(struct tbd_command_run *run);
enum tbd_exit tbd_command_functions(struct tbd_command_run *run);
enum tbd_exit tbd_command_variables(struct tbd_command_run *run);
enum tbd_exit tbd_command_types(struct tbd_command_run *run);
enum tbd_exit tbd_command_ptype(struct tbd_command_run *run);
enum tbd_exit tbd_command_disas(struct tbd_command_run *run);
enum tbd_exit tbd_command_verify(struct tbd_command_run *run);
enum tbd_exit tbd_command_diverge(struct tbd_command_run *run);
enum tbd_exit tbd_command_lower(struct tbd_command_run *run);
enum tbd_exit tbd_command_raise(struct tbd_command_run *run);
enum tbd_exit tbd_command_merge(struct tbd_command_run *run);
enum tbd_exit tbd_command_dump(struct tbd_command_run *run);

#endif
