// SPDX-License-Identifier: MIT
/* prompt.c - see prompt.h; lines are edited by libedit
 *
 * After a move (a command that changed the position) the new source line is shown, and an empty line
 * repeats the move.
 * Ctrl-C ends the line that is being edited, or the question that is being answered; Ctrl-D
 * ends the program. */
#include "query/prompt/prompt.h"
#include "query/prompt/part_answer.h"
#include "query/session/position_text.h"

#include "query/prompt/complete.h"
#include "query/prompt/redirected.h"
#include "query/text/user_interrupt.h"
#include "query/text/pager.h"
#include "query/session/source/source.h"
#include "query/text/user_path.h"

#include "base/safe_stream.h"

#include <editline/readline.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#define HISTORY_MAX 2000
#define PATH_BYTES  4096

static struct tbd_session *completed; /* libedit's callbacks have no context of their own */
static struct tbd_completions completions;
static size_t next_completion;

/* ---- completion ---- */

/* libedit calls this until there is no completion left, first with state 0; it frees the words. */
static char *next_word(const char *text, int state)
{
    size_t skip;

    (void)text;
    if (state == 0)
        next_completion = 0;
    if (next_completion >= completions.count)
        return NULL;
    /* libedit's word may begin later than ours: at "b" in "a::b". */
    skip = (size_t)rl_point - strlen(text) > completions.from
               ? (size_t)rl_point - strlen(text) - completions.from
               : 0;
    return strdup(completions.words[next_completion++] + skip);
}

static char **complete(const char *text, int start, int end)
{
    (void)start;
    tbd_completions_free(&completions);
    tbd_complete(completed, rl_line_buffer, (size_t)end, &completions);
    rl_attempted_completion_over = 1; /* do not offer files of this folder */
    return rl_completion_matches(text, next_word);
}

/* ---- keys ---- */

/* The keys that drop the line after Ctrl-C: to its beginning, delete to its end, Enter. */
static const char drop_line[] = "\001\013\n";
static size_t dropping; /* how many of these keys libedit has read; 0: nothing is dropped */

/* Reads a byte of standard input, or EOF at its end; false: Ctrl-C came first. */
static bool next_byte(int *out)
{
    struct pollfd waiting[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                { .fd = tbd_interrupt_descriptor(), .events = POLLIN } };
    unsigned char byte;

    while (poll(waiting, 2, -1) < 0 && errno == EINTR)
        ;
    if (waiting[1].revents != 0)
        return false;
    *out = read(STDIN_FILENO, &byte, 1) == 1 ? byte : EOF;
    return true;
}

/* Reads a character for libedit; it may have several bytes of UTF-8. */
static int next_key(FILE *in)
{
    mbstate_t state = { 0 };
    wchar_t wide;
    int byte;

    (void)in;
    if (dropping != 0 && drop_line[dropping] != '\0')
        return drop_line[dropping++];
    dropping = 0;
    for (;;) {
        char text;
        size_t used;

        if (!next_byte(&byte)) {
            tbd_interrupt_clear();
            fputs("^C", stdout);
            return drop_line[dropping++];
        }
        if (byte == EOF)
            return EOF;
        if (byte == '\0')
            continue; /* Ctrl-D while an answer was printed: the kernel, not libedit, took it */
        text = (char)byte;
        used = mbrtowc(&wide, &text, 1, &state);
        if (used == (size_t)-1)
            return byte;
        if (used != (size_t)-2)
            return (int)wide;
    }
}

/* libedit would do this at the first key, after it has printed the prompt.  The kernel would echo
 * what is typed between the two, and libedit would not see a Ctrl-D. */
static int take_terminal(void)
{
    rl_prep_terminal(1);
    return 0;
}

/* ---- history ---- */

static void start_editing(const char *path)
{
    static char breaks[] = " \t\n\"\\'`><=;|&{}()[]+-*/%~!?,.^";

    rl_readline_name = "tbdq";
    rl_catch_signals = 0;
    rl_getc_function = next_key;
    rl_pre_input_hook = take_terminal;
    rl_initialize();
    rl_attempted_completion_function = complete;
    rl_completer_word_break_characters = breaks;
    rl_completion_append_character = ' ';
    using_history();
    stifle_history(HISTORY_MAX);
    if (path != NULL)
        (void)read_history(path);
}

/* Only the user may read the history. */
static void save_history(const char *path)
{
    mode_t mask = umask(077);

    (void)write_history(path);
    (void)chmod(path, 0600);
    umask(mask);
}

static void remember(const char *line)
{
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;

    if (last == NULL || strcmp(last->line, line) != 0)
        add_history(line);
}

/* ---- the answers ---- */

static bool is_same(struct tbd_position a, struct tbd_position b)
{
    return a.time == b.time && a.offset == b.offset;
}

