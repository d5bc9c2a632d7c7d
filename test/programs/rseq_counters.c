// SPDX-License-Identifier: MIT
// libs: pthread
// options: quantum=200
/* Counters of processors in restartable sequences of the C library's registration, tried until they succeed.  Where the library has none
 * (__rseq_size, asked for once), they are counted by atomic instructions: nothing is lost, and nothing goes on for ever.  With an argument
 * they count until a line comes. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

#define SIGNATURE 0x53053053u
enum { THREADS = 4, TIMES = 20000, PROCESSORS = 4096 };

struct area {
    uint32_t cpu_start, cpu;
    uint64_t section;
};

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
static long counts[PROCESSORS];
static int has_sequences;
static volatile int is_over; /* of those that count until then */
static long done;             /* how often */

static __attribute__((noinline)) int add_once(volatile struct area *area, uint64_t cpu)
{
    __asm__ goto volatile(".pushsection .data.rseq, \"aw\"\n"
                          ".balign 32\n"
                          "7: .long 0, 0\n"
                          ".quad 1f, 2f - 1f, 4f\n"
                          ".popsection\n"
                          "lea 7b(%%rip), %%rax\n"
                          "mov %%rax, 8(%[area])\n"
                          "1: cmp %k[cpu], 4(%[area])\n"
                          "jne %l[aborted]\n"
                          "addq $1, (%[words], %[cpu], 8)\n"
                          "2: jmp 6f\n"
                          ".byte 0x0f, 0xb9, 0x3d\n" /* a trap with the signature as its operand */
                          ".long 0x53053053\n"
                          "4: jmp %l[aborted]\n"
                          "6:\n"
                          :
                          : [area] "r"(area), [words] "r"(counts), [cpu] "r"(cpu)
                          : "rax", "memory", "cc"
                          : aborted);
    return 1;
aborted:
    return 0;
}

static void *count_up(void *unused)
{
    volatile struct area *area = has_sequences ? (void *)((char *)__builtin_thread_pointer() + __rseq_offset) : NULL;

    long i;

    for (i = 0; !is_over && (unused != NULL || i < TIMES); i++) {
        if (!has_sequences) {
            int cpu = sched_getcpu();

            CHECK(cpu >= 0 && cpu < PROCESSORS);
            __atomic_fetch_add(&counts[cpu], 1, __ATOMIC_RELAXED);
            continue;
        }
        while (!add_once(area, area->cpu_start))
            ;
    }
    __atomic_fetch_add(&done, i, __ATOMIC_RELAXED);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    long sum = 0;
    char line;

    has_sequences = &__rseq_size && __rseq_size != 0;
    CHECK(sched_getcpu() >= 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_up, argc > 1 ? argv : NULL) == 0);
    if (argc > 1) {
        puts(has_sequences ? "has sequences" : "has none");
        fflush(stdout);
        CHECK(read(STDIN_FILENO, &line, 1) == 1);
        is_over = 1;
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < PROCESSORS; i++)
        sum += counts[i];
    CHECK(sum == done);
    if (argc == 1)
        printf("%ld\n", sum);
    return 0;
}
