// SPDX-License-Identifier: MIT
/* remote_libraries.c - see remote_libraries.h
 *
 *   auxiliary vector -> program headers -> dynamic section -> DT_DEBUG -> struct r_debug -> struct link_map, one after another
 *
 * All of it is memory of the program, which may hold anything: the list has an end here. */
#include "query/remote/remote_libraries.h"

#include "base/escape.h"
#include "query/exports/auxiliary_vector.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARIES_MOST = 4096, HEADERS_MOST = 128, DYNAMIC_MOST = 512, SPACES_MOST = 64 };

static bool read_at(struct tbd_remote_motion *motion, uint64_t address, void *out, size_t bytes)
{
    return tbd_session_read(motion->session, motion->at, address, out, bytes) == TBD_OK;
}

struct headers {
    uint64_t at, count;
};

static struct headers find_headers(struct tbd_remote_motion *motion)
{
    struct headers headers = { 0 };
    uint64_t *words = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream((char **)&words, &bytes);

    if (out == NULL)
        return headers;
    tbd_auxiliary_vector_write(motion->session, out);
    if (fclose(out) != 0)
        bytes = 0;
    for (size_t i = 0; i + 1 < bytes / sizeof(*words); i += 2) {
        if (words[i] == AT_PHDR)
            headers.at = words[i + 1];
        if (words[i] == AT_PHNUM)
            headers.count = words[i + 1] < HEADERS_MOST ? words[i + 1] : HEADERS_MOST;
    }
    free(words);
    return headers;
}

/* Address of the program's dynamic section; 0: it has none. */
static uint64_t find_dynamic(struct tbd_remote_motion *motion)
{
    struct headers headers = find_headers(motion);
    uint64_t base = 0, dynamic = 0;
    Elf64_Phdr header;

    for (uint64_t i = 0; i < headers.count; i++) {
        if (!read_at(motion, headers.at + i * sizeof(header), &header, sizeof(header)))
            return 0;
        if (header.p_type == PT_PHDR)
            base = headers.at - header.p_vaddr;
        if (header.p_type == PT_DYNAMIC)
            dynamic = header.p_vaddr;
    }
    return dynamic == 0 ? 0 : base + dynamic;
}

/* Address of struct r_debug; 0: there is none yet. */
static uint64_t find_debug(struct tbd_remote_motion *motion)
{
    uint64_t dynamic = find_dynamic(motion);
    Elf64_Dyn entry;

    for (unsigned i = 0; dynamic != 0 && i < DYNAMIC_MOST; i++) {
        if (!read_at(motion, dynamic + i * sizeof(entry), &entry, sizeof(entry)) ||
            entry.d_tag == DT_NULL)
            return 0;
        if (entry.d_tag == DT_DEBUG)
            return entry.d_un.d_ptr;
    }
    return 0;
}

/* XML has neither U+FFFE nor U+FFFF: a reader refuses the whole list for one of them. */
static bool is_no_character(const char *at)
{
    return memcmp(at, "\xef\xbf\xbe", 3) == 0 || memcmp(at, "\xef\xbf\xbf", 3) == 0;
}

/* As an attribute's value, in UTF-8.  A byte that is no UTF-8 is written as "\xff"; control characters that XML cannot say are left
 * out.  Only the name is wrong then: gdb does not find that library's file. */
static void print_name(const char *name, FILE *out)
{
    char text[4 * PATH_MAX];

    tbd_escape(TBD_ESCAPE_UTF8, name, strlen(name), text, sizeof(text));
    for (const char *at = text; *at != '\0'; at++)
        if (strchr("<>&\"'\t\n\r", *at) != NULL)
            fprintf(out, "&#%d;", *at);
        else if (strncmp(at, "\xef\xbf", 2) == 0 && is_no_character(at)) {
            fprintf(out, "\\u%s", at[2] == '\xbe' ? "fffe" : "ffff");
            at += 2;
        } else if ((unsigned char)*at >= ' ')
            fputc(*at, out);
}

static void read_name(struct tbd_remote_motion *motion, uint64_t address, char name[PATH_MAX])
{
    for (size_t i = 0; i < PATH_MAX; i++) {
        if (i == PATH_MAX - 1 || !read_at(motion, address + i, &name[i], 1))
            name[i] = '\0';
        if (name[i] == '\0')
            return;
    }
}

/* The libraries of one namespace, which is known by the address of its struct r_debug. */
static void print_list(struct tbd_remote_motion *motion, uint64_t debug, uint64_t first,
                       bool has_program, FILE *out)
{
    uint64_t at = first;
    struct link_map map;
    char name[PATH_MAX];

    for (unsigned i = 0; i < LIBRARIES_MOST && at != 0 && read_at(motion, at, &map, sizeof(map));
         i++) {
        read_name(motion, (uint64_t)(uintptr_t)map.l_name, name);
        if ((i != 0 || !has_program) && name[0] != '\0') {
            fprintf(out, "<library name=\"");
            print_name(name, out);
            fprintf(out,
                    "\" lm=\"%#" PRIx64 "\" l_addr=\"%#" PRIx64 "\" l_ld=\"%#" PRIx64
                    "\" lmid=\"%#" PRIx64 "\"/>",
                    at, (uint64_t)map.l_addr, (uint64_t)(uintptr_t)map.l_ld, debug);
        }
        at = (uint64_t)(uintptr_t)map.l_next;
    }
}

/* False: there is none. */
static bool read_debug(struct tbd_remote_motion *motion, uint64_t at, struct r_debug_extended *out)
{
    memset(out, 0, sizeof(*out));
    return at != 0 && read_at(motion, at, &out->base, sizeof(out->base)) &&
           (out->base.r_version < 2 || read_at(motion, at, out, sizeof(*out)));
}

void tbd_remote_print_libraries(struct tbd_remote_motion *motion, FILE *out)
{
    uint64_t at = find_debug(motion), first;
    struct r_debug_extended debug;

    fprintf(out, "<library-list-svr4 version=\"1.0\"");
    if (read_debug(motion, at, &debug) && debug.base.r_map != NULL)
        fprintf(out, " main-lm=\"%#" PRIx64 "\"", (uint64_t)(uintptr_t)debug.base.r_map);
    fprintf(out, ">");
    for (unsigned i = 0; i < SPACES_MOST && read_debug(motion, at, &debug); i++) {
        first = (uint64_t)(uintptr_t)debug.base.r_map;
        print_list(motion, at, first, i == 0, out);
        at = (uint64_t)(uintptr_t)debug.r_next;
    }
    fprintf(out, "</library-list-svr4>");
}
