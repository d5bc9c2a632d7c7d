// SPDX-License-Identifier: MIT
/* Threads that run instructions of many kinds, and count how often themselves: for probes (test_probes.py).
 * probed THREADS ROUNDS [block|masks|where]: block: all signals are blocked; masks: they are while every fourth function runs,
 * and in the handler of SIGALRM, which calls one, too; where: a handler is called as often as it goes, which looks where the thread was:
 * in code of a file, as natively.
 * Waits for a line on standard input, if there is one; prints a line
 * "NAME CALLS" for each function, and a sum of what they have computed. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static uint64_t table[64];
static __thread uint64_t own;

/* Each of these has, at its label, one instruction of its kind. */
KEPT uint64_t do_call(uint64_t x);
KEPT uint64_t do_add(uint64_t x);
__asm__(".text\n"
        ".globl do_add, do_call, do_loop, do_table, do_vector, do_stack, do_string, do_flags\n"
        "do_add: lea 3(%rdi,%rdi,2), %rax\n xor $0x55, %rax\n ret\n"
        "do_call: push %rbx\n mov %rdi, %rbx\n call do_add\n lea do_add(%rip), %rdx\n mov %rax, %rdi\n call *%rdx\n"
        " add %rbx, %rax\n pop %rbx\n ret\n"
        "do_loop: mov $5, %ecx\n xor %eax, %eax\n 1: add %rdi, %rax\n loop 1b\n jrcxz 2f\n ud2\n 2: ret\n"
        "do_table: and $3, %edi\n lea 3f(%rip), %rax\n movslq (%rax,%rdi,4), %rdi\n add %rdi, %rax\n jmp *%rax\n"
        " 4: mov $7, %eax\n ret\n 5: mov $9, %eax\n ret\n .section .rodata\n .balign 4\n"
        " 3: .long 4b-3b, 5b-3b, 4b-3b, 5b-3b\n .text\n"
        "do_vector: movq %rdi, %xmm1\n paddq constant(%rip), %xmm1\n cvtsi2sd %rdi, %xmm0\n addsd half(%rip), %xmm0\n"
        " cvttsd2si %xmm0, %rax\n movq %xmm1, %rdx\n add %rdx, %rax\n fldpi\n fstpl -24(%rsp)\n mov -24(%rsp), %rdx\n xor %rdx, %rax\n ret\n"
        "do_stack: mov %rdi, -8(%rsp)\n mov %rdi, -128(%rsp)\n pushfq\n pop %rax\n push %rsp\n pop %rdx\n sub %rsp, %rdx\n"
        " enter $16, $0\n mov %rdi, (%rsp)\n leave\n mov %rsp, %rax\n xchg %rsp, %rax\n mov %rdx, %rax\n add -128(%rsp), %rax\n ret $0\n"
        "do_string: lea -64(%rsp), %rsi\n mov %rdi, (%rsi)\n mov %rdi, 8(%rsi)\n lea -96(%rsp), %rdi\n mov $16, %ecx\n cld\n rep movsb\n"
        " std\n dec %rdi\n mov (%rdi), %al\n movzbl %al, %eax\n cld\n ret\n"
        "do_flags: cmp $100, %edi\n setb %al\n movzbl %al, %eax\n cmovae %rdi, %rax\n jo 6f\n js 6f\n jp 6f\n jbe 6f\n adc $1, %rax\n"
        " 6: bt $3, %edi\n adc %rdi, %rax\n ret\n"
        ".section .rodata\n .balign 16\n constant: .quad 5, 6\n half: .double 0.5\n .text\n");
uint64_t do_loop(uint64_t x);
uint64_t do_table(uint64_t x);
uint64_t do_vector(uint64_t x);
uint64_t do_stack(uint64_t x);
uint64_t do_string(uint64_t x);
uint64_t do_flags(uint64_t x);

KEPT uint64_t do_memory(uint64_t x)
{
    own += x;
    return __atomic_add_fetch(&table[x & 63], 0, __ATOMIC_SEQ_CST) + own;
}

struct function {
    char name[12];
    uint64_t (*call)(uint64_t x);
};
static const struct function functions[] = {
    { "do_add", do_add },       { "do_call", do_call },     { "do_loop", do_loop },
    { "do_table", do_table },   { "do_vector", do_vector }, { "do_stack", do_stack },
    { "do_string", do_string }, { "do_flags", do_flags },   { "do_memory", do_memory },
};
#define COUNT (sizeof(functions) / sizeof(functions[0]))

