// SPDX-License-Identifier: MIT
// links: tbd_organizer tbd_format tbd_base
// sources: stream_maker.c organizer_run.c
/* Recording: where chunks end does not matter, how a recording ends, what cannot be written, and
 * what a damaged stream does.  Contents of the trace: test_organizer_events.c,
 * test_organizer_memory.c. */
#include "organizer/organize.h"

#include "folder.h"
#include "format/files/file.h"
#include "format/merging/index_write.h"
#include "format/window/window.h"
#include "format/reading/window_read.h"
#include "organizer/build.h"
#include "organizer_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- where chunks end does not matter ---- */

static void chunk_borders_leave_no_mark(void **state)
{
    static const uint32_t sizes[] = { 0, 1, 2, 3, 17, 100 };
    struct tbd_window *windows[6][4];
    struct tbd_trace *traces[6];

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        static struct sim s;
        struct maker m;

        run_simulate(&s, &m, 41, sizes[i], 400, 100);
        traces[i] = run_open_latest();
        for (uint32_t w = 0; w < 4; w++) {
            windows[i][w] = run_load(traces[i], w);
            assert_int_equal(windows[i][w]->entry_count, windows[0][w]->entry_count);
            assert_memory_equal(windows[i][w]->entries, windows[0][w]->entries,
                                windows[0][w]->entry_count * 4);
            assert_int_equal(windows[i][w]->operand_bytes, windows[0][w]->operand_bytes);
            assert_memory_equal(windows[i][w]->operands, windows[0][w]->operands,
                                windows[0][w]->operand_bytes);
            assert_int_equal(windows[i][w]->digest, windows[0][w]->digest);
            assert_int_equal(windows[i][w]->first_count, windows[0][w]->first_count);
            assert_int_equal(windows[i][w]->gone_count, windows[0][w]->gone_count);
        }
        maker_close(&m);
        sim_free(&s);
    }
    for (size_t i = 0; i < 6; i++) {
        for (uint32_t w = 0; w < 4; w++)
            tbd_window_free(windows[i][w]);
        tbd_trace_close(traces[i]);
    }
}

/* ---- ends ---- */

/* Another process sends a window of 200 blocks, and 133 more; returns when they are published. */
static pid_t start_producer(struct maker *m)
{
    static struct sim s;
    pid_t child;
    char byte;
    int done[2];

    assert_int_equal(pipe(done), 0);
    child = fork();
    if (!child) {
        sim_start(&s, m, 51);
        for (int i = 0; i < 333; i++) {
            sim_step(&s);
            if (i == 199)
                sim_end_window(&s);
        }
        close(done[1]);
        pause();
    }
    close(done[1]);
    assert_int_equal(read(done[0], &byte, 1), 0);
    close(done[0]);
    return child;
}

static void await_organizer(const struct maker *m)
{
    while (__atomic_load_n(&m->head->organizer_state, __ATOMIC_ACQUIRE) == TBD_ORGANIZER_STARTING)
        usleep(200);
}

static void killed_producer_leaves_all_complete_records(void **state)
{
    struct maker m;
    struct run run;
    struct tbd_trace *trace;
    struct tbd_window *window;
    pid_t child;

    (void)state;
    maker_open(&m, 0);
    child = start_producer(&m);
    run_start_of(&run, &m, child);
    await_organizer(&m);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    run_finish(&run);
    trace = run_open_latest();
    assert_int_equal(tbd_trace_info(trace)->end.how, TBD_ENDED_KILLED);
    assert_int_equal(tbd_trace_window_count(trace), 2);
    assert_true(tbd_trace_info(trace)->blocks >= 332);
    window = run_load(trace, 1);
    assert_false(window->complete);
    tbd_window_free(window);
    tbd_trace_close(trace);
    maker_close(&m);
}

/* Killed, and reaped by its parent, before the organizer has looked at it. */
static void producer_that_is_gone_already_is_noticed(void **state)
{
    static struct sim s;
    struct maker m;
    struct run run;
    struct tbd_trace *trace;
    pid_t child;

    (void)state;
    maker_open(&m, 0);
    child = fork();
    if (!child) {
        sim_start(&s, &m, 51);
        for (int i = 0; i < 100; i++)
            sim_step(&s);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, NULL, 0);
    run_start_of(&run, &m, child);
    run_finish(&run);
    trace = run_open_latest();
    assert_int_equal(tbd_trace_info(trace)->end.how, TBD_ENDED_KILLED);
    assert_true(tbd_trace_info(trace)->blocks >= 99);
    tbd_trace_close(trace);
    maker_close(&m);
}

