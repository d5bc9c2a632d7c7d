// SPDX-License-Identifier: MIT
/* calling_memory.c - see calling_memory.h */
#include "hooks/memory/calling_memory.h"

#include "base/layout.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/leaving.h"

#define PIECE_BYTES (64ull << 10) /* made accessible at a time */
#define NO_DISTANCE 0ull

static enum tbd_calling_scheme used; /* NONE: there is no calling context */

bool tbd_calling_memory_init(enum tbd_calling_scheme scheme)
{
    const uint64_t bytes = TBD_CALLING_END - TBD_CALLING_BASE;

    if (tbd_sys_mmap(TBD_CALLING_BASE, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                     0) != (long)TBD_CALLING_BASE)
        return false;
    tbd_sys_madvise(TBD_CALLING_BASE, bytes, MADV_DONTDUMP);
    used = scheme;
    return true;
}

bool tbd_calling_memory_overlaps(uint64_t start, uint64_t end)
{
    return used && start < TBD_CALLING_END && TBD_CALLING_BASE < end;
}

/* NO_DISTANCE: no values can be kept for a stack there. */
static uint64_t distance_of(uint64_t rsp)
{
    if (rsp >= TBD_STACKS_HIGH && rsp < TBD_USER_END)
        return TBD_CALLING_BASE - TBD_STACKS_HIGH + TBD_CALLING_SKEW;
    return rsp < TBD_STACKS_LOW_END ? TBD_CALLING_LOW + TBD_CALLING_SKEW : NO_DISTANCE;
}

static bool make_accessible(uint64_t address)
{
    uint64_t piece = address & ~(PIECE_BYTES - 1);

    return !tbd_sys_failed(tbd_sys_mprotect(piece, PIECE_BYTES, PROT_READ | PROT_WRITE));
}

/* ---- threads, handlers, calls ---- */

void tbd_calling_begin_thread(struct tbd_thread *thread)
{
    uint64_t distance = distance_of(thread->regs.gpr[TBD_RSP]);

    if (!used)
        return;
    thread->calling_value = 0;
    thread->calling_distance = distance ? distance : distance_of(TBD_STACKS_HIGH);
}

void tbd_calling_enter_handler(struct tbd_thread *thread, uint64_t frame, uint32_t signo)
{
    uint64_t distance = distance_of(frame);
    uint64_t number = tbd_calling_number(tbd_calling_module(TBD_CALLING_SIGNAL), signo);

    if (!used)
        return;
    if (!distance || !make_accessible(frame + distance)) {
        tbd_leave_soon("its stack is where no calling context can be kept");
        return;
    }
    memcpy((void *)(frame + distance), &thread->calling_value, 8);
    thread->calling_value = tbd_calling_enter(used, thread->calling_value, number);
    thread->calling_distance = distance;
}

uint64_t tbd_calling_number_of(uint64_t return_address)
{
    const struct tbd_mapped_region *region =
        tbd_regions_find(&tbd_memory.regions, return_address - 1); /* nothing may follow the call */

    if (!region || !region->path[0])
        return tbd_calling_number(tbd_calling_module(TBD_CALLING_NO_FILE), 0);
    return tbd_calling_number(tbd_calling_module(region->path),
                              return_address - region->map.start + region->map.file_offset);
}

/* ---- after a switch of stacks ---- */

#define CALL_WORDS                                                                                 \
    32u /* below rsp: the last call that the function made, with arguments on the stack */
#define FRAME_PAGES 128u /* above rsp: where the function's own return address is looked for */
#define PAGE_WORDS  (TBD_PAGE_SIZE / 8)

static uint64_t load(uint64_t address)
{
    uint64_t word = 0;

    return tbd_load_from_program(&word, address, sizeof(word)) ? word : 0;
}

static bool is_code(uint64_t address)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, address);

    return region && region->map.prot & PROT_EXEC;
}

/* The value of the function whose return address lies there, if that is one. */
static uint64_t value_from(uint64_t slot, uint64_t word, uint64_t distance)
{
    return tbd_calling_enter(used, load(slot + distance), tbd_calling_number_of(word));
}

static bool is_kept(const uint64_t *kept, uint64_t value)
{
    for (size_t i = 0; i < CALL_WORDS; i++)
        if (kept[i] == value)
            return value;
    return false;
}

