// SPDX-License-Identifier: MIT
/* complete.c - see complete.h
 *
 * What stands before the word at the cursor decides: the command, the place in `goto`, an expression
 * whose members are wanted.  Otherwise the word is completed by names that can stand anywhere. */
#include "query/commands/complete.h"

#include "query/commands/bookmarks.h"
#include "hooks/table/syscalls.h"
#include "base/array.h"
#include "base/escape.h"
#include "query/text/demangle.h"
#include "query/debuginfo/elf_file.h"
#include "query/debuginfo/dwarf_inlined.h"
#include "query/condition/field_names.h"
#include "query/session/source_place.h"

#include <ctype.h>
#include <dwarf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES   256
#define SYSCALLS_MAX 1024 /* numbers that may have a name */

struct completer {
    struct tbd_session *session;
    const char *line;
    size_t length;
    char word[WORD_BYTES]; /* the part that is typed */
    struct tbd_completions *out;
};

static void add(struct completer *c, const char *word)
{
    struct tbd_completions *out = c->out;

    if (!tbd_escape_is_plain(TBD_ESCAPE_FIELD, word, strlen(word)))
        return; /* it holds control characters, which the terminal obeys or does not show */
    if (out->count >= TBD_COMPLETIONS_MAX || strncmp(word, c->word, strlen(c->word)) != 0 ||
        !tbd_array_grow(&out->words, out->count, &out->capacity, sizeof(*out->words)))
        return;
    out->words[out->count] = strdup(word);
    out->count += out->words[out->count] != NULL;
}

static void add_all(struct completer *c, const char *const *words)
{
    for (; *words != NULL; words++)
        add(c, *words);
}

static int compare_words(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void tidy(struct tbd_completions *out)
{
    size_t used = 0;

    if (out->count == 0)
        return;
    qsort(out->words, out->count, sizeof(*out->words), compare_words);
    for (size_t i = 0; i < out->count; i++) {
        if (used != 0 && strcmp(out->words[used - 1], out->words[i]) == 0)
            free(out->words[i]);
        else
            out->words[used++] = out->words[i];
    }
    out->count = used;
}

/* ---- names of the program ---- */

/* Adds names as the file has them, but no import stubs, parts of functions or made-up names. */
static void add_plain_names(struct completer *c, struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);

    for (size_t at = tbd_elf_lower_bound(file, c->word); at < symbols->count; at++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[at]];

        if (strncmp(symbol->name, c->word, strlen(c->word)) != 0 ||
            c->out->count >= TBD_COMPLETIONS_MAX)
            break;
        if (strpbrk(symbol->name, "@.") == NULL && !symbol->is_made_up)
            add(c, symbol->name);
    }
}

/* Adds "ns::thing", or "thing" if the word does not begin with the namespace. */
static void add_readable_name(struct completer *c, const char *name)
{
    if (strpbrk(name, "<(@. ") != NULL)
        return;
    while (strncmp(name, c->word, strlen(c->word)) != 0) {
        name = strstr(name, "::");
        if (name == NULL)
            return;
        name += 2;
    }
    add(c, name);
}

static void add_readable_names(struct completer *c, struct tbd_elf_file *file)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);

    for (size_t at = tbd_elf_lower_bound(file, "_Z"); at < symbols->count; at++) {
        const struct tbd_elf_symbol *symbol = &symbols->all[by_name[at]];

        if (!tbd_is_mangled(symbol->name) || c->out->count >= TBD_COMPLETIONS_MAX)
            break;
        /* At the first mangled name all of the file's are demangled together. */
        tbd_elf_read_names(file);
        add_readable_name(c, tbd_elf_symbol_name(file, symbol));
    }
}

static void add_inlined_name(void *context, const char *name)
{
    if (strpbrk(name, "<(@. ") == NULL)
        add(context, name);
}

