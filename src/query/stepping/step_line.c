// SPDX-License-Identifier: MIT
/* step_line.c - see step_line.h */
#include "query/stepping/step_line.h"

#include "query/session/source/source.h"
#include "query/text/demangle.h"

#include <string.h>

#define PROLOGUE_MOVES 256u

static const struct tbd_step_place *place_at(struct tbd_stepping *s)
{
    return tbd_step_place_at(s->places, s->walk.window, s->walk.pc);
}

/* Within this stretch of code the step does not end. */
static void pass_stretch(struct tbd_stepping *s, const struct tbd_step_place *place)
{
    s->from = place->pc - place->line.before;
    s->to = place->pc + place->line.after;
}

/* From here on this is the line that is left, and the copies from `outer` on are those that it is in. */
static void take_place(struct tbd_stepping *s, const struct tbd_step_place *place, unsigned outer)
{
    s->line = place->line;
    pass_stretch(s, place);
    s->own_count = 0;
    for (unsigned i = outer; i < place->count; i++)
        s->own[s->own_count++] = place->around[i].id;
    s->has_changed = false;
}

/* The next step of several starts here. */
static void begin(struct tbd_stepping *s, unsigned selected)
{
    const struct tbd_step_place *place = place_at(s);

    if (selected > (s->kind == TBD_STEP_OUT ? place->count : place->starting))
        selected = 0;
    s->selected = selected;
    s->start_pc = place->pc;
    s->start_frame = s->walk.frame.slot;
    take_place(s, place, selected);
    if (selected != 0)
        s->line = place->around[selected - 1].call;
    s->began_count = s->own_count;
    memcpy(s->began, s->own, sizeof(s->began));
    if (s->kind == TBD_STEP_OUT && s->own_count != 0) {
        s->line = (struct tbd_source_line){ .file = NULL };
        s->own_count--;
        memmove(s->own, s->own + 1, s->own_count * sizeof(*s->own));
    }
}

enum tbd_status tbd_stepping_start(struct tbd_stepping *s, struct tbd_command_run *run,
                                   struct tbd_position from, enum tbd_step_kind kind)
{
    enum tbd_status status;

    *s = (struct tbd_stepping){ .kind = kind };
    status = tbd_step_walk_start(&s->walk, run, from);
    if (status == TBD_OK)
        status = tbd_step_places_new(run->session, &s->places);
    if (status == TBD_OK)
        begin(s, (unsigned)tbd_source_selected(run->session, from));
    return status;
}

void tbd_stepping_end(struct tbd_stepping *s)
{
    tbd_step_walk_end(&s->walk);
    tbd_step_places_free(s->places);
}

/* Is a function one to step into? */
static bool has_lines(void *context, uint32_t window, uint64_t function)
{
    struct tbd_stepping *s = context;

    return tbd_step_place_at(s->places, window, function)->line.line != 0;
}

/* How many copies deeper than `own` the place is, seen from copy `from` on; UINT_MAX: it is elsewhere. */
static unsigned deeper(const struct tbd_stepping *s, const struct tbd_step_place *place,
                       unsigned from)
{
    unsigned visible = place->count - from;

    if (visible < s->own_count)
        return UINT32_MAX;
    for (unsigned i = 0; i < s->own_count; i++) {
        if (place->around[place->count - s->own_count + i].id != s->own[i])
            return UINT32_MAX;
    }
    return visible - s->own_count;
}

static bool is_among(uint64_t copy, const uint64_t *ids, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (ids[i] == copy)
            return true;
    }
    return false;
}

/* The copies that the step leaves, innermost first. */
static const uint64_t *left_copies(const struct tbd_stepping *s, unsigned *count)
{
    *count = s->kind == TBD_STEP_OUT ? s->began_count : s->own_count;
    return s->kind == TBD_STEP_OUT ? s->began : s->own;
}

/* How many copies are called here.  Optimization moves code of a copy before its start: from there the start is reached within the copy,
 * and that of the copies around it. */
static unsigned starting_at(const struct tbd_stepping *s, const struct tbd_step_place *place)
{
    unsigned starting = place->starting, count;
    const uint64_t *left = left_copies(s, &count);
    bool is_left = false;

    for (unsigned i = 0; i < starting; i++)
        is_left |= s->is_falling && is_among(place->around[i].id, left, count != 0);
    while (is_left && starting != 0 && is_among(place->around[starting - 1].id, left, count))
        starting--;
    return starting;
}

enum verdict { ELSEWHERE, STOPS, GOES_ON };

/* Inlined functions are called where their copies start, and have the frame of the function around them. */
static enum verdict judge_inlined(struct tbd_stepping *s, const struct tbd_step_place *place)
{
    unsigned starting = starting_at(s, place), depth = deeper(s, place, starting);
    const struct tbd_source_line *call = starting == 0 ? NULL : &place->around[starting - 1].call;

