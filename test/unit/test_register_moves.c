// SPDX-License-Identifier: MIT
// links: tbd_query
/* test_register_moves.c - what is computed of a block's moves is what the processor makes of them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "format/window/blocks.h"
#include "query/session/code/register_moves.h"

#include <string.h>

/* Calls the code at rdi with the operands at rsi; this jumps to `arrive`, which puts what it was given there. */
uint64_t run_code(const uint8_t *code, struct tbd_call_operands *operands);
__asm__(".text\n"
        "run_code: push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "  mov %rsi, %r15\n mov %rdi, %rax\n"
        "  mov 8(%r15), %rdi\n mov 16(%r15), %rsi\n mov 24(%r15), %rdx\n"
        "  mov 32(%r15), %rcx\n mov 40(%r15), %r8\n mov 48(%r15), %r9\n"
        "  lea -8(%rsp), %rbx\n mov %rbx, (%r15)\n"
        "  call *%rax\n"
        "  pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        "arrive: mov %rdi, 8(%r15)\n mov %rsi, 16(%r15)\n mov %rdx, 24(%r15)\n"
        "  mov %rcx, 32(%r15)\n mov %r8, 40(%r15)\n mov %r9, 48(%r15)\n"
        "  mov %rsp, %rax\n sub (%r15), %rax\n mov %rsp, (%r15)\n ret\n");

/* Each ends by a jump, which belongs to it. */
#define CODE(name, text)                                                                           \
    extern const uint8_t name[], name##_end[];                                                     \
    __asm__(".text\n" #name ": " text "\n jmp arrive\n" #name "_end:\n")

CODE(nothing, "nop");
CODE(copies, "mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rax, %r9\n mov %r8, %rcx");
CODE(halves, "mov %edi, %esi\n mov %ecx, %ecx\n mov %r9d, %r8d\n mov %r8d, %edx");
CODE(numbers, "mov $5, %edi\n mov $-5, %esi\n mov $-6, %rdx\n movabs $0x123456789abcdef0, %rcx\n"
              " xor %r8d, %r8d\n sub %r9, %r9");
CODE(sums, "add $1, %rdi\n sub $-128, %rsi\n add $-7, %edx\n sub $0x12345678, %ecx\n inc %r8\n"
           " dec %r9d\n dec %rdi\n add $-1, %rdi\n inc %edx");
CODE(sum_of_half, "mov %edi, %edi\n add $3, %edi\n mov %rdi, %rsi\n lea 5(%rsi), %edx");
CODE(addresses,
     "lea 16(%rsi), %rdi\n lea -1(%rdx), %esi\n lea nothing(%rip), %rcx\n lea (%r9), %r8");
CODE(pushes, "push %rbx\n lea 8(%rsp), %rdi\n sub $40, %rsp\n mov %rsi, 8(%rsp)\n add $40, %rsp\n"
             " pop %rbx\n mov %rsp, %rsi");
CODE(stores, "mov %rdi, -8(%rsp)\n mov %edi, -4(%rsp)\n mov -8(%rsp), %rax");
CODE(enters, "push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n lea (%rbp), %rdi\n mov %rsi, -8(%rbp)\n"
             " leave");
CODE(of_numbers, "mov $7, %edi\n add $-8, %edi\n mov $7, %esi\n add $-8, %rsi");

CODE(half_and_more, "mov %edi, %edi\n add $3, %rdi");
CODE(signed_half, "movslq %edi, %rdi");
CODE(byte, "mov $1, %dil");
CODE(high_byte, "mov $1, %dh");
CODE(word, "mov %si, %di");
CODE(loaded, "mov (%rsp), %rdi");
CODE(indexed, "lea (%rdi,%rsi), %rdi");
CODE(added, "add %rsi, %rdi");
CODE(multiplied, "imul $3, %rdi, %rdi");
CODE(shifted, "shl $1, %r9");
CODE(exchanged, "xchg %rdi, %rsi");
CODE(chosen, "test %rsi, %rsi\n cmovs %rsi, %rdi");
CODE(counted, "lea -64(%rsp), %rdi\n mov $2, %ecx\n rep stosb");
CODE(stepped, "lea -64(%rsp), %rdi\n lea -64(%rsp), %rsi\n movsq");
CODE(processor, "mov %rbx, %r8\n xor %eax, %eax\n cpuid\n mov %r8, %rbx\n mov $0, %r8d");
CODE(popped, "push %rsi\n pop %rdi");
CODE(of_short_address, "lea 1(%edi), %rdi");

/* These would not come back: they are not run. */
CODE(elsewhere, "mov %rdi, (%rsp)");
CODE(elsewhere_partly, "mov %dil, 7(%rsp)");
CODE(elsewhere_by_copy, "mov %rsp, %rax\n mov %rdi, 4(%rax)");
CODE(elsewhere_by_index, "mov %rdi, (%rsp,%rsi)");
CODE(elsewhere_by_pop, "pop %rax\n push %rdi");
CODE(deeper, "push %rdi");
CODE(higher, "add $8, %rsp");
CODE(aligned, "and $-16, %rsp");
CODE(calls, "call *%rax");

struct code {
    const uint8_t *start, *end;
};

#define OF(name)                                                                                   \
    {                                                                                              \
        name, name##_end                                                                           \
    }

static struct tbd_register_moves moves_of(struct code code)
{
    struct tbd_block block = { .def.start = (uint64_t)(uintptr_t)code.start,
                               .def.code_bytes = (uint16_t)(code.end - code.start),
                               .code = code.start };
    struct tbd_register_moves moves;

    tbd_register_moves_of(&block, &moves);
    return moves;
}

static void test_known(void **state)
{
    static const struct code all[] = { OF(nothing),    OF(copies),    OF(halves),
                                       OF(numbers),    OF(sums),      OF(sum_of_half),
                                       OF(pushes),     OF(addresses), OF(stores),
                                       OF(of_numbers), OF(exchanged), OF(of_short_address),
                                       OF(enters) };
    static const uint64_t given[] = {
        0, 1, 0x7fffffff, 0x80000000, 0xfffffffffffffff8, 0xfedcba9876543210
    };
    const uint32_t count = sizeof(given) / sizeof(given[0]);

    (void)state;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]) * count; i++) {
        struct tbd_register_moves moves = moves_of(all[i / count]);
        struct tbd_call_operands truth, computed;

        for (uint32_t k = 0; k < TBD_OPERAND_ARGS; k++)
            truth.args[k] = given[(i + k) % count] + k;
        computed = truth;
        if (!moves.is_known)
            fail_msg("code %u is known", i / count);
        assert_int_equal(run_code(all[i / count].start, &truth), 0);
        computed.sp = truth.sp;
        tbd_register_moves_apply(&moves, &computed);
        assert_memory_equal(&computed, &truth, sizeof(truth));
    }
}