static void add_symbols(struct completer *c)
{
    const struct tbd_module *modules;
    size_t count = 0;
    uint32_t window = tbd_trace_window_of(c->session->trace, tbd_session_current(c->session).time);

    /* A list of all names would be no help. */
    if (*c->word == '\0' ||
        tbd_symbols_modules(c->session->symbols, window, &modules, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        add_plain_names(c, modules[i].file);
        add_readable_names(c, modules[i].file);
        if (strstr(modules[i].name, ".so") == NULL) /* libraries have too many */
            tbd_dwarf_inlined_names(tbd_dwarf_of(modules[i].file), add_inlined_name, c);
    }
}

static void add_variables(struct completer *c, const Dwarf_Die *scope)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(scope, &die); more; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);
        int tag = dwarf_tag(&die);

        if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) && name != NULL)
            add(c, name);
    }
}

static void add_members(struct completer *c, const struct tbd_place_of *place, struct tbd_type type)
{
    struct tbd_type_view view = tbd_type_look(&type);
    struct tbd_member member;
    Dwarf_Die of, at;

    if ((view.kind == TBD_TYPE_POINTER || view.kind == TBD_TYPE_REFERENCE) &&
        tbd_type_target(&type, &type))
        view = tbd_type_look(&type);
    if (view.kind != TBD_TYPE_STRUCT)
        return;
    of = tbd_type_complete(place->dwarf, &view.die);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (member.is_base)
            add_members(c, place, member.type);
        else if (member.name != NULL)
            add(c, member.name);
    }
}

/* Where the expression that ends at `end` begins: names, brackets, arrows. */
static size_t expression_start(const char *line, size_t end)
{
    int depth = 0;

    while (end > 0) {
        char before = line[end - 1];

        if (before == ']' || before == ')')
            depth++;
        else if (before == '[' || before == '(')
            depth--;
        if (depth < 0 ||
            (depth == 0 && !isalnum((unsigned char)before) && strchr("_.[]()>-:", before) == NULL))
            break;
        /* `a > b` is no arrow */
        if (depth == 0 && before == '>' && (end < 2 || line[end - 2] != '-'))
            break;
        if (depth == 0 && before == '-' && line[end] != '>')
            break;
        end--;
    }
    return end;
}

/* The end of the expression before "." or "->"; 0 if no member is wanted. */
static size_t member_of(const struct completer *c)
{
    size_t at = c->out->from;

    if (at > 1 && c->line[at - 1] == '.')
        return at - 1;
    return at > 2 && c->line[at - 1] == '>' && c->line[at - 2] == '-' ? at - 2 : 0;
}

static void add_source_names(struct completer *c)
{
    struct tbd_source_place *place = calloc(1, sizeof(*place));
    size_t end = member_of(c);
    const struct tbd_place_of *at;
    struct tbd_query_error error;
    struct tbd_c_scope scope;
    struct tbd_data data;

    if (place == NULL)
        return;
    if (tbd_source_place_glance(c->session, tbd_session_current(c->session), place) ||
        tbd_source_place_open(c->session, tbd_session_current(c->session), SIZE_MAX, place) ==
            TBD_OK) {
        at = &place->places[0];
        scope = tbd_source_scope(place);
        for (size_t i = at->first; end == 0 && i < at->end && i < at->scopes.count; i++)
            add_variables(c, &at->scopes.dies[i]);
        if (end != 0 && tbd_c_evaluate(&scope, c->line, expression_start(c->line, end), end, &data,
                                       &error) == TBD_OK)
            add_members(c, at, data.type);
        tbd_source_place_close(place);
    }
    free(place);
}

