// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* Call stacks against a shadow stack: a child is single-stepped through library code, and after
 * every instruction the unwound return addresses must be those that its call instructions
 * pushed. */
#include "query/session/code/stack.h"

#include "live_process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include <Zydis/Zydis.h>
#include <cmocka.h>

#define SHADOW_MAX 256

struct shadow {
    uint64_t returns[SHADOW_MAX];
    size_t depth;
};

/* ---- what the child does ---- */

static volatile int numbers[24];

static int by_value(const void *left, const void *right)
{
    const int *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

__attribute__((noinline)) static int recurse(int n)
{
    char text[32];

    if (n == 0)
        return 0;
    return recurse(n - 1) + snprintf(text, sizeof(text), "%d %s", n, "x");
}

__attribute__((noinline)) static int body_library(void)
{
    char *copy;
    int sum;

    for (int i = 0; i < 24; i++)
        numbers[i] = i * 7 % 24;
    qsort((void *)(uintptr_t)numbers, 24, sizeof(int), by_value);
    sum = recurse(5);
    copy = strdup("some text");
    sum += (int)strlen(copy) + (int)strtol("1234", NULL, 10);
    free(copy);
    return sum & 0x7f;
}

__attribute__((noinline)) static void on_signal(int signo)
{
    raise(SIGSTOP);
    numbers[0] = signo; /* no tail call */
}

__attribute__((noinline)) static int body_signal(void)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    return 0;
}

/* This function has no frame information and no frame pointer: only the marked heuristics can
 * unwind it. */
__asm__(".pushsection .text\n"
        ".type no_cfi, @function\n"
        "no_cfi:\n"
        "  sub $40, %rsp\n"
        "  call *%rdi\n"
        "  add $40, %rsp\n"
        "  ret\n"
        ".size no_cfi, .-no_cfi\n.popsection\n");
void no_cfi(void (*f)(void));

static void stop_here(void)
{
    raise(SIGSTOP);
    numbers[0] = 0;
}

__attribute__((noinline)) static int body_no_cfi(void)
{
    no_cfi(stop_here);
    return 0;
}

/* ---- stepping ---- */

static void follow(struct shadow *shadow, struct live *live, const struct tbd_regs *regs,
                   ZydisDecoder *decoder)
{
    ZydisDecodedInstruction insn;
    uint8_t code[16];
    size_t bytes = sizeof(code);

    while (bytes && !live_read(live, regs->rip, code, bytes))
        bytes--;
    assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, code, bytes, &insn)));
    if (insn.meta.category == ZYDIS_CATEGORY_CALL) {
        assert_true(shadow->depth < SHADOW_MAX);
        shadow->returns[shadow->depth++] = regs->rip + insn.length;
    } else if (insn.meta.category == ZYDIS_CATEGORY_RET && shadow->depth) {
        shadow->depth--;
    }
}

static bool step_live(struct live *live)
{
    int status;

    return ptrace(PTRACE_SINGLESTEP, live->pid, 0, 0) == 0 &&
           waitpid(live->pid, &status, 0) == live->pid && WIFSTOPPED(status);
}

static void resume_to_stop(struct live *live)
{
    int status, signo = 0;

    do {
        assert_int_equal(ptrace(PTRACE_CONT, live->pid, 0, signo), 0);
        assert_int_equal(waitpid(live->pid, &status, 0), live->pid);
        assert_true(WIFSTOPPED(status));
        signo = WSTOPSIG(status);
    } while (signo != SIGSTOP);
}

static const char *name_of(struct tbd_symbols *symbols, uint64_t address)
{
    struct tbd_symbol symbol;

    return tbd_symbols_at(symbols, 0, address, &symbol) && symbol.name ? symbol.name : "?";
}

static void compare(struct tbd_symbols *symbols, const struct shadow *shadow,
                    const struct tbd_regs *regs, const struct tbd_frame *frames, size_t count)
{
    char where[256];

    for (size_t i = 0; i < shadow->depth; i++) {
        uint64_t expected = shadow->returns[shadow->depth - 1 - i];

        if (i + 1 < count && frames[i + 1].pc == expected && !tbd_frame_is_guess(&frames[i + 1]))
            continue;
        fail_msg("at %s: frame %zu of %zu is 0x%" PRIx64 " (how %d), expected 0x%" PRIx64,
                 tbd_symbols_format(symbols, 0, regs->rip, where, sizeof(where)), i + 1, count,
                 i + 1 < count ? frames[i + 1].pc : 0, i + 1 < count ? (int)frames[i + 1].how : -1,
                 expected);
    }
}

