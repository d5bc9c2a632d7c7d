// SPDX-License-Identifier: MIT
/* page_assets.h - the page's files, which tbdq carries */
#ifndef TBD_QUERY_PAGE_ASSETS_H
#define TBD_QUERY_PAGE_ASSETS_H

#include <stddef.h>
#include <stdint.h>

struct tbd_page_asset {
    const char *name;
    const char *type; /* for Content-Type */
    const uint8_t *bytes, *end;
};

/* NULL after the last one. */
const struct tbd_page_asset *tbd_page_asset(size_t index);
/* NULL: there is none with this name. */
const struct tbd_page_asset *tbd_page_asset_called(const char *name);

#endif
