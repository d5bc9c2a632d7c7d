// SPDX-License-Identifier: MIT
/* decoder-image.c - the decoder library as the engine carries it: a step of the build
 *
 *   tbd-decoder-image LIBRARY IMAGE
 *
 * The library's stack protector compares a word of thread-local storage, fs:0x28.  The engine runs it with the traced program's
 * fs base, where nothing need lie.  So in the copy these instructions use the first word of the library itself, which never
 * changes: mov %fs:0x28,%rax becomes mov BASE(%rip),%rax, with two prefixes that mean nothing, so that it is as long.  A library that
 * uses fs for anything else is refused. */
#include <Zydis/Zydis.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 16 << 20, GUARD_BYTES = 9, GUARD_PLACE = 0x28 };

static uint8_t image[MAX_BYTES];
static size_t image_bytes;

static bool fail(const char *path, const char *why)
{
    fprintf(stderr, "tbd-decoder-image: %s: %s\n", path, why);
    return false;
}

static bool read_library(const char *path)
{
    FILE *file = fopen(path, "rb");

    if (!file)
        return fail(path, "cannot be read");
    image_bytes = fread(image, 1, sizeof(image), file);
    fclose(file);
    return (image_bytes > sizeof(Elf64_Ehdr) && image_bytes < sizeof(image)) ||
           fail(path, "has an unexpected size");
}

static bool write_image(const char *path)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(image, 1, image_bytes, file) == image_bytes;

    if (file && fclose(file) != 0)
        ok = false;
    return ok || fail(path, "cannot be written");
}

/* fs, REX.W, opcode, a register and an address of 32 bits, which is that of the stack protector. */
static bool is_guard(const uint8_t *code, const ZydisDecodedInstruction *insn)
{
    int32_t place;

    memcpy(&place, code + 5, sizeof(place));
    return insn->length == GUARD_BYTES && code[0] == 0x64 && (code[1] & 0xfb) == 0x48 &&
           (insn->mnemonic == ZYDIS_MNEMONIC_MOV || insn->mnemonic == ZYDIS_MNEMONIC_SUB ||
            insn->mnemonic == ZYDIS_MNEMONIC_CMP || insn->mnemonic == ZYDIS_MNEMONIC_XOR) &&
           (code[2] & 0x07) == 0x03 && (code[3] & 0xc7) == 0x04 && code[4] == 0x25 &&
           place == GUARD_PLACE;
}

/* `address`: of the instruction, from the library's first byte. */
static void replace_guard(uint8_t *code, uint64_t address)
{
    int32_t place = -(int32_t)(address + GUARD_BYTES);
    uint8_t changed[GUARD_BYTES] = { 0x3e, 0x3e, code[1], code[2], (code[3] & 0x38) | 0x05 };

    memcpy(changed + 5, &place, sizeof(place));
    memcpy(code, changed, sizeof(changed));
}

/* A library's code is instructions from its first byte to its last. */
static bool replace_guards(const ZydisDecoder *decoder, const char *path, const Elf64_Shdr *section)
{
    ZydisDecodedInstruction insn;

    for (uint64_t i = 0; i < section->sh_size; i += insn.length) {
        uint8_t *code = image + section->sh_offset + i;

        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeInstruction(decoder, NULL, code, section->sh_size - i, &insn)))
            return fail(path, "has bytes in its code that are no instructions");
        if (!(insn.attributes & ZYDIS_ATTRIB_HAS_SEGMENT_FS))
            continue;
        if (!is_guard(code, &insn))
            return fail(path, "uses thread-local storage for more than its stack protector");
        replace_guard(code, section->sh_addr + i);
    }
    return true;
}

static bool begins_with_header(const Elf64_Ehdr *header)
{
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr == 0 &&
            segments[i].p_offset == 0 && segments[i].p_flags & PF_R)
            return true;
    return false;
}

static bool has_tables(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_machine == EM_X86_64 &&
           header->e_phoff <= image_bytes &&
           header->e_phnum <= (image_bytes - header->e_phoff) / sizeof(Elf64_Phdr) &&
           header->e_shnum && header->e_shoff <= image_bytes &&
           header->e_shnum <= (image_bytes - header->e_shoff) / sizeof(Elf64_Shdr);
}

static bool change(const char *path)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *sections;
    ZydisDecoder decoder;

    if (!has_tables(header) || !begins_with_header(header))
        return fail(path, "is not a library with sections that begins with its header");
    if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return fail(path, "cannot be decoded");
    sections = (const Elf64_Shdr *)(image + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i];

        if (!(s->sh_flags & SHF_EXECINSTR) || s->sh_type != SHT_PROGBITS)
            continue;
        if (s->sh_offset > image_bytes || s->sh_size > image_bytes - s->sh_offset)
            return fail(path, "ends within its code");
        if (!replace_guards(&decoder, path, s))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: tbd-decoder-image LIBRARY IMAGE\n");
        return 2;
    }
    return read_library(argv[1]) && change(argv[1]) && write_image(argv[2]) ? 0 : 1;
}
