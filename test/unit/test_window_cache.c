// SPDX-License-Identifier: MIT
// links: tbd_query tbd_organizer tbd_format tbd_base
// sources: stream_maker.c
/* The cache of questions' results, on a disk that is full from some write on: no partly written
 * file stays, existing files stay good, and no question fails. */
#include "query/session/window_cache.h"

#include "folder.h"
#include "format/window/window.h"
#include "format/reading/window_read.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define STEPS        200u
#define WINDOW_STEPS 40u
#define LIMIT        (4ull << 20)

/* ---- the disk: this replaces libc's function ---- */

static bool is_full; /* the disk is full from some write on */
static unsigned writes_left;

ssize_t write(int fd, const void *data, size_t bytes)
{
    if (is_full && bytes > 1) {
        if (!writes_left) {
            errno = ENOSPC;
            return -1;
        }
        writes_left--;
        bytes /= 2; /* half of it fits */
    }
    return syscall(SYS_write, fd, data, bytes);
}

/* ---- a trace ---- */

static char root[FOLDER_BYTES];
static struct tbd_trace *trace;

static void *run_program(void *context)
{
    struct maker *maker = context;
    struct sim *s = calloc(1, sizeof(*s));

    sim_run(s, maker, 7, STEPS, WINDOW_STEPS);
    sim_free(s);
    free(s);
    return NULL;
}

static int set_up(void **state)
{
    struct tbd_organize_options options = { .root = root, .program = "p", .threads = 1 };
    struct tbd_error why = { 0 };
    struct maker maker;
    pthread_t thread;
    char path[128];

    (void)state;
    if (!folder_make(root, "cache"))
        return -1;
    maker_open(&maker, 0);
    options.stream_fd = maker.fd;
    if (pthread_create(&thread, NULL, run_program, &maker) || tbd_organize(&options, &why))
        return -1;
    pthread_join(thread, NULL);
    maker_close(&maker);
    snprintf(path, sizeof(path), "%s/p-1", root);
    return tbd_trace_open(path, &trace, &why) ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    tbd_trace_close(trace);
    return folder_remove(root) ? 0 : -1;
}

/* How many files of this kind there are; "" counts all. */
static unsigned count_files(const char *end)
{
    char path[128];
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/p-1/cache", root);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);

        count += entry->d_name[0] != '.' && length >= strlen(end) &&
                 strcmp(entry->d_name + length - strlen(end), end) == 0;
    }
    if (dir)
        closedir(dir);
    return count;
}

static void empty_folder(void)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/p-1/cache", root);
    assert_true(folder_remove(path));
}

static void put_all(struct tbd_window_cache *cache)
{
    for (uint32_t i = 0; i < tbd_trace_window_count(trace); i++) {
        struct tbd_window *window;

        assert_int_equal(tbd_window_load(trace, i, true, &window, NULL), TBD_OK);
        tbd_window_cache_put(cache, trace, window);
        tbd_window_free(window);
    }
}

/* The folder returns what was stored. */
static unsigned count_kept(struct tbd_window_cache *cache)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < tbd_trace_window_count(trace); i++) {
        struct tbd_window *kept = tbd_window_cache_get(cache, trace, i), *window;

        if (!kept)
            continue;
        assert_int_equal(tbd_window_load(trace, i, true, &window, NULL), TBD_OK);
        assert_int_equal(kept->entry_count, window->entry_count);
        assert_memory_equal(kept->entries, window->entries,
                            window->entry_count * sizeof(*window->entries));
        tbd_window_free(window);
        tbd_window_free(kept);
        count++;
    }
    return count;
}

static void keep_answer(struct tbd_window_cache *cache, const char *question, const char *text)
{
    struct tbd_answer answer = {
        .question = question, .text = text, .bytes = strlen(text), .result = 1
    };
    struct tbd_buffer file = { 0 };
    char name[64];

    tbd_answer_name(question, name, sizeof(name));
    tbd_answer_put(trace, &answer, &file);
    tbd_window_cache_keep(cache, name, &file);
    tbd_buffer_free(&file);
}

