// SPDX-License-Identifier: MIT
/* probe_run.c - see probe_run.h
 *
 * Parses the script, finds its places, has them placed, and then shows records as they come; at the end, after
 * no thread is in a probe any more, what is left of them and the maps. */
#include "query/probe/probe_run.h"

#include "base/safe_stream.h"
#include "query/attach/attach_masks.h"
#include "query/probe/probe_client.h"
#include "query/probe/probe_follow.h"
#include "query/probe/probe_places.h"
#include "query/probe/probe_reach.h"
#include "query/probe/probe_records_read.h"
#include "query/probe/probe_refused.h"
#include "query/probe/probe_show.h"
#include "query/probe/probe_start.h"
#include "query/probe/probe_trigger.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_SCRIPT_BYTES (1u << 20)
#define WAIT_MS          100
#define FIRST            (-20)

enum { EXIT_NOTHING = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 4 };

struct probe_options {
    pid_t pid;
    const char *text; /* of the script */
    char *owned;      /* the same, from a file */
    char **command;   /* the program to start; NULL: `pid` runs already */
    bool json, drop, quiet, traps, pending;
};

static volatile sig_atomic_t wants_end;

static void on_signal(int signal)
{
    (void)signal;
    wants_end = 1;
}

/* ---- the command line ---- */

static int usage(FILE *out)
{
    fputs(
        "usage: tbd probe -p PID [options] SCRIPT\n"
        "       tbd probe [options] SCRIPT -- program [argument ...]\n\n"
        "  -p, --pid PID    a process, best one that runs under `tbd arm`\n"
        "  -f, --file FILE  the script is in FILE\n"
        "  -e SCRIPT        the script\n"
        "      --json       one JSON object per line\n"
        "      --drop       a full buffer loses records, which are counted; without, the program waits\n"
        "      --traps      each probe is a trap, none a jump\n"
        "      --pending    what is not there yet gets its probes when it is loaded\n"
        "  -q, --quiet      do not say how many probes there are\n"
        "      --help\n\n"
        "A script: uprobe:libc:malloc /arg0 > 100000/ { @[arg0] = count(); }   (man tbd, PROBES)\n",
        out);
    return out == stdout ? 0 : EXIT_USAGE;
}

static int wrong_usage(const char *what)
{
    fprintf(stderr, "tbd probe: %s\ntbd probe: hint: tbd probe --help\n", what);
    return EXIT_USAGE;
}

static char *read_file(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = file ? malloc(MAX_SCRIPT_BYTES + 1) : NULL;
    size_t got = text ? fread(text, 1, MAX_SCRIPT_BYTES + 1, file) : 0;

    if (file && file != stdin)
        fclose(file);
    if (!text || got > MAX_SCRIPT_BYTES) {
        fprintf(stderr, "tbd probe: cannot read the script: %s: %s\n", tbd_shown(path),
                text ? "it is longer than 1 MiB" : strerror(errno));
        free(text);
        return NULL;
    }
    text[got] = '\0';
    return text;
}

/* SCRIPT [program argument ...]; a -- before the program is getopt's, or still there. */
static int take_words(char **words, struct probe_options *out)
{
    if (!out->text && *words)
        out->text = *words++;
    if (!out->text)
        return wrong_usage("there is no script");
    if (*words && strcmp(*words, "--") == 0)
        words++;
    out->command = *words ? words : NULL;
    if (out->command && out->pid)
        return wrong_usage("either -p PID or a program; a script is one word, in quotes");
    return out->command || out->pid ? -1 : wrong_usage("-p PID, or a program, is missing");
}

