// SPDX-License-Identifier: MIT
/* reasons.c - see reasons.h */
#include "reasons.h"

#include "replay/simulate/dry.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES_MOST = 40 };

/* Why nobody knows what the step loads or computes. */
static const char *reason(const struct tbd_simulation *sim, size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    bool loads = false;

    if (insn->kind == TBD_INSN_SYSCALL)
        return "a system call";
    if (insn->kind != TBD_INSN_PLAIN)
        return "not in the table";
    if (!tbd_simulation_ran(sim, step))
        return "run in part";
    for (size_t k = 0; k < insn->memory_count; k++) {
        if (insn->memory[k].write)
            continue;
        loads = true;
        if (!tbd_bits_full(tbd_simulation_address(sim, step, k).bits))
            return "load from somewhere";
    }
    return loads ? "load of what was changed since" : "not solved";
}

void reasons_of_unknown(const struct tbd_simulation *sim, size_t from)
{
    struct tbd_sim_root *roots;
    size_t count;

    if (tbd_simulation_roots(sim, from, &roots, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count && i < LINES_MOST; i++) {
        const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, roots[i].step);

        if (insn == NULL || roots[i].address == 0)
            fprintf(stderr, "why: %zu older\n", roots[i].uses);
        else
            fprintf(stderr, "why: %zu step %zu at %#" PRIx64 " %s: %s\n", roots[i].uses,
                    roots[i].step, roots[i].address,
                    ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic),
                    reason(sim, roots[i].step));
    }
    free(roots);
}

void reasons_of_wrong(const struct tbd_simulation *sim, size_t step, size_t place,
                      struct tbd_simulated said, uint64_t is)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    struct tbd_assumption a;
    uint32_t why = said.why;

    fprintf(stderr,
            "wrong: step %zu at %#" PRIx64 " %s, %s %zu: %#" PRIx64 "/%#" PRIx64 " is %#" PRIx64
            "\n",
            step, insn->address, ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic),
            place < TBD_PLACE_COUNT ? "place" : "memory", place % TBD_PLACE_COUNT, said.bits.value,
            said.bits.known, is);
    for (; tbd_simulation_assumption(sim, why, &a); why = a.parent)
        fprintf(stderr,
                "  %#" PRIx64 " as from step %" PRIu32 " to %" PRIu32 ", over %" PRIu32
                " stores, one of step %" PRIu32 "\n",
                a.address, a.from, a.to, a.stores, a.store);
}
