// SPDX-License-Identifier: MIT
/* operators_program.c - what C's operators give for operands of every type
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

float              f32[] = { -0.5f, 0.0f, 0.1f, 3.0f, 16777216.0f };
double             f64[] = { -1e300, -3.0, -0.0, 0.1, 2.5, 0.0 / 0.0 };
char               c[]   = { 'a', 'z', 0, -1 };
enum colour { NEGATIVE = -5, RED = 1, LARGE = 1000 } e[] = { NEGATIVE, RED, LARGE };
enum positive { NOTHING, SOME = 7 } n[] = { NOTHING, SOME };
struct bits { unsigned a : 3; int b : 5; unsigned long c : 40; _Bool d : 1; enum colour e : 12; };
struct bits bits[] = { { 5, -3, 1ul << 39, 1, NEGATIVE }, { 0, 15, 3, 0, LARGE } };
int *p[] = { 0, &i32[1], &i32[3] };

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
    X(1, __VA_ARGS__) X(200, __VA_ARGS__) X(40000, __VA_ARGS__) X(3000000000, __VA_ARGS__)         \
    X(0xffffffff, __VA_ARGS__) X(0x80000000, __VA_ARGS__) X(037777777775, __VA_ARGS__)             \
    X(0xfffffffffffffffd, __VA_ARGS__) X(0x8000000000000000, __VA_ARGS__)                          \
    X(200u, __VA_ARGS__) X(4294967293u, __VA_ARGS__) X(-1l, __VA_ARGS__)                           \
    X(18446744073709551613ul, __VA_ARGS__) X(-3u, __VA_ARGS__) X(~0u, __VA_ARGS__)                 \
    X(~0ul, __VA_ARGS__) X(-1.5, __VA_ARGS__) X(0.1, __VA_ARGS__) X(0.1f, __VA_ARGS__)             \
    X(3e+9, __VA_ARGS__) X('a', __VA_ARGS__)
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

/* Values that are compared and tested only. */
#define COMPARED(X, ...)                                                                           \
    X(f32, __VA_ARGS__) X(f64, __VA_ARGS__) X(c, __VA_ARGS__) X(e, __VA_ARGS__) X(n, __VA_ARGS__)
#define COMPARISONS(X, ...)                                                                        \
    X(==, __VA_ARGS__)                                                                             \
    X(!=, __VA_ARGS__)                                                                             \
    X(<, __VA_ARGS__)                                                                              \
    X(<=, __VA_ARGS__) X(>, __VA_ARGS__) X(>=, __VA_ARGS__) X(&&, __VA_ARGS__) X(||, __VA_ARGS__)
#define COMPARED_PAIR(right, left)                                                                 \
    EACH_PAIR(left, right)                                                                         \
    {                                                                                              \
        COMPARISONS(OPERATE, left, right)                                                          \
        COMPARISONS(OPERATE, right, left)                                                          \
    }
#define COMPARED_ALONE(name, unused)                                                               \
    for (int i = 0; i < COUNT_OF(name); i++) {                                                     \
        APPLY(!, name)                                                                             \
        printf("%s[%d] ? 2 : 3 = %d\n", #name, i, name[i] ? 2 : 3);                                \
        printf("!!%s[%d] = %x\n", #name, i, !!name[i]);                                            \
        LITERALS(COMPARE, name)                                                                    \
    }                                                                                              \
    TYPES(COMPARED_PAIR, name)

/* An expression as it stands. */
#define AS_IT_IS(expression) printf("%s = %llx\n", #expression, (unsigned long long)(expression))

static void members_and_pointers(void)
{
    AS_IT_IS(bits[0].a > -1);
    AS_IT_IS(bits[0].a == 5);
    AS_IT_IS(bits[0].a - 6 < 0);
    AS_IT_IS(bits[0].b < 0);
    AS_IT_IS(bits[0].b == -3);
    AS_IT_IS(bits[0].b == 29);
    AS_IT_IS(bits[0].b < 0u);
    AS_IT_IS(bits[1].b > 14);
    AS_IT_IS(bits[0].b >> 1);
    AS_IT_IS(bits[0].c == 1ul << 39);
    AS_IT_IS(bits[0].c > 0xffffffff);
    AS_IT_IS(bits[1].c * 2);
    AS_IT_IS(bits[0].d == 1);
    AS_IT_IS(!bits[1].d);
    AS_IT_IS(bits[0].e == NEGATIVE);
    AS_IT_IS(bits[1].e == LARGE);
    AS_IT_IS(bits[0].e < RED);
    AS_IT_IS(bits[0].a < bits[0].b);
    AS_IT_IS(bits[0].c > bits[0].a);
    AS_IT_IS(bits[0].a && bits[1].d);
    AS_IT_IS(!p[0]);
    AS_IT_IS(p[0] == 0);
    AS_IT_IS(p[1] == 0);
    AS_IT_IS(p[0] || 0);
    AS_IT_IS(p[1] && 1);
    AS_IT_IS(p[1] == &i32[1]);
    AS_IT_IS(p[2] > &i32[1]);
    AS_IT_IS(&i32[3] - p[1]);
    AS_IT_IS(p[2] - p[1]);
    AS_IT_IS(p[1] + 2 == p[2]);
    AS_IT_IS(p[2] - 2 <= p[1]);
    AS_IT_IS(*p[1] < 0);
    AS_IT_IS(*p[1] == -3);
    AS_IT_IS(p[1][2] == 31);
    AS_IT_IS(*(p[2] - 2) + 3);
    AS_IT_IS(p[1] != p[2]);
    AS_IT_IS((unsigned long)p[1] > 0xffff);
    AS_IT_IS((long)p[0] > -1);
    AS_IT_IS(&i32[1] == p[1]);
    AS_IT_IS((long)&i32[1] > i32[4]);
    AS_IT_IS((long)&i32[1] > u32[3]);
    AS_IT_IS((char)200 < 0);
}

int main(void)
{
    TYPES(ALONE, )
    TYPES(WITH_EACH, )
    COMPARED(COMPARED_ALONE, )
    members_and_pointers();
    return 0;
}
