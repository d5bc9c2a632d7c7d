// SPDX-License-Identifier: MIT
/* print_struct.c - arrays, structs, unions and classes by their members (print_private.h) */
#include "query/values/print_private.h"

#include "query/text/print_text.h"
#include "query/values/dwarf_expr.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

#define ELEMENT_BYTES                                                                              \
    4096u /* the largest element that is compared with the next ones, to print repeats once */

/* How many elements from `index` on have the same bytes, 1 at least. */
static uint64_t count_equal(struct tbd_print *p, const struct tbd_data *data, uint64_t index,
                            uint64_t count, uint64_t bytes)
{
    uint8_t first[ELEMENT_BYTES], others[ELEMENT_BYTES];
    uint64_t equal = 1, step = 1;

    if (bytes > sizeof(first) ||
        !tbd_data_read(p->printer->place, data, index * bytes, first, bytes))
        return 1;
    while (index + equal < count) {
        step = step * bytes * 2 <= sizeof(others) ? step * 2 : step;
        if (step > count - index - equal)
            step = count - index - equal;
        if (!tbd_data_read(p->printer->place, data, (index + equal) * bytes, others, step * bytes))
            return equal;
        for (uint64_t i = 0; i < step; i++, equal++) {
            if (memcmp(first, others + i * bytes, bytes) != 0)
                return equal;
        }
    }
    return equal;
}

static void print_elements(struct tbd_print *p, const struct tbd_data *data,
                           const struct tbd_type *type, uint64_t bytes, uint64_t count)
{
    uint64_t known =
        count <= TBD_PRINT_ARRAY_BYTES / bytes ? count : TBD_PRINT_ARRAY_BYTES / bytes + 1;
    struct tbd_data part;

    for (uint64_t i = 0, equal; i < known; i += equal) {
        if (p->elements >= TBD_PRINT_ELEMENTS_MAX) {
            fputs("...", p->out);
            return;
        }
        fputs(i != 0 ? ", " : "", p->out);
        tbd_data_part(data, i * bytes, type, &part);
        tbd_print_value(p, &part);
        equal = count_equal(p, data, i, known, bytes);
        if (equal > TBD_TEXT_REPEATS)
            fprintf(p->out, " <repeats %" PRIu64 " times>", equal);
        else
            equal = 1;
        p->elements += equal == 1 ? 1 : TBD_TEXT_REPEATS;
    }
    fputs(known < count ? "..." : "", p->out);
}

void tbd_print_array(struct tbd_print *p, const struct tbd_data *data,
                     const struct tbd_type_view *view)
{
    struct tbd_type element;
    struct tbd_type_view of;

    if (!tbd_type_target(&data->type, &element))
        return;
    of = tbd_type_look(&element);
    if (tbd_print_is_char(&of) && p->printer->format == 0 && view->count != 0) {
        if (!tbd_print_chars(p, data, view->count))
            tbd_print_unmapped(p, data);
        return;
    }
    if (tbd_print_is_wide(&of) && p->printer->format == 0 && view->count != 0) {
        tbd_print_wide_array(p, data, view->count);
        return;
    }
    fputc('{', p->out);
    if (of.bytes != 0)
        print_elements(p, data, &element, of.bytes, view->count);
    fputc('}', p->out);
}

/* A class may have a static member of its own type. */
static bool is_seen(struct tbd_print *p, const struct tbd_data *member)
{
    if (!member->is_known || tbd_type_look(&member->type).kind != TBD_TYPE_STRUCT)
        return false;
    for (size_t i = 0; i < p->seen_count; i++) {
        if (p->seen[i] == member->address)
            return true;
    }
    if (p->seen_count == TBD_PRINT_SEEN_MAX)
        return true;
    p->seen[p->seen_count++] = member->address;
    return false;
}

static void print_member(struct tbd_print *p, const struct tbd_data *data,
                         const struct tbd_member *member)
{
    struct tbd_data part;
    char name[128];

    if (member->is_static)
        fputs("static ", p->out);
    if (member->is_base)
        fprintf(p->out, "<%s> = ", tbd_type_text(&member->type, name, sizeof(name)));
    else if (member->name != NULL)
        fprintf(p->out, "%s = ", member->name);
    if (member->is_static)
        (void)tbd_c_static_member(p->printer->place, member, &part);
    else
        tbd_data_member(p->printer->place, data, member, &part);
    if (member->is_static && is_seen(p, &part))
        fputs("<same as static member of an already seen type>", p->out);
    else
        tbd_print_value(p, &part);
}

/* A base class without data, like most helpers of the C++ library, is not printed. */
static bool is_empty_base(struct tbd_print *p, const struct tbd_member *member, int nesting)
{
    struct tbd_type_view view = tbd_type_look(&member->type);
    struct tbd_member inner;
    Dwarf_Die of, at;

    if (!member->is_base || view.kind != TBD_TYPE_STRUCT || view.bytes > 1 ||
        nesting > TBD_PRINT_NESTING_MAX)
        return false;
    of = tbd_type_complete(p->printer->place->dwarf, &view.die);
    for (bool first = true; tbd_type_next_member(&of, first, &at, &inner); first = false) {
        if (!inner.is_static && !is_empty_base(p, &inner, nesting + 1))
            return false;
    }
    return true;
}

/* Where the members of a class begin after those of its base classes. */
static void print_owner(struct tbd_print *p, const struct tbd_type *type)
{
    char name[256];

    tbd_print_line(p, 1);
    fprintf(p->out, "members of %s:", tbd_type_text(type, name, sizeof(name)));
}

/* A virtual base class is one part of an object, however many of its classes name it. */
static bool is_printed_base(struct tbd_print *p, const struct tbd_data *object,
                            const struct tbd_member *member)
{
    struct tbd_data base;

    if (!member->is_virtual)
        return false;
    tbd_data_member(p->printer->place, object, member, &base);
    base.type = member->type;
    return is_seen(p, &base);
}

void tbd_print_struct(struct tbd_print *p, const struct tbd_data *data,
                      const struct tbd_type_view *view)
{
    struct tbd_member member;
    Dwarf_Die of = tbd_type_complete(p->printer->place->dwarf, &view->die), at;
    bool first = true, any = false, was_base = false;

    if (p->printer->format == 0 && tbd_print_container(p, data))
        return;
    if (tbd_die_flag(&of, DW_AT_declaration)) {
        fputs("<incomplete type>", p->out);
        return;
    }
    fputc('{', p->out);
    for (; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if ((member.is_static && !p->printer->options.static_members) ||
            is_empty_base(p, &member, 0))
            continue;
        if (is_printed_base(p, data, &member)) {
            was_base = true;
            continue;
        }
        if (any)
            fputs(p->printer->options.pretty ? "," : ", ", p->out);
        if (was_base && !member.is_base && p->printer->options.pretty)
            print_owner(p, &data->type);
        any = true;
        was_base = member.is_base;
        tbd_print_line(p, 1);
        if (!tbd_print_may_go_on(p))
            break;
        print_member(p, data, &member);
    }
    if (any)
        tbd_print_line(p, 0);
    fputc('}', p->out);
}
