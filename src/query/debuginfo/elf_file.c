// SPDX-License-Identifier: MIT
/* elf_file.c - opens an untrusted ELF file, and finds the files that belong to it
 *
 * Between symbols.c (which knows where a file was mapped) and libelf/libdw (which know the
 * formats).
 *
 * ELF_FILE-1  Files that others may write are read with pread (ELF_C_READ), not mapped: a file that
 *     shrinks is a read error, not SIGBUS, and stays what was checked. (not checked: it is what
 *     decoding checks of its input)
 * ELF_FILE-2  Segments are checked once, in take_segments(): sizes do not wrap, filesz <= memsz.
 *             Later code relies on it.
 * ELF_FILE-3  A separate debug file is used only if its build id is the same, or, for files without
 *     one, the checksum in the debug link fits. (not checked: it is what decoding checks of its
 *     input) */
#include "query/debuginfo/elf_file.h"

#include "query/text/other_places.h"

#include "base/assert.h"
#include "base/open_file.h"
#include "query/debuginfo/debug_cache.h"
#include "query/debuginfo/dwarf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ADDRESS_LIMIT     (1ull << 47)
#define NOTES_MAX_BYTES   (64u << 10)
#define NAMES_BLOCK_BYTES (16u << 10)
#define CHECKED_MAX_BYTES (1ll << 30) /* some seconds */

struct tbd_names_block {
    struct tbd_names_block *before; /* owned */
    size_t used;
    size_t capacity;
    char bytes[];
};

static struct tbd_names_block *block_for_names(struct tbd_names *names, size_t bytes)
{
    struct tbd_names_block *block = names->last;
    size_t capacity = bytes > NAMES_BLOCK_BYTES ? bytes : NAMES_BLOCK_BYTES;

    if (block && block->capacity - block->used >= bytes)
        return block;
    block = malloc(sizeof(*block) + capacity);
    if (!block)
        return NULL;
    block->before = names->last;
    block->used = 0;
    block->capacity = capacity;
    names->last = block;
    return block;
}

char *tbd_names_add(struct tbd_names *names, const char *text, size_t bytes, const char *suffix)
{
    size_t suffix_bytes = strlen(suffix) + 1;
    struct tbd_names_block *block = block_for_names(names, bytes + suffix_bytes);
    char *at;

    if (!block)
        return NULL;
    at = block->bytes + block->used;
    memcpy(at, text, bytes);
    memcpy(at + bytes, suffix, suffix_bytes);
    block->used += bytes + suffix_bytes;
    return at;
}

void tbd_names_free(struct tbd_names *names)
{
    while (names->last) {
        struct tbd_names_block *before = names->last->before;

        free(names->last);
        names->last = before;
    }
}

/* ---- opening ---- */

void tbd_elf_one_close(struct tbd_elf_one *one)
{
    if (one->elf)
        elf_end(one->elf);
    if (one->fd >= 0)
        close(one->fd);
    free(one->image);
    *one = (struct tbd_elf_one){ .fd = -1 };
}

static bool is_usable(Elf *elf)
{
    GElf_Ehdr header;

    return elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
           header.e_machine == EM_X86_64;
}

/* Keeps ELF_FILE-1.  Takes the descriptor; a negative one fails. */
static enum tbd_status one_take(int fd, Elf_Cmd how, struct tbd_elf_one *out)
{
    struct stat info;

    *out = (struct tbd_elf_one){ .fd = fd };
    if (fd < 0)
        return TBD_IO;
    if (fstat(fd, &info) != 0 || tbd_is_sparse(&info)) {
        tbd_elf_one_close(out);
        return TBD_CORRUPT;
    }
    out->elf = elf_begin(fd, how, NULL);
    if (!is_usable(out->elf)) {
        tbd_elf_one_close(out);
        return TBD_CORRUPT;
    }
    return TBD_OK;
}

