// SPDX-License-Identifier: MIT
/* cmd_fds.c - fds: the descriptors that are open at a position, what became of one, what was done wrong with them
 *
 *   fds [leaks]         open ones, by the calls that opened them; leaks: at the end of the recording
 *   fds of N            who opened, copied and closed it
 *   fds errors          uses of descriptors that were closed, or never open */
#include "query/fds/fds.h"

#include <string.h>

enum tbd_exit tbd_command_fds(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    bool is_of = run->argc == 2 && strcmp(run->argv[0], "of") == 0;
    bool is_leaks = run->argc == 1 && strcmp(run->argv[0], "leaks") == 0;
    bool is_errors = run->argc == 1 && strcmp(run->argv[0], "errors") == 0;
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct tbd_fds fds = { 0 };
    uint64_t fd = 0;

    if (run->argc != 0 && !is_of && !is_leaks && !is_errors)
        return tbd_command_usage(run, "fds takes nothing, leaks, errors, or of N");
    if (is_of)
        result = tbd_command_value(run, 1, position, &fd);
    if (result == TBD_EXIT_FOUND && ((int64_t)fd < INT32_MIN || (int64_t)fd > INT32_MAX))
        return tbd_command_usage(run, "a descriptor is a small number");
    if (result == TBD_EXIT_FOUND)
        result = tbd_fds_open(run, &fds);
    if (result == TBD_EXIT_FOUND && fds.own->loss[0] != '\0')
        fprintf(stderr, "tbdq: what follows may be incomplete: %s\n", fds.own->loss);
    if (result == TBD_EXIT_FOUND && is_of)
        result = tbd_fds_print_history(&fds, fd);
    else if (result == TBD_EXIT_FOUND && is_errors)
        result = tbd_fds_print_errors(&fds);
    else if (result == TBD_EXIT_FOUND)
        result = tbd_fds_print_open(&fds, is_leaks ? UINT64_MAX : tbd_fds_order(&fds, position));
    tbd_fds_close(&fds);
    return result;
}
