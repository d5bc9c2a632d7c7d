// SPDX-License-Identifier: MIT
/* tbd.c - tbd record [options] -- program args: sets LD_PRELOAD and TBD_OPTIONS, and
 * runs the program; tbd crash is tbd record --mode=crash, tbd arm is tbd record --mode=armed
 *
 * tbd probe, set, dump and stop are the program tbd-probe beside this one.
 *
 * Every option of TBD_OPTIONS is a flag here (hooks/boot/options.c is the table).  A program that
 * cannot be traced runs untraced, after one line that says why. */
#include "hooks/boot/options.h"

#include "base/safe_stream.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

static int usage(FILE *out)
{
    const char *name;
    const char *values;
    const char *help;

    fputs(
        "usage: tbd record [options] -- program [argument ...]\n"
        "       tbd crash [options] -- program [argument ...]   (record --mode=crash)\n"
        "       tbd record|crash -p PID [options]   (a process that runs already; tbd stop PID lets it go)\n"
        "       tbd dump PID   (of a program that runs under tbd crash)\n"
        "       tbd set PID ring=SIZE trigger=WHAT   (the same; tbd set --help)\n"
        "       tbd advise [DUMP]   (what to record so that more values are known: tbdq advise)\n"
        "       tbd arm [options] -- program [argument ...]     (record --mode=armed)\n"
        "       tbd probe -p PID SCRIPT   (tbd probe --help)\n"
        "       tbd stop PID   (what records it, or waits beside it for tbd probe, goes away)\n"
        "\noptions:\n",
        out);
    for (size_t i = 0; tbd_options_describe(i, &name, &values, &help); i++)
        fprintf(out, "  --%s=%-*s %s\n", name, (int)(34 - strlen(name)), values, help);
    fputs(
        "  --chaos                              the same with any seed, which is said\n"
        "  --native                             --mode=native: the program runs its own code, a replay finds the events\n"
        "  --traced                             --mode=traced: every block is translated and recorded\n"
        "  --portable                           --cpu=v3: any processor of x86-64-v3 can replay it\n"
        "  --help, --version\n\nThe trace goes to $TBD_DIR, else $XDG_DATA_HOME/tbd, else "
        "~/.local/share/tbd; ask it with tbdq.\n",
        out);
    return out == stdout ? 0 : EXIT_USAGE;
}

static int version(void)
{
    puts("tbd " TBD_VERSION);
    return 0;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int wrong_usage(const char *what, const char *word)
{
    fprintf(stderr, "tbd: %s: %s\ntbd: hint: tbd --help lists the options\n", what, word);
    return EXIT_USAGE;
}

/* ---- the variables ---- */

struct variable_text {
    char bytes[32768];
    size_t used;
};

static bool append(struct variable_text *text, const char *bytes, size_t count)
{
    if (count >= sizeof(text->bytes) - text->used)
        return false;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = '\0';
    return true;
}

static bool append_escaped(struct variable_text *text, const char *value)
{
    for (; *value; value++)
        if (((*value == ',' || *value == '\\') && !append(text, "\\", 1)) ||
            !append(text, value, 1))
            return false;
    return true;
}

/* "--name=value" or "--name", "value" */
static bool append_option(struct variable_text *text, const char *name, size_t name_bytes,
                          const char *value)
{
    return (!text->used || append(text, ",", 1)) && append(text, name, name_bytes) &&
           append(text, "=", 1) && append_escaped(text, value);
}

static bool is_option(const char *name, size_t bytes)
{
    const char *known;
    const char *values;
    const char *help;

    for (size_t i = 0; tbd_options_describe(i, &known, &values, &help); i++)
        if (strlen(known) == bytes && memcmp(known, name, bytes) == 0)
            return true;
    return false;
}

/* A file of ours beside this program, or in ../lib beside it. */
static bool find_beside(const char *name, char *out, size_t bytes)
{
    static const char *const places[] = { "", "../lib/", "../lib/tbd/" };
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (length < 0)
        return false;
    self[length] = '\0';
    slash = strrchr(self, '/');
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if ((size_t)snprintf(out, bytes, "%s%s%s", self, places[i], name) < bytes &&
            !access(out, R_OK))
            return true;
    }
    return false;
}

static bool set_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    static struct variable_text text;

    if (before && *before && (!append(&text, before, strlen(before)) || !append(&text, ":", 1)))
        return false;
    return append(&text, library, strlen(library)) && setenv("LD_PRELOAD", text.bytes, 1) == 0;
}

/* The dynamic loader chooses the C library's functions before the program is taken over, and asks the
 * processor itself.  Who has told it what to choose among is not told otherwise. */
