// SPDX-License-Identifier: MIT
/* source.c - see source.h */
#include "query/session/source/source_place.h"
#include "query/session/position_text.h"

#include "base/open_file.h"
#include "format/files/trace_dir.h"
#include "format/trace/trace_handle.h"
#include "query/text/other_places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUNCTIONS_MAX  32u
#define FRAMES_MAX     65536u
#define FILE_MAX_BYTES (64u << 20)

static struct tbd_dwarf *dwarf_at(struct tbd_session *session, uint32_t window, uint64_t address,
                                  uint64_t *out_bias)
{
    const struct tbd_module *module = tbd_symbols_module_at(session->symbols, window, address);

    *out_bias = module == NULL ? 0 : module->bias;
    return module == NULL ? NULL : tbd_dwarf_of(module->file);
}

bool tbd_source_line_at(struct tbd_session *session, uint32_t window, uint64_t address,
                        struct tbd_source_line *out)
{
    uint64_t bias;
    struct tbd_dwarf *dwarf = dwarf_at(session, window, address, &bias);

    *out = (struct tbd_source_line){ .file = NULL };
    return dwarf != NULL && tbd_dwarf_line_at(dwarf, address - bias, out);
}

bool tbd_source_same_line(const struct tbd_source_line *a, const struct tbd_source_line *b)
{
    return a->line == b->line && (a->file == b->file || (a->file != NULL && b->file != NULL &&
                                                         strcmp(a->file, b->file) == 0));
}

size_t tbd_source_frames(struct tbd_session *session, uint32_t window, uint64_t address,
                         struct tbd_source_frame *out, size_t max)
{
    struct tbd_dwarf_function functions[FUNCTIONS_MAX];
    struct tbd_dwarf_scopes scopes;
    struct tbd_source_line line;
    uint64_t bias;
    struct tbd_dwarf *dwarf = dwarf_at(session, window, address, &bias);
    size_t count = 0;

    (void)tbd_source_line_at(session, window, address, &line);
    out[0] = (struct tbd_source_frame){ .source = line };
    if (dwarf != NULL && tbd_dwarf_scopes(dwarf, address - bias, &scopes))
        count = tbd_dwarf_functions(&scopes, functions, FUNCTIONS_MAX);
    if (count > max)
        count = max;
    for (size_t i = 0; i < count; i++) {
        out[i] =
            (struct tbd_source_frame){ .function = i,
                                       .is_inlined = functions[i].is_inlined,
                                       .name = functions[i].is_inlined ? functions[i].name : NULL,
                                       .source = line };
        line = functions[i].call;
    }
    return count == 0 ? 1 : count;
}

/* ---- the stack ---- */

/* Appends the calls in frame `index` on the stack. */
static enum tbd_status add_calls(struct tbd_session *session, struct tbd_source_stack *stack,
                                 size_t index)
{
    struct tbd_source_frame calls[FUNCTIONS_MAX];
    size_t count = tbd_source_frames(session, stack->window, stack->frames[index].call_pc, calls,
                                     FUNCTIONS_MAX);
    struct tbd_source_frame *bigger =
        realloc(stack->calls, (stack->count + count) * sizeof(*bigger));

    if (bigger == NULL)
        return TBD_NOMEM;
    stack->calls = bigger;
    for (size_t i = 0; i < count; i++) {
        calls[i].stack = index;
        stack->calls[stack->count++] = calls[i];
    }
    return TBD_OK;
}

/* ---- the selected frame: it is valid only at its position ---- */

static bool is_same(struct tbd_session_before a, struct tbd_session_before b)
{
    return a.back == b.back && (a.back == 0 || (a.insn == b.insn && a.thread == b.thread));
}

/* A line "POSITION NUMBER", and before a crash dump's end " BACK INSN THREAD" after it.  False: there is none. */
static bool read_selected(struct tbd_session *session, struct tbd_position *at,
                          struct tbd_session_before *before, size_t *number)
{
    FILE *file = tbd_dir_text(tbd_session_home(session), "frame");
    char text[192];
    bool has_line;
    size_t length;
    int fields;

    *before = (struct tbd_session_before){ 0 };
    if (file == NULL)
        return false;
    has_line = fgets(text, sizeof(text), file) != NULL;
    fclose(file);
    if (!has_line)
        return false;
    length = tbd_position_take(session, text, at);
    if (length == 0)
        return false;
    fields = sscanf(text + length, " %zu %" SCNu64 " %" SCNu32 " %" SCNu32, number, &before->back,
                    &before->insn, &before->thread);
    return fields == 1 || fields == 4;
}

