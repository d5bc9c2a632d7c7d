// SPDX-License-Identifier: MIT
/* options.c - see options.h */
#include "hooks/boot/options.h"

#include "base/branching.h"
#include "base/calling.h"
#include "base/fmt.h"
#include "base/log.h"
#include "base/string.h"
#include "format/stream/condensed.h"
#include "format/stream/crash_values.h"
#include "format/stream/stream.h"

enum option_kind { KIND_TEXT, KIND_NUMBER, KIND_CHOICE, KIND_MODES, KIND_SIZE, KIND_KEEP };

struct choice {
    char name[12];
    uint64_t value;
};

#define IS_COMING UINT64_MAX /* a choice's value: only a later version has it */

struct option_row {
    char name[12];
    char values[64];
    char help[112];
    enum option_kind kind;
    bool of_blocks; /* who gives it wants translated code, if the mode is auto */
    size_t offset;
    uint64_t initial, low,
        high;     /* KIND_NUMBER, and KIND_SIZE if high is not 0; initial for KIND_CHOICE too */
    bool or_none; /* KIND_SIZE: 0 too */
    struct choice choices[10]; /* KIND_CHOICE, KIND_MODES; ends with an empty name */
};

#define AT(field) offsetof(struct tbd_options, field)

/* Why `context` cannot be beside a mode; "": it can. */
static const char refusals[TBD_MODE_COUNT + 1][80] = {
    [TBD_MODE_AUTO] = "its program runs its own code, which keeps no contexts",
    [TBD_MODE_NATIVE] = "its program runs its own code, which keeps no contexts",
    [TBD_MODE_ARMED] = "its program runs its own code; probes have the word `context`",
    [TBD_MODE_TRACED] = "a recording has the stacks themselves",
    [TBD_MODE_LATER] = "a recording has the stacks themselves",
    [TBD_MODE_PATCHED] = "it is for measurement, of patching alone",
    [TBD_MODE_REPLAY] = "no option chooses it",
};

