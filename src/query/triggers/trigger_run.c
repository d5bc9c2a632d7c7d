// SPDX-License-Identifier: MIT
/* trigger_run.c - see trigger_run.h */
#include "query/triggers/trigger_run.h"

#include "base/safe_stream.h"
#include "query/triggers/part_request.h"
#include "query/triggers/ring_memory.h"
#include "query/triggers/trigger_request.h"

#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EXIT_NOTHING = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 4, ANSWER_MS = 20000, IDLE_MS = 10000 };

static int usage(FILE *out)
{
    fputs(
        "usage: tbd set [--pending] PID NAME=VALUE ...\n\n"
        "  ring=SIZE      bytes of each thread's ring (K, M)\n"
        "  record=0..9    how much is recorded beside rings, for values in dumps\n"
        "  trigger=WHAT   what leaves a dump from now on; several with ; between them;\n"
        "                 none: trigger=\n\n"
        "WHAT: PLACE [times N] [with PART ...] [if CONDITION],\n"
        "      or signal NAME [times N] [with PART ...]\n"
        "      or PLACE records [EXPRESSION] [if CONDITION], or loads of RANGE\n"
        "PLACE: a function, FILE:LINE, 0xADDRESS.  --pending: one that no module has waits for it.\n"
        "PART: what the dump has, one of --parts, or rings.  (man tbd, CRASH)\n",
        out);
    return out == stdout ? 0 : EXIT_USAGE;
}

static int wrong_usage(const char *what)
{
    fprintf(stderr, "tbd set: %s\ntbd set: hint: tbd set --help\n", what);
    return EXIT_USAGE;
}

static int exit_of(enum tbd_status status)
{
    if (status == TBD_NOTFOUND || status == TBD_NAME || status == TBD_UNMAPPED)
        return EXIT_NOTHING;
    return status == TBD_SYNTAX || status == TBD_TYPE || status == TBD_USAGE ? EXIT_USAGE
                                                                             : EXIT_SYSTEM;
}

static int fail(const struct tbd_query_error *error, const char *text)
{
    if (error->length && text)
        fprintf(stderr, "tbd set: %s: %.*s\n", tbd_shown(error->message), (int)error->length,
                tbd_shown(text + error->at));
    else
        fprintf(stderr, "tbd set: %s\n", tbd_shown(error->message));
    if (error->hint[0])
        fprintf(stderr, "tbd set: hint: %s\n", tbd_shown(error->hint));
    return exit_of(error->status);
}

/* ---- the command line ---- */

struct setting {
    pid_t pid;
    int stream_fd;       /* -1: the collector is looked for, and the program told */
    const char *trigger; /* NULL: as it is */
    const char *parts;   /* with stream_fd; NULL: none of them is a function or a source file */
    uint64_t ring_bytes; /* 0: as it is */
    long record;         /* -1: as it is */
    bool is_again; /* with stream_fd: whenever a module has come or gone, and a thread waits */
    enum tbd_trigger_absent absent;
};

static bool take_size(const char *text, uint64_t *out)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10), unit = 1;

    if (*end == 'K' || *end == 'M')
        unit = *end++ == 'K' ? 1u << 10 : 1u << 20;
    *out = (value * unit + 4095) & ~4095ull;
    return *text >= '0' && *text <= '9' && !*end && value < 1u << 30 && *out;
}

static bool take_number(const char *text, long most, long *out)
{
    char *end;

    *out = text ? strtol(text, &end, 10) : 0;
    return text && *text && !*end && *out > 0 && *out <= most;
}

static bool take_digit(const char *text, long *out)
{
    *out = *text - '0';
    return *out >= 0 && *out <= (long)TBD_RECORD_MOST && !text[1];
}

