// SPDX-License-Identifier: MIT
/* function_branches.h - a function of a program's files, its branches (base/branching.h) and its blocks, from its code
 *
 * The function is decoded from its start to its end, as the engine does (hooks/instructions/branch_functions.h): so both have the
 * same branches in the same order.  An indirect jump may lead to every block that nothing else leads to.
 *
 * All files are hostile input.  One object from one thread.  Nothing here prints. */
#ifndef TBD_QUERY_FUNCTION_BRANCHES_H
#define TBD_QUERY_FUNCTION_BRANCHES_H

#include "base/branching.h"
#include "base/status.h"
#include "query/contexts/call_graph.h"

#define TBD_BRANCH_BLOCKS   512u
#define TBD_BRANCH_NO_BLOCK UINT32_MAX

struct tbd_branch_block {
    uint64_t start;   /* in the file's addresses */
    uint32_t jumps;   /* the block that a jump at its end leads to, or TBD_BRANCH_NO_BLOCK */
    uint32_t falls;   /* the block that follows, or TBD_BRANCH_NO_BLOCK */
    uint32_t branch;  /* index of the branch that it ends with, or TBD_BRANCH_MAX */
    bool is_indirect; /* it ends with an indirect jump */
    bool is_led_to;
    bool calls, asks; /* it has a call; one of tbd_branch_context() */
};

struct tbd_branch_code {
    struct tbd_call_graph *files; /* owned */
    struct tbd_elf_file *elf;     /* borrowed from it */
    const char *file;             /* last part of its path; borrowed */
    const char *name;             /* of the function; borrowed */
    uint64_t start;               /* in the file's addresses */
    struct tbd_branch_function function;
    uint64_t targets[TBD_BRANCH_MAX];
    bool is_full; /* it has more branches than can be counted */
    struct tbd_branch_block blocks[TBD_BRANCH_BLOCKS];
    uint32_t block_count; /* 0: there are too many */
};

/* `name`: [MODULE:]FUNCTION.  Fails with TBD_NOTFOUND: there is no such function; and as tbd_elf_open(). */
TBD_MUST_CHECK enum tbd_status tbd_branch_code_open(const char *program, char *const *more,
                                                    size_t more_count, const char *name,
                                                    struct tbd_branch_code *out);
void tbd_branch_code_close(struct tbd_branch_code *code);

#endif