/* No pointers: readable before relocation. */
// clang-format off
static const struct option_row rows[] = {
    { .name = "dir", .values = "PATH", .help = "folder in which the trace's folder is made",
      .kind = KIND_TEXT, .offset = AT(dir) },
    { .name = "organizer", .values = "PATH|none", .help = "the organizer program; none: keep nothing",
      .kind = KIND_TEXT, .offset = AT(organizer) },
    { .name = "window", .values = "N", .help = "block entries in a window",
      .kind = KIND_NUMBER, .of_blocks = true, .offset = AT(window), .initial = 3u << 19, .low = 16, .high = 1ull << 40 },
    { .name = "quantum", .values = "N", .help = "block entries until it is another thread's turn",
      .kind = KIND_NUMBER, .of_blocks = true, .offset = AT(quantum), .initial = 30000, .low = 16, .high = 1ull << 40 },
    { .name = "pause", .values = "MS", .help = "with -p: all threads stand still for at most so long",
      .kind = KIND_NUMBER, .offset = AT(pause), .initial = 1000, .low = 1, .high = 60000 },
    { .name = "chaos", .values = "SEED", .help = "turns of threads by chance, so that races show; 0: no",
      .kind = KIND_NUMBER, .of_blocks = true, .offset = AT(chaos), .initial = 0, .low = 0, .high = UINT32_MAX },
    { .name = "cut", .values = "N", .help = "mode=native: microseconds of computing until a window ends; 0: as its costs say",
      .kind = KIND_NUMBER, .offset = AT(cut), .initial = 0, .low = 0, .high = 1000000 },
    { .name = "chunks", .values = "N", .help = "chunks of shared memory (1.25 MiB each)",
      .kind = KIND_NUMBER, .offset = AT(chunks), .initial = 0, .low = 2,
      .high = TBD_STREAM_MAX_CHUNKS },
    { .name = "insns", .values = "N", .help = "instructions in a block at most",
      .kind = KIND_NUMBER, .of_blocks = true, .offset = AT(max_insns), .initial = TBD_BLOCK_MAX_INSNS, .low = 1,
      .high = TBD_BLOCK_MAX_INSNS },
    { .name = "mode", .values = "auto|native|traced|later|patched|free|crash|context|armed", .help = "native: own code; traced: every block; auto: native, unless an option is about blocks; crash,context: both",
      .kind = KIND_MODES, .offset = AT(mode), .initial = TBD_MODE_AUTO,
      .choices = { { "auto", TBD_MODE_AUTO }, { "traced", TBD_MODE_TRACED }, { "later", TBD_MODE_LATER }, { "patched", TBD_MODE_PATCHED },
                   { "native", TBD_MODE_NATIVE }, { "free", TBD_MODE_FREE }, { "crash", TBD_MODE_CRASH },
                   { "context", TBD_MODE_CONTEXT }, { "armed", TBD_MODE_ARMED } } },
    { .name = "play", .values = "native|traced", .help = "another word for mode: native, or traced",
      .kind = KIND_MODES, .offset = AT(mode), .initial = TBD_MODE_AUTO,
      .choices = { { "native", TBD_MODE_NATIVE }, { "traced", TBD_MODE_TRACED } } },
    { .name = "scheme", .values = "order|xor|sum", .help = "mode=context: what a stack's value is made by",
      .kind = KIND_CHOICE, .offset = AT(scheme), .initial = TBD_CALLING_ORDER,
      .choices = { { "order", TBD_CALLING_ORDER }, { "xor", TBD_CALLING_XOR }, { "sum", TBD_CALLING_SUM } } },
    { .name = "branches", .values = "NAME;...", .help = "mode=context: functions whose branches are counted in each call",
      .kind = KIND_TEXT, .offset = AT(branches) },
    { .name = "tally", .values = "counts|xor|sum|product", .help = "mode=context: what the value of branches is made by",
      .kind = KIND_CHOICE, .offset = AT(tally), .initial = TBD_BRANCH_COUNTS,
      .choices = { { "counts", TBD_BRANCH_COUNTS }, { "xor", TBD_BRANCH_XOR }, { "sum", TBD_BRANCH_SUM }, { "product", TBD_BRANCH_PRODUCT } } },
    { .name = "ring", .values = "SIZE", .help = "mode=crash: bytes of each thread's ring (K, M)",
      .kind = KIND_SIZE, .offset = AT(ring), .initial = 256 << 10, .low = 256 << 10, .high = 16 << 20 },
    { .name = "condensed", .values = "SIZE", .help = "mode=crash: bytes of each thread for what its ring has forgotten (M); 0: none",
      .kind = KIND_SIZE, .offset = AT(condensed), .low = TBD_CONDENSED_LEAST, .high = TBD_CONDENSED_MOST, .or_none = true },
    { .name = "record", .values = "0|1|...|9", .help = "mode=crash: how much is recorded beside rings, for values; 0: nothing",
      .kind = KIND_NUMBER, .offset = AT(record), .initial = TBD_RECORD_DEFAULT, .low = 0, .high = TBD_RECORD_MOST },
    { .name = "tables", .values = "none|first|last|both", .help = "mode=crash: each block once, by its first, or last entry",
      .kind = KIND_CHOICE, .offset = AT(tables), .initial = TBD_TABLES_NONE,
      .choices = { { "none", TBD_TABLES_NONE }, { "first", TBD_TABLES_FIRST }, { "last", TBD_TABLES_LAST }, { "both", TBD_TABLES_BOTH } } },
    { .name = "parts", .values = "NAME [SIZE];...", .help = "mode=crash: modules, functions(), or files.c, that are kept for longer",
      .kind = KIND_TEXT, .offset = AT(parts) },
    { .name = "dump", .values = "signal|fail|exit", .help = "mode=crash: after a signal; also after a status that is not 0; or any",
      .kind = KIND_CHOICE, .offset = AT(dump), .initial = TBD_DUMP_SIGNAL,
      .choices = { { "signal", TBD_DUMP_SIGNAL }, { "fail", TBD_DUMP_FAIL }, { "exit", TBD_DUMP_EXIT } } },
    { .name = "memory", .values = "stacks|reachable|all", .help = "mode=crash: memory in a dump; reachable: what pointers lead to",
      .kind = KIND_CHOICE, .offset = AT(memory), .initial = TBD_MEMORY_REACHABLE,
      .choices = { { "stacks", TBD_MEMORY_STACKS }, { "reachable", TBD_MEMORY_REACHABLE }, { "all", TBD_MEMORY_ALL } } },
    { .name = "trigger", .values = "WHAT[;WHAT...]", .help = "mode=crash: dumps: PLACE [records] [if CONDITION], signal NAME",
      .kind = KIND_TEXT, .offset = AT(trigger) },
    { .name = "facts", .values = "all|none|NAME+NAME", .help = "mode=crash: facts of the system in a dump: `tbdq facts` has all",
      .kind = KIND_TEXT, .offset = AT(facts) },
    { .name = "hooks", .values = "play|full|blocks|none", .help = "what is reported",
      .kind = KIND_CHOICE, .of_blocks = true, .offset = AT(hooks), .initial = TBD_HOOKS_PLAY,
      .choices = { { "play", TBD_HOOKS_PLAY }, { "full", TBD_HOOKS_FULL | TBD_HOOK_TOUCH },
                   { "blocks", TBD_HOOK_BLOCKS }, { "none", TBD_HOOKS_NONE } } },
    { .name = "log", .values = "error|warn|info|debug|trace", .help = "what is said on stderr",
      .kind = KIND_CHOICE, .offset = AT(log), .initial = TBD_LOG_WARN,
      .choices = { { "error", TBD_LOG_ERROR }, { "warn", TBD_LOG_WARN }, { "info", TBD_LOG_INFO },
                   { "debug", TBD_LOG_DEBUG }, { "trace", TBD_LOG_TRACE } } },
    { .name = "budget", .values = "SIZE", .help = "disk space of the trace (K, M, G, T): old windows lose details, or go; 0: no limit",
      .kind = KIND_SIZE, .offset = AT(budget), .initial = 4ull << 30 },
    { .name = "level3", .values = "N", .help = "windows that keep all events; 0: as many as fit",
      .kind = KIND_NUMBER, .of_blocks = true, .offset = AT(level3), .high = UINT32_MAX },
    { .name = "level2", .values = "N", .help = "older windows that keep counts; 0: as many as fit",
      .kind = KIND_NUMBER, .of_blocks = true, .offset = AT(level2), .high = UINT32_MAX },
    { .name = "keep", .values = "SIZE|TIME", .help = "keep only the last SIZE (K, M, G, T) or TIME (s, m, h, d); 0: all",
      .kind = KIND_KEEP, .offset = AT(keep) },
    { .name = "lean", .values = "auto|always|never", .help = "write windows without events; auto: when they come too fast",
      .kind = KIND_CHOICE, .of_blocks = true, .offset = AT(lean), .initial = TBD_LEAN_AUTO,
      .choices = { { "auto", TBD_LEAN_AUTO }, { "always", TBD_LEAN_ALWAYS }, { "never", TBD_LEAN_NEVER } } },
    { .name = "count", .values = "now|later|auto", .help = "later: a replay counts windows; auto: later on fewer than three processors",
      .kind = KIND_CHOICE, .of_blocks = true, .offset = AT(count), .initial = TBD_COUNT_AUTO,
      .choices = { { "now", TBD_COUNT_NOW }, { "later", TBD_COUNT_LATER }, { "auto", TBD_COUNT_AUTO } } },
    { .name = "aftercount", .values = "yes|no", .help = "no: windows that play does not count stay uncounted, also after the program's end",
      .kind = KIND_CHOICE, .offset = AT(aftercount), .initial = 1,
      .choices = { { "yes", 1 }, { "no", 0 } } },
    { .name = "save-on", .values = "always|exit|failure|signal", .help = "keep the trace only if the program ends so",
      .kind = KIND_CHOICE, .offset = AT(save), .initial = TBD_SAVE_ALWAYS,
      .choices = { { "always", TBD_SAVE_ALWAYS }, { "exit", TBD_SAVE_EXIT }, { "failure", TBD_SAVE_FAILURE },
                   { "signal", TBD_SAVE_SIGNAL } } },
    { .name = "cpu", .values = "own|v3|v3test", .help = "v3: the program is told of a processor without AVX-512",
      .kind = KIND_CHOICE, .offset = AT(cpu), .initial = TBD_CPU_OWN,
      .choices = { { "own", TBD_CPU_OWN }, { "v3", TBD_CPU_V3 }, { "v3test", TBD_CPU_V3_TEST } } },
    { .name = "wait", .values = "yes|no", .help = "mode=armed: yes: the program does not begin before its first probes",
      .kind = KIND_CHOICE, .offset = AT(wait), .initial = 0,
      .choices = { { "yes", 1 }, { "no", 0 } } },
    { .name = "link", .values = "yes|no", .help = "no: every block leaves through the engine",
      .kind = KIND_CHOICE, .of_blocks = true, .offset = AT(link), .initial = 1,
      .choices = { { "yes", 1 }, { "no", 0 } } },
    { .name = "threads", .values = "yes|no", .help = "no: a program is let go at its second thread",
      .kind = KIND_CHOICE, .offset = AT(threads), .initial = 1,
      .choices = { { "yes", 1 }, { "no", 0 } } },
    { .name = "children", .values = "yes|no", .help = "no: forked children run natively",
      .kind = KIND_CHOICE, .offset = AT(children), .initial = 1,
      .choices = { { "yes", 1 }, { "no", 0 } } },
};
// clang-format on

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static const struct option_row *find_row(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool parse_number(const struct option_row *row, const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > row->high)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = value;
    return value >= row->low && value <= row->high;
}

