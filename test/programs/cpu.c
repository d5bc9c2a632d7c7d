// SPDX-License-Identifier: MIT
// flags: -mrdrnd -mrdseed -mxsave -mrdpid
// cpu: rdrand rdseed xsave rdpid
/* Instructions whose result is not a function of the program's state. */
#include "check.h"
#include <cpuid.h>
#include <immintrin.h>
#include <x86intrin.h>

int main(void)
{
    unsigned a, b, c, d, aux, distinct = 0;
    unsigned long long r = 0, last = 0;
    uint64_t previous = 0;
    char vendor[13] = "";

    for (int i = 0; i < 300; i++) {
        uint64_t now = i % 2 ? __rdtsc() : __rdtscp(&aux);

        CHECK(now > previous);
        previous = now;
        while (!_rdrand64_step(&r)) {}
        distinct += r != last;
        last = r;
    }
    for (int tries = 0; tries < 100000 && !_rdseed64_step(&r); tries++) {}
    CHECK(distinct > 290);
    CHECK(__get_cpuid(0, &a, &b, &c, &d));
    memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
    CHECK((_xgetbv(0) & 3) == 3 && _rdpid_u32() < 1u << 24);
    printf("%s\n", vendor);
    return 0;
}
