// SPDX-License-Identifier: MIT
/* linux.h - numbers that Linux defines, from the kernel's own headers
 *
 * The one place for them: nothing in src repeats a number that one of these headers has
 * (scripts/check-linux).  They are the kernel's user interface: constants and plain structs,
 * nothing of libc, so the engine may use them.  Everything here can be included with libc's
 * headers; definitions that conflict with libc's are in linux_abi.h.
 *
 * The oldest headers that we build with are those of Linux 6.1.  Newer numbers follow below, with
 * the version that introduced them and the value that the kernel gave them. */
#ifndef TBD_BASE_LINUX_H
#define TBD_BASE_LINUX_H

#include <asm/errno.h>         /* E...: what a raw system call returns, negative */
#include <asm/hwcap2.h>        /* HWCAP2_...: what the processor lets programs do (AT_HWCAP2) */
#include <asm/prctl.h>         /* ARCH_...: arch_prctl: fs and gs base, shadow stack */
#include <asm/unistd.h>        /* __NR_...: system calls by number */
#include <linux/futex.h>       /* FUTEX_..., ROBUST_LIST_LIMIT, struct robust_list_head */
#include <linux/membarrier.h>  /* MEMBARRIER_CMD_... */
#include <linux/memfd.h>       /* MFD_... */
#include <linux/mman.h>        /* PROT_..., MAP_..., MADV_..., MREMAP_... */
#include <linux/prctl.h>       /* PR_... */
#include <linux/sched.h>       /* CLONE_..., CSIGNAL, struct clone_args */
#include <linux/seccomp.h>     /* SECCOMP_..., struct seccomp_data */
#include <linux/userfaultfd.h> /* _UFFDIO_..., UFFD_...: pages that the program fills itself */

/* System calls. */
#ifndef __NR_map_shadow_stack /* 6.6 */
#define __NR_map_shadow_stack 453
#endif
#ifndef __NR_mseal /* 6.10 */
#define __NR_mseal 462
#endif

/* madvise */
#ifndef MADV_GUARD_INSTALL /* 6.13 */
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

/* arch_prctl */
#ifndef ARCH_GET_UNTAG_MASK /* 6.4 */
#define ARCH_GET_UNTAG_MASK   0x4001
#define ARCH_GET_MAX_TAG_BITS 0x4003
#endif
#ifndef ARCH_SHSTK_STATUS /* 6.6 */
#define ARCH_SHSTK_STATUS 0x5005
#endif

/* prctl */
#ifndef PR_GET_AUXV /* 6.4 */
#define PR_GET_AUXV 0x41555856
#endif

/* userfaultfd */
#ifndef UFFD_FEATURE_WP_UNPOPULATED /* 6.4 */
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC /* 6.7 */
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef _UFFDIO_MOVE /* 6.8 */
#define _UFFDIO_MOVE 0x05
#endif

#endif
