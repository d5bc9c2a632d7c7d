// SPDX-License-Identifier: MIT
/* dead_stack.c - where the stack was (simulate_private.h)
 *
 * When a function returns, what lay in its frame is over: the next call has other values there.  So nothing is assumed of a word
 * of the stack from a time before a return to one after it. */
#include "replay/simulate/simulate_private.h"

#include <stdlib.h>

enum { BLOCK = 256 };

bool tbd_sim_begin_stack(struct tbd_simulation *sim)
{
    struct tbd_sim_stack *stack = &sim->stack;

    stack->at = calloc(sim->step_count + 1, sizeof(*stack->at));
    stack->most = calloc(sim->step_count / BLOCK + 1, sizeof(*stack->most));
    stack->least = UINT64_MAX;
    return stack->at != NULL && stack->most != NULL;
}

void tbd_sim_note_stack(struct tbd_simulation *sim, size_t step, struct tbd_bits pointer)
{
    struct tbd_sim_stack *stack = &sim->stack;

    if (sim->frozen || !tbd_bits_full(pointer))
        return;
    stack->at[step] = pointer.value;
    if (stack->most[step / BLOCK] < pointer.value)
        stack->most[step / BLOCK] = pointer.value;
    if (stack->least > pointer.value)
        stack->least = pointer.value;
}

bool tbd_sim_was_dead(const struct tbd_simulation *sim, uint64_t address, size_t one, size_t other)
{
    const struct tbd_sim_stack *stack = &sim->stack;
    size_t from = one < other ? one : other, to = one < other ? other : one;

    if (stack->at == NULL || address < stack->least || address >> 63 != 0)
        return false;
    for (size_t i = from + 1; i < to && i < sim->step_count;) {
        if (i % BLOCK == 0 && i + BLOCK <= to) {
            if (stack->most[i / BLOCK] > address)
                return true;
            i += BLOCK;
            continue;
        }
        if (stack->at[i] > address)
            return true;
        i++;
    }
    return false;
}