static void every_instruction_of_library_code_has_the_right_callers(void **state)
{
    struct tbd_stack_memory memory = { .read = live_read, .context = NULL };
    struct shadow shadow = { .depth = 0 };
    struct tbd_frame frames[SHADOW_MAX];
    struct tbd_symbols *symbols;
    ZydisDecoder decoder;
    struct live live;
    size_t count, steps = 0, deepest = 0;
    bool inside = false;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its interceptors load libraries after the child's regions were read */
#endif
    assert_true(live_start(&live, body_library));
    memory.context = &live;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    assert_int_equal(tbd_symbols_new_fixed(live.regions, live.region_count, &symbols), TBD_OK);
    while (step_live(&live)) {
        struct tbd_regs regs = live_regs(&live);

        if (regs.rip == (uint64_t)(uintptr_t)body_library)
            inside = true;
        if (!inside)
            continue;
        assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, SHADOW_MAX, &count),
                         TBD_OK);
        compare(symbols, &shadow, &regs, frames, count);
        deepest = shadow.depth > deepest ? shadow.depth : deepest;
        follow(&shadow, &live, &regs, &decoder);
        steps++;
        if (shadow.depth == 0 && strcmp(name_of(symbols, regs.rip), "_exit") == 0)
            break;
    }
    printf("%zu instructions, up to %zu frames\n", steps, deepest);
    assert_true(steps > 3000);
    assert_true(deepest >= 8);
    tbd_symbols_free(symbols);
    live_end(&live);
}

static size_t unwind_live(struct live *live, struct tbd_symbols *symbols, struct tbd_frame *frames)
{
    struct tbd_stack_memory memory = { .read = live_read, .context = live };
    struct tbd_regs regs = live_regs(live);
    size_t count;

    assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, SHADOW_MAX, &count),
                     TBD_OK);
    return count;
}

static size_t index_of(struct tbd_symbols *symbols, const struct tbd_frame *frames, size_t count,
                       const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name_of(symbols, frames[i].call_pc), name) == 0)
            return i;
    return SIZE_MAX;
}

static void a_signal_frame_leads_to_the_interrupted_code(void **state)
{
    struct tbd_frame frames[SHADOW_MAX];
    struct tbd_symbols *symbols;
    struct live live;
    size_t count, handler, body;

    (void)state;
    assert_true(live_start(&live, body_signal));
    resume_to_stop(&live);
    assert_int_equal(tbd_symbols_new_fixed(live.regions, live.region_count, &symbols), TBD_OK);
    count = unwind_live(&live, symbols, frames);
    handler = index_of(symbols, frames, count, "on_signal");
    body = index_of(symbols, frames, count, "body_signal");
    assert_true(handler < body && body < count);
    assert_true(frames[handler + 1].is_signal_frame);
    assert_false(frames[handler].is_signal_frame);
    assert_true(frames[handler + 2].call_pc == frames[handler + 2].pc);
    assert_true(index_of(symbols, frames, count, "main") < count);
    tbd_symbols_free(symbols);
    live_end(&live);
}

static void code_without_information_is_left_by_a_marked_guess(void **state)
{
    struct tbd_frame frames[SHADOW_MAX];
    struct tbd_symbols *symbols;
    struct live live;
    size_t count, at, body;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the guess depends on what its red zones leave on the stack */
#endif
    assert_true(live_start(&live, body_no_cfi));
    resume_to_stop(&live);
    assert_int_equal(tbd_symbols_new_fixed(live.regions, live.region_count, &symbols), TBD_OK);
    count = unwind_live(&live, symbols, frames);
    at = index_of(symbols, frames, count, "no_cfi");
    body = index_of(symbols, frames, count, "body_no_cfi");
    assert_true(at < body && body < count);
    assert_false(tbd_frame_is_guess(&frames[at]));
    assert_true(tbd_frame_is_guess(&frames[at + 1]));
    tbd_symbols_free(symbols);
    live_end(&live);
}

static void a_call_through_a_wild_pointer_shows_its_caller(void **state)
{
    struct tbd_frame frames[SHADOW_MAX];
    struct tbd_symbols *symbols;
    struct tbd_regs regs;
    struct live live;
    struct tbd_stack_memory memory = { .read = live_read, .context = &live };
    size_t count, last;

    (void)state;
    assert_true(live_start(&live, body_no_cfi));
    assert_int_equal(tbd_symbols_new_fixed(live.regions, live.region_count, &symbols), TBD_OK);
    last = unwind_live(&live, symbols, frames) - 1;
    regs = live_regs(&live);
    /* As if the innermost function's caller had called address 0: its return address is on top. */
    regs.gpr[TBD_RSP] = frames[0].cfa - 8;
    regs.rip = 0;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        if (r != TBD_RSP)
            regs.gpr[r] = frames[1].gpr[r];
    assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, SHADOW_MAX, &count),
                     TBD_OK);
    assert_int_equal(frames[1].how, TBD_FRAME_ENTRY);
    assert_int_equal(count - 1, last);
    assert_true(index_of(symbols, frames, count, "main") < count);
    tbd_symbols_free(symbols);
    live_end(&live);
}

static bool read_nothing(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)context, (void)address, (void)out, (void)bytes;
    return false;
}

/* Memory in which every frame leads back to itself. */
static bool read_same(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)address;
    memcpy(out, context, bytes < 8 ? bytes : 8);
    return bytes <= 8;
}

/* ---- expressions in frame information ---- */

