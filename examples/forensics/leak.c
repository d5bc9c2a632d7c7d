// SPDX-License-Identifier: MIT
/* leak.c - one picture is never freed: who had it last?
 *
 * leak.tbdq follows the pointer: who kept it, and what overwrote the last place that knew it. */
#include <stdio.h>
#include <stdlib.h>

struct picture {
    int number;
};

static struct picture *made[8];
static struct picture *survivor; /* what the check at the end found */

static struct {
    struct picture *shown;
} screen;

static struct picture *load(int number)
{
    struct picture *picture = malloc(sizeof(*picture));

    picture->number = number;
    made[number] = picture;
    return picture;
}

static void discard(struct picture *picture)
{
    made[picture->number] = NULL;
    free(picture);
}

static void show(struct picture *picture)
{
#ifndef FIXED
    if (picture->number == 5) {
        screen.shown = picture; /* in a hurry */
        return;
    }
#endif
    if (screen.shown != NULL)
        discard(screen.shown);
    screen.shown = picture;
}

int main(void)
{
    for (int i = 0; i < 8; i++)
        show(load(i));
    discard(screen.shown);
    for (int i = 0; i < 8; i++)
        survivor = made[i] != NULL ? made[i] : survivor;
    printf("%s\n", survivor != NULL ? "one is left" : "none is left");
    return survivor != NULL;
}