/* -1: go on. */
static int parse_options(int argc, char **argv, struct probe_options *out)
{
    static const struct option names[] = {
        { "pid", required_argument, NULL, 'p' },
        { "file", required_argument, NULL, 'f' },
        { "json", no_argument, NULL, 'j' },
        { "drop", no_argument, NULL, 'd' },
        { "traps", no_argument, NULL, 't' },
        { "quiet", no_argument, NULL, 'q' },
        { "pending", no_argument, NULL, 'w' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "+p:f:e:qh", names, NULL)) != -1) {
        switch (option) {
        case 'p':
            if (!tbd_client_read_pid(optarg, &out->pid))
                return wrong_usage("-p takes the number of a process");
            break;
        case 'f':
            out->text = out->owned = read_file(optarg);
            if (!out->text)
                return EXIT_USAGE;
            break;
        case 'e': out->text = optarg; break;
        case 'j': out->json = true; break;
        case 'd': out->drop = true; break;
        case 't': out->traps = true; break;
        case 'w': out->pending = true; break;
        case 'q': out->quiet = true; break;
        case 'h': return usage(stdout);
        default: return usage(stderr);
        }
    }
    return take_words(argv + optind, out);
}

/* ---- errors ---- */

static int fail(const struct tbd_query_error *error, const char *text)
{
    const char *line = text;
    size_t number = 1, length;

    fprintf(stderr, "tbd probe: %s\n", tbd_shown(error->message));
    if (error->length || error->status == TBD_SYNTAX) {
        for (size_t i = 0; i < error->at && text[i]; i++)
            if (text[i] == '\n') {
                line = text + i + 1;
                number++;
            }
        length = strcspn(line, "\n");
        fprintf(stderr, "  %zu: %.*s\n  %*s^\n", number, (int)(length < 200 ? length : 200), line,
                (int)(error->at - (size_t)(line - text)) + snprintf(NULL, 0, "%zu: ", number), "");
    }
    if (error->hint[0])
        fprintf(stderr, "tbd probe: hint: %s\n", error->hint);
    return error->status == TBD_SYNTAX || error->status == TBD_USAGE ? EXIT_USAGE
           : error->status == TBD_NOTFOUND                           ? EXIT_NOTHING
                                                                     : EXIT_SYSTEM;
}

/* ---- a session ---- */

