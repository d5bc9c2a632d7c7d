// SPDX-License-Identifier: MIT
// libs: -pthread
// options: window=2000
/* Files that are read past the page cache, while there is another thread: they want memory as aligned as the file system says,
 * and refuse other memory, recorded or not. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#define BLOCK 4096u
#define BLOCKS 16u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

static unsigned char *make(unsigned bytes)
{
    void *at;

    CHECK(posix_memalign(&at, BLOCK, bytes + BLOCK) == 0);
    memset(at, 0, bytes + BLOCK);
    return at;
}

static int open_filled(void)
{
    unsigned char *data = make(BLOCKS * BLOCK);
    int fd = open(".", O_TMPFILE | O_RDWR | O_DIRECT, 0600);

    if (fd < 0) {
        puts("no files that are read past the page cache here");
        exit(77);
    }
    for (unsigned i = 0; i < BLOCKS * BLOCK; i++)
        data[i] = (unsigned char)(i / BLOCK * 7 + i % 251);
    CHECK(write(fd, data, BLOCKS * BLOCK) == (ssize_t)(BLOCKS * BLOCK));
    free(data);
    return fd;
}

static void check_block(const unsigned char *at, unsigned number)
{
    for (unsigned i = 0; i < BLOCK; i++)
        CHECK(at[i] == (unsigned char)(number * 7 + (number * BLOCK + i) % 251));
}

static void read_blocks(int fd)
{
    unsigned char *at = make(4 * BLOCK);
    struct iovec parts[] = { { at + 2 * BLOCK, BLOCK }, { at, BLOCK }, { at + 3 * BLOCK, BLOCK } };

    CHECK(pread(fd, at, 4 * BLOCK, 3 * BLOCK) == (ssize_t)(4 * BLOCK));
    for (unsigned i = 0; i < 4; i++)
        check_block(at + i * BLOCK, 3 + i);
    CHECK(preadv(fd, parts, 3, 8 * BLOCK) == (ssize_t)(3 * BLOCK));
    check_block(at + 2 * BLOCK, 8);
    check_block(at, 9);
    check_block(at + 3 * BLOCK, 10);
    CHECK(lseek(fd, 15 * BLOCK, SEEK_SET) == 15 * BLOCK && read(fd, at, 2 * BLOCK) == BLOCK);
    check_block(at, 15);
    free(at);
}

/* Whether the kernel wants that, the file system decides: the output is compared. */
static void read_askew(int fd)
{
    unsigned char *at = make(2 * BLOCK);
    ssize_t got;

    for (unsigned offset = 1; offset < BLOCK; offset *= 2) {
        errno = 0;
        got = pread(fd, at + offset, BLOCK, 0);
        printf("%u bytes askew: %zd %d\n", offset, got, errno);
        if (got == (ssize_t)BLOCK)
            check_block(at + offset, 0);
    }
    free(at);
}

int main(void)
{
    pthread_t other;
    int fd = open_filled();

    pthread_mutex_lock(&lock);
    CHECK(pthread_create(&other, NULL, wait_for_it, NULL) == 0);
    read_blocks(fd);
    read_askew(fd);
    pthread_mutex_unlock(&lock);
    CHECK(pthread_join(other, NULL) == 0);
    puts("ok");
    return 0;
}
