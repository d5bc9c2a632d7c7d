// SPDX-License-Identifier: MIT
/* listen.h - where a server of tbdq meets its clients, one after another
 *
 * On the loopback interface, at a Unix socket that only this user can reach, or at the standard input
 * and output of the one client that has started it.  Never on another interface. */
#ifndef TBD_QUERY_LISTEN_H
#define TBD_QUERY_LISTEN_H

#include "query/commands/commands.h"

struct tbd_listening {
    const char *where;      /* "stdio", "[HOST]:PORT", or the path of a socket, which has a slash */
    const char *command;    /* whose help says more */
    const char *invitation; /* what to type before the address: "(gdb) target remote " */
    /* Serves one client; another result than TBD_EXIT_FOUND ends the server. */
    enum tbd_exit (*serve)(void *context, int in, int out);
    void *context;
};

enum tbd_exit tbd_listen(const struct tbd_listening *how);

#endif
