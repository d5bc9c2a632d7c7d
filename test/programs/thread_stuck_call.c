// SPDX-License-Identifier: MIT
// libs: pthread
// end: detached
// missing: without giving way
/* A call with more buffers than are followed waits for what another thread sends: the program is let go, and goes on. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MESSAGES 30
#define PARTS 50

static int ends[2];
static char bytes[MESSAGES][PARTS];
static struct iovec parts[MESSAGES][PARTS];
static struct mmsghdr messages[MESSAGES];

static void *receive(void *argument)
{
    for (unsigned m = 0; m < MESSAGES; m++) {
        for (unsigned p = 0; p < PARTS; p++)
            parts[m][p] = (struct iovec){ &bytes[m][p], 1 };
        messages[m].msg_hdr = (struct msghdr){ .msg_iov = parts[m], .msg_iovlen = PARTS };
    }
    CHECK(recvmmsg(ends[0], messages, MESSAGES, MSG_WAITFORONE, NULL) == 1);
    CHECK(messages[0].msg_len == 5 && !memcmp(bytes[0], "hello", 5));
    return argument;
}

int main(void)
{
    pthread_t thread;
    void *result;

    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0);
    CHECK(pthread_create(&thread, NULL, receive, &ends) == 0);
    usleep(10000);
    CHECK(write(ends[1], "hello", 5) == 5);
    CHECK(pthread_join(thread, &result) == 0 && result == &ends);
    puts("received");
    return 0;
}
