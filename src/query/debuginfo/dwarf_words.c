// SPDX-License-Identifier: MIT
/* dwarf_words.c - see dwarf_words.h
 *
 * A linker keeps a name once, perhaps as the end of a longer one: so the bytes before it say nothing. */
#include "query/debuginfo/dwarf_words.h"

#include "query/debuginfo/dwarf_private.h"

#include <ctype.h>
#include <dwarf.h>
#include <string.h>

/* Names are there, or in entries themselves. */
static bool has_words(const char *section)
{
    static const char *const sections[] = { ".debug_str", ".debug_line_str", ".debug_info",
                                            ".debug_types" };

    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (strcmp(section, sections[i]) == 0)
            return true;
    }
    return strncmp(section, ".zdebug", strlen(".zdebug")) == 0;
}

/* `bytes` of the name, with the 0 after it.  libdw has unpacked the sections that it reads. */
static bool may_hold(Elf_Scn *section, const GElf_Shdr *header, const char *name, size_t bytes)
{
    const Elf_Data *data = NULL;

    if ((header->sh_flags & SHF_COMPRESSED) != 0)
        return true;
    data = elf_getdata(section, NULL);
    return data == NULL || data->d_buf == NULL ||
           memmem(data->d_buf, data->d_size, name, bytes) != NULL;
}

static bool may_say(Dwarf *dwarf, const char *name, size_t bytes)
{
    Elf *elf = dwarf_getelf(dwarf);
    Elf_Scn *section = NULL;
    size_t names;

    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
        return true;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *title;

        if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS ||
            header.sh_size == 0 || (title = elf_strptr(elf, names, header.sh_name)) == NULL ||
            !has_words(title))
            continue;
        if (strncmp(title, ".z", 2) == 0 || may_hold(section, &header, name, bytes))
            return true;
    }
    return false;
}

/* Units whose entries are in files of their own. */
static bool is_split(Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    uint8_t type;

    while (dwarf_get_units(dwarf, unit, &unit, NULL, &type, NULL, NULL) == 0) {
        if (type == DW_UT_skeleton)
            return true;
    }
    return false;
}

bool tbd_dwarf_may_say(const struct tbd_dwarf *dwarf, const char *name)
{
    const char *last = strrchr(name, ':');
    size_t length;

    last = last == NULL ? name : last + 1;
    length = strlen(last);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)last[i]) && last[i] != '_')
            return true; /* template arguments, operators: who knows how they are written there */
    }
    if (length == 0 || is_split(dwarf->dwarf) || may_say(dwarf->dwarf, last, length + 1))
        return true;
    return dwarf->alt.dwarf != NULL && may_say(dwarf->alt.dwarf, last, length + 1);
}
