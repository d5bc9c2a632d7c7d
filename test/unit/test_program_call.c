// SPDX-License-Identifier: MIT
// sources: ../../src/hooks/threads/program_call_x86_64.S
/* test_program_call.c - hooks/threads/program_call.h: a call is made unless somebody wants the thread first */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hooks/threads/program_call.h"
#include "hooks/threads/signals.h"

#include <sys/syscall.h>
#include <unistd.h>

static int64_t make(uint32_t pending, uint32_t called_in, const struct tbd_sys_call *call)
{
    static struct tbd_signals signals;

    signals.pending = pending;
    signals.called_in = called_in;
    return tbd_program_syscall(call, &signals);
}

static void arguments_and_results_are_the_kernel_s(void **state)
{
    int ends[2];
    char had[4] = { 0 };
    struct tbd_sys_call call;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    call =
        (struct tbd_sys_call){ __NR_write, { (uint64_t)ends[1], (uint64_t)(uintptr_t) "abc", 3 } };
    assert_int_equal(make(0, 0, &call), 3);
    assert_int_equal(read(ends[0], had, sizeof(had)), 3);
    assert_string_equal(had, "abc");
    call = (struct tbd_sys_call){ __NR_close, { UINT64_MAX } };
    assert_int_equal(make(0, 0, &call), -9); /* EBADF */
    close(ends[0]);
    close(ends[1]);
}

static void a_thread_that_is_wanted_makes_no_call(void **state)
{
    int ends[2];
    struct tbd_sys_call call;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    call = (struct tbd_sys_call){ __NR_close, { (uint64_t)ends[0] } };
    assert_int_equal(make(1, 0, &call), TBD_CALL_INTERRUPTED);
    assert_int_equal(make(0, 1, &call), TBD_CALL_INTERRUPTED);
    assert_int_equal(make(1, 1, &call), TBD_CALL_INTERRUPTED);
    assert_int_equal(make(0, 0, &call), 0); /* so it was open until now */
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_and_results_are_the_kernel_s),
        cmocka_unit_test(a_thread_that_is_wanted_makes_no_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
