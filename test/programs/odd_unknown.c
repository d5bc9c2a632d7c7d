// SPDX-License-Identifier: MIT
/* An opcode that nobody knows begins a block: a newer processor may know it, so the program is let go there. */
// end: detached
// missing: an instruction that is not known
#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static void on_illegal(int signo)
{
    (void)signo;
    puts("illegal");
    fflush(stdout);
    _exit(0);
}

int main(void)
{
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(code != MAP_FAILED && signal(SIGILL, on_illegal) != SIG_ERR);
    code[0] = 0x0f;
    code[1] = 0x04;
    ((void (*)(void))(void *)code)();
    return 1;
}
