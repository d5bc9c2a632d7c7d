// SPDX-License-Identifier: MIT
// libs: pthread
/* The main thread ends first; another one waits for it and ends the program. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

static pthread_t main_thread;

static void *stay(void *argument)
{
    void *result;

    CHECK(pthread_join(main_thread, &result) == 0 && result == (void *)5);
    CHECK(getpid() > 0);
    puts("the last one");
    return argument;
}

int main(void)
{
    pthread_t thread;

    main_thread = pthread_self();
    CHECK(pthread_create(&thread, NULL, stay, NULL) == 0);
    pthread_exit((void *)5);
}