static void unwritable_root_is_said_and_leaves_nothing(void **state)
{
    struct maker m;
    struct tbd_error why = { 0 };
    struct tbd_organize_options options = { .root = "/proc/nowhere", .program = "sim" };

    (void)state;
    maker_open(&m, 0);
    options.stream_fd = m.fd;
    assert_int_not_equal(tbd_organize(&options, &why), TBD_OK);
    assert_int_equal(m.head->organizer_state, TBD_ORGANIZER_FAILED);
    assert_non_null(strstr(why.file, "/proc/nowhere"));
    assert_true(why.detail[0]);
    maker_close(&m);
}

static void directory_and_files_are_private(void **state)
{
    static struct sim s;
    struct maker m;
    struct stat st;
    char path[160];

    (void)state;
    run_simulate(&s, &m, 61, 0, 50, 25);
    snprintf(path, sizeof(path), "%s/latest/", run_root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    snprintf(path, sizeof(path), "%s/latest/windows/0/000.toc", run_root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof(path), "%s/latest/reserve", run_root);
    assert_int_not_equal(stat(path, &st), 0);
    maker_close(&m);
    sim_free(&s);
}

static void send_file_region(struct maker *m, uint64_t start, const char *path, uint32_t prot)
{
    struct stat st;
    uint8_t payload[sizeof(struct tbd_msg_region) + 128] = { 0 };
    struct tbd_msg_region region = {
        .start = start, .end = start + 4096, .prot = prot, .map_flags = MAP_PRIVATE
    };

    assert_int_equal(stat(path, &st), 0);
    region.inode = st.st_ino;
    region.device = (uint32_t)st.st_dev;
    memcpy(payload, &region, sizeof(region));
    memcpy(payload + sizeof(region), path, strlen(path));
    maker_message(m, TBD_MSG_REGION, payload, sizeof(region) + strlen(path) + 1);
}

static unsigned files_in(const char *path)
{
    DIR *dir = opendir(path);
    unsigned files = 0;

    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        files += entry->d_name[0] != '.';
    closedir(dir);
    return files;
}

/* A file of data may change while it is mapped: it is copied at the end, if it did not. */
static void an_executable_file_is_copied_and_one_that_may_change_is_not(void **state)
{
    static struct sim s;
    struct maker m;
    struct run run;
    char path[160];

    (void)state;
    maker_open(&m, 0);
    run_start(&run, &m, 1, TBD_ORGANIZE_LEAN_NEVER);
    sim_start(&s, &m, 1);
    send_file_region(&m, 0x7f0000000000, "/proc/self/exe", PROT_READ | PROT_EXEC);
    send_file_region(&m, 0x7f0000010000, "/etc/passwd", PROT_READ);
    sim_end_window(&s);
    sim_end(&s);
    run_finish(&run);
    snprintf(path, sizeof(path), "%s/latest/modules", run_root);
    assert_int_equal(files_in(path), 1);
    maker_close(&m);
    sim_free(&s);
}

/* ---- hostile streams: whatever the bytes, the trace opens or nothing is left ---- */

static void scribbled_streams_never_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        static struct sim s;
        struct tbd_error why = { 0 };
        struct tbd_organize_options options = { .root = run_root,
                                                .program = "bad",
                                                .threads = 1,
                                                .lean = seed % 2 ? TBD_ORGANIZE_LEAN_ALWAYS
                                                                 : TBD_ORGANIZE_LEAN_NEVER };
        struct tbd_trace *trace = NULL;
        struct maker m;
        size_t used;
        char path[128];

        maker_open(&m, 0);
        m.alone = true;
        sim_start(&s, &m, seed);
        for (int i = 0; i < 60; i++)
            sim_step(&s);
        sim_end_window(&s);
        sim_end(&s);
        used = m.head->chunks_offset + 2 * TBD_CHUNK_STRIDE;
        for (uint64_t n = sim_random(&s) % 40 + 1; n; n--) {
            size_t at = sim_random(&s) % 3 ? m.head->chunks_offset + TBD_ENTRIES_BYTES + 4096 +
                                                 sim_random(&s) % 30000
                                           : sim_random(&s) % used;

            if (at >= offsetof(struct tbd_stream_head, engine_state) &&
                at < offsetof(struct tbd_stream_head, engine_state) + 4)
                continue;
            m.bytes[at] = (uint8_t)sim_random(&s);
        }
        options.stream_fd = m.fd;
        snprintf(path, sizeof(path), "%s/latest", run_root);
        if (tbd_organize(&options, &why)) {
            assert_true(why.detail[0] || why.file[0]);
        } else {
            if (tbd_trace_open(path, &trace, &why))
                print_message("seed %llu: %s at %llu: %s\n", (unsigned long long)seed, why.file,
                              (unsigned long long)why.offset, why.detail);
            assert_non_null(trace);
            for (uint32_t w = 0; w < tbd_trace_window_count(trace); w++)
                tbd_window_free(
                    run_load_as(trace, w, tbd_trace_window(trace, w)->level == TBD_LEVEL_EVENTS));
            tbd_trace_close(trace);
        }
        unlink(path); /* its time of start may be scribbled too: nothing would ever be later */
        maker_close(&m);
        sim_free(&s);
    }
}

