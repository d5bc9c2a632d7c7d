// SPDX-License-Identifier: MIT
/* fd_groups.c - see fd_groups.h */
#include "query/fds/fd_groups.h"

#include "query/output/output.h"

#include <stdlib.h>

struct tbd_fd_groups tbd_fd_groups_new(void)
{
    return (struct tbd_fd_groups){ .rows = json_object() };
}

void tbd_fd_groups_free(struct tbd_fd_groups *groups)
{
    json_decref(groups->rows);
    groups->rows = NULL;
}

json_t *tbd_fd_groups_add(struct tbd_fd_groups *groups, const char *key, uint32_t fd,
                          bool *out_is_new)
{
    json_t *text = tbd_output_text(key); /* a key of an object is UTF-8 */
    json_t *row = json_object_get(groups->rows, json_string_value(text)), *fds;

    *out_is_new = row == NULL;
    if (row == NULL) {
        row = json_object();
        json_object_set_new(row, "count", json_integer(0));
        json_object_set_new(row, "fds", json_array());
        json_object_set_new(groups->rows, json_string_value(text), row);
    }
    json_decref(text);
    fds = json_object_get(row, "fds");
    if (fds == NULL)
        return NULL;
    if (json_array_size(fds) < TBD_FD_GROUP_SHOWN)
        json_array_append_new(fds, json_integer((int32_t)fd));
    json_integer_set(json_object_get(row, "count"),
                     json_integer_value(json_object_get(row, "count")) + 1);
    return row;
}

struct sorted_row {
    json_t *row;
    json_int_t count;
    size_t at;
};

static int compare_rows(const void *left, const void *right)
{
    const struct sorted_row *a = left, *b = right;

    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return a->at < b->at ? -1 : a->at > b->at;
}

enum tbd_exit tbd_fd_groups_print(const struct tbd_fd_groups *groups, struct tbd_command_run *run,
                                  const char *const *columns)
{
    struct sorted_row *sorted = calloc(json_object_size(groups->rows) + 1, sizeof(*sorted));
    size_t count = 0;
    struct tbd_rows rows;
    const char *key;
    json_t *row;

    if (sorted == NULL)
        return tbd_command_no_memory();
    json_object_foreach(groups->rows, key, row)
    {
        sorted[count] = (struct sorted_row){
            .row = row, .count = json_integer_value(json_object_get(row, "count")), .at = count
        };
        count++;
    }
    qsort(sorted, count, sizeof(*sorted), compare_rows);
    tbd_rows_start(&rows, run, columns);
    for (size_t i = 0; i < count; i++)
        tbd_rows_add(&rows, json_incref(sorted[i].row));
    free(sorted);
    return tbd_rows_end(&rows);
}
