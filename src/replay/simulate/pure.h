// SPDX-License-Identifier: MIT
/* pure.h - the functions of functions.def and lanes.def by number */
#ifndef TBD_REPLAY_SIMULATE_PURE_H
#define TBD_REPLAY_SIMULATE_PURE_H

enum tbd_pure {
#define X(name, expression) TBD_PURE_##name,
#include "replay/simulate/functions.def"
#undef X
};

enum tbd_lane {
#define X(name, expression) TBD_LANE_##name,
#include "replay/simulate/lanes.def"
#undef X
};

#endif
