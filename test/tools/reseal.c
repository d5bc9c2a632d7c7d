// SPDX-License-Identifier: MIT
/* reseal.c - makes the checksums of damaged trace files good again: reseal FILE...
 *
 * So what is read after the checks meets the damage, too (test/e2e/test_hostile_dumps.py). */
#include "../fuzz/seal.h"

#include "base/hash.h"
#include "format/files/crash_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void seal_crash(uint8_t *bytes, size_t size)
{
    struct tbd_crash_head head;

    if (size < sizeof(head))
        return;
    memcpy(&head, bytes, sizeof(head));
    head.checksum = 0;
    memcpy(bytes, &head, sizeof(head));
    head.checksum =
        tbd_hash64(&head, sizeof(head)) ^ tbd_hash64(bytes + sizeof(head), size - sizeof(head));
    memcpy(bytes, &head, sizeof(head));
}

static void seal(const char *path, uint8_t *bytes, size_t size)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
               *dot = strrchr(name, '.');

    if (strcmp(name, "crash") == 0)
        seal_crash(bytes, size);
    else if (dot && (strcmp(dot, ".trace") == 0 || strcmp(dot, ".blocks") == 0))
        seal_packed(bytes, size);
    else if (size >= sizeof(struct tbd_file_header))
        seal_records(bytes, size);
}

static int reseal(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    uint8_t *bytes;
    bool ok;

    if (fd < 0 || fstat(fd, &info) != 0 || !(bytes = malloc((size_t)info.st_size + 1)))
        return 1;
    ok = pread(fd, bytes, (size_t)info.st_size, 0) == info.st_size;
    if (ok)
        seal(path, bytes, (size_t)info.st_size);
    ok = ok && pwrite(fd, bytes, (size_t)info.st_size, 0) == info.st_size;
    free(bytes);
    close(fd);
    return !ok;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= reseal(argv[i]);
    return failed;
}
