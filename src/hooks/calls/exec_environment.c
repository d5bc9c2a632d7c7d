// SPDX-License-Identifier: MIT
/* exec_environment.c - see exec_environment.h
 *
 * The code here guesses what a call will do before it is made; if anything is not as expected, the
 * call stays as it is. */
#include "hooks/calls/exec_environment.h"

#include "base/fmt.h"
#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"

#include <elf.h>

enum {
    MODE_OTHER_IDENTITY = 06000,
    HEAD_BYTES = 4096,
    TEXT_BYTES = 4096,
    MAX_VARIABLES = 4096,
    MAX_OWN = 8,
    OPEN_FLAGS =
        O_CLOEXEC | O_NONBLOCK | O_NOCTTY, /* it may be a FIFO, at which execve does not wait */
};

static const char library[] = "libtbd.so";
static const char marker[] = "TBD_HIDDEN=";
static const char preload[] = "LD_PRELOAD=";

/* ---- can it be recorded? ---- */

static int open_program(const struct tbd_sys_call *sys)
{
    bool has_folder = sys->number == __NR_execveat;
    uint64_t folder = has_folder ? sys->args[0] : (uint64_t)AT_FDCWD;
    uint64_t path = sys->args[has_folder ? 1 : 0];
    char first = 0;

    if (has_folder && sys->args[4] & AT_EMPTY_PATH && tbd_copy_from_program(&first, path, 1) &&
        !first)
        return (int)tbd_sys3(__NR_fcntl, folder, F_DUPFD_CLOEXEC, 0);
    return (int)tbd_sys4(__NR_openat, folder, path, OPEN_FLAGS, 0);
}

/* Set-uid programs and those with capabilities ignore LD_PRELOAD. */
static bool keeps_identity(int fd)
{
    uint64_t stat[18];

    return !tbd_sys_failed(
               tbd_sys3(__NR_fstat, (uint64_t)(unsigned)fd, tbd_sys_pointer(stat), 0)) &&
           !((uint32_t)stat[3] & MODE_OTHER_IDENTITY) &&
           tbd_sys_failed(tbd_sys4(__NR_fgetxattr, (uint64_t)(unsigned)fd,
                                   tbd_sys_pointer("security.capability"), 0, 0));
}

/* Reads the beginning of the file and closes the descriptor.  0: the file cannot be used. */
static size_t read_head(int fd, char head[HEAD_BYTES + 1])
{
    long bytes = -1;

    if (fd < 0)
        return 0;
    if (keeps_identity(fd))
        bytes =
            tbd_sys4(__NR_pread64, (uint64_t)(unsigned)fd, tbd_sys_pointer(head), HEAD_BYTES, 0);
    tbd_sys_close(fd);
    bytes = bytes > 0 ? bytes : 0;
    head[bytes] = '\0';
    return (size_t)bytes;
}

/* A 64-bit program that a dynamic linker starts. */
static bool is_dynamic(const char *head, size_t bytes)
{
    Elf64_Ehdr file;
    Elf64_Phdr part;

    if (bytes < sizeof(file))
        return false;
    memcpy(&file, head, sizeof(file));
    if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_machine != EM_X86_64 || file.e_phentsize != sizeof(part) || file.e_phoff > bytes)
        return false;
    for (size_t i = 0; i < file.e_phnum; i++) {
        size_t at = file.e_phoff + i * sizeof(part);

        if (at + sizeof(part) > bytes)
            return false;
        memcpy(&part, head + at, sizeof(part));
        if (part.p_type == PT_INTERP)
            return true;
    }
    return false;
}

/* Opens the interpreter that a line like "#! /bin/sh -e" names. */
static int open_interpreter(char *head)
{
    char *path = head + 2;
    char *end;

    while (*path == ' ' || *path == '\t')
        path++;
    for (end = path; *end && *end != ' ' && *end != '\t' && *end != '\n'; end++)
        ;
    *end = '\0';
    return (int)tbd_sys_open(path, OPEN_FLAGS, 0);
}

static bool can_be_recorded(const struct tbd_sys_call *sys)
{
    static char head[HEAD_BYTES + 1];
    size_t bytes = read_head(open_program(sys), head);

    if (bytes > 2 && head[0] == '#' && head[1] == '!')
        bytes = read_head(open_interpreter(head), head);
    return is_dynamic(head, bytes);
}

/* ---- the variables ---- */

