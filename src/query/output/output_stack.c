// SPDX-License-Identifier: MIT
/* output_stack.c - see output_stack.h */
#include "query/output/output_stack.h"

#include "query/session/source/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INLINED_MAX 16u

/* Adds "main main.c:12"; returns how long the text is then. */
static size_t add_frame(const char *name, const struct tbd_source_line *source, char *out,
                        size_t used, size_t bytes)
{
    const char *slash = source->line == 0 ? NULL : strrchr(source->file, '/');

    if (used >= bytes)
        return bytes;
    if (source->line == 0)
        return used + (size_t)snprintf(out + used, bytes - used, " < %s", name);
    return used + (size_t)snprintf(out + used, bytes - used, " < %s %s:%" PRIu32, name,
                                   slash == NULL ? source->file : slash + 1, source->line);
}

/* Adds the calls at an address: those of inlined functions, too. */
static size_t add_frames(struct tbd_session *session, uint32_t window, uint64_t pc, char *out,
                         size_t used, size_t bytes)
{
    struct tbd_source_frame frames[INLINED_MAX] = { 0 };
    size_t count = tbd_source_frames(session, window, pc, frames, INLINED_MAX);
    struct tbd_symbol symbol;
    char unnamed[256];

    for (size_t i = 0; i < count; i++) {
        const char *name = frames[i].name;

        if (name == NULL && tbd_symbols_at(session->symbols, window, pc, &symbol))
            name = symbol.name;
        if (name == NULL)
            name = tbd_symbols_format(session->symbols, window, pc, unnamed, sizeof(unnamed));
        used = add_frame(name, &frames[i].source, out, used, bytes);
    }
    return used;
}

void tbd_output_stack_text(struct tbd_session *session, const struct tbd_output_stack *stack,
                           char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "%s", stack->name);

    for (size_t i = 0; i < stack->count && used < bytes; i++)
        used = add_frames(session, stack->window, stack->pcs[i], out, used, bytes);
}
