// SPDX-License-Identifier: MIT
/* remote_private.h - what the files that answer packets share
 *
 * An answer gets what follows the packet's first word, and writes its reply into server->reply; what it does not write is the
 * empty reply, by which the protocol says that a packet is not understood. */
#ifndef TBD_QUERY_REMOTE_PRIVATE_H
#define TBD_QUERY_REMOTE_PRIVATE_H

#include "query/remote/remote_copy.h"
#include "query/remote/remote_motion.h"

#define TBD_REMOTE_FILES 64

#define TBD_REMOTE_POOLS 64u

/* Memory that a client has asked for, for code and values of its own: every copy has it. */
struct tbd_remote_pool {
    uint64_t address;
    size_t bytes;
    uint8_t *data; /* owned */
};

/* Calls of the program's functions (remote_call.c). */
struct tbd_remote_calls {
    struct tbd_copy_owner owner;
    struct tbd_copy *copy;        /* owned; NULL: none */
    struct tbd_reg_state *before; /* owned: the recorded registers, while there is a copy */
    bool is_announced;            /* what the client does before a call, it has done */
    bool is_active;               /* registers and memory are the copy's; else it rests */
    bool has_run;
    bool gets_signal; /* the client wants it to go on with a signal */
    uint64_t result;  /* what the last function returned, if it did */
    bool is_prepared; /* rests, with an argument of the next call in its memory */
};

struct tbd_remote_server {
    struct tbd_session *session;
    struct tbd_remote_link link;
    struct tbd_remote_motion motion;
    struct tbd_remote_calls calls;
    struct tbd_remote_pool pools[TBD_REMOTE_POOLS]; /* of them the first pool_count */
    size_t pool_count;
    uint64_t pool_bytes;         /* that were ever asked for */
    struct tbd_remote_stop stop; /* the last one */
    uint32_t registers_of;       /* thread of `g` and `p`; 0: the one that stopped */
    uint32_t moves;              /* thread of `s`; 0: the one that stopped */
    int files[TBD_REMOTE_FILES]; /* of vFile; -1: free */
    char packet[TBD_PACKET_BYTES + 1];
    size_t packet_bytes;
    struct tbd_reply reply;
    bool has_arrived; /* the client learns with its next step or run that the position is another */
    bool goes_quiet;  /* from the next packet on nothing is acknowledged */
    bool is_over, has_no_reply;
};

static inline void tbd_remote_refuse(struct tbd_remote_server *server)
{
    tbd_reply_text(&server->reply, "E01");
}

static inline void tbd_remote_agree(struct tbd_remote_server *server)
{
    tbd_reply_text(&server->reply, "OK");
}

/* ---- remote_run.c ---- */

void tbd_answer_tell_why(struct tbd_remote_server *server, const char *text);
void tbd_answer_step_forward(struct tbd_remote_server *server, const char *text);
void tbd_answer_run_forward(struct tbd_remote_server *server, const char *text);
void tbd_answer_step_backward(struct tbd_remote_server *server, const char *text);
void tbd_answer_run_backward(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_actions(struct tbd_remote_server *server, const char *text);
void tbd_answer_resume(struct tbd_remote_server *server, const char *text);
void tbd_answer_add_point(struct tbd_remote_server *server, const char *text);
void tbd_answer_remove_point(struct tbd_remote_server *server, const char *text);
void tbd_answer_take_passed(struct tbd_remote_server *server, const char *text);
void tbd_answer_catch_calls(struct tbd_remote_server *server, const char *text);

/* A thread of the packet, "TID", "pPID.TID" or "pPID": -1 and 0 are all and any of them. */
TBD_MUST_CHECK bool tbd_remote_read_thread(const char **io, uint32_t *out);
void tbd_remote_tell_thread(struct tbd_remote_server *server, uint32_t thread);
/* A line on the client's console, while it waits for a stop. */
void tbd_remote_console(struct tbd_remote_server *server, const char *text);

/* ---- remote_state.c ---- */

void tbd_answer_tell_registers(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_register(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_memory(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_region(struct tbd_remote_server *server, const char *text);
/* Registers of the thread that the client means. */
TBD_MUST_CHECK bool tbd_remote_read_state(struct tbd_remote_server *server,
                                          struct tbd_reg_state *out);
void tbd_answer_select_thread(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_if_alive(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_object(struct tbd_remote_server *server, const char *text);
void tbd_answer_list_threads(struct tbd_remote_server *server, const char *text);
void tbd_answer_list_no_more(struct tbd_remote_server *server, const char *text);
void tbd_answer_tell_current(struct tbd_remote_server *server, const char *text);

/* ---- remote_call.c ---- */

void tbd_answer_write_registers(struct tbd_remote_server *server, const char *text);
void tbd_answer_write_register(struct tbd_remote_server *server, const char *text);
void tbd_answer_write_memory(struct tbd_remote_server *server, const char *text);
void tbd_answer_write_binary(struct tbd_remote_server *server, const char *text);
void tbd_answer_save_registers(struct tbd_remote_server *server, const char *text);
void tbd_answer_restore_registers(struct tbd_remote_server *server, const char *text);
/* A call is on its way: it goes on, or one instruction, up to *out.  False: there is none, and if there was, it has been given up. */
TBD_MUST_CHECK bool tbd_remote_call_goes_on(struct tbd_remote_server *server, bool steps,
                                            struct tbd_remote_stop *out);
void tbd_remote_call_end(struct tbd_remote_server *server);

/* ---- remote_pools.c ---- */

void tbd_answer_allocate(struct tbd_remote_server *server, const char *text);
void tbd_answer_release(struct tbd_remote_server *server, const char *text);
/* The bytes there, borrowed until pools change; NULL: they are not in a pool. */
uint8_t *tbd_remote_in_pool(struct tbd_remote_server *server, uint64_t address, size_t bytes);
/* Into a new copy, and back when it has run. */
TBD_MUST_CHECK bool tbd_remote_pools_give(struct tbd_remote_server *server, struct tbd_copy *copy);
void tbd_remote_pools_take(struct tbd_remote_server *server, struct tbd_copy *copy);
void tbd_remote_pools_free(struct tbd_remote_server *server);

/* ---- remote_files.c ---- */

void tbd_answer_open_file(struct tbd_remote_server *server, const char *text);
void tbd_answer_close_file(struct tbd_remote_server *server, const char *text);
void tbd_answer_read_file(struct tbd_remote_server *server, const char *text);
void tbd_answer_stat_file(struct tbd_remote_server *server, const char *text);
void tbd_answer_set_file_system(struct tbd_remote_server *server, const char *text);
void tbd_answer_read_link(struct tbd_remote_server *server, const char *text);

#endif