static bool segment_is_sound(const GElf_Phdr *segment)
{
    return segment->p_vaddr < ADDRESS_LIMIT && segment->p_memsz < ADDRESS_LIMIT &&
           segment->p_vaddr + segment->p_memsz <= ADDRESS_LIMIT &&
           segment->p_filesz <= segment->p_memsz && segment->p_offset < ADDRESS_LIMIT;
}

static bool segments_are_sound(const struct tbd_elf_file *file)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const GElf_Phdr *segment = &file->segments[i];

        if (segment->p_vaddr < file->low || segment->p_vaddr + segment->p_memsz > file->high ||
            segment->p_filesz > segment->p_memsz)
            return false;
    }
    return file->high <= ADDRESS_LIMIT;
}

/* Keeps ELF_FILE-2. */
static bool take_segments(struct tbd_elf_file *file)
{
    size_t count = 0;

    if (elf_getphdrnum(file->main.elf, &count) != 0)
        return false;
    file->low = UINT64_MAX;
    for (size_t i = 0; i < count && file->segment_count < TBD_ELF_MAX_SEGMENTS; i++) {
        GElf_Phdr segment;

        if (!gelf_getphdr(file->main.elf, (int)i, &segment))
            return false;
        if (segment.p_type != PT_LOAD || segment.p_memsz == 0 || !segment_is_sound(&segment))
            continue;
        file->segments[file->segment_count++] = segment;
        if (segment.p_vaddr < file->low)
            file->low = segment.p_vaddr;
        if (segment.p_vaddr + segment.p_memsz > file->high)
            file->high = segment.p_vaddr + segment.p_memsz;
    }
    TBD_INVARIANT("ELF_FILE-2", segments_are_sound(file));
    return file->segment_count > 0;
}

/* The build id among the notes in `data`; false if it is not there. */
static bool build_id_in(Elf_Data *data, const uint8_t **out, size_t *out_bytes)
{
    size_t at = 0, name_at, text_at, next;
    GElf_Nhdr note;

    while (data && (next = gelf_getnote(data, at, &note, &name_at, &text_at)) > at) {
        const char *bytes = data->d_buf;

        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(bytes + name_at, "GNU", 4) == 0 && note.n_descsz > 0 &&
            note.n_descsz <= TBD_ELF_BUILD_ID_BYTES) {
            *out = (const uint8_t *)bytes + text_at;
            *out_bytes = note.n_descsz;
            return true;
        }
        at = next;
    }
    return false;
}

static bool build_id_from_segments(Elf *elf, const uint8_t **out, size_t *out_bytes)
{
    size_t count = 0;

    if (elf_getphdrnum(elf, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;

        if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_NOTE ||
            segment.p_filesz > NOTES_MAX_BYTES || segment.p_offset >= ADDRESS_LIMIT)
            continue;
        if (build_id_in(elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz,
                                             segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
                        out, out_bytes))
            return true;
    }
    return false;
}

/* Debug files keep the notes' section but not always its segment. */
static bool build_id_from_sections(Elf *elf, const uint8_t **out, size_t *out_bytes)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;

        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE ||
            header.sh_size > NOTES_MAX_BYTES)
            continue;
        if (build_id_in(elf_getdata(section, NULL), out, out_bytes))
            return true;
    }
    return false;
}

static void take_build_id(struct tbd_elf_file *file)
{
    const uint8_t *id;

    if (!build_id_from_segments(file->main.elf, &id, &file->build_id_bytes) &&
        !build_id_from_sections(file->main.elf, &id, &file->build_id_bytes)) {
        file->build_id_bytes = 0;
        return;
    }
    memcpy(file->build_id, id, file->build_id_bytes);
    for (size_t i = 0; i < file->build_id_bytes; i++)
        snprintf(file->build_id_text + 2 * i, 3, "%02x", file->build_id[i]);
}

static enum tbd_status finish_open(struct tbd_elf_file *file, const char *path,
                                   struct tbd_elf_file **out)
{
    file->path = strdup(path);
    if (!file->path) {
        tbd_elf_close(file);
        return TBD_NOMEM;
    }
    if (!take_segments(file)) {
        tbd_elf_close(file);
        return TBD_CORRUPT;
    }
    take_build_id(file);
    *out = file;
    return TBD_OK;
}

