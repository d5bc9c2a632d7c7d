// SPDX-License-Identifier: MIT
/* parts.c - see parts.h */
#include "query/values/parts.h"

#include "query/values/cxx_object.h"
#include "query/values/cxx_print.h"
#include "query/values/dwarf_expr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 4 /* references and pointers that are looked through */

/* What a value's parts are parts of. */
struct whole {
    enum { WHOLE_NONE, WHOLE_MEMBERS, WHOLE_ELEMENTS, WHOLE_CONTAINER, WHOLE_TARGET } kind;
    struct tbd_data data;
    struct tbd_type_view view;
    bool is_target; /* a pointer led to it */
    struct tbd_cxx cxx;
};

static bool is_character(const struct tbd_type_view *view)
{
    return view->kind == TBD_TYPE_INTEGER && view->bytes == 1;
}

/* The object that a pointer or reference leads to; false: it leads to nothing that has parts. */
static bool follow(const struct tbd_printer *printer, struct whole *whole)
{
    struct tbd_class_finder finder = { printer->type, printer->context };
    struct tbd_type target;
    struct tbd_type_view view;
    struct tbd_data at, object;
    uint64_t address;
    uint8_t byte;

    if (!tbd_data_scalar(printer->place, &whole->data, &address) ||
        !tbd_type_target(&whole->data.type, &target))
        return false;
    view = tbd_type_look(&target);
    tbd_data_at(address, &target, &at);
    if (view.kind == TBD_TYPE_VOID || view.kind == TBD_TYPE_FUNCTION || view.bytes == 0 ||
        (whole->view.kind == TBD_TYPE_POINTER && is_character(&view)) ||
        !tbd_data_read(printer->place, &at, 0, &byte, 1))
        return false;
    if (printer->options.object && view.kind == TBD_TYPE_STRUCT &&
        tbd_object_whole(printer->place, &finder, &at, &object))
        at = object;
    whole->is_target |= whole->view.kind == TBD_TYPE_POINTER;
    whole->data = at;
    whole->view = tbd_type_look(&at.type);
    return true;
}

static void find_whole(const struct tbd_printer *printer, const struct tbd_data *data,
                       struct whole *out)
{
    *out = (struct whole){ .kind = WHOLE_NONE, .data = *data, .view = tbd_type_look(&data->type) };
    for (int i = 0; i < NESTING_MAX && out->data.is_known; i++) {
        switch (out->view.kind) {
        case TBD_TYPE_STRUCT:
            out->kind = WHOLE_MEMBERS;
            if (tbd_cxx_open(printer->place, &out->data, &out->cxx))
                out->kind = out->cxx.kind == TBD_CXX_STRING || out->cxx.kind == TBD_CXX_WIDE
                                ? WHOLE_NONE
                                : WHOLE_CONTAINER;
            return;
        case TBD_TYPE_ARRAY: out->kind = WHOLE_ELEMENTS; return;
        case TBD_TYPE_POINTER:
        case TBD_TYPE_REFERENCE:
            if (!follow(printer, out))
                return;
            if (out->is_target && out->view.kind != TBD_TYPE_STRUCT) {
                out->kind = WHOLE_TARGET;
                return;
            }
            break;
        default: return;
        }
    }
}

static Dwarf_Die members_of(const struct tbd_printer *printer, const struct whole *whole)
{
    return tbd_type_complete(printer->place->dwarf, &whole->view.die);
}

static uint64_t count_members(const struct tbd_printer *printer, const struct whole *whole)
{
    Dwarf_Die of = members_of(printer, whole), at;
    struct tbd_member member;
    uint64_t count = 0;

    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false)
        count++;
    return count;
}

/* Does a container have numbered elements, of which there may be very many? */
static bool is_indexed(const struct tbd_cxx *cxx)
{
    return cxx->kind == TBD_CXX_SEQUENCE || cxx->kind == TBD_CXX_MAP ||
           cxx->kind == TBD_CXX_NUMBERED;
}

struct tbd_parts_count tbd_parts_count(const struct tbd_printer *printer,
                                       const struct tbd_data *data)
{
    struct whole *whole = malloc(sizeof(*whole));
    struct tbd_parts_count count = { 0 };

    if (whole == NULL)
        return count;
    find_whole(printer, data, whole);
    switch (whole->kind) {
    case WHOLE_NONE: break;
    case WHOLE_MEMBERS: count.named = count_members(printer, whole); break;
    case WHOLE_ELEMENTS: count.indexed = whole->view.count; break;
    case WHOLE_TARGET: count.named = 1; break;
    case WHOLE_CONTAINER:
        if (is_indexed(&whole->cxx))
            count.indexed = whole->cxx.count;
        else
            count.named = whole->cxx.count;
        break;
    }
    free(whole);
    return count;
}

/* ---- one after another ---- */

struct parts_visit {
    const struct tbd_printer *printer;
    struct whole whole;
    uint64_t first, count;
    bool (*each)(void *context, const struct tbd_value_part *part);
    void *context;
    struct tbd_value_part part;
    struct tbd_data second; /* of a map's element */
};

