// SPDX-License-Identifier: MIT
/* core.c - a core file of the state at a position, as the kernel would have written it there
 *
 *   ELF header | note: registers of each thread, auxiliary vector, mapped files | memory | program headers
 *
 * The thread that has control comes first, so that a debugger shows it.  Memory that the trace does not have becomes a
 * segment without bytes: debuggers take it from the mapped file, or say that it is not there.  Mappings are those at
 * the start of the position's window. */
#include "query/exports/timeline.h"

#include "base/array.h"
#include "base/layout.h"
#include "base/vector_layout.h"
#include "query/exports/auxiliary_vector.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

#define CHUNK        65536u /* memory is read in pieces of this size */
#define HEADERS_MAX  65000u
#define NT_FILE_NOTE 0x46494c45u

struct core_file {
    struct tbd_command_run *run;
    struct tbd_position position;
    FILE *out;
    Elf64_Phdr *headers; /* owned */
    size_t count, capacity;
    uint64_t offset; /* written so far */
    bool no_memory;
};

static void put(struct core_file *core, const void *bytes, size_t count)
{
    (void)!fwrite(bytes, 1, count, core->out);
    core->offset += count;
}

static void pad(struct core_file *core, uint64_t to)
{
    static const uint8_t zeros[TBD_PAGE_SIZE];

    put(core, zeros, (size_t)(((core->offset + to - 1) & ~(to - 1)) - core->offset));
}

/* NULL without memory. */
static Elf64_Phdr *add_header(struct core_file *core, uint32_t type)
{
    Elf64_Phdr *header;

    if (core->count >= HEADERS_MAX ||
        !tbd_array_grow(&core->headers, core->count, &core->capacity, sizeof(*core->headers))) {
        core->no_memory = true;
        return NULL;
    }
    header = &core->headers[core->count++];
    *header = (Elf64_Phdr){ .p_type = type, .p_offset = core->offset };
    return header;
}

/* ---- notes ---- */

static void put_note(struct core_file *core, uint32_t type, const void *bytes, size_t count)
{
    Elf64_Nhdr note = { .n_namesz = type == NT_X86_XSTATE ? sizeof("LINUX") : sizeof("CORE"),
                        .n_descsz = (uint32_t)count,
                        .n_type = type };

    put(core, &note, sizeof(note));
    put(core, type == NT_X86_XSTATE ? "LINU" : "CORE", 4);
    put(core, type == NT_X86_XSTATE ? "X\0\0\0" : "\0\0\0\0", 4);
    put(core, bytes, count);
    pad(core, 4);
}

static void fill_registers(const struct tbd_regs *regs, struct user_regs_struct *out)
{
    static const size_t places[TBD_REG_COUNT] = {
        [TBD_RAX] = offsetof(struct user_regs_struct, rax),
        [TBD_RBX] = offsetof(struct user_regs_struct, rbx),
        [TBD_RCX] = offsetof(struct user_regs_struct, rcx),
        [TBD_RDX] = offsetof(struct user_regs_struct, rdx),
        [TBD_RSI] = offsetof(struct user_regs_struct, rsi),
        [TBD_RDI] = offsetof(struct user_regs_struct, rdi),
        [TBD_RBP] = offsetof(struct user_regs_struct, rbp),
        [TBD_RSP] = offsetof(struct user_regs_struct, rsp),
        [TBD_R8] = offsetof(struct user_regs_struct, r8),
        [TBD_R9] = offsetof(struct user_regs_struct, r9),
        [TBD_R10] = offsetof(struct user_regs_struct, r10),
        [TBD_R11] = offsetof(struct user_regs_struct, r11),
        [TBD_R12] = offsetof(struct user_regs_struct, r12),
        [TBD_R13] = offsetof(struct user_regs_struct, r13),
        [TBD_R14] = offsetof(struct user_regs_struct, r14),
        [TBD_R15] = offsetof(struct user_regs_struct, r15),
    };

    *out = (struct user_regs_struct){ .rip = regs->rip,
                                      .eflags = regs->rflags,
                                      .fs_base = regs->fs_base,
                                      .gs_base = regs->gs_base,
                                      .cs = 0x33,
                                      .ss = 0x2b,
                                      .orig_rax = UINT64_MAX };
    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        memcpy((uint8_t *)out + places[i], &regs->gpr[i], sizeof(regs->gpr[i]));
}