static struct tbd_elf_file *file_new(void)
{
    struct tbd_elf_file *file = calloc(1, sizeof(*file));

    if (file) {
        file->main.fd = -1;
        file->debug.fd = -1;
        file->unpacked.fd = -1;
    }
    return file;
}

/* Takes the descriptor. */
static enum tbd_status take_file(int fd, const char *path, Elf_Cmd how, struct tbd_elf_file **out)
{
    struct tbd_elf_file *file;
    enum tbd_status status;

    *out = NULL;
    file = elf_version(EV_CURRENT) == EV_NONE ? NULL : file_new();
    if (!file) {
        if (fd >= 0)
            close(fd);
        return TBD_NOMEM;
    }
    status = one_take(fd, how, &file->main);
    if (status != TBD_OK) {
        tbd_elf_close(file);
        return status;
    }
    return finish_open(file, path, out);
}

enum tbd_status tbd_elf_open(const char *path, struct tbd_elf_file **out)
{
    return take_file(tbd_open_named(path), path, ELF_C_READ, out);
}

enum tbd_status tbd_elf_open_copy(int dir, const char *name, const char *origin,
                                  struct tbd_elf_file **out)
{
    int fd = tbd_open_below(dir, name, O_RDONLY);
    struct stat info;
    bool is_private = fd >= 0 && fstat(fd, &info) == 0 && tbd_is_private(&info);
    enum tbd_status status = take_file(fd, name, is_private ? ELF_C_READ_MMAP : ELF_C_READ, out);

    if (status == TBD_OK)
        (*out)->origin = strdup(origin);
    return status;
}

enum tbd_status tbd_elf_open_image(const char *name, const void *image, size_t bytes,
                                   struct tbd_elf_file **out)
{
    struct tbd_elf_file *file;

    *out = NULL;
    if (elf_version(EV_CURRENT) == EV_NONE)
        return TBD_SYSTEM;
    file = file_new();
    if (!file)
        return TBD_NOMEM;
    file->main.image = malloc(bytes ? bytes : 1);
    if (!file->main.image) {
        tbd_elf_close(file);
        return TBD_NOMEM;
    }
    memcpy(file->main.image, image, bytes);
    file->main.elf = elf_memory((char *)file->main.image, bytes);
    if (!is_usable(file->main.elf)) {
        tbd_elf_close(file);
        return TBD_CORRUPT;
    }
    return finish_open(file, name, out);
}

void tbd_elf_close(struct tbd_elf_file *file)
{
    if (!file)
        return;
    if (file->eh_frame)
        dwarf_cfi_end(file->eh_frame);
    if (file->dwarf)
        dwarf_end(file->dwarf);
    tbd_dwarf_free(file->source);
    tbd_elf_free_names(file);
    free(file->symbols.all);
    free(file->symbols.spans);
    free(file->symbols.slots);
    tbd_names_free(&file->names);
    tbd_elf_one_close(&file->unpacked);
    tbd_elf_one_close(&file->debug);
    tbd_elf_one_close(&file->main);
    free(file->path);
    free(file->origin);
    free(file->debug_path);
    free(file);
}

/* ---- segments ---- */

bool tbd_elf_bias(const struct tbd_elf_file *file, uint64_t start, uint64_t file_offset,
                  uint64_t *out)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const GElf_Phdr *segment = &file->segments[i];

        if (!(segment->p_flags & PF_X) || file_offset < (segment->p_offset & ~0xfffull) ||
            file_offset >= segment->p_offset + segment->p_filesz)
            continue;
        *out = start + segment->p_offset - file_offset - segment->p_vaddr;
        return true;
    }
    return false;
}

static const GElf_Phdr *segment_of(const struct tbd_elf_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const GElf_Phdr *segment = &file->segments[i];

        if (address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_memsz)
            return segment;
    }
    return NULL;
}

bool tbd_elf_is_code(const struct tbd_elf_file *file, uint64_t address)
{
    const GElf_Phdr *segment = segment_of(file, address);

    return segment && (segment->p_flags & PF_X);
}

