// SPDX-License-Identifier: MIT
/* What the traces beside this file are of: built with -O1 -nostdlib -pie, so that no library is in them. */
static long call(long n, long a, long b, long c)
{
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
}
static unsigned table[256];
static __attribute__((noinline)) unsigned mix(unsigned x) { return x * 2654435761u ^ x >> 7; }
void _start(void)
{
    unsigned x = 1;
    for (int i = 0; i < 2500; i++) {
        x = mix(x);
        table[x % 256] += x;
    }
    call(1, 1, (long)"golden\n", 7);
    call(231, 3, 0, 0);
}
