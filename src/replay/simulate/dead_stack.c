// SPDX-License-Identifier: MIT
/* dead_stack.c - where the stack was (simulate_private.h)
 *
 * When a function returns, what lay in its frame is over: the next call has other values there.  So nothing is assumed of a word
 * of the stack from a time before a return to one after it.
 *
 * A signal's frame lies from the handler's stack pointer up to the red zone of what was interrupted (System V ABI, 3.2.2), unless the
 * handler has a stack of its own. */
#include "replay/simulate/simulate_private.h"

#include <stdlib.h>

enum {
    BLOCK = 256,
    STACK_POINTER = 4,
    RED_ZONE = 128,
    FRAME_LEAST = 440 + 512, /* struct rt_sigframe, and floating-point state without extensions */
    FRAME_USUAL = 4096,      /* at most, with AVX-512 */
    FRAME_MOST = 16384,
};

static void find_variables(struct tbd_simulation *sim)
{
    struct tbd_sim_checkpoint map;

    if (sim->step_count == 0)
        return;
    map = sim->checkpoints[0];
    for (size_t i = 0; i < sim->step_count; i++) {
        sim->stack.variable[i] = map.variable[STACK_POINTER];
        tbd_sim_rename(sim, i, &map);
    }
}

bool tbd_sim_begin_stack(struct tbd_simulation *sim)
{
    struct tbd_sim_stack *stack = &sim->stack;

    stack->at = calloc(sim->step_count + 1, sizeof(*stack->at));
    stack->most = calloc(sim->step_count / BLOCK + 1, sizeof(*stack->most));
    stack->variable = calloc(sim->step_count + 1, sizeof(*stack->variable));
    stack->least = UINT64_MAX;
    if (stack->at == NULL || stack->most == NULL || stack->variable == NULL)
        return false;
    find_variables(sim);
    return true;
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

static struct tbd_bits pointer_before(const struct tbd_simulation *sim, size_t step)
{
    return step < sim->step_count ? sim->variables[sim->stack.variable[step]]
                                  : (struct tbd_bits){ 0, 0 };
}

void tbd_sim_erase_frame(struct tbd_simulation *sim, size_t step)
{
    struct tbd_bits old = pointer_before(sim, step), new = pointer_before(sim, step + 1);
    uint64_t top = old.value - RED_ZONE;

    if (sim->steps[step].insn->kind == TBD_INSN_SYSCALL || ((old.value | new.value) >> 63) != 0)
        return;
    if (tbd_bits_full(old) && tbd_bits_full(new) && top - new.value < FRAME_MOST)
        tbd_sim_erase(sim, new.value, top - new.value);
    else if (tbd_bits_full(new))
        tbd_sim_erase(sim, new.value, FRAME_LEAST);
    else if (tbd_bits_full(old) && top > FRAME_USUAL)
        tbd_sim_erase(sim, top - FRAME_USUAL, FRAME_USUAL);
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
