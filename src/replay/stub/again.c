// SPDX-License-Identifier: MIT
/* again.c - specials whose outputs follow from their inputs: play's own code executes them
 *
 * It works on tbd_runtime, as in play, and sends the same messages. */
#include "replay/stub/calls.h"

/* Log entries of this execution; they are regenerated. */
static void skip_logged(void)
{
    const struct tbd_message *message;

    while ((message = tbd_log_peek(TBD_MSG_SPECIAL)))
        tbd_stub.log_next++;
}

void tbd_special_again(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    skip_logged();
    tbd_special_perform(thread, special, insn_bytes);
}
