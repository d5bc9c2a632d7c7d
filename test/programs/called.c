// SPDX-License-Identifier: MIT
/* called.c - calls of many kinds: in a handler, on its own stack, in a thread, deep, through pointers, from functions
 * with aligned frames, with frames of unknown size, back out of the middle, and out of libraries that come and go
 *
 *     called [LIBRARY LIBRARY]
 *
 * Each calls here(), which prints the name of the kind and the value of tbd_context(). */
#include <tbd/tbd.h>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEP     100
#define TOO_DEEP 600

static jmp_buf back;
static volatile unsigned sink;

__attribute__((noinline)) void here(const char *what)
{
    uint64_t value = tbd_context();

    printf("%s %016llx\n", what, (unsigned long long)value);
    sink++;
}

__attribute__((noinline)) static void down(int count, const char *what)
{
    if (count)
        down(count - 1, what);
    else
        here(what);
    sink++;
}

__attribute__((noinline)) static void aligned(const char *what)
{
    _Alignas(64) volatile char line[64];

    line[0] = what[0];
    here(what);
    sink += (unsigned)line[0];
}

/* A frame of unknown size that is aligned, too: its address is kept on the stack. */
__attribute__((noinline)) static void unknown_size(const char *what, size_t bytes)
{
    _Alignas(64) volatile char line[64];
    volatile char *more = alloca(bytes);

    line[0] = more[bytes - 1] = what[0];
    here(what);
    sink += (unsigned)(line[0] + more[bytes - 1]);
}

__attribute__((noinline)) static void jump_back(void)
{
    here("before longjmp");
    longjmp(back, 1);
}

static int compare(const void *a, const void *b)
{
    const char *x = a, *y = b;

    if (*x == 'b' || *y == 'b')
        here("from qsort");
    sink++;
    return *x - *y;
}

static void handle(int signo)
{
    here(signo == SIGUSR1 ? "handler" : "handler elsewhere");
    sink++;
}

static void *run_thread(void *what)
{
    here(what);
    return what;
}

static void use_signals(void)
{
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
    struct sigaction usual = { .sa_handler = handle };
    struct sigaction other = { .sa_handler = handle, .sa_flags = SA_ONSTACK };

    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &usual, NULL);
    sigaction(SIGUSR2, &other, NULL);
    raise(SIGUSR1);
    raise(SIGUSR2);
}

static void use_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void (*call)(void (*)(const char *), const char *) = NULL;
    void *symbol = library ? dlsym(library, "call_back") : NULL;

    if (!symbol) {
        printf("no library %s\n", path);
        return;
    }
    memcpy(&call, &symbol, sizeof(call));
    call(here, "from a library");
    dlclose(library);
}

int main(int argc, char **argv)
{
    char letters[] = "ba";
    pthread_t thread;

    setvbuf(stdout, NULL, _IOLBF, 0);
    here("main");
    down(DEEP, "deep");
    down(TOO_DEEP, "too deep");
    aligned("aligned");
    unknown_size("unknown size", (size_t)argc * 200);
    if (!setjmp(back))
        jump_back();
    here("after longjmp");
    qsort(letters, 2, 1, compare);
    use_signals();
    pthread_create(&thread, NULL, run_thread, (char[]){ "thread" });
    pthread_join(thread, NULL);
    for (int i = 1; i < argc; i++)
        use_library(argv[i]);
    return 0;
}
