// SPDX-License-Identifier: MIT
/* ask_dump.c - see ask_dump.h */
#include "query/triggers/ask_dump.h"

#include "base/layout.h"
#include "base/safe_stream.h"
#include "query/attach/tell_engine.h"
#include "query/probe/probe_client.h"
#include "query/triggers/ring_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_SYSTEM = 4, ANSWER_MS = 20000, STEP_MS = 2 };

struct dump_wish {
    const struct tbd_crash *crash;
    uint32_t before; /* crash->asked_dumps */
};

static bool has_begun(void *context, int ms)
{
    const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
    const struct dump_wish *wish = context;

    for (int waited = 0; waited < ms; waited += STEP_MS) {
        if (__atomic_load_n(&wish->crash->asked_dumps, __ATOMIC_ACQUIRE) != wish->before)
            return true;
        nanosleep(&step, NULL);
    }
    return false;
}

static bool ask(struct tbd_ring_memory *memory, pid_t pid, struct tbd_query_error *error)
{
    struct dump_wish wish = { .crash = memory->crash };

    wish.before = __atomic_load_n(&wish.crash->asked_dumps, __ATOMIC_ACQUIRE);
    return tbd_tell_engine_until(pid, TBD_CRASH_ASKED, has_begun, &wish, ANSWER_MS, error);
}

/* The collector writes while the program waits.  False: the program has ended before. */
static bool is_written(const struct tbd_crash *crash, pid_t pid)
{
    uint32_t asked = __atomic_load_n(&crash->asked_dumps, __ATOMIC_ACQUIRE);
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    bool has_ended = false, is_answered = false;

    while (!is_answered && !has_ended) {
        has_ended = tbd_process_ends(pid, descriptor, STEP_MS);
        is_answered =
            (int32_t)(__atomic_load_n(&crash->answered_dumps, __ATOMIC_ACQUIRE) - asked) >= 0;
    }
    if (descriptor >= 0)
        close(descriptor);
    return is_answered;
}

static int usage(FILE *out, int status)
{
    fputs("usage: tbd dump PID\n\nThe program, which runs under `tbd crash`, leaves a dump, and "
          "goes on.\n",
          out);
    return status;
}

int tbd_ask_dump_run(int argc, char **argv)
{
    struct tbd_query_error error = { 0 };
    struct tbd_ring_memory memory;
    bool done;
    pid_t pid;

    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return usage(stdout, 0);
    if (argc != 2 || !tbd_client_read_pid(argv[1], &pid)) {
        fputs("tbd dump: it takes the number of a process\n", stderr);
        return EXIT_USAGE;
    }
    done = tbd_ring_memory_find(&memory, pid, &error) && ask(&memory, pid, &error);
    if (done && !is_written(memory.crash, pid)) {
        error = (struct tbd_query_error){ .status = TBD_SYSTEM };
        snprintf(error.message, sizeof(error.message),
                 "the program ended while its dump was written");
        done = false;
    }
    tbd_ring_memory_close(&memory);
    if (done)
        return 0;
    fprintf(stderr, "tbd dump: %s\n", tbd_shown(error.message));
    return error.status == TBD_NOTFOUND ? EXIT_USAGE : EXIT_SYSTEM;
}
