// SPDX-License-Identifier: MIT
// links: tbd_hooks_host
/* Which filters for system calls are accepted, and their results: random filters against the
 * kernel. */
#include "hooks/calls/seccomp_bpf.h"

#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 12u

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 20) % limit;
}

static struct sock_filter random_insn(uint64_t *state)
{
    static const uint16_t codes[] = {
        BPF_LD | BPF_W | BPF_ABS,
        BPF_LD | BPF_W | BPF_LEN,
        BPF_LDX | BPF_W | BPF_LEN,
        BPF_LD | BPF_IMM,
        BPF_LDX | BPF_IMM,
        BPF_LD | BPF_MEM,
        BPF_LDX | BPF_MEM,
        BPF_ST,
        BPF_STX,
        BPF_RET | BPF_K,
        BPF_RET | BPF_A,
        BPF_MISC | BPF_TAX,
        BPF_MISC | BPF_TXA,
        BPF_ALU | BPF_NEG,
        BPF_JMP | BPF_JA,
        BPF_ALU | BPF_ADD | BPF_X,
        BPF_ALU | BPF_SUB,
        BPF_ALU | BPF_MUL,
        BPF_ALU | BPF_DIV,
        BPF_ALU | BPF_DIV | BPF_X,
        BPF_ALU | BPF_AND | BPF_X,
        BPF_ALU | BPF_XOR,
        BPF_ALU | BPF_OR,
        BPF_ALU | BPF_LSH,
        BPF_ALU | BPF_RSH,
        BPF_JMP | BPF_JEQ,
        BPF_JMP | BPF_JGE | BPF_X,
        BPF_JMP | BPF_JGT,
        BPF_JMP | BPF_JSET | BPF_X,
        BPF_ALU | BPF_MOD,
        BPF_LD | BPF_B | BPF_ABS,
    };
    static const uint32_t values[] = { 0,  1,  2,  3,  4,  15,         16,
                                       20, 31, 32, 60, 64, 0x7fff0000, 0xffffffff };

    return (struct sock_filter){ codes[random_below(state, sizeof(codes) / sizeof(codes[0]))],
                                 (uint8_t)random_below(state, 3), (uint8_t)random_below(state, 3),
                                 values[random_below(state, sizeof(values) / sizeof(values[0]))] };
}

/* Filters only getppid; at its end it returns an error: the result's low bits. */
static size_t random_program(uint64_t *state, struct sock_filter *out)
{
    size_t middle = random_below(state, MOST);
    size_t at = 0;

    out[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    out[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
    out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < middle; i++)
        out[at++] = random_insn(state);
    out[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x3ff);
    out[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO);
    if (random_below(state, 8))
        out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
    return at;
}

enum { KILLED = -1, REFUSED = -2 };

/* All six arguments are known: 5, 6, 7, 0, 0, 0. */
static long call_getppid(void)
{
    register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_getppid), "D"(5l), "S"(6l), "d"(7l), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void answer_in_child(struct sock_filter *program, size_t count, int fd)
{
    struct sock_fprog fprog = { (unsigned short)count, program };
    int answer = REFUSED;

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) == 0) {
        long result = call_getppid();

        answer = result < 0 ? (int)-result : 0;
    }
    _exit(write(fd, &answer, sizeof(answer)) != sizeof(answer));
}

/* The result of getppid in a process with the filter: an error, 0 for none, KILLED, REFUSED (the
 * filter). */
static int ask_kernel(struct sock_filter *program, size_t count)
{
    int ends[2];
    int answer;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0)
        answer_in_child(program, count, ends[1]);
    close(ends[1]);
    if (read(ends[0], &answer, sizeof(answer)) != sizeof(answer))
        answer = KILLED;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return answer;
}

static int ask_us(const struct sock_filter *program, size_t count)
{
    struct seccomp_data data = { .nr = SYS_getppid,
                                 .arch = AUDIT_ARCH_X86_64,
                                 .args = { 5, 6, 7 } };
    uint32_t verdict;

    if (!tbd_bpf_is_valid(program, count))
        return REFUSED;
    verdict = tbd_bpf_run(program, &data);
    switch (verdict & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG: return 0;
    case SECCOMP_RET_ERRNO: return (int)(verdict & 0xffff) < 4095 ? (int)(verdict & 0xffff) : 4095;
    case SECCOMP_RET_TRACE:
    case SECCOMP_RET_USER_NOTIF: return 38; /* ENOSYS */
    default: return KILLED;
    }
}

static void test_against_kernel(void **unused)
{
    struct rlimit none = { 0, 0 };
    struct sock_filter program[MOST + 6];
    uint64_t state = 0x5eccf117e55ull;
    unsigned killed = 0, refused = 0, answered = 0;

    (void)unused;
    setrlimit(RLIMIT_CORE, &none);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        skip();
    for (unsigned i = 0; i < 1000; i++) {
        size_t count = random_program(&state, program);
        int answer = ask_us(program, count);

        assert_int_equal(ask_kernel(program, count), answer);
        killed += answer == KILLED;
        refused += answer == REFUSED;
        answered += answer >= 0;
    }
    assert_true(killed > 20 && refused > 100 && answered > 100);
}

static void programs_of_no_length_or_too_great_a_one_are_refused(void **unused)
{
    static struct sock_filter program[BPF_MAXINSNS + 2];

    (void)unused;
    for (size_t i = 0; i < BPF_MAXINSNS + 2; i++)
        program[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    assert_false(tbd_bpf_is_valid(program + 1, 0));
    assert_true(tbd_bpf_is_valid(program, 1));
    assert_true(tbd_bpf_is_valid(program, BPF_MAXINSNS));
    assert_false(tbd_bpf_is_valid(program, BPF_MAXINSNS + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_kernel),
        cmocka_unit_test(programs_of_no_length_or_too_great_a_one_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
