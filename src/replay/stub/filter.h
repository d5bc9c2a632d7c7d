// SPDX-License-Identifier: MIT
/* filter.h - which system calls a replay process may make, and with which arguments */
#ifndef TBD_REPLAY_FILTER_H
#define TBD_REPLAY_FILTER_H

#include <linux/filter.h>
#include <stddef.h>

#define TBD_FILTER_CAPACITY 160u
/* Writes the BPF program and returns its number of instructions. */
size_t tbd_filter_make(struct sock_filter out[TBD_FILTER_CAPACITY]);

#endif
