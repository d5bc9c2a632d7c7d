// SPDX-License-Identifier: MIT
/* seccomp_state.c - see seccomp_state.h */
#include "hooks/threads/seccomp_state.h"

#include "base/linux_abi.h"
#include "base/sys.h"

void tbd_seccomp_give_up_privileges(void)
{
    tbd_sys6(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
}

long tbd_seccomp_set_natively(uint64_t flags, bool by_prctl, const void *fprog)
{
    if (by_prctl)
        return tbd_sys6(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, tbd_sys_pointer(fprog), 0,
                        0, 0);
    return tbd_sys3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, tbd_sys_pointer(fprog));
}

_Noreturn static void kill_self(void)
{
    for (;;)
        tbd_sys3(__NR_tgkill, (uint64_t)tbd_sys_getpid(), (uint64_t)tbd_sys_gettid(), SIGKILL);
}

/* In the order in which the program set them: each filter allows the next to be set, as it did
 * then. */
static void install_from_oldest(const struct tbd_seccomp_filter *newest)
{
    const struct tbd_seccomp_filter *done = NULL;

    while (done != newest) {
        const struct tbd_seccomp_filter *filter = newest;
        struct sock_fprog fprog;

        while (filter->older != done)
            filter = filter->older;
        fprog = (struct sock_fprog){ (unsigned short)filter->count, filter->program };
        if (tbd_seccomp_set_natively(filter->flags, filter->by_prctl, &fprog) != 0)
            kill_self();
        done = filter;
    }
}

void tbd_seccomp_install(const struct tbd_seccomp *state)
{
    if (state->newest) {
        tbd_seccomp_give_up_privileges();
        install_from_oldest(state->newest);
    }
    if (state->is_strict &&
        tbd_sys6(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0, 0) != 0)
        kill_self();
}
