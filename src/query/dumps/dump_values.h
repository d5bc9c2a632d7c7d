// SPDX-License-Identifier: MIT
/* dump_values.h - regs, mem, print, locals and x at a position before a dump's end: what is known there (query/past) */
#ifndef TBD_QUERY_DUMP_VALUES_H
#define TBD_QUERY_DUMP_VALUES_H

#include "query/commands/commands.h"

enum tbd_exit tbd_dump_run_regs(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_mem(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_print(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_locals(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_examine(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_list(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_frame(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_up(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_down(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_ptype(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_symbol(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_line(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_printf(struct tbd_command_run *run);
enum tbd_exit tbd_dump_run_assert(struct tbd_command_run *run);
/* dump_history.c */
enum tbd_exit tbd_dump_run_history(struct tbd_command_run *run);

#endif
