// SPDX-License-Identifier: MIT
/* diff_lines.c - the lines of two versions of a source file, numbered alike
 *
 * Lines that both texts have, in the same order, are found as by diff(1): the same beginning and the same end are
 * cut off, and of the rest the longest common subsequence is taken.
 *
 * DIFF_LINES-1  A line of the second text that is common has the number of its partner in the first; any other one has a
 *     number from TBD_DIFF_ONLY_SECOND on. (not checked: each line is numbered by one of three functions here) */
#include "query/diff/diff_builds.h"

#include "base/string.h"
#include "base/array.h"
#include "base/hash.h"
#include "query/debuginfo/dwarf_sources.h"
#include "query/session/source/source.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_MAX (1u << 22) /* cells of the table of subsequences */

struct diffed_file {
    char *name;       /* owned: last part of the path */
    uint32_t *number; /* owned; by line of the second text, from 1 */
    uint32_t count;   /* lines of the second text */
};

struct tbd_diff_lines {
    struct diffed_file *files; /* owned */
    size_t count, capacity;
};

struct tbd_diff_lines *tbd_diff_lines_new(void)
{
    return calloc(1, sizeof(struct tbd_diff_lines));
}

void tbd_diff_lines_free(struct tbd_diff_lines *lines)
{
    for (size_t i = 0; lines != NULL && i < lines->count; i++) {
        free(lines->files[i].name);
        free(lines->files[i].number);
    }
    if (lines != NULL)
        free(lines->files);
    free(lines);
}

static const struct diffed_file *find_file(const struct tbd_diff_lines *lines, const char *path)
{
    for (size_t i = 0; i < lines->count; i++) {
        if (strcmp(lines->files[i].name, tbd_base_name(path)) == 0)
            return &lines->files[i];
    }
    return NULL;
}

uint32_t tbd_diff_lines_number(const struct tbd_diff_lines *lines, unsigned side, const char *file,
                               uint32_t line)
{
    const struct diffed_file *found = find_file(lines, file);

    if (found == NULL)
        return 0;
    if (side == 0)
        return line;
    return line == 0 || line > found->count ? TBD_DIFF_ONLY_SECOND + line : found->number[line];
}

/* ---- comparing two texts ---- */

struct two_texts {
    const struct tbd_source_text *a, *b;
    uint32_t from, a_end, b_end; /* what is left of them: lines [from, end), from 1 */
    uint32_t *number;
};

static bool is_equal(const struct two_texts *texts, uint32_t a, uint32_t b)
{
    return strcmp(texts->a->lines[a], texts->b->lines[b]) == 0;
}

static void cut_ends(struct two_texts *texts)
{
    while (texts->from < texts->a_end && texts->from < texts->b_end &&
           is_equal(texts, texts->from, texts->from)) {
        texts->number[texts->from] = texts->from;
        texts->from++;
    }
    while (texts->a_end > texts->from && texts->b_end > texts->from &&
           is_equal(texts, texts->a_end - 1, texts->b_end - 1))
        texts->number[--texts->b_end] = --texts->a_end;
}

/* length[i * width + j]: of the longest common subsequence of what is left after i and j lines. */
static bool match_middle(struct two_texts *texts)
{
    size_t height = texts->a_end - texts->from + 1, width = texts->b_end - texts->from + 1;
    uint32_t *length;
    size_t i = 0, j = 0;

    if (height * width > TABLE_MAX)
        return true; /* all of it is of one side only */
    length = calloc(height * width, sizeof(*length));
    if (length == NULL)
        return false;
    for (size_t row = height - 1; row-- > 0;) {
        for (size_t column = width - 1; column-- > 0;) {
            uint32_t down = length[(row + 1) * width + column];
            uint32_t right = length[row * width + column + 1];

            length[row * width + column] =
                is_equal(texts, texts->from + (uint32_t)row, texts->from + (uint32_t)column)
                    ? 1 + length[(row + 1) * width + column + 1]
                : down > right ? down
                               : right;
        }
    }
    while (i + 1 < height && j + 1 < width) {
        if (is_equal(texts, texts->from + (uint32_t)i, texts->from + (uint32_t)j)) {
            texts->number[texts->from + j] = texts->from + (uint32_t)i;
            i++;
            j++;
        } else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) {
            i++;
        } else {
            j++;
        }
    }
    free(length);
    return true;
}

static bool add_texts(struct tbd_diff_lines *lines, const char *path,
                      const struct tbd_source_text *a, const struct tbd_source_text *b)
{
    struct two_texts texts = {
        .a = a, .b = b, .from = 1, .a_end = a->line_count + 1, .b_end = b->line_count + 1
    };
    struct diffed_file *file;

    if (!tbd_array_grow(&lines->files, lines->count, &lines->capacity, sizeof(*lines->files)))
        return false;
    file = &lines->files[lines->count];
    *file = (struct diffed_file){ .name = strdup(tbd_base_name(path)), .count = b->line_count };
    file->number = malloc(((size_t)b->line_count + 1) * sizeof(*file->number));
    texts.number = file->number;
    lines->count++;
    if (file->name == NULL || texts.number == NULL)
        return false;
    for (uint32_t i = 0; i <= b->line_count; i++)
        texts.number[i] = TBD_DIFF_ONLY_SECOND + i;
    cut_ends(&texts);
    return match_middle(&texts);
}

/* ---- which files ---- */

struct lines_search {
    struct tbd_diff_lines *lines;
    struct tbd_dwarf *b;
    const char *path; /* of the first side's file */
    bool no_memory;
};

static bool take_second(void *context, const char *path)
{
    struct lines_search *search = context;
    struct tbd_source_text a, b;

    if (strcmp(tbd_base_name(path), tbd_base_name(search->path)) != 0)
        return true;
    /* one file, which has one text now: that of the later version */
    if (strcmp(path, search->path) == 0 || !tbd_source_load(search->path, &a))
        return false;
    if (tbd_source_load(path, &b)) {
        search->no_memory = !add_texts(search->lines, path, &a, &b);
        tbd_source_unload(&b);
    }
    tbd_source_unload(&a);
    return false;
}

static bool take_first(void *context, const char *path)
{
    struct lines_search *search = context;

    search->path = path;
    if (find_file(search->lines, path) == NULL)
        tbd_dwarf_sources(search->b, take_second, search);
    return !search->no_memory;
}

bool tbd_diff_lines_add(struct tbd_diff_lines *lines, struct tbd_dwarf *a, struct tbd_dwarf *b)
{
    struct lines_search search = { .lines = lines, .b = b };

    if (a != NULL && b != NULL)
        tbd_dwarf_sources(a, take_first, &search);
    return !search.no_memory;
}
