// SPDX-License-Identifier: MIT
/* dump_function.c - see dump_function.h */
#include "query/dumps/dump_function.h"

#include "query/session/code/symbols.h"

#include <stdlib.h>
#include <string.h>

/* After the parentheses that open at `text`. */
static const char *after_parentheses(const char *text)
{
    unsigned open = 0;

    do {
        open += *text == '(';
        open -= *text == ')';
        text++;
    } while (open != 0 && *text != '\0');
    return text;
}

/* "push" is push(int), too, but not the class push(int)::Guard. */
static bool is_name(const char *function, const char *name)
{
    size_t length = strlen(name);

    return strncmp(function, name, length) == 0 &&
           (function[length] == '\0' ||
            (function[length] == '(' &&
             strstr(after_parentheses(function + length), "::") == NULL));
}

static bool has_name(const struct tbd_rings_place *place, const char *name)
{
    const char *mark = strchr(name, '!');

    if (mark == NULL)
        return is_name(place->function, name);
    return strncmp(place->module, name, (size_t)(mark - name)) == 0 &&
           is_name(place->function, mark + 1);
}

bool tbd_dump_function_find(const struct tbd_command_run *run, const char *name,
                            struct tbd_dump_function *out)
{
    bool has_modules = tbd_trace_window_count(run->session->trace) != 0;
    struct tbd_symbols *symbols = has_modules ? run->session->symbols : NULL;
    size_t count = symbols != NULL ? tbd_symbols_find(symbols, 0, name, NULL, 0) : 0;

    *out = (struct tbd_dump_function){ .name = name, .symbols = symbols };
    out->found = calloc(count + 1, sizeof(*out->found));
    if (out->found == NULL)
        return false;
    if (count != 0)
        out->count = tbd_symbols_find(symbols, 0, name, out->found, count);
    return true;
}

void tbd_dump_function_free(struct tbd_dump_function *function)
{
    free(function->found);
    function->found = NULL;
}

/* What chooses the function of that name when it is bound: none of its calls. */
static bool is_resolver(const struct tbd_rings_place *place,
                        const struct tbd_dump_function *function)
{
    struct tbd_symbol symbol;

    return function->symbols != NULL &&
           tbd_symbols_at(function->symbols, 0, place->function_start, &symbol) &&
           symbol.is_resolver;
}

bool tbd_dump_is_function(const struct tbd_rings_place *place,
                          const struct tbd_dump_function *function)
{
    if (place->function == NULL)
        return false;
    for (size_t i = 0; i < function->count; i++) {
        const struct tbd_symbol *symbol = &function->found[i];

        if (symbol->start == place->function_start && symbol->is_function && !symbol->is_stub &&
            strcmp(symbol->module, place->module) == 0)
            return true;
    }
    return has_name(place, function->name) && !is_resolver(place, function);
}
