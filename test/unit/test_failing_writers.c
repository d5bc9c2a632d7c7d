// links: tbd_organizer tbd_format tbd_base
// sources: failing.c stream_maker.c organizer_run.c
// timeout: 600
// SPDX-License-Identifier: MIT
/* The organizer and the changes of a trace, where memory runs out at each of their allocations: what is
 * on disk then can be read, and says nothing else than it does with all the memory there is. */
#include "failing.h"
#include "format/merging/change.h"
#include "organizer_run.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define WINDOWS      4u
#define WINDOW_STEPS 40u
/* Only every so manieth allocation fails, unless TBD_LONG is set. */
#define RECORDING_STRIDE 11u
#define CHANGE_STRIDE    3u

static char path[FOLDER_BYTES + 16], pristine[FOLDER_BYTES + 16];
static uint64_t
    digests[WINDOWS]
           [WINDOWS + 1]; /* of ends, as they were without failures; by first window and span */

static void empty_folder(const char *folder)
{
    if (access(folder, F_OK) == 0)
        assert_true(folder_remove(folder));
    assert_int_equal(mkdir(folder, 0755), 0);
}

static const char *copied_from, *copied_to;

static void copy_file(const char *from, const char *to, const struct stat *info)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, info->st_mode & 07777);

    assert_true(in >= 0 && out >= 0);
    for (off_t left = info->st_size; left > 0;) {
        ssize_t done = sendfile(out, in, NULL, (size_t)left);

        assert_true(done > 0);
        left -= done;
    }
    assert_int_equal(close(in) | close(out), 0);
}

static int copy_entry(const char *from, const struct stat *info, int kind, struct FTW *at)
{
    char to[400];

    if (at->level == 0)
        return 0;
    snprintf(to, sizeof(to), "%s%s", copied_to, from + strlen(copied_from));
    if (kind == FTW_D)
        return mkdir(to, info->st_mode & 07777);
    assert_int_equal(kind, FTW_F);
    copy_file(from, to, info);
    return 0;
}

/* All that is in the folder `from` into the folder `to`, which is there and empty. */
static void copy_folder(const char *from, const char *to)
{
    copied_from = from;
    copied_to = to;
    assert_int_equal(nftw(from, copy_entry, 16, FTW_PHYS), 0);
}

/* Each window that is in the trace, merged or not, ends as it should; how many were recorded. */
static uint32_t check_trace(void)
{
    struct tbd_error why = { 0 };
    struct tbd_trace *trace = NULL;
    uint32_t count, recorded = 0;

    if (tbd_trace_open(path, &trace, &why))
        fail_msg("%s: %s", why.file, why.detail);
    count = tbd_trace_window_count(trace);
    for (uint32_t i = 0; i < count; i++) {
        const struct tbd_window_summary *summary = tbd_trace_window(trace, i);
        struct tbd_window *window = run_load_as(trace, i, summary->level == TBD_LEVEL_EVENTS);
        uint64_t *digest = &digests[summary->number][summary->span];

        assert_in_range(summary->number + summary->span, 1, WINDOWS);
        if (!*digest)
            *digest = window->digest;
        assert_int_equal(window->digest, *digest);
        recorded += summary->span;
        tbd_window_free(window);
    }
    tbd_trace_close(trace);
    return recorded;
}

/* ---- recording ---- */

struct recording {
    struct maker maker;
    enum tbd_organize_lean lean;
    struct tbd_age_limits age;
    enum tbd_status status;
};

static void produce(void *context)
{
    struct recording *recording = context;
    static struct sim s;

    empty_folder(run_root);
    maker_open(&recording->maker, 0);
    recording->maker.alone = true;
    sim_run(&s, &recording->maker, 41, WINDOWS * WINDOW_STEPS, WINDOW_STEPS);
    sim_free(&s);
}

static void organize(void *context, struct outcome *outcome)
{
    struct recording *recording = context;
    struct tbd_organize_options options = {
        .stream_fd = recording->maker.fd,
        .root = run_root,
        .program = "sim",
        .threads = 1,
        .lean = recording->lean,
        .age = recording->age,
    };

    outcome->status = recording->status = tbd_organize(&options, NULL);
}

/* What could not be written is missing at the end, and nowhere else. */
static void check_recording(void *context)
{
    struct recording *recording = context;
    uint32_t count = 0;

    maker_close(&recording->maker);
    if (access(path, F_OK) == 0)
        count = check_trace();
    if (recording->status == TBD_OK)
        assert_int_equal(count, WINDOWS);
}

