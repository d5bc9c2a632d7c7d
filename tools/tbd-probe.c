// SPDX-License-Identifier: MIT
/* tbd-probe.c - tbd probe -p PID SCRIPT, tbd set PID NAME=VALUE, tbd dump PID, tbd stop PID: a tool of its own, so that `tbd`
 * needs no library for debug information */
#include "query/probe/deputy.h"
#include "query/probe/probe_run.h"
#include "query/probe/take_run.h"
#include "query/triggers/ask_dump.h"
#include "query/triggers/trigger_run.h"

#include "base/safe_stream.h"

#include <string.h>

int main(int argc, char **argv)
{
    tbd_safe_messages();
    if (argc && strcmp(argv[0], "set") == 0)
        return tbd_set_run(argc, argv);
    if (argc && strcmp(argv[0], "dump") == 0)
        return tbd_ask_dump_run(argc, argv);
    if (argc && strcmp(argv[0], "stop") == 0)
        return tbd_stop_run(argc, argv);
    if (argc && strcmp(argv[0], "take") == 0)
        return tbd_take_run(argc, argv);
    if (argc && strcmp(argv[0], "deputy") == 0)
        return tbd_deputy_run(argc, argv);
    return tbd_probe_run(argc, argv);
}