static bool hide_features(void)
{
    static const char name[] = "glibc.cpu.hwcaps=";
    static const char hidden[] = "-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-AVX512ER,"
                                 "-AVX512PF,-AVX512_VBMI,-AVX512_VBMI2,-AVX512_VNNI,"
                                 "-AVX512_BITALG,-AVX512_VPOPCNTDQ,-AVX512_IFMA";
    const char *before = getenv("GLIBC_TUNABLES");
    static struct variable_text text;

    if (before && strstr(before, name))
        return true;
    if (before && *before && (!append(&text, before, strlen(before)) || !append(&text, ":", 1)))
        return false;
    return append(&text, name, strlen(name)) && append(&text, hidden, strlen(hidden)) &&
           setenv("GLIBC_TUNABLES", text.bytes, 1) == 0;
}

/* --chaos alone: any seed, which is said. */
static bool append_seed(struct variable_text *options)
{
    uint32_t seed;
    char text[16];

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return false;
    seed += seed == 0;
    snprintf(text, sizeof(text), "%" PRIu32, seed);
    fprintf(stderr, "tbd: chaos: seed %s; --chaos=%s repeats it\n", text, text);
    return append_option(options, "chaos", strlen("chaos"), text);
}

static bool is_translated_recording(const struct tbd_options *options)
{
    return options->mode == TBD_MODE_AUTO || options->mode == TBD_MODE_TRACED ||
           options->mode == TBD_MODE_LATER;
}

/* ---- the program ---- */

/* Finds the program as execvp() would; false if it is not there. */
static bool find_program(const char *name, char *out, size_t bytes)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return (size_t)snprintf(out, bytes, "%s", name) < bytes && access(out, F_OK) == 0;
    for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':')) {
        size_t length;

        path += *path == ':';
        length = strcspn(path, ":");
        if ((size_t)snprintf(out, bytes, "%.*s%s%s", (int)length, path, length ? "/" : "", name) <
                bytes &&
            access(out, X_OK) == 0)
            return true;
    }
    return false;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);

        if (pread(fd, &segment, sizeof(segment), at) == (ssize_t)sizeof(segment) &&
            segment.p_type == PT_INTERP)
            return true;
    }
    return false;
}

/* Why LD_PRELOAD will have no effect on the program; NULL if it will.  A script is not looked at: its
 * interpreter is what runs. */
static const char *why_untraced(int fd, const struct stat *file)
{
    Elf64_Ehdr header;

    if ((file->st_mode & S_ISUID && file->st_uid != geteuid()) ||
        (file->st_mode & S_ISGID && file->st_gid != getegid()))
        return "it is a set-uid program, and libraries cannot be preloaded into it";
    /* as libc decides: a root that runs it gains nothing by them */
    if (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0)
        return "it has file capabilities, and libraries cannot be preloaded into it";
    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return NULL;
    if (header.e_ident[EI_CLASS] == ELFCLASS32)
        return "it is a 32-bit program";
    if (header.e_machine != EM_X86_64)
        return "it is not an x86-64 program";
    return has_interpreter(fd, &header) ? NULL : "it is statically linked: link it dynamically";
}

static void warn_if_untraced(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat file;
    const char *why = fd >= 0 && fstat(fd, &file) == 0 ? why_untraced(fd, &file) : NULL;

    if (why)
        fprintf(stderr, "tbd: %s runs untraced: %s\n", path, why);
    if (fd >= 0)
        close(fd);
}

static int run(char **argv)
{
    char path[PATH_MAX];

    if (!find_program(argv[0], path, sizeof(path))) {
        fprintf(stderr, "tbd: cannot run: %s: not found\n", argv[0]);
        return EXIT_NOT_FOUND;
    }
    warn_if_untraced(path);
    execv(path, argv);
    fprintf(stderr, "tbd: cannot run: %s: %s\n", path, strerror(errno));
    return EXIT_CANNOT_RUN;
}

/* ---- probe, set, dump, stop ---- */

static int probe(char **argv)
{
    char path[PATH_MAX];

    if (!find_beside("tbd-probe", path, sizeof(path))) {
        fprintf(stderr, "tbd: tbd-probe is not beside tbd\ntbd: hint: install or build it again\n");
        return EXIT_CANNOT_RUN;
    }
    execv(path, argv);
    fprintf(stderr, "tbd: cannot run: %s: %s\n", path, strerror(errno));
    return EXIT_CANNOT_RUN;
}

/* ---- advise ---- */

/* `tbd advise [DUMP]`: tbdq has the answer. */
static int advise(char **argv)
{
    char path[PATH_MAX], command[] = "advise", option[] = "-t";
    char *words[] = { path, command, NULL, NULL, NULL };

    if (argv[0] != NULL && argv[1] != NULL)
        return wrong_usage("advise", "it takes a dump, or none: the newest");
    if (!find_beside("tbdq", path, sizeof(path))) {
        fprintf(stderr, "tbd: tbdq is not beside tbd\ntbd: hint: install or build it again\n");
        return EXIT_CANNOT_RUN;
    }
    if (argv[0] != NULL) {
        words[1] = option;
        words[2] = argv[0];
        words[3] = command;
    }
    execv(path, words);
    fprintf(stderr, "tbd: cannot run: %s: %s\n", path, strerror(errno));
    return EXIT_CANNOT_RUN;
}

