// SPDX-License-Identifier: MIT
/* dwarf_expr.h - C expressions over the program's variables, at a place
 *
 * The operators and operands of c_parse.h.  The usual conversions of C apply; pointers step by the
 * size of their target; a string on one side of == or != is compared with the characters that the
 * other side points to.  Nothing is ever written or called: the result of a C++ container's member
 * function is computed from its members (cxx_print.h). */
#ifndef TBD_QUERY_DWARF_EXPR_H
#define TBD_QUERY_DWARF_EXPR_H

#include "query/values/c_parse.h"
#include "query/debuginfo/dwarf_location.h"

struct tbd_c_scope {
    const struct tbd_place_of *place;
    /* Variables and types that the place's own module does not have; may be NULL.  `of_program`: of the main program alone. */
    bool (*variable)(void *context, const char *name, bool of_program, struct tbd_data *out);
    bool (*type)(void *context, const char *name, struct tbd_type *out);
    /* $name, unless it is a register; may be NULL. */
    bool (*kept)(void *context, const char *name, struct tbd_data *out);
    void *context;
};

/* text[from, to) must be one expression.  A value that is not known (optimized out) is a result:
 * out->is_known is false.  On failure *error points at the wrong word. */
TBD_MUST_CHECK enum tbd_status tbd_c_evaluate(const struct tbd_c_scope *scope, const char *text,
                                              size_t from, size_t to, struct tbd_data *out,
                                              struct tbd_query_error *error);
/* The types in scope, for the parser; borrows `scope`. */
struct tbd_c_types tbd_c_types_of(const struct tbd_c_scope *scope);
/* `text` must be a type: "struct node *". */
TBD_MUST_CHECK enum tbd_status tbd_c_type(const struct tbd_c_scope *scope, const char *text,
                                          struct tbd_type *out);

/* A variable, parameter or function of this name: in the scopes of the place, its unit, its module, the scope's other modules.  What
 * another file of a library keeps to itself comes after what the main program has. */
bool tbd_c_find(const struct tbd_c_scope *scope, const char *name, struct tbd_data *out);
/* The entry of a local variable or parameter called `name`, in the scopes of the place. */
bool tbd_c_find_local(const struct tbd_place_of *place, const char *name, Dwarf_Die *out);
/* The entry of a name, and the place at which to evaluate it: without scopes for a global. */
bool tbd_c_find_entry(const struct tbd_place_of *place, const char *name,
                      struct tbd_place_of *out_place, Dwarf_Die *out);
/* Does `name` mean a member of *this, in a C++ member function?  *out is the entry of `this`. */
bool tbd_c_find_this(const struct tbd_place_of *place, const char *name, Dwarf_Die *out);
/* The entry's value; for a function its address. */
void tbd_c_take(const struct tbd_place_of *place, const Dwarf_Die *entry, struct tbd_data *out);
/* The value of a static member, which its class only declares; false, and *out unknown, if it is
 * defined nowhere that is known. */
bool tbd_c_static_member(const struct tbd_place_of *place, const struct tbd_member *member,
                         struct tbd_data *out);
/* A global of a module, in any unit. */
bool tbd_c_find_global(struct tbd_dwarf *dwarf, uint64_t bias, const struct tbd_place_of *place,
                       const char *name, struct tbd_data *out);

#endif
