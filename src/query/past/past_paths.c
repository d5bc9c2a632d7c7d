// SPDX-License-Identifier: MIT
/* past_paths.c - see past_paths.h
 *
 * A data flow over the function's instructions, from its first one on.  The state before an instruction is what all paths that lead to
 * it agree on: so where they meet, it only ever loses something, and this comes to an end.  What an instruction does comes from the same
 * equations that simulate it. */
#include "query/past/past_paths.h"

#include "query/debuginfo/register_names.h"
#include "replay/simulate/operations.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

enum { INSNS_MOST = 4096, TABLE = 16384, VISITS_MOST = 65536, LONGEST = 15 };

struct path_insn {
    struct tbd_sim_insn *insn; /* owned */
    struct tbd_paths before;
    bool is_waiting; /* in the list of those to be visited */
};

struct path_flow {
    struct tbd_session *session;
    struct tbd_past_pages *pages; /* may be NULL */
    uint64_t function;
    struct path_insn insns[INSNS_MOST];
    size_t count;
    uint16_t table[TABLE];        /* by address: 1 + the instruction's number; 0: free */
    uint16_t waiting[INSNS_MOST]; /* numbers of instructions */
    size_t waiting_count;
    bool failed; /* an edge leads to somewhere that is not known */
};

/* ---- the instructions ---- */

/* The slot of the instruction at the address, which may be free. */
static uint16_t *slot_of(struct path_flow *flow, uint64_t address)
{
    size_t at = (size_t)(address * 0x9e3779b97f4a7c15ull >> 50) % TABLE;

    while (flow->table[at] != 0 && flow->insns[flow->table[at] - 1].insn->address != address)
        at = (at + 1) % TABLE;
    return &flow->table[at];
}

static bool is_other_function(const struct path_flow *flow, uint64_t address)
{
    struct tbd_symbol symbol;

    return address != flow->function &&
           tbd_symbols_is_function_start(flow->session->symbols, 0, address) &&
           tbd_symbols_at(flow->session->symbols, 0, address, &symbol) && !symbol.is_part;
}

static struct tbd_sim_insn *decode(const struct path_flow *flow, uint64_t address)
{
    struct tbd_sim_insn *insn = NULL;
    uint8_t code[LONGEST];
    size_t bytes = tbd_symbols_read_file(flow->session->symbols, 0, address, code, sizeof(code));

    return bytes != 0 && tbd_insn_make(address, code, bytes, &insn) == TBD_OK ? insn : NULL;
}

/* ---- states ---- */

/* What both agree on; true: `at` has lost something. */
static bool meet(struct tbd_paths *at, const struct tbd_paths *with)
{
    bool changed = false;

    for (unsigned r = 0; r < TBD_PATHS_REGISTERS; r++) {
        uint64_t both = at->value[r].known & with->value[r].known &
                        ~(at->value[r].value ^ with->value[r].value);

        changed |= both != at->value[r].known;
        at->value[r] = tbd_bits_only(at->value[r], both);
        if (at->set_by[r] != with->set_by[r] && at->set_by[r] != TBD_PATHS_SEVERAL) {
            at->set_by[r] = TBD_PATHS_SEVERAL;
            changed = true;
        }
    }
    return changed;
}

static void wait(struct path_flow *flow, struct path_insn *at)
{
    if (at->is_waiting)
        return;
    at->is_waiting = true;
    flow->waiting[flow->waiting_count++] = (uint16_t)(at - flow->insns);
}

/* Control may go to the instruction with this state. */
static void go_to(struct path_flow *flow, uint64_t address, const struct tbd_paths *state)
{
    uint16_t *slot = slot_of(flow, address);
    struct path_insn *at = *slot != 0 ? &flow->insns[*slot - 1] : NULL;
    struct tbd_sim_insn *insn;

    if (at != NULL) {
        if (meet(&at->before, state))
            wait(flow, at);
        return;
    }
    if (is_other_function(flow, address)) /* a call at the end */
        return;
    insn = flow->count < INSNS_MOST ? decode(flow, address) : NULL;
    if (insn == NULL) {
        flow->failed = true;
        return;
    }
    at = &flow->insns[flow->count++];
    *slot = (uint16_t)flow->count;
    *at = (struct path_insn){ .insn = insn, .before = *state };
    wait(flow, at);
}

/* ---- what an instruction does ---- */

/* Memory that never changes. */
static void take_constants(const struct path_flow *flow, const struct tbd_sim_insn *insn,
                           struct tbd_solver *solver)
{
    for (size_t k = 0; k < insn->memory_count && flow->pages != NULL; k++) {
        const struct tbd_insn_memory *memory = &insn->memory[k];
        struct tbd_bits at = solver->slot[memory->address], word;
        uint64_t address = at.value + memory->offset;

        if (memory->write || memory->range || !tbd_bits_full(at) || address % 8 + memory->bytes > 8)
            continue;
        word = tbd_past_pages_constant(flow->pages, address & ~7ull);
        tbd_solver_learn(
            solver, memory->data,
            tbd_bits_cut(tbd_bits_right(word, 8 * (unsigned)(address % 8)), 8u * memory->bytes));
    }
}

