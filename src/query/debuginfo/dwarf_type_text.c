// SPDX-License-Identifier: MIT
/* dwarf_type_text.c - types as C and C++ write them (dwarf_type.h) */
#include "query/debuginfo/dwarf_type_private.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t encoding, bytes;
} made_types[] = {
    { "void", 0, 0 },
    { "char", DW_ATE_signed_char, 1 },
    { "signed char", DW_ATE_signed_char, 1 },
    { "unsigned char", DW_ATE_unsigned_char, 1 },
    { "short", DW_ATE_signed, 2 },
    { "unsigned short", DW_ATE_unsigned, 2 },
    { "int", DW_ATE_signed, 4 },
    { "signed", DW_ATE_signed, 4 },
    { "unsigned int", DW_ATE_unsigned, 4 },
    { "unsigned", DW_ATE_unsigned, 4 },
    { "long", DW_ATE_signed, 8 },
    { "unsigned long", DW_ATE_unsigned, 8 },
    { "long long", DW_ATE_signed, 8 },
    { "unsigned long long", DW_ATE_unsigned, 8 },
    { "_Bool", DW_ATE_boolean, 1 },
    { "bool", DW_ATE_boolean, 1 },
    { "float", DW_ATE_float, 4 },
    { "double", DW_ATE_float, 8 },
    { "size_t", DW_ATE_unsigned, 8 },
    { "int8_t", DW_ATE_signed_char, 1 },
    { "int16_t", DW_ATE_signed, 2 },
    { "int32_t", DW_ATE_signed, 4 },
    { "int64_t", DW_ATE_signed, 8 },
    { "uint8_t", DW_ATE_unsigned_char, 1 },
    { "uint16_t", DW_ATE_unsigned, 2 },
    { "uint32_t", DW_ATE_unsigned, 4 },
    { "uint64_t", DW_ATE_unsigned, 8 },
};
#define MADE_TYPES (sizeof(made_types) / sizeof(made_types[0]))

bool tbd_type_made_find(const char *name, struct tbd_type *out)
{
    for (size_t i = 0; i < MADE_TYPES; i++) {
        if (strcmp(made_types[i].name, name) == 0) {
            *out = tbd_type_made(made_types[i].encoding, made_types[i].bytes);
            return true;
        }
    }
    return false;
}

static const char *made_text(const struct tbd_type *type)
{
    for (size_t i = 0; i < MADE_TYPES; i++) {
        if (made_types[i].encoding == type->encoding && made_types[i].bytes == type->bytes)
            return made_types[i].name;
    }
    return "?";
}

#define NESTING_MAX 4u    /* of functions in parameters of functions */
#define CUT         "..." /* after a name that is too long */

struct type_text {
    char before[TBD_TYPE_TEXT_BYTES]; /* in reverse order of nesting: kept as text to the left */
    char after[TBD_TYPE_TEXT_BYTES];
    unsigned nesting; /* of parameters of functions in others */
    bool is_cut;
};

static void make_text(struct type_text *text, const struct tbd_type *type, char *out, size_t bytes);

static void put_before(struct type_text *text, const char *what)
{
    const size_t capacity = sizeof(text->before) - 1;
    size_t added = strlen(what), kept = strlen(text->before);

    text->is_cut |= added > capacity || kept > capacity - added;
    if (added > capacity)
        added = capacity;
    if (kept > capacity - added)
        kept = capacity - added;
    memmove(text->before + added, text->before, kept);
    memcpy(text->before, what, added);
    text->before[added + kept] = '\0';
}

static void put_after(struct type_text *text, const char *what)
{
    size_t used = strlen(text->after);

    if ((size_t)snprintf(text->after + used, sizeof(text->after) - used, "%s", what) >=
        sizeof(text->after) - used)
        text->is_cut = true;
}

/* NULL: it is no pointer and no reference. */
static const char *sign_of(int tag)
{
    switch (tag) {
    case DW_TAG_pointer_type: return "*";
    case DW_TAG_reference_type: return "&";
    case DW_TAG_rvalue_reference_type: return "&&";
    default: return NULL;
    }
}

