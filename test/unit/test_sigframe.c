// SPDX-License-Identifier: MIT
// links: tbd_sigframe
/* test_sigframe.c - hooks/threads/sigframe.h against frames that the kernel makes
 *
 * Signals interrupt code with a stack pointer of every alignment; a handler without libc's wrappers
 * looks at its own stack pointer and arguments.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks/threads/sigframe.h"

#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESTORER      0x04000000ul
#define UC_FLAGS      7u       /* extended state, ss is saved, ss is restored even if odd */
#define FLAGS_CLEARED 0x10500u /* DF, RF, TF */
#define SOFTWARE_AT   464u
#define MAGIC1        0x46505853u
#define MAGIC2        0x46505845u
#define STACK_BYTES   65536u

struct kernel_action {
    void (*handler)(int, void *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

struct software {
    uint32_t magic1;
    uint32_t extended_bytes;
    uint64_t features;
    uint32_t xstate_bytes;
    uint32_t padding[7];
};

/* What the handler saw. */
static struct tbd_sigframe frame;
static struct software software;
static uint32_t end_magic;
static uint64_t frame_address, entry_flags, info_address, context_address, mxcsr_in_handler,
    rax_at_entry;
static unsigned handled;

void tbd_test_restorer(void);
void tbd_test_handler(int, void *, void *);
void tbd_test_seen(uint64_t sp, uint64_t info, uint64_t context, uint64_t flags, uint64_t rax);
uint64_t tbd_test_interrupt(uint64_t sp, uint64_t flags);

__asm__(".pushsection .text\n"
        "tbd_test_restorer: mov $15, %eax; syscall\n"
        "tbd_test_handler:\n"
        "  mov %rsp, %rdi; pushfq; pop %rcx; mov %rax, %r8\n"
        "  sub $8, %rsp; call tbd_test_seen; add $8, %rsp; ret\n"
        /* Sets rsp and flags, then kills itself with SIGUSR1: number in eax, pid, signal. */
        "tbd_test_interrupt:\n"
        "  push %rbx; push %rbp; mov %rsp, %rbx; mov %rdi, %r12; mov %rsi, %rbp\n"
        "  mov $39, %eax; syscall; mov %eax, %edi; mov $10, %esi; mov $62, %eax\n"
        "  mov %r12, %rsp; push %rbp; popfq; syscall\n"
        "  cld; mov %rsp, %rax; mov %rbx, %rsp; pop %rbp; pop %rbx; ret\n.popsection\n");

__attribute__((no_sanitize("address"), used)) void
tbd_test_seen(uint64_t sp, uint64_t info, uint64_t context, uint64_t flags, uint64_t rax)
{
    uint32_t mxcsr;

    frame_address = sp;
    info_address = info;
    context_address = context;
    entry_flags = flags;
    rax_at_entry = rax;
    memcpy(&frame, (const void *)sp, sizeof(frame));
    memcpy(&software, (const void *)(frame.context.fpstate + SOFTWARE_AT), sizeof(software));
    memcpy(&end_magic, (const void *)(frame.context.fpstate + software.xstate_bytes), 4);
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr_in_handler = mxcsr;
    handled++;
}

static void catch_with(unsigned long flags)
{
    struct kernel_action action = { tbd_test_handler, SA_SIGINFO | RESTORER | flags,
                                    tbd_test_restorer, 1u << (SIGHUP - 1) };

    assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8), 0);
}

