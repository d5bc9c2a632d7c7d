// SPDX-License-Identifier: MIT
/* log_line.c - see log_line.h */
#include "query/output/log_line.h"

#include <inttypes.h>

void tbd_log_head_print(const struct tbd_log_head *head, FILE *out)
{
    fprintf(out, "%-14s  ", head->position);
    if (head->wall != NULL)
        fprintf(out, "%16s  ", head->wall);
    if (head->has_thread)
        fprintf(out, "%-8" PRIu32 "  ", head->thread);
}
