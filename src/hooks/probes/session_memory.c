// SPDX-License-Identifier: MIT
/* session_memory.c - see session_memory.h
 *
 * The shared memory is a file without a name that neither side can make shorter: a handler that touches it
 * cannot fault. */
#include "hooks/probes/session_memory.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/probes/probe_session.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static uint64_t own_bytes(void)
{
    return TBD_PROBE_MAX_CODE * sizeof(struct tbd_probe_insn) +
           TBD_PROBE_MAX_USES * (sizeof(struct tbd_probe_use) + sizeof(uint32_t));
}

static bool map_own(struct tbd_probe_session *session)
{
    long at = tbd_sys_mmap(0, own_bytes(), TBD_PROT_RW, TBD_MAP_MEMORY, -1, 0);

    if (tbd_sys_failed(at))
        return false;
    session->code = (struct tbd_probe_insn *)at;
    session->uses =
        (struct tbd_probe_use *)(at + (long)(TBD_PROBE_MAX_CODE * sizeof(struct tbd_probe_insn)));
    session->gone = (uint32_t *)(void *)(session->uses + TBD_PROBE_MAX_USES);
    return true;
}

static bool map_shared(struct tbd_probe_session *session, int fd)
{
    long at;

    if (tbd_sys_failed(tbd_sys3(__NR_ftruncate, (uint64_t)fd, session->shared_bytes, 0)) ||
        tbd_sys_failed(tbd_sys3(__NR_fcntl, (uint64_t)fd, F_ADD_SEALS, SEALS)))
        return false;
    at = tbd_sys_mmap(0, session->shared_bytes, TBD_PROT_RW, MAP_SHARED, fd, 0);
    if (tbd_sys_failed(at))
        return false;
    session->shared = (struct tbd_probe_shared *)at;
    session->shared->version = TBD_PROBE_VERSION;
    session->shared->magic = TBD_PROBE_MAGIC;
    return true;
}

static void set_maps(struct tbd_probe_session *session, const struct tbd_probe_open *request)
{
    session->number++;
    session->flags = request->flags;
    session->map_count = request->head.count;
    memcpy(session->maps, request->maps, sizeof(session->maps));
    for (uint32_t i = 0; i <= session->map_count; i++)
        session->map_at[i] = i < session->map_count ? tbd_probe_map_at(session->maps, i)
                                                    : tbd_probe_rings_at(session->maps, i);
    session->shared_bytes = tbd_probe_shared_bytes(session->maps, session->map_count);
    session->code_count = session->use_count = 0;
    session->gone_count = session->reusable_count = 0;
}

enum tbd_probe_refusal tbd_session_memory_make(const struct tbd_probe_open *request, int *out_fd)
{
    struct tbd_probe_session *session = &tbd_probe_session;
    long fd = tbd_sys3(__NR_memfd_create, tbd_sys_pointer("tbd-probes"),
                       MFD_CLOEXEC | MFD_ALLOW_SEALING, 0);

    if (fd < 0)
        return TBD_PROBE_NO_MEMORY;
    set_maps(session, request);
    if (!map_own(session) || !map_shared(session, (int)fd)) {
        tbd_sys_close((int)fd);
        tbd_session_memory_give_back();
        return TBD_PROBE_NO_MEMORY;
    }
    *out_fd = (int)fd;
    return TBD_PROBE_OK;
}

void tbd_session_memory_give_back(void)
{
    struct tbd_probe_session *session = &tbd_probe_session;

    if (session->shared)
        tbd_sys_munmap(tbd_sys_pointer(session->shared), session->shared_bytes);
    if (session->code)
        tbd_sys_munmap(tbd_sys_pointer(session->code), own_bytes());
    session->shared = NULL;
    session->code = NULL;
    session->uses = NULL;
    session->gone = NULL;
}
