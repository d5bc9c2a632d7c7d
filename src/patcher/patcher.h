// SPDX-License-Identifier: MIT
/* patcher.h - translated code: make it, link it, run it
 *
 * The patcher knows application code and patch areas; it does not know system calls, signals or
 * trace files.  The hook set and the templates in hooks/events/{block,store,load,call} decide what
 * translated code reports; the callbacks here decide what happens when it leaves.
 *
 * Contexts: BOOT for setup; APP (between blocks, on the engine stack) for the rest, unless noted.
 */
#ifndef TBD_PATCHER_PATCHER_H
#define TBD_PATCHER_PATCHER_H

#include "base/branching.h"
#include "patcher/thread.h"

#include <stdbool.h>

struct tbd_app_pc {
    uint64_t v; /* address in the traced program */
};
struct tbd_cache_pc {
    uint64_t v; /* address in a patch area */
};

/* A function whose branches count, at one of the places where its file is mapped. */
struct tbd_branches_at {
    const struct tbd_branch_function *function; /* borrowed for ever; NULL: none */
    uint64_t bias;                              /* of its file's offsets */
    enum tbd_branch_scheme scheme;
};

struct tbd_patcher_callbacks {
    /* A block was translated for the first time: give it an id (>= 1), publish its definition.
     * `ops` and `code` are borrowed for the call. */
    uint32_t (*define)(const struct tbd_block_def *def, const struct tbd_op *ops,
                       const uint8_t *code);
    /* May this byte range be executed?  Returns how many bytes from pc on are executable (0 = none;
     * the block ends before).  Replay: also makes the bytes present.  *out_changes: some of them
     * may change without a call of tbd_patcher_flush_range(), so every entry must compare. */
    uint64_t (*executable)(struct tbd_app_pc pc, uint64_t want, bool *out_changes);
    /* The eight bytes of the program's memory at `address`.  False: they cannot be read, or it is not known.
     * *out_constant: they change only with a call of tbd_patcher_flush_range().  May be NULL. */
    bool (*word)(uint64_t address, uint64_t *out, bool *out_constant);
    /* A block will be made from this many bytes, which may change (*out_changes above).  May be
     * NULL. */
    void (*looked)(struct tbd_app_pc start, uint32_t bytes);
    /* Reserve `bytes` (power of two) of address space for a patch area, RWX, within reach of
     * [lo, hi): every address of it within +-2 GiB of every address in it; lo == hi == 0: anywhere.
     * 0 on failure. */
    uint64_t (*reserve_area)(uint64_t lo, uint64_t hi, uint64_t bytes);
    /* Last instruction of a block is a system call or special: thread->regs is exact, regs.rip is
     * that instruction's address, `insn_bytes` its length.  The callback performs it, sets all
     * output registers and rip (normally rip + insn_bytes), sends its message.  TBD_SPECIAL_OTHER
     * with 0 bytes: no space for translated code; detach at regs.rip, do not return. */
    void (*syscall)(struct tbd_thread *thread, uint32_t insn_bytes);
    void (*special)(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes);
    /* The entries area is full, or a kick: called at the boundary before the block at regs.rip is
     * entered; all registers exact.  Hands over the chunk, ends windows, delivers signals (may
     * change regs, rip too), stops a replay. */
    void (*boundary)(struct tbd_thread *thread);
    /* The block at regs.rip, an asked place (patcher/asked_places.h), will be entered next; all registers
     * exact.  May change regs and rip.  Needed where there are such places. */
    void (*asked)(struct tbd_thread *thread);
    /* The block at regs.rip is about to be entered, and thread->record_in says that its registers, all exact,
     * are due.  Changes nothing but record_in.  Without the engine lock.  Needed if code records. */
    void (*record)(struct tbd_thread *thread);
    /* The block at regs.rip, which translated code has not found, is entered next; all registers exact.
     * Changes nothing.  Without the engine lock.  May be NULL. */
    void (*missed)(struct tbd_thread *thread);
    /* The bytes at regs.rip cannot be executed (TBD_END_FAULT): raise the signal, or detach. */
    void (*bad_code)(struct tbd_thread *thread);
    /* The indirect branch at regs.rip leads to what is no address: raise the branch's own fault.  All
     * registers are as before it, but its block's record is complete: `record_bytes` of it are
     * those of the instructions before. */
    void (*bad_target)(struct tbd_thread *thread, uint32_t record_bytes);
    /* Do addresses have more than 48 bits here?  NULL: no.  Context: SIG. */
    bool (*has_long_addresses)(void);
    /* The number of a call that returns to this address (base/calling.h).  Needed with a calling
     * scheme. */
    uint64_t (*call_number)(uint64_t return_address);
    /* The function that `pc` is in, if its branches count.  The same answer for the same code.  Needed to count
     * branches. */
    struct tbd_branches_at (*branches)(uint64_t pc);
    /* The stack may have been switched before a jump to `target`: the calling context's value, thread->calling_value, is to be found. */
    void (*switched)(struct tbd_thread *thread, uint64_t target);
    /* Translations are about to be forgotten.  May be NULL. */
    void (*forgetting)(void);
    /* Private decoder needs vector registers and its own TLS: run `fn(arg)` with them saved. */
    void (*with_vector_state)(void (*fn)(void *), void *arg);
};

