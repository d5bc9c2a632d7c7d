// SPDX-License-Identifier: MIT
#include "base/status.h"

/* One char array per message plus its offset, so that no relocation is needed. */
struct texts {
#define X(name, number, message) char name[sizeof(message)];
#include "base/status.def"
#undef X
};

static const struct texts texts = {
#define X(name, number, message) .name = message,
#include "base/status.def"
#undef X
};

const char *tbd_status_text(enum tbd_status status)
{
    switch (status) {
#define X(name, number, message)                                                                   \
    case TBD_##name:                                                                               \
        return texts.name;
#include "base/status.def"
#undef X
    }
    return "unknown status";
}
