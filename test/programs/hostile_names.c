// SPDX-License-Identifier: MIT
// libs: pthread
/* Names, texts and paths that a terminal would obey, a line not hold, a spreadsheet calculate, and JSON
 * refuse: test/e2e/test_escape.py looks for them in every answer. */
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOSTILE "=1+1\033]0;owned\a\nFORGED\r\t\x9b" "31m\xff\xc2\x9b\xe2\x80\xae"

char text[64] = HOSTILE;
const char *pointed = "-2+3\033[2J\nFORGED\x9b\xe2\x80\xae";
int stored;

static int make_file(void)
{
    static const uint8_t code[4096] = { 0xc3 }; /* ret */
    int fd = open(HOSTILE, O_CREAT | O_RDWR | O_TRUNC, 0700);

    CHECK(fd >= 0 && write(fd, code, sizeof(code)) == (ssize_t)sizeof(code));
    return fd;
}

/* A module of that name. */
static void (*map_file(int fd))(void)
{
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    void (*call)(void);

    CHECK(code != MAP_FAILED);
    memcpy(&call, &code, sizeof(call));
    return call;
}

/* clang-format off */
#line 1 "=cmd\033]0;owned\a\nFORGED.c"
__attribute__((noinline)) int odd(const char *name, int value)
{
    stored += (int)name[0] + value;
    __asm__ volatile("" ::: "memory");
    return stored;
}

static void *named(void *argument)
{
    CHECK(!prctl(PR_SET_NAME, "@x\033[m\n\x9b\xff"));
    odd(text, 2);
    return argument;
}

int main(void)
{
    char name[] = HOSTILE;
    int fd = make_file();
    void (*call)(void) = map_file(fd);
    pthread_t thread;

    CHECK(prctl(PR_SET_NAME, "-y\033[m\n\x9b\xff") == 0);
    CHECK(pthread_create(&thread, NULL, named, NULL) == 0 && pthread_join(thread, NULL) == 0);
    call();
    odd(name, 3);
    odd(pointed, 4);
    CHECK(access(name, R_OK) == 0 && mkdir(name, 0700) != 0 && unlink(name) == 0);
    printf("named\n");
    return 0;
}