/* The factor that a letter after a number stands for; 0: no such letter. */
static uint64_t unit_bytes(char letter)
{
    switch (letter) {
    case 'K': return 1ull << 10;
    case 'M': return 1ull << 20;
    case 'G': return 1ull << 30;
    case 'T': return 1ull << 40;
    default: return 0;
    }
}

static uint64_t unit_seconds(char letter)
{
    switch (letter) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3600;
    case 'd': return 86400;
    default: return 0;
    }
}

/* "1G"; for KIND_KEEP also "10m". */
static bool parse_size(const struct option_row *row, const char *text, uint64_t *out)
{
    uint64_t value = 0, unit = 1, mark = 0;

    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (value > 1ull << 40)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    if (*text) {
        unit = unit_bytes(*text);
        if (!unit && row->kind == KIND_KEEP) {
            unit = unit_seconds(*text);
            mark = TBD_KEEP_SECONDS;
        }
        if (!unit || text[1])
            return false;
    }
    *out = value * unit | mark;
    if (row->or_none && *out == 0)
        return true;
    return value < (1ull << 62) / unit && (!row->high || (*out >= row->low && *out <= row->high));
}

/* NULL: it has no such choice. */
static const struct choice *find_choice(const struct option_row *row, const char *text)
{
    for (size_t i = 0; i < sizeof(row->choices) / sizeof(row->choices[0]); i++)
        if (row->choices[i].name[0] && strcmp(row->choices[i].name, text) == 0)
            return &row->choices[i];
    return NULL;
}

