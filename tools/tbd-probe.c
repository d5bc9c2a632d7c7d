// SPDX-License-Identifier: MIT
/* tbd-probe.c - tbd probe -p PID SCRIPT: a tool of its own, so that `tbd` needs no library for debug information */
#include "query/probe/probe_run.h"

#include "base/safe_stream.h"

int main(int argc, char **argv)
{
    tbd_safe_messages();
    return tbd_probe_run(argc, argv);
}
