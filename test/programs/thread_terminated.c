// SPDX-License-Identifier: MIT
// libs: pthread
// signal: 15
/* A signal for the process that nobody catches, while all threads wait. */
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void *wait_for_ever(void *argument)
{
    for (;;)
        pause();
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    puts("waiting");
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_for_ever, NULL);
    usleep(3000);
    kill(getpid(), SIGTERM);
    wait_for_ever(NULL);
    return 0;
}