static void test_lost(void **state)
{
    static const struct code all[] = { OF(half_and_more),
                                       OF(signed_half),
                                       OF(byte),
                                       OF(high_byte),
                                       OF(word),
                                       OF(loaded),
                                       OF(indexed),
                                       OF(added),
                                       OF(multiplied),
                                       OF(shifted),
                                       OF(chosen),
                                       OF(counted),
                                       OF(stepped),
                                       OF(processor),
                                       OF(popped),
                                       OF(elsewhere),
                                       OF(elsewhere_by_copy),
                                       OF(deeper),
                                       OF(higher),
                                       OF(aligned),
                                       OF(calls),
                                       OF(elsewhere_partly),
                                       OF(elsewhere_by_index),
                                       OF(elsewhere_by_pop) };

    (void)state;
    for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (moves_of(all[i]).is_known)
            fail_msg("code %u is not known", i);
    }
}

/* Bytes that are no instruction, or none that ends there. */
static void test_damaged(void **state)
{
    static const uint8_t bad[] = { 0x90, 0x06, 0x90 }, cut[] = { 0x90, 0x48, 0xc7 };

    (void)state;
    assert_false(moves_of((struct code){ bad, bad + sizeof(bad) }).is_known);
    assert_false(moves_of((struct code){ cut, cut + sizeof(cut) }).is_known);
    assert_true(moves_of((struct code){ bad, bad + 1 }).is_known);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_known), cmocka_unit_test(test_lost),
                                        cmocka_unit_test(test_damaged) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
