// SPDX-License-Identifier: MIT
/* cpu_features.h - what a trace's code needs of a processor beyond x86-64-v3
 *
 * A replay runs on every processor that has what the blocks of the window use (docs/ARCHITECTURE.md); this is
 * the list for the whole trace. */
#ifndef TBD_QUERY_CPU_FEATURES_H
#define TBD_QUERY_CPU_FEATURES_H

#include "query/session/session.h"

#include <stddef.h>

#define TBD_CPU_FEATURES_MAX 32u

struct tbd_cpu_feature {
    char name[24];   /* "AVX512F": the instruction set's name */
    uint32_t blocks; /* that use it */
};

/* In the order in which blocks were defined; returns how many there are. */
size_t tbd_cpu_features(const struct tbd_trace *trace,
                        struct tbd_cpu_feature out[TBD_CPU_FEATURES_MAX]);

/* The windows that have blocks of that kind; to be freed with tbd_left_out_clear().  *out_perhaps: among them are
 * windows that were recorded uncounted, whose lists have more blocks than ran. */
void tbd_cpu_feature_windows(struct tbd_session *session, struct tbd_left_out *out,
                             bool *out_perhaps);

#endif
