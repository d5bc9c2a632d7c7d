// SPDX-License-Identifier: MIT
/* Strings of every length at every place between freed blocks: string functions read vectors that reach into these, which is no error.
 * After "errors": how many accesses to freed memory are ones. */
#include "../check.h"

#define BLOCKS 400

static char *all[BLOCKS];
static volatile size_t sum;
static char *volatile stale;

__attribute__((noinline)) static void use(const char *text, size_t bytes)
{
    sum += strlen(text) + strnlen(text, bytes);
    sum += memchr(text, '\0', bytes) != NULL;
    sum += strchr(text, 'x') == NULL;
    sum += strcmp(text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") != 0;
    sum += strrchr(text, 'a') != NULL;
    sum += (size_t)(rawmemchr(text, '\0') != NULL);
    sum += memrchr(text, 'x', bytes) == NULL;
    sum += strcasecmp(text, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") != 0;
}

/* Every second block is freed; the others end with their string. */
__attribute__((noinline)) static void between(size_t size)
{
    for (int i = 0; i < BLOCKS; i++)
        all[i] = malloc(size);
    for (int i = 0; i < BLOCKS; i++) {
        memset(all[i], 'a', size);
        all[i][size - 1] = '\0';
    }
    for (int i = 0; i < BLOCKS; i += 2)
        free(all[i]);
    for (int i = 1; i < BLOCKS; i += 2)
        use(all[i] + i % (int)size, size - (size_t)i % size);
    for (int i = 1; i < BLOCKS; i += 2)
        free(all[i]);
}

__attribute__((noinline)) static void wrong(void)
{
    stale = malloc(1000);
    memset(stale, 'b', 999);
    stale[999] = '\0';
    free(stale);
    sum += strlen(stale + 100);
}

int main(void)
{
    between(24);
    between(40);
    between(104);
    wrong();
    printf("errors in wrong\n");
    return 0;
}