/* A pointer to an array or a function needs brackets. */
static void put_pointer(struct type_text *text, const Dwarf_Die *target, const char *sign)
{
    Dwarf_Die die = *target;
    int tag = target->addr == NULL ? 0 : dwarf_tag(&die);

    put_before(text, sign);
    if (tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type) {
        put_before(text, "(");
        put_after(text, ")");
    }
}

static void put_dimensions(struct type_text *text, const Dwarf_Die *die, unsigned dimension)
{
    uint64_t first = 0, all;
    char count[32];

    while (tbd_type_array_counts(die, dimension++, &first, &all)) {
        snprintf(count, sizeof(count), first == 0 ? "[]" : "[%llu]", (unsigned long long)first);
        put_after(text, count);
    }
}

static bool is_cxx(Dwarf_Die *die)
{
    Dwarf_Die unit;
    int language = dwarf_diecu(die, &unit, NULL, NULL) == NULL ? 0 : dwarf_srclang(&unit);

    switch (language) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2a: /* of 2017 */
    case 0x2b: /* of 2020 */ return true;
    default: return false;
    }
}

/* C++ names its structs without the keyword. */
static const char *keyword_in(Dwarf_Die *die)
{
    return is_cxx(die) ? "" : tbd_type_keyword(dwarf_tag(die));
}

/* "shop::" before Item: namespaces, and structs whose members are types. */
static void put_scopes(struct type_text *text, const Dwarf_Die *die)
{
    Dwarf_Die around[TBD_DWARF_MAX_SCOPES];
    size_t count = tbd_die_around(die, around, TBD_DWARF_MAX_SCOPES);

    for (size_t i = count; i-- > 0;) {
        const char *name = tbd_die_name(&around[i]);
        bool is_namespace = dwarf_tag(&around[i]) == DW_TAG_namespace;

        if (!is_namespace && *tbd_type_keyword(dwarf_tag(&around[i])) == '\0')
            break; /* a function */
        put_before(text, "::");
        put_before(text, name != NULL ? name : is_namespace ? TBD_DIE_NAMELESS : "{...}");
    }
}

static void put_name(struct type_text *text, Dwarf_Die *die)
{
    const char *name, *keyword = keyword_in(die);

    tbd_type_take_signed(die);
    name = tbd_die_name(die);
    if (*text->before != '\0')
        put_before(text, " ");
    put_before(text, name == NULL ? "{...}" : name);
    put_before(text, keyword);
    if (*keyword == '\0' && dwarf_tag(die) != DW_TAG_base_type)
        put_scopes(text, die);
}

/* A parameter in the source, also "...", which is unspecified. */
static bool is_parameter(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);

    return tag == DW_TAG_unspecified_parameters ||
           (tag == DW_TAG_formal_parameter && !tbd_die_flag(die, DW_AT_artificial));
}

/* The function's next parameter, or its first one. */
static bool next_parameter(const Dwarf_Die *function, bool is_first, Dwarf_Die *at)
{
    bool more = is_first ? tbd_die_child(function, at) : tbd_die_next(at, at);

    while (more && !is_parameter(at))
        more = tbd_die_next(at, at);
    return more;
}

/* "(int, char *)"; "(void)" as gdb writes it. */
static void put_parameters(struct type_text *text, Dwarf_Die *function)
{
    bool is_first = true;
    char part[TBD_TYPE_TEXT_BYTES];
    Dwarf_Die die;

    put_after(text, "(");
    for (; !text->is_cut && next_parameter(function, is_first, &die); is_first = false) {
        struct type_text own = { .nesting = text->nesting + 1 };
        struct tbd_type type = tbd_type_of(&die);

        put_after(text, is_first ? "" : ", ");
        if (dwarf_tag(&die) == DW_TAG_unspecified_parameters || own.nesting > NESTING_MAX) {
            put_after(text, "...");
            continue;
        }
        make_text(&own, &type, part, sizeof(part));
        put_after(text, part);
    }
    if (is_first && (tbd_die_flag(function, DW_AT_prototyped) || is_cxx(function)))
        put_after(text, "void");
    put_after(text, ")");
}