/* Adds the source files of modules whose file has debug information itself. */
static void add_files(struct completer *c)
{
    const struct tbd_module *modules;
    size_t count = 0;
    uint32_t window = tbd_trace_window_of(c->session->trace, tbd_session_current(c->session).time);

    if (tbd_symbols_modules(c->session->symbols, window, &modules, &count) != TBD_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        struct tbd_dwarf *dwarf =
            modules[i].file->debug.elf == NULL ? tbd_dwarf_of(modules[i].file) : NULL;
        Dwarf_Die unit;

        for (size_t u = 0; dwarf != NULL && u < tbd_dwarf_unit_count(dwarf); u++) {
            const char *path = tbd_dwarf_unit(dwarf, u, &unit) ? tbd_die_name(&unit) : NULL;
            const char *slash = path == NULL ? NULL : strrchr(path, '/');

            if (path != NULL)
                add(c, slash == NULL ? path : slash + 1);
        }
    }
}

/* ---- words of the language ---- */

static void add_commands(struct completer *c)
{
    for (const struct tbd_command *command = tbd_commands; command->name != NULL; command++)
        add(c, command->name);
    add(c, "help");
}

static void add_types(struct completer *c)
{
    for (unsigned i = TBD_EVENT_FUNC_ENTER; i < TBD_EVENT_TYPE_COUNT; i++)
        add(c, tbd_event_type_name((enum tbd_event_type)i));
}

static void add_fields(struct completer *c)
{
    static const char *const words[] = { "and", "or", "not", "func", "module", "stack", NULL };

    for (const struct tbd_field_name *row = tbd_field_names; row->name != NULL; row++)
        add(c, row->name);
    add_all(c, words);
}

/* ---- the line ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == ':' || c == '$' || c == '@';
}

/* Where the word before the cursor begins.  A command's name, the first word, may have hyphens: the end of
 * `reverse-finish` is no command of its own. */
static size_t word_start(const char *line, size_t length)
{
    size_t from = length, first = strspn(line, " ");

    while (from > 0 && is_word(line[from - 1]))
        from--;
    for (size_t at = first; at < length && (is_word(line[at]) || line[at] == '-'); at++) {
        if (at + 1 == length)
            return first;
    }
    return from;
}

/* Words before the one that is completed; the first of them in `first`. */
static size_t words_before(const struct completer *c, char *first)
{
    size_t count = 0, at = 0, length;

    while (at < c->out->from) {
        while (at < c->out->from && c->line[at] == ' ')
            at++;
        length = strcspn(c->line + at, " ");
        if (at + length > c->out->from)
            length = c->out->from - at;
        if (length != 0 && count++ == 0 && length < WORD_BYTES) {
            memcpy(first, c->line + at, length);
            first[length] = '\0';
        }
        at += length;
    }
    return count;
}

static bool has_word(const struct completer *c, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = c->line; (at = strstr(at, word)) != NULL && at < c->line + c->out->from;
         at++) {
        if ((at == c->line || at[-1] == ' ') && at[length] == ' ')
            return true;
    }
    return false;
}

/* What commands take besides names of the program.  A row is about the words after `after`; NULL:
 * the first word. */
static const struct {
    const char *command, *after;
    const char *words[8];
} arguments[] = {
    { "set", NULL, { "print" } },
    { "set", "print", { "pretty", "object", "static-members" } },
    { "info",
      NULL,
      { "args", "breakpoints", "frame", "locals", "registers", "sharedlibrary", "threads" } },
    { "bt", NULL, { "thread", "threads" } },
    { "where", NULL, { "thread" } },
    { "regs", NULL, { "thread" } },
    { "count", "by", { "func", "line", "thread", "value" } },
    { "verify", NULL, { "-j", "--quick" } },
    { "lower", NULL, { "all" } },
    { "raise", NULL, { "all" } },
    { "merge", NULL, { "all" } },
    { "help", NULL, { "context", "scripts", "gdb" } },
};

static bool is_after(const struct completer *c, const char *word, size_t before)
{
    size_t end = c->out->from, length;

    if (word == NULL)
        return before == 1;
    while (end > 0 && c->line[end - 1] == ' ')
        end--;
    length = strlen(word);
    return end > length && c->line[end - length - 1] == ' ' &&
           memcmp(c->line + end - length, word, length) == 0;
}

