// SPDX-License-Identifier: MIT
/* print_container.c - containers of the C++ library by their elements (print_private.h) */
#include "query/values/print_private.h"

#include "query/values/cxx_print.h"
#include "query/text/print_text.h"

#include <inttypes.h>
#include <string.h>

/* A known number of characters, which may include NULs. */
static void print_counted(struct tbd_print *p, const struct tbd_cxx *cxx)
{
    uint8_t text[TBD_TEXT_SHOWN];
    size_t count = 0;

    while (count < sizeof(text) && count < cxx->count &&
           tbd_data_read(p->printer->place, &cxx->data, count, &text[count], 1))
        count++;
    tbd_text_print(p->out, text, count, count < cxx->count);
    if (count < sizeof(text) && count < cxx->count)
        tbd_print_unknown_rest(p);
}

static void print_element(struct tbd_print *p, const struct tbd_cxx *cxx,
                          const struct tbd_data *element, const struct tbd_data *second)
{
    if (cxx->kind == TBD_CXX_POINTER)
        fputs("get() = ", p->out);
    if (cxx->kind == TBD_CXX_OPTIONAL)
        fputs("[contained value] = ", p->out);
    if (cxx->kind == TBD_CXX_NUMBERED || cxx->is_numbered)
        fprintf(p->out, "[%" PRIu64 "] = ", cxx->number);
    if (cxx->kind == TBD_CXX_MAP)
        fputc('[', p->out);
    tbd_print_value(p, element);
    if (cxx->kind != TBD_CXX_MAP)
        return;
    fputs("] = ", p->out);
    tbd_print_value(p, second);
}

/* gdb has a line for each element of these only. */
static bool has_lines(const struct tbd_cxx *cxx)
{
    return cxx->kind != TBD_CXX_SEQUENCE || cxx->is_numbered;
}

static void print_elements(struct tbd_print *p, struct tbd_cxx *cxx)
{
    bool lines = p->printer->options.pretty && has_lines(cxx);
    struct tbd_data element, second;

    fputs(" = {", p->out);
    for (uint64_t i = 0; i < cxx->count; i++) {
        if (!tbd_print_may_go_on(p))
            break;
        fputs(i == 0 ? "" : lines ? "," : ", ", p->out);
        if (lines)
            tbd_print_line(p, 1);
        if (!tbd_cxx_next(p->printer->place, cxx, &element, &second)) {
            tbd_print_damaged_rest(p);
            break;
        }
        print_element(p, cxx, &element, &second);
    }
    if (lines)
        tbd_print_line(p, 0);
    fputc('}', p->out);
}

/* What an optional, any, ... holds is itself a container with elements: one text names both. */
static bool print_nested(struct tbd_print *p, const struct tbd_cxx *outer)
{
    const struct tbd_place_of *place = p->printer->place;
    struct tbd_cxx copy = *outer, inner;
    struct tbd_data element, second;

    if (outer->kind != TBD_CXX_OPTIONAL || !tbd_cxx_next(place, &copy, &element, &second) ||
        !tbd_cxx_open(place, &element, &inner) || inner.kind == TBD_CXX_STRING ||
        inner.kind == TBD_CXX_WIDE)
        return false;
    fprintf(p->out, "%.*s containing ",
            outer->names_value ? (int)(strstr(outer->title, " containing") - outer->title)
                               : (int)strlen(outer->title),
            outer->title);
    tbd_print_value(p, &element);
    return true;
}

static void print_string_of(struct tbd_print *p, const struct tbd_cxx *cxx)
{
    fputs(cxx->title, p->out);
    if (cxx->kind == TBD_CXX_STRING)
        print_counted(p, cxx);
    else
        tbd_print_wide(p, &cxx->data, cxx->count);
}

/* Kinds with one element that need no brackets. */
static bool print_only(struct tbd_print *p, const struct tbd_cxx *cxx)
{
    struct tbd_cxx copy = *cxx;
    struct tbd_data element, second;

    if ((cxx->kind != TBD_CXX_ITERATOR && cxx->kind != TBD_CXX_ADAPTER &&
         cxx->kind != TBD_CXX_ATOMIC) ||
        !tbd_cxx_next(p->printer->place, &copy, &element, &second))
        return false;
    if (cxx->kind != TBD_CXX_ITERATOR)
        fputs(cxx->title, p->out);
    fputs(cxx->kind == TBD_CXX_ATOMIC ? " = { " : "", p->out);
    tbd_print_value(p, &element);
    fputs(cxx->kind == TBD_CXX_ATOMIC ? " }" : "", p->out);
    return true;
}

bool tbd_print_container(struct tbd_print *p, const struct tbd_data *data)
{
    struct tbd_cxx cxx;

    if (!tbd_cxx_open(p->printer->place, data, &cxx))
        return false;
    if (cxx.kind == TBD_CXX_STRING || cxx.kind == TBD_CXX_WIDE) {
        print_string_of(p, &cxx);
    } else if (!print_only(p, &cxx) && !print_nested(p, &cxx)) {
        fputs(cxx.title, p->out);
        if (cxx.count != 0)
            print_elements(p, &cxx);
        else
            fputs(cxx.kind == TBD_CXX_OPTIONAL ? " [no contained value]" : "", p->out);
    }
    return true;
}
