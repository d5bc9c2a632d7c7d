// SPDX-License-Identifier: MIT
/* demangle.c - see demangle.h; the demangler itself is the C++ runtime's */
#include "query/text/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 4096u /* longer names, which come from files, are shown as they are */

/* From <cxxabi.h>, which only C++ can include. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *bytes, int *status);

/* The opening bracket of the closing one at `end`. */
static char *opening(char *text, char *end)
{
    int depth = 0;

    for (char *at = end; at >= text; at--) {
        depth += (*at == ')') - (*at == '(');
        if (depth == 0)
            return at;
    }
    return NULL;
}

/* "f(int) const [clone .part.0]" -> "f" */
static void cut_parameters(char *text)
{
    char *end = strchr(text, '['), *open;

    if (end != NULL && end > text && strncmp(end, "[clone", 6) == 0)
        end[-1] = '\0';
    end = strrchr(text, ')');
    if (end == NULL || strchr(end, '>') != NULL || strstr(end, "::") != NULL)
        return; /* "(anonymous namespace)::x" */
    open = opening(text, end);
    if (open != NULL && open != text)
        *open = '\0';
}

/* Skips the result type of a template function: the text before the last blank outside brackets. */
static char *behind_result(char *text)
{
    char *name = text;
    int depth = 0;

    for (char *at = text; *at != '\0'; at++) {
        if (strncmp(at, "operator", 8) == 0)
            break;
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
        if (*at == ' ' && depth == 0)
            name = at + 1;
    }
    return name;
}

bool tbd_is_thunk(const char *readable)
{
    return strstr(readable, " thunk to ") != NULL;
}

char *tbd_demangle_whole(const char *name)
{
    int status = 0;
    char *text;

    if (!tbd_is_mangled(name) || strlen(name) > NAME_MAX_BYTES)
        return NULL;
    text = __cxa_demangle(name, NULL, NULL, &status);
    return status == 0 ? text : NULL;
}

char *tbd_demangle(const char *name)
{
    char *text = tbd_demangle_whole(name), *shown;

    if (text == NULL)
        return NULL;
    /* False for "vtable for X", which is no function. */
    if (strstr(text, " for ") != NULL)
        return text;
    cut_parameters(text);
    if (tbd_is_thunk(text))
        return text;
    shown = behind_result(text);
    memmove(text, shown, strlen(shown) + 1);
    return text;
}

bool tbd_may_be_called(const char *mangled, const char *name)
{
    const char *last = name;
    char word[256];
    size_t length;

    for (const char *at = name; *at != '\0' && *at != '<' && *at != '('; at++) {
        if (at[0] == ':' && at[1] == ':')
            last = at + 2;
    }
    for (length = 0; isalnum((unsigned char)last[length]) || last[length] == '_'; length++)
        ;
    if (length == 0 || length >= sizeof(word) || strncmp(last, "operator", 8) == 0 ||
        ((size_t)(last - name) >= length + 2 &&
         strncmp(last - 2 - length, last, length) == 0)) /* constructors */
        return true;
    memcpy(word, last, length);
    word[length] = '\0';
    return strstr(mangled, word) != NULL;
}

/* Compares the names; `name` may lack template arguments that `readable` has. */
static bool is_same(const char *readable, const char *name)
{
    while (*readable != '\0' && *readable == *name) {
        readable++;
        name++;
    }
    if (*readable == '<' && (*name == '\0' || *name == ':')) {
        int depth = 0;

        do {
            depth += (*readable == '<') - (*readable == '>');
            readable++;
        } while (*readable != '\0' && depth > 0);
        return is_same(readable, name);
    }
    return *readable == '\0' && *name == '\0';
}

bool tbd_is_name_for(const char *readable, const char *name)
{
    int depth = 0;

    if (is_same(readable, name))
        return true;
    if (tbd_is_thunk(readable))
        return false;
    for (const char *at = readable; *at != '\0'; at++) {
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
        if (depth == 0 && at[0] == ':' && at[1] == ':' && is_same(at + 2, name))
            return true;
    }
    return false;
}

/* Compares without blanks; the rest of `whole` may only be qualifiers of the object, such as
 * const. */
static bool is_same_but_blanks(const char *whole, const char *name)
{
    for (;;) {
        whole += strspn(whole, " ");
        name += strspn(name, " ");
        if (*name == '\0')
            return *whole == '\0' || strcmp(whole, "const") == 0;
        if (*whole++ != *name++)
            return false;
    }
}

bool tbd_is_overload(const char *whole, const char *name)
{
    int depth = 0;

    if (strchr(name, '(') == NULL)
        return false;
    if (is_same_but_blanks(whole, name))
        return true;
    for (const char *at = whole; *at != '\0'; at++) {
        depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
        if (depth == 0 && ((at[0] == ':' && at[1] == ':' && is_same_but_blanks(at + 2, name)) ||
                           (at[0] == ' ' && is_same_but_blanks(at + 1, name))))
            return true;
    }
    return false;
}
