// SPDX-License-Identifier: MIT
/* translate.h - from a cut block to code: register places, lowering, exits
 *
 * The places of the program's registers change along a block; struct tbd_reg_places has them for
 * one point.  A dry run of the same translation finds the places at a cache address (struct
 * tbd_watch): nothing is stored per instruction.
 *
 * TRANSLATE-1  Every program register's value is in at least one of: its own hardware register
 *     (own), its slot in the thread block (slot), or, for r14 and r15 only, a substitute (sub).  If
 *     several have it they agree; slot is used before sub.
 * TRANSLATE-2  At a block's entry and at its exits the registers of tbd_at_home() are in their slots
 *     and nowhere else, all others are own; in the check for indirect branches rcx is in r10.
 * TRANSLATE-3  rsp is always own, and its memory below is never written.
 */
#ifndef TBD_PATCHER_TRANSLATE_H
#define TBD_PATCHER_TRANSLATE_H

#include "base/branching.h"
#include "base/calling.h"
#include "patcher/cut.h"
#include "patcher/emit.h"
#include "patcher/patcher.h"

/* r14 and r15 are the stream's, where there is one.  Programs use r10 and
 * r11 least of the others: in blocks that do not use them, hooks get them free, which saves a store a
 * block; stores are the hooks' bottleneck (lua was recorded a quarter faster for it). */
static inline uint16_t tbd_at_home(const struct tbd_codegen_config *config)
{
    uint16_t registers = TBD_BIT(TBD_R10) | TBD_BIT(TBD_R11);
    bool has_records =
        !config->omits_records && ((config->hook_set & ~TBD_HOOK_BLOCKS) || !config->is_free);

    if (config->hook_set)
        registers |= TBD_BIT(TBD_R15);
    if (config->hook_set && has_records)
        registers |= TBD_BIT(TBD_R14);
    return registers;
}

struct tbd_reg_places {
    uint16_t own;
    uint16_t slot;
    uint8_t sub[2]; /* of r14, r15: hardware register or TBD_NO_REG */
};

enum tbd_phase {
    TBD_PHASE_ENTRY, /* before the entry store is done */
    TBD_PHASE_HOOK,  /* hooks of instruction `insn` */
    TBD_PHASE_INSN,  /* the instruction */
    TBD_PHASE_TAIL,  /* all instructions' effects on memory are done */
};

/* What is still to be done to the calling context, although the program's instruction is done. */
enum tbd_calling_due {
    TBD_CALLING_DUE_NOTHING,
    TBD_CALLING_DUE_ENTER, /* the call's number */
    TBD_CALLING_DUE_SET,   /* the value is in a register */
};

/* What is still to be done to the branch context (patcher/branch_code.c). */
enum tbd_branch_due {
    TBD_BRANCH_DUE_NOTHING,
    TBD_BRANCH_DUE_PUT_DOWN, /* the value is in the thread block */
    TBD_BRANCH_DUE_JUMP,     /* nothing, and the block's last instruction has jumped */
};

/* Filled by a dry run: the state just before the code at `pc`. */
struct tbd_watch {
    uint64_t pc;
    uint64_t tail;           /* where the block's jumps begin */
    uint64_t first_exit_end; /* end of the first of them; 0 if there is none */
    struct tbd_reg_places place;
    uint32_t insn;
    enum tbd_phase phase;
    enum tbd_calling_due due;
    uint8_t due_reg; /* TBD_CALLING_DUE_SET */
    enum tbd_branch_due branch_due;
    bool branch_begun; /* the function's first block, after its value has been begun */
    uint64_t leads_to; /* its indirect jump leads there for certain; 0: it may lead anywhere */
    uint64_t compare;  /* as in struct tbd_translation */
    uint64_t compare_end;
};

