// SPDX-License-Identifier: MIT
// links: tbd_base
/* A mapped file that is cut short ends the process with one line that names it; other faults do what they did. */
#include "base/cut_file.h"

#include "folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STATUS 3

static char folder[FOLDER_BYTES];

/* Runs `act` in a process with the guard; its exit status, and what it said. */
static int said(void (*act)(const char *path), const char *path, char out[512])
{
    int pipes[2], status;
    ssize_t got, used = 0;
    pid_t child;

    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        alarm(20);
        dup2(pipes[1], STDERR_FILENO);
        tbd_cut_file_guard("test", STATUS);
        act(path);
        _exit(0);
    }
    close(pipes[1]);
    while ((got = read(pipes[0], out + used, 511 - (size_t)used)) > 0)
        used += got;
    out[used] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void read_beyond(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    const volatile char *at;

    if (fd < 0 || ftruncate(fd, 3 * 4096))
        _exit(1);
    at = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED || at[2 * 4096] || ftruncate(fd, 4096))
        _exit(1);
    (void)at[4095];
    (void)at[2 * 4096];
}

static void raise_it(const char *path)
{
    (void)path;
    raise(SIGBUS);
    raise(SIGBUS);
}

static void a_cut_file_is_one_line(void **state)
{
    char path[128], expected[256], text[512];
    int status;

    (void)state;
    assert_true(folder_make(folder, "cut"));
    snprintf(path, sizeof(path), "%s/odd\n\033name", folder);
    status = said(read_beyond, path, text);
    snprintf(expected, sizeof(expected), "test: %s/odd", folder);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS);
    assert_memory_equal(text, expected, strlen(expected));
    assert_non_null(strstr(text, "name: it was cut short while it was read\n"));
    assert_null(strchr(text, '\033'));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_true(folder_remove(folder));
}

static void another_bus_error_is_not_ours(void **state)
{
    char text[512];
    int status = said(raise_it, "", text);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_file_is_one_line),
        cmocka_unit_test(another_bus_error_is_not_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