static bool has_answer(struct tbd_window_cache *cache, const char *question, const char *text)
{
    struct tbd_answer answer = { .question = question };

    if (!tbd_window_cache_answer(cache, trace, &answer))
        return false;
    assert_int_equal(answer.bytes, strlen(text));
    assert_string_equal(answer.text, text);
    assert_int_equal(answer.result, 1);
    free((void *)(uintptr_t)answer.text);
    return true;
}

static void a_full_disk_costs_only_what_does_not_fit(void **state)
{
    uint32_t windows = tbd_trace_window_count(trace);
    bool is_done = false;

    (void)state;
    assert_in_range(windows, 4, 10);
    for (unsigned writes = 0; !is_done; writes++) {
        struct tbd_window_cache *cache = tbd_window_cache_new(trace, LIMIT);
        unsigned kept;

        empty_folder();
        is_full = true;
        writes_left = writes;
        put_all(cache);
        keep_answer(cache, "how much", "42\n");
        is_full = false;
        kept = count_kept(cache);
        is_done = kept == windows && has_answer(cache, "how much", "42\n");
        assert_int_equal(count_files(".raised"), kept);
        assert_int_equal(count_files(""), kept + has_answer(cache, "how much", "42\n"));
        tbd_window_cache_free(cache);
        assert_true(writes < 1000);
    }
}

static void an_answer_is_given_to_its_own_question(void **state)
{
    struct tbd_window_cache *cache = tbd_window_cache_new(trace, LIMIT);

    (void)state;
    empty_folder();
    assert_false(has_answer(cache, "a", "first"));
    keep_answer(cache, "a", "first");
    keep_answer(cache, "b", "");
    assert_true(has_answer(cache, "a", "first"));
    assert_true(has_answer(cache, "b", ""));
    assert_false(has_answer(cache, "c", ""));
    keep_answer(cache, "a", "second");
    assert_true(has_answer(cache, "a", "second"));
    tbd_window_cache_free(cache);
}

/* Two questions with the same hash in the file's name. */
static void another_question_of_the_same_name_is_not_answered(void **state)
{
    struct tbd_window_cache *cache = tbd_window_cache_new(trace, LIMIT);
    struct tbd_answer answer = { .question = "b", .text = "of b", .bytes = 4 };
    struct tbd_buffer file = { 0 };
    char name[64];

    (void)state;
    empty_folder();
    tbd_answer_name("a", name, sizeof(name));
    tbd_answer_put(trace, &answer, &file);
    tbd_window_cache_keep(cache, name, &file);
    assert_int_equal(count_files(".answer"), 1);
    assert_false(has_answer(cache, "a", "of b"));
    tbd_buffer_free(&file);
    tbd_window_cache_free(cache);
}

/* An answer takes at most an eighth of the folder, so that it does not evict windows. */
static void a_long_answer_is_not_kept(void **state)
{
    struct tbd_window_cache *cache = tbd_window_cache_new(trace, 1 << 16);
    struct tbd_buffer content = { 0 };

    (void)state;
    empty_folder();
    assert_non_null(tbd_buffer_reserve(&content, 1 << 14));
    memset(content.bytes, 1, 1 << 14);
    content.used = 1 << 14;
    tbd_window_cache_keep(cache, "long.answer", &content);
    assert_int_equal(count_files(""), 0);
    content.used = 1 << 12;
    tbd_window_cache_keep(cache, "short.answer", &content);
    assert_int_equal(count_files(".answer"), 1);
    tbd_buffer_free(&content);
    tbd_window_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_costs_only_what_does_not_fit),
        cmocka_unit_test(an_answer_is_given_to_its_own_question),
        cmocka_unit_test(another_question_of_the_same_name_is_not_answered),
        cmocka_unit_test(a_long_answer_is_not_kept),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
