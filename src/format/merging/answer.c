// SPDX-License-Identifier: MIT
/* answer.c - see answer.h
 *
 * Invariants
 * ANSWER-1  An answer is given only to the question it was made for: the file has the whole
 *     question, and it is compared. (not checked: it is what decoding checks of its input) */
#include "format/merging/answer.h"

#include "format/files/file.h"
#include "format/trace/trace_handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

void tbd_answer_name(const char *question, char *out, size_t bytes)
{
    snprintf(out, bytes, "%016" PRIx64 ".answer",
             (uint64_t)XXH3_64bits(question, strlen(question)));
}

void tbd_answer_put(const struct tbd_trace *trace, const struct tbd_answer *answer,
                    struct tbd_buffer *out)
{
    struct tbd_disk_answer head = { .text_bytes = answer->bytes, .result = answer->result };
    size_t record;

    tbd_file_put_header(out, TBD_FILE_ANSWER, 0, tbd_trace_id(trace));
    tbd_file_put_record(out, TBD_REC_QUESTION, answer->question, strlen(answer->question));
    record = tbd_file_begin_record(out, TBD_REC_ANSWER);
    tbd_buffer_put(out, &head, sizeof(head));
    tbd_lz4_pack(out, answer->text, answer->bytes);
    tbd_file_finish_record(out, record);
}

static enum tbd_status bad(const struct tbd_file *file, const char *what, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_CORRUPT, file->path, 0, "%s", what);
}

static enum tbd_status unpack(const struct tbd_file *file, const struct tbd_record_view *record,
                              struct tbd_answer *answer, struct tbd_error *why)
{
    struct tbd_disk_answer head;
    char *text;

    if (record->bytes < sizeof(head))
        return bad(file, "a record is too short", why);
    memcpy(&head, record->payload, sizeof(head));
    if (head.text_bytes > TBD_ANSWER_MAX || head.text_bytes > tbd_lz4_most(record->bytes))
        return bad(file, "impossible length", why);
    text = malloc(head.text_bytes + 1);
    if (!text)
        return TBD_NOMEM;
    if (tbd_unpack(record->payload + sizeof(head), record->bytes - sizeof(head), text,
                   head.text_bytes)) {
        free(text);
        return bad(file, "the answer does not unpack", why);
    }
    text[head.text_bytes] = '\0';
    answer->text = text;
    answer->bytes = head.text_bytes;
    answer->result = head.result;
    return TBD_OK;
}

static enum tbd_status read_records(struct tbd_file *file, struct tbd_answer *answer,
                                    struct tbd_error *why)
{
    struct tbd_record_view question = { 0 }, text = { 0 }, record;
    enum tbd_status status;

    while (!(status = tbd_file_next(file, &record, why))) {
        if (record.type == TBD_REC_QUESTION)
            question = record;
        if (record.type == TBD_REC_ANSWER)
            text = record;
    }
    if (status != TBD_NOTFOUND)
        return status;
    if (!question.payload || !text.payload)
        return bad(file, "a record is missing", why);
    if (question.bytes != strlen(answer->question) ||
        memcmp(question.payload, answer->question, question.bytes) != 0)
        return TBD_NOTFOUND;
    return unpack(file, &text, answer, why);
}

enum tbd_status tbd_answer_load(const struct tbd_trace *trace, struct tbd_dir folder,
                                struct tbd_answer *answer, struct tbd_error *why)
{
    struct tbd_file file = { 0 };
    enum tbd_status status;
    char name[64];

    answer->text = NULL;
    tbd_answer_name(answer->question, name, sizeof(name));
    status = tbd_file_open(folder, name, TBD_FILE_ANSWER, tbd_trace_id(trace), &file, why);
    if (!status)
        status = read_records(&file, answer, why);
    tbd_file_close(&file);
    return status;
}
