// SPDX-License-Identifier: MIT
/* linux_abi.h - Linux definitions that conflict with libc's: signals, frames, files, waiting,
 * limits, ...
 *
 * For .c files that include no header of libc with the same names (<signal.h>, <fcntl.h>,
 * <sys/wait.h>, <time.h>, and whatever includes them): the engine, and the system-call table.  Only
 * private headers of the engine include it.  See linux.h. */
#ifndef TBD_BASE_LINUX_ABI_H
#define TBD_BASE_LINUX_ABI_H

#include "base/linux.h"

/* Signals: each of these needs what the one before declares. */
#include <linux/signal.h> /* SIG..., SA_..., SS_..., siginfo_t, SI_..., struct sigaction, stack_t */
#include <asm/sigcontext.h> /* struct sigcontext, struct _fpx_sw_bytes, FP_XSTATE_MAGIC... */
#include <asm/ucontext.h>   /* struct ucontext, UC_... */
#include <asm/socket.h>     /* SOL_SOCKET, SO_... */

#include <linux/capability.h> /* _LINUX_CAPABILITY_VERSION_... */
#include <linux/dqblk_xfs.h>  /* Q_X... */
#include <linux/fcntl.h>      /* O_..., F_..., AT_... */
#include <linux/fiemap.h>     /* struct fiemap, whose size is part of FS_IOC_FIEMAP */
#include <linux/filter.h>     /* BPF_..., struct sock_filter */
#include <linux/fs.h>         /* SEEK_..., FS_IOC_..., FIDEDUPERANGE */
#include <linux/ipc.h>        /* IPC_... */
#include <linux/keyctl.h>     /* KEYCTL_... */
#include <linux/poll.h>       /* struct pollfd, POLLIN */
#include <linux/msg.h>        /* MSG_STAT, MSG_INFO, ... */
#include <linux/ptrace.h>     /* PTRACE_... */
#include <linux/quota.h>      /* Q_... */
#include <linux/resource.h>   /* RLIMIT_..., PRIO_... */
#include <linux/rseq.h>       /* struct rseq, RSEQ_... */
#include <linux/sem.h>        /* GETALL, SEM_STAT, SEM_INFO, struct semid64_ds */
#include <linux/shm.h>        /* SHM_..., struct shmid64_ds; includes <unistd.h>: X_OK */
#include <linux/signalfd.h>   /* struct signalfd_siginfo */
#include <linux/sockios.h>    /* SIOC... */
#include <linux/time.h>       /* CLOCK_..., struct timespec */
#include <linux/uio.h>        /* struct iovec, UIO_MAXIOV */
#include <linux/un.h>         /* struct sockaddr_un */
#include <linux/wait.h>       /* W..., P_... */

/* fcntl and the *at calls */
#ifndef AT_HANDLE_MNT_ID_UNIQUE /* 6.12 */
#define AT_HANDLE_MNT_ID_UNIQUE 0x001
#endif
#ifndef F_GETDELEG /* 6.19 */
#define F_GETDELEG (F_LINUX_SPECIFIC_BASE + 15)
#endif

/* sockets: the kernel has these in headers of its own only */
#ifndef MSG_TRUNC
#define MSG_TRUNC 0x20
#endif
#ifndef AF_UNIX
#define AF_UNIX 1
#endif
#ifndef SOCK_SEQPACKET
#define SOCK_STREAM    1
#define SOCK_SEQPACKET 5
#define SOCK_CLOEXEC   02000000
#endif
#ifndef SCM_RIGHTS
#define SCM_RIGHTS 1
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0x4000
#endif
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0x40000000
#endif
#ifndef SOL_IP
#define SOL_IP 0
#endif
#ifndef SOL_IPV6
#define SOL_IPV6 41
#endif

/* files: not for those who include a header of libc, says <linux/stat.h> */
#ifndef S_IFMT
#define S_IFMT   00170000
#define S_IFSOCK 0140000
#define S_IFREG  0100000
#define S_IFIFO  0010000
#endif

/* prctl */
#ifndef PR_TIMER_CREATE_RESTORE_IDS /* 6.15 */
#define PR_TIMER_CREATE_RESTORE_IDS     77
#define PR_TIMER_CREATE_RESTORE_IDS_OFF 0
#define PR_TIMER_CREATE_RESTORE_IDS_ON  1
#endif
#ifndef PR_SYS_DISPATCH_INCLUSIVE_ON /* 6.17 */
#define PR_SYS_DISPATCH_INCLUSIVE_ON 2
#endif

/* the page map of a process */
#ifndef PAGEMAP_SCAN /* 6.7 */
#define PAGEMAP_SCAN          _IOWR('f', 16, struct pm_scan_arg)
#define PAGE_IS_WRITTEN       (1 << 1)
#define PAGE_IS_FILE          (1 << 2)
#define PAGE_IS_PRESENT       (1 << 3)
#define PAGE_IS_SWAPPED       (1 << 4)
#define PAGE_IS_PFNZERO       (1 << 5)
#define PM_SCAN_WP_MATCHING   (1 << 0)
#define PM_SCAN_CHECK_WPASYNC (1 << 1)
struct page_region {
    __u64 start;
    __u64 end;
    __u64 categories;
};
struct pm_scan_arg {
    __u64 size;
    __u64 flags;
    __u64 start;
    __u64 end;
    __u64 walk_end;
    __u64 vec;
    __u64 vec_len;
    __u64 max_pages;
    __u64 category_inverted;
    __u64 category_mask;
    __u64 category_anyof_mask;
    __u64 return_mask;
};
#endif

/* memory */
#ifndef MADV_POPULATE_READ /* 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* ptrace */
#ifndef PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG /* 6.4 */
#define PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG 0x4211
#endif

#endif