/* One level; false at the end. */
static bool put_level(struct type_text *text, Dwarf_Die *die, unsigned dimension)
{
    Dwarf_Die next = { .addr = NULL };
    int tag = dwarf_tag(die);
    bool has_next = tbd_die_reference(die, DW_AT_type, &next);

    if (tag == DW_TAG_const_type || tag == DW_TAG_volatile_type) {
        Dwarf_Die inner = next;
        bool is_pointer = has_next && dwarf_tag(&inner) == DW_TAG_pointer_type;
        const char *word = tag == DW_TAG_const_type ? "const" : "volatile";

        if (is_pointer) {
            put_before(text, " ");
            put_before(text, word);
        }
    } else if (sign_of(tag) != NULL) {
        put_pointer(text, &next, sign_of(tag));
    } else if (tag == DW_TAG_array_type) {
        put_dimensions(text, die, dimension);
    } else if (tag == DW_TAG_subroutine_type || tag == DW_TAG_subprogram) {
        put_parameters(text, die);
    } else {
        put_name(text, die);
        return false;
    }
    if (!has_next)
        put_before(text, *text->before == '\0' ? "void" : "void ");
    else
        *die = next;
    return has_next;
}

/* "const char *": a qualifier of what is pointed to comes first. */
static const char *leading_qualifier(Dwarf_Die die)
{
    const char *found = "";

    for (int i = 0; i < TBD_TYPE_CHAIN_MAX; i++) {
        int tag = dwarf_tag(&die);
        Dwarf_Die next;

        if (tag == DW_TAG_const_type || tag == DW_TAG_volatile_type)
            found = tag == DW_TAG_const_type ? "const " : "volatile ";
        else if (sign_of(tag) != NULL)
            found = "";
        else if (tag != DW_TAG_array_type && tag != DW_TAG_restrict_type)
            break;
        if (!tbd_die_reference(&die, DW_AT_type, &next))
            break;
        die = next;
    }
    return found;
}

/* "int [3]", "int (*)[3]" */
static void put_made_array(struct type_text *text, const struct tbd_type *type)
{
    char count[32];

    for (unsigned i = 0; i < type->made_pointers; i++)
        put_before(text, "*");
    if (type->made_pointers != 0) {
        put_before(text, "(");
        put_after(text, ")");
    }
    snprintf(count, sizeof(count), "[%u]", (unsigned)type->made_count);
    put_after(text, count);
}

static void make_text(struct type_text *text, const struct tbd_type *type, char *out, size_t bytes)
{
    Dwarf_Die die = type->die;
    const char *qualifier = "";

    if (type->made_count != 0)
        put_made_array(text, type);
    for (unsigned i = 0; i < type->pointers; i++)
        put_before(text, "*");
    if (type->pointers != 0 && die.addr != NULL && dwarf_tag(&die) == DW_TAG_array_type) {
        put_before(text, "(");
        put_after(text, ")");
    }
    if (die.addr == NULL) {
        if (*text->before != '\0')
            put_before(text, " ");
        put_before(text, made_text(type));
    } else {
        qualifier = leading_qualifier(die);
        for (int i = 0; i < TBD_TYPE_CHAIN_MAX && put_level(text, &die, type->dimensions); i++)
            ;
    }
    if ((size_t)snprintf(out, bytes, "%s%s%s%s", qualifier, text->before,
                         (*text->after == '[' || *text->after == '(') && *text->before != '\0' ? " "
                                                                                               : "",
                         text->after) >= bytes)
        text->is_cut = true;
    if (text->is_cut && bytes > sizeof(CUT)) {
        size_t length = strlen(out);

        memcpy(out + (length > bytes - sizeof(CUT) ? bytes - sizeof(CUT) : length), CUT,
               sizeof(CUT));
    }
}

char *tbd_type_text(const struct tbd_type *type, char *out, size_t bytes)
{
    struct type_text text = { .before = "" };

    make_text(&text, type, out, bytes);
    return out;
}

bool tbd_type_print_parameters(const Dwarf_Die *function, FILE *out)
{
    bool is_first = true;
    char text[2 * TBD_TYPE_TEXT_BYTES];
    struct tbd_type type;
    Dwarf_Die die;

    for (; next_parameter(function, is_first, &die); is_first = false) {
        type = tbd_type_of(&die);
        fprintf(out, "%s%s", is_first ? "" : ", ",
                dwarf_tag(&die) == DW_TAG_unspecified_parameters
                    ? "..."
                    : tbd_type_text(&type, text, sizeof(text)));
    }
    return !is_first;
}
