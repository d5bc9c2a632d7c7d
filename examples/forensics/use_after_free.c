// SPDX-License-Identifier: MIT
/* use_after_free.c - a cancelled job is marked as done, in memory that holds a name by then
 *
 * use_after_free.tbdq goes from the wrong write to the call that freed the memory, and to the one
 * that got it next. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    int id;
    char done;
};

static void cancel(struct job *job)
{
    free(job);
}

static void finish(struct job *job)
{
    job->done = '!';
}

int main(void)
{
    struct job *job = calloc(1, sizeof(*job));
    char *name;
    int wrong;

    job->id = 7;
#ifdef FIXED
    finish(job);
    cancel(job);
    name = strdup("Annabel");
#else
    cancel(job);
    name = strdup("Annabel");
    finish(job);
#endif
    wrong = strcmp(name, "Annabel") != 0;
    printf("the name is %s\n", name);
    free(name);
    return wrong;
}
