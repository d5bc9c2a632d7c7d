// SPDX-License-Identifier: MIT
/* call_graph_private.h - what reading files and searching stacks share */
#ifndef TBD_QUERY_CALL_GRAPH_PRIVATE_H
#define TBD_QUERY_CALL_GRAPH_PRIVATE_H

#include "query/contexts/call_graph.h"

#define TBD_NO_FUNCTION UINT32_MAX

struct tbd_graph_file {
    char *path;               /* owned */
    struct tbd_elf_file *elf; /* owned */
    uint64_t number;          /* tbd_calling_module() */
    uint32_t first, count;    /* functions, sorted by start */
};

struct tbd_graph_function {
    uint64_t start, end;
    uint32_t file;
    uint32_t callers; /* direct sites: from sites[by_target[callers]] on; sorted by target */
    uint32_t caller_count;
    uint32_t calls, call_count; /* sites, which are sorted by function */
    bool is_taken;              /* its address is: an indirect call may lead here */
};

/* A call, or a jump to another function. */
struct tbd_graph_site {
    uint64_t number; /* 0: a jump */
    uint64_t after;  /* return address */
    uint32_t function;
    uint32_t target; /* TBD_NO_FUNCTION: indirect */
    bool asks;       /* it calls tbd_context() */
};

/* A reference to data. */
struct tbd_graph_reference {
    uint64_t address;
    uint32_t function;
};

/* A call there has entered the function (call_edges.h). */
struct tbd_graph_edge {
    uint32_t function, site;
};

/* A call of a stack that a recording had. */
struct tbd_graph_known {
    uint32_t parent; /* 1 + its index, which is less; 0: nothing had been called */
    uint32_t site;   /* TBD_NO_SITE: the graph does not have it */
};
#define TBD_NO_SITE UINT32_MAX

/* A stack that begins at the program's start, or that a recording had. */
struct tbd_start_stack {
    uint64_t value;
    uint32_t function; /* that is entered */
    uint32_t parent, site;
    uint32_t depth;
};

/* Such stacks by their values (call_reach.c). */
struct tbd_start_stacks {
    struct tbd_start_stack *reached; /* owned; NULL: none yet */
    uint32_t reached_count, next;    /* `next`: whose calls have not been looked at */
    uint32_t *hash;                  /* owned */
    uint64_t *
        seen; /* owned: a bit for some bits of each reached value's hash; nearly all others are told by it */
    enum tbd_calling_scheme scheme;
};

struct tbd_call_graph {
    struct tbd_graph_file files[TBD_CALL_GRAPH_FILES];
    uint32_t file_count;
    char *missing[TBD_CALL_GRAPH_FILES]; /* owned */
    uint32_t missing_count;
    struct tbd_graph_function *functions; /* owned */
    size_t function_count, function_capacity;
    struct tbd_graph_site *sites; /* owned */
    size_t site_count, site_capacity;
    uint32_t *by_target; /* owned: all sites, sorted by target */
    uint32_t *indirect;  /* owned: calls without a known target */
    size_t indirect_count;
    uint32_t entry, main; /* where the program begins, and the function that is handed over there */
    struct tbd_graph_reference *references; /* owned */
    size_t reference_count, reference_capacity;
    struct tbd_graph_edge *edges, *edges_by_site; /* owned: by function and site; by site */
    size_t edge_count, edge_capacity;
    struct tbd_graph_known *known; /* owned: stacks of recordings, as a tree */
    size_t known_count;
    struct tbd_start_stacks
        starts; /* for further values of the scheme: what recordings had is part of them */
};

/* Only the files: no functions and calls. */
TBD_MUST_CHECK enum tbd_status tbd_call_graph_open(const char *program, char *const *more,
                                                   size_t more_count, struct tbd_call_graph **out);
/* Where an address of the file, not a segment's first, lies in it; 0: nowhere. */
uint64_t tbd_graph_offset(const struct tbd_elf_file *elf, uint64_t address);

void tbd_start_stacks_free(struct tbd_start_stacks *starts); /* call_reach.c */

/* The function of the file at this address; TBD_NO_FUNCTION: none. */
uint32_t tbd_graph_function_at(const struct tbd_call_graph *graph, uint32_t file, uint64_t address);

/* What recordings had (call_edges.c): edges to a function, and from a call.  Returns how many there are. */
size_t tbd_graph_edges_to(const struct tbd_call_graph *graph, uint32_t function,
                          const struct tbd_graph_edge **out);
size_t tbd_graph_edges_from(const struct tbd_call_graph *graph, uint32_t site,
                            const struct tbd_graph_edge **out);

#endif