/* Debuggers know images by their components and length, and none with tiles (AMX), which are last. */
static void put_vectors(struct core_file *core, const struct tbd_reg_state *state)
{
    const struct tbd_trace_info *info = core->run->session->info;
    uint64_t components = info->xcr0 & ~TBD_VECTOR_AMX, in_use;
    uint32_t bytes = state->regs.xsave_bytes;
    struct tbd_vector_layout layout;
    uint8_t image[sizeof(state->xsave)];

    if (bytes <= TBD_VECTOR_EXTENDED || bytes > sizeof(image))
        return;
    memcpy(image, state->xsave, bytes);
    if (components != info->xcr0 &&
        tbd_vector_layout_find(info->xcr0, info->xsave_bytes, &layout)) {
        layout.mask = components;
        bytes = tbd_vector_layout_end(&layout);
    }
    memcpy(&in_use, image + TBD_VECTOR_LEGACY, sizeof(in_use));
    in_use &= components;
    memcpy(image + TBD_VECTOR_LEGACY, &in_use, sizeof(in_use));
    memcpy(image + TBD_VECTOR_SOFTWARE, &components, sizeof(components)); /* as the kernel does */
    put_note(core, NT_X86_XSTATE, image, bytes);
}

static void put_thread(struct core_file *core, uint32_t thread, const struct tbd_reg_state *state)
{
    const struct tbd_trace_info *info = core->run->session->info;
    struct elf_prstatus status = { .pr_pid = (int)thread,
                                   .pr_ppid = (int)info->parent_pid,
                                   .pr_pgrp = (int)info->pid,
                                   .pr_sid = (int)info->pid,
                                   .pr_fpvalid = state->regs.xsave_bytes >= 512 };
    struct user_regs_struct regs;

    fill_registers(&state->regs, &regs);
    memcpy(&status.pr_reg, &regs, sizeof(regs));
    put_note(core, NT_PRSTATUS, &status, sizeof(status));
    if (state->regs.xsave_bytes >= 512)
        put_note(core, NT_FPREGSET, state->xsave, 512);
    put_vectors(core, state);
}

/* The thread's registers, as a note; `thread` 0: that which has control. */
static enum tbd_status add_thread(struct core_file *core, uint32_t thread, uint32_t *out)
{
    struct tbd_session *session = core->run->session;
    struct tbd_reg_state *state = calloc(1, sizeof(*state));
    uint32_t before = session->thread;
    enum tbd_status status = TBD_NOMEM;

    if (state != NULL) {
        session->thread = thread;
        status = tbd_session_regs(session, core->position, state);
        session->thread = before;
    }
    if (status == TBD_OK) {
        *out = thread != 0 ? thread : state->regs.thread;
        put_thread(core, *out, state);
    }
    free(state);
    return status;
}

static enum tbd_status add_threads(struct core_file *core)
{
    struct tbd_session *session = core->run->session;
    uint32_t first = 0, other;
    enum tbd_status status = add_thread(core, 0, &first);

    for (uint32_t i = 0; status == TBD_OK && i < tbd_trace_thread_count(session->trace); i++) {
        const struct tbd_thread_info *thread = tbd_trace_thread(session->trace, i);

        if (thread->tid != first && tbd_thread_lives_at(thread, core->position.time))
            status = add_thread(core, thread->tid, &other);
    }
    return status;
}

static void add_vector(struct core_file *core)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&bytes, &count);

    if (out == NULL) {
        core->no_memory = true;
        return;
    }
    tbd_auxiliary_vector_write(core->run->session, out);
    fclose(out);
    put_note(core, NT_AUXV, bytes, count);
    free(bytes);
}

static bool is_file(const struct tbd_region *region)
{
    return region->path[0] == '/';
}

/* Which files are mapped where: count, page size, (start, end, offset in pages) of each, their names. */
static void add_files(struct core_file *core, const struct tbd_region *regions, size_t count)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    uint64_t head[2] = { 0, TBD_PAGE_SIZE };

    if (out == NULL) {
        core->no_memory = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        head[0] += is_file(&regions[i]);
    (void)!fwrite(head, sizeof(head), 1, out);
    for (size_t i = 0; i < count; i++) {
        uint64_t row[3] = { regions[i].start, regions[i].end,
                            regions[i].file_offset / TBD_PAGE_SIZE };

        if (is_file(&regions[i]))
            (void)!fwrite(row, sizeof(row), 1, out);
    }
    for (size_t i = 0; i < count; i++)
        if (is_file(&regions[i]))
            (void)!fwrite(regions[i].path, strlen(regions[i].path) + 1, 1, out);
    fclose(out);
    put_note(core, NT_FILE_NOTE, bytes, size);
    free(bytes);
}

