// SPDX-License-Identifier: MIT
// libs: pthread
// options: quantum=200
// free_fails: restartable sequences are refused there
/* Restartable sequences (rseq): what registrations that fail say; the processor's number, after it was set too; threads that
 * count in a word of their processor without an atomic instruction and lose nothing, however often their turns end or
 * signals come; sequences that a signal or a fault ends; what ends the process; children. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNATURE 0x53053053u
enum { BYTES = 32, UNREGISTER = 1, THREADS = 4, PROCESSORS = 4096 };

struct area {
    uint32_t cpu_start, cpu;
    uint64_t section;
    uint32_t flags, node, mm, end;
};

struct section {
    uint32_t version, flags;
    uint64_t start, bytes, abort;
} __attribute__((aligned(32)));

static _Thread_local volatile struct area own __attribute__((aligned(32)));
static long counts[PROCESSORS];

static long rseq(volatile void *area, unsigned bytes, int flags, unsigned signature)
{
    return syscall(SYS_rseq, area, bytes, flags, signature);
}

/* The C library's, in every thread (2.35 and later): it is as good as one of the program, and in its place one of the
 * program can come. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

static void take_back_the_library_s(void)
{
    volatile struct area *area;
    unsigned bytes;

    if (!&__rseq_size || !__rseq_size)
        return;
    area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
    bytes = __rseq_size > BYTES ? __rseq_size : BYTES;
    CHECK(area->cpu < PROCESSORS && area->cpu == area->cpu_start && sched_getcpu() >= 0);
    CHECK(rseq(area, bytes, 0, SIGNATURE) == -1 && errno == EBUSY);
    CHECK(rseq(area, bytes, UNREGISTER, SIGNATURE) == 0 && area->cpu == UINT32_MAX);
}

static void use_own(void)
{
    take_back_the_library_s();
    CHECK(rseq(&own, BYTES, 0, SIGNATURE) == 0);
}

/* ---- a sequence ----
 * Adds `add` to counts[cpu] unless it is interrupted, after `rounds` rounds. */

static __attribute__((noinline)) int add_once(volatile struct area *area, long *words, long add, long rounds)
{
    int done = 1;

    __asm__ goto volatile(".pushsection .data.rseq, \"aw\"\n"
                          ".balign 32\n"
                          "7: .long 0, 0\n"
                          ".quad 1f, 2f - 1f, 4f\n"
                          ".popsection\n"
                          "lea 7b(%%rip), %%rax\n"
                          "mov %%rax, 8(%[area])\n"
                          "1: mov 4(%[area]), %%eax\n"
                          "mov %[rounds], %%rcx\n"
                          "5: dec %%rcx\n"
                          "jns 5b\n"
                          "add %[add], (%[words], %%rax, 8)\n"
                          "2: jmp 6f\n"
                          ".byte 0x0f, 0xb9, 0x3d\n" /* a trap with the signature as its operand */
                          ".long 0x53053053\n"
                          "4: jmp %l[aborted]\n"
                          "6:\n"
                          :
                          : [area] "r"(area), [words] "r"(words), [add] "r"(add), [rounds] "r"(rounds)
                          : "rax", "rcx", "memory", "cc"
                          : aborted);
    return done;
aborted:
    return 0;
}

/* ---- registration ---- */

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result == 0 ? "done" : strerror(errno));
}

static void registration(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED);
    take_back_the_library_s();
    say("nothing to take back", rseq(&own, BYTES, UNREGISTER, SIGNATURE));
    say("flags", rseq(&own, BYTES, 128, SIGNATURE));
    say("too short", rseq(&own, 24, 0, SIGNATURE));
    say("not aligned", rseq((char *)&own + 4, BYTES, 0, SIGNATURE));
    say("nowhere", rseq((void *)4096, BYTES, 0, SIGNATURE));
    say("in the kernel", rseq((void *)0xffff800000001000, BYTES, 0, SIGNATURE));
    own.section = 77; /* of a sequence that is over */
    say("area", rseq(&own, BYTES, 0, SIGNATURE));
    CHECK(own.section == 0 && own.cpu_start == own.cpu && own.cpu < PROCESSORS);
    say("again", rseq(&own, BYTES, 0, SIGNATURE));
    say("with another signature", rseq(&own, BYTES, 0, 1));
    say("another area", rseq(page, BYTES, 0, SIGNATURE));
    say("other area taken back", rseq(page, BYTES, UNREGISTER, SIGNATURE));
    say("taken back with a flag", rseq(&own, BYTES, UNREGISTER | 128, SIGNATURE));
    say("taken back with another length", rseq(&own, 64, UNREGISTER, SIGNATURE));
    say("taken back with another signature", rseq(&own, BYTES, UNREGISTER, 1));
    say("taken back", rseq(&own, BYTES, UNREGISTER, SIGNATURE));
    CHECK(own.cpu_start == 0 && own.cpu == UINT32_MAX);
    say("page", rseq(page, BYTES, 0, SIGNATURE));
    CHECK(rseq(page, BYTES, UNREGISTER, SIGNATURE) == 0 && munmap(page, 4096) == 0);
}

