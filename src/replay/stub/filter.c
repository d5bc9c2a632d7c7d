// SPDX-License-Identifier: MIT
/* filter.c - see filter.h
 *
 * FILTER-1  A call without a rule kills the process; so do arguments that its rule does not allow,
 *     and an argument with bits above the 32 that the kernel uses.  (not checked: test_hostile.py
 *     does) */
#include "replay/stub/filter.h"

#include "base/layout.h"
#include "base/linux.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>

enum check_kind {
    NO_CHECK,
    ONE_OF,  /* is one of the values */
    BITS_OF, /* has no bits but those of the value */
    IN_4GIB, /* is an address: its upper half lies between the two values, without the second */
};

#define MOST_VALUES 5
struct check {
    enum check_kind kind;
    uint8_t argument;
    uint8_t count;
    uint32_t values[MOST_VALUES];
};

#define MOST_CHECKS 2
struct call_rule {
    uint32_t number;
    struct check checks[MOST_CHECKS];
};

#define UPPER(address) ((uint32_t)((address) >> 32))
#define MAPPED         (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE)

/* The stub's calls: its own memory, waiting for the driver, signals, the end. */
static const struct call_rule rules[] = {
    { __NR_futex, /* words of the stream and the plan */
      { { ONE_OF, 1, 2, { FUTEX_WAIT, FUTEX_WAKE } },
        { IN_4GIB, 0, 2, { UPPER(TBD_STREAM_BASE), UPPER(TBD_PRESENT_BASE) } } } },
    { __NR_mmap,
      { { BITS_OF, 2, 1, { PROT_READ | PROT_WRITE | PROT_EXEC } }, { ONE_OF, 3, 1, { MAPPED } } } },
    { __NR_mprotect, { { BITS_OF, 2, 1, { PROT_READ | PROT_WRITE } } } },
    { __NR_madvise, { { ONE_OF, 2, 2, { MADV_DONTNEED, MADV_DONTDUMP } } } },
    { __NR_munmap, { { .kind = NO_CHECK } } },
    { __NR_mremap, { { ONE_OF, 3, 1, { MREMAP_MAYMOVE | MREMAP_FIXED } } } },
    { __NR_rt_sigreturn, { { .kind = NO_CHECK } } },
    { __NR_restart_syscall,
      { { .kind = NO_CHECK } } }, /* the kernel restarts a wait with it after SIGSTOP and SIGCONT */
    { __NR_arch_prctl,
      { { ONE_OF,
          0,
          5,
          { ARCH_SET_FS, ARCH_SET_GS, ARCH_GET_FS, ARCH_GET_GS, ARCH_REQ_XCOMP_PERM } } } },
    { __NR_exit_group, { { .kind = NO_CHECK } } },
};

struct filter {
    struct sock_filter *code;
    size_t count;
};

/* The last two arguments are the numbers of instructions that are skipped. */
static void put(struct filter *f, int code, uint32_t value, size_t if_true, size_t if_false)
{
    if (f->count < TBD_FILTER_CAPACITY)
        f->code[f->count++] =
            (struct sock_filter){ (uint16_t)code, (uint8_t)if_true, (uint8_t)if_false, value };
}

static void put_load(struct filter *f, size_t offset)
{
    put(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_kill(struct filter *f)
{
    put(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
}

static size_t argument(const struct check *check)
{
    return offsetof(struct seccomp_data, args) + check->argument * sizeof(uint64_t);
}

static void put_low_half(struct filter *f, const struct check *check)
{
    put_load(f, argument(check) + 4);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    put_kill(f);
    put_load(f, argument(check));
}

static void put_check(struct filter *f, const struct check *check)
{
    if (check->kind == NO_CHECK)
        return;
    if (check->kind == IN_4GIB) {
        put_load(f, argument(check) + 4);
        put(f, BPF_JMP | BPF_JGE | BPF_K, check->values[0], 0, 1);
        put(f, BPF_JMP | BPF_JGE | BPF_K, check->values[1], 0, 1);
    } else {
        put_low_half(f, check);
    }
    if (check->kind == BITS_OF)
        put(f, BPF_JMP | BPF_JSET | BPF_K, ~check->values[0], 0, 1);
    for (unsigned i = 0; i < check->count && check->kind == ONE_OF; i++)
        put(f, BPF_JMP | BPF_JEQ | BPF_K, check->values[i], check->count - i, 0);
    put_kill(f);
}

/* If the rule does not apply, the call's number is still loaded for the next rule. */
static void put_rule(struct filter *f, const struct call_rule *rule)
{
    size_t begin = f->count;

    put(f, BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0, 0);
    for (unsigned i = 0; i < MOST_CHECKS; i++)
        put_check(f, &rule->checks[i]);
    put(f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    f->code[begin].jf = (uint8_t)(f->count - begin - 1);
}

size_t tbd_filter_make(struct sock_filter out[TBD_FILTER_CAPACITY])
{
    struct filter f = { out, 0 };

    put_load(&f, offsetof(struct seccomp_data, arch));
    put(&f, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    put_kill(&f);
    put_load(&f, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        put_rule(&f, &rules[i]);
    put_kill(&f);
    return f.count;
}
