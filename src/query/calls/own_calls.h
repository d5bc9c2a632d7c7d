// SPDX-License-Identifier: MIT
/* own_calls.h - calls whose ends are returns in the function's own code, or where it jumps to
 *
 * Most functions are entered by calls and end by one of their own `ret` instructions, or by one of a function to
 * which they jump (search/search_tails.h, search/seen_jumps.h).  Then entries and returns say everything about the calls, nesting too,
 * and no stack of callers is needed: the search looks at a few blocks instead of at all calls and returns.  A
 * frame that was left is no longer there when a function that returns for it is called at its slot: so entries of
 * these are looked at, too; and of those that jump to it, for which it returns.  An entry by the jump of an import
 * stub is where this was called; one by another jump has its caller from a replay (search/search_operands.c).  Anything else (a jump that cannot be followed, calls inside one that jumped away,
 * a frame that was left or that lives on at the recording's end) is noticed, and nothing is concluded.  Slots of a
 * thread's open calls descend, and a return is at the innermost one's; else the list is odd. */
#ifndef TBD_QUERY_OWN_CALLS_H
#define TBD_QUERY_OWN_CALLS_H

#include "query/calls/call_list.h"

/* Does the question say which function, and nothing that hides some of its entries or needs more than they
 * hold? */
bool tbd_own_calls_fit(const struct tbd_command_run *run, const struct tbd_question *question);

/* An entry or a return, in any order of windows; false without memory. */
bool tbd_own_calls_add(struct tbd_call_list *list, const struct tbd_event *event);
/* For a search whose workers add what one window has to a list of its own (tbd_search.gather), which is added as a whole
 * then. */
bool tbd_own_calls_gather(void *context, struct tbd_session *session, void **batch,
                          const struct tbd_event *event, uint64_t count);
bool tbd_own_calls_merge(struct tbd_call_list *list, struct tbd_call_list *batch);
void tbd_own_calls_drop(void *batch);
/* By position; what came twice, because windows were searched twice, is there once. */
void tbd_own_calls_sort(struct tbd_call_list *list);
/* Takes away the returns in [from, to), which are going to be searched again.  An entry at `from` may be of the search of the window
 * before: those stay. */
void tbd_own_calls_forget_returns(struct tbd_call_list *list, uint64_t from, uint64_t to);

/* Finds the ends of list->all in list->returns, both in order.  Calls that end in no window that was searched so far are
 * TBD_FRAME_STAYS; is_closed: at `exit` at the latest.  Returns without an entry are odd. */
TBD_MUST_CHECK enum tbd_status tbd_own_calls_pair(struct tbd_call_list *list);

/* Have all calls ended? */
bool tbd_own_calls_are_whole(const struct tbd_call_list *list);

/* Leaves out those for which the question's condition does not hold. */
void tbd_own_calls_keep_wanted(struct tbd_call_list *list);

#endif
