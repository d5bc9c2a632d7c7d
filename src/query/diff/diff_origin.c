// SPDX-License-Identifier: MIT
/* diff_origin.c - see diff_origin.h */
#include "query/diff/diff_origin.h"

#include "base/escape.h"
#include "hooks/table/syscalls.h"
#include "query/session/main_stack.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#define TEXT_MAX 160u

/* ---- memory ---- */

static const struct tbd_region *region_at(struct tbd_diff_side *side, struct tbd_position at,
                                          uint64_t address)
{
    uint32_t window = tbd_trace_window_of(side->session.trace, at.time);
    const struct tbd_region *regions;
    struct tbd_error why;
    size_t count;

    if (window == UINT32_MAX ||
        tbd_trace_regions(side->session.trace, window, &regions, &count, &why) != TBD_OK)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (regions[i].start <= address && address < regions[i].end)
            return &regions[i];
    }
    return NULL;
}

enum tbd_diff_memory tbd_diff_memory_at(struct tbd_diff_side *side, struct tbd_position at,
                                        uint64_t address)
{
    const struct tbd_region *region = region_at(side, at, address);

    if (tbd_is_on_main_stack(&side->session, address))
        return TBD_DIFF_MEMORY_STACK;
    if (region == NULL)
        return TBD_DIFF_MEMORY_NONE;
    if (region->path[0] != '\0' && region->path[0] != '[')
        return TBD_DIFF_MEMORY_FILE;
    return (region->flags & TBD_REGION_HEAP) != 0 ? TBD_DIFF_MEMORY_HEAP : TBD_DIFF_MEMORY_OTHER;
}

/* ---- system calls and instructions ---- */

static bool is_one_of(uint64_t number, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == number)
            return true;
    }
    return false;
}

static enum tbd_diff_origin kind_of_call(uint64_t number)
{
    static const uint64_t times[] = { SYS_clock_gettime, SYS_gettimeofday, SYS_time,
                                      SYS_times,         SYS_getrusage,    SYS_clock_getres };
    static const uint64_t pids[] = { SYS_getpid,  SYS_getppid, SYS_gettid,         SYS_fork,
                                     SYS_vfork,   SYS_clone,   SYS_clone3,         SYS_wait4,
                                     SYS_getpgrp, SYS_getsid,  SYS_set_tid_address };
    static const uint64_t addresses[] = { SYS_mmap, SYS_brk, SYS_mremap };

    if (is_one_of(number, times, sizeof(times) / sizeof(times[0])))
        return TBD_DIFF_TIME;
    if (is_one_of(number, pids, sizeof(pids) / sizeof(pids[0])))
        return TBD_DIFF_PID;
    return is_one_of(number, addresses, sizeof(addresses) / sizeof(addresses[0])) ? TBD_DIFF_ADDRESS
                                                                                  : TBD_DIFF_INPUT;
}

/* The first byte of the value that differs. */
static uint64_t first_difference(struct tbd_diff_side sides[2],
                                 const struct tbd_diff_value values[2])
{
    uint8_t a[TBD_DIFF_BYTES_MAX], b[TBD_DIFF_BYTES_MAX];
    size_t of_a = tbd_diff_value_read(&sides[0], &values[0], a);
    size_t of_b = tbd_diff_value_read(&sides[1], &values[1], b), at = 0;

    while (at < of_a && at < of_b && a[at] == b[at])
        at++;
    return at;
}

static void say_call(struct tbd_diff_side sides[2], const struct tbd_diff_writer writers[2],
                     const struct tbd_diff_value values[2], char *text, size_t bytes)
{
    const struct tbd_event *a = &writers[0].call, *b = &writers[1].call;
    const char *name = tbd_syscall_name(a->number);
    int used = snprintf(text, bytes, "the system call %s", name == NULL ? "?" : name);

    if (values[0].place != TBD_WHY_MEMORY)
        snprintf(text + used, bytes - (size_t)used,
                 " returned %" PRId64 " in A and %" PRId64 " in B", (int64_t)a->retval,
                 (int64_t)b->retval);
    else if (a->number == SYS_read || a->number == SYS_pread64 || a->number == SYS_recvfrom)
        snprintf(text + used, bytes - (size_t)used,
                 "(%" PRIu64 ", ...) gave other bytes, from number %" PRIu64 " of what it read",
                 a->args[0], values[0].address - a->args[1] + first_difference(sides, values));
    else
        snprintf(text + used, bytes - (size_t)used, " gave other bytes");
}

