// SPDX-License-Identifier: MIT
/* value_json.h - values of the program as JSON: objects for structs, arrays for arrays and containers */
#ifndef TBD_QUERY_VALUE_JSON_H
#define TBD_QUERY_VALUE_JSON_H

#include "query/values/dwarf_print.h"

#include <jansson.h>

/* The caller owns it.  docs/JSON.md says what becomes what. */
json_t *tbd_value_json(const struct tbd_printer *printer, const struct tbd_data *data);

#endif
