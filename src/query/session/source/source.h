// SPDX-License-Identifier: MIT
/* source.h - source lines and frames of a position, as a programmer counts them
 *
 * A frame on the stack (stack.h) can hold several calls: functions that the compiler inlined have
 * no return address.  Here each call is a frame, and the innermost is number 0. */
#ifndef TBD_QUERY_SOURCE_H
#define TBD_QUERY_SOURCE_H

#include "query/debuginfo/dwarf_file.h"
#include "query/session/session.h"

/* The line of the instruction at `address`; false if it is not known. */
bool tbd_source_line_at(struct tbd_session *session, uint32_t window, uint64_t address,
                        struct tbd_source_line *out);

/* The same line of the same file, or both of none? */
bool tbd_source_same_line(const struct tbd_source_line *a, const struct tbd_source_line *b);

struct tbd_source_frame {
    size_t stack;     /* which frame on the stack */
    size_t function;  /* which of the functions around its address, from the innermost */
    bool is_inlined;  /* into the next frame */
    const char *name; /* name of an inlined function; NULL: use the symbol */
    struct tbd_source_line source; /* line 0: not known */
};

/* The calls in one frame on the stack, innermost first; at least one. */
size_t tbd_source_frames(struct tbd_session *session, uint32_t window, uint64_t address,
                         struct tbd_source_frame *out, size_t max);

/* All calls on the stack at a position, and which of them is selected. */
struct tbd_source_stack {
    struct tbd_position position;
    uint32_t window;
    struct tbd_frame *frames; /* owned; on the stack */
    size_t frame_count;
    struct tbd_source_frame *calls; /* owned; innermost first */
    size_t count;
    bool is_cut;     /* there are more: only the innermost ones are looked at */
    size_t selected; /* set by tbd_source_select(), until the next move; else 0 */
};
TBD_MUST_CHECK enum tbd_status tbd_source_stack(struct tbd_session *session,
                                                struct tbd_position position,
                                                struct tbd_source_stack *out);
void tbd_source_stack_free(struct tbd_source_stack *stack);
/* The frame that was selected at the position; 0: the innermost, or none was selected. */
size_t tbd_source_selected(struct tbd_session *session, struct tbd_position position);
/* Remembers `number` as the selected frame of the position, in the trace's folder or the session,
 * until tbd_session_move(). */
void tbd_source_select(struct tbd_session *session, struct tbd_position position, size_t number);

struct tbd_source_text {
    char *bytes;        /* owned */
    const char **lines; /* owned; NUL-terminated, from 1 */
    uint32_t line_count;
};
/* The text of a source file, from the path in the debug information.  False if it cannot be read.
 */
bool tbd_source_load(const char *path, struct tbd_source_text *out);
void tbd_source_unload(struct tbd_source_text *text);

#endif