/* True: nothing else can stand there. */
static bool complete_by_table(struct completer *c, const char *command, size_t before)
{
    bool found = false;

    for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
        if (strcmp(arguments[i].command, command) != 0 || !is_after(c, arguments[i].after, before))
            continue;
        add_all(c, arguments[i].words);
        found = true;
    }
    return found;
}

/* What a condition compares a system call or signal with. */
static bool complete_value(struct completer *c)
{
    size_t at = c->out->from;

    at -= at > 0 && c->line[at - 1] == '"'; /* names may be quoted */
    if (tbd_field_is_compared(c->line, at, "syscall")) {
        for (uint64_t number = 0; number < SYSCALLS_MAX; number++) {
            const char *name = tbd_syscall_name(number);

            if (name != NULL)
                add(c, name);
        }
        return true;
    }
    if (!tbd_field_is_compared(c->line, at, "signal"))
        return false;
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *name = sigabbrev_np(number);
        char text[32];

        if (name != NULL && snprintf(text, sizeof(text), "SIG%s", name) > 0)
            add(c, text);
    }
    return true;
}

static void add_bookmark(void *context, const char *name)
{
    char text[WORD_BYTES];

    if (snprintf(text, sizeof(text), "@%s", name) < (int)sizeof(text))
        add(context, text);
}

static void complete_goto(struct completer *c, size_t before)
{
    static const char *const from[] = { "current", "first", "last", NULL };
    static const char *const directions[] = { "forward", "backward", NULL };
    static const char *const tails[] = { "where", "of", NULL };

    if (before == 1)
        add_all(c, from);
    else if (before == 2)
        add_all(c, directions);
    else if (before == 3)
        add_types(c);
    else if (before >= 5 && !has_word(c, "where"))
        add_all(c, tails);
}

static void complete_argument(struct completer *c, const char *command, size_t before)
{
    bool is_search = strcmp(command, "goto") == 0;
    bool is_all = strcmp(command, "all") == 0 || strcmp(command, "count") == 0;
    bool in_condition = has_word(c, "where"), is_file;

    if (c->word[0] == '@' && c->session != NULL) {
        tbd_bookmarks_each(c->session, add_bookmark, c);
        return;
    }
    if (strcmp(command, "help") == 0)
        add_commands(c);
    if (complete_by_table(c, command, before) || (in_condition && complete_value(c)))
        return;
    if (!in_condition && !has_word(c, "of")) {
        if (is_search)
            complete_goto(c, before);
        if (is_all && before == 1)
            add_types(c);
        if (is_search || is_all)
            return;
    }
    is_file = c->out->from >= 5 && strncmp(c->line + c->out->from - 5, "src=<", 5) == 0;
    if (c->session == NULL)
        return;
    if (is_file || strcmp(command, "list") == 0 || strcmp(command, "lines") == 0)
        add_files(c);
    if (is_file)
        return;
    add_source_names(c);
    if (member_of(c) != 0)
        return;
    if (in_condition)
        add_fields(c);
    add_symbols(c);
}

void tbd_complete(struct tbd_session *session, const char *line, size_t length,
                  struct tbd_completions *out)
{
    struct completer c = { .session = session, .line = line, .length = length, .out = out };
    char first[WORD_BYTES] = "";
    size_t before;

    *out = (struct tbd_completions){ .from = word_start(line, length) };
    if (length - out->from >= WORD_BYTES)
        return;
    memcpy(c.word, line + out->from, length - out->from);
    before = words_before(&c, first);
    if (before == 0)
        add_commands(&c);
    else
        complete_argument(&c, first, before);
    tidy(out);
}

void tbd_completions_free(struct tbd_completions *completions)
{
    for (size_t i = 0; i < completions->count; i++)
        free(completions->words[i]);
    free(completions->words);
    *completions = (struct tbd_completions){ .words = NULL };
}
