// SPDX-License-Identifier: MIT
/* cut_file.c - see cut_file.h
 *
 * The handler uses only calls that are safe in signal handlers; which file it was is found in
 * /proc/self/maps. */
#include "base/cut_file.h"

#include "base/escape.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define LINE_BYTES 4352 /* a path, and what stands before it */

static struct {
    const char *name;
    int status;
    bool has_terminal;
    struct termios terminal;
} guard;

/* ---- which file is mapped at an address ---- */

/* "55d0-55d1 r--p 00001000 08:01 1234   /path": the path, if the address is in this mapping. */
static const char *path_in(const char *line, uint64_t address)
{
    uint64_t bounds[2] = { 0, 0 };
    const char *path;

    for (int i = 0; i < 2; i++) {
        for (; *line && *line != '-' && *line != ' '; line++)
            bounds[i] = bounds[i] * 16 + (uint64_t)(*line <= '9' ? *line - '0' : *line - 'a' + 10);
        line += *line != '\0';
    }
    path = strchr(line, '/');
    return address >= bounds[0] && address < bounds[1] ? path : NULL;
}

struct lines {
    int fd;
    size_t used, next;
    char bytes[4096];
};

static bool next_line(struct lines *in, char *out, size_t space)
{
    size_t length = 0;

    for (;;) {
        if (in->next == in->used) {
            ssize_t got = read(in->fd, in->bytes, sizeof(in->bytes));

            if (got <= 0)
                return false;
            in->used = (size_t)got;
            in->next = 0;
        }
        out[length] = in->bytes[in->next++];
        if (out[length] == '\n')
            break;
        length += length + 1 < space;
    }
    out[length] = '\0';
    return true;
}

/* False: no file is mapped there, or nobody knows. */
static bool find_file(uint64_t address, char *line, size_t space, const char **out)
{
    struct lines in = { .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };

    *out = NULL;
    while (in.fd >= 0 && *out == NULL && next_line(&in, line, space))
        *out = path_in(line, address);
    if (in.fd >= 0)
        close(in.fd);
    return *out != NULL;
}

/* ---- the signal ---- */

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void on_bus(int signal_number, siginfo_t *info, void *context)
{
    char line[LINE_BYTES], shown[2 * LINE_BYTES];
    const char *path;

    (void)context;
    if (info->si_code != BUS_ADRERR ||
        !find_file((uint64_t)(uintptr_t)info->si_addr, line, sizeof(line), &path)) {
        (void)signal(signal_number, SIG_DFL); /* the instruction runs again */
        return;
    }
    if (guard.has_terminal)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &guard.terminal);
    (void)tbd_escape(TBD_ESCAPE_FIELD, path, strlen(path), shown, sizeof(shown));
    say(guard.name);
    say(": ");
    say(shown);
    say(": it was cut short while it was read\n");
    _exit(guard.status);
}

void tbd_cut_file_guard(const char *name, int status)
{
    struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };

    guard.name = name;
    guard.status = status;
    guard.has_terminal = tcgetattr(STDIN_FILENO, &guard.terminal) == 0;
    (void)sigaction(SIGBUS, &action, NULL);
}