bool tbd_elf_is_constant(const struct tbd_elf_file *file, uint64_t address, size_t bytes)
{
    const GElf_Phdr *segment = segment_of(file, address);

    return segment && (segment->p_flags & (PF_R | PF_W)) == PF_R &&
           address - segment->p_vaddr <= segment->p_filesz &&
           bytes <= segment->p_filesz - (address - segment->p_vaddr);
}

/* Bytes [offset, offset + bytes) of the file itself; how many are there. */
static size_t read_raw(struct tbd_elf_file *file, uint64_t offset, void *out, size_t bytes)
{
    size_t total = 0;
    const char *image;

    if (file->main.fd >= 0) {
        ssize_t got = pread(file->main.fd, out, bytes, (off_t)offset);

        return got > 0 ? (size_t)got : 0;
    }
    image = elf_rawfile(file->main.elf, &total);
    if (!image || offset >= total)
        return 0;
    if (bytes > total - offset)
        bytes = (size_t)(total - offset);
    memcpy(out, image + offset, bytes);
    return bytes;
}

size_t tbd_elf_read(struct tbd_elf_file *file, uint64_t address, void *out, size_t bytes)
{
    const GElf_Phdr *segment = segment_of(file, address);
    uint64_t at, in_file;

    if (!segment)
        return 0;
    at = address - segment->p_vaddr;
    if (bytes > segment->p_memsz - at)
        bytes = (size_t)(segment->p_memsz - at);
    memset(out, 0, bytes);
    in_file = at < segment->p_filesz ? segment->p_filesz - at : 0;
    if (in_file > bytes)
        in_file = bytes;
    if (in_file && read_raw(file, segment->p_offset + at, out, (size_t)in_file) != in_file)
        return 0;
    return bytes;
}

/* ---- the separate debug file ---- */

static bool has_build_id(Elf *elf, const uint8_t *wanted, size_t wanted_bytes)
{
    const uint8_t *id;
    size_t bytes;

    if (!build_id_from_sections(elf, &id, &bytes) && !build_id_from_segments(elf, &id, &bytes))
        return false;
    return bytes == wanted_bytes && memcmp(id, wanted, bytes) == 0;
}

bool tbd_elf_one_open(const char *path, const uint8_t *id, size_t id_bytes, struct tbd_elf_one *out)
{
    if (one_take(tbd_open_named(path), ELF_C_READ, out) != TBD_OK)
        return false;
    if (has_build_id(out->elf, id, id_bytes))
        return true;
    tbd_elf_one_close(out);
    return false;
}

static uint32_t crc32_add(uint32_t crc, const uint8_t *at, size_t bytes)
{
    for (; bytes; bytes--, at++) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return crc;
}

/* The checksum of debug links: CRC-32 of the whole file. */
static bool has_checksum(int fd, uint32_t expected)
{
    uint8_t buffer[65536];
    uint32_t crc = 0xffffffffu;
    off_t at = 0;
    ssize_t got = 0;

    while (at < CHECKED_MAX_BYTES && (got = pread(fd, buffer, sizeof(buffer), at)) > 0) {
        crc = crc32_add(crc, buffer, (size_t)got);
        at += got;
    }
    return at < CHECKED_MAX_BYTES && got == 0 && ~crc == expected;
}

/* Keeps ELF_FILE-3.  `checksum` is NULL if there is no debug link to go by. */
static bool try_debug(struct tbd_elf_file *file, const char *path, const uint32_t *checksum)
{
    if (one_take(tbd_open_named(path), ELF_C_READ, &file->debug) != TBD_OK)
        return false;
    if (file->build_id_bytes ? has_build_id(file->debug.elf, file->build_id, file->build_id_bytes)
                             : checksum && has_checksum(file->debug.fd, *checksum)) {
        file->debug_path = strdup(path);
        return true;
    }
    tbd_elf_one_close(&file->debug);
    return false;
}

