// SPDX-License-Identifier: MIT
/* decoder.c - a loader for exactly one shared library
 *
 * Zydis has no constructors that matter, no thread-local variables and six imports.  Unexpected
 * relocation types and imports are errors, not ignored. */
#include "hooks/instructions/decoder.h"

#include "base/layout.h"
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"

#include <elf.h>

extern const uint8_t tbd_decoder_image[];
extern const uint8_t tbd_decoder_image_end[];

struct dynamic {
    const Elf64_Sym *symbols;
    const char *strings;
    const Elf64_Rela *rela;
    size_t rela_bytes;
    const Elf64_Rela *plt;
    size_t plt_bytes;
    size_t symbol_count;
};

static uint64_t loaded(uint64_t address)
{
    return TBD_DECODER_BASE + address;
}

_Noreturn static void decoder_failed(void)
{
    for (;;)
        __builtin_trap();
}

struct import {
    char name[24];
    uint64_t address;
};

static uint64_t import_address(const char *name)
{
    const struct import imports[] = {
        { "memcpy", (uint64_t)(uintptr_t)memcpy },
        { "memset", (uint64_t)(uintptr_t)memset },
        { "strlen", (uint64_t)(uintptr_t)strlen },
        { "__stack_chk_fail", (uint64_t)(uintptr_t)decoder_failed },
        { "__assert_fail", (uint64_t)(uintptr_t)decoder_failed },
    };

    for (size_t i = 0; i < sizeof(imports) / sizeof(imports[0]); i++)
        if (strcmp(imports[i].name, name) == 0)
            return imports[i].address;
    return 0;
}

static const char *map_segments(const Elf64_Ehdr *header, bool is_copied)
{
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(tbd_decoder_image + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *s = &segments[i];
        uint64_t start = loaded(s->p_vaddr) & ~(TBD_PAGE_SIZE - 1);
        uint64_t end = (loaded(s->p_vaddr) + s->p_memsz + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);

        if (s->p_type != PT_LOAD)
            continue;
        if (tbd_sys_mmap(start, end - start, TBD_PROT_RW,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (long)start)
            return "the decoder library's place is taken";
        if (!is_copied && !(s->p_flags & PF_W) &&
            tbd_sys_share_pages(loaded(s->p_vaddr), tbd_decoder_image + s->p_offset, s->p_filesz))
            continue;
        tbd_sys_populate(loaded(s->p_vaddr), loaded(s->p_vaddr) + s->p_filesz);
        memcpy((void *)loaded(s->p_vaddr), tbd_decoder_image + s->p_offset, s->p_filesz);
    }
    return NULL;
}

static const char *protect_segments(const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(tbd_decoder_image + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *s = &segments[i];
        uint64_t start = loaded(s->p_vaddr) & ~(TBD_PAGE_SIZE - 1);
        uint64_t end = (loaded(s->p_vaddr) + s->p_memsz + TBD_PAGE_SIZE - 1) & ~(TBD_PAGE_SIZE - 1);
        int prot =
            (s->p_flags & PF_R ? 1 : 0) | (s->p_flags & PF_W ? 2 : 0) | (s->p_flags & PF_X ? 4 : 0);

        if (s->p_type == PT_LOAD && tbd_sys_failed(tbd_sys_mprotect(start, end - start, prot)))
            return "the decoder library cannot be made executable";
    }
    return NULL;
}

static void read_dynamic(const Elf64_Ehdr *header, struct dynamic *out)
{
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(tbd_decoder_image + header->e_phoff);
    const Elf64_Dyn *entry = NULL;

    *out = (struct dynamic){ 0 };
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_DYNAMIC)
            entry = (const Elf64_Dyn *)loaded(segments[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        uint64_t value = entry->d_un.d_val;

        if (entry->d_tag == DT_SYMTAB)
            out->symbols = (const Elf64_Sym *)loaded(value);
        else if (entry->d_tag == DT_STRTAB)
            out->strings = (const char *)loaded(value);
        else if (entry->d_tag == DT_RELA)
            out->rela = (const Elf64_Rela *)loaded(value);
        else if (entry->d_tag == DT_RELASZ)
            out->rela_bytes = value;
        else if (entry->d_tag == DT_JMPREL)
            out->plt = (const Elf64_Rela *)loaded(value);
        else if (entry->d_tag == DT_PLTRELSZ)
            out->plt_bytes = value;
    }
    /* The string table follows the symbol table in every linker's output. */
    if (out->symbols && out->strings)
        out->symbol_count =
            (size_t)((const uint8_t *)out->strings - (const uint8_t *)out->symbols) /
            sizeof(Elf64_Sym);
}

/* Address of symbol `index`; 0 for a weak import that is not found. */
static bool symbol_address(const struct dynamic *dynamic, uint64_t index, uint64_t *out)
{
    const Elf64_Sym *symbol = &dynamic->symbols[index];

    if (index >= dynamic->symbol_count)
        return false;
    *out = symbol->st_shndx != SHN_UNDEF ? loaded(symbol->st_value)
                                         : import_address(dynamic->strings + symbol->st_name);
    return *out || ELF64_ST_BIND(symbol->st_info) == STB_WEAK;
}

static bool relocate(const struct dynamic *dynamic, const Elf64_Rela *rela, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(*rela); i++) {
        uint64_t *place = (uint64_t *)loaded(rela[i].r_offset);
        uint64_t value;

        switch (ELF64_R_TYPE(rela[i].r_info)) {
        case R_X86_64_RELATIVE: *place = loaded((uint64_t)rela[i].r_addend); break;
        case R_X86_64_64:
        case R_X86_64_GLOB_DAT:
        case R_X86_64_JUMP_SLOT:
            if (!symbol_address(dynamic, ELF64_R_SYM(rela[i].r_info), &value))
                return false;
            *place = value + (uint64_t)rela[i].r_addend;
            break;
        default: return false;
        }
    }
    return true;
}

static uint64_t find_export(const struct dynamic *dynamic, const char *name)
{
    for (size_t i = 1; i < dynamic->symbol_count; i++)
        if (dynamic->symbols[i].st_shndx != SHN_UNDEF &&
            strcmp(dynamic->strings + dynamic->symbols[i].st_name, name) == 0)
            return loaded(dynamic->symbols[i].st_value);
    return 0;
}

const char *tbd_decoder_load(struct tbd_decoder_api *api, bool is_copied)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)tbd_decoder_image;
    struct dynamic dynamic;
    const char *wrong = map_segments(header, is_copied);

    if (wrong)
        return wrong;
    read_dynamic(header, &dynamic);
    if (!dynamic.symbol_count || !relocate(&dynamic, dynamic.rela, dynamic.rela_bytes) ||
        !relocate(&dynamic, dynamic.plt, dynamic.plt_bytes))
        return "the decoder library has relocations or imports of an unknown kind";
    wrong = protect_segments(header);
    if (wrong)
        return wrong;
    api->init = (__typeof__(api->init))find_export(&dynamic, "ZydisDecoderInit");
    api->decode_full =
        (__typeof__(api->decode_full))find_export(&dynamic, "ZydisDecoderDecodeFull");
    api->decode_instruction =
        (__typeof__(api->decode_instruction))find_export(&dynamic, "ZydisDecoderDecodeInstruction");
    return api->init && api->decode_full && api->decode_instruction
               ? NULL
               : "the decoder library lacks a function";
}