/* A value that was kept for a call from here is the function's if it follows from a return address above. */
static bool find_proven(uint64_t rsp, uint64_t distance, const uint64_t *kept, uint64_t *out)
{
    uint64_t words[PAGE_WORDS];
    uint64_t page = rsp & ~(TBD_PAGE_SIZE - 1);
    size_t i = (rsp - page) / 8;

    for (uint32_t pages = 0; pages < FRAME_PAGES; pages++, page += TBD_PAGE_SIZE, i = 0) {
        if (!tbd_copy_from_program(words, page, sizeof(words)))
            return false;
        for (; i < PAGE_WORDS; i++) {
            if (words[i] < TBD_PAGE_SIZE || words[i] >= TBD_USER_END || !is_code(words[i] - 1))
                continue;
            *out = value_from(page + i * 8, words[i], distance);
            if (is_kept(kept, *out))
                return true;
        }
    }
    return false;
}

/* call rel32; call r/m64 with 2 to 7 bytes */
static bool follows_call(uint64_t target)
{
    uint8_t code[7];

    if (!tbd_copy_from_program(code, target - sizeof(code), sizeof(code)))
        return false;
    if (code[2] == 0xe8)
        return true;
    for (size_t i = 0; i < sizeof(code) - 1; i++)
        if (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10)
            return true;
    return false;
}

/* Where nothing proves a value, setjmp's own call says it; a function that is entered has no caller. */
void tbd_calling_find(struct tbd_thread *thread, uint64_t target)
{
    uint64_t rsp = thread->regs.gpr[TBD_RSP];
    uint64_t distance = distance_of(rsp);
    uint64_t kept[CALL_WORDS], found;

    if (!distance || value_from(rsp, load(rsp), distance) == thread->calling_value)
        return;
    for (size_t i = 0; i < CALL_WORDS; i++)
        kept[i] = load(rsp - 8 * (i + 1) + distance);
    if (!find_proven(rsp, distance, kept, &found))
        found = follows_call(target) ? kept[0] : 0;
    thread->calling_value = found;
    thread->calling_distance = distance;
}

/* ---- faults ---- */

struct beside_access {
    unsigned distance; /* the register that has it */
    uint64_t length;   /* of the instruction; 0: it is no access to the memory */
};

/* mov [rsp + distance - 8], r64, or mov r64, [rsp + distance]: of the program's own none has a distance in a register. */
static struct beside_access beside_access_at(const struct tbd_thread *thread,
                                             const struct tbd_regs *cpu)
{
    const uint8_t *code = (const uint8_t *)cpu->rip;
    unsigned index = (code[0] & 2u) << 2 | (code[3] >> 3 & 7u);
    bool keeps = code[1] == 0x89 && code[2] >> 6 == 1 && code[4] == 0xf8;
    bool gets = code[1] == 0x8b && code[2] >> 6 == 0;

    if ((code[0] & 0xf9) != 0x48 || !(keeps || gets) || (code[2] & 7) != 4 ||
        (code[3] & 0xc7) != TBD_RSP || cpu->gpr[index] != thread->calling_distance)
        return (struct beside_access){ .length = 0 };
    return (struct beside_access){ .distance = index, .length = keeps ? 5 : 4 };
}

/* No address at all: nobody can go on there, not even to come to the instruction's own fault. */
static bool is_no_address(uint64_t rsp)
{
    return rsp >= TBD_USER_END && rsp < 0 - TBD_USER_END;
}

bool tbd_calling_fault_sigsafe(uint64_t address, struct tbd_thread *thread, struct tbd_regs *cpu)
{
    struct beside_access access =
        used ? beside_access_at(thread, cpu) : (struct beside_access){ .length = 0 };
    uint64_t right = distance_of(cpu->gpr[TBD_RSP]);

    if (!access.length || is_no_address(cpu->gpr[TBD_RSP]))
        return false;
    if (right && right != thread->calling_distance) {
        thread->calling_distance = right;
        cpu->gpr[access.distance] = right;
        return true;
    }
    if (right && tbd_calling_memory_overlaps(address, address + 8) && make_accessible(address))
        return true;
    tbd_leave_soon("its stack is where no calling context can be kept");
    cpu->rip += access.length;
    return true;
}
