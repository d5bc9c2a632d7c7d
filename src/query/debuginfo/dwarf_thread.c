// SPDX-License-Identifier: MIT
/* dwarf_thread.c - see dwarf_thread.h
 *
 * DWARF_THREAD-1  Files are hostile: a slot that is nowhere, or a number that leads nowhere, is a
 *     block that is not there. (not checked: it is what decoding checks of its input) */
#include "query/debuginfo/dwarf_thread.h"

#define MODULES_MAX 65536u /* with thread-local storage, in one process */
#define UNALLOCATED UINT64_MAX

static bool read_word(const struct tbd_place_of *place, uint64_t address, uint64_t *out)
{
    return place->memory->read(place->memory->context, address, out, sizeof(*out));
}

/* The block that the thread's vector has for a module; allocated when the thread
 * first asks for it. */
static const char *listed_block(const struct tbd_place_of *place, uint64_t number, uint64_t *out)
{
    uint64_t vector;

    if (number == 0 || number > MODULES_MAX || !read_word(place, place->fs_base + 8, &vector) ||
        !read_word(place, vector + 16 * number, out))
        return "the thread's local storage is not there";
    return *out == UNALLOCATED ? "the thread has not used the module's thread-local storage yet"
                               : NULL;
}

/* The value of a relocation's symbol in the file: its offset in the block. */
static bool symbol_offset(Elf *elf, const GElf_Shdr *relocations, const GElf_Rela *rela,
                          uint64_t *out)
{
    Elf_Scn *table = elf_getscn(elf, relocations->sh_link);
    Elf_Data *data = table == NULL ? NULL : elf_getdata(table, NULL);
    GElf_Sym symbol;

    *out = (uint64_t)rela->r_addend;
    if (GELF_R_SYM(rela->r_info) == 0)
        return true;
    if (data == NULL || gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &symbol) == NULL ||
        symbol.st_shndx == SHN_UNDEF) /* another module's */
        return false;
    *out += symbol.st_value;
    return true;
}

/* A slot holds the module's number (dynamic), or a variable's offset from the thread pointer. */
static bool slot_block(const struct tbd_place_of *place, Elf *elf, const GElf_Shdr *relocations,
                       const GElf_Rela *rela, const char **why, uint64_t *out)
{
    uint64_t value, offset;

    if ((GELF_R_TYPE(rela->r_info) != R_X86_64_DTPMOD64 &&
         GELF_R_TYPE(rela->r_info) != R_X86_64_TPOFF64) ||
        !symbol_offset(elf, relocations, rela, &offset) ||
        !read_word(place, place->bias + rela->r_offset, &value))
        return false;
    *why = NULL;
    if (GELF_R_TYPE(rela->r_info) == R_X86_64_DTPMOD64)
        *why = listed_block(place, value, out);
    else
        *out = place->fs_base + value - offset;
    return true;
}

static const char *library_block(const struct tbd_place_of *place, uint64_t *out)
{
    Elf *elf = tbd_dwarf_elf(place->dwarf)->main.elf;
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    GElf_Rela rela;
    const char *why;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        Elf_Data *data;

        if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_RELA ||
            (header.sh_flags & SHF_ALLOC) == 0 || (data = elf_getdata(section, NULL)) == NULL ||
            data->d_buf == NULL)
            continue;
        for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rela); i++)
            if (gelf_getrela(data, (int)i, &rela) != NULL &&
                slot_block(place, elf, &header, &rela, &why, out))
                return why;
    }
    return "no slot says where the library has its thread-local storage";
}

const char *tbd_thread_block(const struct tbd_place_of *place, uint64_t *out)
{
    if (place->fs_base == 0 || place->memory == NULL || place->dwarf == NULL)
        return "the thread's local storage is not there";
    /* The program itself is the first module, and mostly has no slots. */
    return place->is_main_program ? listed_block(place, 1, out) : library_block(place, out);
}
