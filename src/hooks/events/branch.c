// SPDX-License-Identifier: MIT
/* branch.c - the branch context (base/branching.h): a function's value lies at a place that follows from rsp
 * (hooks/memory/branches.h)
 *
 *     mov m, 8 TiB - 1 ; pext a, rsp, m ; mov m, base ; lea a, [a + m]       where
 *     mov v, [a] ; ... ; mov [a], v                                          a branch is taken
 *
 * The store is the one instruction that completes it. */
#include "patcher/templates.h"

#define HOME_MASK (TBD_BRANCHES_BYTES - 1)

static struct tbd_ea at(unsigned base, int32_t disp)
{
    return (struct tbd_ea){ .disp = disp, .base = (uint8_t)base, .index = TBD_NO_REG, .scale = 1 };
}

static struct tbd_ea sum_of(unsigned one, unsigned other, unsigned scale, int32_t disp)
{
    return (struct tbd_ea){
        .disp = disp, .base = (uint8_t)one, .index = (uint8_t)other, .scale = (uint8_t)scale
    };
}

static void find_home(struct tbd_emit *e, const struct tbd_branch_scratch *s)
{
    struct tbd_ea home = sum_of(s->a, s->m, 1, 0);

    tbd_emit_mov_imm(e, s->m, HOME_MASK);
    tbd_emit_pext(e, s->a, TBD_RSP, s->m);
    tbd_emit_mov_imm(e, s->m, TBD_BRANCHES_BASE);
    tbd_emit_lea(e, s->a, &home);
}

/* dst = 1 if it was not 0 */
static void test_zero(struct tbd_emit *e, unsigned dst, unsigned one)
{
    tbd_emit_mov_imm(e, one, 1);
    tbd_emit_pdep(e, dst, one, dst); /* its lowest bit */
    tbd_emit_pext(e, dst, dst, dst);
}

/* v = the value so far, if the mark of a round is there; else that of a new call */
static void begin_or_go_on(struct tbd_emit *e, enum tbd_branch_scheme scheme, uint64_t mark,
                           const struct tbd_branch_scratch *s)
{
    struct tbd_ea home = at(s->a, 0), marked = at(s->a, -8), less = at(s->t, -1);
    struct tbd_ea difference = sum_of(s->v, s->t, 1, 0), begins = sum_of(s->v, s->m, 1, 0);

    tbd_emit_load(e, s->v, &marked, 8);
    tbd_emit_mov_imm(e, s->t, 0 - mark);
    tbd_emit_lea(e, s->m, &difference);
    test_zero(e, s->m, s->t); /* 1: a new call */
    tbd_emit_mov(e, s->t, s->m);
    tbd_emit_lea(e, s->t, &less);
    tbd_emit_load(e, s->v, &home, 8);
    tbd_emit_pext(e, s->v, s->v, s->t);
    if (tbd_branch_initial(scheme))
        tbd_emit_lea(e, s->v, &begins);
}

void tbd_hook_branch_begin(struct tbd_emit *e, enum tbd_branch_scheme scheme,
                           const struct tbd_branch_function *f, bool moves,
                           const struct tbd_branch_scratch *s)
{
    struct tbd_ea home = at(s->a, 0), marked = at(s->a, -8);

    if (!moves || f->begins_again)
        find_home(e, s);
    if (f->begins_again)
        begin_or_go_on(e, scheme, tbd_branch_mark(f), s);
    else
        tbd_emit_mov_imm(e, s->v, tbd_branch_initial(scheme));
    if (moves)
        tbd_emit_store_gs(e, s->v, TBD_THREAD_GS(branch_value));
    else
        tbd_emit_store(e, s->v, &home, 8);
    if (!f->begins_again)
        return;
    tbd_emit_mov_imm(e, s->m, 0);
    tbd_emit_store(e, s->m, &marked, 8); /* last: until then all of it can be done once more */
}

void tbd_hook_branch_mark(struct tbd_emit *e, const struct tbd_branch_function *f,
                          const struct tbd_branch_scratch *s)
{
    struct tbd_ea marked = at(s->a, -8);

    find_home(e, s);
    tbd_emit_mov_imm(e, s->m, tbd_branch_mark(f));
    tbd_emit_store(e, s->m, &marked, 8);
}

