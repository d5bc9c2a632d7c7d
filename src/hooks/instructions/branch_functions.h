// SPDX-License-Identifier: MIT
/* branch_functions.h - the functions whose branches count (option `branches`), and where their branches are
 *
 *     branches=FILE:START-END;...      FILE: last part of its path; offsets in it, hexadecimal
 *
 * The branches of a function are found in its code when its first block is translated: it is decoded from its start
 * to its end, as query/contexts/function_branches.c does with the file.  A function is refused, with one line, if it has more
 * branches than a value has bits.
 *
 * Contexts: BOOT; the others APP, with the engine lock; for code that has been translated before, also SIG. */
#ifndef TBD_HOOKS_BRANCH_FUNCTIONS_H
#define TBD_HOOKS_BRANCH_FUNCTIONS_H

#include "patcher/patcher.h"

/* False: the text is none, or names too many. */
bool tbd_branch_functions_init(const char *text, enum tbd_branch_scheme scheme);
/* For struct tbd_patcher_callbacks. */
struct tbd_branches_at tbd_branch_functions_at(uint64_t pc);
/* The process ends: a line for each function whose file was not there, or was not used. */
void tbd_branch_functions_say_missing(void);

#endif
