// SPDX-License-Identifier: MIT
/* processors.h - how many processors a process may use
 *
 * What the hardware has is not what counts: a container or a batch system gives a process some of the
 * processors (sched_setaffinity(2)), or some of their time (cpu.max, in the kernel's
 * Documentation/admin-guide/cgroup-v2.rst).  A limit of any control group on the way to the root
 * holds.  Control groups of version 1 are not looked at.
 *
 * For ordinary processes; any thread. */
#ifndef TBD_BASE_PROCESSORS_H
#define TBD_BASE_PROCESSORS_H

/* At least 1: for the number of workers.  The environment variable TBD_PROCESSORS says otherwise.
 * Reads files of /proc and /sys at each call. */
unsigned tbd_processors(void);

#endif
