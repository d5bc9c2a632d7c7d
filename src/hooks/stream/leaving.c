// SPDX-License-Identifier: MIT
/* leaving.c - see leaving.h */
#include "hooks/stream/leaving.h"

static const struct tbd_leaving *leaving;
static const char *soon;
static bool is_asked;

void tbd_leaving_init(const struct tbd_leaving *given)
{
    leaving = given;
}

void tbd_detach(struct tbd_thread *thread, const char *why, uint64_t offset)
{
    leaving->detach(thread, why, offset);
    __builtin_unreachable();
}

void tbd_let_go(const char *why, uint64_t offset)
{
    leaving->let_go(why, offset);
}

void tbd_leave_soon(const char *why)
{
    soon = why;
}

void tbd_leave_as_asked(void)
{
    is_asked = true;
    soon = "tbd stop";
}

bool tbd_leaving_is_asked(void)
{
    return is_asked;
}

const char *tbd_leaving_why(void)
{
    return soon;
}
