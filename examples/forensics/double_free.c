// SPDX-License-Identifier: MIT
/* double_free.c - two owners of one buffer, and both clean up
 *
 * The C library notices and aborts, far from the first of the two.  double_free.tbdq finds both. */
#include <stdlib.h>
#include <string.h>

struct message {
    char *text;
    struct message *reply_to;
};

static void drop(struct message *message)
{
    free(message->text);
    message->text = NULL;
}

static void quote(struct message *message, const struct message *original)
{
#ifdef FIXED
    message->text = strdup(original->text);
#else
    message->text = original->text; /* shared, not copied */
#endif
}

int main(void)
{
    struct message question = { strdup("where does the time go?"), NULL };
    struct message answer = { NULL, &question };

    quote(&answer, &question);
    drop(&question);
    drop(&answer);
    return 0;
}
