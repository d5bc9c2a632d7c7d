// SPDX-License-Identifier: MIT
/* dwarf_type.c - see dwarf_type.h
 *
 * DWARF_TYPE-1  Chains of typedefs, pointers and anonymous members are followed TBD_TYPE_CHAIN_MAX
 *     steps at most. (not checked: it is the bound of a loop)
 * DWARF_TYPE-2  Sizes come from the file and are only numbers here: who allocates or reads checks
 *     them. (not checked: it is what decoding checks of its input) */
#include "query/debuginfo/dwarf_type_private.h"

#include "query/debuginfo/dwarf_index.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#define NESTING_MAX 8
#define MEMBERS_MAX 100000u

struct tbd_type tbd_type_made(uint8_t encoding, uint8_t bytes)
{
    return (struct tbd_type){ .encoding = encoding, .bytes = bytes };
}

struct tbd_type tbd_type_from(const Dwarf_Die *die)
{
    return (struct tbd_type){ .die = *die };
}

struct tbd_type tbd_type_of(const Dwarf_Die *die)
{
    Dwarf_Die type;

    return tbd_die_reference(die, DW_AT_type, &type) ? tbd_type_from(&type) : tbd_type_made(0, 0);
}

struct tbd_type tbd_type_pointer_to(const struct tbd_type *type)
{
    struct tbd_type pointer = *type;

    if (pointer.made_count != 0 && pointer.made_pointers < UINT8_MAX)
        pointer.made_pointers++;
    else if (pointer.made_count == 0 && pointer.pointers < UINT8_MAX)
        pointer.pointers++;
    return pointer;
}

struct tbd_type tbd_type_array_of(const struct tbd_type *type, uint32_t count)
{
    struct tbd_type array = *type;

    array.made_count = count;
    return array;
}

static bool is_transparent(int tag)
{
    return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
           tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

/* Follows a reference to a type unit, which holds the full type (-fdebug-types-section). */
void tbd_type_take_signed(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Die full;

    if (dwarf_attr(die, DW_AT_signature, &attribute) != NULL &&
        dwarf_formref_die(&attribute, &full) != NULL)
        *die = full;
}

/* False: no type is left, as in `const void`. */
static bool peel(Dwarf_Die *die)
{
    for (int i = 0; i < TBD_TYPE_CHAIN_MAX; i++) {
        Dwarf_Die next;

        if (!is_transparent(dwarf_tag(die))) {
            tbd_type_take_signed(die);
            return true;
        }
        if (!tbd_die_reference(die, DW_AT_type, &next))
            return false;
        *die = next;
    }
    return false;
}

/* What stands before literals of a type of characters called `name`. */
static char wide_sign(const char *name)
{
    static const struct {
        const char *name;
        char sign;
    } kinds[] = { { "wchar_t", 'L' }, { "char16_t", 'u' }, { "char32_t", 'U' } };

    for (size_t i = 0; name != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(name, kinds[i].name) == 0)
            return kinds[i].sign;
    }
    return 0;
}

/* C has typedefs of integers for wide characters, C++ types of their own. */
static char wide_of(const Dwarf_Die *of, const struct tbd_type_view *view)
{
    Dwarf_Die die = *of;
    char sign = 0;

    if (view->bytes != 2 && view->bytes != 4)
        return 0;
    for (int i = 0; i < TBD_TYPE_CHAIN_MAX && sign == 0; i++) {
        Dwarf_Die next;

        sign = wide_sign(tbd_die_name(&die));
        if (!is_transparent(dwarf_tag(&die)) || !tbd_die_reference(&die, DW_AT_type, &next))
            break;
        die = next;
    }
    if (sign == 0 && view->encoding == DW_ATE_UTF)
        sign = view->bytes == 2 ? 'u' : 'U';
    return sign;
}

/* ---- arrays ---- */

/* What a lower bound is that is not said. */
static uint64_t default_lower_bound(const Dwarf_Die *of)
{
    Dwarf_Die die = *of, unit;

    if (dwarf_diecu(&die, &unit, NULL, NULL) == NULL)
        return 0;
    switch (dwarf_srclang(&unit)) {
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case DW_LANG_Cobol74:
    case DW_LANG_Cobol85:
    case DW_LANG_Fortran77:
    case DW_LANG_Fortran90:
    case DW_LANG_Fortran95:
    case DW_LANG_Fortran03:
    case DW_LANG_Fortran08:
    case DW_LANG_Pascal83:
    case DW_LANG_Modula2:
    case DW_LANG_PLI: return 1;
    default: return 0;
    }
}

