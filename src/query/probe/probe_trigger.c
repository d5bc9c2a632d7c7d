// SPDX-License-Identifier: MIT
/* probe_trigger.c - see probe_trigger.h */
#include "query/probe/probe_trigger.h"

#include "query/attach/attach_check.h"
#include "query/probe/probe_start.h"

#include <stdio.h>
#include <time.h>

#define MOMENT_MS 20

static int ask_tbd(pid_t pid, const char *first, const char *second)
{
    char number[16], words[2][8];
    char *argv[5] = { (char[]){ "tbd" }, words[0], NULL, NULL, NULL };

    snprintf(number, sizeof(number), "%d", (int)pid);
    snprintf(words[0], sizeof(words[0]), "%s", first);
    snprintf(words[1], sizeof(words[1]), "%s", second);
    argv[2] = second[0] ? words[1] : number;
    argv[3] = second[0] ? number : NULL;
    return tbd_probe_run_tbd(argv);
}

/* Also of a child that nobody has waited for. */
static bool has_ended(pid_t pid)
{
    struct tbd_attach_thread first;

    tbd_attach_read_thread(pid, pid, &first);
    return first.state == 'X' || first.state == 'Z';
}

static void wait_seconds(pid_t pid, uint32_t seconds, const volatile sig_atomic_t *wants_end)
{
    const struct timespec moment = { 0, MOMENT_MS * 1000000L };

    for (uint32_t ms = 0; ms < seconds * 1000 && !*wants_end && !has_ended(pid); ms += MOMENT_MS)
        nanosleep(&moment, NULL);
}

int tbd_probe_follow_trigger(pid_t pid, const struct tbd_script_print *trigger,
                             const volatile sig_atomic_t *wants_end)
{
    bool records = trigger->trigger == TBD_TRIGGER_RECORD;
    int status = ask_tbd(pid, records ? "record" : "crash", "-p");

    if (status)
        return has_ended(pid) ? 0 : status;
    if (records)
        wait_seconds(pid, trigger->seconds, wants_end);
    else
        status = ask_tbd(pid, "dump", "");
    return has_ended(pid) || !ask_tbd(pid, "stop", "") ? status : 4;
}
