// SPDX-License-Identifier: MIT
/* neighbour.c - a name that is too long makes its owner an administrator
 *
 * No code assigns to `is_admin`.  neighbour.tbdq finds the store that wrote it all the same, and that
 * its index was past the end of the name. */
#include <stdio.h>

static struct {
    char user[8];
    int is_admin;
} session;

static void copy_name(const char *name, unsigned limit)
{
    for (unsigned i = 0; name[i] != '\0' && i < limit; i++)
        session.user[i] = name[i];
}

int main(void)
{
#ifdef FIXED
    copy_name("bartholomew", sizeof(session.user) - 1);
#else
    copy_name("bartholomew", 31); /* the limit of the form, not of the field */
#endif
    printf("is_admin %d\n", session.is_admin);
    return session.is_admin != 0;
}
