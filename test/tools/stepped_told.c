// SPDX-License-Identifier: MIT
/* stepped_told.c - a simulation of a program's last steps gets what a crash dump would have (stepped.h) */
#include "stepped.h"

#include "hooks/table/syscalls.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

/* Pages at the end, each read once. */
static const struct page {
    uint64_t address; /* plus 1 if there is none */
    uint8_t bytes[4096];
} * page_at(uint64_t address)
{
    static struct page *pages;
    struct page *page;

    address &= ~4095ull;
    if (pages == NULL && (pages = calloc(PAGES, sizeof(*pages))) == NULL)
        stepped_give_up("memory");
    page = &pages[address / 4096 * 0x9e3779b97f4a7c15ull % PAGES];
    if ((page->address & ~1ull) == address && address != 0)
        return page;
    page->address = address + !stepped_peek(address, page->bytes, 4096);
    return page;
}

static struct tbd_bits final_memory(void *arg, uint64_t address)
{
    const struct page *page = page_at(address);
    uint64_t value;

    (void)arg;
    if (page->address & 1)
        return (struct tbd_bits){ 0, 0 };
    memcpy(&value, page->bytes + address % 4096, sizeof(value));
    return tbd_bits_of(value);
}

void stepped_read_mappings(void)
{
    char path[64], line[1024], name[512], kind[8];
    struct stepped_mapping m = { .fd = -1 };
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)stepped.pid);
    maps = fopen(path, "re");
    if (maps == NULL)
        stepped_give_up(path);
    stepped.mappings = calloc(4096, sizeof(*stepped.mappings));
    while (stepped.mappings != NULL && stepped.mapping_count < 4096 &&
           fgets(line, sizeof(line), maps)) {
        *name = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &m.start, &m.end,
                   kind, &m.offset, name) < 4)
            continue;
        if (kind[1] == 'w' && stepped.mapping_count > 0 &&
            stepped.mappings[stepped.mapping_count - 1].end == m.start)
            stepped.mappings[stepped.mapping_count - 1].is_relocated = true;
        if (kind[1] == 'w' || *name != '/')
            continue;
        m.is_relocated = false;
        m.fd = open(name, O_RDONLY | O_CLOEXEC);
        if (m.fd >= 0)
            stepped.mappings[stepped.mapping_count++] = m;
    }
    fclose(maps);
}

static struct tbd_bits constant_at(uint64_t address)
{
    uint64_t in_file;

    for (size_t i = 0; i < stepped.mapping_count; i++) {
        const struct stepped_mapping *m = &stepped.mappings[i];

        if (address < m->start || address >= m->end || m->is_relocated)
            continue;
        if (tbd_bits_full(final_memory(NULL, address)) &&
            pread(m->fd, &in_file, 8, (off_t)(address - m->start + m->offset)) == 8 &&
            final_memory(NULL, address).value == in_file)
            return tbd_bits_of(in_file);
        break;
    }
    return (struct tbd_bits){ 0, 0 };
}

/* What cannot be written, and is what the file has.  Not what ld.so has written before: it lies before what can be written. */
static struct tbd_bits constant_memory(void *arg, uint64_t address)
{
    static struct {
        uint64_t address;
        struct tbd_bits bits;
        bool is_there;
    } words[CACHE];
    size_t at = (address / 8 ^ address >> 20) % CACHE;

    (void)arg;
    if (!words[at].is_there || words[at].address != address) {
        words[at].address = address;
        words[at].bits = constant_at(address);
        words[at].is_there = true;
    }
    return words[at].bits;
}

static size_t fixed_since(void *arg, uint64_t address)
{
    size_t first = stepped.count - 1 > stepped.last ? stepped.count - stepped.last : 0, since;

    (void)arg;
    for (size_t i = 0; i < stepped.mapping_count; i++) {
        if (address < stepped.mappings[i].start || address >= stepped.mappings[i].end)
            continue;
        since = recorded_fixed_since(&stepped.recorded, address & ~4095ull);
        return since == SIZE_MAX || since < first ? since == SIZE_MAX ? since : 0 : since - first;
    }
    return SIZE_MAX;
}

static bool call_writes(void *arg, uint64_t number, const uint64_t args[6], unsigned known,
                        struct tbd_sim_range out[6], size_t *out_count)
{
    struct tbd_sys_call call = { .number = number };
    struct tbd_sys_range ranges[6];

    (void)arg;
    memcpy(call.args, args, sizeof(call.args));
    if (!tbd_syscall_bounds(&call, known, ranges, out_count))
        return false;
    for (size_t i = 0; i < *out_count; i++)
        out[i] = (struct tbd_sim_range){ ranges[i].address, ranges[i].bytes };
    return true;
}