static void sweep_recording(const char *name, enum tbd_organize_lean lean,
                            struct tbd_age_limits age)
{
    struct recording recording = { .lean = lean, .age = age };
    struct act act = { .name = name,
                       .prepare = produce,
                       .run = organize,
                       .check = check_recording,
                       .context = &recording,
                       .stride = getenv("TBD_LONG") ? 1 : RECORDING_STRIDE,
                       .may_go_without = true };

    memset(digests, 0, sizeof(digests));
    failing_sweep(&act);
}

static void windows_with_events(void **state)
{
    (void)state;
    sweep_recording("recording", TBD_ORGANIZE_LEAN_NEVER, (struct tbd_age_limits){ 0 });
}

static void windows_without_events(void **state)
{
    (void)state;
    sweep_recording("recording lean windows", TBD_ORGANIZE_LEAN_ALWAYS,
                    (struct tbd_age_limits){ 0 });
}

static void windows_that_age(void **state)
{
    (void)state;
    sweep_recording("recording and lowering", TBD_ORGANIZE_LEAN_NEVER,
                    (struct tbd_age_limits){ .level3 = 1, .level2 = 1 });
}

/* ---- changes afterwards ---- */

enum change_kind { MERGE = 0, LOWER_TO_BITS = TBD_LEVEL_BITS, LOWER_TO_COUNTS = TBD_LEVEL_COUNTS };

static int record_once(void **state)
{
    struct recording recording = { 0 };
    struct outcome outcome = { 0 };

    (void)state;
    memset(digests, 0, sizeof(digests));
    produce(&recording);
    organize(&recording, &outcome);
    check_recording(&recording);
    snprintf(pristine, sizeof(pristine), "%s/pristine", run_root);
    empty_folder(pristine);
    copy_folder(path, pristine);
    return (int)outcome.status;
}

static void restore(void *context)
{
    (void)context;
    empty_folder(path);
    copy_folder(pristine, path);
}

static enum tbd_status merge(struct tbd_trace *trace, struct tbd_writer *writer)
{
    struct tbd_change change = { 0 };
    enum tbd_status status = tbd_change_merge(trace, writer, 0, 3, 2, 0, &change, NULL);

    if (status == TBD_OK)
        status = tbd_change_commit(writer, &change);
    tbd_change_free(&change);
    return status;
}

static void make_change(void *context, struct outcome *outcome)
{
    const enum change_kind *kind = context;
    struct tbd_trace *trace = NULL;
    struct tbd_writer *writer = NULL;

    outcome->status = tbd_trace_open(path, &trace, NULL);
    if (outcome->status == TBD_OK)
        outcome->status = tbd_writer_open(path, &writer, NULL);
    if (outcome->status == TBD_OK)
        outcome->status =
            *kind == MERGE ? merge(trace, writer)
                           : tbd_change_lower_to(trace, writer, 0, (enum tbd_level) * kind, NULL);
    tbd_writer_free(writer);
    tbd_trace_close(trace);
}

static void check_change(void *context)
{
    (void)context;
    (void)check_trace();
}

static void sweep_change(const char *name, enum change_kind kind)
{
    struct act act = { .name = name,
                       .prepare = restore,
                       .run = make_change,
                       .check = check_change,
                       .context = &kind,
                       .stride = getenv("TBD_LONG") ? 1 : CHANGE_STRIDE };

    failing_sweep(&act);
}

static void events_are_given_up(void **state)
{
    (void)state;
    sweep_change("lowering to counts", LOWER_TO_COUNTS);
}

static void counts_are_given_up(void **state)
{
    (void)state;
    sweep_change("lowering to bits", LOWER_TO_BITS);
}

static void windows_merge(void **state)
{
    (void)state;
    sweep_change("merging", MERGE);
}

static int set_up(void **state)
{
    int failed = run_make_root(state);

    snprintf(path, sizeof(path), "%s/sim-1", run_root);
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_with_events),
        cmocka_unit_test(windows_without_events),
        cmocka_unit_test(windows_that_age),
        cmocka_unit_test_setup(events_are_given_up, record_once),
        cmocka_unit_test_setup(counts_are_given_up, record_once),
        cmocka_unit_test_setup(windows_merge, record_once),
    };

    return cmocka_run_group_tests(tests, set_up, run_remove_root);
}