static void show_line(struct tbd_session *session, FILE *out)
{
    struct tbd_position position = tbd_session_current(session);
    struct tbd_source_line line;
    struct tbd_source_text text;
    struct tbd_place place;

    if (tbd_session_place(session, position, &place) != TBD_OK ||
        !tbd_source_line_at(session, place.window, place.pc, &line) ||
        !tbd_source_load(line.file, &text))
        return;
    if (line.line <= text.line_count)
        fprintf(out, "=>%5" PRIu32 "  %s\n", line.line, text.lines[line.line]);
    tbd_source_unload(&text);
}

static unsigned screen_rows(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_row;
}

static bool wants_colours(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && (no == NULL || *no == '\0') && terminal != NULL &&
           strcmp(terminal, "dumb") != 0;
}

static enum tbd_exit answer(struct tbd_session *session, const struct tbd_line_options *options,
                            const char *line)
{
    struct tbd_pager *pager = tbd_pager_open(screen_rows(), wants_colours());
    struct tbd_line_options own = *options;
    struct tbd_position before = tbd_session_current(session);
    enum tbd_exit result;

    if (pager == NULL)
        return tbd_command_no_memory();
    own.numbers = true;
    own.out = tbd_safe_stream(tbd_pager_stream(pager));
    if (own.out == NULL) {
        tbd_pager_close(pager);
        return tbd_command_no_memory();
    }
    tbd_interrupt_clear();
    result = tbd_part_line(session, &own, line);
    if (!session->json && !is_same(before, tbd_session_current(session)))
        show_line(session, own.out);
    fclose(own.out);
    tbd_pager_close(pager);
    tbd_interrupt_clear(); /* Ctrl-C may have come after the answer */
    return result;
}

/* The line's answer, to where the line says: "bt | grep main". */
static enum tbd_exit answer_line(struct tbd_session *session,
                                 const struct tbd_line_options *options, const char *line)
{
    struct tbd_line_options own = *options;
    struct tbd_redirect redirect;
    enum tbd_exit result;

    if (!tbd_redirect_read(session, line, &redirect)) {
        result = tbd_command_no_memory();
    } else if (redirect.kind == TBD_REDIRECT_NONE) {
        result = answer(session, options, line);
    } else {
        own.numbers = true;
        own.out = tbd_redirect_open(&redirect);
        tbd_interrupt_clear();
        result = own.out == NULL ? TBD_EXIT_SYSTEM : tbd_part_line(session, &own, redirect.line);
        if (own.out != NULL)
            tbd_redirect_close(&redirect, own.out);
        tbd_interrupt_clear();
    }
    tbd_redirect_free(&redirect);
    return result;
}

/* Where the recording lies. */
static const char *path_of(const struct tbd_session *session)
{
    return session->part != NULL ? session->part->path : session->info->path;
}

/* "gzip 1200+3> " */
static void make_prompt(struct tbd_session *session, char *out, size_t bytes)
{
    const char *path = path_of(session), *slash = strrchr(path, '/');
    struct tbd_position position = tbd_session_current(session);

    snprintf(out, bytes, "%.60s %s> ", tbd_shown(slash == NULL ? path : slash + 1),
             tbd_position_text(session, position).text);
}

static bool is_end(const char *line)
{
    return strcmp(line, "quit") == 0 || strcmp(line, "exit") == 0 || strcmp(line, "q") == 0;
}

static char *trim(char *line)
{
    size_t length;

    line += strspn(line, " \t");
    for (length = strlen(line); length > 0 && strchr(" \t\r\n", line[length - 1]) != NULL; length--)
        line[length - 1] = '\0';
    return line;
}

enum tbd_exit tbd_prompt(struct tbd_session *session, const struct tbd_line_options *options)
{
    char prompt[128], path[PATH_BYTES];
    bool has_path = tbd_user_path("XDG_STATE_HOME", ".local/state", "history", path, sizeof(path));
    enum tbd_exit result = TBD_EXIT_FOUND;
    char *line, *again = NULL; /* the last line, if it moved the position */

    completed = session;
    signal(SIGPIPE, SIG_IGN); /* a pager that is left early */
    tbd_interrupt_catch();
    start_editing(has_path ? path : NULL);
    printf("%s; `help` lists the commands, `quit` ends\n", tbd_shown(path_of(session)));
    for (;;) {
        char *text;

        make_prompt(session, prompt, sizeof(prompt));
        line = readline(prompt);
        if (line == NULL)
            break;
        text = trim(line);
        if (*text != '\0')
            remember(text);
        if (is_end(text))
            break;
        if (*text != '\0' || again != NULL) {
            struct tbd_position before = tbd_session_current(session);

            result = answer_line(session, options, *text != '\0' ? text : again);
            if (is_same(before, tbd_session_current(session))) {
                free(again);
                again = NULL;
            } else if (*text != '\0') {
                free(again);
                again = strdup(text);
            }
        }
        free(line);
    }
    free(line);
    free(again);
    if (has_path)
        save_history(path);
    tbd_completions_free(&completions);
    return result;
}
