// SPDX-License-Identifier: MIT
/* io_uring, the kernel's asynchronous I/O (aio) and a few others: natively they may be there; under tbd they are
 * refused, as by a kernel without them.  The trace tells (test_robust.py): the program cannot know
 * whether it is recorded, as its organizer may be gone before it begins. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* With arguments that the kernel does not take, if it has the call. */
static void fail_with_each(void)
{
    static const long numbers[] = {
        SYS_io_destroy,     SYS_io_getevents,      SYS_io_submit,        SYS_io_cancel,
        SYS_io_pgetevents,  SYS_io_uring_enter,    SYS_io_uring_register,
        453 /* map_shadow_stack */,
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        CHECK(syscall(numbers[i], -1, 0, 0, 0, 0, 0) == -1);
}

int main(void)
{
    char parameters[120] = { 0 };
    long fd = syscall(425, 4, parameters);
    unsigned long context = 0;
    int ends[2];
    char text[4];

    CHECK(fd >= 0 || errno == ENOSYS || errno == EPERM);
    if (fd >= 0)
        close((int)fd);
    fd = syscall(SYS_io_setup, 4, &context);
    CHECK(fd == 0 || errno == ENOSYS || errno == EPERM);
    CHECK(fd < 0 || syscall(SYS_io_destroy, context) == 0);
    fail_with_each();
    CHECK(pipe(ends) == 0 && write(ends[1], "abc", 4) == 4 && read(ends[0], text, 4) == 4);
    CHECK(strcmp(text, "abc") == 0);
    puts("refused calls ok");
    return 0;
}
