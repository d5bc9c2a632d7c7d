// SPDX-License-Identifier: MIT
/* page_sums.c - see page_sums.h */
#include "query/page/page_sums.h"

#include <stdlib.h>

#define WINDOWS_MOST 2000u /* that are listed one by one */
#define THREADS_MOST 64u

enum { STORES, CALLS, SYSCALLS, SIGNALS, SWITCHES, KINDS };

static const char *const kind_names[KINDS] = { "stores", "calls", "syscalls", "signals",
                                               "switches" };

struct sums {
    const struct tbd_trace *trace;
    double since, until, part; /* `part`: block entries in a pixel */
    uint32_t pixels;
    double *of[KINDS]; /* owned */
};

static uint32_t pixel_at(const struct sums *sums, double time)
{
    double pixel = (time - sums->since) / sums->part;

    return pixel < 0 ? 0 : pixel >= sums->pixels ? sums->pixels - 1 : (uint32_t)pixel;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Spreads the events of a window over the pixels that it lies in, by how much of it does. */
static void add_window(struct sums *sums, const struct tbd_window_summary *window)
{
    const uint64_t counts[KINDS] = { window->stores, window->calls, window->syscalls,
                                     window->signals, window->switches };
    double start = (double)window->first_time, blocks = (double)window->blocks;

    for (uint32_t i = pixel_at(sums, start); i <= pixel_at(sums, start + blocks); i++) {
        double from = sums->since + i * sums->part;
        double share = smaller(from + sums->part, start + blocks) - larger(from, start);

        for (unsigned kind = 0; share > 0 && kind < KINDS; kind++)
            sums->of[kind][i] += (double)counts[kind] * share / blocks;
    }
}

static bool overlaps(const struct sums *sums, const struct tbd_window_summary *window)
{
    return window->blocks != 0 && (double)window->first_time < sums->until &&
           (double)(window->first_time + window->blocks) > sums->since;
}

/* The windows in sight: [first time, blocks, level]; an empty list if they are too many to be seen. */
static json_t *list_windows(struct sums *sums)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < tbd_trace_window_count(sums->trace); i++) {
        const struct tbd_window_summary *window = tbd_trace_window(sums->trace, i);

        if (!overlaps(sums, window))
            continue;
        add_window(sums, window);
        if (json_array_size(list) <= WINDOWS_MOST)
            json_array_append_new(list, json_pack("[I,I,i]", (json_int_t)window->first_time,
                                                  (json_int_t)window->blocks, (int)window->level));
    }
    if (json_array_size(list) > WINDOWS_MOST)
        json_array_clear(list);
    return list;
}

/* Where the thread may have run: 1 for each such pixel. */
static json_t *list_runs(const struct sums *sums, const struct tbd_thread_info *thread)
{
    json_t *list = json_array();
    unsigned char *runs = calloc(sums->pixels, 1);

    for (uint32_t i = 0; runs != NULL && i < tbd_trace_window_count(sums->trace); i++) {
        const struct tbd_window_summary *window = tbd_trace_window(sums->trace, i);
        double end = (double)window->first_time + (double)window->blocks;

        if (!overlaps(sums, window) || !tbd_trace_thread_ran(sums->trace, i, thread->tid))
            continue;
        for (uint32_t at = pixel_at(sums, (double)window->first_time); at <= pixel_at(sums, end);
             at++)
            runs[at] |= sums->since + (at + 1) * sums->part > (double)thread->start_time &&
                        sums->since + at * sums->part < (double)thread->end_time;
    }
    for (uint32_t i = 0; runs != NULL && i < sums->pixels; i++)
        json_array_append_new(list, json_integer(runs[i]));
    free(runs);
    return list;
}

static json_t *list_threads(const struct sums *sums)
{
    uint32_t count = tbd_trace_thread_count(sums->trace);
    json_t *list = json_array();

    for (uint32_t i = 0; i < count && json_array_size(list) < THREADS_MOST; i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(sums->trace, i);

        if ((double)thread->start_time >= sums->until || (double)thread->end_time <= sums->since)
            continue;
        json_array_append_new(list, json_pack("{s:I,s:I,s:o}", "thread", (json_int_t)thread->tid,
                                              "number", (json_int_t)i + 1, "runs",
                                              list_runs(sums, thread)));
    }
    return list;
}

static void put_counts(const struct sums *sums, json_t *answer)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        json_t *list = json_array();

        for (uint32_t i = 0; i < sums->pixels; i++)
            json_array_append_new(list, json_real(sums->of[kind][i]));
        json_object_set_new(answer, kind_names[kind], list);
    }
}

void tbd_page_put_sums(const struct tbd_trace *trace, const struct tbd_page_question *question,
                       json_t *answer)
{
    struct sums sums = { .trace = trace,
                         .since = (double)question->since,
                         .until = (double)question->until,
                         .pixels = question->pixels };
    bool good = true;

    sums.part = (sums.until - sums.since) / question->pixels;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        sums.of[kind] = calloc(sums.pixels, sizeof(double));
        good = good && sums.of[kind] != NULL;
    }
    if (good) {
        json_object_set_new(answer, "windows", list_windows(&sums));
        put_counts(&sums, answer);
        json_object_set_new(answer, "threads", list_threads(&sums));
    }
    for (unsigned kind = 0; kind < KINDS; kind++)
        free(sums.of[kind]);
}
