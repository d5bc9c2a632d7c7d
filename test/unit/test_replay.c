// links: tbd_replay tbd_format tbd_base
// SPDX-License-Identifier: MIT
/* Partial replay of a trace that was made by hand: start-up of the replay process, memory from the
 * trace, system calls out of the log, registers at positions on block borders and inside blocks.
 *
 * The program is the code between replay_program and replay_program_end below, at PROGRAM.
 * Skipped (77) when there is no tbd-replay to run. */
#include "base/layout.h"
#include "format/window/window_make.h"
#include "format/writer/writer.h"
#include "replay/slices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PROGRAM 0x400000ull
#define DATA    0x600000ull
#define LOOPS   70000u /* more than fit into one entries area */
#define NOPS    70u    /* more than fit into one block */

extern const uint8_t replay_program[], replay_program_call[], replay_program_end[];

/* Block times: 0 = head (5 instructions); 1 .. LOOPS-1 = loop (4); then 64 nops; 6 nops, mov,
 * syscall; tail (2); the window ends. */
__asm__(".pushsection .text\n"
        "replay_program:\n"
        "    mov $70000, %ecx\n"
        "1:  add %rcx, %rax\n"
        "    mov %rax, (%rbx)\n"
        "    dec %ecx\n"
        "    jnz 1b\n"
        "    .rept 70\n"
        "    nop\n"
        "    .endr\n"
        "    mov $39, %eax\n"
        "replay_program_call:\n"
        "    syscall\n"
        "    mov (%rbx), %rdx\n"
        "    jmp replay_program\n"
        "replay_program_end:\n.popsection\n");

static char root[] = "/tmp/tbd-test-replay-XXXXXX";
static struct tbd_trace *trace;

/* ---- making the trace ---- */

static void put_region(struct tbd_writer *writer, uint64_t start, uint32_t prot)
{
    uint8_t message[sizeof(struct tbd_msg_region) + 1] = { 0 };
    struct tbd_msg_region region = {
        .start = start, .end = start + TBD_PAGE_SIZE, .prot = prot, .map_flags = 2
    };
    struct tbd_disk_when when = { 0 };

    memcpy(message, &region, sizeof(region));
    tbd_writer_event(writer, TBD_REC_REGION, &when, message, sizeof(message));
}

/* Size and contents of an image in XSAVE's standard format, all components in their initial state.
 * */
static uint32_t xsave_facts(uint64_t *out_mask)
{
    uint32_t eax, edx, a, b, c, d, bytes = 576;

    __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    *out_mask = ((uint64_t)edx << 32 | eax) & ~(3ull << 17);
    for (uint32_t i = 2; i < 63; i++) {
        if (!(*out_mask >> i & 1))
            continue;
        __cpuid_count(13, i, a, b, c, d);
        bytes = a + b > bytes ? a + b : bytes;
    }
    return bytes;
}

static uint8_t *xsave_image(uint32_t bytes, uint64_t mask)
{
    uint8_t *image = calloc(1, bytes);
    uint16_t fcw = 0x37f;
    uint32_t mxcsr = 0x1f80;

    memcpy(image, &fcw, 2);
    memcpy(image + 24, &mxcsr, 4);
    memcpy(image + 512, &mask, 8);
    return image;
}

static void put_start(struct tbd_writer *writer, uint32_t xsave_bytes, uint64_t mask)
{
    uint8_t message[sizeof(struct tbd_msg_start) + 16] = { 0 };
    struct tbd_msg_start start = { .pid = 1,
                                   .tid = 1,
                                   .xsave_bytes = xsave_bytes,
                                   .xcr0 = mask,
                                   .hook_set = TBD_HOOKS_PLAY,
                                   .engine_start = TBD_ENGINE_BASE };
    struct tbd_disk_config config = { .window_blocks = 1 << 20, .hook_set = TBD_HOOKS_PLAY };

    memcpy(message, &start, sizeof(start));
    memcpy(message + sizeof(start), "/bin/x\0/", 9);
    assert_int_equal(tbd_writer_start(writer, message, sizeof(message), &config), TBD_OK);
}

