// SPDX-License-Identifier: MIT
/* vdso.c - see vdso.h
 *
 * The vDSO is an ELF image; its pages are private to the process once written (the kernel lets
 * debuggers do that).  Stubs are at most 9 bytes; the kernel aligns its functions to 16. */
#include "hooks/boot/vdso.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/safe_copy.h"

#include <elf.h>

struct entry {
    char name[32];
    int32_t number; /* of the system call; -1: the stub returns -ENOSYS */
};

static const struct entry entries[] = {
    { "__vdso_clock_gettime", 228 }, { "clock_gettime", 228 },   { "__vdso_gettimeofday", 96 },
    { "gettimeofday", 96 },          { "__vdso_time", 201 },     { "time", 201 },
    { "__vdso_getcpu", 309 },        { "getcpu", 309 },          { "__vdso_clock_getres", 229 },
    { "clock_getres", 229 },         { "__vdso_getrandom", -1 }, { "getrandom", -1 },
};

static const struct entry *find_entry(const char *name)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

#define STUB_BYTES 8u
#define MOST_STUBS 16u

/* What is under the stubs, in the order in which they were written: two names may be one place. */
static struct under {
    uint64_t at;
    uint8_t bytes[STUB_BYTES];
} under[MOST_STUBS];
static uint32_t under_count;
static struct tbd_range patched;

static void write_stub(uint8_t *at, int32_t number)
{
    uint8_t call[STUB_BYTES] = {
        0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3
    }; /* mov eax, n; syscall; ret */
    uint8_t refuse[STUB_BYTES] = {
        0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, 0xc3
    }; /* mov rax, -38; ret */

    memcpy(call + 1, &number, sizeof(number));
    memcpy(at, number < 0 ? refuse : call, sizeof(call));
}

struct vdso_image {
    uint64_t start, end;
    uint64_t bias;
    const Elf64_Sym *symbols;
    const char *strings;
    uint64_t symbol_count;
};

static void read_dynamic(struct vdso_image *image, const Elf64_Dyn *entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        uint64_t address = image->bias + entry->d_un.d_ptr;

        if (entry->d_tag == DT_SYMTAB)
            image->symbols = (const Elf64_Sym *)address;
        else if (entry->d_tag == DT_STRTAB)
            image->strings = (const char *)address;
        else if (entry->d_tag == DT_HASH)
            image->symbol_count = ((const uint32_t *)address)[1];
    }
}

/* Without DT_HASH (newer kernels) the symbols end where the strings begin. */
static bool read_image(struct vdso_image *image)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image->start;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image->start + header->e_phoff);
    const Elf64_Phdr *dynamic = NULL;

    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD)
            image->bias = image->start - segments[i].p_vaddr + segments[i].p_offset;
        else if (segments[i].p_type == PT_DYNAMIC)
            dynamic = &segments[i];
    }
    if (!dynamic)
        return false;
    read_dynamic(image, (const Elf64_Dyn *)(image->start + dynamic->p_offset));
    if (!image->symbols || !image->strings)
        return false;
    if (!image->symbol_count && (const uint8_t *)image->strings > (const uint8_t *)image->symbols)
        image->symbol_count =
            (uint64_t)((const uint8_t *)image->strings - (const uint8_t *)image->symbols) /
            sizeof(Elf64_Sym);
    return image->symbol_count;
}

static void replace(uint64_t at, int32_t number)
{
    under[under_count].at = at;
    memcpy(under[under_count++].bytes, (const void *)at, STUB_BYTES);
    write_stub((uint8_t *)at, number);
}

bool tbd_vdso_patch(uint64_t start, uint64_t end, bool runs)
{
    struct vdso_image image = { .start = start, .end = end };

    if (!read_image(&image) || tbd_sys_failed(tbd_sys_mprotect(start, end - start, 7)))
        return false;
    for (uint64_t i = 1; i < image.symbol_count; i++) {
        const Elf64_Sym *symbol = &image.symbols[i];
        const struct entry *entry = find_entry(image.strings + symbol->st_name);
        uint64_t at = image.bias + symbol->st_value;

        if (entry && symbol->st_shndx != SHN_UNDEF && at >= start && at + STUB_BYTES <= end &&
            under_count < MOST_STUBS)
            replace(at, entry->number < 0 && runs ? __NR_getrandom : entry->number);
    }
    patched = (struct tbd_range){ start, end };
    return !tbd_sys_failed(tbd_sys_mprotect(start, end - start, 5));
}

static void restore(void)
{
    uint64_t bytes = patched.end - patched.start;

    if (!under_count || tbd_sys_failed(tbd_sys_mprotect(patched.start, bytes, 7)))
        return;
    while (under_count) {
        under_count--;
        memcpy((void *)under[under_count].at, under[under_count].bytes, STUB_BYTES);
    }
    tbd_sys_mprotect(patched.start, bytes, 5);
}

/* Before its call a stub has changed rax alone, so its function can begin again. */
static void leave_stub(struct tbd_regs *regs)
{
    for (uint32_t i = 0; i < under_count; i++) {
        uint64_t offset = regs->rip - under[i].at;

        if (offset == 0 || offset >= STUB_BYTES)
            continue;
        if (offset < STUB_BYTES - 1) {
            regs->rip = under[i].at;
        } else if (tbd_copy_from_program(&regs->rip, regs->gpr[TBD_RSP], sizeof(regs->rip))) {
            regs->gpr[TBD_RSP] += sizeof(regs->rip);
        }
        return;
    }
}

void tbd_vdso_undo(struct tbd_regs *regs)
{
    if (regs)
        leave_stub(regs);
    else
        restore();
}
