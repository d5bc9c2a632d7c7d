// SPDX-License-Identifier: MIT
/* libc's string functions (the vector variants the CPU gets) over sizes and alignments,
 * against plain loops, up to the very end of a mapping. */
#include "check.h"
#include <sys/mman.h>

static unsigned char shadow[8192];

static void check_copies(unsigned char *end)
{
    for (size_t size = 0; size < 260; size += 1 + size / 20) {
        for (size_t align = 0; align < 64; align += 13) {
            unsigned char *to = end - 600, *from = end - size;

            for (size_t i = 0; i < 700; i++)
                end[-1 - (long)i] = shadow[699 - i] = (unsigned char)(i * 7 + size);
            memmove(to + align, from, size);
            memmove(shadow + 100 + align, shadow + 700 - size, size);
            CHECK(memcmp(end - 700, shadow, 700) == 0);
            memset(to + align, (int)size, size);
            for (size_t i = 0; i < size; i++)
                CHECK(to[align + i] == (unsigned char)size);
        }
    }
}

static void check_searches(char *end)
{
    unsigned long sum = 0;

    for (size_t length = 0; length < 150; length++) {
        char *s = end - length - 1;

        memset(s, 'a', length);
        s[length] = 0;
        CHECK(strlen(s) == length && strnlen(s, 100) == (length < 100 ? length : 100));
        CHECK(memchr(s, 'b', length) == NULL && strchr(s, 'b') == NULL);
        if (length > 3) {
            s[length - 2] = 'b';
            CHECK(strchr(s, 'b') == s + length - 2 && strrchr(s, 'a') == s + length - 1);
            CHECK((size_t)((char *)memchr(s, 'b', length) - s) == length - 2);
            CHECK(strstr(s, "ba") == s + length - 2 && strcspn(s, "xb") == length - 2);
            CHECK(strcmp(s, s + 1) < 0 && strncmp(s, s + 1, length - 3) == 0);
        }
        sum += strlen(s) + (unsigned char)s[length / 2];
    }
    printf("searches %lu\n", sum);
}

int main(void)
{
    unsigned char *base = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char text[200], *token, *rest = NULL;
    unsigned words = 0;

    CHECK(base != MAP_FAILED && mprotect(base + 2 * 4096, 4096, PROT_NONE) == 0);
    check_copies(base + 2 * 4096);
    check_searches((char *)base + 2 * 4096);
    strcpy(text, "one two  three,four;five");
    for (token = strtok_r(text, " ,;", &rest); token != NULL; token = strtok_r(NULL, " ,;", &rest))
        words++;
    CHECK(words == 5);
    printf("%.10g %d %s\n", strtod("2.718281828459045", NULL), atoi("-12345"), "done");
    return 0;
}
