// SPDX-License-Identifier: MIT
/* Jump tables: a small interpreter by switch and one by computed goto must agree. */
#include "check.h"

enum { PUSH, ADD, MUL, SUB, DUP, SWAP, JNZ, HALT };

static const int program[] = { PUSH, 1, PUSH, 300, SWAP, PUSH, 3, MUL, PUSH, 7, ADD, SWAP, PUSH, 1, SUB, DUP, JNZ, 4, HALT };

__attribute__((noinline)) static uint32_t run_switch(const int *code, unsigned *steps)
{
    uint32_t stack[16], t;
    unsigned sp = 0, pc = 0;

    for (;; ++*steps) {
        switch (code[pc++]) {
        case PUSH: stack[sp++] = (uint32_t)code[pc++]; break;
        case ADD: sp--; stack[sp - 1] += stack[sp]; break;
        case MUL: sp--; stack[sp - 1] *= stack[sp]; break;
        case SUB: sp--; stack[sp - 1] -= stack[sp]; break;
        case DUP: stack[sp] = stack[sp - 1]; sp++; break;
        case SWAP: t = stack[sp - 1]; stack[sp - 1] = stack[sp - 2]; stack[sp - 2] = t; break;
        case JNZ: pc = stack[--sp] ? (unsigned)code[pc] : pc + 1; break;
        case HALT: return stack[sp - 2];
        }
    }
}

__attribute__((noinline)) static uint32_t run_goto(const int *code, unsigned *steps)
{
    static const void *const labels[] = { &&push, &&add, &&mul, &&sub, &&dup, &&swap, &&jnz, &&halt };
    uint32_t stack[16], t;
    unsigned sp = 0, pc = 0;

#define NEXT do { ++*steps; goto *labels[code[pc++]]; } while (0)
    goto *labels[code[pc++]];
push: stack[sp++] = (uint32_t)code[pc++]; NEXT;
add: sp--; stack[sp - 1] += stack[sp]; NEXT;
mul: sp--; stack[sp - 1] *= stack[sp]; NEXT;
sub: sp--; stack[sp - 1] -= stack[sp]; NEXT;
dup: stack[sp] = stack[sp - 1]; sp++; NEXT;
swap: t = stack[sp - 1]; stack[sp - 1] = stack[sp - 2]; stack[sp - 2] = t; NEXT;
jnz: pc = stack[--sp] ? (unsigned)code[pc] : pc + 1; NEXT;
halt: return stack[sp - 2];
}

int main(void)
{
    unsigned a_steps = 0, b_steps = 0;
    uint32_t a = run_switch(program, &a_steps), b = run_goto(program, &b_steps);

    CHECK(a == b && a_steps == b_steps);
    printf("%u after %u steps\n", a, a_steps);
    return 0;
}
