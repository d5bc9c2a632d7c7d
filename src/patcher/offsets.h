// SPDX-License-Identifier: MIT
/* offsets.h - fields of struct tbd_thread relative to gs base, for assembly; checked in dispatch.c */
#ifndef TBD_PATCHER_OFFSETS_H
#define TBD_PATCHER_OFFSETS_H

#define TBD_GS_GPR          (-320)    /* regs.gpr[0] */
#define TBD_GS_RFLAGS       (-184)    /* regs.rflags */
#define TBD_GS_SECOND       (-786784) /* second[0] */
#define TBD_GS_SCRATCH      (-152)    /* scratch[0] */
#define TBD_GS_EXIT_KIND    (-104)
#define TBD_GS_EXIT_ARG     (-96)
#define TBD_GS_ENTRY_NEXT   (-88)
#define TBD_GS_OPERAND_NEXT (-80)
#define TBD_GS_ENGINE_STACK (-72)
#define TBD_GS_RESUME       (-48)
#define TBD_GS_SELF         (-40)
#define TBD_GS_AT_HOME      (-18)
#define TBD_GS_KICK         (-12)

#endif
