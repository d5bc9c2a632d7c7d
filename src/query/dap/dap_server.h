// SPDX-License-Identifier: MIT
/* dap_server.h - serves one client of the Debug Adapter Protocol (microsoft.github.io/debug-adapter-protocol)
 *
 * A trace is launched: `launch` names one, or a program that is recorded first.  Nothing in it can be changed.
 * Beside what the protocol has there are requests of our own, which begin with "tbd" (docs/EDITORS.md). */
#ifndef TBD_QUERY_DAP_SERVER_H
#define TBD_QUERY_DAP_SERVER_H

#include "query/commands/commands.h"

/* `trace` NULL: the client names one.  `in` and `out` are its descriptors. */
enum tbd_exit tbd_dap_serve(const char *trace, unsigned workers, int in, int out);

/* `tbdq dap [stdio|:PORT|PATH]`: one client after another. */
enum tbd_exit tbd_dap_command(const char *trace, unsigned workers, size_t count,
                              char *const *words);

#endif