static void name_member(struct parts_visit *visit, const struct tbd_member *member)
{
    struct tbd_value_part *part = &visit->part;
    char type[128];

    part->has_access = true;
    part->access[0] = '\0';
    if (member->is_base || member->name == NULL) {
        snprintf(part->name, sizeof(part->name), "<%s>",
                 tbd_type_text(&member->type, type, sizeof(type)));
        return;
    }
    snprintf(part->name, sizeof(part->name), "%s", member->name);
    snprintf(part->access, sizeof(part->access), "%s%s", visit->whole.is_target ? "->" : ".",
             member->name);
}

static void visit_members(struct parts_visit *visit)
{
    const struct tbd_place_of *place = visit->printer->place;
    Dwarf_Die of = members_of(visit->printer, &visit->whole), at;
    struct tbd_member member;
    uint64_t index = 0;

    for (bool first = true; tbd_type_next_member(&of, first, &at, &member); first = false) {
        if (index++ < visit->first)
            continue;
        if (index > visit->first + visit->count)
            return;
        name_member(visit, &member);
        if (member.is_static)
            (void)tbd_c_static_member(place, &member, &visit->part.data);
        else
            tbd_data_member(place, &visit->whole.data, &member, &visit->part.data);
        if (!visit->each(visit->context, &visit->part))
            return;
    }
}

static void number_part(struct tbd_value_part *part, uint64_t number)
{
    part->has_access = true;
    snprintf(part->name, sizeof(part->name), "[%" PRIu64 "]", number);
    snprintf(part->access, sizeof(part->access), "[%" PRIu64 "]", number);
}

static void visit_elements(struct parts_visit *visit)
{
    struct tbd_type element;
    uint64_t bytes, end = visit->whole.view.count;

    if (!tbd_type_target(&visit->whole.data.type, &element))
        return;
    bytes = tbd_type_look(&element).bytes;
    if (visit->count < end - visit->first)
        end = visit->first + visit->count;
    for (uint64_t i = visit->first; bytes != 0 && i < end; i++) {
        number_part(&visit->part, i);
        tbd_data_part(&visit->whole.data, i * bytes, &element, &visit->part.data);
        if (!visit->each(visit->context, &visit->part))
            return;
    }
}

/* "[KEY]" of a map's element. */
static void name_by_key(struct parts_visit *visit)
{
    struct tbd_value_part *part = &visit->part;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out != NULL) {
        tbd_data_print(visit->printer, &part->data, out);
        fclose(out);
    }
    snprintf(part->name, sizeof(part->name), "[%.150s]", text == NULL ? "" : text);
    free(text);
    part->has_access = false;
    part->data = visit->second;
}

static void name_element(struct parts_visit *visit, uint64_t index)
{
    const struct tbd_cxx *cxx = &visit->whole.cxx;
    struct tbd_value_part *part = &visit->part;

    if (cxx->kind == TBD_CXX_MAP) {
        name_by_key(visit);
        return;
    }
    if (is_indexed(cxx)) {
        number_part(part, cxx->kind == TBD_CXX_NUMBERED ? cxx->number : index);
        part->has_access = cxx->kind == TBD_CXX_SEQUENCE && cxx->is_indexed;
        return;
    }
    snprintf(part->name, sizeof(part->name), "%s",
             cxx->kind == TBD_CXX_POINTER ? "get()" : "value");
    part->has_access = cxx->kind == TBD_CXX_POINTER;
    snprintf(part->access, sizeof(part->access), ".get()");
}

static void visit_container(struct parts_visit *visit)
{
    struct tbd_cxx *cxx = &visit->whole.cxx;
    uint64_t index = 0, end = cxx->count;

    if (visit->first >= end)
        return;
    if (cxx->is_indexed)
        cxx->index = index = visit->first;
    if (visit->count < end - visit->first)
        end = visit->first + visit->count;
    for (; index < end; index++) {
        if (!tbd_cxx_next(visit->printer->place, cxx, &visit->part.data, &visit->second))
            return;
        if (index < visit->first)
            continue;
        name_element(visit, index);
        if (!visit->each(visit->context, &visit->part))
            return;
    }
}

static void visit_target(struct parts_visit *visit)
{
    struct tbd_value_part *part = &visit->part;

    if (visit->first != 0 || visit->count == 0)
        return;
    strcpy(part->name, "*");
    strcpy(part->access, "*");
    part->has_access = true;
    part->data = visit->whole.data;
    (void)visit->each(visit->context, part);
}

void tbd_parts_each(const struct tbd_printer *printer, const struct tbd_data *data, uint64_t first,
                    uint64_t count, bool (*each)(void *context, const struct tbd_value_part *part),
                    void *context)
{
    struct parts_visit *visit = calloc(1, sizeof(*visit));

    if (visit == NULL)
        return;
    *visit = (struct parts_visit){
        .printer = printer, .first = first, .count = count, .each = each, .context = context
    };
    find_whole(printer, data, &visit->whole);
    switch (visit->whole.kind) {
    case WHOLE_NONE: break;
    case WHOLE_MEMBERS: visit_members(visit); break;
    case WHOLE_ELEMENTS: visit_elements(visit); break;
    case WHOLE_TARGET: visit_target(visit); break;
    case WHOLE_CONTAINER: visit_container(visit); break;
    }
    free(visit);
}
