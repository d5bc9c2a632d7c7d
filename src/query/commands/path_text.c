// SPDX-License-Identifier: MIT
/* path_text.c - see path_text.h */
#include "query/commands/path_text.h"
#include "query/session/source/source.h"

#include <stdlib.h>
#include <string.h>

/* The text of a source file, kept. */
struct tbd_path_source {
    struct tbd_path_source *next;
    char *path; /* owned */
    bool is_read;
    struct tbd_source_text text;
};

static struct tbd_path_source *source_of(struct tbd_path_source **sources, const char *name)
{
    struct tbd_path_source *source = *sources;

    while (source != NULL && strcmp(source->path, name) != 0)
        source = source->next;
    if (source != NULL)
        return source;
    source = calloc(1, sizeof(*source));
    if (source == NULL || (source->path = strdup(name)) == NULL) {
        free(source);
        return NULL;
    }
    source->is_read = tbd_source_load(name, &source->text);
    source->next = *sources;
    *sources = source;
    return source;
}

const char *tbd_path_text(struct tbd_path_source **sources, const struct tbd_source_line *line)
{
    const struct tbd_path_source *source = line->line == 0 ? NULL : source_of(sources, line->file);
    const char *text;

    if (source == NULL || !source->is_read || line->line > source->text.line_count)
        return NULL;
    text = source->text.lines[line->line];
    return text + strspn(text, " \t");
}

void tbd_path_texts_free(struct tbd_path_source *sources)
{
    while (sources != NULL) {
        struct tbd_path_source *source = sources;

        sources = source->next;
        if (source->is_read)
            tbd_source_unload(&source->text);
        free(source->path);
        free(source);
    }
}
