// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* The organizer dies, or the disk is full, at every single change that it makes to the file system,
 * while windows age under it.  The trace it leaves opens, every window in it loads, and memory at
 * the start of each equals that in an undisturbed trace. */
#include "format/pages/pages.h"
#include "format/reading/window_read.h"

#include "folder.h"
#include "format/window/window.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DIED         99
#define STEPS        700u
#define WINDOW_STEPS 24u

/* ---- the file system, as the organizer sees it: these replace libc's functions ---- */

static _Atomic bool is_watching; /* this process counts; any of its threads may */
/* instead of dying: the disk is full from then on, until `reserve` is deleted */
static bool is_full_disk;
static unsigned changes_left; /* until it happens */

/* Is this the change that fails? */
static bool fails(void)
{
    unsigned left;

    if (!is_watching)
        return false;
    left = __atomic_load_n(&changes_left, __ATOMIC_RELAXED);
    if (left) {
        __atomic_fetch_sub(&changes_left, 1, __ATOMIC_RELAXED);
        return false;
    }
    if (!is_full_disk)
        _exit(DIED);
    errno = ENOSPC;
    return true;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    if (fails() && bytes > 1) /* half of it still fits */
        return -1;
    return syscall(SYS_write, fd, data, bytes);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return fails() ? -1 : (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

int unlinkat(int dir, const char *name, int flags)
{
    bool is_reserve = strcmp(name, "reserve") == 0;

    if (!is_full_disk)
        (void)fails();
    if (is_reserve)
        is_watching = false;
    return (int)syscall(SYS_unlinkat, dir, name, flags);
}

/* ---- one run ---- */

static char root[FOLDER_BYTES];

struct program {
    struct maker maker;
    struct sim sim;
};

static void *run_program(void *context)
{
    struct program *program = context;

    sim_run(&program->sim, &program->maker, 5, STEPS, WINDOW_STEPS);
    return NULL;
}

static enum tbd_status organize(const char *program, const struct tbd_age_limits *age)
{
    struct tbd_organize_options options = {
        .root = root, .program = program, .threads = 1, .age = *age
    };
    struct tbd_error why = { 0 };
    enum tbd_status status;
    struct program *of = calloc(1, sizeof(*of));
    pthread_t thread;

    assert_non_null(of);
    maker_open(&of->maker, 0);
    assert_int_equal(pthread_create(&thread, NULL, run_program, of), 0);
    options.stream_fd = of->maker.fd;
    status = tbd_organize(&options, &why);
    if (status && !is_watching && !is_full_disk)
        print_message("%s: %s: %s\n", program, why.file, why.detail);
    if (status) { /* it waits forever for an organizer */
        pthread_detach(thread);
        return status;
    }
    pthread_join(thread, NULL);
    sim_free(&of->sim);
    maker_close(&of->maker);
    free(of);
    return TBD_OK;
}

/* In a process of its own; its exit status. */
static int organize_until(const char *program, const struct tbd_age_limits *age, unsigned changes,
                          bool full_disk)
{
    int status;
    pid_t child = fork();

    if (!child) {
        alarm(50);
        changes_left = changes;
        is_full_disk = full_disk;
        is_watching = true;
        _exit(organize(program, age) ? 1 : 0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static struct tbd_trace *open_trace(const char *program)
{
    struct tbd_error why = { 0 };
    struct tbd_trace *trace;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s-1", root, program);
    if (tbd_trace_open(path, &trace, &why))
        print_message("%s at %llu: %s\n", why.file, (unsigned long long)why.offset, why.detail);
    assert_non_null(trace);
    return trace;
}

static void remove_trace(const char *program)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s-1", root, program);
    assert_true(folder_remove(path));
}

/* ---- what is left ---- */

static void check_window(struct tbd_trace *trace, struct tbd_trace *good, uint32_t index)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, index);
    uint32_t place = tbd_trace_window_of(good, summary->first_time);
    struct tbd_error why = { 0 };
    struct tbd_window *window;
    enum tbd_status status =
        tbd_window_load(trace, index, summary->level == TBD_LEVEL_EVENTS, &window, &why);

    /* its files may have been given up just before the index says so */
    if (status && status != TBD_NOTKEPT)
        print_message("window %u: %s at %llu: %s\n", index, why.file,
                      (unsigned long long)why.offset, why.detail);
    assert_true(status == TBD_OK || status == TBD_NOTKEPT);
    tbd_window_free(window);
    assert_int_equal(tbd_trace_window(good, place)->first_time, summary->first_time);
    for (uint64_t page = 0; page < SIM_PAGES; page++) {
        uint64_t address = SIM_BASE + page * 4096;
        uint8_t expected[4096], found[4096];
        enum tbd_status as = tbd_trace_page_at_start(good, place, address, expected);

        if (as == TBD_NOTKEPT) /* the page was never used */
            continue;
        assert_int_equal(tbd_trace_page_at_start(trace, index, address, found), as);
        if (!as)
            assert_memory_equal(found, expected, sizeof(found));
    }
}

static void check_trace(struct tbd_trace *trace, struct tbd_trace *good)
{
    for (uint32_t i = 0; i < tbd_trace_window_count(trace); i++)
        check_window(trace, good, i);
}

static bool has_header(const char *program)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s-1/header", root, program);
    return access(path, F_OK) == 0;
}

/* Every change of windows occurs in this small trace. */
static const struct tbd_age_limits limits[] = {
    { .level3 = 3, .level2 = 3, .index_slack = 2048 },
    { .budget = 350u << 10, .level3 = 2, .level2 = 2 },
    { .keep_bytes = 480u << 10 },
};

static void an_organizer_that_dies_leaves_a_trace(void **state)
{
    struct tbd_trace *good = open_trace("good");

    (void)state;
    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        unsigned step = getenv("TBD_LONG") ? 1 : 97;

        for (unsigned changes = (unsigned)l;; changes += step) {
            int outcome = organize_until("dies", &limits[l], changes, false);

            assert_true(outcome == DIED || outcome == 0);
            if (has_header("dies")) {
                struct tbd_trace *trace = open_trace("dies");

                check_trace(trace, good);
                assert_int_equal(tbd_trace_info(trace)->finished, true);
                assert_int_equal(tbd_trace_info(trace)->damage_count, 0);
                tbd_trace_close(trace);
            }
            remove_trace("dies");
            if (outcome == 0)
                break;
        }
    }
    tbd_trace_close(good);
}