struct tbd_codegen_config {
    uint32_t hook_set; /* TBD_HOOK_* */
    /* <= TBD_BLOCK_MAX_INSNS; part of a block's definition: same in play and replay */
    uint32_t max_insns;
    const struct tbd_note_site *notes; /* TBD_HOOK_NOTES: by pc, ascending; borrowed until the next
                                          configure or tbd_patcher_place_notes() */
    uint64_t note_count;
    bool
        omits_records; /* blocks are defined as with the hook set, but write only entries and touch marks */
    bool
        only_counts; /* with omits_records: of an entry nothing is written, its place is read (hooks/events/block.c) */
    uint32_t calling; /* enum tbd_calling_scheme; only in free run */
    bool
        counts_branches; /* with a calling scheme: of the functions that callbacks->branches knows */
    bool link;           /* false: every block leaves through the engine (testing) */
    bool odd_stack;      /* the patcher's own: rsp has been seen not to be a multiple of 8 */
    uint32_t area_bytes; /* of patch areas made from now on; power of two, 0 = 64 MiB (testing) */
    bool records; /* some blocks have a check whether registers are due (patcher/record_code.c) */
    bool
        is_free; /* threads run at the same time, and nothing is recorded or supplied: set at init */
};

/* Does each block note its id in a ring (format/stream/crash.h)? */
static inline bool tbd_codegen_has_ring(const struct tbd_codegen_config *config)
{
    return config->is_free && (config->hook_set & TBD_HOOK_BLOCKS);
}

/* Does the entry before the next one tell which block has run last? */
static inline bool tbd_codegen_entries_tell(const struct tbd_codegen_config *config)
{
    return (config->hook_set & TBD_HOOK_BLOCKS) && !config->only_counts;
}

/* The decoder library's functions that the patcher needs: in the engine those of the private
 * copy, in unit tests the ordinary library's.  Types as in Zydis/Decoder.h (4.0).  Only called
 * inside with_vector_state.  Set before tbd_patcher_init(). */
struct tbd_decoder_api {
    uint32_t (*init)(void *decoder, int machine_mode, int stack_width); /* ZydisDecoderInit */
    uint32_t (*decode_full)(const void *decoder, const void *bytes, uint64_t length,
                            void *instruction, void *operands); /* ZydisDecoderDecodeFull */
    /* ZydisDecoderDecodeInstruction; NULL: tbd_decode_length() is not called */
    uint32_t (*decode_instruction)(const void *decoder, void *context, const void *bytes,
                                   uint64_t length, void *instruction);
};
void tbd_patcher_set_decoder(const struct tbd_decoder_api *api);

/* Sets up in `arena` memory.  Callbacks are borrowed for ever.  False: no address space. */
bool tbd_patcher_init(const struct tbd_patcher_callbacks *callbacks,
                      const struct tbd_codegen_config *config);
/* After that, in play: makes the pages that even a short run uses, which is cheaper than a fault for each. */
void tbd_patcher_populate(void);
/* The same for the tables of a thread that is about to run translated code. */
void tbd_patcher_populate_thread(const struct tbd_thread *thread);
/* Changes the hook set: flushes every translation. */
void tbd_patcher_configure(const struct tbd_codegen_config *config);

/* The notes of the last configure have moved here. */
void tbd_patcher_place_notes(const struct tbd_note_site *notes);

/* Runs the program from thread->regs under translation.  Never returns; leaves only through a
 * callback that does not return.  gs base must be the thread's; call on any stack. */
_Noreturn void tbd_patcher_run(struct tbd_thread *thread);

/* Until the next call, blocks with the instruction at `pc` are made so that they fault (SIGILL)
 * just before it, with their usual record: for replay of a block that was left there.  0 = none.
 * Existing translations at the old and the new address are forgotten. */
void tbd_patcher_trap(struct tbd_thread *thread, uint64_t pc);

/* Until the next call, the engine is asked before each block that begins at `pc` (patcher/asked_places.h).  0 =
 * none.  As tbd_patcher_trap(). */
void tbd_patcher_ask(struct tbd_thread *thread, uint64_t pc);

/* A replay on another processor than the recording's, before anything is translated: a ud2 comes just
 * before each xrstor, which is somebody else's to carry out, and with `lacks_wide` before each
 * instruction that needs AVX-512, which this processor does not have. */
