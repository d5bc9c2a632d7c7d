// SPDX-License-Identifier: MIT
// links: tbd_base
/* Assertions in an ordinary process: one that holds is silent, one that fails is named and ends the
 * process, and without TBD_ASSERTS nothing is evaluated. */
#include "base/assert.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char said[512];

static void invariant_fails(void)
{
    int count = 3, most = 2;

    TBD_INVARIANT("TEST-1", count <= most);
}

static void assertion_fails(void)
{
    const char *name = NULL;

    TBD_ASSERT(name != NULL && *name);
}

static void both_hold(void)
{
    int count = 2, most = 2;

    TBD_INVARIANT("TEST-1", count <= most);
    TBD_ASSERT(most > 0);
}

/* Runs `body` in a child; gets its stderr, and returns its status. */
static int status_of(void (*body)(void))
{
    int ends[2], status;
    ssize_t bytes;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], 2);
        body();
        _exit(0);
    }
    close(ends[1]);
    bytes = read(ends[0], said, sizeof(said) - 1);
    close(ends[0]);
    said[bytes > 0 ? bytes : 0] = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void what_fails_is_named_and_aborts(void **state)
{
    int status = status_of(invariant_fails);

    (void)state;
    if (!TBD_ASSERTS)
        skip();
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "tbd: internal error: TEST-1: count <= most (test_assert.c:"));
    status = status_of(assertion_fails);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "tbd: internal error: name != NULL && *name (test_assert.c:"));
}

static void what_holds_is_silent(void **state)
{
    (void)state;
    assert_int_equal(status_of(both_hold), 0);
    assert_string_equal(said, "");
}

static bool was_asked;

static bool asks(void)
{
    was_asked = true;
    return true;
}

static void conditions_are_evaluated_only_with_asserts(void **state)
{
    (void)state;
    TBD_INVARIANT("TEST-1", asks());
    assert_int_equal(was_asked, TBD_ASSERTS);
    if (!TBD_ASSERTS)
        assert_int_equal(status_of(invariant_fails), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_is_named_and_aborts),
        cmocka_unit_test(what_holds_is_silent),
        cmocka_unit_test(conditions_are_evaluated_only_with_asserts),
    };

    return cmocka_run_group_tests_name("assertions", tests, NULL, NULL);
}