/* ---- the folder of traces ---- */

/* The programs that it starts may have other folders: a relative path would name another one
 * there. */
static bool make_absolute(const char *given, char *out, size_t bytes)
{
    char cwd[PATH_MAX];

    if (!given || !*given || *given == '/')
        return false;
    return getcwd(cwd, sizeof(cwd)) && (size_t)snprintf(out, bytes, "%s/%s", cwd, given) < bytes;
}

static bool fix_folder(const struct tbd_options *parsed, struct variable_text *options)
{
    char path[PATH_MAX];

    if (make_absolute(parsed->dir, path, sizeof(path)) &&
        !append_option(options, "dir", strlen("dir"), path)) /* the last one counts */
        return false;
    return !make_absolute(getenv("TBD_DIR"), path, sizeof(path)) || setenv("TBD_DIR", path, 1) == 0;
}

/* ---- functions whose branches count ---- */

/* FILE:START-END, as the engine takes it? */
static bool is_place(const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789abcdef") : 0;

    return digits && colon[1 + digits] == '-' &&
           strspn(colon + 2 + digits, "0123456789abcdef") == strlen(colon + 2 + digits) &&
           colon[2 + digits];
}

/* FILE:FUNCTION, for a file that the program does not name as one of its libraries: ends *text after FILE, and returns FUNCTION. */
static char *after_file(char *text)
{
    char *colon = strrchr(text, ':');

    if (!colon || !colon[1])
        return NULL;
    *colon = '\0';
    if (access(text, R_OK) == 0)
        return colon + 1;
    *colon = ':';
    return NULL;
}