static bool parse_choice(const struct option_row *row, const char *text, uint64_t *out)
{
    const struct choice *choice = find_choice(row, text);

    if (!choice || choice->value == IS_COMING)
        return false;
    *out = choice->value;
    return true;
}

/* A list of modes. */
struct modes {
    const struct choice *mode;  /* what runs; NULL: `context` alone */
    const struct choice *other; /* another one that cannot be beside it; NULL: none */
    bool contexts;              /* `context` is among them */
    bool is_known;              /* each has a name that is one */
};

/* A crash trace is a free run with rings. */
static void add_mode(struct modes *modes, const struct choice *choice)
{
    if (choice->value == TBD_MODE_CONTEXT)
        modes->contexts = true;
    else if (!modes->mode ||
             (modes->mode->value == TBD_MODE_FREE && choice->value == TBD_MODE_CRASH))
        modes->mode = choice;
    else if (modes->mode != choice &&
             !(modes->mode->value == TBD_MODE_CRASH && choice->value == TBD_MODE_FREE))
        modes->other = choice;
}

static struct modes find_modes(const struct option_row *row, const char *text)
{
    struct modes modes = { .is_known = true };

    for (bool more = true; more && modes.is_known;) {
        const struct choice *choice = NULL;
        char name[sizeof(row->choices[0].name)];
        size_t length = 0;

        while (text[length] && text[length] != ',')
            length++;
        if (length < sizeof(name)) {
            memcpy(name, text, length);
            name[length] = '\0';
            choice = find_choice(row, name);
        }
        modes.is_known = choice != NULL;
        if (choice)
            add_mode(&modes, choice);
        more = text[length] == ',';
        text += length + more;
    }
    return modes;
}

/* NULL: they can. */
static const char *why_not_together(const struct modes *modes)
{
    if (modes->other)
        return "only context goes beside another mode";
    if (modes->contexts && modes->mode && refusals[modes->mode->value][0])
        return refusals[modes->mode->value];
    return NULL;
}

static bool take_modes(struct tbd_options *options, const struct option_row *row, const char *text)
{
    struct modes modes = find_modes(row, text);

    if (!modes.is_known || why_not_together(&modes))
        return false;
    options->contexts = modes.contexts;
    options->mode = modes.contexts && (!modes.mode || modes.mode->value == TBD_MODE_FREE)
                        ? TBD_MODE_CONTEXT
                        : modes.mode->value;
    return true;
}

static bool set_value(struct tbd_options *options, const struct option_row *row, const char *text)
{
    uint8_t *field = (uint8_t *)options + row->offset;
    uint64_t value;

    switch (row->kind) {
    case KIND_TEXT:
        if (!*text)
            return false;
        memcpy(field, text, strlen(text) + 1);
        return true;
    case KIND_NUMBER:
        if (!parse_number(row, text, &value))
            return false;
        break;
    case KIND_CHOICE:
        if (!parse_choice(row, text, &value))
            return false;
        break;
    case KIND_MODES: return take_modes(options, row, text);
    case KIND_SIZE:
    case KIND_KEEP:
        if (!parse_size(row, text, &value))
            return false;
        break;
    default: return false;
    }
    memcpy(field, &value, sizeof(value));
    return true;
}

