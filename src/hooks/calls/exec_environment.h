// SPDX-License-Identifier: MIT
/* exec_environment.h - a program that is executed without libtbd.so in its environment
 *
 * After `env -i`, or when LD_PRELOAD was cleared or replaced, the new program gets additional
 * variables after its own, so that it is recorded; libtbd.so removes them again before the new
 * program runs.  Programs that cannot be recorded do not get the variables, as nobody would remove
 * them.  An empty LD_PRELOAD counts as the wish not to be recorded.
 *
 *     its own variables | TBD_HIDDEN=value | TBD_OPTIONS, TBD_DIR, LD_PRELOAD, ... | NULL
 *
 * `value` is empty, or the program's own LD_PRELOAD=...; then the LD_PRELOAD added names both
 * libraries. */
#ifndef TBD_HOOKS_EXEC_ENVIRONMENT_H
#define TBD_HOOKS_EXEC_ENVIRONMENT_H

#include "hooks/table/syscalls.h"

/* What a new program inherits from the start of this process. */
struct tbd_inherited {
    char *const *environment; /* as it was at boot */
    const char *dir;          /* where traces go; "" = the organizer's default */
    const char *lib_dir;      /* where libtbd.so is, ends with a slash */
    bool children;            /* record new programs */
};

/* Borrowed for ever.  Context: BOOT. */
void tbd_exec_environment_init(const struct tbd_inherited *inherited);
/* Gives execve or execveat another environment if that is needed and possible.  Context: APP. */
void tbd_exec_environment_extend(struct tbd_sys_call *sys);
/* In the new program: removes the added variables.  Context: BOOT. */
void tbd_exec_environment_hide(char **envp);

#endif
