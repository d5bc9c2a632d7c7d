// SPDX-License-Identifier: MIT
/* forms_state.c - see forms.h: x87 and vector state as a whole, saved and restored
 *
 * What is saved is not followed: the memory is unknown after it, and so are the registers after a restore. */
#include "replay/simulate/forms.h"

enum { RAX = 0, RDX = 2 };

/* aux: how many words are written.  With PURE that depends on the components that edx:eax names, 1: they follow each other. */
FORM(state_save)
{
    uint8_t count;

    if (operation == TBD_OP_PURE)
        count = tbd_build_pure(
            b, aux == 0 ? TBD_PURE_SAVED : TBD_PURE_COMPACTED, 64,
            (const uint8_t[3]){ tbd_build_field(b, tbd_build_read_place(b, RAX), 0, 32),
                                tbd_build_field(b, tbd_build_read_place(b, RDX), 0, 32),
                                TBD_INSN_NO_SLOT });
    else
        count = tbd_build_constant(b, aux);
    tbd_build_store(b, tbd_build_address(b, 0, true), 0, 8, tbd_build_slot(b));
    b->memory[b->out.memory_count - 1].range = true;
    b->memory[b->out.memory_count - 1].count = count;
    return true;
}

FORM(state_restore)
{
    (void)operation;
    (void)aux;
    b->out.kind = TBD_INSN_RESTORE;
    return true;
}
