// SPDX-License-Identifier: MIT
/* uninitialised.c - the number of retries is a value that an earlier call left on the stack
 *
 * uninitialised.tbdq asks who wrote the value that is used: a function that has nothing to do with
 * it. */
#include <stdio.h>
#include <string.h>

struct config {
    int timeout;
    int retries;
};

static __attribute__((noinline)) int checksum(int seed)
{
    volatile unsigned char scratch[256];
    int sum = 0;

    for (unsigned i = 0; i < sizeof(scratch); i++)
        scratch[i] = (unsigned char)(seed + (int)i);
    for (unsigned i = 0; i < sizeof(scratch); i++)
        sum += scratch[i];
    return sum;
}

static __attribute__((noinline)) int connect_with(const struct config *config)
{
    printf("trying %d times\n", config->retries);
    return config->retries != 3;
}

static __attribute__((noinline)) int start(const char *option)
{
    struct config config;
    char padding[64];

    memset(padding, 0, sizeof(padding));
    config.timeout = 10;
    if (strcmp(option, "retry") == 0)
        config.retries = 3;
#ifdef FIXED
    else
        config.retries = 3;
#endif
    return connect_with(&config) + padding[0];
}

int main(void)
{
    if (checksum(40) == 0)
        return 2;
    return start("quiet");
}