/* Why translated code left.  thread->exit_kind; exit_arg by kind. */
enum tbd_exit_kind {
    TBD_EXIT_START,    /* tbd_patcher_run: nothing */
    TBD_EXIT_DIRECT,   /* index of the exit site */
    TBD_EXIT_INDIRECT, /* the target address */
    TBD_EXIT_SYSCALL,  /* index of the block, also for the next four */
    TBD_EXIT_SPECIAL,
    TBD_EXIT_FAULT,
    TBD_EXIT_STOP,     /* tbd_patcher_stop_inside */
    TBD_EXIT_BOUNDARY, /* cache address of an entry store */
    TBD_EXIT_CHANGED,  /* index of the block: the program's bytes are not those it was made from */
    TBD_EXIT_SWITCH, /* the target address: the stack has been switched, and the calling context is to be found */
    TBD_EXIT_ASKED,   /* index of the block: it is not entered yet, and begins at an asked place */
    TBD_EXIT_RECORD,  /* the same: its registers are due to be recorded */
    TBD_EXIT_NOWHERE, /* INDIRECT or SWITCH to what is no address (patcher/dispatch.c) */
    TBD_EXIT_KINDS
};

/* A patchable jump to another block. */
struct tbd_direct_exit {
    uint8_t *rel32; /* in the buffer */
    uint64_t target;
};

struct tbd_translation {
    struct tbd_emit e;
    const struct tbd_cut *cut;
    struct tbd_watch *watch; /* NULL unless dry */
    const uint64_t *head;    /* [TBD_EXIT_KINDS]: the area's exit jump, by kind */
    struct tbd_reg_places place;
    uint16_t at_home;
    uint32_t hook_set;
    enum tbd_calling_scheme calling;
    uint64_t (*call_number)(uint64_t return_address);
    enum tbd_calling_due due;
    uint8_t due_reg;
    struct tbd_branches_at branches; /* of the function that the block begins in */
    enum tbd_branch_due branch_due;
    bool branch_begun;
    bool branches_are_chosen; /* of some function */
    bool only_counts;         /* entries are not written */
    bool in_ring;             /* the entry goes to a ring (format/stream/crash.h) */
    bool says_left;           /* its indirect jump notes the block in thread->left */
    bool records;             /* registers are recorded at intervals */
    uint32_t id;              /* the block's id in the stream */
    uint32_t block;           /* index, for exits */
    uint32_t insn;            /* being lowered */
    enum tbd_phase phase;
    bool tagged;    /* with an entry for indirect branches before it */
    bool stop;      /* leave by TBD_EXIT_STOP at the end */
    uint64_t begin; /* out: where the block's code begins */
    uint64_t tag;   /* out: where the entry for indirect branches is */
    uint64_t entry; /* out: the entry for other branches: the entry store, or checks before it */
    uint64_t
        answered;  /* out: where it goes on after TBD_EXIT_ASKED or _RECORD; 0: it has neither */
    uint64_t tail; /* out: where the jumps of direct exits begin */
    uint8_t *mismatch; /* out: rel32 of the tagged entry's exit jump, if any */
    struct tbd_direct_exit exit[2];
    uint32_t exit_count;
    uint64_t foretold; /* where its indirect jump is expected to lead (foretell.c); 0: anywhere */
    bool is_constant;  /* that is certain */
    uint64_t compare;  /* out: after this address, up to and at compare_end, rcx is in r10 */
    uint64_t compare_end;
};

/* See tbd_patcher_trap(). */
extern uint64_t tbd_translate_trap;
/* See tbd_patcher_vectors_differ(). */
extern bool tbd_translate_traps_xrstor, tbd_translate_traps_wide;

/* Emits the whole block; afterwards check t->e.overflow. */
void tbd_translate(struct tbd_translation *t);
/* The check for indirect branches, at t->tag: is the target, in r11, `start`?  It has the same low 16 bits.  Where it is, the check
 * goes on with all as it was but r10.  The jump that is taken otherwise is just before it: it leads to tbd_translate_mismatch(),
 * which puts in place what the check has changed (OF, or rcx). */
#define TBD_TAG_MISMATCH_BYTES 5u
void tbd_translate_tag(struct tbd_translation *t, uint64_t start);
void tbd_translate_mismatch(struct tbd_emit *e);
/* Interrupted in the check or the jump before it: `state`, which is the processor's but for registers that are elsewhere between
 * blocks, becomes the program's, at the target. */
void tbd_translate_leave_tag(uint64_t start, uint64_t tag, const struct tbd_regs *cpu,
                             struct tbd_regs *state);