static void set(struct tbd_paths *state, unsigned place, struct tbd_bits value, uint64_t by)
{
    if (place >= TBD_PATHS_REGISTERS)
        return;
    state->value[place] = value;
    state->set_by[place] = by;
}

static void do_call(struct tbd_paths *state, uint64_t by)
{
    for (unsigned r = 0; r < TBD_PATHS_REGISTERS; r++)
        if ((TBD_PATHS_KEPT >> r & 1) == 0 && r != TBD_RSP)
            set(state, r, (struct tbd_bits){ 0, 0 }, r == TBD_RAX ? by : TBD_PATHS_SEVERAL);
}

static void forget_all(struct tbd_paths *state)
{
    for (unsigned r = 0; r < TBD_PATHS_REGISTERS; r++)
        set(state, r, (struct tbd_bits){ 0, 0 }, TBD_PATHS_SEVERAL);
}

static struct tbd_paths state_after(const struct path_flow *flow, const struct path_insn *at)
{
    const struct tbd_sim_insn *insn = at->insn;
    struct tbd_paths after = at->before;
    struct tbd_solver solver;

    tbd_solver_begin(&solver, insn);
    for (size_t i = 0; i < insn->read_count; i++)
        if (insn->reads[i].place < TBD_PATHS_REGISTERS)
            tbd_solver_learn(&solver, insn->reads[i].slot, at->before.value[insn->reads[i].place]);
    tbd_solver_solve(&solver, insn);
    take_constants(flow, insn, &solver);
    tbd_solver_solve(&solver, insn);
    for (size_t i = 0; i < insn->copy_count; i++)
        set(&after, insn->copies[i].to,
            insn->copies[i].from < TBD_PATHS_REGISTERS ? at->before.value[insn->copies[i].from]
            : insn->copies[i].from == TBD_PLACE_COUNT  ? tbd_bits_of(0)
                                                       : (struct tbd_bits){ 0, 0 },
            insn->address);
    for (size_t i = 0; i < insn->write_count; i++)
        set(&after, insn->writes[i].place, solver.slot[insn->writes[i].slot], insn->address);
    if (insn->kind == TBD_INSN_HAVOC)
        forget_all(&after);
    return after;
}

static void visit(struct path_flow *flow, struct path_insn *at)
{
    const struct tbd_sim_insn *insn = at->insn;
    struct tbd_paths after = state_after(flow, at);
    uint64_t next = insn->address + insn->length;

    switch (insn->mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
        do_call(&after, insn->address);
        go_to(flow, next, &after);
        return;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_UD2: return;
    default: break;
    }
    if (insn->indirect) {
        flow->failed = true;
        return;
    }
    if (insn->target != 0)
        go_to(flow, insn->target, &after);
    if (insn->target == 0 || insn->conditional)
        go_to(flow, next, &after);
}

/* ---- the flow ---- */

static void run(struct path_flow *flow)
{
    static const struct tbd_paths nothing = { .function = 0 };

    go_to(flow, flow->function, &nothing);
    for (size_t i = 0; i < VISITS_MOST && flow->waiting_count != 0 && !flow->failed; i++) {
        struct path_insn *at = &flow->insns[flow->waiting[--flow->waiting_count]];

        at->is_waiting = false;
        visit(flow, at);
    }
    flow->failed |= flow->waiting_count != 0;
}

static void free_flow(struct path_flow *flow)
{
    for (size_t i = 0; i < flow->count; i++)
        tbd_insn_free(flow->insns[i].insn);
    free(flow);
}

bool tbd_paths_to(struct tbd_session *session, struct tbd_past_pages *pages, uint64_t pc,
                  struct tbd_paths *out)
{
    struct path_flow *flow;
    struct tbd_symbol symbol;
    uint16_t slot;

    if (!tbd_symbols_at(session->symbols, 0, pc, &symbol) || !symbol.is_function ||
        symbol.is_stub || symbol.is_part || symbol.start == pc)
        return false;
    flow = calloc(1, sizeof(*flow));
    if (flow == NULL)
        return false;
    flow->session = session;
    flow->pages = pages;
    flow->function = symbol.start;
    run(flow);
    slot = flow->failed ? 0 : *slot_of(flow, pc);
    if (slot != 0) {
        *out = flow->insns[slot - 1].before;
        out->function = symbol.start;
    }
    free_flow(flow);
    return slot != 0;
}