static void put_image(struct tbd_writer *writer)
{
    static uint8_t code[TBD_PAGE_SIZE], data[TBD_PAGE_SIZE];
    struct tbd_page_contents pages[2] = { { .address = PROGRAM, .bytes = code },
                                          { .address = DATA, .bytes = data } };

    memcpy(code, replay_program, (size_t)(replay_program_end - replay_program));
    assert_int_equal(tbd_writer_image(writer, NULL, pages, 2), TBD_OK);
}

static struct tbd_log_entry *getpid_log(struct tbd_window *window, uint64_t time, uint64_t number)
{
    struct {
        struct tbd_message head;
        struct tbd_msg_syscall call;
    } *message = tbd_window_memory(window, sizeof(*message));
    struct tbd_log_entry *log = tbd_window_memory(window, sizeof(*log));

    message->head = (struct tbd_message){ TBD_MSG_SYSCALL, sizeof(message->call) };
    message->call.number = number;
    message->call.result = 4711;
    log->time = time;
    log->message = &message->head;
    return log;
}

static void put_window(struct tbd_writer *writer, uint64_t call_number)
{
    struct tbd_block_table *table = tbd_block_table_new();
    struct tbd_window *window = tbd_window_new(table);
    struct tbd_window_summary counts = { .level = TBD_LEVEL_BITS };
    struct tbd_window_files files;
    uint64_t mask;
    uint32_t bytes = xsave_facts(&mask);
    uint8_t *image = xsave_image(bytes, mask);

    window->blocks = LOOPS + 3;
    window->complete = true;
    window->regs.rip = PROGRAM;
    window->regs.rflags = 0x202;
    window->regs.gpr[TBD_RBX] = DATA;
    window->regs.gpr[TBD_R14] = 14;
    window->regs.gpr[TBD_R15] = 15;
    window->regs.thread = 1;
    window->regs.xsave_bytes = bytes;
    window->end_regs = window->regs;
    window->xsave = window->end_xsave = image;
    window->log = getpid_log(window, LOOPS + 2, call_number);
    window->log_count = 1;
    assert_int_equal(
        tbd_writer_put_window(writer, window, &counts, &(struct tbd_window_extra){ 0 }, &files),
        TBD_OK);
    assert_int_equal(tbd_writer_commit_window(writer, &files), TBD_OK);
    tbd_window_free(window);
    tbd_block_table_release(table);
    free(image);
}

static void make_trace(const char *name, uint64_t call_number)
{
    struct tbd_msg_end end = { .how = TBD_ENDED_EXIT };
    struct tbd_writer *writer;
    struct tbd_error why;
    uint64_t mask;
    uint32_t bytes = xsave_facts(&mask);

    assert_int_equal(tbd_writer_new(root, name, &writer, &why), TBD_OK);
    put_start(writer, bytes, mask);
    put_region(writer, PROGRAM, 5);
    put_region(writer, DATA, 3);
    put_image(writer);
    put_window(writer, call_number);
    assert_int_equal(tbd_writer_end(writer, &end, "", NULL), TBD_OK);
    if (tbd_trace_open(tbd_writer_path(writer), &trace, &why))
        fail_msg("%s: %s: %s", tbd_status_text(why.status), why.file, why.detail);
    tbd_writer_free(writer);
}

static int open_good(void **state)
{
    (void)state;
    make_trace("good", 39);
    return 0;
}

static int open_bad(void **state)
{
    (void)state;
    make_trace("bad", 40);
    return 0;
}

static int close_trace(void **state)
{
    (void)state;
    tbd_trace_close(trace);
    return 0;
}

/* ---- tests ---- */