static uint64_t subrange_count(const Dwarf_Die *die)
{
    uint64_t count, upper, lower;

    if (tbd_die_number(die, DW_AT_count, &count))
        return count;
    if (!tbd_die_number(die, DW_AT_upper_bound, &upper))
        return 0;
    if (!tbd_die_number(die, DW_AT_lower_bound, &lower))
        lower = default_lower_bound(die);
    return (int64_t)upper < (int64_t)lower ? 0 : upper - lower + 1; /* bounds may be negative */
}

/* Elements of dimension `index` and all after it; false if there is no such dimension. */
bool tbd_type_array_counts(const Dwarf_Die *array, unsigned index, uint64_t *first, uint64_t *all)
{
    Dwarf_Die die;
    unsigned number = 0;

    *all = 1;
    for (bool more = tbd_die_child(array, &die); more && number < NESTING_MAX;
         more = tbd_die_next(&die, &die)) {
        uint64_t count;

        if (dwarf_tag(&die) != DW_TAG_subrange_type)
            continue;
        count = subrange_count(&die);
        if (number == index)
            *first = count;
        if (number >= index && __builtin_mul_overflow(*all, count, all))
            *all = 0;
        number++;
    }
    return index < number;
}

static uint64_t size_of(const Dwarf_Die *die, int nesting);

static uint64_t array_size(const Dwarf_Die *die, unsigned index, int nesting)
{
    uint64_t first = 0, all = 0, bytes;
    Dwarf_Die element;

    if (!tbd_type_array_counts(die, index, &first, &all) ||
        !tbd_die_reference(die, DW_AT_type, &element) ||
        __builtin_mul_overflow(all, size_of(&element, nesting + 1), &bytes))
        return 0;
    return bytes;
}

static uint64_t size_of(const Dwarf_Die *of, int nesting)
{
    Dwarf_Die die = *of;
    uint64_t bytes;

    if (nesting > NESTING_MAX || !peel(&die))
        return 0;
    if (tbd_die_number(&die, DW_AT_byte_size, &bytes))
        return bytes;
    switch (dwarf_tag(&die)) {
    case DW_TAG_array_type: return array_size(&die, 0, nesting);
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type: return 8;
    default: return 0;
    }
}

/* ---- views ---- */

static bool is_signed_encoding(uint64_t encoding)
{
    return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
}

static enum tbd_type_kind kind_of_base(uint64_t encoding)
{
    if (encoding == 0)
        return TBD_TYPE_VOID;
    if (encoding == DW_ATE_float)
        return TBD_TYPE_FLOAT;
    if (encoding == DW_ATE_complex_float || encoding == DW_ATE_decimal_float)
        return TBD_TYPE_UNKNOWN;
    return TBD_TYPE_INTEGER;
}

static enum tbd_type_kind kind_of_tag(int tag)
{
    switch (tag) {
    case DW_TAG_base_type: return TBD_TYPE_INTEGER;
    case DW_TAG_enumeration_type: return TBD_TYPE_ENUM;
    case DW_TAG_pointer_type: return TBD_TYPE_POINTER;
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type: return TBD_TYPE_REFERENCE;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type: return TBD_TYPE_STRUCT;
    case DW_TAG_array_type: return TBD_TYPE_ARRAY;
    case DW_TAG_subprogram:
    case DW_TAG_subroutine_type: return TBD_TYPE_FUNCTION;
    case DW_TAG_unspecified_type: return TBD_TYPE_VOID;
    default: return TBD_TYPE_UNKNOWN;
    }
}

/* An enumeration without an encoding of its own has that of its base type. */
static uint64_t enum_encoding(const Dwarf_Die *die)
{
    Dwarf_Die base;
    uint64_t encoding = DW_ATE_unsigned;

    if (!tbd_die_number(die, DW_AT_encoding, &encoding) &&
        tbd_die_reference(die, DW_AT_type, &base) && peel(&base))
        (void)tbd_die_number(&base, DW_AT_encoding, &encoding);
    return encoding;
}

static struct tbd_type_view made_view(const struct tbd_type *type)
{
    return (struct tbd_type_view){ .kind = kind_of_base(type->encoding),
                                   .bytes = type->bytes,
                                   .encoding = type->encoding,
                                   .is_signed = is_signed_encoding(type->encoding) };
}

