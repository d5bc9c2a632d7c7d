// SPDX-License-Identifier: MIT
/* dwarf_parameter.h - parameters at a function's first instruction
 *
 * The debug information of unoptimized code says that a parameter is in the frame, but the code
 * stores it there only a few instructions later. At the first instruction the parameter still is
 * where the calling convention passes it (System V ABI, 3.2.3): the register follows from the
 * parameters before it.  Any thread. */
#ifndef TBD_QUERY_DWARF_PARAMETER_H
#define TBD_QUERY_DWARF_PARAMETER_H

#include "query/debuginfo/dwarf_location.h"

/* Is `place` the first instruction of `function`, an entry of its scopes? */
bool tbd_parameter_is_entry(const struct tbd_place_of *place, const Dwarf_Die *function);
/* Which of rdi, rsi, rdx, rcx, r8, r9 holds a parameter of `function`; -1: none, or unknown. */
int tbd_parameter_register(const Dwarf_Die *function, const Dwarf_Die *parameter);
/* Does the register hold the parameter's address?  So it is for an object of C++ with a copy
 * constructor or destructor. */
bool tbd_parameter_is_address(const struct tbd_type *type);
/* The register's number: TBD_RDI, ... */
unsigned tbd_parameter_gpr(int number);
/* The same for xmm0 to xmm7. */
int tbd_parameter_vector(const Dwarf_Die *function, const Dwarf_Die *parameter);

#endif