static uint64_t sum_after(uint64_t loops) /* of the values rcx had */
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < loops; i++)
        sum += LOOPS - i;
    return sum;
}

static void registers_at_positions(void **state)
{
    struct tbd_reg_state states[] = {
        { .position = { 0, 0 } },         { .position = { 0, 1 } },
        { .position = { 0, 3 } },         { .position = { 5, 0 } },
        { .position = { 5, 1 } },         { .position = { LOOPS - 1, 2 } },
        { .position = { LOOPS, 7 } },     { .position = { LOOPS, 9 } },
        { .position = { LOOPS + 1, 0 } }, { .position = { LOOPS + 1, 7 } },
        { .position = { LOOPS + 2, 0 } }, { .position = { LOOPS + 2, 1 } },
    };
    size_t count = sizeof(states) / sizeof(states[0]);
    uint64_t loop = PROGRAM + 5, nops = PROGRAM + 15;
    uint64_t call = PROGRAM + (uint64_t)(replay_program_call - replay_program);
    struct tbd_replayer *replayer;
    struct tbd_divergence divergence;
    struct tbd_error why = { 0 };

    (void)state;
    assert_int_equal(tbd_replayer_new(trace, 1, &replayer, &why), TBD_OK);
    for (int round = 0; round < 3; round++) { /* again with the warm process */
        if (tbd_replay_regs(replayer, 0, 0, NULL, states, count, &divergence, &why))
            fail_msg("%s: %s", tbd_status_text(why.status), why.detail);
        assert_int_equal(states[0].regs.rip, PROGRAM);
        assert_int_equal(states[1].regs.rip, loop);
        assert_int_equal(states[1].regs.gpr[TBD_RCX], LOOPS);
        assert_int_equal(states[2].regs.gpr[TBD_RAX], LOOPS);
        assert_int_equal(states[3].regs.rip, loop);
        assert_int_equal(states[3].regs.gpr[TBD_RAX], sum_after(5));
        assert_int_equal(states[4].regs.gpr[TBD_RAX], sum_after(6));
        assert_int_equal(states[5].regs.gpr[TBD_RCX], 1);
        assert_int_equal(states[6].regs.rip, nops + 7);
        assert_int_equal(states[7].regs.rip, nops + 9);
        assert_int_equal(states[8].regs.rip, nops + 64);
        assert_int_equal(states[9].regs.rip, call);
        assert_int_equal(states[9].regs.gpr[TBD_RAX], 39);
        assert_int_equal(states[10].regs.gpr[TBD_RAX], 4711);
        assert_int_equal(states[11].regs.gpr[TBD_RDX], sum_after(LOOPS));
        assert_int_equal(states[11].regs.gpr[TBD_R14], 14);
        assert_int_equal(states[11].regs.gpr[TBD_R15], 15);
    }
    tbd_replayer_free(replayer);
}

static void another_system_call_than_in_play_is_a_divergence(void **state)
{
    struct tbd_reg_state last = { .position = { LOOPS + 2, 1 } };
    struct tbd_divergence divergence = { .window = 7 };
    struct tbd_replayer *replayer;
    struct tbd_error why = { 0 };

    (void)state;
    assert_int_equal(tbd_replayer_new(trace, 1, &replayer, &why), TBD_OK);
    assert_int_equal(tbd_replay_regs(replayer, 0, 0, NULL, &last, 1, &divergence, &why),
                     TBD_DIVERGED);
    assert_int_equal(divergence.position.time, LOOPS + 1);
    assert_int_equal(divergence.window, 0);
    assert_non_null(strstr(divergence.what, "39 (getpid) where play had 40 (sendfile)"));
    tbd_replayer_free(replayer);
}

