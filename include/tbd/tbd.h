// SPDX-License-Identifier: MIT
/* tbd.h - functions that a program can call when it is traced
 *
 * Nothing here is needed to trace a program.  A program that wants to leave marks in its trace
 * includes this header, links nothing, and calls tbd_mark() if it exists:
 *
 *     if (tbd_mark)
 *         tbd_mark("phase 2");
 *
 * The functions are in libtbd.so, which is loaded only when the program is traced.  They are weak
 * here, so without it their addresses are NULL.  All may be called from any thread and any signal
 * handler; they never fail.  Since 0.1. */
#ifndef TBD_TBD_H
#define TBD_TBD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TBD_API __attribute__((visibility("default"), weak))

/* Leaves a mark: an entry of the function `tbd_mark` with `text` as its first argument, which
 * `goto ... func_enter ... where func == tbd_mark` finds.  `text` may be NULL. */
TBD_API void tbd_mark(const char *text);

/* The value of the stack of calls that the thread is in, the call of this function included
 * (TBD_OPTIONS=mode=context); 0 in all other modes.  Equal stacks have equal values in every run and
 * on every machine with the same files; `tbdq context VALUE --program FILE` lists the stacks that a
 * value stands for. */
TBD_API uint64_t tbd_context(void);
/* Also where libtbd.so is not loaded: 0. */
#define tbd_context() (tbd_context ? tbd_context() : 0)

/* The value of the branches that the calling function has taken since it was called, if it is one of the
 * functions of the option `branches` (mode=context, `tbd record --branches=NAME`); else 0, and in all other
 * modes.  It must be called by the function itself.  `tbdq context VALUE --branches NAME --program FILE` lists
 * the branches. */
TBD_API uint64_t tbd_branch_context(void);
#ifdef __GNUC__ /* never a jump in place of a call */
#define tbd_branch_context()                                                                       \
    (__extension__({                                                                               \
        uint64_t tbd_value_ = tbd_branch_context ? tbd_branch_context() : 0;                       \
        __asm__ volatile("" : "+r"(tbd_value_));                                                   \
        tbd_value_;                                                                                \
    }))
#else
#define tbd_branch_context() (tbd_branch_context ? tbd_branch_context() : 0)
#endif

/* Version of the tracer, "1.0.0".  Static text. */
TBD_API const char *tbd_version(void);

#ifdef __cplusplus
}
#endif

#endif
