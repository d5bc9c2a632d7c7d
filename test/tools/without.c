// SPDX-License-Identifier: MIT
/* without CALL[:ARGUMENT] PROGRAM [ARGUMENT...]: the program runs, and a system call fails there
 *
 * As on a kernel, or in a container, that does not have it (EPERM): the call with this number, and,
 * if given, this first argument. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char *rest;
    unsigned number = argc > 2 ? (unsigned)strtoul(argv[1], &rest, 10) : 0;
    bool has_argument = argc > 2 && *rest == ':';
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                 has_argument ? (unsigned)strtoul(rest + 1, NULL, 10) : 0, 0, has_argument ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

    if (argc < 3) {
        fprintf(stderr, "usage: without CALL[:ARGUMENT] PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
