// SPDX-License-Identifier: MIT
/* dap_record.h - a program is recorded for a client, which sees what it prints */
#ifndef TBD_QUERY_DAP_RECORD_H
#define TBD_QUERY_DAP_RECORD_H

#include "query/dap/dap.h"

/* Records what the arguments of `launch` name, to its end; the trace's path, owned by the caller.  NULL
 * after a refusal. */
char *tbd_dap_record(struct tbd_dap *dap, const json_t *arguments);

#endif