static void a_full_disk_ends_the_trace_in_order(void **state)
{
    struct tbd_trace *good = open_trace("good");
    unsigned step = getenv("TBD_LONG") ? 1 : 251;

    (void)state;
    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        for (unsigned changes = 30 + (unsigned)l;; changes += step) {
            int outcome = organize_until("full", &limits[l], changes, true);

            if (has_header("full")) {
                struct tbd_trace *trace = open_trace("full");

                check_trace(trace, good);
                assert_int_equal(tbd_trace_info(trace)->finished, true);
                assert_int_equal(tbd_trace_info(trace)->damage_count, 0);
                if (outcome)
                    assert_non_null(strstr(tbd_trace_info(trace)->end_text, "recording stopped"));
                tbd_trace_close(trace);
            }
            remove_trace("full");
            if (outcome == 0)
                break;
        }
    }
    tbd_trace_close(good);
}

static off_t index_bytes(const char *program)
{
    struct stat info;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s-1/index", root, program);
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

/* The limits above cause the changes that they are meant for. */
static void windows_age_in_these_runs(void **state)
{
    static const struct tbd_age_limits grows = { .level3 = 3, .level2 = 3 };
    uint32_t all;
    struct tbd_trace *trace = open_trace("good");
    bool merged = false;

    (void)state;
    all = tbd_trace_window_count(trace);
    tbd_trace_close(trace);
    assert_int_equal(organize("levels", &limits[0]), TBD_OK);
    trace = open_trace("levels");
    assert_int_equal(tbd_trace_window_count(trace), all);
    assert_int_equal(tbd_trace_window(trace, all - 1)->level, TBD_LEVEL_EVENTS);
    assert_int_equal(tbd_trace_window(trace, all - 5)->level, TBD_LEVEL_COUNTS);
    assert_int_equal(tbd_trace_window(trace, 0)->level, TBD_LEVEL_BITS);
    tbd_trace_close(trace);
    assert_int_equal(organize("grows", &grows), TBD_OK);
    assert_true(index_bytes("levels") < index_bytes("grows")); /* it was rewritten */
    assert_int_equal(organize("merges", &limits[1]), TBD_OK);
    trace = open_trace("merges");
    for (uint32_t i = 0; i < tbd_trace_window_count(trace); i++)
        merged |= tbd_trace_window(trace, i)->span > 1;
    assert_true(merged);
    assert_int_equal(tbd_trace_window(trace, 0)->number, 0);
    tbd_trace_close(trace);
    assert_int_equal(organize("keeps", &limits[2]), TBD_OK);
    trace = open_trace("keeps");
    assert_true(tbd_trace_window(trace, 0)->number > 0);
    assert_true(tbd_trace_window(trace, 0)->first_time > 0);
    tbd_trace_close(trace);
}

static int set_up(void **state)
{
    static const struct tbd_age_limits none;

    (void)state;
    return folder_make(root, "crash") && !organize("good", &none) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove(root) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_age_in_these_runs),
        cmocka_unit_test(an_organizer_that_dies_leaves_a_trace),
        cmocka_unit_test(a_full_disk_ends_the_trace_in_order),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