/* xmm0 to 15 at the end. */
static void know_vectors(struct tbd_simulation *sim)
{
    struct user_fpregs_struct fp;
    uint64_t lane;

    if (ptrace(PTRACE_GETFPREGS, stepped.pid, NULL, &fp) != 0)
        return;
    for (unsigned i = 0; i < 32; i++) {
        memcpy(&lane, (const uint8_t *)fp.xmm_space + 8 * (size_t)i, 8);
        tbd_simulation_know(sim, TBD_PLACE_VECTOR + 8 * (i / 2) + i % 2, tbd_bits_of(lane));
    }
}

static void know_all(struct tbd_simulation *sim, const struct user_regs_struct *regs)
{
    for (unsigned place = 0; place < TBD_PLACE_VECTOR; place++)
        tbd_simulation_know(sim, place, stepped_truth(regs, place));
}

/* What was recorded before step `i`. */
static void know_recorded(struct tbd_simulation *sim, size_t first, size_t i)
{
    const struct recorded_set *set = recorded_set_at(&stepped.recorded, first + i);
    const struct recorded_call *call = recorded_call_before(&stepped.recorded, first + i);
    const struct stepped_moment *moment = stepped_moment_at(i);

    if (call != NULL && i > 0)
        recorded_tell_call(call, sim);
    if (set == NULL)
        return;
    know_all(sim, &moment->regs);
    recorded_tell_bytes(sim, moment->regs.rsp, set->stack, set->stack_bytes);
    for (size_t k = 0; k < set->memory_count; k++)
        recorded_tell_bytes(sim, set->memory[k].address, set->memory[k].copy, set->memory[k].bytes);
}

static bool is_sigreturn(const struct stepped_moment *moment)
{
    return moment->code[0] == 0x0f && moment->code[1] == 0x05 &&
           moment->regs.rax == __NR_rt_sigreturn;
}

/* The last moment is that of the instruction that did not stepped. */
static size_t add_steps(struct tbd_simulation *sim, size_t steps)
{
    size_t first = stepped.count > stepped.last ? stepped.count - stepped.last : 0;

    for (size_t i = 0; i < steps; i++) {
        const struct stepped_moment *moment = stepped_moment_at(i);
        struct tbd_sim_insn *insn;
        size_t length;
        bool returns;

        if (tbd_insn_make(moment->regs.rip, moment->code, 15, &insn) != TBD_OK)
            stepped_give_up("an instruction");
        length = insn->length;
        know_recorded(sim, first, i);
        if (moment->is_cut && tbd_simulation_interrupted(sim, moment->regs.rip) != TBD_OK)
            stepped_give_up("an interruption");
        returns = is_sigreturn(moment) && !moment->is_cut && i + 1 < steps;
        if ((returns ? tbd_simulation_add_return(sim, moment->regs.rip,
                                                 stepped_moment_at(i + 1)->regs.rip)
                     : tbd_simulation_add(sim, moment->regs.rip, moment->code, length)) != TBD_OK)
            stepped_give_up("a step");
        if (i + 1 < steps && !returns &&
            (moment->is_cut || !tbd_insn_leads_to(insn, stepped_moment_at(i + 1)->regs.rip)))
            tbd_simulation_break(sim, i);
        tbd_insn_free(insn);
    }
    return steps;
}

struct tbd_simulation *stepped_simulate(const struct user_regs_struct *end, size_t steps,
                                        size_t focus)
{
    struct tbd_simulation_source source = { .final = final_memory,
                                            .constant = constant_memory,
                                            .fixed_since = fixed_since,
                                            .call_writes = call_writes };
    struct tbd_simulation *sim;

    if (tbd_simulation_new(&source, &sim) != TBD_OK)
        stepped_give_up("memory");
    add_steps(sim, steps);
    know_all(sim, end);
    know_vectors(sim);
    tbd_simulation_ends_at(sim, end->rip);
    if (focus != 0) {
        size_t from = (focus + STEPPED_AROUND + STEPPED_GRID - 1) / STEPPED_GRID * STEPPED_GRID;
        size_t to = (focus - STEPPED_FAR - STEPPED_AROUND) / STEPPED_GRID * STEPPED_GRID;

        tbd_simulation_focus(sim, steps > from ? steps - from : 0, steps - to);
    }
    if (tbd_simulation_run(sim, true) != TBD_OK)
        stepped_give_up("simulation");
    return sim;
}
