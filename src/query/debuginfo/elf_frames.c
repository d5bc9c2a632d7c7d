// SPDX-License-Identifier: MIT
/* elf_frames.c - functions of a stripped file, from the search table of its frame information
 *
 * .eh_frame_hdr lists the address of each function's frame description.  A function that has no
 * symbol gets a name from its address: sub_4a30.  Only the layout that every x86-64 toolchain
 * writes is read (version 1, sorted table of signed 32-bit offsets, DW_EH_PE_pcrel | sdata4 in the
 * descriptions); any other gives nothing. */
#include "query/debuginfo/elf_file.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_MAX   (1u << 20)
#define PIECE_BYTES (64u << 10)

struct frame_table_head {
    uint8_t version;
    uint8_t eh_frame_encoding;
    uint8_t count_encoding;
    uint8_t table_encoding;
    int32_t eh_frame;
    uint32_t count;
};
_Static_assert(sizeof(struct frame_table_head) == 12, "as in the file");

struct table_entry {
    int32_t function; /* relative to the table's head */
    int32_t description;
};

struct description {
    uint32_t bytes;
    uint32_t cie;
    int32_t function; /* relative to this field */
    uint32_t function_bytes;
};

static bool table_place(struct tbd_elf_file *file, uint64_t *out)
{
    size_t count = 0;

    if (elf_getphdrnum(file->main.elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;

        if (gelf_getphdr(file->main.elf, (int)i, &segment) && segment.p_type == PT_GNU_EH_FRAME) {
            *out = segment.p_vaddr;
            return true;
        }
    }
    return false;
}

/* Descriptions mostly lie in the order of the table, so several are read at once. */
struct piece {
    uint64_t start;
    size_t count;
    uint8_t bytes[PIECE_BYTES];
};

static bool read_description(struct tbd_elf_file *file, struct piece *piece, uint64_t place,
                             struct description *out)
{
    if (place < piece->start || place - piece->start > piece->count ||
        piece->count - (place - piece->start) < sizeof(*out)) {
        piece->start = place;
        piece->count = tbd_elf_read(file, place, piece->bytes, sizeof(piece->bytes));
        if (piece->count < sizeof(*out))
            return false;
    }
    memcpy(out, piece->bytes + (place - piece->start), sizeof(*out));
    return true;
}

/* Length of the function that begins at `start`; 0 if its description says something else. */
static uint64_t function_bytes(struct tbd_elf_file *file, struct piece *piece, uint64_t place,
                               uint64_t start)
{
    struct description description;

    if (!read_description(file, piece, place, &description) ||
        place + 8 + (uint64_t)(int64_t)description.function != start)
        return 0;
    return description.function_bytes;
}

size_t tbd_elf_frame_functions(struct tbd_elf_file *file, struct tbd_elf_range **out)
{
    struct frame_table_head head;
    struct table_entry *entries;
    struct piece *piece;
    uint64_t base = 0;
    size_t bytes, found = 0;

    *out = NULL;
    if (!table_place(file, &base) ||
        tbd_elf_read(file, base, &head, sizeof(head)) != sizeof(head) || head.version != 1 ||
        head.count_encoding != DW_EH_PE_udata4 ||
        head.table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4) || head.count == 0 ||
        head.count > TABLE_MAX)
        return 0;
    bytes = head.count * sizeof(*entries);
    entries = malloc(bytes);
    piece = calloc(1, sizeof(*piece));
    *out = malloc(head.count * sizeof(**out));
    if (entries && piece && *out &&
        tbd_elf_read(file, base + sizeof(head), entries, bytes) == bytes) {
        for (uint32_t i = 0; i < head.count; i++) {
            uint64_t start = base + (uint64_t)(int64_t)entries[i].function;
            uint64_t length = function_bytes(
                file, piece, base + (uint64_t)(int64_t)entries[i].description, start);

            if (length && tbd_elf_is_code(file, start) && length <= file->high - start)
                (*out)[found++] = (struct tbd_elf_range){ start, start + length };
        }
    }
    free(piece);
    free(entries);
    return found;
}
