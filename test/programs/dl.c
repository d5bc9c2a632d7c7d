// SPDX-License-Identifier: MIT
// libs: dl
/* dlopen and dlclose of a library again and again; its code, data, and constructors. */
#include "check.h"
#include <dlfcn.h>
#include <math.h>

int main(void)
{
    int total = 0;
    double value = 0;

    for (int i = 0; i < 5; i++) {
        void *handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL), *z = dlopen("liblz4.so.1", RTLD_NOW);
        double (*power)(double, double);
        int (*bound)(int);

        CHECK(handle != NULL);
        power = (double (*)(double, double))dlsym(handle, "pow");
        CHECK(power != NULL);
        value += power(1.5, i);
        if (z != NULL) {
            bound = (int (*)(int))dlsym(z, "LZ4_compressBound");
            total += bound(1000 * i);
            dlclose(z);
        }
        dlclose(handle);
        CHECK(dlopen("libno-such-library.so", RTLD_NOW) == NULL);
    }
    printf("%d %.6f\n", total > 0, value);
    return 0;
}
