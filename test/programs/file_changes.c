// SPDX-License-Identifier: MIT
// options: window=1500
/* A file that is mapped privately changes by calls of the same program: written, cut, extended, a hole made,
 * cut by open.  Pages that were read before show the new contents, those that were written keep
 * theirs, and pages behind the file's end cannot be read. */
#define _GNU_SOURCE
#include "mapped_file.h"
#include <sys/sendfile.h>
#include <sys/uio.h>

/* The file looks old, and the mapping's descriptor cannot write: so only the calls that follow tell that it
 * changes. */
static void open_map(void)
{
    open_mapped("/tmp/tbd-file_changes-XXXXXX", true, O_RDONLY);
}

static void write_it(void)
{
    struct iovec parts[2] = { { "abc", 3 }, { "defg", 4 } };

    open_map();
    CHECK(pwrite(file, "xyz", 3, 4) == 3);
    look("pwrite");
    CHECK(pwritev(file, parts, 2, 2 * PAGE + 3) ==
          7); /* this page was written, so it keeps its contents */
    CHECK(lseek(file, 3 * PAGE, SEEK_SET) == 3 * PAGE && writev(file, parts, 2) == 7);
    look("writev");
    map[5] = 100;
    CHECK(pwrite(file, "wwww", 4, 4) == 4);
    look("written on both sides");
}

static void cut_it(void)
{
    open_map();
    CHECK(ftruncate(file, 2 * PAGE + 50) == 0);
    look("ftruncate");
    CHECK(ftruncate(file, PAGES * PAGE) == 0);
    look("extended");
    fill(file, 30);
    look("filled again");
    CHECK(truncate(path, 100) == 0);
    look("truncate");
    fill(file, 50);
    CHECK(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * PAGE) == 0);
    look("hole");
    close(open(path, O_RDWR | O_TRUNC));
    look("open");
}

static void copy_it(void)
{
    int other = memfd_create("other", 0);
    off_t from = 0;

    CHECK(other >= 0);
    fill(other, 70);
    open_map();
    CHECK(lseek(file, 0, SEEK_SET) == 0 && sendfile(file, other, &from, 2 * PAGE) == 2 * PAGE);
    look("sendfile");
    if (copy_file_range(file, &(off_t){ 0 }, file, &(off_t){ 4 * PAGE }, PAGE, 0) < 0)
        CHECK(pwrite(file, "F", 1, 4 * PAGE + 5) == 1); /* not on every file system */
    printf("copied: %d\n", map[4 * PAGE + 5] != 14);
    close(other);
}

/* The file that is written to is not the first descriptor of these calls. */
static void receive_it(void)
{
    char name[] = "/tmp/tbd-file_changes-XXXXXX";
    int other = mkstemp(name), ends[2];

    CHECK(other >= 0 && unlink(name) == 0 && pipe(ends) == 0);
    fill(other, 90);
    open_map();
    if (copy_file_range(other, &(off_t){ 0 }, file, &(off_t){ PAGE }, PAGE, 0) < 0)
        CHECK(pwrite(file, "F", 1, PAGE + 5) == 1); /* not on every file system */
    printf("received: %d\n", map[PAGE + 5] != 11);
    open_map();
    CHECK(write(ends[1], "spliced", 7) == 7);
    CHECK(splice(ends[0], NULL, file, &(off_t){ 3 }, 7, 0) == 7);
    look("splice");
    close(other);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    struct sigaction action = { .sa_handler = leave };

    CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    write_it();
    cut_it();
    copy_it();
    receive_it();
    CHECK(unlink(path) == 0);
    return 0;
}