/* An array whose length is not in the debug information, of elements whose size is. */
static void take_computed(const struct tbd_type *type, struct tbd_type_view *view)
{
    Dwarf_Die element;

    view->count = type->count;
    if (!tbd_die_reference(&view->die, DW_AT_type, &element) ||
        __builtin_mul_overflow(view->count, size_of(&element, 0), &view->bytes))
        view->count = view->bytes = 0;
}

/* std::nullptr_t: "decltype(nullptr)", a type of which nothing more is said. */
static bool is_nullptr(Dwarf_Die *die)
{
    const char *name = dwarf_tag(die) == DW_TAG_unspecified_type ? tbd_die_name(die) : NULL;

    return name != NULL && strstr(name, "nullptr") != NULL;
}

static struct tbd_type without_made_array(const struct tbd_type *type)
{
    struct tbd_type element = *type;

    element.made_count = 0;
    return element;
}

static struct tbd_type_view made_array_view(const struct tbd_type *type)
{
    struct tbd_type element = without_made_array(type);
    struct tbd_type_view view = { .kind = TBD_TYPE_ARRAY, .count = type->made_count };

    if (__builtin_mul_overflow(tbd_type_look(&element).bytes, view.count, &view.bytes))
        view.count = view.bytes = 0;
    return view;
}

struct tbd_type_view tbd_type_look(const struct tbd_type *type)
{
    struct tbd_type_view view = { .kind = TBD_TYPE_POINTER, .bytes = 8 };
    uint64_t encoding = 0, all = 0;

    if (type->made_pointers != 0)
        return view;
    if (type->made_count != 0)
        return made_array_view(type);
    if (type->pointers != 0)
        return view;
    if (type->die.addr == NULL)
        return made_view(type);
    view.die = type->die;
    if (!peel(&view.die))
        return (struct tbd_type_view){ .kind = TBD_TYPE_VOID };
    if (is_nullptr(&view.die))
        return view;
    view.kind = kind_of_tag(dwarf_tag(&view.die));
    if (view.kind == TBD_TYPE_ARRAY && dwarf_hasattr(&view.die, DW_AT_data_location))
        view.kind =
            TBD_TYPE_UNKNOWN; /* the variable is a descriptor, as Fortran's arrays whose shape is not declared */
    view.bytes = size_of(&view.die, 0);
    if (view.kind == TBD_TYPE_INTEGER) {
        (void)tbd_die_number(&view.die, DW_AT_encoding, &encoding);
        view.kind = kind_of_base(encoding);
    } else if (view.kind == TBD_TYPE_ENUM) {
        encoding = enum_encoding(&view.die);
    } else if (view.kind == TBD_TYPE_ARRAY) {
        view.bytes = array_size(&view.die, type->dimensions, 0);
        (void)tbd_type_array_counts(&view.die, type->dimensions, &view.count, &all);
        if (type->count != 0 && type->dimensions == 0)
            take_computed(type, &view);
    }
    view.encoding = (uint8_t)encoding;
    view.is_signed = is_signed_encoding(encoding);
    if (view.kind == TBD_TYPE_INTEGER)
        view.wide = wide_of(&type->die, &view);
    return view;
}

static bool array_element(const struct tbd_type *array, const Dwarf_Die *die, struct tbd_type *out)
{
    uint64_t first = 0, all = 0;

    if (tbd_type_array_counts(die, array->dimensions + 1u, &first, &all)) {
        *out = *array;
        out->dimensions++;
        return true;
    }
    *out = tbd_type_of(die);
    return true;
}

bool tbd_type_target(const struct tbd_type *type, struct tbd_type *out)
{
    struct tbd_type_view view;

    *out = *type;
    if (type->made_pointers != 0) {
        out->made_pointers--;
        return true;
    }
    if (type->made_count != 0) {
        *out = without_made_array(type);
        return true;
    }
    if (type->pointers != 0) {
        out->pointers--;
        return true;
    }
    view = tbd_type_look(type);
    if (view.kind == TBD_TYPE_ARRAY)
        return array_element(type, &view.die, out);
    *out = tbd_type_made(0, 0);
    if (view.kind != TBD_TYPE_POINTER && view.kind != TBD_TYPE_REFERENCE)
        return false;
    *out = tbd_type_of(&view.die);
    return true;
}

uint64_t tbd_type_step(const struct tbd_type *pointer)
{
    struct tbd_type target;
    uint64_t bytes = 0;

    if (tbd_type_target(pointer, &target))
        bytes = tbd_type_look(&target).bytes;
    return bytes == 0 ? 1 : bytes;
}

