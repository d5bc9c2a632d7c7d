// SPDX-License-Identifier: MIT
/* fmt.c - see fmt.h.  One pass over the format, one output cursor, no recursion. */
#include "base/fmt.h"

#include "base/string.h"

#include <stdbool.h>
#include <stdint.h>

struct output {
    char *at;
    char *end; /* the terminator's last possible place */
};

struct field {
    unsigned width;
    char pad;
    bool wide; /* l, ll, z: 64 bits */
};

static void put(struct output *out, char c)
{
    if (out->at < out->end)
        *out->at++ = c;
}

static void put_text(struct output *out, const char *text, struct field field)
{
    size_t length;

    if (!text)
        text = "(null)";
    length = strlen(text);
    while (*text)
        put(out, *text++);
    for (; length < field.width; length++)
        put(out, ' ');
}

static void put_number(struct output *out, uint64_t value, unsigned base, bool negative,
                       struct field field)
{
    char digits[24];
    unsigned count = 0;

    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    if (negative)
        digits[count++] = '-';
    for (unsigned i = count; i < field.width; i++)
        put(out, field.pad);
    while (count)
        put(out, digits[--count]);
}

static const char *parse_field(const char *format, struct field *field)
{
    *field = (struct field){ .pad = ' ' };
    if (*format == '0') {
        field->pad = '0';
        format++;
    }
    for (; *format >= '0' && *format <= '9'; format++)
        field->width = field->width * 10 + (unsigned)(*format - '0');
    for (; *format == 'l' || *format == 'z'; format++)
        field->wide = true;
    return format;
}

size_t tbd_fmt_list(char *text, size_t size, const char *format, va_list list)
{
    struct output out = { text, text + size - 1 };

    for (; *format; format++) {
        struct field field;

        if (*format != '%') {
            put(&out, *format);
            continue;
        }
        format = parse_field(format + 1, &field);
        switch (*format) {
        case 's': put_text(&out, va_arg(list, const char *), field); break;
        case 'c': put(&out, (char)va_arg(list, int)); break;
        case 'd': {
            int64_t value = field.wide ? va_arg(list, int64_t) : va_arg(list, int);
            uint64_t size_of = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

            put_number(&out, size_of, 10, value < 0, field);
            break;
        }
        case 'u':
        case 'x': {
            uint64_t value = field.wide ? va_arg(list, uint64_t) : va_arg(list, unsigned);

            put_number(&out, value, *format == 'x' ? 16 : 10, false, field);
            break;
        }
        case 'p':
            put(&out, '0');
            put(&out, 'x');
            put_number(&out, (uint64_t)(uintptr_t)va_arg(list, void *), 16, false, field);
            break;
        case '\0': goto out_end;
        default: put(&out, *format); break;
        }
    }
out_end:
    *out.at = '\0';
    return (size_t)(out.at - text);
}

size_t tbd_fmt(char *out, size_t size, const char *format, ...)
{
    va_list list;
    size_t length;

    va_start(list, format);
    length = tbd_fmt_list(out, size, format, list);
    va_end(list);
    return length;
}