struct probe_run {
    const struct probe_options *options;
    struct tbd_probe_script *script;
    struct tbd_probe_process process;
    struct tbd_script_places places;
    uint32_t sent; /* instructions of the script */
    struct tbd_guard_places guards;
    struct tbd_probe_client client;
    struct tbd_probe_output output;
    struct tbd_query_error error;
    struct tbd_unblocked unblocked;
    struct tbd_follower follower;         /* --pending */
    bool has_begun;                       /* BEGIN was carried out */
    uint64_t jumps;                       /* of the probes */
    uint64_t due_look;                    /* where nobody tells of libraries */
    uint64_t due[TBD_SCRIPT_MAX_CLAUSES]; /* of intervals */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void act(struct probe_run *run, const struct tbd_script_where *where)
{
    for (uint32_t i = 0; i < where->action_count; i++) {
        const struct tbd_script_action *action = &run->script->actions[where->first_action + i];

        switch ((enum tbd_action_kind)action->kind) {
        case TBD_ACTION_PRINTF:
            tbd_show_text(&run->output, &run->script->prints[action->what]);
            break;
        case TBD_ACTION_PRINT: tbd_show_map(&run->output, action->what); break;
        case TBD_ACTION_CLEAR: tbd_clear_map(&run->output, action->what); break;
        case TBD_ACTION_EXIT:
        default: wants_end = 1; break;
        }
    }
}

static void act_all(struct probe_run *run, enum tbd_where_kind kind)
{
    for (uint32_t i = 0; i < run->script->where_count; i++)
        if (run->script->where[i].place.kind == kind)
            act(run, &run->script->where[i]);
}

static void act_at_intervals(struct probe_run *run)
{
    uint64_t now = now_ns();

    for (uint32_t i = 0; i < run->script->where_count; i++) {
        const struct tbd_script_where *where = &run->script->where[i];

        if (where->place.kind != TBD_WHERE_INTERVAL || now < run->due[i])
            continue;
        if (run->due[i])
            act(run, where);
        run->due[i] = (run->due[i] ? run->due[i] : now) + where->place.number;
    }
}

static bool find_places(struct probe_run *run)
{
    run->places = (struct tbd_script_places){ .script = run->script,
                                              .process = &run->process,
                                              .may_wait = run->options->pending };
    return tbd_process_read(&run->process, run->options->pid, &run->error) &&
           tbd_script_places_find(&run->places, &run->error);
}

static bool place_guards(struct probe_run *run)
{
    if (!tbd_guard_places_find(&run->process, &run->guards))
        return tbd_query_wrong(&run->error, TBD_NOMEM, 0, 0, "no memory");
    return tbd_client_guard(&run->client, &run->guards, &run->error);
}

/* What the keeper does not have yet. */
static bool send_code(struct probe_run *run)
{
    const struct tbd_probe_script *script = run->script;
    uint32_t from = run->sent;

    run->sent = script->code_count;
    return tbd_client_send_code(&run->client, script->code + from, script->code_count - from,
                                &run->error);
}

static bool begin_session(struct probe_run *run)
{
    struct tbd_probe_script *script = run->script;
    uint32_t flags =
        (run->options->drop ? TBD_PROBE_DROP : 0) | (run->options->traps ? TBD_PROBE_TRAPS : 0);

    if (!tbd_probe_reach(&run->client, run->options->pid, &run->error) || !find_places(run))
        return false;
    tbd_attach_unblock(run->options->pid, &run->unblocked);
    if (!tbd_probe_open_session(&run->client, run->options->pid, script, flags, &run->error) ||
        !send_code(run) || !place_guards(run))
        return false;
    if (!tbd_probes_place(&run->client, &run->places, &run->error))
        return false;
    run->output = (struct tbd_probe_output){ .out = stdout,
                                             .json = run->options->json,
                                             .script = script,
                                             .process = &run->process,
                                             .shared = run->client.shared,
                                             .shared_bytes = run->client.bytes };
    if (!run->has_begun)
        act_all(run, TBD_WHERE_BEGIN);
    run->has_begun = true;
    return tbd_client_order(&run->client, TBD_PROBE_START, &run->jumps, &run->error);
}

/* On a machine that is busy it is mostly our turns that it takes; not everybody may go first. */
static bool begin_before_others(struct probe_run *run)
{
    int priority = getpriority(PRIO_PROCESS, 0);
    bool done;

    setpriority(PRIO_PROCESS, 0, FIRST);
    done = begin_session(run);
    setpriority(PRIO_PROCESS, 0, priority);
    return done;
}

/* ---- libraries that come and go ---- */

static void say_more(struct probe_run *run)
{
    size_t more = run->places.now.count - run->places.fresh;
    char name[512];

    if (!more || run->options->quiet)
        return;
    tbd_process_name(&run->process, run->places.now.all[run->places.fresh].address, name,
                     sizeof(name));
    fprintf(stderr, "tbd probe: %zu probes more, %s%s; %zu clauses wait\n", more, tbd_shown(name),
            more > 1 ? " and others" : "", tbd_script_places_waiting(&run->places));
}

/* A probe that is refused in a new library is said; the others stay. */
static void look_again(struct probe_run *run)
{
    struct tbd_probe_client *client = &run->client;
    size_t wrong;

    run->error = (struct tbd_query_error){ 0 };
    if (!tbd_script_places_again(&run->places, &run->error))
        return; /* the process has ended, which the connection says */
    if (run->places.gone.count)
        tbd_client_take(client, run->places.gone.all, run->places.gone.count, &wrong, &run->error);
    if (run->places.now.count == run->places.fresh) {
        if (run->script->walks_stacks) /* no places: the keeper only looks what is mapped */
            tbd_client_order(client, TBD_PROBE_PLACE, NULL, &run->error);
        return;
    }
    if (send_code(run) && tbd_probes_place_fresh(client, &run->places, &run->error))
        say_more(run);
    else
        fail(&run->error, run->options->text);
}

/* Threads that have told of a library wait for the answer. */
static void look_if_asked(struct probe_run *run)
{
    struct tbd_probe_shared *shared = run->client.shared;
    uint32_t asked = __atomic_load_n(&shared->asked, __ATOMIC_ACQUIRE);
    bool is_asked = asked != shared->looked;

    if (!is_asked && (!tbd_script_places_polls(&run->places) || now_ns() < run->due_look))
        return;
    run->due_look = now_ns() + WAIT_MS * 1000000ull;
    look_again(run);
    if (is_asked)
        tbd_records_answer(shared, asked);
}

/* The keeper closes the connection when the program has ended. */
static bool has_ended(int connection)
{
    char byte;

    return recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void say_losses(const struct tbd_probe_shared *shared)
{
    uint64_t unknown = 0;

    for (uint32_t i = 0; i < TBD_PROBE_SHARDS; i++)
        unknown += shared->shard[i].unknown;
    if (shared->lost)
        fprintf(stderr, "tbd probe: %" PRIu64 " records were lost (--drop)\n", shared->lost);
    if (shared->map_full)
        fprintf(stderr, "tbd probe: %" PRIu64 " values found no place in their map\n",
                shared->map_full);
    if (unknown)
        fprintf(stderr, "tbd probe: at %" PRIu64 " hits a value could not be read\n", unknown);
}

/* A map that the script prints or clears itself is not shown once more. */
static void show_rest(struct probe_run *run)
{
    for (uint32_t map = 0; map < run->script->map_count; map++) {
        bool is_shown = false;

        for (uint32_t i = 0; i < run->script->action_count; i++)
            is_shown |= run->script->actions[i].kind == TBD_ACTION_PRINT &&
                        run->script->actions[i].what == map;
        if (!is_shown)
            tbd_show_map(&run->output, map);
    }
}

/* ---- the process executes another program ---- */

/* What was found in the program before is shown now: in the next one maps begin anew. */
static void leave_program(struct probe_run *run)
{
    while (tbd_records_take(&run->output))
        ;
    show_rest(run);
    fflush(stdout);
    say_losses(run->client.shared);
    tbd_client_close(&run->client);
    tbd_process_free(&run->process);
    tbd_script_places_free(&run->places);
    tbd_guard_places_free(&run->guards);
    run->process = (struct tbd_probe_process){ 0 };
    run->places = (struct tbd_script_places){ 0 };
    tbd_script_free(run->script);
    run->sent = 0;
}

/* A program under tbd waits for its probes; others are attached to while they run. */
static bool enter_program(struct probe_run *run)
{
    bool done;

    run->error = (struct tbd_query_error){ 0 };
    run->script = tbd_script_parse(run->options->text, &run->error);
    if (!run->script)
        return false;
    if (!tbd_follow_await(&run->follower))
        tbd_probe_await_keeper_end(run->options->pid);
    done = begin_before_others(run);
    if (done)
        tbd_follow_listen(&run->follower);
    tbd_follow_go_on(&run->follower);
    return done;
}

static void say_placed(const struct probe_run *run)
{
    size_t waiting = tbd_script_places_waiting(&run->places);
    size_t probes = run->places.fresh - run->places.loaders;

    fprintf(stderr, "tbd probe: %zu probes in process %d, %" PRIu64 " as jumps", probes,
            (int)run->options->pid, run->jumps);
    if (waiting)
        fprintf(stderr, "; %zu clauses wait", waiting);
    fputc('\n', stderr);
}

static void say_executed(const struct tbd_follower *follower)
{
    char program[PATH_MAX];

    if (!tbd_follow_program(follower, program, sizeof(program)))
        return; /* it has ended since */
    fprintf(stderr,
            "tbd probe: process %d has executed %s: the probes are gone\n"
            "tbd probe: hint: --pending goes on there\n",
            (int)follower->pid, tbd_shown(program));
}

/* False: the program has ended, or the next one cannot be probed. */
static bool goes_on(struct probe_run *run)
{
    if (!tbd_follow_executes(&run->follower))
        return !has_ended(run->client.connection);
    if (!run->options->pending) {
        say_executed(&run->follower);
        return false;
    }
    if (!run->options->quiet)
        fprintf(stderr, "tbd probe: process %d executes another program\n", (int)run->options->pid);
    leave_program(run);
    if (enter_program(run)) {
        if (!run->options->quiet)
            say_placed(run);
        return true;
    }
    fail(&run->error, run->options->text);
    return false;
}

static void follow(struct probe_run *run)
{
    while (!wants_end && !run->client.shared->wants_end && goes_on(run)) {
        if (!tbd_records_take(&run->output)) {
            fflush(stdout);
            tbd_records_wait(run->client.shared, WAIT_MS);
        }
        look_if_asked(run);
        act_at_intervals(run);
        if (ferror(stdout))
            wants_end = 1;
    }
}

static void end_session(struct probe_run *run)
{
    struct tbd_query_error ignored = { 0 };

    /* a thread that stop() has stopped is inside its probe, and must leave it */
    __atomic_store_n(&run->client.shared->wants_end, 1, __ATOMIC_SEQ_CST);
    if (run->output.stops)
        kill(run->options->pid, SIGCONT);
    /* threads that wait for space must get on before nobody is inside a probe */
    while (tbd_records_take(&run->output))
        ;
    tbd_client_order(&run->client, TBD_PROBE_STOP, NULL, &ignored);
    while (tbd_records_take(&run->output))
        ;
    act_all(run, TBD_WHERE_END);
    show_rest(run);
    fflush(stdout);
    say_losses(run->client.shared);
}

/* `client` is connected if the program was started for it. */
static int run_script(const struct probe_options *options, const struct tbd_probe_client *client)
{
    static struct probe_run run;
    int status = 0;

    /* whole lines: the program may write to the same pipe or terminal */
    setvbuf(stdout, NULL, _IOLBF, 0);
    run.options = options;
    run.client = *client;
    run.script = tbd_script_parse(options->text, &run.error);
    if (!run.script)
        return fail(&run.error, options->text);
    tbd_follow_begin(&run.follower, options->pid);
    if (begin_before_others(&run)) {
        if (options->pending)
            tbd_follow_listen(&run.follower);
        if (!options->quiet)
            say_placed(&run);
        follow(&run);
        if (run.client.shared)
            end_session(&run);
    } else {
        status = fail(&run.error, options->text);
        if (options->command) /* it waits, and would begin when the connection is closed */
            kill(options->pid, SIGKILL);
    }
    tbd_follow_end(&run.follower);
    tbd_client_close(&run.client);
    tbd_attach_block_again(&run.unblocked);
    if (run.output.trigger) {
        wants_end = 0; /* ctrl-C ends what begins now */
        status = tbd_probe_follow_trigger(options->pid, run.output.trigger, &wants_end);
    }
    tbd_process_free(&run.process);
    tbd_script_places_free(&run.places);
    tbd_guard_places_free(&run.guards);
    tbd_script_free(run.script);
    return status;
}

/* The program waits until its probes are placed.  Without them it does not run. */
static int run_command(struct probe_options *options)
{
    struct tbd_probe_client client = { .connection = -1 };
    struct tbd_query_error error = { 0 };
    int status;

    if (!tbd_probe_start_armed(options->command, &options->pid, &client, &error))
        return fail(&error, options->text);
    status = run_script(options, &client);
    return tbd_probe_end_armed(options->pid, status != 0, status);
}

int tbd_probe_run(int argc, char **argv)
{
    const struct tbd_probe_client not_connected = { .connection = -1 };
    struct probe_options options = { 0 };
    struct sigaction action = { .sa_handler = on_signal };
    int status;

    status = parse_options(argc, argv, &options);
    if (status < 0) {
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        signal(SIGPIPE, SIG_IGN);
        status = options.command ? run_command(&options) : run_script(&options, &not_connected);
    }
    free(options.owned);
    return status;
}
