// SPDX-License-Identifier: MIT
/* forms_state.c - see forms.h: x87 and vector state as a whole, saved and restored
 *
 * What is saved is not followed: the memory is unknown after it, and so are the registers after a restore. */
#include "replay/simulate/forms.h"

enum { RAX = 0, RDX = 2, RSP = 4 };

/* uc_mcontext.gregs of <sys/ucontext.h> */
enum { GREGS_AT = 40, GREGS = 16, RIP_AT = GREGS_AT + 16 * 8, FLAGS_AT = RIP_AT + 8, DF_BIT = 10 };
static const uint8_t gregs[GREGS] = { 8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4 };

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

void tbd_build_return_from_signal(struct tbd_build *b)
{
    uint8_t rsp = tbd_build_read_place(b, RSP), flags;

    b->out.kind = TBD_INSN_RESTORE;
    for (unsigned i = 0; i < GREGS; i++)
        tbd_build_write_place(b, gregs[i], tbd_build_load(b, rsp, GREGS_AT + 8 * i, 8));
    flags = tbd_build_load(b, rsp, FLAGS_AT, 8);
    tbd_build_link(b, tbd_build_flags(b, 0), flags, TBD_STATUS_FLAGS);
    tbd_build_write_place(b, TBD_PLACE_DF, tbd_build_field(b, flags, DF_BIT, 1));
    b->out.next = tbd_build_load(b, rsp, RIP_AT, 8);
    b->out.indirect = true;
}
