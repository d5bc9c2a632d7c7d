// SPDX-License-Identifier: MIT
/* gdb_words.c - see gdb_words.h
 *
 * GDB_WORDS-1  A word that is a command of tbdq means that, except `info`, `print/FORMAT` and `thread
 *     apply all bt`. (not checked: test_habits.py does) */
#include "query/prompt/gdb_words.h"

#include "query/commands/commands.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 64

struct word_row {
    const char *word;
    const char *means; /* what stands for it */
};

static const struct word_row same[] = {
    { "p", "print" },
    { "inspect", "print" },
    { "output", "print" },
    { "backtrace", "bt" },
    { "s", "step" },
    { "n", "next" },
    { "si", "stepi" },
    { "ni", "nexti" },
    { "fin", "finish" },
    { "rs", "reverse-step" },
    { "rn", "reverse-next" },
    { "rsi", "reverse-stepi" },
    { "rni", "reverse-nexti" },
    { "f", "frame" },
    { "l", "list" },
    { "whatis", "ptype" },
    { "when", "where" },
    { "disassemble", "disas" },
    { "b", "break" },
    { "br", "break" },
    { "tb", "tbreak" },
    { "c", "continue" },
    { "fg", "continue" },
    { "rc", "reverse-continue" },
    { "d", "delete" },
    { "u", "until" },
    { "advance", "until" },
    { NULL, NULL },
};

struct info_row {
    const char *word;
    const char *means;
    bool takes_words; /* what follows belongs to it */
};

/* In the order in which a beginning of the word is looked up: `info s` is the stack. */
static const struct info_row infos[] = {
    { "args", "locals args", false },
    { "frame", "frame", false },
    { "breakpoints", "breakpoints", false },
    { "watchpoints", "breakpoints", false },
    { "locals", "locals", false },
    { "registers", "regs", false },
    { "stack", "bt", false },
    { "sharedlibrary", "modules", false },
    { "threads", "threads", false },
    { "inferiors", "processes", false },
    { "source", "list 1", false },
    { "checkpoints", "marks", false },
    { "program", "where", false },
    { "symbol", "symbol", true },
    { "line", "line", true },
    { "functions", "functions", true },
    { "variables", "variables", true },
    { "types", "types", true },
    { NULL, NULL, false },
};

static const char see_gdb[] = "`tbdq help gdb` lists the equivalents of gdb's commands";

static const struct word_row others[] = {
    { "awatch", "two of them: watch EXPR and rwatch EXPR" },
    { "run",
      "it has run: goto first, goto last, goto first forward func_enter 1 where func==main" },
    { "dprintf", "log PLACE FORMAT VALUE...: a line for each time that it was executed" },
    { "display", "print EXPR at each position; all values it had: history EXPR" },
    { "call", "functions of the program are not called; what they returned: calls NAME" },
    { "checkpoint", "mark NAME keeps this position: @NAME stands for it" },
    { "info", see_gdb },
    { NULL, NULL },
};

static const struct word_row short_forms[] = {
    { "r", "run" },
    { "start", "run" },
    { "i", "info" },
    { NULL, NULL },
};

static const char *find(const struct word_row *rows, const char *word)
{
    for (; rows->word != NULL; rows++) {
        if (strcmp(rows->word, word) == 0)
            return rows->means;
    }
    return NULL;
}

/* The line's first word up to a blank or '/', and what follows it. */
static const char *first_word(const char *line, char out[WORD_BYTES])
{
    size_t length;

    line += strspn(line, " \t");
    length = strcspn(line, " \t/");
    if (length >= WORD_BYTES)
        length = 0;
    memcpy(out, line, length);
    out[length] = '\0';
    return line + length;
}

static char *join(const char *command, const char *rest)
{
    char *out;

    rest += strspn(rest, " \t");
    return asprintf(&out, "%s%s%s", command, *rest != '\0' ? " " : "", rest) < 0 ? NULL : out;
}

/* ---- x/8gx ADDRESS ---- */

