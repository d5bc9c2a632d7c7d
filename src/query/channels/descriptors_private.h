// SPDX-License-Identifier: MIT
/* descriptors_private.h - a log being read: descriptors.c reads it, descriptor_calls.c knows what calls do */
#ifndef TBD_QUERY_DESCRIPTORS_PRIVATE_H
#define TBD_QUERY_DESCRIPTORS_PRIVATE_H

#include "format/window/window.h"
#include "query/channels/descriptors.h"

#define TBD_FD_MAX (1u << 20)

/* The log of one process being read. */
struct tbd_log_reading {
    struct tbd_descriptors *all;
    struct tbd_fd_process *process;
    uint32_t index; /* of the process */
    struct tbd_trace *trace;
    const struct tbd_window *window;
    size_t message;
    size_t opened; /* the next item of the window's list */
    uint64_t order, time;
    uint32_t thread;
    struct {
        uint32_t thread;
        uint64_t order;
    } * left; /* owned: when threads lost control */
    size_t left_count, left_capacity;
    bool is_resumed; /* the next call's thread waited in it since ... */
    uint64_t began, began_order;
    uint64_t number; /* of the call that is being read */
    bool failed;     /* no memory */
};

struct tbd_fd_call {
    uint64_t number, args[6];
    int64_t result;
    const uint8_t *payload;
    uint32_t bytes;
    const struct tbd_opened *opened; /* what its descriptor leads to; NULL: not known */
};

/* 0 without memory, which is noted. */
uint32_t tbd_fd_add_end(struct tbd_log_reading *in, struct tbd_fd_end end);
void tbd_fd_bind(struct tbd_log_reading *in, struct tbd_fd_process *process, uint64_t fd,
                 struct tbd_fd_binding binding);
/* From the message on that is being read. */
void tbd_fd_bind_new(struct tbd_log_reading *in, uint64_t fd, uint32_t end, bool closes_on_exec);
/* Adds "127.0.0.1:40000 -> 127.0.0.1:80"; 0: it has no addresses. */
uint32_t tbd_fd_socket_name(struct tbd_log_reading *in, const struct tbd_opened *opened);

/* The process was started with this descriptor.  What a recorded parent says of it counts more. */
void tbd_fd_take_inherited(struct tbd_log_reading *in, const struct tbd_opened *opened);

/* Does the call matter, with such a result? */
bool tbd_fd_call_matters(uint64_t number, int64_t result);
/* One that matters. */
void tbd_fd_call_take(struct tbd_log_reading *in, const struct tbd_fd_call *call);

#endif
