// SPDX-License-Identifier: MIT
// Arrays whose length the caller says, structs by value, floating point, alloca, functions within functions of loops.
#include <alloca.h>
#include <complex.h>
#include <stdio.h>
#include <string.h>

struct vector {
    double x, y, z;
};

struct pair {
    int a;
    double b;
};

static inline struct vector plus(struct vector a, struct vector b) { return (struct vector){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline double dot(struct vector a, struct vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static struct pair paired(int a, double b) {
    struct pair p = {a, b};
    p.b += a;
    return p;
}

static void multiply(int n, double a[n][n], double b[n][n], double out[n][n]) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i][k] * b[k][j];
            out[i][j] = sum;
        }
}

static double trace(int n) {
    double a[n][n], b[n][n], c[n][n];
    for (int i = 0; i < n * n; i++) {
        a[0][i] = i;
        b[i / n][i % n] = i % n == i / n ? 2 : 0;
    }
    multiply(n, a, b, c);
    double sum = 0;
    for (int i = n; i--;)
        sum += c[i][i];
    return sum;
}

static int reversed(const char *text) {
    size_t n = strlen(text);
    char *copy = alloca(n + 1);
    for (size_t i = 0; i < n; i++) copy[i] = text[n - 1 - i];
    copy[n] = 0;
    return strcmp(copy, text);
}

static double turned(int n) {
    double complex z = 1, step = 0.6 + 0.8 * I;
    while (n-- > 0) {
        z *= step;
        if (creal(z) < 0)
            continue;
        step = conj(step);
    }
    return creal(z) + cimag(z);
}

int main(void) {
    struct vector sum = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        sum = plus(sum, (struct vector){i, i * 0.5, 1});
    struct pair p = paired(3, dot(sum, sum));
    double t = trace(2) + trace(3);
    printf("%g %g %d %g\n", p.b, t, (reversed("anna") == 0) + (reversed("otto!") == 0), turned(5));
    return 0;
}