/* An instruction whose result is the processor's alone. */
static enum tbd_diff_origin kind_of_instruction(const struct tbd_diff_writer *writer)
{
    if (!writer->is_decoded)
        return TBD_DIFF_NOT_FOUND;
    switch (writer->insn.insn.mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP: return TBD_DIFF_TIME;
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_XGETBV:
    case ZYDIS_MNEMONIC_RDPID: return TBD_DIFF_INPUT;
    default: return TBD_DIFF_NOT_FOUND;
    }
}

/* ---- what was there at the start ---- */

/* The string around an address, as in "NAME=value". */
static bool text_around(struct tbd_diff_side *side, const struct tbd_diff_value *value, char *out,
                        size_t bytes)
{
    char raw[TEXT_MAX];
    uint64_t start = value->address;
    char letter;

    while (value->address - start < TEXT_MAX / 2 &&
           tbd_session_read(&side->session, value->at, start - 1, &letter, 1) == TBD_OK &&
           letter != '\0')
        start--;
    memset(raw, 0, sizeof(raw));
    for (size_t i = 0; i + 1 < sizeof(raw); i++)
        if (tbd_session_read(&side->session, value->at, start + i, &raw[i], 1) != TBD_OK ||
            raw[i] == '\0')
            break;
    for (const char *at = raw; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f)
            return false;
    (void)tbd_escape(TBD_ESCAPE_FIELD, raw, strlen(raw), out, bytes);
    return raw[0] != '\0';
}

static enum tbd_diff_origin say_start(struct tbd_diff_side sides[2],
                                      const struct tbd_diff_value values[2], char *text,
                                      size_t bytes)
{
    char found[2][TEXT_MAX * TBD_ESCAPE_MAX + 1];
    enum tbd_diff_memory kind = tbd_diff_memory_at(&sides[0], values[0].at, values[0].address);

    if (kind == TBD_DIFF_MEMORY_FILE) {
        snprintf(text, bytes, "the initial data of the two files differ");
        return TBD_DIFF_CODE;
    }
    if (kind != TBD_DIFF_MEMORY_STACK) {
        snprintf(text, bytes, "it is there since the start");
        return TBD_DIFF_START;
    }
    if (text_around(&sides[0], &values[0], found[0], sizeof(found[0])) &&
        text_around(&sides[1], &values[1], found[1], sizeof(found[1])))
        snprintf(text, bytes, "arguments or environment: \"%.200s\" in A, \"%.200s\" in B",
                 found[0], found[1]);
    else
        snprintf(text, bytes, "arguments, environment, or what the kernel puts beside them");
    return TBD_DIFF_START;
}

enum tbd_diff_origin tbd_diff_origin_of(struct tbd_diff_side sides[2],
                                        const struct tbd_diff_writer writers[2],
                                        const struct tbd_diff_value values[2], char *text,
                                        size_t bytes)
{
    enum tbd_diff_origin kind;

    if (!writers[0].is_there && !writers[1].is_there)
        return say_start(sides, values, text, bytes);
    if (!writers[0].is_there || !writers[1].is_there) {
        snprintf(text, bytes, "nobody has written it in %s", writers[0].is_there ? "B" : "A");
        return TBD_DIFF_ORDER;
    }
    if (writers[0].is_syscall && writers[1].is_syscall &&
        writers[0].call.number == writers[1].call.number) {
        say_call(sides, writers, values, text, bytes);
        return kind_of_call(writers[0].call.number);
    }
    if (writers[0].is_syscall || writers[1].is_syscall || writers[0].is_kernel ||
        writers[1].is_kernel) {
        snprintf(text, bytes, "the kernel wrote it last in one of them");
        return TBD_DIFF_ORDER;
    }
    kind = kind_of_instruction(&writers[0]);
    if (kind != TBD_DIFF_NOT_FOUND && kind == kind_of_instruction(&writers[1]))
        snprintf(text, bytes, "the processor's own: %s",
                 ZydisMnemonicGetString(writers[0].insn.insn.mnemonic));
    else
        kind = TBD_DIFF_NOT_FOUND;
    return kind;
}