    if (depth == UINT32_MAX || (depth == 0 && starting == 0))
        return ELSEWHERE;
    if (depth != 0) {
        s->selected = starting;
        return s->kind == TBD_STEP_INTO ? STOPS : GOES_ON;
    }
    if (!tbd_source_same_line(call, &s->line)) {
        s->selected = starting;
        return STOPS;
    }
    s->selected = starting - 1;
    return s->kind == TBD_STEP_INTO ? STOPS : GOES_ON;
}

/* Code of another line that was moved into a statement: the statement goes on after it.  A jump into the middle of such code leaves the
 * statement. */
static bool is_aside(const struct tbd_stepping *s, const struct tbd_step_place *place)
{
    return !s->has_changed && place->line.is_aside && place->line.starts &&
           deeper(s, place, starting_at(s, place)) == 0 &&
           !tbd_source_same_line(&place->line, &s->line);
}

/* ---- forward ---- */

/* In another frame, or copy, that goes on with code of another line moved there, the next statement is the end, whatever its line. */
static void take_forward(struct tbd_stepping *s, const struct tbd_step_place *place)
{
    bool is_other = s->has_changed || deeper(s, place, starting_at(s, place)) != 0,
         is_same_line = tbd_source_same_line(&place->line, &s->line);

    take_place(s, place, starting_at(s, place));
    if (is_other && !is_same_line && place->line.is_aside && place->line.starts)
        s->line = (struct tbd_source_line){ .file = NULL };
}

static bool is_before_start(const struct tbd_stepping *s, const struct tbd_step_place *place)
{
    struct tbd_symbol here, start;

    return s->kind == TBD_STEP_UNTIL && place->pc <= s->start_pc &&
           s->walk.frame.slot == s->start_frame &&
           tbd_step_function(&s->walk, s->walk.window, place->pc, &here) &&
           tbd_step_function(&s->walk, s->walk.window, s->start_pc, &start) &&
           here.start == start.start;
}

static bool ends_forward(struct tbd_stepping *s, enum tbd_step_move move)
{
    const struct tbd_step_place *place = place_at(s);
    enum verdict verdict = ELSEWHERE;

    s->has_changed |= move != TBD_STEP_ON;
    if (place->line.line == 0 || (!s->has_changed && place->pc >= s->from && place->pc < s->to))
        return false;
    if (move == TBD_STEP_LEFT) {
        s->selected = starting_at(s, place);
        return true;
    }
    if (is_before_start(s, place))
        return false;
    if (!s->has_changed)
        verdict = judge_inlined(s, place);
    if (verdict != ELSEWHERE)
        return verdict == STOPS;
    if (place->line.begins && !tbd_source_same_line(&place->line, &s->line)) {
        s->selected = starting_at(s, place);
        return true;
    }
    if (is_aside(s, place))
        pass_stretch(s, place);
    else
        take_forward(s, place);
    return false;
}

/* A virtual function may be called by way of a thunk. */
static enum tbd_step_move through_thunk(struct tbd_stepping *s)
{
    struct tbd_symbol here;
    enum tbd_step_move move = TBD_STEP_ON;

    for (unsigned i = 0; i < PROLOGUE_MOVES && move == TBD_STEP_ON; i++) {
        if (!tbd_step_function(&s->walk, s->walk.window, s->walk.pc, &here) || here.name == NULL ||
            !tbd_is_thunk(here.name))
            break;
        move = tbd_step_forward(&s->walk, NULL, NULL);
    }
    return move;
}

/* From a function's first instruction to where its frame is set up. */
static enum tbd_step_move to_body(struct tbd_stepping *s)
{
    struct tbd_session *session = s->walk.run->session;
    struct tbd_position entered = s->walk.at;
    struct tbd_frame_call frame = s->walk.frame;
    enum tbd_step_move through = through_thunk(s);
    struct tbd_source_line first;
    uint64_t body;

    if (through == TBD_STEP_RETURNED) /* the function's code is in the thunk */
        through = tbd_step_stand(&s->walk, entered, &frame) ? TBD_STEP_ON : TBD_STEP_FAILED;
    if (through != TBD_STEP_ON)
        return through;
    body = tbd_step_after_prologue(session, s->walk.window, s->walk.pc);
    first = place_at(s)->line;
    for (unsigned i = 0; i < PROLOGUE_MOVES && s->walk.pc != body; i++) {
        enum tbd_step_move move = tbd_step_forward(&s->walk, NULL, NULL);
        const struct tbd_step_place *place = place_at(s);

        if (move == TBD_STEP_FAILED || move == TBD_STEP_ENDS)
            return move;
        if (move != TBD_STEP_ON ||
            (place->line.begins && !tbd_source_same_line(&place->line, &first)))
            break;
    }
    s->selected = place_at(s)->starting;
    return TBD_STEP_ON;
}

