// SPDX-License-Identifier: MIT
/* demangle.c - see demangle.h; the demangler itself is the C++ runtime's
 *
 * Rust's names are those of C++ with a hash as the last part and, for characters that C++ names do not have, escapes:
 * "_ZN43_$LT$shop..Item$u20$as$u20$shop..Priced$GT$4cost17h0123456789abcdefE" is
 * "<shop::Item as shop::Priced>::cost". */
#include "query/text/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 4096u /* longer names, which come from files, are shown as they are */

/* From <cxxabi.h>, which only C++ can include. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *bytes, int *status);

/* ---- Rust ---- */

#define RUST_HASH_DIGITS 16u

/* "::h0123456789abcdef" at the end of a readable name; NULL if it is not Rust's. */
static char *rust_hash(char *text)
{
    static const char mark[] = "::h";
    size_t length = strlen(text), hash = sizeof(mark) - 1 + RUST_HASH_DIGITS;
    char *at = text + length - (length < hash ? length : hash);

    if (length <= hash || strncmp(at, mark, sizeof(mark) - 1) != 0 ||
        strspn(at + sizeof(mark) - 1, "0123456789abcdef") != RUST_HASH_DIGITS)
        return NULL;
    return at;
}

/* "$u7b$" is a character by its number. */
static char character_by_number(const char *escape, size_t *length)
{
    char *end;
    unsigned long number;

    if (escape[1] != 'u')
        return '\0';
    number = strtoul(escape + 2, &end, 16);
    if (*end != '$' || number < ' ' || number > '~')
        return '\0';
    *length = (size_t)(end + 1 - escape);
    return (char)number;
}

/* The character that an escape stands for, and the escape's length; '\0': it is none. */
static char unescaped(const char *escape, size_t *length)
{
    static const struct {
        const char *escape;
        char is;
    } escapes[] = { { "$LT$", '<' }, { "$GT$", '>' }, { "$RF$", '&' }, { "$BP$", '*' },
                    { "$C$", ',' },  { "$SP$", '@' }, { "$LP$", '(' }, { "$RP$", ')' } };

    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
        *length = strlen(escapes[i].escape);
        if (strncmp(escape, escapes[i].escape, *length) == 0)
            return escapes[i].is;
    }
    return character_by_number(escape, length);
}

/* In place: what an escape stands for is shorter than it is.  A part that would begin with '$' has '_' before it. */
static void unescape_rust(char *text)
{
    char *to = text;

    for (const char *at = text; *at != '\0';) {
        bool begins = at == text || at[-1] == ':';
        size_t length;
        char is = *at == '$' ? unescaped(at, &length) : '\0';

        if (begins && at[0] == '_' && at[1] == '$') {
            at++;
        } else if (at[0] == '.' && at[1] == '.') {
            *to++ = ':';
            *to++ = ':';
            at += 2;
        } else if (is != '\0') {
            *to++ = is;
            at += length;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

/* Makes it a name of Rust, if it is one. */
static bool take_rust(char *text)
{
    char *hash = rust_hash(text);

    if (hash == NULL)
        return false;
    *hash = '\0';
    unescape_rust(text);
    return true;
}

/* ---- C++ ---- */

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

static char *demangle(const char *name)
{
    int status = 0;
    char *text = __cxa_demangle(name, NULL, NULL, &status);

    return status == 0 ? text : NULL;
}

char *tbd_demangle_whole(const char *name)
{
    const char *end = strstr(
        name, ".llvm."); /* a number that LLVM adds; the demangler knows it only after parameters */
    char *text = NULL, *without;

    if (!tbd_is_mangled(name) || strlen(name) > NAME_MAX_BYTES)
        return NULL;
    if (end == NULL)
        return demangle(name);
    without = strndup(name, (size_t)(end - name));
    if (without != NULL)
        text = demangle(without);
    free(without);
    return text;
}

char *tbd_demangle(const char *name)
{
    char *text = tbd_demangle_whole(name), *shown;

    if (text == NULL)
        return NULL;
    if (take_rust(text))
        return text;
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
