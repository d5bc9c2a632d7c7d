// SPDX-License-Identifier: MIT
/* dap.h - one client of the Debug Adapter Protocol and the trace that it looks at; what the files of this folder share
 *
 * dap_server.c has the table of requests; the other files answer them: dap_launch.c opens a trace, dap_points.c
 * keeps breakpoints, dap_run.c finds where a run stops, dap_motion.c moves, dap_state.c shows threads and frames,
 * dap_variables.c values, dap_source.c files and lines, dap_memory.c bytes and instructions, dap_evaluate.c
 * takes expressions and commands, dap_more.c what the protocol has no word for.
 *
 * DAP-1  Each request gets one response; what it changes is told in events after that (dap_server.c checks it) */
#ifndef TBD_QUERY_DAP_H
#define TBD_QUERY_DAP_H

#include "query/dap/dap_link.h"
#include "query/search/nearest.h"
#include "query/session/source/source_place.h"
#include "query/values/parts.h"

#define TBD_DAP_POINTS_MAX 4096u

/* Which request has set a point, and so replaces it. */
enum tbd_dap_point_kind {
    TBD_DAP_SOURCE = 0,
    TBD_DAP_FUNCTION,
    TBD_DAP_INSTRUCTION,
    TBD_DAP_DATA,
    TBD_DAP_SIGNAL,
    TBD_DAP_POINT_KINDS
};

/* Which of its events a point is about, counted from the recording's start. */
enum tbd_dap_hit { TBD_DAP_EVERY = 0, TBD_DAP_EXACTLY, TBD_DAP_FROM, TBD_DAP_MULTIPLE };

struct tbd_dap_point {
    int id;
    enum tbd_dap_point_kind kind;
    char *question; /* owned: "TYPE where CONTEXT" */
    char *source;   /* owned: SOURCE: the client's path of the file */
    char *log;      /* owned: a message to print, instead of a stop; NULL: none */
    bool is_access; /* of watched memory, which changes after the instruction */
    enum tbd_dap_hit hit;
    uint64_t hit_count;
};

/* A frame that the client was told of, until the next motion. */
struct tbd_dap_frame {
    uint32_t thread;
    size_t number; /* in struct tbd_source_stack */
};

enum tbd_dap_handle_kind {
    TBD_DAP_LOCALS,
    TBD_DAP_ARGUMENTS,
    TBD_DAP_GLOBALS,
    TBD_DAP_REGISTERS,
    TBD_DAP_VECTORS,
    TBD_DAP_VALUE
};

/* What a variablesReference means, until the next motion. */
struct tbd_dap_handle {
    enum tbd_dap_handle_kind kind;
    struct tbd_dap_frame frame;
    struct tbd_data *data; /* owned; VALUE */
    char *expression;      /* owned; VALUE: what denotes it; NULL: nothing does */
};

struct tbd_dap {
    struct tbd_dap_link link;
    const char *trace; /* given on the command line; NULL: none */
    unsigned workers;
    struct tbd_session session;
    bool is_open;       /* `session` */
    bool is_configured; /* the first stop has been told */
    bool is_over;
    struct {
        bool lines_from_0, columns_from_0, takes_progress, takes_invalidated;
    } client;

    json_int_t request; /* seq */
    char command[64];
    bool has_replied; /* DAP-1 */

    uint32_t thread; /* that stopped */
    size_t
        hidden; /* innermost frames of it that have not begun yet: inlined copies at the position */
    struct tbd_dap_point *points; /* owned */
    size_t point_count, point_capacity;
    int last_point;
    struct tbd_dap_frame *frames; /* owned; frameId is 1 + the index */
    size_t frame_count, frame_capacity;
    struct tbd_dap_handle *handles; /* owned; variablesReference is 1 + the index */
    size_t handle_count, handle_capacity;
    char **sources; /* owned paths; sourceReference is 1 + the index */
    size_t source_count, source_capacity;
    struct tbd_position *targets; /* owned, of gotoTargets; the id is 1 + the index */
    size_t target_count, target_capacity;
    struct {
        bool is_shown;
        unsigned number;
    } progress;
};

/* ---- answers (dap_server.c) ---- */

