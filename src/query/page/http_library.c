// SPDX-License-Identifier: MIT
/* http_library.c - see http_library.h */
#include "query/page/http_library.h"

#include <dlfcn.h>

static struct tbd_http functions;

static bool find_all(void *library)
{
    /* dlsym(3): a pointer to a function comes as one to an object. */
#define FIND(name)                                                                                 \
    *(void **)&functions.name = dlsym(library, "MHD_" #name);                                      \
    if (functions.name == NULL)                                                                    \
        return false;
    TBD_HTTP_FUNCTIONS(FIND)
#undef FIND
    return true;
}

bool tbd_http_load(void)
{
    void *library = dlopen(TBD_HTTP_LIBRARY, RTLD_NOW);

    return library != NULL && find_all(library);
}

const struct tbd_http *tbd_http(void)
{
    return &functions;
}
