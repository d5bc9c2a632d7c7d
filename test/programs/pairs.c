// SPDX-License-Identifier: MIT
// libs: pthread
/* Runs that differ at one planted branch: the line with "planted NAME"
 *
 *   pairs NAME [TEXT]
 *
 * For test_diff.py, which builds it without optimization: what differs between two runs of one NAME is the text, the environment, or chance. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int found;

static int is_even(unsigned long number)
{
    return number % 2 == 0;
}

static void input(void)
{
    static const int weights[256] = { ['x'] = 3 };
    char line[128];
    int sum = 0;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        for (const char *at = line; *at != '\0'; at++)
            sum += weights[(unsigned char)*at];
    }
    if (sum > 10) /* planted input */
        found = 1;
}

static void argument(const char *text)
{
    char copy[64];
    int length = 0;

    strncpy(copy, text, sizeof(copy) - 1);
    copy[sizeof(copy) - 1] = '\0';
    while (copy[length] != '\0') /* planted argument */
        length++;
    found = length;
}

static void environment(void)
{
    const char *level = getenv("PAIRS_LEVEL");
    int value = level == NULL ? 1 : atoi(level);

    if (value >= 5) /* planted environment */
        found = value;
}

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    if (x < y) /* planted callback */
        return -1;
    return x > y;
}

static void callback(const char *text)
{
    int numbers[] = { 5, 3, 9, 1, 7, 2, 8, 0 };

    numbers[3] = atoi(text);
    qsort(numbers, 8, sizeof(int), by_value);
    found = numbers[0];
}

static int add(int x)
{
    return x + 1;
}

static int twice(int x)
{
    return 2 * x;
}

static void pointer(const char *text)
{
    int (*functions[])(int) = { add, twice };

    found = functions[atoi(text) % 2](7); /* planted pointer */
}

static void cases(const char *text)
{
    switch (text[0]) { /* planted cases */
    case 'a': found = 3; break;
    case 'b': found = 5; break;
    case 'c': found = add(4); break;
    case 'd': found = twice(4); break;
    case 'e': found = 7; break;
    default: found = 1; break;
    }
}

static void real(const char *text)
{
    double x = strtod(text, NULL);

    for (int i = 0; i < 5; i++)
        x = x * 0.75 + 0.1;
    if (x < 1.0) /* planted real */
        found = 1;
}

static int depth(int n)
{
    if (n == 0) /* planted recursion */
        return 0;
    return 1 + depth(n - 1);
}

static void crash(const char *text)
{
    int value = 4, *const targets[] = { &value, NULL }, *to = targets[atoi(text) / 10 % 2];

    for (int i = 0; i < 3; i++)
        found += i;
    found += *to; /* planted crash */
}

/* ---- chance ---- */

static void process(void)
{
    if (is_even((unsigned long)getpid())) /* planted process */
        found = 1;
}

static void moment(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (is_even((unsigned long)now.tv_nsec / 1000)) /* planted moment */
        found = 1;
}

static void address(void)
{
    char *block = malloc(200000);

    if (is_even((unsigned long)(uintptr_t)block / 4096)) /* planted address */
        found = 1;
    free(block);
}

static volatile int winner;

static void *racer(void *argument)
{
    const char *pause = getenv(*(const int *)argument == 1 ? "PAIRS_FIRST" : "PAIRS_SECOND");

    if (pause != NULL)
        usleep((useconds_t)atoi(pause));
    winner = *(const int *)argument;
    return NULL;
}

static void race(void)
{
    pthread_t threads[2];
    int numbers[2] = { 1, 2 };

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, racer, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    if (winner == 2) /* planted race */
        found = 2;
}

static volatile int ticks;

static void tick(int number)
{
    ticks += number != 0;
}

static void interrupted(const char *text)
{
    struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
    long sum = 0;

    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, NULL);
    for (long i = 0; i < 300000; i++)
        sum += i ^ (sum >> 3);
    every.it_value.tv_usec = every.it_interval.tv_usec = 0;
    setitimer(ITIMER_REAL, &every, NULL);
    if (sum % 2 == 0 || text[0] == 'y') /* planted interrupted */
        found = 1;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "", *text = argc > 2 ? argv[2] : "";

    if (strcmp(name, "input") == 0)
        input();
    else if (strcmp(name, "argument") == 0)
        argument(text);
    else if (strcmp(name, "environment") == 0)
        environment();
    else if (strcmp(name, "callback") == 0)
        callback(text);
    else if (strcmp(name, "pointer") == 0)
        pointer(text);
    else if (strcmp(name, "cases") == 0)
        cases(text);
    else if (strcmp(name, "real") == 0)
        real(text);
    else if (strcmp(name, "recursion") == 0)
        found = depth(atoi(text));
    else if (strcmp(name, "crash") == 0)
        crash(text);
    else if (strcmp(name, "process") == 0)
        process();
    else if (strcmp(name, "moment") == 0)
        moment();
    else if (strcmp(name, "address") == 0)
        address();
    else if (strcmp(name, "race") == 0)
        race();
    else if (strcmp(name, "interrupted") == 0)
        interrupted(text);
    printf("%d\n", found != 0);
    return 0;
}
