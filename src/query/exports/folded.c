// SPDX-License-Identifier: MIT
/* folded.c - folded stacks, as flamegraph.pl and its likes read them: "main;parse;next 1234"
 *
 * One line for each stack, with the block entries spent in its innermost call itself. */
#include "query/exports/timeline.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct folded_stack {
    uint64_t self;
    char text[];
};

struct folding {
    const struct tbd_timeline *timeline;
    char *text; /* owned: the names of open slices, each after a ';' */
    size_t used, capacity;
    void *tree; /* of struct folded_stack, owned */
    bool no_memory;
};

static int compare_stacks(const void *left, const void *right)
{
    const struct folded_stack *a = left, *b = right;

    return strcmp(a->text, b->text);
}

static void fold_open(void *context, const struct tbd_timeline_slice *slice)
{
    struct folding *folding = context;
    const char *name = folding->timeline->names[slice->name].text;
    size_t bytes = strlen(name) + 2;

    if (folding->used + bytes > folding->capacity) {
        size_t capacity = (folding->used + bytes) * 2;
        char *bigger = realloc(folding->text, capacity);

        if (bigger == NULL) {
            folding->no_memory = true;
            return;
        }
        folding->text = bigger;
        folding->capacity = capacity;
    }
    folding->text[folding->used] = ';';
    for (size_t i = 0; i < bytes - 1; i++) /* a ';' separates names */
        folding->text[folding->used + 1 + i] = name[i] == ';' ? ':' : name[i];
    folding->used += bytes - 1;
}

static void add_self(struct folding *folding, uint64_t self)
{
    struct folded_stack *own = malloc(sizeof(*own) + folding->used + 1), **found;

    if (own == NULL || folding->used == 0) {
        folding->no_memory |= own == NULL;
        free(own);
        return;
    }
    own->self = 0;
    memcpy(own->text, folding->text + 1, folding->used - 1);
    own->text[folding->used - 1] = '\0';
    found = tsearch(own, &folding->tree, compare_stacks);
    if (found == NULL) {
        folding->no_memory = true;
        free(own);
        return;
    }
    (*found)->self += self;
    if (*found != own)
        free(own);
}

static void fold_close(void *context, const struct tbd_timeline_slice *slice, uint64_t self)
{
    struct folding *folding = context;
    size_t bytes = strlen(folding->timeline->names[slice->name].text) + 1;

    if (self != 0)
        add_self(folding, self);
    folding->used -= bytes < folding->used ? bytes : folding->used;
}

static void print_stack(const void *node, VISIT visit, void *context)
{
    const struct folded_stack *own = *(struct folded_stack *const *)node;
    char *shown;

    if (visit != postorder && visit != leaf)
        return;
    shown = tbd_shown_copy(own->text);
    fprintf(context, "%s %" PRIu64 "\n", shown == NULL ? "?" : shown, own->self);
    free(shown);
}

bool tbd_export_folded(const struct tbd_export *export)
{
    struct folding folding = { .timeline = export->timeline };
    struct tbd_timeline_visitor visitor = { .open = fold_open,
                                            .close = fold_close,
                                            .context = &folding };
    bool is_good = tbd_timeline_walk(export->timeline, &visitor) && !folding.no_memory;

    if (is_good)
        twalk_r(folding.tree, print_stack, export->out);
    tdestroy(folding.tree, free);
    free(folding.text);
    return is_good;
}
