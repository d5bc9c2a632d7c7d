// SPDX-License-Identifier: MIT
/* nearest.c - see nearest.h */
#include "query/search/nearest.h"

#include <string.h>

/* The position before `at`, for events that have not happened at `at` yet. */
static struct tbd_position just_before(struct tbd_position at)
{
    if (at.offset != 0)
        return (struct tbd_position){ .time = at.time, .offset = at.offset - 1 };
    if (at.time == 0)
        return at;
    return (struct tbd_position){ .time = at.time - 1, .offset = UINT32_MAX };
}

/* The position before which, in the run's direction, the next event must be; NULL: anywhere. */
static const struct tbd_position *limit_of(const struct tbd_nearest *nearest)
{
    return nearest->has_event ? &nearest->event.position : nearest->limit;
}

static bool is_nearer(const struct tbd_nearest *nearest, const struct tbd_event *event)
{
    const struct tbd_position *than = limit_of(nearest);
    int order = than == NULL ? 0 : tbd_position_compare(event->position, *than);

    return than == NULL || (nearest->backward ? order > 0 : order < 0);
}

/* Only what is nearer than the nearest event so far is looked for. */
static void narrow(const struct tbd_nearest *nearest)
{
    const struct tbd_position *than = limit_of(nearest);
    struct tbd_session *session = nearest->session;

    if (than == NULL)
        return;
    session->span.has_until = !nearest->backward;
    session->span.until = than->time + 1;
    session->span.has_since = nearest->backward;
    session->span.since = than->time;
}

enum tbd_status tbd_nearest_look(struct tbd_nearest *nearest, const struct tbd_nearest_wish *wish,
                                 bool *out_is_nearest)
{
    struct tbd_session *session = nearest->session;
    struct tbd_question question;
    struct tbd_search search = { .session = session,
                                 .question = &question,
                                 .error = &nearest->error,
                                 .progress = nearest->progress,
                                 .progress_context = nearest->progress_context };
    struct tbd_event event = { 0 };
    uint64_t found;
    enum tbd_status status;

    *out_is_nearest = false;
    nearest->error = (struct tbd_query_error){ .status = TBD_NOMEM };
    status = tbd_question_parse_all(wish->question, 0, &question, &nearest->error);
    if (status != TBD_OK) {
        tbd_question_free(&question);
        return status;
    }
    question.from = TBD_FROM_POSITION;
    question.backward = nearest->backward;
    question.count = wish->count == 0 ? 1 : wish->count;
    question.position =
        wish->with_own && !nearest->backward ? just_before(nearest->from) : nearest->from;
    narrow(nearest);
    status = tbd_search_run(&search, &event, &found);
    memset(&session->span, 0, sizeof(session->span));
    tbd_question_free(&question);
    if (status == TBD_OK && is_nearer(nearest, &event)) {
        nearest->event = event;
        nearest->has_event = *out_is_nearest = true;
    }
    return status == TBD_NOTFOUND ? TBD_OK : status;
}
