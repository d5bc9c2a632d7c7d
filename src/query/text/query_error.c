// SPDX-License-Identifier: MIT
/* query_error.c - see query_error.h */
#include "query/text/query_error.h"

#include <stdio.h>

bool tbd_query_wrong_list(struct tbd_query_error *error, enum tbd_status status, size_t at,
                          size_t length, const char *format, va_list list)
{
    if (error->status != TBD_OK)
        return false;
    *error = (struct tbd_query_error){ .status = status, .at = at, .length = length };
    vsnprintf(error->message, sizeof(error->message), format, list);
    return false;
}

bool tbd_query_wrong(struct tbd_query_error *error, enum tbd_status status, size_t at,
                     size_t length, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)tbd_query_wrong_list(error, status, at, length, format, list);
    va_end(list);
    return false;
}
