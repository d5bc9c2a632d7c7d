// SPDX-License-Identifier: MIT
/* sys_ipc.c - effects of semctl, shmctl, msgctl and keyctl by command
 *
 * Contexts: any.  semctl(GETALL) writes as many values as the set has, which only the kernel knows: the
 * set is asked for its size with a call of our own (IPC_STAT), which changes nothing.
 */
#include "hooks/table/sys_table.h"

#include "base/sys.h"

#define NR_semctl 66
enum { STAT = 2, INFO = 3 };

/* semctl */
enum { SEM_GETALL = 13, SEM_STAT = 18, SEM_INFO = 19, SEM_STAT_ANY = 20 };
#define SEMID_BYTES 104
/* sem_nsems, in 8-byte words: after the permissions (48) and four times (32) */
#define SEMID_COUNT 10

static uint64_t semaphore_count(uint64_t id)
{
    uint64_t set[SEMID_BYTES / 8] = { 0 };

    if (tbd_sys_failed(tbd_sys4(NR_semctl, id, 0, STAT, tbd_sys_pointer(set))))
        return 0;
    return set[SEMID_COUNT];
}

void tbd_effect_semctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[2]) {
    case STAT:
    case SEM_STAT:
    case SEM_STAT_ANY: tbd_sys_emit_success(sink, args[3], SEMID_BYTES); break;
    case INFO:
    case SEM_INFO: tbd_sys_emit_success(sink, args[3], 40); break;
    case SEM_GETALL: tbd_sys_emit_success(sink, args[3], 2 * semaphore_count(args[0])); break;
    default: break;
    }
}

enum { SHM_STAT = 13, SHM_INFO = 14, SHM_STAT_ANY = 15 };

void tbd_effect_shmctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[1]) {
    case STAT:
    case SHM_STAT:
    case SHM_STAT_ANY: tbd_sys_emit_success(sink, args[2], 112); break;
    case INFO: tbd_sys_emit_success(sink, args[2], 72); break;
    case SHM_INFO: tbd_sys_emit_success(sink, args[2], 48); break;
    default: break;
    }
}

enum { MSG_STAT = 11, MSG_INFO = 12, MSG_STAT_ANY = 13 };

void tbd_effect_msgctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[1]) {
    case STAT:
    case MSG_STAT:
    case MSG_STAT_ANY: tbd_sys_emit_success(sink, args[2], 120); break;
    case INFO:
    case MSG_INFO: tbd_sys_emit_success(sink, args[2], 32); break;
    default: break;
    }
}

/* Keys: which argument is the buffer, which its length; the result is the full length. */
enum {
    KEY_DESCRIBE = 6,
    KEY_READ = 11,
    KEY_GET_SECURITY = 17,
    KEY_DH_COMPUTE = 23,
    KEY_PKEY_QUERY = 24,
    KEY_PKEY_VERIFY = 28,
    KEY_CAPABILITIES = 31,
};

void tbd_effect_keyctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t command = (uint32_t)args[0];

    if (command == KEY_DESCRIBE || command == KEY_READ || command == KEY_GET_SECURITY)
        tbd_sys_emit_result(sink, args[2], args[3], 1);
    else if (command == KEY_DH_COMPUTE)
        tbd_sys_emit_result(sink, args[2], args[3], 1);
    else if (command == KEY_PKEY_QUERY)
        tbd_sys_emit_success(sink, args[4], 48);
    else if (command == KEY_CAPABILITIES)
        tbd_sys_emit_result(sink, args[1], args[2], 1);
    else if (command > KEY_PKEY_QUERY && command < KEY_PKEY_VERIFY)
        tbd_sys_emit_result(sink, args[4], tbd_sys_u32(args[1] + 8), 1); /* params.out_len */
}
