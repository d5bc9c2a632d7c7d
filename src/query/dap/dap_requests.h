// SPDX-License-Identifier: MIT
/* dap_requests.h - what answers the requests of the Debug Adapter Protocol; the table is in dap_server.c */
#ifndef TBD_QUERY_DAP_REQUESTS_H
#define TBD_QUERY_DAP_REQUESTS_H

#include "query/dap/dap.h"

/* Each answers with tbd_dap_reply() or a refusal; an answer without a body may be left out. */

/* dap_launch.c */
void tbd_dap_launch(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_configuration_done(struct tbd_dap *dap, const json_t *arguments);

/* dap_points.c */
void tbd_dap_set_breakpoints(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_set_function_breakpoints(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_set_instruction_breakpoints(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_set_data_breakpoints(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_data_breakpoint_info(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_set_exception_breakpoints(struct tbd_dap *dap, const json_t *arguments);

/* dap_motion.c */
void tbd_dap_continue(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_reverse_continue(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_next(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_step_in(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_step_out(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_step_back(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_step_back_in(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_step_back_out(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_goto(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_pause(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_restart(struct tbd_dap *dap, const json_t *arguments);

/* dap_state.c */
void tbd_dap_threads(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_stack_trace(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_scopes(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_exception_info(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_modules(struct tbd_dap *dap, const json_t *arguments);

/* dap_variables.c */
void tbd_dap_variables(struct tbd_dap *dap, const json_t *arguments);

/* dap_evaluate.c */
void tbd_dap_evaluate(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_completions(struct tbd_dap *dap, const json_t *arguments);

/* dap_source.c */
void tbd_dap_source_text(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_loaded_sources(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_breakpoint_locations(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_goto_targets(struct tbd_dap *dap, const json_t *arguments);

/* dap_memory.c */
void tbd_dap_read_memory(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_disassemble(struct tbd_dap *dap, const json_t *arguments);

/* dap_more.c */
void tbd_dap_ask(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_position(struct tbd_dap *dap, const json_t *arguments);
void tbd_dap_last_write(struct tbd_dap *dap, const json_t *arguments);

#endif
