// SPDX-License-Identifier: MIT
/* native_insn.c - see native_insn.h */
#include "native_insn.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

uint8_t *native_memory, *native_code;

/* For the assembly below. */
struct native_state native_in, native_out;
uint64_t native_host_rsp, native_entry;
uint8_t native_taken, native_level;
void native_call(void);
extern const char native_back[], native_back_taken[];

static sigjmp_buf out_of;
static char signal_stack[1 << 16];

#define EACH16(X)                                                                                  \
    X(0)                                                                                           \
    X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define EACH32(X)                                                                                  \
    EACH16(X)                                                                                      \
    X(16)                                                                                          \
    X(17)                                                                                          \
    X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define EACH8(X)      X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define LOAD_XMM(n)   "movups native_in+144+64*" #n "(%rip), %xmm" #n "\n"
#define STORE_XMM(n)  "movups %xmm" #n ", native_out+144+64*" #n "(%rip)\n"
#define LOAD_YMM(n)   "vmovups native_in+144+64*" #n "(%rip), %ymm" #n "\n"
#define STORE_YMM(n)  "vmovups %ymm" #n ", native_out+144+64*" #n "(%rip)\n"
#define LOAD_ZMM(n)   "vmovups native_in+144+64*" #n "(%rip), %zmm" #n "\n"
#define STORE_ZMM(n)  "vmovups %zmm" #n ", native_out+144+64*" #n "(%rip)\n"
#define LOAD_MASK(n)  "kmovq native_in+2192+8*" #n "(%rip), %k" #n "\n"
#define STORE_MASK(n) "kmovq %k" #n ", native_out+2192+8*" #n "(%rip)\n"
#define GPR(X)                                                                                     \
    X(0, rax)                                                                                      \
    X(1, rcx)                                                                                      \
    X(2, rdx)                                                                                      \
    X(3, rbx)                                                                                      \
    X(5, rbp)                                                                                      \
    X(6, rsi)                                                                                      \
    X(7, rdi)                                                                                      \
    X(8, r8) X(9, r9) X(10, r10) X(11, r11) X(12, r12) X(13, r13) X(14, r14) X(15, r15) X(4, rsp)
#define LOAD_GPR(n, name)  "mov native_in+8*" #n "(%rip), %" #name "\n"
#define STORE_GPR(n, name) "mov %" #name ", native_out+8*" #n "(%rip)\n"

_Static_assert(offsetof(struct native_state, vector) == 144, "the assembly's offsets");
_Static_assert(offsetof(struct native_state, mask) == 2192, "the assembly's offsets");

/* clang-format off */
/* Between popfq and pushfq there are only instructions that leave the flags alone. */
__asm__(".text\n"
        ".globl native_call\n"
        "native_call:\n"
        "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, native_host_rsp(%rip)\n"
        "cmpb $1, native_level(%rip)\n"
        "jb 1f\n"
        "je 2f\n"
        EACH32(LOAD_ZMM) EACH8(LOAD_MASK)
        "jmp 3f\n"
        "2:\n" EACH16(LOAD_YMM)
        "jmp 3f\n"
        "1:\n" EACH16(LOAD_XMM)
        "3:\n"
        "push native_in+128(%rip)\n"
        "popfq\n"
        GPR(LOAD_GPR)
        "jmp *native_entry(%rip)\n"
        ".globl native_back_taken\n"
        "native_back_taken:\n"
        "movb $1, native_taken(%rip)\n"
        ".globl native_back\n"
        "native_back:\n"
        GPR(STORE_GPR)
        "mov native_host_rsp(%rip), %rsp\n"
        "pushfq\n"
        "pop native_out+128(%rip)\n"
        "cld\n"
        "cmpb $1, native_level(%rip)\n"
        "jb 1f\n"
        "je 2f\n"
        EACH32(STORE_ZMM) EACH8(STORE_MASK)
        "vzeroupper\n"
        "jmp 3f\n"
        "2:\n" EACH16(STORE_YMM)
        "vzeroupper\n"
        "jmp 3f\n"
        "1:\n" EACH16(STORE_XMM)
        "3:\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\n"
        "ret\n");
/* clang-format on */

static void on_fault(int signo)
{
    siglongjmp(out_of, signo);
}

enum native_vectors native_vectors(void)
{
    return (enum native_vectors)native_level;
}

bool native_begin(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
    stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
    struct sigaction action = { .sa_flags = SA_ONSTACK | SA_NODEFER };
    /* The same in every run, and far from everything else. */
    void *at = mmap((void *)0x50000000ul, NATIVE_MEMORY + 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (at == MAP_FAILED && native_memory == NULL)
        return false;
    if (at != MAP_FAILED)
        native_memory = at;
    native_code = native_memory + NATIVE_MEMORY;
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        native_level = NATIVE_AVX512;
    else if (__builtin_cpu_supports("avx2"))
        native_level = NATIVE_AVX;
    action.sa_handler = on_fault;
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &action, NULL);
    return true;
}

enum { LANDING = 48 };

uint64_t native_landing(void)
{
    return (uint64_t)(uintptr_t)native_code + LANDING;
}

/* jmp [rip]; the target */
static void put_jump(uint8_t *at, const char *target)
{
    static const uint8_t jump[6] = { 0xff, 0x25, 0, 0, 0, 0 };
    uint64_t address = (uint64_t)(uintptr_t)target;

    memcpy(at, jump, sizeof(jump));
    memcpy(at + sizeof(jump), &address, 8);
}

bool native_run(const struct native_state *in, size_t length, struct native_state *out,
                bool *out_taken)
{
    put_jump(native_code + length, native_back);
    put_jump(native_code + LANDING, native_back_taken);
    native_in = *in;
    native_entry = (uint64_t)(uintptr_t)native_code;
    native_taken = 0;
    if (sigsetjmp(out_of, 0) != 0) {
        __asm__ volatile("cld");
        return false;
    }
    native_call();
    *out = native_out;
    *out_taken = native_taken != 0;
    return true;
}