/* Is the code in the innermost copy that the step leaves? */
static bool is_in_left(struct tbd_stepping *s, uint64_t pc)
{
    const struct tbd_step_place *place = tbd_step_place_at(s->places, s->walk.window, pc);
    unsigned count;
    const uint64_t *left = left_copies(s, &count);
    bool is_in = false;

    for (unsigned i = 0; count != 0 && i < place->count; i++)
        is_in |= place->around[i].id == left[0];
    return is_in;
}

/* Has a jump led from `pc` to the start of another function, as from a thunk?  Nothing there is called by the line that is left. */
static bool is_other_function(struct tbd_stepping *s, uint64_t pc)
{
    struct tbd_symbol before, here;

    return tbd_step_is_entry(&s->walk) &&
           tbd_step_function(&s->walk, s->walk.window, s->walk.pc, &here) &&
           tbd_step_function(&s->walk, s->walk.window, pc, &before) && here.start != before.start;
}

static enum tbd_step_move move_forward(struct tbd_stepping *s)
{
    uint64_t pc = s->walk.pc;
    bool was_in_left = is_in_left(s, pc);
    enum tbd_step_move move =
        tbd_step_forward(&s->walk, s->kind == TBD_STEP_INTO ? has_lines : NULL, s);

    s->is_falling = was_in_left && move == TBD_STEP_ON && s->walk.pc > pc &&
                    (s->kind == TBD_STEP_OUT || is_in_left(s, s->walk.pc - 1));
    s->has_changed |= move == TBD_STEP_ON && is_other_function(s, pc);
    return move;
}

enum tbd_step_move tbd_stepping_forward(struct tbd_stepping *s)
{
    enum tbd_step_move move;

    begin(s, s->selected);
    if (s->kind == TBD_STEP_INTO && s->selected != 0) {
        s->selected--;
        return TBD_STEP_ON;
    }
    s->selected = 0;
    do {
        move = move_forward(s);
        if (move == TBD_STEP_FAILED || move == TBD_STEP_ENDS)
            return move;
        if (move == TBD_STEP_ENTERED)
            return to_body(s);
    } while (!ends_forward(s, move));
    return TBD_STEP_ON;
}

/* ---- backward ---- */

/* The earliest start of a statement of the line that was passed. */
struct candidate {
    bool is_there;
    struct tbd_position at;
    struct tbd_frame_call frame;
    unsigned selected;
};

static struct candidate candidate_here(const struct tbd_stepping *s, unsigned selected)
{
    return (struct candidate){ true, s->walk.at, s->walk.frame, selected };
}

/* Does the place belong to the line that is passed?  Else that line ends here. */
static bool is_in_line(const struct tbd_stepping *s, const struct tbd_step_place *place,
                       enum tbd_step_move move)
{
    return move == TBD_STEP_ON && place->line.line != 0 &&
           tbd_source_same_line(&place->line, &s->line) && deeper(s, place, place->starting) == 0;
}

static void note_start(struct tbd_stepping *s, const struct tbd_step_place *place,
                       struct candidate *best)
{
    if (place->line.starts)
        *best = candidate_here(s, place->starting);
}

/* Goes on to the next place; true: the step ends, at `best` or here. */
static bool ends_backward(struct tbd_stepping *s, enum tbd_step_move move, struct candidate *best)
{
    const struct tbd_step_place *place = place_at(s);
    enum verdict verdict = ELSEWHERE;

    if (is_in_line(s, place, move)) {
        if (!tbd_step_is_entry(&s->walk)) /* the first line leads to the call */
            note_start(s, place, best);
        return false;
    }
    if (best->is_there)
        return true;
    s->has_changed |= move != TBD_STEP_ON;
    if (place->line.line == 0)
        return false;
    if (!s->has_changed)
        verdict = judge_inlined(s, place);
    if (verdict == STOPS && place->starting != 0) {
        *best = candidate_here(s, s->selected);
        return true;
    }
    if (verdict == GOES_ON || is_aside(s, place))
        return false;
    take_place(s, place, place->starting);
    note_start(s, place, best);
    return false;
}

enum tbd_step_move tbd_stepping_backward(struct tbd_stepping *s)
{
    struct candidate best = { .is_there = false };
    enum tbd_step_move move;

    begin(s, s->selected);
    s->selected = 0;
    do {
        move = tbd_step_backward(&s->walk, s->kind == TBD_STEP_INTO ? has_lines : NULL, s);
        if (move == TBD_STEP_FAILED || (move == TBD_STEP_ENDS && !best.is_there))
            return move;
    } while (move != TBD_STEP_ENDS && !ends_backward(s, move, &best));
    s->selected = best.selected;
    return tbd_step_stand(&s->walk, best.at, &best.frame) ? TBD_STEP_ON : TBD_STEP_FAILED;
}