static void a_chunk_in_no_slot_is_refused(void **state)
{
    static struct sim s;
    struct tbd_error why = { 0 };
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_consumer *consumer;
    struct tbd_raw_window raw;
    struct maker m;

    (void)state;
    maker_open(&m, 0);
    m.alone = true;
    sim_start(&s, &m, 5);
    sim_end_window(&s);
    m.head->chunks[0].slot = m.head->chunk_count;
    assert_int_equal(tbd_consumer_new(m.fd, table, NULL, &consumer, &why), TBD_OK);
    assert_int_equal(tbd_consumer_take(consumer, &raw, &why), TBD_CORRUPT);
    assert_non_null(strstr(why.detail, "chunk"));
    tbd_consumer_free(consumer);
    tbd_block_table_release(table);
    maker_close(&m);
    sim_free(&s);
}

/* ---- readers during recording ---- */

static void drop_two(const char *path)
{
    struct tbd_trace *trace = run_open_latest();
    struct tbd_writer *writer;

    assert_int_equal(tbd_writer_open(path, &writer, NULL), TBD_OK);
    assert_int_equal(tbd_drop_prepare(trace, writer, 2), TBD_OK);
    assert_int_equal(tbd_drop_commit(trace, writer, 2), TBD_OK);
    tbd_writer_free(writer);
    tbd_trace_close(trace);
}

static void opened_again_a_trace_has_the_same_windows_whatever_was_dropped(void **state)
{
    static struct sim s;
    struct tbd_trace *trace, *again, *anew;
    struct tbd_error why = { 0 };
    struct tbd_window *window;
    struct maker m;

    (void)state;
    run_simulate(&s, &m, 43, 0, 400, 100);
    trace = run_open_latest();
    drop_two(tbd_trace_info(trace)->path);
    anew = run_open_latest();
    assert_int_equal(tbd_trace_open_again(trace, &again, &why), TBD_OK);
    assert_int_equal(tbd_trace_window_count(trace), 4);
    assert_int_equal(tbd_trace_window_count(again), 4);
    assert_int_equal(tbd_trace_window_count(anew), 2);
    for (uint32_t w = 0; w < 4; w++)
        assert_int_equal(tbd_trace_window(again, w)->first_time,
                         tbd_trace_window(trace, w)->first_time);
    assert_int_equal(tbd_trace_window(anew, 0)->number, tbd_trace_window(again, 2)->number);
    tbd_window_free(run_load(again, 3));
    assert_int_equal(tbd_window_load(again, 0, false, &window, &why), TBD_BUSY);
    tbd_trace_close(again);
    tbd_trace_close(anew);
    tbd_trace_close(trace);
    maker_close(&m);
    sim_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunk_borders_leave_no_mark),
        cmocka_unit_test(killed_producer_leaves_all_complete_records),
        cmocka_unit_test(producer_that_is_gone_already_is_noticed),
        cmocka_unit_test(unwritable_root_is_said_and_leaves_nothing),
        cmocka_unit_test(directory_and_files_are_private),
        cmocka_unit_test(an_executable_file_is_copied_and_one_that_may_change_is_not),
        cmocka_unit_test(scribbled_streams_never_harm),
        cmocka_unit_test(a_chunk_in_no_slot_is_refused),
        cmocka_unit_test(opened_again_a_trace_has_the_same_windows_whatever_was_dropped),
    };

    return cmocka_run_group_tests(tests, run_make_root, run_remove_root);
}