struct exec_variables {
    uint64_t variables[MAX_VARIABLES + MAX_OWN + 1]; /* addresses */
    size_t count;
    size_t preload; /* index of the program's own LD_PRELOAD; `count` if none */
    char own_preload[TEXT_BYTES];
    char hidden[TEXT_BYTES + sizeof(marker)];
    char both[2 * TEXT_BYTES];
    char folder[TEXT_BYTES];
};

/* Does the list name the library?  A name ends at the end of the list or at a separator of
 * LD_PRELOAD. */
static bool names_library(const char *list)
{
    size_t bytes = strlen(library);

    for (; *list; list++)
        if (tbd_starts_with(list, library) &&
            (!list[bytes] || list[bytes] == ':' || list[bytes] == ' '))
            return true;
    return false;
}

/* False: it cannot be read, is too long, already has the variables (or says that it does not want
 * them). */
static bool read_variables(struct exec_variables *e, uint64_t envp)
{
    uint64_t variable = 0;

    e->count = 0;
    e->preload = SIZE_MAX;
    for (;; envp += sizeof(variable)) {
        size_t bytes;

        if (!tbd_copy_from_program(&variable, envp, sizeof(variable)))
            return false;
        if (!variable)
            return true;
        if (e->count == MAX_VARIABLES)
            return false;
        bytes = tbd_copy_prefix_from_program(e->hidden, variable, TEXT_BYTES - 1);
        e->hidden[bytes] = '\0';
        if (tbd_starts_with(e->hidden, preload)) {
            if (strlen(e->hidden) == TEXT_BYTES - 1 || names_library(e->hidden) ||
                !e->hidden[strlen(preload)])
                return false;
            memcpy(e->own_preload, e->hidden, strlen(e->hidden) + 1);
            e->preload = e->count;
        }
        e->variables[e->count++] = variable;
    }
}

static void add(struct exec_variables *e, const char *variable)
{
    e->variables[e->count++] = tbd_sys_pointer(variable);
}

static const struct tbd_inherited *inherited;

void tbd_exec_environment_init(const struct tbd_inherited *given)
{
    inherited = given;
}

/* Adds the variable with the value it had when the recording of this process began. */
static void add_inherited(struct exec_variables *e, const char *name)
{
    for (char *const *variable = inherited->environment; *variable; variable++)
        if (tbd_starts_with(*variable, name)) {
            add(e, *variable);
            return;
        }
}

static void add_own(struct exec_variables *e)
{
    bool has_preload = e->preload != SIZE_MAX;

    tbd_fmt(e->hidden, sizeof(e->hidden), "%s%s", marker, has_preload ? e->own_preload : "");
    add(e, e->hidden);
    add_inherited(e, "TBD_OPTIONS=");
    add_inherited(e, "XDG_DATA_HOME=");
    add_inherited(e, "HOME=");
    if (inherited->dir[0]) {
        tbd_fmt(e->folder, sizeof(e->folder), "TBD_DIR=%s", inherited->dir);
        add(e, e->folder);
    }
    tbd_fmt(e->both, sizeof(e->both), "%s%s%s%s", has_preload ? e->own_preload : preload,
            has_preload ? ":" : "", inherited->lib_dir, library);
    if (has_preload)
        e->variables[e->preload] = tbd_sys_pointer(e->both);
    else
        add(e, e->both);
    e->variables[e->count] = 0;
}

void tbd_exec_environment_extend(struct tbd_sys_call *sys)
{
    static struct exec_variables environment;
    uint64_t *envp = &sys->args[sys->number == __NR_execveat ? 3 : 2];

    if (!tbd_recording.is_on || !inherited->children ||
        (*envp && !read_variables(&environment, *envp)) || !can_be_recorded(sys))
        return;
    if (!*envp) {
        environment.count = 0;
        environment.preload = SIZE_MAX;
    }
    add_own(&environment);
    *envp = tbd_sys_pointer(environment.variables);
}

/* ---- in the new program ---- */

void tbd_exec_environment_hide(char **envp)
{
    char **first = envp;
    char *own;

    while (*first && !tbd_starts_with(*first, marker))
        first++;
    if (!*first)
        return;
    own = *first + strlen(marker);
    for (char **variable = envp; *own && variable < first; variable++)
        if (tbd_starts_with(*variable, preload))
            *variable = own;
    for (; *first; first++)
        *first = NULL;
}
