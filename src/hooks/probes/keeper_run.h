// SPDX-License-Identifier: MIT
/* keeper_run.h - the keeper runs a program for its consumer
 *
 * Where Yama lets only a process' ancestors and whom it names attach to it, an armed program has named its keeper.  This holds for the keeper's
 * children, too: so the consumer's own program, run by the keeper, may take the program over (query/probe/deputy.h).
 * Context: keeper. */
#ifndef TBD_HOOKS_KEEPER_RUN_H
#define TBD_HOOKS_KEEPER_RUN_H

#include "base/linux_abi.h"
#include "format/probe/probe.h"

/* The descriptors that came with a packet, closed when a program is executed. */
struct tbd_keeper_fds {
    int all[TBD_PROBE_RUN_FDS];
    uint32_t count;
};

/* struct msghdr as the kernel has it: no header of its own says so. */
struct tbd_keeper_message {
    uint64_t name;
    uint32_t name_bytes, padding;
    const struct iovec *parts;
    uint64_t part_count, control, control_bytes;
    uint32_t flags, padding2;
};

/* The next packet; its bytes, 0: the connection is closed, or -errno. */
long tbd_keeper_receive(int connection, void *packet, uint64_t bytes, struct tbd_keeper_fds *out);
void tbd_keeper_close_fds(struct tbd_keeper_fds *fds);

/* Returns when the program has been executed. */
enum tbd_probe_refusal tbd_keeper_run_program(const void *packet, uint64_t bytes,
                                              const struct tbd_keeper_fds *fds);
/* Those that have ended. */
void tbd_keeper_reap(void);

#endif
