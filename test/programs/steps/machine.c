// SPDX-License-Identifier: MIT
// Two interpreters of one byte code: labels as values, and a switch that becomes a table.
#include <stdio.h>

enum { PUSH, ADD, SUB, MUL, DUP, SWAP, JUMP_IF, CALL, RETURN, STOP };

static const signed char program[] = {
    PUSH, 0, PUSH, 6, DUP, JUMP_IF, 8, STOP,                            // while there is something left
    SWAP, PUSH, 3, ADD, PUSH, 2, CALL, 24, SWAP, PUSH, 1, SUB, PUSH, 1, JUMP_IF, 4, // three more, and twice that
    MUL, RETURN,
};

static long threaded(long *steps) {
    static void *const labels[] = {&&push, &&add, &&sub, &&mul, &&dup, &&swap, &&jump_if, &&call, &&ret, &&stop};
    long stack[32], *sp = stack;
    const signed char *at = program, *returns[8];
    int depth = 0;
#define NEXT                                                                                                                                         \
    do {                                                                                                                                             \
        ++*steps;                                                                                                                                    \
        goto *labels[(int)*at++];                                                                                                                    \
    } while (0)
    NEXT;
push:
    *sp++ = *at++;
    NEXT;
add:
    sp--, sp[-1] += sp[0];
    NEXT;
sub:
    sp--;
    sp[-1] -= sp[0];
    NEXT;
mul:
    sp--;
    sp[-1] *= sp[0];
    NEXT;
dup:
    *sp = sp[-1], sp++;
    NEXT;
swap : {
    long x = sp[-1];
    sp[-1] = sp[-2];
    sp[-2] = x;
    NEXT;
}
jump_if:
    if (*--sp)
        at = program + *at;
    else
        at++;
    NEXT;
call:
    returns[depth++] = at + 1;
    at = program + *at;
    NEXT;
ret:
    at = returns[--depth];
    NEXT;
stop:
    return sp[-2];
}

static int one(const signed char **at, long **sp, const signed char **returns, int *depth) {
    long x;
    switch (*(*at)++) {
    case PUSH:
        *(*sp)++ = *(*at)++;
        break;
    case ADD:
        x = *--*sp;
        (*sp)[-1] += x;
        break;
    case SUB:
        x = *--*sp;
        (*sp)[-1] -= x;
        break;
    case MUL:
        x = *--*sp;
        (*sp)[-1] *= x;
        break;
    case DUP:
        x = (*sp)[-1];
        *(*sp)++ = x;
        break;
    case SWAP:
        x = (*sp)[-1], (*sp)[-1] = (*sp)[-2], (*sp)[-2] = x;
        break;
    case JUMP_IF: *at = *--*sp ? program + **at : *at + 1; break;
    case CALL:
        returns[(*depth)++] = *at + 1;
        *at = program + **at;
        break;
    case RETURN: *at = returns[--*depth]; break;
    default: return 0;
    }
    return 1;
}

static long switched(long *steps) {
    long stack[32], *sp = stack;
    const signed char *at = program, *returns[8];
    int depth = 0;
    while (one(&at, &sp, returns, &depth)) ++*steps;
    return sp[-2];
}

int main(void) {
    long a = 0, b = 0;
    long x = threaded(&a), y = switched(&b);
    printf("%ld %ld %ld %ld\n", x, y, a, b);
    return 0;
}
