// SPDX-License-Identifier: MIT
/* cmd_branches.c - branches: which branches a value of tbd_branch_context() stands for (mode=context, option `branches`)
 *
 * It needs the program's files, no trace. */
#include "query/commands/commands.h"
#include "query/commands/rows.h"
#include "query/commands/value_words.h"
#include "query/contexts/branch_values.h"
#include "query/debuginfo/dwarf_file.h"
#include "query/output/output.h"

#include "base/safe_stream.h"
#include "base/string.h"

#include <inttypes.h>

struct branches_asked {
    struct tbd_value_words words;
    unsigned scheme; /* enum tbd_branch_scheme */
    const char *program, *function;
};

/* NULL: well; otherwise what is wrong. */
static const char *take_words(const struct tbd_command_run *run, struct branches_asked *asked)
{
    static const char *const names[] = { [TBD_BRANCH_COUNTS] = "counts",
                                         [TBD_BRANCH_XOR] = "xor",
                                         [TBD_BRANCH_SUM] = "sum",
                                         [TBD_BRANCH_PRODUCT] = "product" };
    const struct tbd_value_option options[] = {
        { "--program", .text = &asked->program },
        { "--function", .text = &asked->function },
        { "--tally", .names = names, .name_count = TBD_BRANCH_SCHEMES, .chosen = &asked->scheme,
          .wrong = "the tally is counts, xor, sum or product" },
        { .name = NULL }
    };
    const char *wrong;

    *asked = (struct branches_asked){ .scheme = TBD_BRANCH_COUNTS };
    wrong = tbd_value_words_take(run, options, &asked->words);
    if (wrong == NULL && (asked->program == NULL || asked->function == NULL))
        wrong = "--program and --function are needed";
    return wrong;
}

/* ---- rows ---- */

static void put_source(json_t *row, struct tbd_branch_code *code, uint64_t address)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(code->elf);
    struct tbd_source_line line = { .line = 0 };
    const char *file;

    if (dwarf == NULL || !tbd_dwarf_line_at(dwarf, address, &line) || line.line == 0)
        return;
    tbd_output_source(&line, row);
    file = json_string_value(json_object_get(row, "file"));
    if (file != NULL)
        tbd_output_source_cell(file, line.line, row);
}

static json_t *branch_row(struct tbd_branch_code *code, const struct tbd_branch_answer *answer,
                          uint32_t way, uint32_t branch)
{
    uint64_t address = code->start + code->function.at[branch];
    json_t *row = json_object();
    char text[512];

    json_object_set_new(row, "way", json_integer((json_int_t)way + 1));
    snprintf(text, sizeof(text), "%s!%s", code->file, code->name);
    json_object_set_new(row, "function", tbd_output_text(text));
    json_object_set_new(row, "function_offset", json_integer(code->function.at[branch]));
    json_object_set_new(row, "address", tbd_output_hex(address));
    json_object_set_new(row, "to", tbd_output_hex(code->targets[branch]));
    json_object_set_new(row, "times", json_integer((json_int_t)answer->ways[way].times[branch]));
    if (answer->full >> branch & 1)
        json_object_set_new(row, "or_more", json_true());
    put_source(row, code, address);
    return row;
}

/* What a table shows: "3", "15 or more", "odd". */
static void put_taken(json_t *row, enum tbd_branch_scheme scheme)
{
    char text[64];

    snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT "%s",
             json_integer_value(json_object_get(row, "times")),
             json_object_get(row, "or_more") != NULL ? " or more" : "");
    json_object_set_new(row, "taken",
                        json_string(scheme == TBD_BRANCH_XOR ? "an odd number" : text));
}

static enum tbd_exit print_answer(struct tbd_command_run *run, struct tbd_branch_code *code,
                                  const struct branches_asked *asked,
                                  const struct tbd_branch_answer *answer)
{
    static const char *const columns[] = { "way", "address", "to", "taken", "source", NULL };
    struct tbd_rows rows;

    if (answer->count == 1 && asked->words.value == tbd_branch_initial(asked->scheme)) {
        fprintf(stderr, "tbdq: no branch of %s had been taken%s\n", tbd_shown(code->name),
                asked->scheme == TBD_BRANCH_XOR ? ", or each an even number of times" : "");
        return TBD_EXIT_FOUND;
    }
    if (!answer->is_complete)
        fputs("tbdq: there may be more ways: the search ended at its limit\n", stderr);
    tbd_rows_start(&rows, run, columns);
    if (answer->count == 1)
        tbd_rows_hide(&rows, "way");
    for (uint32_t way = 0; way < answer->count; way++)
        for (uint32_t i = 0; i < code->function.count; i++) {
            json_t *row;

            if (answer->ways[way].times[i] == 0)
                continue;
            row = branch_row(code, answer, way, i);
            put_taken(row, asked->scheme);
            tbd_rows_add(&rows, row);
        }
    return tbd_rows_end(&rows);
}

/* ---- the command ---- */

static enum tbd_exit fail(const struct branches_asked *asked, enum tbd_status status)
{
    if (status == TBD_NOMEM)
        return tbd_command_no_memory();
    if (status == TBD_NOTFOUND) {
        fprintf(stderr, "tbdq: no function %s is in %s or its libraries\n",
                tbd_shown(asked->function), tbd_shown(asked->program));
        return TBD_EXIT_NOT_FOUND;
    }
    fprintf(stderr, "tbdq: the files cannot be read: %s: %s\n", tbd_shown(asked->program),
            tbd_status_text(status));
    return TBD_EXIT_SYSTEM;
}

static enum tbd_exit answer_value(struct tbd_command_run *run, struct tbd_branch_code *code,
                                  const struct branches_asked *asked)
{
    static struct tbd_branch_answer answer; /* 32 KiB */
    enum tbd_status status = tbd_branch_find(code, asked->scheme, asked->words.value, &answer);

    if (status != TBD_OK)
        return fail(asked, status);
    if (answer.count != 0)
        return print_answer(run, code, asked, &answer);
    if (asked->scheme == TBD_BRANCH_PRODUCT && asked->words.value == 0)
        fprintf(stderr, "tbdq: more branches of %s were taken than a product of 64 bits holds\n",
                tbd_shown(code->name));
    else
        fprintf(stderr, "tbdq: no branches of %s have this value%s\n", tbd_shown(code->name),
                answer.is_complete ? "" : ", as far as the search came");
    return TBD_EXIT_NOT_FOUND;
}

/* Without a value: what the option `branches` needs. */
static enum tbd_exit print_place(const struct tbd_branch_code *code)
{
    printf("%s:%" PRIx64 "-%" PRIx64 "\n", code->file, code->function.start, code->function.end);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_branches(struct tbd_command_run *run)
{
    struct branches_asked asked;
    static struct tbd_branch_code code;
    const char *wrong = take_words(run, &asked);
    enum tbd_status status;
    enum tbd_exit result;

    if (wrong != NULL)
        return tbd_command_usage(run, wrong);
    status = tbd_branch_code_open(asked.program, asked.words.more, asked.words.more_count,
                                  asked.function, &code);
    if (status != TBD_OK) {
        result = fail(&asked, status);
    } else if (code.function.count == 0 || code.is_full) {
        fprintf(stderr, "tbdq: the branches of %s cannot be counted: it has %s\n",
                tbd_shown(code.name), code.is_full ? "more than 64" : "none");
        result = TBD_EXIT_NOT_FOUND;
    } else {
        result = asked.words.has_value ? answer_value(run, &code, &asked) : print_place(&code);
    }
    tbd_branch_code_close(&code);
    return result;
}
