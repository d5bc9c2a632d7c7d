// SPDX-License-Identifier: MIT
/* keys_private.h - how masks are coded: for keys.c, which writes them, and keys_read.c */
#ifndef TBD_FORMAT_KEYS_PRIVATE_H
#define TBD_FORMAT_KEYS_PRIVATE_H

enum tbd_key_mask { TBD_KEY_ALONE = 0, TBD_KEY_ON = 1, TBD_KEY_MORE = 2, TBD_KEY_SAME = 3 };

#endif