/* Releases `body`; NULL: an empty one. */
void tbd_dap_reply(struct tbd_dap *dap, json_t *body);
void tbd_dap_refuse(struct tbd_dap *dap, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "tbdq: no such time: ..." for a failed question; INTERRUPTED: the request was cancelled. */
void tbd_dap_refuse_status(struct tbd_dap *dap, enum tbd_status status);
void tbd_dap_event(struct tbd_dap *dap, const char *event, json_t *body);
/* Text for the client's console; category "console", "stdout", "stderr", "important". */
void tbd_dap_print(struct tbd_dap *dap, const char *category, const char *text);
/* An argument; "", 0 and `otherwise` if it is missing or of another type.  Numbers are no further from 0 than clients have them, so that
 * a sum of some is one. */
#define TBD_DAP_NUMBER_MOST ((json_int_t)1 << 53)
const char *tbd_dap_text(const json_t *arguments, const char *name);
json_int_t tbd_dap_number(const json_t *arguments, const char *name, json_int_t otherwise);
/* "0x7ffe10"; false: it is no address. */
TBD_MUST_CHECK bool tbd_dap_address(const char *text, uint64_t *out);

/* ---- where it stands ---- */

/* The session is private, so the position is its own. */
static inline struct tbd_position tbd_dap_at(const struct tbd_dap *dap)
{
    return dap->session.unwritten.position;
}
/* `thread` 0: the one that has control there. */
static inline void tbd_dap_stand(struct tbd_dap *dap, struct tbd_position at, uint32_t thread)
{
    tbd_session_move(&dap->session, at, thread);
}
/* The session has moved.  What the client was told of the position before is forgotten. */
void tbd_dap_moved(struct tbd_dap *dap);
/* Answers are about this thread from now on; 0: the one that stopped. */
void tbd_dap_select(struct tbd_dap *dap, uint32_t thread);
/* Tells the client that it has moved; `description` may be NULL. */
void tbd_dap_stopped(struct tbd_dap *dap, const char *reason, const char *description,
                     const struct tbd_dap_point *point);
/* The frame of a frameId; 0: the innermost of the thread that stopped.  False after a refusal. */
TBD_MUST_CHECK bool tbd_dap_frame_of(struct tbd_dap *dap, json_int_t id, struct tbd_dap_frame *out);
/* Opens it; close with tbd_dap_close_place().  False after a refusal. */
TBD_MUST_CHECK bool tbd_dap_open_place(struct tbd_dap *dap, const struct tbd_dap_frame *frame,
                                       struct tbd_source_place *out);
void tbd_dap_close_place(struct tbd_dap *dap, struct tbd_source_place *place);

/* ---- points (dap_points.c), runs (dap_run.c) ---- */

void tbd_dap_forget_points(struct tbd_dap *dap);

struct tbd_dap_stop {
    const struct tbd_dap_point *point; /* NULL: none was reached */
    struct tbd_event event;
    struct tbd_position at;
};
/* The next stop from the position on, before `limit` (NULL: anywhere); messages of log points on the way are
 * printed. */
TBD_MUST_CHECK enum tbd_status tbd_dap_run(struct tbd_dap *dap, bool backward,
                                           const struct tbd_position *limit,
                                           struct tbd_dap_stop *out);
/* The position after the instruction at `at`. */
struct tbd_position tbd_dap_after(struct tbd_session *session, struct tbd_position at);

/* ---- values (dap_variables.c) ---- */

/* A Variable without its name, or what `evaluate` answers.  `expression` denotes the value; NULL: nothing does. */
json_t *tbd_dap_value(struct tbd_dap *dap, struct tbd_source_place *place,
                      const struct tbd_dap_frame *frame, const struct tbd_data *data,
                      const char *expression, bool is_hexadecimal);
void tbd_dap_forget_values(struct tbd_dap *dap);
/* The bytes that a variable of a container, or an expression, occupies.  False: after a refusal, or `why` says why
 * it has none. */
#define TBD_DAP_WHY_BYTES 256u
TBD_MUST_CHECK bool tbd_dap_bytes_of(struct tbd_dap *dap, const json_t *arguments,
                                     uint64_t *out_address, uint64_t *out_bytes,
                                     char why[TBD_DAP_WHY_BYTES]);

/* ---- sources (dap_source.c) ---- */

/* A Source for a path of the debug information. */
json_t *tbd_dap_source(struct tbd_dap *dap, const char *path);
/* "line where src=<FILE,LINE>" for the first line from `line` on that has code, in the caller's `out`; false: none
 * has. */
TBD_MUST_CHECK bool tbd_dap_line_question(struct tbd_dap *dap, const char *path, uint32_t line,
                                          uint32_t *out_line, char out[512]);

#endif
