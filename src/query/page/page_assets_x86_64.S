// SPDX-License-Identifier: MIT
/* page_assets_x86_64.S - the bytes of the page's files (page_assets.def) */
        .section .rodata.tbd_page_assets, "a", @progbits
#define TBD_ASSET(symbol, name, type)                                    \
        .globl  tbd_page_##symbol, tbd_page_##symbol##_end;              \
        tbd_page_##symbol: .incbin name;             \
        tbd_page_##symbol##_end:                                         ;
#include "page_assets.def"

        .section .note.GNU-stack, "", @progbits