const char *tbd_type_enumerator(const Dwarf_Die *of, uint64_t value)
{
    Dwarf_Die die;
    unsigned visits = 0;

    for (bool more = tbd_die_child(of, &die); more && visits++ < MEMBERS_MAX;
         more = tbd_die_next(&die, &die)) {
        uint64_t number;

        if (dwarf_tag(&die) == DW_TAG_enumerator &&
            tbd_die_number(&die, DW_AT_const_value, &number) && number == value)
            return tbd_die_name(&die);
    }
    return NULL;
}

/* ---- by name ---- */

const char *tbd_type_keyword(int tag)
{
    switch (tag) {
    case DW_TAG_structure_type: return "struct ";
    case DW_TAG_union_type: return "union ";
    case DW_TAG_enumeration_type: return "enum ";
    case DW_TAG_class_type: return "class ";
    default: return "";
    }
}

/* "vector<int>" means "vector<int, std::allocator<int> >". */
static bool is_with_defaults(const char *own, const char *name)
{
    size_t length = strlen(name);

    return length > 1 && name[length - 1] == '>' && strncmp(own, name, length - 1) == 0 &&
           own[length - 1] == ',';
}

static bool is_type_called(Dwarf_Die *die, const char *name)
{
    int tag = dwarf_tag(die);
    const char *keyword = tbd_type_keyword(tag);
    const char *own;

    if (tag != DW_TAG_base_type && tag != DW_TAG_typedef && *keyword == '\0')
        return false;
    own = tbd_die_name(die);
    if (own == NULL)
        return false;
    if (*keyword != '\0' && strncmp(name, keyword, strlen(keyword)) == 0)
        name += strlen(keyword);
    return strcmp(own, name) == 0 || is_with_defaults(own, name);
}

/* The end of "A" in "A::B"; template arguments may hold more of these. */
static const char *first_colons(const char *name)
{
    size_t length = strcspn(name, ":<");

    return name[length] == ':' && name[length + 1] == ':' ? name + length : NULL;
}

static bool is_scope_called(Dwarf_Die *die, const char *name, size_t bytes)
{
    const char *own = tbd_die_name(die);

    return own != NULL && strlen(own) == bytes && memcmp(own, name, bytes) == 0 &&
           (dwarf_tag(die) == DW_TAG_namespace || *tbd_type_keyword(dwarf_tag(die)) != '\0');
}

/* Complete types at the top of a unit, or in its namespaces; A::B in the scope called A. */
static bool find_in(const Dwarf_Die *parent, const char *name, int nesting, Dwarf_Die *out)
{
    const char *colons = first_colons(name);
    Dwarf_Die die;

    for (bool more = tbd_die_child(parent, &die); more; more = tbd_die_next(&die, &die)) {
        if (is_type_called(&die, name) && !tbd_die_flag(&die, DW_AT_declaration)) {
            *out = die;
            return true;
        }
        if (nesting >= NESTING_MAX)
            continue;
        if ((colons != NULL && is_scope_called(&die, name, (size_t)(colons - name)) &&
             find_in(&die, colons + 2, nesting + 1, out)) ||
            (dwarf_tag(&die) == DW_TAG_namespace && find_in(&die, name, nesting + 1, out)))
            return true;
    }
    return false;
}

bool tbd_type_find(struct tbd_dwarf *dwarf, const Dwarf_Die *unit, const char *name,
                   struct tbd_type *out)
{
    struct tbd_unit_walk walk;
    Dwarf_Die found, other;

    if (unit != NULL && find_in(unit, name, 0, &found)) {
        *out = tbd_type_from(&found);
        return true;
    }
    tbd_unit_walk_start(&walk, dwarf, name);
    while (tbd_unit_walk_next(&walk, &other)) {
        if (find_in(&other, name, 0, &found)) {
            *out = tbd_type_from(&found);
            return true;
        }
    }
    return false;
}

Dwarf_Die tbd_type_complete(struct tbd_dwarf *dwarf, const Dwarf_Die *of)
{
    Dwarf_Die die = *of;
    struct tbd_type found;
    char name[TBD_TYPE_TEXT_BYTES];
    const char *own = tbd_die_name(of);

    if (dwarf == NULL || own == NULL || !tbd_die_flag(of, DW_AT_declaration))
        return die;
    snprintf(name, sizeof(name), "%s%s", tbd_type_keyword(dwarf_tag(&die)), own);
    return tbd_type_find(dwarf, NULL, name, &found) ? found.die : die;
}
