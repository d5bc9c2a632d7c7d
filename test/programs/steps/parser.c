// SPDX-License-Identifier: MIT
// A recursive-descent calculator: a scanner with a switch, a table of operators, calls of oneself through three levels.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { END, NUMBER, NAME, SIGN };

struct scanner {
    const char *at;
    enum kind kind;
    long number;
    char name[16];
    char sign;
};

static struct {
    char name[16];
    long value;
} variables[8];
static int used, mistakes;

static void scan(struct scanner *s) {
    while (isspace((unsigned char)*s->at))
        s->at++;
    switch (*s->at) {
    case 0:
        s->kind = END;
        return;
    case '0' ... '9':
        s->kind = NUMBER;
        for (s->number = 0; isdigit((unsigned char)*s->at); s->at++)
            s->number = s->number * 10 + (*s->at - '0');
        return;
    default:
        if (isalpha((unsigned char)*s->at)) {
            size_t n = 0;
            do
                if (n + 1 < sizeof(s->name))
                    s->name[n++] = *s->at;
            while (isalnum((unsigned char)*++s->at));
            s->name[n] = 0;
            s->kind = NAME;
            return;
        }
        s->kind = SIGN;
        s->sign = *s->at++;
    }
}

static long *variable(const char *name) {
    for (int i = 0; i < used; i++)
        if (!strcmp(variables[i].name, name))
            return &variables[i].value;
    if (used == 8)
        return NULL;
    strcpy(variables[used].name, name);
    return &variables[used++].value;
}

static int strength(char sign) {
    return sign == '=' ? 1 : sign == '+' || sign == '-' ? 2 : sign == '*' || sign == '/' || sign == '%' ? 3 : 0;
}

static long apply(char sign, long a, long b) {
    switch (sign) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return b ? a / b : (mistakes++, 0);
    case '%': return b ? a % b : (mistakes++, 0);
    }
    return 0;
}

static long expression(struct scanner *s, int least);

static long primary(struct scanner *s) {
    long value = 0;
    if (s->kind == NUMBER) {
        value = s->number;
        scan(s);
    } else if (s->kind == NAME) {
        long *place = variable(s->name);
        scan(s);
        if (place && s->kind == SIGN && s->sign == '=') {
            scan(s);
            *place = expression(s, 1);
        }
        value = place ? *place : 0;
    } else if (s->kind == SIGN && s->sign == '(') {
        scan(s);
        value = expression(s, 1);
        if (s->kind == SIGN && s->sign == ')') scan(s); else mistakes++;
    } else if (s->kind == SIGN && s->sign == '-') {
        scan(s);
        value = -primary(s);
    } else {
        mistakes++;
        scan(s);
    }
    return value;
}

static long expression(struct scanner *s, int least) {
    long left = primary(s);
    while (s->kind == SIGN && strength(s->sign) >= least) {
        char sign = s->sign;
        scan(s);
        left = apply(sign, left, expression(s, strength(sign) + 1));
    }
    return left;
}

int main(void) {
    static const char *const lines[] = {"1 + 2 * 3", "x = (4 - 1) * -7", "y = x % 5 + 2 * x", "(1 + (2 * (3 + (4 / 0)", "a=b=c=3", "c*c - b / a"};
    long sum = 0;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct scanner s = {.at = lines[i]};
        scan(&s);
        sum += expression(&s, 1);
    }
    printf("%ld %d\n", sum, mistakes);
    return 0;
}
