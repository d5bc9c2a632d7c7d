// SPDX-License-Identifier: MIT
/* tbdq.c - asks a trace: options, then one command of the table in query/commands.c
 *
 * Exit status: 0 found, 1 not found or assertion failed, 2 wrong usage or question, 3 the trace is
 * damaged or cannot be replayed, 4 the system refused something. */
#include "query/commands.h"
#include "query/question.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUESTION_MAX_WORDS 512

struct options {
    const char *trace;
    const char *at;
    const char *thread;
    bool json, quiet, att, explain;
    unsigned workers;
};

static void print_usage(FILE *out)
{
    fprintf(out, "usage: tbdq [-t TRACE] [--at POS] [--json] COMMAND [ARGUMENT...]\n\n"
                 "  -t, --trace TRACE   trace directory (default: the latest one)\n"
                 "      --at POS        position to ask about: first, last or TIME[+K]; the "
                 "remembered one stays\n"
                 "      --thread N      thread to ask about (default: the one that has control there)\n"
                 "      --json          one JSON object per line\n"
                 "  -j, --workers N     windows replayed at once (default: number of processors)\n"
                 "      --att           AT&T syntax\n"
                 "      --explain       say how a search went: windows skipped, replayed, seconds\n"
                 "  -q, --quiet         no progress line\n"
                 "      --help, --version\n\ncommands:\n");
    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++)
        fprintf(out, "  %-9s %s\n", command->name, command->summary);
    fprintf(out,
            "  %-9s %s\n\nexit status: 0 found, 1 not found, 2 wrong usage, 3 trace, 4 system\n",
            "help", "help COMMAND, or help context for conditions");
}

static int help(const char *name)
{
    const struct tbd_command *command = name == NULL ? NULL : tbd_command_find(name);

    if (name == NULL) {
        print_usage(stdout);
        return TBD_EXIT_FOUND;
    }
    if (strcmp(name, "context") == 0) {
        tbd_command_help_context(stdout);
        return TBD_EXIT_FOUND;
    }
    if (command == NULL) {
        fprintf(stderr, "tbdq: there is no command '%s'\nhint: `tbdq help` lists all\n", name);
        return TBD_EXIT_USAGE;
    }
    printf("tbdq %s %s\n\n%s.\n", command->name, command->synopsis, command->summary);
    if (*command->help != '\0')
        printf("%s\n", command->help);
    printf("\nexample: %s\n", command->example);
    return TBD_EXIT_FOUND;
}

/* Command and arguments as one line: what questions are parsed from and errors point into. */
static char *join(int argc, char **argv)
{
    size_t bytes = 1;
    char *text;

    for (int i = 0; i < argc; i++)
        bytes += strlen(argv[i]) + 1;
    text = calloc(bytes, 1);
    for (int i = 0; text != NULL && i < argc; i++) {
        strcat(text, argv[i]);
        if (i + 1 < argc)
            strcat(text, " ");
    }
    return text;
}

/* --at: first, last or TIME[+K]. */
static int set_at(struct tbd_command_run *run, const char *at)
{
    struct tbd_query_error error;
    struct tbd_question question;
    struct tbd_command_run shown = *run;
    enum tbd_status status = tbd_question_parse(at, 0, &question, &error);

    shown.text = at;
    if (status == TBD_OK && question.is_search) {
        error = (struct tbd_query_error){ .status = TBD_USAGE,
                                          .length = strlen(at),
                                          .message = "--at takes a position" };
        status = TBD_USAGE;
    }
    if (status == TBD_OK) {
        run->session->at = question.position;
        if (question.from == TBD_FROM_LAST)
            run->session->at = tbd_session_last(run->session);
        if (question.from == TBD_FROM_CURRENT)
            run->session->at = tbd_session_current(run->session);
        run->session->has_at = true;
    }
    tbd_question_free(&question);
    return status == TBD_OK ? TBD_EXIT_FOUND : (int)tbd_command_wrong(&shown, &error);
}

static int set_thread(struct tbd_session *session, const char *text)
{
    char *end;
    unsigned long tid = strtoul(text, &end, 0);

    if (*text == '\0' || *end != '\0' || tid == 0 || tid > UINT32_MAX) {
        fprintf(stderr, "tbdq: --thread takes the number of a thread, not '%s'\n"
                        "hint: `tbdq threads` lists them\n", text);
        return TBD_EXIT_USAGE;
    }
    session->thread = (uint32_t)tid;
    session->has_thread = true;
    return TBD_EXIT_FOUND;
}

