// SPDX-License-Identifier: MIT
/* exec_environment.h - a program that is executed without libtbd.so in its environment
 *
 * `env -i`, a cleared or replaced LD_PRELOAD: the new program gets, behind its own variables,
 * those that it needs to be recorded; before it runs, libtbd.so in it takes them away again.  Not
 * for programs that cannot be recorded: they would keep them.  An empty LD_PRELOAD is taken as
 * the wish not to be.
 *
 *     its own variables | TBD_HIDDEN=value | TBD_OPTIONS, TBD_DIR, LD_PRELOAD, ... | NULL
 *
 * `value` is empty, or its own LD_PRELOAD=..., in whose place there is one with both. */
#ifndef TBD_HOOKS_EXEC_ENVIRONMENT_H
#define TBD_HOOKS_EXEC_ENVIRONMENT_H

#include "hooks/table/syscalls.h"

/* What new programs get of this process' beginning. */
struct tbd_inherited {
    char *const *environment; /* as it was at boot */
    const char *dir;          /* where traces go; "" = the organizer's default */
    const char *lib_dir;      /* where libtbd.so is, ends with a slash */
    bool children;            /* they are to be recorded */
};

/* Borrowed for ever.  Context: BOOT. */
void tbd_exec_environment_init(const struct tbd_inherited *inherited);
/* Gives execve, execveat another environment if that is needed and possible.  Context: APP. */
void tbd_exec_environment_extend(struct tbd_sys_call *sys);
/* In the new program.  Context: BOOT. */
void tbd_exec_environment_hide(char **envp);

#endif
