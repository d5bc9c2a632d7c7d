// SPDX-License-Identifier: MIT
/* user_path.c - see user_path.h */
#include "query/text/user_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool make_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
        *at = '/';
    }
    return true;
}

bool tbd_user_path(const char *variable, const char *below_home, const char *name, char *out,
                   size_t bytes)
{
    const char *given = getenv(variable), *home = getenv("HOME");
    int length;

    if (given != NULL && given[0] == '/')
        length = snprintf(out, bytes, "%s/tbd/%s", given, name);
    else if (home != NULL && home[0] == '/')
        length = snprintf(out, bytes, "%s/%s/tbd/%s", home, below_home, name);
    else
        return false;
    return length >= 0 && (size_t)length < bytes && make_folders(out);
}