/* tbdq finds the function; what it cannot find it says. */
static bool ask_place(const char *program, char *function, char *out, size_t bytes)
{
    char tbdq[PATH_MAX];
    char *argv[] = { (char[]){ "tbdq" },
                     (char[]){ "branches" },
                     (char[]){ "--program" },
                     (char *)(uintptr_t)program,
                     (char[]){ "--function" },
                     function,
                     NULL };
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got;
    pid_t child;

    if (!find_beside("tbdq", tbdq, sizeof(tbdq)) || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    child = fork();
    if (child == 0) {
        if (dup2(ends[1], 1) == 1)
            execv(tbdq, argv);
        _exit(EXIT_CANNOT_RUN);
    }
    close(ends[1]);
    while (child > 0 && used + 1 < bytes && (got = read(ends[0], out + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    close(ends[0]);
    out[used] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 && is_place(out);
}

static bool find_branches(const struct tbd_options *parsed, const char *name,
                          struct variable_text *options)
{
    static char names[sizeof(parsed->branches)];
    static struct variable_text places;
    char program[PATH_MAX], place[256], *rest = names;

    memcpy(names, parsed->branches, sizeof(names));
    if (!find_program(name, program, sizeof(program)))
        return true; /* which is said later */
    for (char *function; (function = strsep(&rest, ";")) != NULL;) {
        const char *found = is_place(function) ? function : place;
        char *in_file = found == place ? after_file(function) : NULL;

        if (found == place && !ask_place(in_file ? function : program, in_file ? in_file : function,
                                         place, sizeof(place)))
            return false;
        if ((places.used && !append(&places, ";", 1)) || !append(&places, found, strlen(found)))
            return false;
    }
    return append_option(options, "branches", strlen("branches"), places.bytes);
}

/* ---- the command line ---- */

/* In a process that runs: by the program beside this one. */
static int take_over(char *what, char *pid, struct variable_text *options)
{
    static char word[] = "take";
    char *argv[] = { word, what, pid, options->bytes, NULL };
    char organizer[PATH_MAX];

    if (!find_beside("tbd-organizer", organizer, sizeof(organizer)) ||
        !append_option(options, "organizer", strlen("organizer"), organizer)) {
        fputs("tbd: tbd-organizer is not beside tbd\ntbd: hint: install or build it again\n",
              stderr);
        return EXIT_CANNOT_RUN;
    }
    return probe(argv);
}

static bool can_be_taken_over(const struct tbd_options *options)
{
    return options->cpu == TBD_CPU_OWN && !options->contexts &&
           (is_translated_recording(options) || options->mode == TBD_MODE_CRASH);
}

/* Options without a value, each of which stands for one that has it. */
static const struct option_word {
    const char *word, *option, *value;
} option_words[] = {
    { "portable", "cpu", "v3" },
    { "native", "mode", "native" },
    { "traced", "mode", "traced" },
};

/* NULL: there is none. */
static const struct option_word *word_of(const char *name)
{
    for (size_t i = 0; i < sizeof(option_words) / sizeof(option_words[0]); i++)
        if (strcmp(option_words[i].word, name) == 0)
            return &option_words[i];
    return NULL;
}

/* `mode`: what the command stands for; an option may say otherwise. */
static int record(char **argv, const char *mode)
{
    static struct variable_text options;
    static struct tbd_options parsed;
    static char record_word[] = "record", crash_word[] = "crash";
    char library[PATH_MAX];
    char why[128];
    const char *given = getenv("TBD_OPTIONS");
    char *pid = NULL;

    if (given && !append(&options, given, strlen(given)))
        return wrong_usage("too long", "TBD_OPTIONS");
    if (mode && !append_option(&options, "mode", strlen("mode"), mode))
        return wrong_usage("too long", "TBD_OPTIONS");
    if (*argv && strcmp(*argv, "--version") == 0)
        return version();
    for (; *argv && (*argv)[0] == '-'; argv++) {
        const char *name = *argv + 2;
        const struct option_word *word;
        size_t bytes;

        if (is_help(*argv))
            return usage(stdout);
        if (strcmp(*argv, "-p") == 0 && argv[1]) {
            pid = *++argv;
            continue;
        }
        if ((*argv)[1] != '-')
            return wrong_usage("unknown option", *argv);
        bytes = strcspn(name, "=");
        if (!*name) {
            argv++;
            break;
        }
        word = word_of(name);
        if (word) {
            if (!append_option(&options, word->option, strlen(word->option), word->value))
                return wrong_usage("too long", *argv);
            continue;
        }
        if (strcmp(name, "chaos") == 0) {
            if (!append_seed(&options))
                return wrong_usage("no seed by chance", *argv);
            continue;
        }
        if (!is_option(name, bytes))
            return wrong_usage("unknown option", *argv);
        if (!name[bytes] && !argv[1])
            return wrong_usage("a value is missing", *argv);
        if (!append_option(&options, name, bytes, name[bytes] ? name + bytes + 1 : *++argv))
            return wrong_usage("too long", *argv);
    }
    if (!tbd_options_parse(&parsed, options.bytes, why, sizeof(why)))
        return wrong_usage("wrong option", why);
    if (parsed.chaos && !is_translated_recording(&parsed))
        return wrong_usage("only a recording has turns by chance", "--chaos with --mode");
    if (pid && !can_be_taken_over(&parsed))
        return wrong_usage("not for a process that runs already", "--mode or --portable");
    if (pid && *argv)
        return wrong_usage("a process runs already, no program is started", *argv);
    if (pid && !fix_folder(&parsed, &options))
        return wrong_usage("too long", "the folder's path");
    if (pid)
        return take_over(parsed.mode == TBD_MODE_CRASH ? crash_word : record_word, pid, &options);
    if (!*argv)
        return wrong_usage(mode ? "nothing to run" : "nothing to record", "no program is named");
    if (parsed.contexts && parsed.branches[0] && !find_branches(&parsed, *argv, &options))
        return wrong_usage("not found", "--branches");
    if (!find_beside("libtbd.so", library, sizeof(library)) || !set_preload(library)) {
        fprintf(stderr, "tbd: libtbd.so is not beside tbd\ntbd: hint: install or build it again\n");
        return EXIT_CANNOT_RUN;
    }
    if (!fix_folder(&parsed, &options))
        return wrong_usage("too long", "the folder's path");
    if (parsed.cpu != TBD_CPU_OWN && !hide_features())
        return wrong_usage("too long", "GLIBC_TUNABLES");
    if (options.used && setenv("TBD_OPTIONS", options.bytes, 1) != 0)
        return EXIT_CANNOT_RUN;
    return run(argv);
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];

    tbd_safe_messages();
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "record") == 0)
        return record(argv + 2, NULL);
    if (strcmp(argv[1], "crash") == 0)
        return record(argv + 2, "crash");
    if (strcmp(argv[1], "arm") == 0)
        return record(argv + 2, "armed");
    if (strcmp(argv[1], "probe") == 0 || strcmp(argv[1], "set") == 0 ||
        strcmp(argv[1], "dump") == 0 || strcmp(argv[1], "stop") == 0)
        return probe(argv + 1);
    if (strcmp(argv[1], "advise") == 0)
        return advise(argv + 2);
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0)
        return version();
    fprintf(stderr, "tbd: unknown command: %s\ntbd: hint: tbd record -- %s ... records a program\n",
            argv[1], find_program(argv[1], path, sizeof(path)) ? argv[1] : "PROGRAM");
    return EXIT_USAGE;
}