static void set_defaults(struct tbd_options *options)
{
    memset(options, 0, sizeof(*options));
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].kind != KIND_TEXT)
            memcpy((uint8_t *)options + rows[i].offset, &rows[i].initial, sizeof(uint64_t));
}

/* Copies up to an unescaped `stop` or the end; returns where it stopped, NULL if too long. */
static const char *take(const char *text, char stop, char *out, size_t bytes)
{
    size_t length = 0;

    for (; *text && *text != stop && *text != ','; text++) {
        if (*text == '\\' && text[1])
            text++;
        if (length + 1 >= bytes)
            return NULL;
        out[length++] = *text;
    }
    out[length] = '\0';
    return text;
}

static bool say_wrong_modes(const struct option_row *row, const char *value, char *why,
                            size_t why_bytes)
{
    struct modes modes = find_modes(row, value);
    const char *refusal = why_not_together(&modes);

    if (modes.is_known && refusal)
        tbd_fmt(why, why_bytes, "option '%s' in TBD_OPTIONS: no %s beside %s: %s", row->name,
                modes.other ? modes.other->name : "context", modes.mode->name, refusal);
    return modes.is_known && refusal;
}

static void say_wrong(const struct option_row *row, const char *value, char *why, size_t why_bytes)
{
    const struct choice *choice = find_choice(row, value);

    if (row->kind == KIND_MODES && say_wrong_modes(row, value, why, why_bytes))
        return;
    if (row->kind == KIND_NUMBER)
        tbd_fmt(why, why_bytes, "option '%s' in TBD_OPTIONS needs a number from %lu to %lu",
                row->name, row->low, row->high);
    else if (row->kind == KIND_SIZE && row->high)
        tbd_fmt(why, why_bytes, "option '%s' in TBD_OPTIONS needs %sa size from %luK to %luK",
                row->name, row->or_none ? "0, or " : "", row->low >> 10, row->high >> 10);
    else if (choice && choice->value == IS_COMING)
        tbd_fmt(why, why_bytes, "option '%s' in TBD_OPTIONS: this version has %s, '%s' is to come",
                row->name, row->values, choice->name);
    else
        tbd_fmt(why, why_bytes, "option '%s' in TBD_OPTIONS needs %s", row->name, row->values);
}

/* Words without a value after a list belong to it: `mode=crash,context`. */
static const char *take_bare_words(const char *text, char *value, size_t bytes)
{
    while (text && *text == ',') {
        size_t used = strlen(value);
        char word[32];
        const char *end = take(text + 1, '=', word, sizeof(word));

        if (!end || *end == '=' || !*word)
            return text;
        if (used + 1 + strlen(word) >= bytes)
            return NULL;
        value[used++] = ',';
        memcpy(value + used, word, strlen(word) + 1);
        text = end;
    }
    return text;
}

static const char *parse_one(struct tbd_options *options, const char *text, char *why,
                             size_t why_bytes)
{
    char name[32];
    char value[TBD_OPTION_TEXT_BYTES] = "";
    const struct option_row *row;

    text = take(text, '=', name, sizeof(name));
    row = text ? find_row(name) : NULL;
    if (!row) {
        tbd_fmt(why, why_bytes, "unknown option '%s' in TBD_OPTIONS", text ? name : "...");
        return NULL;
    }
    text = *text == '=' ? take(text + 1, ',', value, sizeof(value)) : NULL;
    if (row->kind == KIND_MODES)
        text = take_bare_words(text, value, sizeof(value));
    if (!text || !set_value(options, row, value)) {
        say_wrong(row, value, why, why_bytes);
        return NULL;
    }
    options->of_blocks |= row->of_blocks;
    return text;
}

bool tbd_options_parse(struct tbd_options *options, const char *text, char *why, size_t why_bytes)
{
    set_defaults(options);
    options->of_blocks = false;
    while (text && *text) {
        text = parse_one(options, text, why, why_bytes);
        if (!text)
            return false;
        if (*text == ',')
            text++;
    }
    /* a turn ends between any two instructions, unless the user has another length of blocks */
    if (options->chaos && options->max_insns == TBD_BLOCK_MAX_INSNS)
        options->max_insns = 1;
    return true;
}

bool tbd_options_describe(size_t index, const char **name, const char **values, const char **help)
{
    if (index >= ROW_COUNT)
        return false;
    *name = rows[index].name;
    *values = rows[index].values;
    *help = rows[index].help;
    return true;
}
