// SPDX-License-Identifier: MIT
/* operators_program.c - what C's operators give for operands of every integer type
 *
 * Compiled and run by test_operators.c, which asks for the same expressions: a line is an
 * expression, " = ", and its value in hexadecimal, or "none" where C has no value.  Where C leaves
 * the value open (a shift by too much, INT_MIN / -1) there is no line. */
#include <stdio.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof(array[0])))

// clang-format off
signed char        i8[]  = { -128, -1, 1, 127 };
unsigned char      u8[]  = { 0, 7, 128, 255 };
short              i16[] = { -32768, -2, 3, 32767 };
unsigned short     u16[] = { 0, 2, 32768, 65535 };
int                i32[] = { -2147483647 - 1, -3, 0, 31, 2147483647 };
unsigned           u32[] = { 0, 5, 2147483648u, 4294967295u };
long               i64[] = { -9223372036854775807 - 1, -4, 63, 4294967296, 9223372036854775807 };
unsigned long      u64[] = { 0, 33, 9223372036854775808u, 18446744073709551615u };
_Bool              b[]   = { 0, 1 };

#define TYPES(X, ...)                                                                              \
    X(i8, __VA_ARGS__) X(u8, __VA_ARGS__) X(i16, __VA_ARGS__) X(u16, __VA_ARGS__)                  \
    X(i32, __VA_ARGS__) X(u32, __VA_ARGS__) X(i64, __VA_ARGS__) X(u64, __VA_ARGS__)                \
    X(b, __VA_ARGS__)
/* The same again: a macro is not expanded within itself. */
#define OTHER_TYPES(X, ...)                                                                        \
    X(i8, __VA_ARGS__) X(u8, __VA_ARGS__) X(i16, __VA_ARGS__) X(u16, __VA_ARGS__)                  \
    X(i32, __VA_ARGS__) X(u32, __VA_ARGS__) X(i64, __VA_ARGS__) X(u64, __VA_ARGS__)                \
    X(b, __VA_ARGS__)

#define BINARY(X, ...)                                                                             \
    X(==, __VA_ARGS__) X(!=, __VA_ARGS__) X(<, __VA_ARGS__) X(<=, __VA_ARGS__) X(>, __VA_ARGS__)   \
    X(>=, __VA_ARGS__) X(&&, __VA_ARGS__) X(||, __VA_ARGS__) X(+, __VA_ARGS__) X(-, __VA_ARGS__)   \
    X(*, __VA_ARGS__) X(&, __VA_ARGS__) X(|, __VA_ARGS__) X(^, __VA_ARGS__)
#define DIVISIONS(X, ...) X(/, __VA_ARGS__) X(%, __VA_ARGS__)
#define SHIFTS(X, ...)    X(<<, __VA_ARGS__) X(>>, __VA_ARGS__)
#define UNARY(X, ...)     X(-, __VA_ARGS__) X(~, __VA_ARGS__) X(!, __VA_ARGS__) X(+, __VA_ARGS__)
#define LITERALS(X, ...)                                                                           \
    X(-3000000000, __VA_ARGS__) X(-200, __VA_ARGS__) X(-1, __VA_ARGS__) X(0, __VA_ARGS__)          \
    X(1, __VA_ARGS__) X(200, __VA_ARGS__) X(40000, __VA_ARGS__) X(3000000000, __VA_ARGS__)
#define CASTS(X, ...)                                                                              \
    X(signed char, __VA_ARGS__) X(unsigned char, __VA_ARGS__) X(short, __VA_ARGS__)                \
    X(unsigned short, __VA_ARGS__) X(int, __VA_ARGS__) X(unsigned int, __VA_ARGS__)                \
    X(long, __VA_ARGS__) X(unsigned long, __VA_ARGS__) X(_Bool, __VA_ARGS__)
// clang-format on

#define EACH_PAIR(left, right)                                                                     \
    for (int i = 0; i < COUNT_OF(left); i++)                                                       \
        for (int j = 0; j < COUNT_OF(right); j++)

#define ROW(op, value, left, right)                                                                \
    printf("%s[%d] %s %s[%d] = %llx\n", #left, i, #op, #right, j, (unsigned long long)(value));

#define OPERATE(op, left, right) ROW(op, left[i] op right[j], left, right)

/* The most negative number divided by -1 has no value in C, and traps. */
#define DIVIDE(op, left, right)                                                                    \
    if (right[j] == 0)                                                                             \
        printf("%s[%d] %s %s[%d] = none\n", #left, i, #op, #right, j);                             \
    else if (i != 0 || right[j] + 1 != 0)                                                          \
    ROW(op, left[i] op right[j], left, right)

#define SHIFT(op, left, right)                                                                     \
    if (right[j] >= 0 && (unsigned long)right[j] < 8 * sizeof(+left[i]))                           \
    ROW(op, left[i] op right[j], left, right)

#define CHOOSE(left, right)                                                                        \
    printf("b[%d] ? %s[%d] : %s[%d] = %llx\n", (i ^ j) & 1, #left, i, #right, j,                   \
           (unsigned long long)(b[(i ^ j) & 1] ? left[i] : right[j]));

#define PAIR(right, left)                                                                          \
    EACH_PAIR(left, right)                                                                         \
    {                                                                                              \
        BINARY(OPERATE, left, right)                                                               \
        DIVISIONS(DIVIDE, left, right)                                                             \
        SHIFTS(SHIFT, left, right)                                                                 \
        CHOOSE(left, right)                                                                        \
    }

#define COMPARE(literal, left)                                                                     \
    printf("%s[%d] < %s = %x\n", #left, i, #literal, left[i] < literal);                           \
    printf("%s >= %s[%d] = %x\n", #literal, #left, i, literal >= left[i]);                         \
    printf("%s[%d] != %s = %x\n", #left, i, #literal, left[i] != literal);

#define APPLY(op, name)                                                                            \
    printf("%s%s[%d] = %llx\n", #op, #name, i, (unsigned long long)(op name[i]));
#define CAST(type, name)                                                                           \
    printf("(%s)%s[%d] = %llx\n", #type, #name, i, (unsigned long long)(type)name[i]);

#define ALONE(name, unused)                                                                        \
    for (int i = 0; i < COUNT_OF(name); i++) {                                                     \
        UNARY(APPLY, name)                                                                         \
        CASTS(CAST, name)                                                                          \
        LITERALS(COMPARE, name)                                                                    \
    }

#define WITH_EACH(left, unused) OTHER_TYPES(PAIR, left)

int main(void)
{
    TYPES(ALONE, )
    TYPES(WITH_EACH, )
    return 0;
}