/* ---- memory ---- */

static uint32_t flags_of(uint32_t prot)
{
    return ((prot & PROT_READ) != 0 ? PF_R : 0) | ((prot & PROT_WRITE) != 0 ? PF_W : 0) |
           ((prot & PROT_EXEC) != 0 ? PF_X : 0);
}

/* Adds a piece of memory to the last segment, or to a new one where it is not like it. */
static void add_piece(struct core_file *core, const struct tbd_region *region, uint64_t start,
                      size_t bytes, const uint8_t *known)
{
    Elf64_Phdr *last = core->count == 0 ? NULL : &core->headers[core->count - 1];
    bool goes_on = last != NULL && last->p_type == PT_LOAD && start != region->start &&
                   last->p_vaddr + last->p_memsz == start &&
                   (last->p_filesz != 0) == (known != NULL);

    if (!goes_on) {
        last = add_header(core, PT_LOAD);
        if (last == NULL)
            return;
        last->p_vaddr = start;
        last->p_flags = flags_of(region->prot);
        last->p_align = TBD_PAGE_SIZE;
    }
    last->p_memsz += bytes;
    if (known == NULL)
        return;
    last->p_filesz += bytes;
    put(core, known, bytes);
}

static void add_pages(struct core_file *core, const struct tbd_region *region, uint64_t start,
                      uint64_t end)
{
    uint8_t page[TBD_PAGE_SIZE];

    for (; start < end; start += TBD_PAGE_SIZE)
        add_piece(core, region, start, sizeof(page),
                  tbd_session_read(core->run->session, core->position, start, page, sizeof(page)) ==
                          TBD_OK
                      ? page
                      : NULL);
}

static void add_region(struct core_file *core, const struct tbd_region *region)
{
    uint8_t *bytes = malloc(CHUNK);

    core->no_memory |= bytes == NULL;
    for (uint64_t start = region->start; start < region->end && !core->no_memory; start += CHUNK) {
        uint64_t end = region->end - start < CHUNK ? region->end : start + CHUNK;

        if (tbd_session_read(core->run->session, core->position, start, bytes,
                             (size_t)(end - start)) == TBD_OK)
            add_piece(core, region, start, (size_t)(end - start), bytes);
        else
            add_pages(core, region, start, end);
    }
    free(bytes);
}

/* ---- the file ---- */

static void put_header(struct core_file *core, uint64_t headers_at)
{
    Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                       EV_CURRENT },
                          .e_type = ET_CORE,
                          .e_machine = EM_X86_64,
                          .e_version = EV_CURRENT,
                          .e_ehsize = sizeof(header),
                          .e_phoff = headers_at,
                          .e_phentsize = sizeof(Elf64_Phdr),
                          .e_phnum = (uint16_t)core->count };

    put(core, &header, sizeof(header));
}

static enum tbd_status put_all(struct core_file *core, const struct tbd_region *regions,
                               size_t count)
{
    Elf64_Phdr *note;
    enum tbd_status status;
    uint64_t headers_at;

    put_header(core, 0);
    note = add_header(core, PT_NOTE);
    if (note == NULL)
        return TBD_NOMEM;
    status = add_threads(core);
    add_vector(core);
    add_files(core, regions, count);
    note->p_filesz = core->offset - note->p_offset;
    pad(core, TBD_PAGE_SIZE);
    for (size_t i = 0; i < count && status == TBD_OK && !core->no_memory; i++) {
        if ((regions[i].flags & (TBD_REGION_PATCH | TBD_REGION_VVAR)) == 0)
            add_region(core, &regions[i]);
    }
    headers_at = core->offset;
    put(core, core->headers, core->count * sizeof(*core->headers));
    rewind(core->out);
    put_header(core, headers_at);
    return core->no_memory ? TBD_NOMEM : status;
}

enum tbd_exit tbd_export_core(struct tbd_command_run *run, struct tbd_position position, FILE *out)
{
    struct core_file core = { .run = run, .position = position, .out = out };
    const struct tbd_region *regions = NULL;
    size_t count = 0;
    uint32_t window;
    enum tbd_status status = tbd_session_window_at(run->session, position, &window);

    if (status == TBD_OK)
        status =
            tbd_trace_regions(run->session->trace, window, &regions, &count, &run->session->why);
    if (status == TBD_OK)
        status = put_all(&core, regions, count);
    free(core.headers);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}
