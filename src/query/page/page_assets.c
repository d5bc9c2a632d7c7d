// SPDX-License-Identifier: MIT
/* page_assets.c - see page_assets.h */
#include "query/page/page_assets.h"

#include <string.h>

#define TBD_ASSET(symbol, name, type)                                                              \
    extern const uint8_t tbd_page_##symbol[], tbd_page_##symbol##_end[];
#include "query/page/page_assets.def"
#undef TBD_ASSET

static const struct tbd_page_asset assets[] = {
#define TBD_ASSET(symbol, name, type) { name, type, tbd_page_##symbol, tbd_page_##symbol##_end },
#include "query/page/page_assets.def"
#undef TBD_ASSET
};

const struct tbd_page_asset *tbd_page_asset(size_t index)
{
    return index < sizeof(assets) / sizeof(assets[0]) ? &assets[index] : NULL;
}

const struct tbd_page_asset *tbd_page_asset_called(const char *name)
{
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++)
        if (strcmp(assets[i].name, name) == 0)
            return &assets[i];
    return NULL;
}
