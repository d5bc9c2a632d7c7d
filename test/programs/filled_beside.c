// SPDX-License-Identifier: MIT
// libs: pthread
// flags: -mxsave
/* The thread that fills missing pages (userfaultfd) stores vector state just below them: nobody may look at more than the
 * instruction writes, because the thread would wait for itself. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE  4096ul
#define PAGES 8ul
#define BYTES 576ul /* of xsave with components 0 and 1 */

static int faults;
static unsigned char *area;
static atomic_uint filled;

static void *fill(void *argument)
{
    static unsigned char page[PAGE] __attribute__((aligned(4096)));
    struct uffd_msg message;

    for (size_t i = 0; i < PAGE; i++)
        page[i] = 7;
    while (read(faults, &message, sizeof(message)) == sizeof(message)) {
        struct uffdio_copy copy = { .dst = message.arg.pagefault.address & ~(PAGE - 1), .src = (uintptr_t)page, .len = PAGE };

        CHECK(message.event == UFFD_EVENT_PAGEFAULT);
        __builtin_ia32_xsave64(area - BYTES, 3);
        __builtin_ia32_xsave64(area - BYTES, -1ll & 3);
        filled++;
        CHECK(ioctl(faults, UFFDIO_COPY, &copy) == 0);
    }
    return argument;
}

int main(void)
{
    struct uffdio_api api = { .api = UFFD_API };
    struct uffdio_register what = { .mode = UFFDIO_REGISTER_MODE_MISSING };
    pthread_t thread;

    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) != 0) {
        printf("no userfaultfd here\n");
        exit(77);
    }
    area = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    area += PAGE;
    area[-1] = 1;
    what.range = (struct uffdio_range){ (uintptr_t)area, PAGES * PAGE };
    CHECK(ioctl(faults, UFFDIO_REGISTER, &what) == 0);
    CHECK(pthread_create(&thread, NULL, fill, NULL) == 0);
    for (size_t n = PAGES - 1; n > 1; n--)
        CHECK(((volatile unsigned char *)area)[n * PAGE] == 7);
    printf("%u pages were filled\n", filled);
    fflush(stdout);
    _exit(0);
}
