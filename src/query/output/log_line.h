// SPDX-License-Identifier: MIT
/* log_line.h - what stands before the text of a line of `log`: position, time, thread */
#ifndef TBD_QUERY_LOG_LINE_H
#define TBD_QUERY_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tbd_log_head {
    const char *position;
    const char *wall; /* the clock's time; NULL: it is not shown */
    bool has_thread;
    uint32_t thread;
};

void tbd_log_head_print(const struct tbd_log_head *head, FILE *out);

#endif
