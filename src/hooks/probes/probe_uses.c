// SPDX-License-Identifier: MIT
/* probe_uses.c - see probe_uses.h
 *
 *   gone[]:  | may serve again | a handler may still be there |
 *            0                 reusable_count                 gone_count
 *
 * PROBE_USES-1  A use changes only when no handler has it: after it has gone from its probe, each count of handlers inside
 *     was seen at zero. (not checked: test_probes compares with the program's own counts) */
#include "hooks/probes/probe_uses.h"

#include "base/sys.h"
#include "hooks/probes/probe_session.h"

#define QUIET_TRIES 2000

/* A handler that is inside a session counts itself in; each count is seen at zero once. */
bool tbd_uses_await_quiet(void)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    uint32_t shard = 0;

    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* what has gone is gone for who comes later */
    for (int i = 0; i < QUIET_TRIES && shard < TBD_PROBE_SHARDS; i++) {
        while (shard < TBD_PROBE_SHARDS &&
               !__atomic_load_n(&session->shard[shard].inside, __ATOMIC_SEQ_CST))
            shard++;
        if (shard < TBD_PROBE_SHARDS)
            tbd_sys_pause_ms(1);
    }
    return shard == TBD_PROBE_SHARDS;
}

/* An index plus 1; 0: none. */
static uint32_t find_use(struct tbd_probe_session *session)
{
    uint32_t use;

    if (session->use_count < TBD_PROBE_MAX_USES)
        return ++session->use_count;
    if (!session->reusable_count && session->gone_count && tbd_uses_await_quiet())
        session->reusable_count = session->gone_count;
    if (!session->reusable_count)
        return 0;
    use = session->gone[--session->reusable_count];
    session->gone[session->reusable_count] = session->gone[--session->gone_count];
    return use;
}

bool tbd_uses_add(struct tbd_probe *probe, uint32_t code)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    uint32_t use = find_use(session);

    if (!use)
        return false;
    session->uses[use - 1] = (struct tbd_probe_use){ .code = code, .next = probe->uses };
    __atomic_store_n(&probe->uses, use, __ATOMIC_RELEASE);
    return true;
}

void tbd_uses_take(struct tbd_probe *probe)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    uint32_t use = probe->uses;

    __atomic_store_n(&probe->uses, 0, __ATOMIC_RELEASE);
    for (; use; use = session->uses[use - 1].next)
        session->gone[session->gone_count++] = use;
}
