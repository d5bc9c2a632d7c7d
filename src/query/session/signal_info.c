// SPDX-License-Identifier: MIT
/* signal_info.c - see signal_info.h
 *
 * Codes above 0 come from the kernel, and those below 128 mean something else for each signal. */
#include "query/session/signal_info.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(siginfo_t) == TBD_SIGINFO_BYTES, "siginfo_t is 128 bytes");

static const struct signal_code {
    int signo; /* 0: any */
    int code;
    const char *name;
} codes[] = {
#define CODE(signo, code)                                                                          \
    {                                                                                              \
        signo, code, #code                                                                         \
    }
    CODE(0, SI_USER),
    CODE(0, SI_KERNEL),
    CODE(0, SI_QUEUE),
    CODE(0, SI_TIMER),
    CODE(0, SI_MESGQ),
    CODE(0, SI_ASYNCIO),
    CODE(0, SI_SIGIO),
    CODE(0, SI_TKILL),
    CODE(SIGSEGV, SEGV_MAPERR),
    CODE(SIGSEGV, SEGV_ACCERR),
    CODE(SIGSEGV, SEGV_BNDERR),
    CODE(SIGSEGV, SEGV_PKUERR),
    CODE(SIGBUS, BUS_ADRALN),
    CODE(SIGBUS, BUS_ADRERR),
    CODE(SIGBUS, BUS_OBJERR),
    CODE(SIGBUS, BUS_MCEERR_AR),
    CODE(SIGBUS, BUS_MCEERR_AO),
    CODE(SIGILL, ILL_ILLOPC),
    CODE(SIGILL, ILL_ILLOPN),
    CODE(SIGILL, ILL_ILLADR),
    CODE(SIGILL, ILL_ILLTRP),
    CODE(SIGILL, ILL_PRVOPC),
    CODE(SIGILL, ILL_PRVREG),
    CODE(SIGILL, ILL_COPROC),
    CODE(SIGILL, ILL_BADSTK),
    CODE(SIGFPE, FPE_INTDIV),
    CODE(SIGFPE, FPE_INTOVF),
    CODE(SIGFPE, FPE_FLTDIV),
    CODE(SIGFPE, FPE_FLTOVF),
    CODE(SIGFPE, FPE_FLTUND),
    CODE(SIGFPE, FPE_FLTRES),
    CODE(SIGFPE, FPE_FLTINV),
    CODE(SIGFPE, FPE_FLTSUB),
    CODE(SIGTRAP, TRAP_BRKPT),
    CODE(SIGTRAP, TRAP_TRACE),
    CODE(SIGTRAP, TRAP_BRANCH),
    CODE(SIGTRAP, TRAP_HWBKPT),
    CODE(SIGCHLD, CLD_EXITED),
    CODE(SIGCHLD, CLD_KILLED),
    CODE(SIGCHLD, CLD_DUMPED),
    CODE(SIGCHLD, CLD_TRAPPED),
    CODE(SIGCHLD, CLD_STOPPED),
    CODE(SIGCHLD, CLD_CONTINUED),
#undef CODE
};

/* Faults of the processor, which have an address. */
static bool is_fault(uint64_t number, int code)
{
    return code > 0 && code != SI_KERNEL &&
           (number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
            number == SIGTRAP);
}

void tbd_signal_take_info(struct tbd_event *event, const uint8_t *siginfo)
{
    siginfo_t info;

    memcpy(&info, siginfo, sizeof(info));
    event->code = info.si_code;
    event->flags |= TBD_EVENT_HAS_CODE;
    if (is_fault(event->number, info.si_code)) {
        event->addr = (uint64_t)(uintptr_t)info.si_addr;
        event->flags |= TBD_EVENT_HAS_ADDR;
    } else if (info.si_code == SI_USER || info.si_code == SI_QUEUE || info.si_code == SI_TKILL ||
               (event->number == SIGCHLD && info.si_code > 0)) {
        event->sender = (uint32_t)info.si_pid;
        event->flags |= TBD_EVENT_HAS_SENDER;
    }
}

bool tbd_signal_take_fatal(struct tbd_event *event, const struct tbd_trace_info *info)
{
    if (!info->finished || info->end.how != TBD_ENDED_SIGNAL)
        return false;
    event->number = info->end.value;
    event->flags |= TBD_EVENT_FATAL;
    if (info->end_siginfo != NULL)
        tbd_signal_take_info(event, info->end_siginfo);
    return true;
}

const char *tbd_signal_name(uint64_t number, char *out, size_t bytes)
{
    const char *name = number < NSIG ? sigabbrev_np((int)number) : NULL;

    if (name != NULL)
        snprintf(out, bytes, "SIG%s", name);
    else
        snprintf(out, bytes, "%" PRIu64, number);
    return out;
}

const char *tbd_signal_code_name(uint64_t number, int32_t code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i].code == code && (codes[i].signo == 0 || (uint64_t)codes[i].signo == number))
            return codes[i].name;
    }
    return NULL;
}