static uint64_t rounds;
static uint64_t calls[COUNT];
static uint64_t sum;
static volatile sig_atomic_t ticks;
static int changes_masks;

static void on_tick(int signal)
{
    (void)signal;
    ticks++;
    if (!changes_masks)
        return;
    do_add(1);
    __atomic_fetch_add(&calls[0], 1, __ATOMIC_RELAXED);
}

static uint64_t call_blocked(uint64_t (*call)(uint64_t x), uint64_t x)
{
    sigset_t all, before, after;
    uint64_t result;

    sigfillset(&all);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    result = call(x);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, &after) == 0);
    CHECK(sigismember(&after, SIGUSR1) && sigismember(&after, SIGALRM));
    return result;
}

/* ---- where a signal finds a thread ---- */

#define MAX_CODE 64

static struct {
    uint64_t start, end;
} code[MAX_CODE];
static unsigned code_count;
static uint64_t looks, strange;

static void read_code(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end, inode;
    char line[512], perms[8];

    CHECK(maps);
    while (fgets(line, sizeof(line), maps) && code_count < MAX_CODE)
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, perms, &inode) == 4 &&
            perms[2] == 'x' && (inode || strstr(line, "[vdso]"))) {
            code[code_count].start = start;
            code[code_count++].end = end;
        }
    fclose(maps);
}

static void on_look(int signal, siginfo_t *info, void *context)
{
    uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[16];
    unsigned i = 0;

    (void)signal;
    (void)info;
    while (i < code_count && (pc < code[i].start || pc >= code[i].end))
        i++;
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    if (i == code_count)
        __atomic_fetch_add(&strange, 1, __ATOMIC_RELAXED);
    do_add(looks); /* comes to a probe, too */
    __atomic_fetch_add(&calls[0], 1, __ATOMIC_RELAXED);
}

/* The calling thread gets a signal every 100 us. */
static void be_looked_at(void)
{
    struct itimerspec every = { { 0, 100000 }, { 0, 100000 } };
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
    timer_t timer;

    event._sigev_un._tid = (int)syscall(SYS_gettid);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
}

static void *run(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument, total = 0, own_calls[COUNT] = { 0 };

    if (code_count)
        be_looked_at();
    for (uint64_t i = 0; i < rounds; i++) {
        unsigned which;

        state = state * 6364136223846793005u + 1442695040888963407u;
        which = (unsigned)(state >> 33) % COUNT;
        own_calls[which]++;
        total = total * 31 + (changes_masks && i % 4 == 0
                                  ? call_blocked(functions[which].call, state >> 40)
                                  : functions[which].call(state >> 40));
    }
    for (unsigned i = 0; i < COUNT; i++)
        __atomic_fetch_add(&calls[i], own_calls[i], __ATOMIC_RELAXED);
    __atomic_fetch_add(&sum, total, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    struct itimerval every = { { 0, 5000 }, { 0, 5000 } };
    struct sigaction action = { 0 };
    pthread_t thread[64];
    sigset_t ticking;
    char line[16];

    rounds = argc > 2 ? (uint64_t)atoll(argv[2]) : 1000;
    CHECK(threads >= 1 && threads <= 64);
    if (argc > 3 && strcmp(argv[3], "block") == 0) {
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    printf("ready\n");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        line[0] = '\0';
    changes_masks = argc > 3 && strcmp(argv[3], "masks") == 0;
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    if (argc > 3 && strcmp(argv[3], "where") == 0) {
        struct sigaction look = { .sa_sigaction = on_look, .sa_flags = SA_SIGINFO | SA_RESTART };

        read_code();
        sigaction(SIGUSR1, &look, NULL);
    }
    for (unsigned i = 0; i < threads; i++)
        CHECK(pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)(i + 1)) == 0);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    sigemptyset(&ticking);
    sigaddset(&ticking, SIGALRM);
    CHECK(pthread_sigmask(SIG_BLOCK, &ticking, NULL) == 0); /* what is printed does not change any more */
    for (unsigned i = 0; i < COUNT; i++)
        printf("%s %lu\n", functions[i].name, (unsigned long)calls[i]);
    printf("sum %lx\n", (unsigned long)sum);
    if (code_count)
        printf("looks %lu, strange %lu\n", (unsigned long)looks, (unsigned long)strange);
    fflush(stdout);
    if (line[0] && !fgets(line, sizeof(line), stdin))
        return 0; /* until then it can be looked at */
    return 0;
}