static void print_symbol_notes(const struct tbd_session *session)
{
    const char *note;

    for (size_t i = 0; (note = tbd_symbols_note(session->symbols, i)) != NULL; i++)
        fprintf(stderr, "tbdq: note: %s\n", note);
}

static int run_command(const struct tbd_command *command, const struct options *options, int argc,
                       char **argv)
{
    struct tbd_session session = { .json = options->json,
                                   .workers = options->workers,
                                   .syntax = options->att ? TBD_SYNTAX_ATT : TBD_SYNTAX_INTEL };
    char *text = join(argc, argv);
    struct tbd_command_run run = { .session = &session,
                                   .text = text == NULL ? "" : text,
                                   .arguments = strlen(argv[0]) + (argc > 1),
                                   .argc = (unsigned)argc - 1,
                                   .argv = argv + 1,
                                   .out = stdout,
                                   .quiet = options->quiet,
                                   .explain = options->explain };
    enum tbd_status status = tbd_session_open(&session, options->trace);
    int result = TBD_EXIT_FOUND;

    if (status != TBD_OK)
        result = (int)tbd_command_fail(&run, status);
    if (result == TBD_EXIT_FOUND && options->at != NULL)
        result = set_at(&run, options->at);
    if (result == TBD_EXIT_FOUND && options->thread != NULL)
        result = set_thread(&session, options->thread);
    if (result == TBD_EXIT_FOUND)
        result = (int)command->run(&run);
    if (status == TBD_OK)
        print_symbol_notes(&session);
    tbd_session_close(&session);
    free(text);
    return result;
}

static bool parse_workers(const char *text, unsigned *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (unsigned)value;
    return *text != '\0' && *end == '\0' && value >= 1 && value <= 256;
}

/* -1: go on; otherwise the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        { "trace", required_argument, NULL, 't' }, { "at", required_argument, NULL, 'a' },
        { "thread", required_argument, NULL, 'T' },
        { "json", no_argument, NULL, 'J' },        { "workers", required_argument, NULL, 'j' },
        { "att", no_argument, NULL, 'A' },         { "explain", no_argument, NULL, 'E' },
        { "quiet", no_argument, NULL, 'q' },       { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },     { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "+t:j:qh", table, NULL)) >= 0) {
        switch (option) {
        case 't': options->trace = optarg; break;
        case 'a': options->at = optarg; break;
        case 'T': options->thread = optarg; break;
        case 'J': options->json = true; break;
        case 'A': options->att = true; break;
        case 'E': options->explain = true; break;
        case 'q': options->quiet = true; break;
        case 'j':
            if (parse_workers(optarg, &options->workers))
                break;
            fprintf(stderr, "tbdq: -j takes a number from 1 to 256, not '%s'\n", optarg);
            return TBD_EXIT_USAGE;
        case 'h': return help(NULL);
        case 'V': printf("tbdq %s\n", TBD_VERSION); return TBD_EXIT_FOUND;
        default: fprintf(stderr, "hint: `tbdq --help` lists the options\n"); return TBD_EXIT_USAGE;
        }
    }
    return -1;
}

/* A question may be one argument, as it is typed in quotes: 'goto first forward ...'.  Returns the
 * number of words, in place. */
static int split(char *text, char **out, int max)
{
    char *rest = NULL;
    int count = 0;

    for (char *word = strtok_r(text, " \t\n", &rest); word != NULL && count < max;
         word = strtok_r(NULL, " \t\n", &rest))
        out[count++] = word;
    return count;
}

int main(int argc, char **argv)
{
    struct options options = { 0 };
    const struct tbd_command *command;
    char *words[QUESTION_MAX_WORDS + 1] = { NULL };
    char **question;
    int count;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int result;

    options.workers = processors < 1 ? 1 : (unsigned)processors;
    result = parse_options(argc, argv, &options);
    if (result >= 0)
        return result;
    if (optind >= argc) {
        print_usage(stderr);
        return TBD_EXIT_USAGE;
    }
    question = argv + optind;
    count = argc - optind;
    if (count == 1 && strpbrk(question[0], " \t\n") != NULL) {
        count = split(question[0], words, QUESTION_MAX_WORDS);
        question = words;
    }
    if (count > 0 && strcmp(question[0], "help") == 0)
        return help(question[1]);
    command = count > 0 ? tbd_command_find(question[0]) : NULL;
    if (command == NULL) {
        fprintf(stderr, "tbdq: there is no command '%s'\nhint: `tbdq help` lists all\n",
                count > 0 ? question[0] : "");
        return TBD_EXIT_USAGE;
    }
    result = run_command(command, &options, count, question);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        fprintf(stderr, "tbdq: cannot write the answer\n");
        return TBD_EXIT_SYSTEM;
    }
    return result;
}