/* -1: go on. */
static int parse(int argc, char **argv, struct setting *out)
{
    int at = 1;
    long number;

    *out = (struct setting){ .stream_fd = -1, .record = -1 };
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return usage(stdout);
    if (argc > 2 && strcmp(argv[1], "--stream-fd") == 0 && take_number(argv[2], INT_MAX, &number)) {
        out->stream_fd = (int)number;
        out->absent = TBD_ABSENT_WAITS;
        at = 3;
    }
    if (at < argc && strcmp(argv[at], "--pending") == 0) {
        out->absent = TBD_ABSENT_WAITS;
        at++;
    } else if (out->stream_fd >= 0 && at < argc && strcmp(argv[at], "--again") == 0) {
        out->is_again = true;
        out->absent = TBD_ABSENT_FITS;
        at++;
    }
    if (!take_number(at < argc ? argv[at] : NULL, INT_MAX, &number))
        return wrong_usage("it takes the number of a process");
    out->pid = (pid_t)number;
    for (at++; at < argc; at++) {
        if (strncmp(argv[at], "trigger=", 8) == 0)
            out->trigger = argv[at] + 8;
        else if (out->stream_fd >= 0 && strncmp(argv[at], "parts=", 6) == 0)
            out->parts = argv[at] + 6;
        else if (strncmp(argv[at], "record=", 7) == 0 && take_digit(argv[at] + 7, &out->record))
            continue;
        else if (strncmp(argv[at], "ring=", 5) != 0 || !take_size(argv[at] + 5, &out->ring_bytes))
            return wrong_usage("ring=SIZE, record=0 to 9 or trigger=WHAT is expected");
    }
    return out->is_again || out->trigger || out->parts || out->ring_bytes || out->record >= 0
               ? -1
               : wrong_usage("there is nothing to set");
}

/* ---- doing it ---- */

static void fill_numbers(const struct setting *setting, struct tbd_crash_request *request)
{
    if (setting->ring_bytes) {
        request->what |= TBD_REQUEST_RING;
        request->ring_bytes = setting->ring_bytes;
    }
    if (setting->record >= 0) {
        request->what |= TBD_REQUEST_RECORD;
        request->record = (uint32_t)setting->record;
    }
}

static void say_waiting(const struct tbd_crash_request *request)
{
    for (uint32_t i = 0; i < request->trigger_count; i++)
        if (request->triggers[i].flags & TBD_TRIGGER_WAITS)
            fprintf(stderr,
                    "tbd set: nothing that is loaded has the place of this trigger; it waits: %s\n",
                    tbd_shown(request->triggers[i].text));
}

/* What was read of modules that are still there is kept. */
static bool read_process(const struct setting *setting, struct tbd_probe_process *process,
                         struct tbd_query_error *error)
{
    struct tbd_probe_process before;

    if (!process->module_count)
        return tbd_process_read(process, setting->pid, error);
    if (!tbd_process_read_again(process, &before, error))
        return false;
    tbd_process_free(&before);
    return true;
}

/* At the start the program runs all the same. */
static int fail_triggers(const struct setting *setting, const struct tbd_query_error *error)
{
    int status = fail(error, setting->trigger);

    if (setting->stream_fd >= 0 && setting->trigger)
        fprintf(stderr, "tbd set: hint: there are no triggers now\n");
    return status;
}

/* What is wrong with triggers does not concern the parts, which only the start can set. */
static bool parts_alone(const struct setting *setting, struct tbd_crash_request *request,
                        struct tbd_query_error *error)
{
    fail_triggers(setting, error);
    *error = (struct tbd_query_error){ 0 };
    request->what &= ~TBD_REQUEST_TRIGGERS;
    request->trigger_count = request->place_count = request->code_count = 0;
    request->wishes[0] = '\0';
    return true;
}

/* What is wrong with parts does not concern the triggers. */
static bool fill_places(const struct setting *setting, const char *triggers,
                        const struct tbd_crash *crash, struct tbd_probe_process *process,
                        struct tbd_crash_request *request, struct tbd_query_error *error)
{
    struct tbd_query_error wrong = { 0 };
    struct tbd_part_names waiting = { "" };
    bool done = true;