static Elf_Scn *section_named(Elf *elf, const char *wanted, GElf_Shdr *header)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        const char *name;

        if (gelf_getshdr(section, header) &&
            (name = elf_strptr(elf, names, header->sh_name)) != NULL && strcmp(name, wanted) == 0)
            return section;
    }
    return NULL;
}

/* Name and checksum from .gnu_debuglink: a plain file name, NUL, padding to 4, CRC. */
static bool debug_link(Elf *elf, char *out, size_t out_bytes, uint32_t *out_crc)
{
    GElf_Shdr header;
    Elf_Scn *section = section_named(elf, ".gnu_debuglink", &header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    size_t length;

    if (!data || !data->d_buf || data->d_size < 8)
        return false;
    length = strnlen(data->d_buf, data->d_size - 4);
    if (length == 0 || length >= out_bytes || ((length + 4) & ~3ull) + 4 > data->d_size)
        return false;
    memcpy(out, data->d_buf, length);
    out[length] = 0;
    memcpy(out_crc, (const char *)data->d_buf + ((length + 4) & ~3ull), 4);
    return !strchr(out, '/');
}

/* gdb's places: beside the file, in .debug beside it, below /usr/lib/debug. */
static void find_by_link(struct tbd_elf_file *file)
{
    static const struct {
        const char *before, *after;
    } places[] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } };
    char name[256], path[4096 + 512];
    const char *own = file->origin ? file->origin : file->path, *slash = strrchr(own, '/');
    uint32_t crc;

    if (!slash || slash - own > 4096 || !debug_link(file->main.elf, name, sizeof(name), &crc))
        return;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(path, sizeof(path), "%s%.*s%s/%s", places[i].before, (int)(slash - own), own,
                 places[i].after, name);
        if (strcmp(path, own) != 0 && try_debug(file, path, &crc))
            return;
    }
}

Elf *tbd_elf_debug(struct tbd_elf_file *file)
{
    char path[4096 + sizeof(file->build_id_text)];

    if (file->debug_tried)
        return file->debug.elf;
    file->debug_tried = true;
    for (size_t i = 0;
         file->build_id_bytes > 1 && tbd_places_debug(i, file->build_id_text, path, sizeof(path));
         i++)
        if (try_debug(file, path, NULL))
            return file->debug.elf;
    if (file->build_id_bytes > 1) {
        snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", file->build_id_text,
                 file->build_id_text + 2);
        if (try_debug(file, path, NULL))
            return file->debug.elf;
    }
    find_by_link(file);
    return file->debug.elf;
}

/* ---- call frame information ---- */

static void load_eh_frame(struct tbd_elf_file *file)
{
    if (file->eh_frame_tried)
        return;
    file->eh_frame_tried = true;
    file->eh_frame = dwarf_getcfi_elf(file->main.elf);
}

/* Opening DWARF is expensive (compressed sections), so it waits until .eh_frame has no answer. */
static void load_debug_frame(struct tbd_elf_file *file)
{
    GElf_Shdr header;
    Elf *elf = tbd_elf_debug(file);

    if (file->dwarf_tried)
        return;
    file->dwarf_tried = true;
    if (!elf || (!section_named(elf, ".debug_frame", &header) &&
                 !section_named(elf, ".zdebug_frame", &header)))
        elf = file->main.elf;
    if ((!section_named(elf, ".debug_frame", &header) &&
         !section_named(elf, ".zdebug_frame", &header)) ||
        !tbd_elf_can_unpack(file, elf == file->main.elf ? &file->main : &file->debug))
        return;
    file->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    if (file->dwarf)
        file->debug_frame = dwarf_getcfi(file->dwarf);
}

Dwarf_Frame *tbd_elf_frame(struct tbd_elf_file *file, uint64_t address)
{
    Dwarf_Frame *frame = NULL;

    load_eh_frame(file);
    if (file->eh_frame && dwarf_cfi_addrframe(file->eh_frame, address, &frame) == 0)
        return frame;
    load_debug_frame(file);
    if (file->debug_frame && dwarf_cfi_addrframe(file->debug_frame, address, &frame) == 0)
        return frame;
    return NULL;
}
