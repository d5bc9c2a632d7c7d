// SPDX-License-Identifier: MIT
// libs: m
/* x87, SSE rounding modes, long double, environments saved and restored, fxsave residue. */
#include "check.h"
#include <fenv.h>
#include <math.h>

static void check_environment(void)
{
    static unsigned char area[1024] __attribute__((aligned(64)));
    fenv_t env;
    volatile double one = 1, three = 3, zero = 0;
    double down, up;

    CHECK(fegetenv(&env) == 0 && fesetround(FE_DOWNWARD) == 0);
    down = one / three;
    fesetround(FE_UPWARD);
    up = one / three;
    CHECK(fesetenv(&env) == 0 && down < up && fegetround() == FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    up = one / zero;
    CHECK(isinf(up) && fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO);
    feclearexcept(FE_ALL_EXCEPT);
    __asm__ volatile("fxsave %0" : "=m"(area));
    CHECK(area[0] == 0x7f && area[1] == 0x03 && area[24] == 0x80 && area[25] == 0x1f);
    __asm__ volatile("fxrstor %0; fnsave %1; frstor %1; fnstenv %2; fldenv %2" : "+m"(area), "+m"(area[512]), "+m"(area[768]));
    CHECK(area[512] == 0x7f && area[768] == 0x7f);
}

int main(void)
{
    long double product = 1;
    double sum = 0;
    char text[64];

    for (int i = 1; i < 500; i++) {
        sum += sin(i) * cos(i / 3.0) + sqrt(i) + exp(-i / 50.0) + log1p(i) + fmod(i * 17.5, 3.3) + cbrt(i);
        product *= 1.0L + 1.0L / i;
        check_environment();
    }
    snprintf(text, sizeof(text), "%.12f %.15Lf %a", sum, product, 1.0 / 3);
    CHECK(strtod("0x1.5555555555555p-2", NULL) == 1.0 / 3);
    puts(text);
    return 0;
}