static void positions_outside_the_window_are_refused(void **state)
{
    struct tbd_reg_state late = { .position = { LOOPS + 4, 0 } };
    struct tbd_reg_state deep = { .position = { 3, 4 } };
    struct tbd_replayer *replayer;
    struct tbd_error why = { 0 };

    (void)state;
    assert_int_equal(tbd_replayer_new(trace, 1, &replayer, &why), TBD_OK);
    assert_int_equal(tbd_replay_regs(replayer, 0, 0, NULL, &late, 1, NULL, &why), TBD_NOTIME);
    assert_int_equal(tbd_replay_regs(replayer, 0, 0, NULL, &deep, 1, NULL, &why), TBD_NOTIME);
    assert_int_equal(tbd_replay_regs(replayer, 1, 0, NULL, &deep, 1, NULL, &why), TBD_USAGE);
    tbd_replayer_free(replayer);
}

/* The trace does not know its blocks, so that no slice is made; but its beginning is reported. */
static void a_long_window_is_cut_into_slices(void **state)
{
    struct tbd_replayer *replayer;
    struct tbd_slices *slices;
    struct tbd_window *slice;
    struct tbd_divergence divergence;
    struct tbd_error why = { 0 };

    (void)state;
    assert_int_equal(tbd_slice_count(trace, 0), 1);
    assert_int_equal(tbd_slice_of(trace, 0, LOOPS), 0);
    assert_int_equal(setenv("TBD_SLICE_BLOCKS", "30000", 1), 0);
    assert_int_equal(tbd_slice_count(trace, 0), 3);
    assert_int_equal(tbd_slice_count(trace, 1), 1);
    assert_int_equal(tbd_slice_of(trace, 0, 0), 0);
    assert_int_equal(tbd_slice_of(trace, 0, 29999), 0);
    assert_int_equal(tbd_slice_of(trace, 0, 30000), 1);
    assert_int_equal(tbd_slice_of(trace, 0, LOOPS + 3), 2);
    assert_int_equal(tbd_replayer_new(trace, 1, &replayer, &why), TBD_OK);
    assert_int_equal(tbd_slices_open(replayer, 0, 0, TBD_HOOKS_FULL, 2, 1, &slices, &why),
                     TBD_USAGE);
    assert_int_equal(tbd_slices_open(replayer, 0, 0, TBD_HOOKS_FULL, 3, 3, &slices, &why),
                     TBD_USAGE);
    assert_int_equal(tbd_slices_open(replayer, 1, 0, TBD_HOOKS_FULL, 0, 0, &slices, &why),
                     TBD_USAGE);
    assert_int_equal(tbd_slices_open(replayer, 0, 0, TBD_HOOKS_FULL, 1, 2, &slices, &why), TBD_OK);
    assert_int_equal(tbd_slices_next(slices, &slice, &divergence, &why), TBD_DIVERGED);
    assert_null(slice);
    assert_int_equal(divergence.position.time, 30000);
    assert_int_equal(tbd_slices_next(slices, &slice, &divergence, &why), TBD_NOTFOUND);
    tbd_slices_close(slices);
    tbd_replayer_free(replayer);
    unsetenv("TBD_SLICE_BLOCKS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(registers_at_positions, open_good, close_trace),
        cmocka_unit_test_setup_teardown(another_system_call_than_in_play_is_a_divergence, open_bad,
                                        close_trace),
        cmocka_unit_test_setup_teardown(positions_outside_the_window_are_refused, open_good,
                                        close_trace),
        cmocka_unit_test_setup_teardown(a_long_window_is_cut_into_slices, open_good, close_trace),
    };
    char *there = realpath("/proc/self/exe", NULL), path[4096], command[64];
    const char *set = getenv("TBD_REPLAY");
    int failed;

    if (!set) {
        char *slash = strrchr(there, '/');

        snprintf(path, sizeof(path), "%.*s/tbd-replay", (int)(slash - there), there);
        set = path;
    }
    free(there);
    if (access(set, X_OK)) {
        printf("skipped: no %s\n", set);
        return 77;
    }
    if (!mkdtemp(root))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command) || failed;
}
