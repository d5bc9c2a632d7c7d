// SPDX-License-Identifier: MIT
/* page_queue.c - see page_queue.h
 *
 *   WAITING -> RUNNING -> DONE            WAITING -> DONE: cancelled before its turn, or the server ends
 *
 * PAGE-QUEUE-1  A cancelled question is interrupted only while it is the running one: so no other one is. (not
 *     checked: `lock` is held from the comparison to the note)
 * PAGE-QUEUE-2  A signal that was not noted for a cancelled question ends the server. */
#include "query/page/page_queue.h"

#include "query/text/progress.h"
#include "query/text/user_interrupt.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 100 /* how often is looked whether a client is still there */

enum page_job_state { WAITING = 0, RUNNING, DONE };

struct page_job {
    struct page_job *next;
    const struct tbd_page_question *question; /* borrowed from who waits */
    enum page_job_state state;
    bool is_cancelled;
    char *answer; /* owned until who waits takes it */
};

struct tbd_page_queue {
    pthread_mutex_t lock; /* for everything here */
    pthread_cond_t changed;
    int wake;              /* readable when a question comes */
    struct page_job *jobs; /* in order; each lives on the stack of who waits */
    struct page_job *running;
    bool is_over;
    struct {
        char what[32];
        uint64_t done, total;
    } progress; /* of the running one */
};

struct tbd_page_queue *tbd_page_queue_new(void)
{
    struct tbd_page_queue *queue = calloc(1, sizeof(*queue));
    pthread_condattr_t attributes;

    if (queue == NULL)
        return NULL;
    queue->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return queue;
}

void tbd_page_queue_free(struct tbd_page_queue *queue)
{
    if (queue == NULL)
        return;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    if (queue->wake >= 0)
        close(queue->wake);
    free(queue);
}

/* ---- threads of connections ---- */

static void add_locked(struct tbd_page_queue *queue, struct page_job *job)
{
    struct page_job **end = &queue->jobs;
    uint64_t one = 1;

    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    (void)!write(queue->wake, &one, sizeof(one));
}

static void remove_locked(struct tbd_page_queue *queue, struct page_job *job)
{
    struct page_job **at = &queue->jobs;

    while (*at != NULL && *at != job)
        at = &(*at)->next;
    if (*at == job)
        *at = job->next;
}

static void cancel_locked(struct tbd_page_queue *queue, struct page_job *job)
{
    job->is_cancelled = true;
    if (job->state == WAITING) {
        remove_locked(queue, job);
        job->state = DONE;
        pthread_cond_broadcast(&queue->changed);
    } else if (job == queue->running) {
        tbd_interrupt_note(); /* keeps PAGE-QUEUE-1 */
    }
}

static bool is_gone(int socket)
{
    struct pollfd poll_it = { .fd = socket, .events = POLLRDHUP };

    return poll(&poll_it, 1, 0) > 0 && (poll_it.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void wait_a_little(struct tbd_page_queue *queue)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
}

char *tbd_page_queue_ask(struct tbd_page_queue *queue, const struct tbd_page_question *question,
                         int socket)
{
    struct page_job job = { .question = question };

    pthread_mutex_lock(&queue->lock);
    if (queue->is_over)
        job.state = DONE;
    else
        add_locked(queue, &job);
    while (job.state != DONE) {
        if (!job.is_cancelled && is_gone(socket))
            cancel_locked(queue, &job);
        else
            wait_a_little(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return job.answer;
}

void tbd_page_queue_cancel(struct tbd_page_queue *queue, const char *id)
{
    struct page_job *next;

    pthread_mutex_lock(&queue->lock);
    if (queue->running != NULL && strcmp(queue->running->question->id, id) == 0)
        cancel_locked(queue, queue->running);
    for (struct page_job *job = queue->jobs; job != NULL; job = next) {
        next = job->next;
        if (strcmp(job->question->id, id) == 0)
            cancel_locked(queue, job);
    }
    pthread_mutex_unlock(&queue->lock);
}

static json_t *running_locked(const struct tbd_page_queue *queue)
{
    const struct tbd_page_question *question = queue->running->question;

    return json_pack("{s:s,s:s,s:s,s:I,s:I}", "id", question->id, "line",
                     question->line_count == 0 ? "" : question->lines[0], "what",
                     queue->progress.what, "done", (json_int_t)queue->progress.done, "total",
                     (json_int_t)queue->progress.total);
}

json_t *tbd_page_queue_progress(struct tbd_page_queue *queue)
{
    json_t *answer = json_object();
    json_int_t waiting = 0;

    pthread_mutex_lock(&queue->lock);
    for (const struct page_job *job = queue->jobs; job != NULL; job = job->next)
        waiting++;
    json_object_set_new(answer, "waiting", json_integer(waiting));
    json_object_set_new(answer, "running",
                        queue->running == NULL ? json_null() : running_locked(queue));
    pthread_mutex_unlock(&queue->lock);
    return answer;
}

/* ---- the session's thread ---- */

static void note_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    struct tbd_page_queue *queue = context;

    pthread_mutex_lock(&queue->lock);
    snprintf(queue->progress.what, sizeof(queue->progress.what), "%s", what == NULL ? "" : what);
    queue->progress.done = done;
    queue->progress.total = total;
    pthread_mutex_unlock(&queue->lock);
}

/* The first one becomes the running one.  NULL: there is none. */
static const struct tbd_page_question *take(struct tbd_page_queue *queue)
{
    struct page_job *job;
    uint64_t count;

    pthread_mutex_lock(&queue->lock);
    (void)!read(queue->wake, &count, sizeof(count));
    job = queue->running = queue->jobs;
    if (job != NULL) {
        queue->jobs = job->next;
        job->state = RUNNING;
        memset(&queue->progress, 0, sizeof(queue->progress));
    }
    if (queue->jobs != NULL) { /* there are more: it stays readable */
        count = 1;
        (void)!write(queue->wake, &count, sizeof(count));
    }
    pthread_mutex_unlock(&queue->lock);
    return job == NULL ? NULL : job->question;
}

const struct tbd_page_question *tbd_page_queue_next(struct tbd_page_queue *queue)
{
    struct pollfd waits[] = { { .fd = queue->wake, .events = POLLIN },
                              { .fd = tbd_interrupt_descriptor(), .events = POLLIN } };
    const struct tbd_page_question *question = NULL;

    tbd_progress_listen(note_progress, queue);
    while (question == NULL) {
        if (tbd_is_interrupted() || (poll(waits, 2, -1) < 0 && errno != EINTR))
            return NULL; /* keeps PAGE-QUEUE-2: none is running */
        if ((waits[0].revents & POLLIN) != 0)
            question = take(queue);
    }
    return question;
}

void tbd_page_queue_done(struct tbd_page_queue *queue, char *answer)
{
    pthread_mutex_lock(&queue->lock);
    queue->running->answer = answer;
    queue->running->state = DONE;
    if (queue->running->is_cancelled)
        tbd_interrupt_clear();
    queue->running = NULL;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void tbd_page_queue_end(struct tbd_page_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_over = true;
    while (queue->jobs != NULL)
        cancel_locked(queue, queue->jobs);
    pthread_mutex_unlock(&queue->lock);
    tbd_progress_listen(NULL, NULL);
}
