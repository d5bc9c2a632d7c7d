// SPDX-License-Identifier: MIT
/* ray.c - a small ray tracer: 26 spheres over a plane, with shadows and reflections, as PPM on stdout
 *
 *     ray [SIZE]        SIZE x SIZE pixels, 200 by default
 *
 * Deterministic: the same bytes every time, whatever it runs under.  Questions it is for:
 *
 *     tbdq 'goto first forward func_enter 26 where func==add_sphere'     the last sphere is made
 *     tbdq 'goto last backward store 1 where addr>=&spheres and addr<&spheres+1248'
 *     tbdq 'goto first forward func_enter 1 where stack=<**,trace,trace,trace>'   a third bounce
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SPHERES 26
#define DEPTH 4
#define FAR 1e30

struct vec {
    double x, y, z;
};
struct sphere {
    struct vec center;
    double radius;
    double shade;
    double mirror;
};

struct sphere spheres[SPHERES];
static unsigned sphere_count;
static const struct vec light = { -0.48, 0.6, -0.64 };

__attribute__((noinline)) void add_sphere(double x, double y, double z, double radius);
__attribute__((noinline)) double trace(struct vec from, struct vec direction, int depth);

static struct vec along(struct vec from, struct vec direction, double distance)
{
    return (struct vec){ from.x + direction.x * distance, from.y + direction.y * distance,
                         from.z + direction.z * distance };
}

static double dot(struct vec a, struct vec b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct vec unit(struct vec v)
{
    return along((struct vec){ 0, 0, 0 }, v, 1 / sqrt(dot(v, v)));
}

void add_sphere(double x, double y, double z, double radius)
{
    struct sphere *s = &spheres[sphere_count++];

    s->center = (struct vec){ x, y, z };
    s->radius = radius;
    s->shade = 0.3 + 0.02 * sphere_count;
    s->mirror = sphere_count % 3 == 0 ? 0.6 : 0.2;
}

/* A cube of three by three by three without its middle. */
static void make_scene(void)
{
    for (int i = 0; i < 27; i++) {
        if (i != 13)
            add_sphere(i % 3 - 1, i / 3 % 3, i / 9 + 2, 0.42);
    }
}

static double hit_sphere(const struct sphere *s, struct vec from, struct vec direction)
{
    struct vec to = along(s->center, from, -1);
    double b = dot(to, direction);
    double root = b * b - dot(to, to) + s->radius * s->radius;
    double distance = root > 0 ? b - sqrt(root) : FAR;

    return distance > 1e-6 ? distance : FAR;
}

static double nearest(struct vec from, struct vec direction, const struct sphere **found)
{
    double best = FAR;

    for (unsigned i = 0; i < sphere_count; i++) {
        double distance = hit_sphere(&spheres[i], from, direction);

        if (distance < best) {
            best = distance;
            *found = &spheres[i];
        }
    }
    return best;
}

static double lit(struct vec at, struct vec normal)
{
    const struct sphere *shadow = NULL;
    double angle = dot(normal, light);

    return angle > 0 && nearest(at, light, &shadow) == FAR ? angle : 0;
}

/* The plane is a chess board as far as one can see. */
static double tile(struct vec at)
{
    long column = at.z < 50 ? (long)(at.x + 100) : 0;

    return (column + (long)(at.z + 100)) % 2 ? 0.2 : 0.5;
}

/* Brightness 0..1 of what a ray meets. */
double trace(struct vec from, struct vec direction, int depth)
{
    const struct sphere *sphere = NULL;
    double distance = nearest(from, direction, &sphere);
    double floor = direction.y < 0 ? -(from.y + 0.42) / direction.y : FAR;
    struct vec at = along(from, direction, distance < floor ? distance : floor);

    if (floor < distance && floor > 1e-6)
        return tile(at) + 0.4 * lit(at, (struct vec){ 0, 1, 0 });
    if (!sphere)
        return 0.6 + 0.4 * direction.y;

    struct vec normal = unit(along(at, sphere->center, -1));
    double bright = 0.1 + sphere->shade * lit(at, normal);

    if (depth > 1)
        bright += sphere->mirror *
                  trace(at, along(direction, normal, -2 * dot(normal, direction)), depth - 1);
    return bright;
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 200;

    if (size < 1 || size > 10000) {
        fprintf(stderr, "ray: size must be 1 to 10000\n");
        return 2;
    }
    make_scene();
    printf("P6\n%d %d\n255\n", size, size);
    for (int y = 0; y < size; y++) {
        for (int x = 0; x < size; x++) {
            struct vec direction = unit((struct vec){ (double)x / size - 0.5, 0.35 - (double)y / size, 1 });
            double bright = trace((struct vec){ 0.6, 1.7, -1.6 }, direction, DEPTH);
            int level = bright < 1 ? (int)(bright * 255) : 255;

            putchar(level);
            putchar(level * 9 / 10);
            putchar(level * 3 / 4);
        }
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
