// SPDX-License-Identifier: MIT
/* vdso.c - see vdso.h
 *
 * The vDSO is an ELF image; its pages are private to the process once written (the kernel lets
 * debuggers do that).  Stubs are at most 9 bytes; the kernel aligns its functions to 16. */
#include "hooks/boot/vdso.h"

#include "base/string.h"
#include "base/sys.h"

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

static void write_stub(uint8_t *at, int32_t number)
{
    uint8_t call[8] = { 0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3 }; /* mov eax, n; syscall; ret */
    uint8_t refuse[8] = { 0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, 0xc3 }; /* mov rax, -38; ret */

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

bool tbd_vdso_patch(uint64_t start, uint64_t end)
{
    struct vdso_image image = { .start = start, .end = end };

    if (!read_image(&image) || tbd_sys_failed(tbd_sys_mprotect(start, end - start, 7)))
        return false;
    for (uint64_t i = 1; i < image.symbol_count; i++) {
        const Elf64_Sym *symbol = &image.symbols[i];
        const struct entry *entry = find_entry(image.strings + symbol->st_name);
        uint64_t at = image.bias + symbol->st_value;

        if (entry && symbol->st_shndx != SHN_UNDEF && at >= start && at + 8 <= end)
            write_stub((uint8_t *)at, entry->number);
    }
    return !tbd_sys_failed(tbd_sys_mprotect(start, end - start, 5));
}