/* A command takes its format as a word of its own: "x /8gx ADDRESS". */
static char *examine(const char *rest)
{
    return *rest == '/' ? join("x", rest) : NULL;
}

/* ---- lines ---- */

bool tbd_gdb_knows(const char *line)
{
    char word[WORD_BYTES];

    (void)first_word(line, word);
    return find(same, word) != NULL || strcmp(word, "i") == 0 || strcmp(word, "x") == 0;
}

/* "info registers rip": one of them. */
static char *one_register(const char *rest)
{
    char *out;

    rest += strspn(rest, " \t");
    rest += *rest == '$';
    if (rest[strcspn(rest, " \t")] != '\0' || asprintf(&out, "print /x $%s", rest) < 0)
        return NULL;
    return out;
}

static char *translate_info(const char *rest)
{
    char what[WORD_BYTES];

    rest += strspn(rest, " \t");
    if (*rest == '\0')
        return NULL;
    rest = first_word(rest, what);
    for (const struct info_row *row = infos; row->word != NULL && *what != '\0'; row++) {
        if (strncmp(row->word, what, strlen(what)) == 0)
            return row->takes_words                      ? join(row->means, rest)
                   : rest[strspn(rest, " \t")] == '\0'   ? strdup(row->means)
                   : strcmp(row->word, "registers") == 0 ? one_register(rest)
                                                         : NULL;
    }
    return NULL;
}

/* "apply all bt" */
static bool is_stack_of_all(const char *rest)
{
    char words[3][WORD_BYTES];

    for (size_t i = 0; i < 3; i++)
        rest = first_word(rest, words[i]);
    return strcmp(words[0], "apply") == 0 && strcmp(words[1], "all") == 0 &&
           (strcmp(words[2], "bt") == 0 || strcmp(words[2], "backtrace") == 0) &&
           rest[strspn(rest, " \t")] == '\0';
}

char *tbd_gdb_translate(const char *line)
{
    char word[WORD_BYTES];
    const char *rest = first_word(line, word), *means = find(same, word);

    if (strcmp(word, "info") == 0 || strcmp(word, "i") == 0)
        return translate_info(rest);
    if (strcmp(word, "x") == 0)
        return examine(rest);
    if (strcmp(word, "thread") == 0 && is_stack_of_all(rest))
        return strdup("bt threads");
    if (strcmp(word, "print") == 0 && *rest == '/')
        return join("print", rest);
    if (tbd_command_find(word) != NULL || means == NULL ||
        (*rest == '/' && strcmp(means, "print") != 0))
        return NULL;
    return join(means, rest);
}

const char *tbd_gdb_hint(const char *line)
{
    char word[WORD_BYTES];
    const char *rest = first_word(line, word), *means = find(short_forms, word);

    (void)rest;
    means = find(others, means != NULL ? means : word);
    if (means == NULL && (strcmp(word, "x") == 0 || find(same, word) != NULL))
        return see_gdb;
    return means;
}

void tbd_gdb_help(FILE *out)
{
    fprintf(out, "Commands of gdb and rr, and how tbdq does the same.\n\nThese are understood:\n");
    for (const struct word_row *row = same; row->word != NULL; row++)
        fprintf(out, "  %-16s %s\n", row->word, row->means);
    for (const struct info_row *row = infos; row->word != NULL; row++)
        fprintf(out, "  info %-11s %s\n", row->word, row->means);
    fprintf(out, "  %-20s %s\n", "info registers rip", "print /x $rip");
    fprintf(out, "  %-20s %s\n", "thread apply all bt", "bt threads");
    fprintf(out, "\nThese are asked in another way, because the whole run is already recorded:\n");
    for (const struct word_row *row = others; row->word != NULL; row++) {
        if (row->means != see_gdb)
            fprintf(out, "  %-16s %s\n", row->word, row->means);
    }
    fprintf(out, "\nOther names for those:\n");
    for (const struct word_row *row = short_forms; row->word != NULL; row++)
        fprintf(out, "  %-16s %s\n", row->word, row->means);
}