/* Operator (DW_OP_*), its operands as bytes with a sign, its result. */
// clang-format off
#define EXPRESSIONS(X) \
    X(0x1a, 6, 3, 2) X(0x21, 6, 3, 7) X(0x27, 6, 3, 5) X(0x22, 6, 3, 9) X(0x1c, 6, 3, 3) \
    X(0x1e, 6, 3, 18) X(0x24, 3, 2, 12) X(0x25, 13, 2, 3) X(0x29, 3, 2, 0) X(0x29, 3, 3, 1) \
    X(0x2e, 3, 2, 1) X(0x2e, 3, 3, 0) X(0x2a, 2, 3, 0) X(0x2a, 3, 3, 1) X(0x2a, 3, 2, 1) \
    X(0x2b, 2, 3, 0) X(0x2b, 3, 3, 0) X(0x2b, 3, 2, 1) X(0x2c, 2, 3, 1) X(0x2c, 3, 3, 1) \
    X(0x2c, 3, 2, 0) X(0x2d, 2, 3, 1) X(0x2d, 3, 3, 0) X(0x2d, 3, 2, 0) X(0x2d, 0xff, 1, 1) \
    X(0x2b, 0xff, 1, 0) X(0x2a, 1, 0xff, 1) X(0x2c, 1, 0xff, 0)
// clang-format on

/* At each nop the frame begins at rsp + 8 + 8 * (a OP b). */
#define AT_A_NOP(op, a, b, result)                                                                 \
    ".cfi_escape 0x0f, 12, 0x77, 0, 0x09, " #a ", 0x09, " #b ", " #op                              \
    ", 0x33, 0x24, 0x22, 0x23, 8\n  nop\n"

__asm__(".pushsection .text\n"
        ".type with_expressions, @function\n"
        "with_expressions:\n"
        ".cfi_startproc\n" EXPRESSIONS(
            AT_A_NOP) "  ret\n"
                      ".cfi_endproc\n"
                      ".size with_expressions, .-with_expressions\n.popsection\n");
void with_expressions(void);

#define STACK_WORDS 32u

/* Word i of the stack is the address of instruction i of recurse(): each is a caller of its own. */
static uint64_t caller(uint64_t i)
{
    return (uint64_t)(uintptr_t)recurse + 1 + i;
}

static bool read_callers(void *context, uint64_t address, void *out, size_t bytes)
{
    uint64_t word = (address - *(const uint64_t *)context) / 8, value = caller(word);

    if (word >= STACK_WORDS || bytes != 8)
        return false;
    memcpy(out, &value, sizeof(value));
    return true;
}

static void operators_of_frame_information_give_the_caller(void **state)
{
#define RESULT(op, a, b, result) result,
    static const uint64_t wanted[] = { EXPRESSIONS(RESULT) };
    struct tbd_regs regs = { .gpr[TBD_RSP] = 0x7ffff000 };
    struct tbd_stack_memory memory = { .read = read_callers, .context = &regs.gpr[TBD_RSP] };
    struct tbd_frame frames[8];
    struct tbd_symbols *symbols;
    struct live live;
    size_t count;

    (void)state;
    assert_true(live_start(&live, body_no_cfi));
    assert_int_equal(tbd_symbols_new_fixed(live.regions, live.region_count, &symbols), TBD_OK);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        regs.rip = (uint64_t)(uintptr_t)with_expressions + i;
        assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, 8, &count), TBD_OK);
        assert_true(count >= 2);
        assert_int_equal(frames[0].cfa, regs.gpr[TBD_RSP] + 8 + 8 * wanted[i]);
        assert_int_equal(frames[1].pc, caller(wanted[i]));
        assert_false(tbd_frame_is_guess(&frames[1]));
    }
    tbd_symbols_free(symbols);
    live_end(&live);
}

static void hostile_memory_ends_the_walk(void **state)
{
    struct tbd_stack_memory memory = { .read = read_nothing, .context = NULL };
    struct tbd_frame frames[16];
    struct tbd_symbols *symbols;
    struct tbd_regs regs;
    struct live live;
    size_t count;

    (void)state;
    assert_true(live_start(&live, body_no_cfi));
    regs = live_regs(&live);
    assert_int_equal(tbd_symbols_new_fixed(live.regions, live.region_count, &symbols), TBD_OK);
    assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, 16, &count), TBD_OK);
    assert_int_equal(count, 1);
    memory = (struct tbd_stack_memory){ .read = read_same, .context = &regs.rip };
    assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, 16, &count), TBD_OK);
    assert_in_range(count, 1, 16);
    regs.gpr[TBD_RSP] = UINT64_MAX - 7;
    regs.rip = 0;
    assert_int_equal(tbd_stack_unwind(symbols, 0, &regs, &memory, frames, 16, &count), TBD_OK);
    assert_in_range(count, 1, 16);
    tbd_symbols_free(symbols);
    live_end(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_of_library_code_has_the_right_callers),
        cmocka_unit_test(a_signal_frame_leads_to_the_interrupted_code),
        cmocka_unit_test(code_without_information_is_left_by_a_marked_guess),
        cmocka_unit_test(a_call_through_a_wild_pointer_shows_its_caller),
        cmocka_unit_test(operators_of_frame_information_give_the_caller),
        cmocka_unit_test(hostile_memory_ends_the_walk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
