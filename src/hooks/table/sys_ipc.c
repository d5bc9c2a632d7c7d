// SPDX-License-Identifier: MIT
/* sys_ipc.c - effects of semctl, shmctl, msgctl and keyctl by command
 *
 * Contexts: any. semctl(GETALL) writes all values of the set.  Only the kernel knows the set's
 * size, so we ask for it with a call of our own (IPC_STAT), which changes nothing.
 */
#include "hooks/table/sys_table.h"

#include "base/linux_abi.h"
#include "base/sys.h"

static uint64_t semaphore_count(uint64_t id)
{
    struct semid64_ds set = { 0 };

    if (tbd_sys_failed(tbd_sys4(__NR_semctl, id, 0, IPC_STAT, tbd_sys_pointer(&set))))
        return 0;
    return set.sem_nsems;
}

void tbd_effect_semctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[2]) {
    case IPC_STAT:
    case SEM_STAT:
    case SEM_STAT_ANY: tbd_sys_emit_success(sink, args[3], sizeof(struct semid64_ds)); break;
    case IPC_INFO:
    case SEM_INFO: tbd_sys_emit_success(sink, args[3], sizeof(struct seminfo)); break;
    case GETALL: tbd_sys_emit_success(sink, args[3], 2 * semaphore_count(args[0])); break;
    default: break;
    }
}

void tbd_effect_shmctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[1]) {
    case IPC_STAT:
    case SHM_STAT:
    case SHM_STAT_ANY: tbd_sys_emit_success(sink, args[2], sizeof(struct shmid64_ds)); break;
    case IPC_INFO: tbd_sys_emit_success(sink, args[2], sizeof(struct shminfo64)); break;
    case SHM_INFO: tbd_sys_emit_success(sink, args[2], sizeof(struct shm_info)); break;
    default: break;
    }
}

void tbd_effect_msgctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    switch ((uint32_t)args[1]) {
    case IPC_STAT:
    case MSG_STAT:
    case MSG_STAT_ANY: tbd_sys_emit_success(sink, args[2], sizeof(struct msqid64_ds)); break;
    case IPC_INFO:
    case MSG_INFO: tbd_sys_emit_success(sink, args[2], sizeof(struct msginfo)); break;
    default: break;
    }
}

/* The command says which arguments are the buffer and its length; the result is the full length. */
void tbd_effect_keyctl(struct tbd_sys_sink *sink, const uint64_t *args)
{
    uint32_t command = (uint32_t)args[0];

    if (command == KEYCTL_DESCRIBE || command == KEYCTL_READ || command == KEYCTL_GET_SECURITY ||
        command == KEYCTL_DH_COMPUTE)
        tbd_sys_emit_result(sink, args[2], args[3], 1);
    else if (command == KEYCTL_PKEY_QUERY)
        tbd_sys_emit_success(sink, args[4], 48);
    else if (command == KEYCTL_CAPABILITIES)
        tbd_sys_emit_success(sink, args[1], args[2]); /* zeros after what there is to say */
    else if (command > KEYCTL_PKEY_QUERY && command < KEYCTL_PKEY_VERIFY)
        tbd_sys_emit_result(sink, args[4], tbd_sys_u32(args[1] + 8), 1); /* params.out_len */
}
