// SPDX-License-Identifier: MIT
// cpu: amx_tile amx_int8
// libs: pthread
// options: window=4000
/* Tiles (AMX): products across windows, signals, threads and a fork; without permission, and with it.  The last parts are
 * what a handler's frame has, and stores and loads that fault in their middle. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define REQUEST 0x1023 /* ARCH_REQ_XCOMP_PERM */
#define ALLOWED 0x1022 /* ARCH_GET_XCOMP_PERM */
#define TILES   18

#define TEXT(x) #x
#define LOAD(n, address, stride)                                                                                  \
    __asm__ volatile("tileloadd (%0, %1, 1), %%tmm" TEXT(n) ::"r"(address), "r"((long)(stride)) : "memory")
#define STORE(n, address, stride)                                                                                 \
    __asm__ volatile("tilestored %%tmm" TEXT(n) ", (%0, %1, 1)" ::"r"(address), "r"((long)(stride)) : "memory")

struct config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
};

static const struct config shape = { .palette = 1, .bytes = { 64, 64, 64, 20 }, .rows = { 16, 16, 16, 5 } };
static int8_t left[1024], right[1024];
static int32_t product[64][16];
static sigjmp_buf back;
static volatile int came;
static bool shows;

static void configure(void)
{
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
}

static struct config configured(void)
{
    struct config now;

    __asm__ volatile("sttilecfg %0" : "=m"(now));
    return now;
}

static void fill(uint64_t seed)
{
    for (size_t i = 0; i < sizeof(left); i++) {
        left[i] = (int8_t)check_random(&seed);
        right[i] = (int8_t)check_random(&seed);
    }
}

/* What tile 0 must have after `times` products, computed without tiles. */
static void expect(int times)
{
    static int32_t is[16][16];

    STORE(0, is, 64);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            int32_t sum = 0;

            for (int k = 0; k < 64; k++)
                sum += left[64 * i + k] * right[64 * (k / 4) + 4 * j + k % 4];
            CHECK(is[i][j] == (int32_t)((uint32_t)sum * (uint32_t)times));
        }
}

static void begin(uint64_t seed)
{
    fill(seed);
    configure();
    __asm__ volatile("tilezero %tmm0");
    LOAD(1, left, 64);
    LOAD(2, right, 64);
}

static void multiply(void)
{
    __asm__ volatile("tdpbssd %tmm2, %tmm1, %tmm0");
}

static void on_signal(int signo, siginfo_t *info, void *raw)
{
    const ucontext_t *context = raw;
    const unsigned char *fp = (const void *)context->uc_mcontext.fpregs;
    uint32_t bytes;
    uint64_t features;

    memcpy(&bytes, fp + 468, 4);
    memcpy(&features, fp + 472, 8);
    came++;
    if (shows)
        printf("signal %d code %d: features %lx, %u bytes, %ld below the frame's end\n", signo, info->si_code,
               (unsigned long)features, bytes, (long)(context->uc_mcontext.gregs[REG_RSP] - (long)fp) / 256);
    CHECK(configured().palette == 0); /* a handler begins with the initial state */
    if (signo == SIGILL)
        siglongjmp(back, 1);
    configure();
    if (features >> TILES & 1)
        LOAD(0, right, 64); /* of no effect outside */
}

static void handle(int signo)
{
    struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

    CHECK(sigaction(signo, &action, NULL) == 0);
}

/* ---- without permission ---- */

static void refused(void)
{
    configure();
    CHECK(configured().palette == 1 && configured().rows[3] == 5);
    raise(SIGUSR1);
    CHECK(configured().palette == 1);
    if (sigsetjmp(back, 1) == 0) {
        __asm__ volatile("tilezero %tmm0");
        puts("not refused");
    }
    CHECK(syscall(SYS_arch_prctl, REQUEST, 63) == -1);
    printf("component 63: %d\n", errno);
    stack_t stack = { .ss_sp = product, .ss_size = 4096 }, none = { .ss_flags = SS_DISABLE };
    CHECK(sigaltstack(&stack, NULL) == 0 && syscall(SYS_arch_prctl, REQUEST, TILES) == -1);
    printf("with a short signal stack: %d\n", errno);
    CHECK(sigaltstack(&none, NULL) == 0);
    fflush(stdout);
    if (fork() == 0) { /* the same in a process of its own */
        signal(SIGILL, SIG_DFL);
        configure();
        __asm__ volatile("tilezero %tmm0");
        _exit(0);
    }
    int status;
    CHECK(wait(&status) > 0);
    printf("a child ends by signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* ---- with permission ---- */

static void across_windows(void)
{
    int times = 0;

    begin(7);
    for (int i = 0; i < 60; i++) {
        for (int j = 0; j < 200; j++, times++)
            multiply();
        syscall(SYS_getppid);
        if (i % 10 == 0)
            expect(times);
    }
    expect(times);
    STORE(0, product, 64);
    printf("product %lx\n", (unsigned long)check_hash(product, sizeof(product)));
}

static void across_signals(void)
{
    begin(8);
    came = 0;
    for (int i = 1; i <= 20; i++) {
        multiply();
        raise(SIGUSR1);
        CHECK(came == i);
        expect(i);
    }
}

static void *other_thread(void *argument)
{
    int32_t zeros[16][16];

    CHECK(configured().palette == 1); /* the configuration is the parent's, the contents are not */
    shows = true;
    raise(SIGUSR1);
    memset(zeros, 9, sizeof(zeros));
    STORE(1, zeros, 64);
    for (int i = 0; i < 256; i++)
        CHECK(zeros[i / 16][i % 16] == 0);
    raise(SIGUSR1);
    shows = false;
    LOAD(1, left, 64);
    LOAD(2, right, 64);
    for (int i = 1; i <= 100; i++) {
        multiply();
        sched_yield();
        if (i % 50 == 0)
            expect(i);
    }
    return argument;
}

static void across_threads(void)
{
    pthread_t thread[3];

    begin(9);
    multiply();
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&thread[i], NULL, other_thread, NULL) == 0);
        multiply();
        CHECK(pthread_join(thread[i], NULL) == 0);
        expect(i + 2);
    }
    __asm__ volatile("tilezero %tmm0");
    CHECK(pthread_create(&thread[0], NULL, other_thread, NULL) == 0);
    for (int i = 1; i <= 100; i++) {
        multiply();
        sched_yield();
    }
    CHECK(pthread_join(thread[0], NULL) == 0);
    expect(100);
}

