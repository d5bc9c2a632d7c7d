// SPDX-License-Identifier: MIT
/* auxiliary_vector.c - see auxiliary_vector.h */
#include "query/exports/auxiliary_vector.h"

#include <elf.h>
#include <stdlib.h>

/* The kernel puts the auxiliary vector above the main stack, between the environment's pointers and the strings.
 * [words, words + count) is the top of that stack. */
static void print_vector(const uint64_t *words, size_t count, FILE *out)
{
    size_t first = count;

    /* AT_EXECFN is in every vector, and is one of the highest addresses of all. */
    for (size_t i = count; i-- > 1 && first == count;)
        if (words[i - 1] == AT_EXECFN && i + 2 <= count && words[i] > UINT32_MAX)
            first = i - 1;
    if (first == count)
        return;
    while (first >= 2 && words[first - 2] != AT_NULL && words[first - 2] < 256)
        first -= 2;
    for (size_t i = first; i + 1 < count && words[i] < 256; i += 2) {
        (void)!fwrite(&words[i], sizeof(*words), 2, out);
        if (words[i] == AT_NULL)
            return;
    }
}

void tbd_auxiliary_vector_write(struct tbd_session *session, FILE *out)
{
    enum { TOP = 1u << 18 };

    const struct tbd_region *regions = NULL;
    size_t count = 0, bytes = 0;
    uint64_t *words = calloc(1, TOP), start = 0;

    if (words != NULL &&
        tbd_trace_regions(session->trace, 0, &regions, &count, &session->why) == TBD_OK)
        for (size_t i = 0; i < count; i++)
            if ((regions[i].flags & TBD_REGION_STACK) != 0) {
                bytes = regions[i].end - regions[i].start < TOP
                            ? (size_t)(regions[i].end - regions[i].start)
                            : TOP;
                start = regions[i].end - bytes;
            }
    if (bytes != 0 &&
        tbd_session_read(session, tbd_session_first(session), start, words, bytes) == TBD_OK)
        print_vector(words, bytes / sizeof(*words), out);
    free(words);
}
