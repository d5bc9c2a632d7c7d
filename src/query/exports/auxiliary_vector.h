// SPDX-License-Identifier: MIT
/* auxiliary_vector.h - what the kernel told the program about itself when it began: found on its first stack */
#ifndef TBD_QUERY_AUXILIARY_VECTOR_H
#define TBD_QUERY_AUXILIARY_VECTOR_H

#include "query/session/session.h"

#include <stdio.h>

/* Writes the vector's words, up to AT_NULL; nothing if it is not found. */
void tbd_auxiliary_vector_write(struct tbd_session *session, FILE *out);

#endif
