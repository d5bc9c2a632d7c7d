// SPDX-License-Identifier: MIT
/* Children that share the parent's memory until they execute something: what they write there is the
 * parent's too (posix_spawn reports its errors that way). */
#include "check.h"
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int shared[3000];

static int status_of(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void spawn_what_is_not_there(void)
{
    char *argv[] = { "nothing", NULL };
    pid_t child;

    CHECK(posix_spawn(&child, "/no/such/program", NULL, NULL, argv, environ) == ENOENT);
}

static void spawn_true(void)
{
    char *argv[] = { "sh", "-c", "exit 3", NULL };
    pid_t child;

    CHECK(posix_spawnp(&child, "sh", NULL, NULL, argv, environ) == 0);
    CHECK(status_of(child) == 3);
}

static void write_from_a_vfork_child(int round)
{
    pid_t child = vfork();

    if (child == 0) {
        for (int i = 0; i < 3000; i += 700)
            shared[i] += round;
        _exit(round);
    }
    CHECK(status_of(child) == round);
}

static void read_from_a_pipe(void)
{
    char line[32] = "";
    FILE *pipe = popen("echo through a pipe", "r");

    CHECK(pipe && fgets(line, sizeof(line), pipe) && strcmp(line, "through a pipe\n") == 0);
    CHECK(pclose(pipe) == 0);
}

int main(void)
{
    /* Enough memory that remembering all of it by copying would be slow. */
    size_t bytes = 32u << 20;
    char *big = malloc(bytes);
    long sum = 0;

    for (int round = 1; round <= 4; round++) {
        if (round == 3)
            memset(big, 7, bytes);
        spawn_what_is_not_there();
        spawn_true();
        write_from_a_vfork_child(round);
        read_from_a_pipe();
        CHECK(system("exit 5") == 5 << 8);
    }
    for (int i = 0; i < 3000; i++)
        sum += shared[i];
    CHECK(sum == 50 && big[bytes - 1] == 7);
    printf("%ld\n", sum);
    free(big);
    return 0;
}