static void across_fork(void)
{
    int status;
    pid_t child;

    begin(10);
    multiply();
    fflush(stdout);
    child = fork();
    if (child == 0) {
        int32_t zeros[16][16];

        CHECK(configured().palette == 1);
        shows = true;
        raise(SIGUSR1);
        STORE(0, zeros, 64);
        for (int i = 0; i < 256; i++)
            CHECK(zeros[i / 16][i % 16] == 0);
        LOAD(1, left, 64);
        LOAD(2, right, 64);
        multiply();
        expect(1);
        raise(SIGUSR1);
        exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    expect(1);
}

/* Strides of all kinds, a small tile, and the bytes between the rows. */
static void strides(void)
{
    static uint8_t memory[16 * 4096];

    begin(11);
    memset(memory, 1, sizeof(memory));
    STORE(1, memory, 4096);
    for (int i = 0; i < 16; i++)
        CHECK(memcmp(memory + 4096 * i, left + 64 * i, 64) == 0 && memory[4096 * i + 64] == 1);
    LOAD(3, memory, 4096);
    memset(memory, 1, sizeof(memory));
    STORE(3, memory + 1000, -100); /* upward */
    for (int i = 0; i < 5; i++)
        CHECK(memcmp(memory + 1000 - 100 * i, left + 64 * i, 20) == 0 && memory[1020 - 100 * i] == 1);
    printf("strides %lx\n", (unsigned long)check_hash(memory, sizeof(memory)));
    STORE(1, memory, 0);
    CHECK(memcmp(memory, left + 64 * 15, 64) == 0);
}

/* The program's own images of tiles. */
static void images(void)
{
    static uint8_t image[16384] __attribute__((aligned(64)));
    uint32_t low = 3u << 17, high = 0;

    begin(13);
    multiply();
    __asm__ volatile("xsave64 %0" : "+m"(image) : "a"(low), "d"(high));
    __asm__ volatile("tilerelease");
    CHECK(configured().palette == 0);
    __asm__ volatile("xrstor64 %0" ::"m"(image), "a"(low), "d"(high));
    multiply();
    expect(2);
    printf("images %lx\n", (unsigned long)check_hash(image + 2752, 64 + 8192));
}

/* ---- faults in the middle ---- */

static char *pages;
static volatile unsigned last_start;

static void on_fault(int signo, siginfo_t *info, void *raw)
{
    const ucontext_t *context = raw;
    const unsigned char *fp = (const void *)context->uc_mcontext.fpregs;

    (void)signo;
    last_start = fp[2752 + 1]; /* start_row */
    printf("fault at %ld, row %u\n", (long)((char *)info->si_addr - pages), last_start);
    CHECK(mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void faults(void)
{
    struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    begin(12);
    multiply();
    STORE(1, pages + 4096 - 5 * 64, 64);
    CHECK(memcmp(pages + 4096 - 5 * 64, left, 1024) == 0);
    CHECK(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    LOAD(2, pages + 4096 - 3 * 64, 64);
    STORE(2, product, 64);
    CHECK(memcmp(product, left + 128, 14 * 64) == 0);
    LOAD(2, right, 64);
    multiply();
    expect(2);
}

int main(void)
{
    uint64_t allowed = 0;

    handle(SIGUSR1);
    handle(SIGILL);
    shows = true;
    refused();
    CHECK(syscall(SYS_arch_prctl, REQUEST, TILES) == 0);
    CHECK(syscall(SYS_arch_prctl, ALLOWED, &allowed) == 0 && allowed >> TILES & 1);
    stack_t stack = { .ss_sp = product, .ss_size = 4096 };
    CHECK(sigaltstack(&stack, NULL) == -1);
    printf("a short signal stack: %d\n", errno);
    raise(SIGUSR1);
    begin(6);
    raise(SIGUSR1);
    shows = false;
    across_windows();
    across_signals();
    across_threads();
    across_fork();
    strides();
    images();
    faults();
    __asm__ volatile("tilerelease");
    CHECK(configured().palette == 0);
    shows = true;
    raise(SIGUSR1);
    puts("done");
    return 0;
}
