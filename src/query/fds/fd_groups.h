// SPDX-License-Identifier: MIT
/* fd_groups.h - rows that differ in nothing but their descriptor and position become one */
#ifndef TBD_QUERY_FD_GROUPS_H
#define TBD_QUERY_FD_GROUPS_H

#include "query/commands/rows.h"

#define TBD_FD_GROUP_SHOWN 64u /* descriptors that a row names */

struct tbd_fd_groups {
    json_t *rows; /* owned: by key, in the order of their first items */
};

struct tbd_fd_groups tbd_fd_groups_new(void);
void tbd_fd_groups_free(struct tbd_fd_groups *groups);
/* The row of this key to which the descriptor was added; `*out_is_new`: it has nothing else yet.  Borrowed; NULL: no
 * memory. */
json_t *tbd_fd_groups_add(struct tbd_fd_groups *groups, const char *key, uint32_t fd,
                          bool *out_is_new);
/* Prints them, those of most descriptors first. */
enum tbd_exit tbd_fd_groups_print(const struct tbd_fd_groups *groups, struct tbd_command_run *run,
                                  const char *const *columns);

#endif