/* r10 = rcx; then goes on if the target, in r11, is `address`, else jumps by a displacement of one byte, the last that was emitted:
 * returns where it is, for the caller to set.  Flags stay as they are, so it is `loop`, whose one jump is not taken where the
 * addresses are the same (rcx = difference + 1), or jrcxz over a jump (target_check.c). */
uint8_t *tbd_translate_compare(struct tbd_translation *t, uint64_t address);
/* With a foretold target (foretell.c): r11 is the target of the indirect jump, and the block is done but for that. */
void tbd_translate_foretold(struct tbd_translation *t);
/* Before all others: asks which processor this is. */
void tbd_translate_init(void);
/* What that has found; tests set it before a block is translated. */
extern bool tbd_translate_loop_is_slow, tbd_translate_has_adx;

/* asked_code.c: jumps to `asks`, with rcx in its slot, if the state is that of tbd_asked_places_state(); else goes on. */
void tbd_translate_question(struct tbd_translation *t, uint64_t asks);

/* record_code.c: does this block have the check whether registers are due, where they are recorded? */
bool tbd_translate_may_record(const struct tbd_cut *cut);
/* The check, at a block's entry: jumps to `records`, an exit with rcx in its slot, before the code. */
void tbd_translate_record(struct tbd_translation *t, uint64_t records);

/* ---- branch_code.c: nothing outside functions whose branches count ---- */
void tbd_branch_code_begin(struct tbd_translation *t);
/* Before an instruction's hooks. */
void tbd_branch_code_before(struct tbd_translation *t, const struct tbd_insn *insn);
/* The block's instructions are done but for its last, which changes no rsp; or that is a return, and no value is needed any more. */
void tbd_branch_code_put_down(struct tbd_translation *t);
void tbd_branch_code_forget(struct tbd_translation *t);
/* Before a call, with nothing in place for it yet. */
void tbd_branch_code_call(struct tbd_translation *t, uint64_t return_address);
/* Before a jump. */
void tbd_branch_code_jump(struct tbd_translation *t, const struct tbd_insn *insn);
bool tbd_branch_code_counts(const struct tbd_translation *t, const struct tbd_insn *insn);
/* The branch jumps: between the block's registers at an exit and the same again. */
void tbd_branch_code_take(struct tbd_translation *t, const struct tbd_insn *insn);
/* rax = the value of the calling function. */
void tbd_branch_code_tell(struct tbd_translation *t);

/* ---- place.c ---- */
void tbd_place_init(struct tbd_translation *t);
/* Remembers the state for a dry run; called before each piece of code. */
void tbd_place_note(struct tbd_translation *t);
/* Hardware register that holds program register `r` now (it must be in one). */
unsigned tbd_place_hw(const struct tbd_translation *t, unsigned r);
/* Brings r's value into a hardware register.  `avoid`: hardware registers that stay as they are. */
void tbd_place_need(struct tbd_translation *t, unsigned r, uint16_t avoid);
/* `hw` is no substitute any more. */
void tbd_place_evict(struct tbd_translation *t, unsigned hw);
/* A substitute for r (r14 or r15) to be written to, without its old value. */
void tbd_place_need_target(struct tbd_translation *t, unsigned r, uint16_t avoid);
void tbd_place_written(struct tbd_translation *t, uint16_t registers);
/* A hardware register whose value may be destroyed. */
unsigned tbd_place_scratch(struct tbd_translation *t, uint16_t avoid);
/* Saves r (not r14, r15) to its slot; its hardware register is free then. */
void tbd_place_spill(struct tbd_translation *t, unsigned r);
/* Establishes TRANSLATE-2 for a block's exits. */
void tbd_place_finish(struct tbd_translation *t);

/* ---- reencode.c ---- */
/* Emits the instruction with r14, r15 replaced by their substitutes and rip-relative operands
 * re-displaced; `scratch` holds the operand's address if that is out of reach or relative to gs
 * base, else TBD_NO_REG. */
void tbd_reencode(struct tbd_translation *t, const struct tbd_insn *insn, unsigned scratch);
/* Emits the instruction with its slot in the thread block in place of insn->slot_form. */
void tbd_reencode_slot(struct tbd_translation *t, const struct tbd_insn *insn);

#endif
