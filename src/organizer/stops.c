// SPDX-License-Identifier: MIT
/* stops.c - see stops.h */
#include "organizer/stops.h"

#include "format/files/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void name_of(uint64_t window, char out[40])
{
    snprintf(out, 40, "stops/%" PRIu64, window);
}

enum tbd_status tbd_stops_keep(int dir, uint64_t window, const struct tbd_raw_window *raw)
{
    uint64_t bytes = raw->operand_bytes;
    struct tbd_buffer file = { 0 };
    enum tbd_status status = window ? TBD_OK : tbd_dir_make_folder(dir, "stops");
    size_t record;
    char name[40];

    name_of(window, name);
    tbd_file_put_header(&file, TBD_FILE_STOPS, (uint32_t)window, 0);
    record = tbd_file_begin_record(&file, TBD_REC_STOPS);
    tbd_buffer_put(&file, &bytes, sizeof(bytes));
    tbd_lz4_pack(&file, raw->operands, raw->operand_bytes);
    tbd_file_finish_record(&file, record);
    if (file.failed)
        status = TBD_NOMEM;
    if (!status)
        status = tbd_dir_write(dir, name, file.bytes, file.used);
    tbd_buffer_free(&file);
    return status;
}

static enum tbd_status unpack(const struct tbd_record_view *record, const char *name,
                              struct tbd_buffer *out, struct tbd_error *why)
{
    uint64_t bytes;

    if (record->type != TBD_REC_STOPS || record->bytes < sizeof(bytes))
        return tbd_error_set(why, TBD_CORRUPT, name, record->offset, "no messages");
    memcpy(&bytes, record->payload, sizeof(bytes));
    if (bytes > tbd_lz4_most(record->bytes))
        return tbd_error_set(why, TBD_CORRUPT, name, record->offset, "impossible size");
    if (!tbd_buffer_reserve(out, bytes + 1))
        return TBD_NOMEM;
    out->used = bytes;
    return tbd_unpack(record->payload + sizeof(bytes), record->bytes - sizeof(bytes), out->bytes,
                      bytes);
}

enum tbd_status tbd_stops_load(struct tbd_dir dir, uint64_t window, struct tbd_buffer *out,
                               struct tbd_error *why)
{
    struct tbd_record_view record;
    struct tbd_file file;
    enum tbd_status status;
    char name[40];

    *out = (struct tbd_buffer){ 0 };
    name_of(window, name);
    status = tbd_file_open(dir, name, TBD_FILE_STOPS, 0, &file, why);
    if (status)
        return status;
    status = tbd_file_next(&file, &record, why);
    if (!status)
        status = unpack(&record, name, out, why);
    tbd_file_close(&file);
    if (status)
        tbd_buffer_free(out);
    return status;
}

const uint8_t *tbd_stops_next(struct tbd_reader *list, struct tbd_message *head)
{
    const uint8_t *at = list->at < list->end ? tbd_reader_take(list, sizeof(*head)) : NULL;

    if (!at)
        return NULL;
    memcpy(head, at, sizeof(*head));
    return tbd_reader_take(list, head->bytes);
}