size_t tbd_source_selected(struct tbd_session *session, struct tbd_position position)
{
    struct tbd_position at = session->unwritten.position;
    struct tbd_session_before before = session->unwritten.before;
    size_t number = session->unwritten.frame;

    if (session->past != NULL && session->past->is_row)
        return 0;
    if (!session->unwritten.has_position && !session->unwritten.has_frame &&
        !read_selected(session, &at, &before, &number))
        return 0;
    return at.time == position.time && at.offset == position.offset &&
                   is_same(before, tbd_session_before(session))
               ? number
               : 0;
}

void tbd_source_select(struct tbd_session *session, struct tbd_position position, size_t number)
{
    struct tbd_session_before before = tbd_session_before(session);
    char text[160];
    int used =
        snprintf(text, sizeof(text), "%s %zu", tbd_position_text(session, position).text, number);

    if (before.back != 0)
        used +=
            snprintf(text + used, sizeof(text) - (size_t)used, " %" PRIu64 " %" PRIu32 " %" PRIu32,
                     before.back, before.insn, before.thread);
    text[used++] = '\n';
    if (!session->is_private &&
        tbd_dir_write(tbd_session_home(session), "frame", text, (size_t)used) == TBD_OK)
        return;
    session->unwritten.has_frame = true;
    session->unwritten.position = position;
    session->unwritten.before = before;
    session->unwritten.frame = number;
}

/* One of many moments is about its innermost frame: what that needs of its callers. */
static size_t frames_most(const struct tbd_session *session)
{
    return session->past != NULL && session->past->is_row ? TBD_SOURCE_CALLERS : FRAMES_MAX;
}

enum tbd_status tbd_source_stack(struct tbd_session *session, struct tbd_position position,
                                 struct tbd_source_stack *out)
{
    enum tbd_status status = TBD_NOMEM;
    size_t most = frames_most(session);

    *out =
        (struct tbd_source_stack){ .position = position,
                                   .window = tbd_trace_window_of(session->trace, position.time) };
    out->frames = calloc(most, sizeof(*out->frames));
    if (out->frames != NULL)
        status = tbd_session_stack(session, position, out->frames, most, &out->frame_count);
    for (size_t i = 0; status == TBD_OK && i < out->frame_count; i++)
        status = add_calls(session, out, i);
    out->is_cut = out->frame_count == most;
    if (status != TBD_OK) {
        tbd_source_stack_free(out);
        return status;
    }
    out->selected = tbd_source_selected(session, position);
    if (out->selected >= out->count)
        out->selected = 0;
    return TBD_OK;
}

void tbd_source_stack_free(struct tbd_source_stack *stack)
{
    free(stack->frames);
    free(stack->calls);
    stack->frames = NULL;
    stack->calls = NULL;
}

/* ---- text ---- */

static bool index_lines(struct tbd_source_text *text, size_t bytes)
{
    uint32_t count = 0;
    char *at = text->bytes;

    for (size_t i = 0; i < bytes; i++)
        count += text->bytes[i] == '\n';
    text->lines = calloc((size_t)count + 2, sizeof(*text->lines));
    if (text->lines == NULL)
        return false;
    while (at < text->bytes + bytes) {
        char *end = memchr(at, '\n', (size_t)(text->bytes + bytes - at));

        text->lines[++text->line_count] = at;
        if (end == NULL)
            break;
        *end = '\0';
        at = end + 1;
    }
    return true;
}

static uint64_t changed_ns(const struct stat *info)
{
    return (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;
}

/* A source of the trace's own, or one that the user says, comes before the file at the path itself. */
static int open_source(const char *path)
{
    char other[4096];
    struct stat info;
    int fd;

    for (size_t i = 0; tbd_places_source(i, path, other, sizeof(other)); i++) {
        fd = other[0] == '\0' ? -1 : tbd_open_named(other);
        if (fd >= 0)
            return fd;
    }
    fd = tbd_open_named(path);
    if (fd >= 0 && fstat(fd, &info) == 0)
        tbd_places_note_source(path, changed_ns(&info));
    return fd;
}

/* The path comes from the program's debug information. */
bool tbd_source_load(const char *path, struct tbd_source_text *out)
{
    struct stat info;
    int fd = open_source(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
    size_t bytes = 0;

    *out = (struct tbd_source_text){ .bytes = NULL };
    if (file == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (fstat(fd, &info) == 0 && info.st_size <= FILE_MAX_BYTES)
        out->bytes = calloc((size_t)info.st_size + 1, 1);
    if (out->bytes != NULL)
        bytes = fread(out->bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    if (out->bytes != NULL && index_lines(out, bytes))
        return true;
    tbd_source_unload(out);
    return false;
}

void tbd_source_unload(struct tbd_source_text *text)
{
    free(text->bytes);
    free(text->lines);
    *text = (struct tbd_source_text){ .bytes = NULL };
}