/* r12 is callee-saved. */
static uint64_t interrupt(uint64_t sp, uint64_t flags)
{
    uint64_t back;

    __asm__ volatile("call tbd_test_interrupt"
                     : "=a"(back), "+D"(sp), "+S"(flags)
                     :
                     : "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "memory", "cc");
    return back;
}

static uint8_t *new_stack(void)
{
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(stack != MAP_FAILED);
    return stack;
}

static void check_placement(uint64_t sp, uint64_t altstack_top)
{
    struct tbd_frame_place place = tbd_sigframe_place(
        altstack_top ? altstack_top : sp - 128, software.xstate_bytes + TBD_FPSTATE_MAGIC2_BYTES);
    struct tbd_regs regs;

    tbd_ucontext_get(&frame.context, &regs);
    assert_int_equal(regs.gpr[TBD_RSP], sp);
    assert_int_equal(frame_address, place.frame);
    assert_int_equal(frame.context.fpstate, place.fpstate);
    assert_int_equal(info_address, place.frame + offsetof(struct tbd_sigframe, info));
    assert_int_equal(context_address, place.frame + offsetof(struct tbd_sigframe, context));
}

static void frames_lie_where_the_header_says_for_every_alignment(void **state)
{
    uint8_t *stack = new_stack();

    (void)state;
    catch_with(0);
    for (uint64_t offset = 0; offset < 130; offset++) {
        uint64_t sp = (uint64_t)stack + STACK_BYTES - 512 + offset;
        unsigned before = handled;

        assert_int_equal(interrupt(sp, 0x202), sp);
        assert_int_equal(handled, before + 1);
        check_placement(sp, 0);
    }
    munmap(stack, STACK_BYTES);
}

static void fields_are_what_the_header_says(void **state)
{
    uint8_t *stack = new_stack();
    uint64_t sp = (uint64_t)stack + STACK_BYTES - 64;
    uint32_t mxcsr = 0x1f80 | 0x6000, again; /* rounding towards zero */
    uint64_t mask = 1u << (SIGWINCH - 1);
    struct tbd_regs regs;

    (void)state;
    catch_with(0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    interrupt(sp, 0x202 | 0x400 | 0x8d5); /* direction flag, arithmetic flags */
    __asm__ volatile("stmxcsr %0" : "=m"(again));
    assert_int_equal(again & 0x6000, 0x6000); /* sigreturn restored it */
    mxcsr = 0x1f80;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);

    assert_int_equal(frame.restorer, (uint64_t)(uintptr_t)tbd_test_restorer);
    assert_int_equal(frame.context.flags, UC_FLAGS);
    assert_int_equal(frame.context.link, 0);
    assert_int_equal(frame.context.mask, 1u << (SIGWINCH - 1));
    assert_int_equal(frame.context.old_mask, 1u << (SIGWINCH - 1));
    assert_int_equal(frame.context.altstack.flags & ~(uint32_t)SS_DISABLE, 0);
    tbd_ucontext_get(&frame.context, &regs);
    assert_int_equal(regs.gpr[TBD_RAX], 0); /* kill returned 0 */
    assert_int_equal(frame.context.gs | frame.context.fs, 0);
    assert_int_equal(regs.rflags & 0xcd5, 0xcd5);
    assert_int_equal(entry_flags & FLAGS_CLEARED, 0);
    assert_int_equal(entry_flags & 0x8d5, 0x8d5); /* the others are left as they were */
    assert_int_equal(rax_at_entry, 0);
    assert_int_equal(mxcsr_in_handler, 0x1f80);
    assert_int_equal(((siginfo_t *)(void *)frame.info)->si_signo, SIGUSR1);
    munmap(stack, STACK_BYTES);
}

static void extended_state_is_framed_by_its_magic_numbers(void **state)
{
    static uint8_t marked[32768];
    uint32_t eax, ebx, ecx, edx;

    (void)state;
    assert_int_equal(software.magic1, MAGIC1);
    assert_int_equal(end_magic, MAGIC2);
    assert_int_equal(software.extended_bytes, software.xstate_bytes + 4);
    assert_true(__get_cpuid_count(13, 0, &eax, &ebx, &ecx, &edx));
    assert_true(software.xstate_bytes <= ebx);
    assert_int_equal(software.features & 7, 7);
    assert_true(software.xstate_bytes + 4 <= sizeof(marked));
    tbd_fpstate_mark(marked, software.xstate_bytes, software.features);
    assert_memory_equal(marked + SOFTWARE_AT, &software, sizeof(software));
    assert_memory_equal(marked + software.xstate_bytes, &end_magic, sizeof(end_magic));
}

static void the_alternate_stack_is_entered_once(void **state)
{
    uint8_t *stack = new_stack(), *alternate = new_stack();
    stack_t set = { .ss_sp = alternate, .ss_size = STACK_BYTES };
    uint64_t bottom = (uint64_t)alternate, sp = (uint64_t)stack + 4096 + 8;

    (void)state;
    assert_int_equal(sigaltstack(&set, NULL), 0);
    catch_with(SA_ONSTACK);
    interrupt(sp, 0x202);
    check_placement(sp, bottom + STACK_BYTES);
    assert_int_equal(frame.context.altstack.sp, bottom);
    assert_int_equal(frame.context.altstack.bytes, STACK_BYTES);
    assert_int_equal(frame.context.altstack.flags, 0);
    sp = bottom + STACK_BYTES - 1000; /* already on it */
    interrupt(sp, 0x202);
    check_placement(sp, 0);
    sp = bottom + 100; /* below it once the red zone is taken off: entered again */
    interrupt(sp, 0x202);
    check_placement(sp, bottom + STACK_BYTES);
    catch_with(0); /* without SA_ONSTACK it is not used */
    sp = (uint64_t)stack + STACK_BYTES - 32;
    interrupt(sp, 0x202);
    check_placement(sp, 0);
    set.ss_flags = SS_DISABLE;
    assert_int_equal(sigaltstack(&set, NULL), 0);
    munmap(stack, STACK_BYTES);
    munmap(alternate, STACK_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_lie_where_the_header_says_for_every_alignment),
        cmocka_unit_test(fields_are_what_the_header_says),
        cmocka_unit_test(extended_state_is_framed_by_its_magic_numbers),
        cmocka_unit_test(the_alternate_stack_is_entered_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
