// SPDX-License-Identifier: MIT
// libs: pthread
// end: exec
/* A thread that is not the first executes another program while others wait and run; a failed attempt before. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static void *run(void *argument)
{
    for (volatile unsigned i = 0; !argument; i++)
        ;
    pause();
    return argument;
}

static void *execute(void *argument)
{
    CHECK(execl("/nowhere/nothing", "nothing", (char *)NULL) == -1);
    execl("/bin/echo", "echo", "executed", (char *)NULL);
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    pthread_create(&threads[0], NULL, run, NULL);
    pthread_create(&threads[1], NULL, run, threads);
    pthread_create(&threads[2], NULL, execute, NULL);
    pthread_join(threads[0], NULL);
    return 1;
}
