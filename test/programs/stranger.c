// SPDX-License-Identifier: MIT
/* What a stranger's program could do to who replays it (test/e2e/test_hostile.py).  It tells replay
 * from play by memory that is there in a replay process only: in play reading it is a fault, which
 * is handled.  With a mode as argument, and a number of rounds, it then does its worst, each round in
 * another way:
 *   scribble   writes all over the plan and the stream
 *   lie        says that it has finished, with a text for a terminal, and goes on writing
 *   fill       takes memory
 *   calls      overwrites translated code with its own, which makes system calls
 *   spin       likewise, and runs in circles
 * Without one it does nothing of the kind. */
#include "check.h"

#include "replay/plan.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>

static struct tbd_plan_head *const plan = (void *)TBD_PLAN_BASE;
static struct tbd_stream_head *const stream = (void *)TBD_STREAM_BASE;
static sigjmp_buf faulted;
static uint64_t seed;

static void on_fault(int number)
{
    (void)number;
    siglongjmp(faulted, 1);
}

static int is_replayed(void)
{
    if (sigsetjmp(faulted, 1))
        return 0;
    return *(volatile uint64_t *)plan == TBD_PLAN_MAGIC;
}

static uint64_t hurtful(void)
{
    uint64_t r = check_random(&seed);

    return r % 5 == 0 ? UINT64_MAX : r % 5 == 1 ? r >> 8 & 63 : r % 5 == 2 ? 1ull << (r >> 8 & 63) : r;
}

static void write_words(volatile uint64_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++)
        from[i] = hurtful();
}

_Noreturn static void scribble(unsigned round)
{
    seed = round * 77 + 1;
    for (;;) {
        switch (check_random(&seed) % 4) {
        case 0: write_words((void *)plan, sizeof(*plan)); break;
        case 1: write_words((void *)&plan->page, sizeof(*plan) - offsetof(struct tbd_plan_head, page)); break;
        case 2: write_words((void *)&stream->published, 2048); break;
        case 3: write_words((void *)(TBD_PLAN_BASE + sizeof(*plan)), 1 << 16); break;
        }
        __atomic_store_n(&plan->turn, 1 + 2 * (round & 1), __ATOMIC_RELEASE);
    }
}

/* The window is finished, it says; counts are what hurts. */
_Noreturn static void lie(unsigned round)
{
    struct tbd_plan_report *report = &plan->report;

    memset(report->what, '\033', sizeof(report->what));
    memcpy(report->what, "\033]0;stranger\007", 13);
    report->outcome = 1 + round % 4;
    report->time = round & 1 ? UINT64_MAX : 0;
    report->area_count = round & 2 ? 1u << 30 : 0;
    for (;;)
        __atomic_store_n(&plan->turn, TBD_TURN_DONE, __ATOMIC_RELEASE);
}

_Noreturn static void spin(void)
{
    for (volatile uint64_t i = 0;; i++)
        ;
}

_Noreturn static void fill(void)
{
    volatile uint8_t *areas = (uint8_t *)stream + stream->areas_offset;

    for (uint64_t at = 0; at < stream->area_bytes; at += TBD_PAGE_SIZE)
        areas[at] = 1;
    spin();
}

/* mov eax, NUMBER; xor edi, edi; xor esi, esi; xor edx, edx; syscall; jmp self */
static uint8_t code[] = { 0xb8, 0, 0, 0, 0, 0x31, 0xff, 0x31, 0xf6, 0x31, 0xd2, 0x0f, 0x05, 0xeb, 0xfe };

/* A place that is easily found again. */
#define MARK 0x1122334455667788
__attribute__((noinline)) static void victim(void)
{
    __asm__ volatile("movabs $0x1122334455667788, %%rax" ::: "rax");
}

#define MOST_BYTES (256u << 10)
/* Where its number is in translated code. */
static uint8_t *find_mark_in(const struct tbd_plan_range *area)
{
    uint64_t bytes = area->end - area->start < MOST_BYTES ? area->end - area->start : MOST_BYTES;
    const uint8_t *at = (const uint8_t *)area->start, *end = at + bytes - 16;
    volatile uint64_t inverse = ~MARK;
    uint64_t mark = ~inverse, seen[8];

    for (; at < end; at += 8) {
        memcpy(&seen[0], at, 8);
        memcpy(&seen[1], at + 1, 8);
        memcpy(&seen[2], at + 2, 8);
        memcpy(&seen[3], at + 3, 8);
        memcpy(&seen[4], at + 4, 8);
        memcpy(&seen[5], at + 5, 8);
        memcpy(&seen[6], at + 6, 8);
        memcpy(&seen[7], at + 7, 8);
        if ((seen[0] == mark) | (seen[1] == mark) | (seen[2] == mark) | (seen[3] == mark) | (seen[4] == mark) |
            (seen[5] == mark) | (seen[6] == mark) | (seen[7] == mark))
            break;
    }
    for (unsigned i = 0; i < 8; i++)
        if (seen[i] == mark)
            return (uint8_t *)at + i;
    return NULL;
}

/* Translated code lies in places that can be written: so what comes next is not translated. */
_Noreturn static void run_code(void)
{
    victim();
    for (uint64_t i = plan->report.area_count; i-- > 0;) {
        uint8_t *mark = find_mark_in(&plan->report.areas[i]);

        if (!mark)
            continue;
        memcpy(mark - 2, code, sizeof(code));
        victim();
    }
    spin();
}

_Noreturn static void call(unsigned round)
{
    static const uint32_t numbers[] = { SYS_write, SYS_open, SYS_socket, SYS_fork, SYS_execve, SYS_kill,
                                        SYS_ptrace, SYS_getppid, SYS_memfd_create, SYS_prctl };

    memcpy(code + 1, &numbers[round % (sizeof(numbers) / 4)], 4);
    run_code();
}

/* Without the engine nobody counts its steps. */
_Noreturn static void spin_really(void)
{
    code[0] = 0xeb;
    code[1] = 0xfe;
    run_code();
}

static void do_worst(const char *mode, unsigned round)
{
    if (!strcmp(mode, "scribble"))
        scribble(round);
    if (!strcmp(mode, "lie"))
        lie(round);
    if (!strcmp(mode, "spin"))
        spin_really();
    if (!strcmp(mode, "fill"))
        fill();
    if (!strcmp(mode, "calls"))
        call(round);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    uint64_t sum = 1;

    signal(SIGSEGV, on_fault);
    for (unsigned round = 0; round < rounds; round++) {
        if (argc > 1 && is_replayed())
            do_worst(argv[1], round);
        for (unsigned i = 0; i < 200000; i++)
            sum += check_random(&sum) % 7;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
