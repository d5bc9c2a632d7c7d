// SPDX-License-Identifier: MIT
/* user_values.c - see user_values.h */
#include "query/session/user_values.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The value without the memory that it was in. */
static void take_bytes(const struct tbd_place_of *place, const struct tbd_data *data,
                       struct tbd_data *out)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint64_t number;

    *out = *data;
    if (!data->is_known || (!data->in_memory && data->bits == 0) || view.kind == TBD_TYPE_FUNCTION)
        return;
    if (data->bits != 0 && tbd_data_scalar(place, data, &number)) {
        tbd_data_number(number, &data->type, out);
        return;
    }
    *out = (struct tbd_data){ .type = data->type, .is_known = true };
    out->byte_count = (uint32_t)(view.bytes < TBD_DATA_BYTES ? view.bytes : TBD_DATA_BYTES);
    if (view.kind == TBD_TYPE_ARRAY && view.bytes == 0 && view.count != 0)
        out->byte_count = 0;
    if (view.bytes > TBD_DATA_BYTES || out->byte_count == 0)
        tbd_data_unknown(out, "values of more than %u bytes are not kept", TBD_DATA_BYTES);
    else if (!tbd_data_read(place, data, 0, out->bytes, out->byte_count))
        tbd_data_unknown(out, "its memory was not known");
}

void tbd_user_values_free(struct tbd_user_values *values)
{
    for (size_t i = 0; i < values->named_count; i++)
        free(values->named[i].name);
    for (size_t i = 0; i < values->printed_count; i++)
        free(values->printed[i]);
    free(values->named);
    free(values->printed);
    *values = (struct tbd_user_values){ 0 };
}

/* $, $$, $3, $$3: which printed value, from 1; 0 if the name is none of these. */
static size_t number_of(const struct tbd_user_values *values, const char *name)
{
    size_t signs = strspn(name, "$"), last = values->printed_count;
    const char *digits = name + signs;
    size_t number = 0;

    if (signs > 2 || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 6)
        return 0;
    if (*digits != '\0')
        number = strtoul(digits, NULL, 10);
    else if (signs == 2)
        number = 1;
    if (signs == 1 && *digits != '\0')
        return number;
    return number < last ? last - number : 0;
}

bool tbd_user_values_find(const struct tbd_user_values *values, const char *name,
                          struct tbd_data *out)
{
    size_t number = number_of(values, name);

    if (number != 0 && number <= values->printed_count) {
        *out = *values->printed[number - 1];
        return true;
    }
    for (size_t i = 0; i < values->named_count; i++) {
        if (strcmp(values->named[i].name, name) == 0) {
            *out = values->named[i].data;
            return true;
        }
    }
    return false;
}

enum tbd_status tbd_user_values_set(struct tbd_user_values *values,
                                    const struct tbd_place_of *place, const char *name,
                                    const struct tbd_data *data)
{
    struct tbd_user_value *grown;
    size_t at = 0;

    while (at < values->named_count && strcmp(values->named[at].name, name) != 0)
        at++;
    if (at == values->named_count) {
        grown = realloc(values->named, (at + 1) * sizeof(*grown));
        if (grown == NULL)
            return TBD_NOMEM;
        values->named = grown;
        grown[at].name = strdup(name);
        if (grown[at].name == NULL)
            return TBD_NOMEM;
        values->named_count++;
    }
    take_bytes(place, data, &values->named[at].data);
    return TBD_OK;
}

size_t tbd_user_values_print(struct tbd_user_values *values, const struct tbd_place_of *place,
                             const struct tbd_data *data)
{
    struct tbd_data **grown, *kept;

    if (values->printed_count == TBD_USER_PRINTED_MAX)
        return 0;
    grown = realloc(values->printed, (values->printed_count + 1) * sizeof(struct tbd_data *));
    if (grown == NULL)
        return 0;
    values->printed = grown;
    kept = malloc(sizeof(*kept));
    if (kept == NULL)
        return 0;
    take_bytes(place, data, kept);
    grown[values->printed_count++] = kept;
    return values->printed_count;
}
