// SPDX-License-Identifier: MIT
/* crash_goto.c - many checks share one way out, which aborts
 *
 * A core file shows abort() in check_message, and values that all look right: the message was read again since.  `tbdq path` has the
 * line from which it went there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    int version, length, kind;
    char text[16];
};

static void receive(struct message *message, int attempt)
{
    memset(message, 0, sizeof(*message));
    message->version = 2;
    message->length = 5;
#ifdef FIXED
    message->kind = 1;
#else
    message->kind = attempt == 0 ? 9 : 1;
#endif
    strcpy(message->text, "hello");
}

static void check_message(struct message *message)
{
    if (message->version != 2)
        goto wrong;
    if (message->length > 15)
        goto wrong;
    if (message->kind > 3)
        goto wrong; /* cause */
    if (strlen(message->text) != (size_t)message->length)
        goto wrong;
    return;
wrong:
    receive(message, 1); /* perhaps it is better now */
    abort();
}

int main(void)
{
    struct message message;

    receive(&message, 0);
    check_message(&message);
    puts(message.text);
    return 0;
}
