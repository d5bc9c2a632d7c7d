// SPDX-License-Identifier: MIT
/* offsets.h - fields of struct tbd_thread relative to gs base, for assembly; checked in dispatch.c */
#ifndef TBD_PATCHER_OFFSETS_H
#define TBD_PATCHER_OFFSETS_H

#define TBD_GS_GPR          (-304)    /* regs.gpr[0] */
#define TBD_GS_RFLAGS       (-168)    /* regs.rflags */
#define TBD_GS_SECOND       (-786736) /* second[0] */
#define TBD_GS_SCRATCH      (-136)    /* scratch[0] */
#define TBD_GS_EXIT_KIND    (-72)
#define TBD_GS_EXIT_ARG     (-64)
#define TBD_GS_ENTRY_NEXT   (-56)
#define TBD_GS_OPERAND_NEXT (-48)
#define TBD_GS_ENGINE_STACK (-40)
#define TBD_GS_RESUME       (-32)
#define TBD_GS_SELF         (-24)

#endif