    if (!read_process(setting, process, error))
        return false;
    request->loader = tbd_trigger_loader(process);
    if (setting->parts && !tbd_part_request(process, setting->parts, request, &waiting, &wrong))
        fail(&wrong, setting->parts);
    if (waiting.text[0] && !setting->is_again)
        fprintf(stderr, "tbd set: nothing that is loaded has code of these parts; they wait: %s\n",
                tbd_shown(waiting.text));
    if (triggers)
        done = tbd_trigger_request(process, triggers, setting->absent, crash, request, error);
    if (error->status == TBD_NOTFOUND && setting->absent == TBD_ABSENT_FAILS && request->loader &&
        !error->hint[0])
        strcpy(error->hint, "--pending waits until it is loaded");
    return done || (setting->parts && !setting->is_again && parts_alone(setting, request, error));
}

/* Those that the engine has; the program may scribble over them. */
static const char *copy_wishes(const struct tbd_ring_memory *memory)
{
    static char wishes[TBD_CRASH_WISHES];

    memcpy(wishes, memory->crash->look.wishes, sizeof(wishes) - 1);
    return wishes;
}

static bool fill(const struct setting *setting, const struct tbd_ring_memory *memory,
                 struct tbd_probe_process *process, struct tbd_crash_request *request,
                 struct tbd_query_error *error)
{
    const char *triggers = setting->is_again ? copy_wishes(memory) : setting->trigger;

    fill_numbers(setting, request);
    if (setting->is_again)
        request->what |= TBD_REQUEST_AGAIN;
    if ((triggers || setting->parts) &&
        !fill_places(setting, triggers, memory->crash, process, request, error))
        return false;
    if (!setting->is_again)
        say_waiting(request);
    return true;
}

static bool post(const struct setting *setting, struct tbd_ring_memory *memory,
                 struct tbd_probe_process *process, struct tbd_query_error *error)
{
    struct tbd_crash_request *request = calloc(1, sizeof(*request));
    bool done = request || tbd_query_wrong(error, TBD_NOMEM, 0, 0, "no memory");

    if (done && setting->stream_fd >= 0)
        done = tbd_ring_memory_reopen(memory, setting->stream_fd, error);
    else if (done)
        done = tbd_ring_memory_find(memory, setting->pid, error);
    done = done && fill(setting, memory, process, request, error) &&
           tbd_ring_memory_post(memory, request, error);
    if (done && setting->is_again)
        done = tbd_ring_memory_await(memory, ANSWER_MS, error);
    else if (done && setting->stream_fd < 0)
        done = tbd_ring_memory_tell(memory, setting->pid, ANSWER_MS, error);
    free(request);
    return done;
}

static bool set(const struct setting *setting, struct tbd_probe_process *process,
                struct tbd_query_error *error)
{
    struct tbd_ring_memory memory = { .fd = -1, .stream = (void *)-1 };
    bool done = post(setting, &memory, process, error);

    tbd_ring_memory_close(&memory);
    return done;
}

/* A byte from the collector, for which a thread waits; false: nobody asks any more. */
static bool await_look(void)
{
    struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
    uint8_t look;

    return poll(&fd, 1, IDLE_MS) == 1 && read(STDIN_FILENO, &look, 1) == 1;
}

/* The engine has what is found now, or nothing could be found. */
static bool answer(void)
{
    const uint8_t done = 1;

    return send(STDIN_FILENO, &done, 1, MSG_NOSIGNAL) == 1;
}

static void look_when_asked(const struct setting *setting, struct tbd_probe_process *process)
{
    struct tbd_query_error ignored;

    while (await_look()) {
        ignored = (struct tbd_query_error){ 0 };
        (void)set(setting, process, &ignored);
        if (!answer())
            return;
    }
}

int tbd_set_run(int argc, char **argv)
{
    struct tbd_probe_process process = { 0 };
    struct tbd_query_error error = { 0 };
    struct setting setting;
    int bad = parse(argc, argv, &setting), status = 0;

    if (bad >= 0)
        return bad;
    if (setting.is_again)
        look_when_asked(&setting, &process);
    else if (!set(&setting, &process, &error))
        status = fail_triggers(&setting, &error);
    tbd_process_free(&process);
    return status;
}
