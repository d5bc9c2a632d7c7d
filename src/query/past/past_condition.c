// SPDX-License-Identifier: MIT
/* past_condition.c - see past_condition.h
 *
 * Asked with what is exact alone first: if that decides it, the answer is exact. */
#include "query/past/past_condition.h"

#include "query/session/source/source_place.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* False: it has no value there, or one that is not known. */
static bool evaluate(struct tbd_past *past, struct tbd_past_condition *condition, bool exact_only,
                     uint64_t *out)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_data data;
    bool is_known = false;
    enum tbd_status status;

    tbd_past_enter_row(past, exact_only);
    status = tbd_source_evaluate(past->session, (struct tbd_position){ 0 }, condition->text, 0,
                                 strlen(condition->text), &place, &data, &error);
    if (status == TBD_OK) {
        condition->was_evaluated = true;
        is_known = tbd_data_scalar(&place.places[0], &data, out);
        tbd_source_place_close(&place);
    } else if (error.message[0] != '\0') {
        condition->error = error;
    }
    tbd_past_leave(past);
    return is_known;
}

enum tbd_past_truth tbd_past_decide(struct tbd_past *past, struct tbd_past_condition *condition,
                                    enum tbd_certainty *out_certainty)
{
    uint64_t value;

    condition->asked++;
    *out_certainty = TBD_EXACT;
    if (!evaluate(past, condition, true, &value)) {
        *out_certainty = TBD_INFERRED;
        if (condition->exact_only || !evaluate(past, condition, false, &value)) {
            *out_certainty = TBD_UNKNOWN;
            condition->undecided++;
            return TBD_PAST_UNDECIDED;
        }
    }
    if (value == 0)
        return TBD_PAST_FALSE;
    condition->inferred += *out_certainty == TBD_INFERRED;
    return TBD_PAST_TRUE;
}

bool tbd_past_condition_tell(const struct tbd_past_condition *condition)
{
    if (condition->asked != 0 && !condition->was_evaluated) {
        fprintf(stderr, "tbdq: where %s: %s\n", tbd_shown(condition->text),
                condition->error.message[0] != '\0' ? condition->error.message
                                                    : "it has no value in any of these places");
        if (condition->error.hint[0] != '\0')
            fprintf(stderr, "hint: %s\n", tbd_shown(condition->error.hint));
        return false;
    }
    if (condition->undecided != 0)
        fprintf(stderr,
                "tbdq: note: in %" PRIu64 " of %" PRIu64
                " places it is not known whether %s: they do not count\n",
                condition->undecided, condition->asked, tbd_shown(condition->text));
    return true;
}
