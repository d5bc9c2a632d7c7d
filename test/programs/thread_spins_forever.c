// SPDX-License-Identifier: MIT
// libs: pthread
// args: ends
/* Three threads that never leave a loop; without an argument the program never ends, either. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static volatile unsigned turns[3], stop;

static void *spin(void *argument)
{
    volatile unsigned *own = argument;

    while (!stop)
        ++*own;
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[3];

    (void)argv;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, spin, (void *)&turns[i]);
    while (turns[0] < 200000 || turns[1] < 200000 || turns[2] < 200000)
        usleep(1000);
    puts("spinning");
    fflush(stdout);
    if (argc == 1)
        pause();
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