void tbd_patcher_vectors_differ(bool lacks_wide);

/* In free run, without the lock, at a boundary: from now on some blocks check whether registers are due, or none does. */
void tbd_patcher_record(struct tbd_thread *thread, bool records);
/* The same: it is asked before loads from these ranges (patcher/asked_loads.h). */
struct tbd_asked_range;
void tbd_patcher_ask_loads(struct tbd_thread *thread, const struct tbd_asked_range *ranges,
                           size_t count);

/* FORK_CHILD, in free run: the calling thread is the only one. */
void tbd_patcher_after_fork(void);

/* Code bytes in [start, end) changed or went away: forget translations that touch them. */
void tbd_patcher_flush_range(struct tbd_thread *thread, uint64_t start, uint64_t end);

/* May translations be made from memory in this range that is no code?  tbd_patcher_flush_range() forgets these, too. */
bool tbd_patcher_may_read(uint64_t start, uint64_t end);

/* For logs and tests. */
struct tbd_patcher_stats {
    uint64_t direct;     /* times translated code left: by a jump that was not linked yet, */
    uint64_t indirect;   /* by an indirect jump to an address that was not in the tables, */
    uint64_t ends;       /* for a system call, a special instruction or a fault */
    uint64_t boundaries; /* at a guard page */
    uint64_t flushes;    /* times everything was forgotten for lack of space */
    uint32_t blocks;     /* translations now */
    uint32_t areas;      /* patch areas */
};
struct tbd_patcher_stats tbd_patcher_stats(void);

/* Is this a cache address?  Any context (SIG). */
bool tbd_patcher_owns(uint64_t pc);

/* SIG context: where translated code was interrupted. */
enum tbd_interrupted {
    TBD_INT_NOT_CACHE, /* pc is not in a patch area or entry/exit code */
    TBD_INT_BOUNDARY, /* at a block's entry (its entry store), or between blocks: state = before the
                           block at state->rip */
    TBD_INT_INSIDE,   /* at or around instruction `insn` of block `id`: state = just before it;
                           ops of earlier instructions are recorded, `record_bytes` of operands
                           valid */
};
struct tbd_interruption {
    enum tbd_interrupted where;
    uint32_t id;
    uint32_t insn;
    uint32_t record_bytes;  /* operands of instructions 0..insn-1 */
    uint64_t entry_next;    /* r15, if that is not the program's; else as it was */
    uint64_t operand_next;  /* r14, likewise */
    uint64_t calling_value; /* as thread->calling_value will be there */
    uint64_t
        branch_mark; /* belongs one word below, so that the function's first block goes on; 0: none */
    bool
        has_branch_value; /* thread->branch_value belongs where state's rsp says (hooks/memory/branches.h) */
    uint32_t in_hook;    /* the faulting access was made by a hook, for that instruction */
    uint32_t misaligned; /* the instruction needs an aligned operand and does not have one: this
                            * fault comes before any fault of the hook */
};
/* Converts the registers of a signal frame (cache pc, live registers and flags in *cpu) into the program's
 * registers in *state, flags too, for any pc inside a patch area or the fixed entry/exit routines. */
struct tbd_interruption tbd_patcher_interrupted(struct tbd_thread *thread,
                                                const struct tbd_regs *cpu, struct tbd_regs *state);

/* Address of the program's instruction whose translation is at `cache_pc`; 0: none, or it is not
 * known any more.  APP. */
uint64_t tbd_patcher_program_pc(struct tbd_thread *thread, uint64_t cache_pc);

/* SIG context, the processor's signal with `trap` at cpu->rip.  Hooks and exits make unaligned
 * accesses; if the program has switched alignment checks on (AC), they are single-stepped without.
 * True: cpu->rflags were changed, go on there. */
bool tbd_patcher_step(struct tbd_thread *thread, struct tbd_regs *cpu, uint64_t trap);

/* SIG context, after `kick` was set: the signal interrupted code that may enter translated code without
 * looking at `kick` again; changes *cpu so that it does not.  In translated code itself the caller finds the
 * registers (tbd_patcher_interrupted). */
void tbd_patcher_hurry(struct tbd_thread *thread, struct tbd_regs *cpu);

/* SIG context, fault on the guard page after the entries area: `cache_pc` is the frame's rip, a
 * block's entry store.  Returns the address to continue at (new rip of the frame) so that
 * `boundary` is called and then the block entered. */
uint64_t tbd_patcher_boundary_exit(struct tbd_thread *thread, uint64_t cache_pc);

/* Translates the first `insns` instructions of the block at `pc` only and then calls `boundary`
 * with exact registers in the middle of the block: partial replay to TIME+K.  The next
 * tbd_patcher_run iteration runs it once. */
void tbd_patcher_stop_inside(struct tbd_thread *thread, struct tbd_app_pc pc, uint32_t insns);

#endif