void tbd_hook_branch_pick_up(struct tbd_emit *e, const struct tbd_branch_scratch *s)
{
    struct tbd_ea home = at(s->a, 0);

    find_home(e, s);
    tbd_emit_load(e, s->a, &home, 8);
    tbd_emit_store_gs(e, s->a, TBD_THREAD_GS(branch_value));
}

void tbd_hook_branch_put_down(struct tbd_emit *e, const struct tbd_branch_scratch *s)
{
    struct tbd_ea home = at(s->a, 0);

    find_home(e, s);
    tbd_emit_load_gs(e, s->m, TBD_THREAD_GS(branch_value));
    tbd_emit_store(e, s->m, &home, 8);
}

/* v += 1 in the field, unless that is full */
static void count(struct tbd_emit *e, const struct tbd_branch_scratch *s, uint64_t field)
{
    struct tbd_ea next = sum_of(s->v, s->t, 1, 0);

    tbd_emit_mov_imm(e, s->m, field);
    tbd_emit_mov(e, s->t, s->v);
    tbd_emit_not(e, s->t);
    tbd_emit_pext(e, s->t, s->t, s->m); /* how often it can still be counted */
    test_zero(e, s->t, s->m);
    tbd_emit_mov_imm(e, s->m, field);
    tbd_emit_pdep(e, s->t, s->t, s->m);
    tbd_emit_lea(e, s->v, &next);
}

/* rdx *= prime; 0 if that has more than 64 bits */
static void multiply(struct tbd_emit *e, const struct tbd_branch_scratch *s, uint32_t prime)
{
    struct tbd_ea less = at(s->m, -1);

    tbd_emit_mov_imm(e, s->m, prime);
    tbd_emit_mulx(e, s->m, s->t, s->m);
    test_zero(e, s->m, s->v);
    tbd_emit_lea(e, s->m, &less); /* all bits, or none */
    tbd_emit_pext(e, s->v, s->t, s->m);
}

void tbd_hook_branch_take(struct tbd_emit *e, enum tbd_branch_scheme scheme,
                          const struct tbd_branch_function *f, unsigned index,
                          const struct tbd_branch_scratch *s)
{
    struct tbd_ea home = at(s->a, 0), sum = sum_of(s->v, s->m, 1, 0);

    find_home(e, s);
    tbd_emit_load(e, s->v, &home, 8);
    if (scheme == TBD_BRANCH_COUNTS)
        count(e, s, tbd_branch_field(f, index));
    else if (scheme == TBD_BRANCH_PRODUCT)
        multiply(e, s, tbd_branch_prime(index));
    else
        tbd_emit_mov_imm(e, s->m, tbd_branch_number(f, index));
    if (scheme == TBD_BRANCH_SUM)
        tbd_emit_lea(e, s->v, &sum);
    if (scheme == TBD_BRANCH_XOR)
        tbd_hook_xor(e, s->v, s->m, s->t);
    tbd_emit_store(e, s->v, &home, 8);
}

void tbd_hook_branch_call(struct tbd_emit *e, uint64_t return_address,
                          const struct tbd_branch_scratch *s)
{
    struct tbd_ea callee = at(s->a, -8);

    find_home(e, s);
    tbd_emit_mov_imm(e, s->m, return_address);
    tbd_emit_store(e, s->m, &callee, 8);
}

void tbd_hook_branch_tell(struct tbd_emit *e, const struct tbd_branch_scratch *s)
{
    struct tbd_ea caller = at(s->a, 8), own = at(s->a, 0), stack = at(TBD_RSP, 0);
    struct tbd_ea difference = sum_of(s->t, s->m, 1, 1), less = at(s->t, -1);

    find_home(e, s);
    tbd_emit_load(e, s->v, &caller, 8);
    tbd_emit_load(e, s->m, &own, 8);
    tbd_emit_load(e, s->t, &stack, 8);
    tbd_emit_not(e, s->m);
    tbd_emit_lea(e, s->t, &difference); /* 0: a chosen function has called from there */
    test_zero(e, s->t, s->m);
    tbd_emit_lea(e, s->t, &less);
    tbd_emit_pext(e, TBD_RAX, s->v, s->t);
}
