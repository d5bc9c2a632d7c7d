// SPDX-License-Identifier: MIT
/* functions.h - the functions that a name means, which may be several: overloads, namespaces */
#ifndef TBD_QUERY_FUNCTIONS_H
#define TBD_QUERY_FUNCTIONS_H

#include "query/commands/commands.h"

#define TBD_FUNCTIONS_MAX 16u

/* The functions called `name` that have code of their own, without import stubs; how many are in `out`. */
size_t tbd_functions_called(struct tbd_session *session, uint32_t window, const char *name,
                            struct tbd_symbol out[TBD_FUNCTIONS_MAX]);
/* Names them on stderr if there are several: "'far' means shop::far (a.cc:5), other::far (a.cc:7)". */
void tbd_functions_tell(struct tbd_session *session, const char *name);
/* Says where the function is inlined, too, if a question about calls leaves these copies out; false: nowhere. */
bool tbd_functions_tell_inlined(struct tbd_session *session, const char *name);

#endif