/* ---- processors ---- */

static void *on_each(void *unused)
{
    cpu_set_t all, one;

    use_own();
    CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < 64; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
        CHECK(own.cpu == (uint32_t)cpu && own.cpu_start == own.cpu);
        CHECK(add_once(&own, counts, 1, 0) || add_once(&own, counts, 1, 0));
        CHECK(counts[cpu] == 1);
        counts[cpu] = 0;
    }
    return unused;
}

/* ---- threads ---- */

enum { ROUNDS = 20000 };

static void *count_up(void *unused)
{
    use_own();
    for (int i = 0; i < ROUNDS; i++)
        while (!add_once(&own, counts, 1, i % 512 ? 2 : 40))
            ;
    return unused;
}

static void in_threads(void *(*function)(void *), int count)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&thread[i], NULL, function, NULL) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

static long sum(void)
{
    long all = 0;

    for (int i = 0; i < PROCESSORS; i++)
        all += counts[i];
    return all;
}

/* ---- signals ---- */

static volatile int caught, faults;

static void on_signal(int signo, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    const unsigned char *rip = (const unsigned char *)u->uc_mcontext.gregs[REG_RIP];

    CHECK(own.section == 0); /* the kernel has looked at it */
    if (signo == SIGSEGV) {
        CHECK((uint64_t)info->si_addr < 16 + 8 * PROCESSORS);
        CHECK(memcmp(rip - 4, "\x53\x30\x05\x53", 4) == 0); /* at the abort address, not the fault's */
        faults++;
    }
    caught++;
}

static void *with_signals(void *unused)
{
    struct itimerval every = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    int aborts = 0;

    use_own();
    caught = 0;
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    while (caught < 10 || !aborts)
        aborts += !add_once(&own, counts, 1, 100000);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    faults = 0; /* the timer's last signal may still come, to another thread */
    do
        CHECK(!add_once(&own, (long *)16, 1, 0)); /* a fault ends it, too, if no switch of threads did before */
    while (faults == 0);
    CHECK(faults == 1);
    return unused;
}

/* ---- ends ---- */

static struct section bad;

static void *with_bad_section(void *unused)
{
    use_own();
    own.section = (uint64_t)&bad;
    raise(SIGUSR1);
    _exit(1);
    return unused;
}

static void *with_page(void *page)
{
    char *area = page;

    take_back_the_library_s();
    if (rseq(area, BYTES, 0, SIGNATURE) != 0)
        _exit(3);
    _exit(2);
}

static void end(const char *what, void *(*function)(void *), void *argument)
{
    pthread_t thread;
    int status = 0;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        pthread_create(&thread, NULL, function, argument);
        pthread_join(thread, NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", what, WTERMSIG(status));
    else
        printf("%s: exit %d\n", what, WEXITSTATUS(status));
}

/* ---- children ---- */

static void *with_child(void *unused)
{
    int status = 0;
    pid_t pid;

    use_own();
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(rseq(&own, BYTES, 0, SIGNATURE) == -1 && errno == EBUSY); /* inherited */
        while (!add_once(&own, counts, 1, 2))
            ;
        _exit(sum() == 1 ? 5 : 6);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5 && sum() == 0);
    return unused;
}

static void *register_all(void *unused)
{
    registration();
    return unused;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (rseq(&own, BYTES, 128, SIGNATURE) == -1 && errno == ENOSYS) {
        puts("no restartable sequences here");
        return 77;
    }
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    in_threads(register_all, 1);
    in_threads(on_each, 1);
    CHECK(sum() == 0);
    in_threads(count_up, THREADS);
    CHECK(sum() == (long)THREADS * ROUNDS);
    puts("threads");
    in_threads(with_signals, 1);
    puts("signals");
    memset(counts, 0, sizeof(counts));
    in_threads(with_child, 1);
    puts("child");
    bad.version = 1;
    end("another version", with_bad_section, NULL);
    bad = (struct section){ .start = (uint64_t)main, .bytes = 16, .abort = (uint64_t)main };
    end("abort address inside", with_bad_section, NULL);
    bad = (struct section){ .start = (uint64_t)main, .bytes = 16, .abort = (uint64_t)&counts[2] };
    end("no signature", with_bad_section, NULL);
    end("area that can only be read", with_page, page);
    return 0;
}
