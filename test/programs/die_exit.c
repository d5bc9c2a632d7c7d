// SPDX-License-Identifier: MIT
// exit: 42
/* Constructors, destructors, atexit handlers, buffered output at exit; the status is kept. */
#include "check.h"

static void bye(void) { puts("atexit"); }
__attribute__((constructor)) static void start(void) { puts("constructor"); }
__attribute__((destructor)) static void end(void) { puts("destructor"); }

int main(void)
{
    atexit(bye);
    fputs("on stderr\n", stderr);
    puts("main");
    exit(42 + 256);
}
