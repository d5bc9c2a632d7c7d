// SPDX-License-Identifier: MIT
/* registers.c - see registers.h */
#include "hooks/instructions/registers.h"

#include "hooks/instructions/vector.h"

void tbd_registers_send(struct tbd_ring *ring, struct tbd_thread *thread,
                        const struct tbd_vector_info *vector)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    struct tbd_part parts[2] = { { &thread->regs, sizeof(thread->regs) }, { image, 0 } };

    parts[1].bytes = thread->regs.xsave_bytes = tbd_vector_store(vector, image);
    thread->regs.thread = thread->tid;
    tbd_ring_send(ring, thread, TBD_MSG_REGS, parts, 2);
}
