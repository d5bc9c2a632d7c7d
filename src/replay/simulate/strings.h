// SPDX-License-Identifier: MIT
/* strings.h - which result of compared strings an operation STRINGS gives */
#ifndef TBD_REPLAY_SIMULATE_STRINGS_H
#define TBD_REPLAY_SIMULATE_STRINGS_H

enum tbd_strings {
    TBD_STRINGS_INDEX,
    TBD_STRINGS_FLAGS,
    TBD_STRINGS_LOW, /* the mask's lower 64 bits */
    TBD_STRINGS_HIGH,
};

#endif
