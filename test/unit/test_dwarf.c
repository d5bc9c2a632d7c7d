// SPDX-License-Identifier: MIT
// links: tbd_query tbd_format
/* Debug information of small programs, compiled here at -O0 and -O2 with DWARF 4 and 5: lines,
 * scopes, inlined functions, values of expressions; files that are damaged. */
#include "condition_value.h"
#include "query/values/dwarf_print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char text[] =
    "int total = -3;\n"
    "static inline __attribute__((always_inline)) int inner(int a)\n"
    "{\n"
    "    total += a;\n" /* line 4 */
    "    return total;\n"
    "}\n"
    "__attribute__((noinline)) int outer(int b)\n"
    "{\n"
    "    return inner(b * 3) + 1;\n" /* line 9 */
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    (void)argv;\n"
    "    return outer(argc);\n"
    "}\n"
    "struct node {\n"
    "    int key;\n"
    "    unsigned low : 3, high : 5;\n"
    "    struct node *next;\n"
    "    char name[8];\n"
    "} second = { 5, 6, 21, 0, \"two\" }, first = { 4, 1, 2, &second, \"one\" };\n"
    "enum shape { ROUND = 3, SQUARE } shape = SQUARE;\n"
    "static short grid[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };\n"
    "double half = 0.5;\n"
    "short *at = &grid[1][1];\n";

static const char *const kinds[] = { "-O0 -gdwarf-4",
                                     "-O0 -gdwarf-5",
                                     "-O2 -gdwarf-4",
                                     "-O2 -gdwarf-5",
                                     "-O2 -gdwarf-5 -gz",
                                     "-O0 -gdwarf-5 -gsplit-dwarf",
                                     "-O2 -gdwarf-4 -gsplit-dwarf" };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static char folder[] = "/tmp/tbd-dwarf-XXXXXX";

static int compile(void **state)
{
    char command[512];
    FILE *source;

    (void)state;
    if (mkdtemp(folder) == NULL || chdir(folder) != 0 || (source = fopen("made.c", "w")) == NULL)
        return -1;
    fputs(text, source);
    fclose(source);
    for (size_t i = 0; i < KINDS; i++) {
        snprintf(command, sizeof(command), "cc %s -no-pie -fno-pie -o made%zu made.c", kinds[i], i);
        if (system(command) != 0)
            return -1;
    }
    return 0;
}

static int remove_all(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static struct tbd_elf_file *open_made(size_t kind)
{
    struct tbd_elf_file *file;
    char name[32];

    snprintf(name, sizeof(name), "made%zu", kind);
    assert_int_equal(tbd_elf_open(name, &file), TBD_OK);
    assert_non_null(tbd_dwarf_of(file));
    return file;
}

static const struct tbd_elf_symbol *symbol(struct tbd_elf_file *file, const char *name)
{
    const struct tbd_elf_symbols *symbols = tbd_elf_symbols(file);
    const uint32_t *by_name = tbd_elf_by_name(file);
    size_t index = tbd_elf_lower_bound(file, name);

    assert_true(index < symbols->count);
    assert_string_equal(symbols->all[by_name[index]].name, name);
    return &symbols->all[by_name[index]];
}

static void functions_have_their_lines(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
        struct tbd_source_line line;

        assert_true(tbd_dwarf_line_at(dwarf, symbol(file, "main")->start, &line));
        assert_in_range(line.line, 12, 14);
        assert_non_null(strstr(line.file, "/made.c"));
        assert_true(tbd_dwarf_line_at(dwarf, symbol(file, "outer")->start, &line));
        assert_in_range(line.line, 4, 9); /* inlined code may begin it */
        assert_false(tbd_dwarf_line_at(dwarf, symbol(file, "_start")->start, &line));
        assert_false(tbd_dwarf_line_at(dwarf, 0, &line));
        assert_false(tbd_dwarf_line_at(dwarf, UINT64_MAX, &line));
        tbd_elf_close(file);
    }
}

static void lines_have_their_addresses(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
        struct tbd_elf_range ranges[64];
        struct tbd_source_line line;
        size_t count = tbd_dwarf_line_ranges(dwarf, "made.c", 4, ranges, 64);

        assert_in_range(count, 1, 64);
        for (size_t i = 0; i < count; i++) {
            assert_true(ranges[i].start < ranges[i].end);
            assert_true(tbd_dwarf_line_at(dwarf, ranges[i].start, &line) && line.line == 4);
            assert_true(tbd_dwarf_line_at(dwarf, ranges[i].end - 1, &line) && line.line == 4);
        }
        assert_int_equal(tbd_dwarf_line_ranges(dwarf, "made.c", 4, NULL, 0), count);
        assert_true(tbd_dwarf_line_ranges(dwarf, "made.c", 0, NULL, 0) > count);
        assert_int_equal(tbd_dwarf_line_ranges(dwarf, "ade.c", 0, NULL, 0), 0);
        assert_int_equal(tbd_dwarf_line_ranges(dwarf, "made.c", 99, NULL, 0), 0);
        tbd_elf_close(file);
    }
}

static void inlined_functions_are_around_an_address(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
        struct tbd_elf_range ranges[16];
        struct tbd_dwarf_scopes scopes;
        struct tbd_dwarf_function functions[4];
        size_t count = tbd_dwarf_line_ranges(dwarf, "made.c", 4, ranges, 16);
        size_t deepest = 0;

        for (size_t i = 0; i < count && i < 16 && deepest < 2; i++) {
            assert_true(tbd_dwarf_scopes(dwarf, ranges[i].start, &scopes));
            deepest = tbd_dwarf_functions(&scopes, functions, 4);
        }
        assert_int_equal(deepest, 2);
        assert_string_equal(functions[0].name, "inner");
        assert_true(functions[0].is_inlined && functions[0].call.line == 9);
        assert_string_equal(functions[1].name, "outer");
        assert_false(functions[1].is_inlined);
        assert_int_equal(functions[1].first, functions[0].end);
        assert_false(tbd_dwarf_scopes(dwarf, symbol(file, "_start")->start, &scopes));
        tbd_elf_close(file);
    }
}

/* ---- expressions: no frame, memory as the file has it ---- */

static bool read_file(void *context, uint64_t address, void *out, size_t bytes)
{
    return tbd_elf_read(context, address, out, bytes) == bytes;
}

struct asked {
    struct tbd_stack_memory memory;
    struct tbd_place_of place;
    struct tbd_c_scope scope;
    struct tbd_query_error error;
    char text[512];
    bool is_compared; /* with the value of the expression as a condition */
    unsigned compared;
};

static void start_asking(struct asked *asked, struct tbd_elf_file *file, uint64_t address)
{
    memset(asked, 0, sizeof(*asked));
    asked->memory = (struct tbd_stack_memory){ .read = read_file, .context = file };
    asked->place.dwarf = tbd_dwarf_of(file);
    asked->place.address = address;
    asked->place.memory = &asked->memory;
    asked->scope.place = &asked->place;
    if (asked->place.dwarf != NULL &&
        tbd_dwarf_scopes(asked->place.dwarf, address, &asked->place.scopes))
        asked->place.end = asked->place.scopes.count;
}

/* As a condition the expression has the same value, or none.  Numbers that no variable gives a type
 * are unsigned in conditions, so random text is not compared. */
static void check_condition(struct asked *asked, const char *expression,
                            const struct tbd_data *data)
{
    uint64_t value, wanted = 0;

    if (!condition_value(&asked->scope, expression, &value) || data == NULL || !data->is_known ||
        !tbd_data_scalar(&asked->place, data, &wanted) || !asked->is_compared)
        return;
    if (value != wanted)
        fail_msg("%s: %#lx, not %#lx", expression, value, wanted);
    asked->compared++;
}

/* The value as text, "error" if there is none. */
static const char *ask(struct asked *asked, const char *expression)
{
    struct tbd_printer printer = { .place = &asked->place };
    struct tbd_data data;
    FILE *out = fmemopen(asked->text, sizeof(asked->text), "w");

    assert_non_null(out);
    if (tbd_c_evaluate(&asked->scope, expression, 0, strlen(expression), &data, &asked->error) ==
        TBD_OK) {
        tbd_data_print(&printer, &data, out);
        check_condition(asked, expression, &data);
    } else {
        fputs("error", out);
        check_condition(asked, expression, NULL);
    }
    fclose(out);
    return asked->text;
}

static void expressions_have_their_values(void **state)
{
    static const char *const wanted[][2] = {
        { "total", "-3" },
        { "total + 1u > 0", "1" },
        { "total / 2", "-1" },
        { "first.next->key * 10 + first.key", "54" },
        { "*first.next",
          "{key = 5, low = 6, high = 21, next = 0x0, name = \"two\\000\\000\\000\\000\"}" },
        { "first.name", "\"one\\000\\000\\000\\000\"" },
        { "first.name[1] == 'n' && !second.next", "1" },
        { "shape", "SQUARE" },
        { "(enum shape)3", "ROUND" },
        { "(int)shape << 2", "16" },
        { "grid", "{{1, 2, 3}, {4, 5, 6}}" },
        { "grid[1]", "{4, 5, 6}" },
        { "*(at + 1) - at[-1]", "2" },
        { "at - &grid[0][0]", "4" },
        { "sizeof(grid) + sizeof(struct node) + sizeof total", "40" },
        { "half * 3", "1.5" },
        { "(unsigned char)total", "253 '\\375'" },
        { "0x10 | 7 & 3 ^ 1", "18" },
        { "-7 % 3", "-1" },
        { "total == -3 || 1 / 0", "1" },
        { "total == -3 || nothing", "error" },
        { "total != -3 || 1 / 0", "error" },
        { "1 / (total + 3)", "error" },
        { "nothing", "error" },
        { "first.name == \"one\" && \"two\" == second.name", "1" },
        { "first.name != \"one \"", "1" },
        { "first.name == \"on\"", "0" },
        { "total < 0 ? 7 : 1 / 0", "7" },
        { "total > 0 ? 7 : half > 0.25 ? 5 : 6", "5" },
        { "(long)total < 0u", "1" },
        { "total < 0u", "0" },
        { "(char)(first.name[0] + 200)", "55 '7'" },
        { "-(unsigned char)1 >> 1", "-1" },
        { "grid[1][2] / half - first.low", "11" },
        { "&first.next->name[1] - &second.name[0]", "1" },
        { "second.high >> 1 ^ first.high", "8" },
        { "main != 0 && outer == &outer", "1" },
        { "::total", "-3" },
        { "total == \"one\"", "error" },
        { "\"one\"", "error" },
        { "first.nothing", "error" },
        { "total.key", "error" },
        { "*total", "error" },
        { "first + 1", "error" },
        { "total +", "error" },
        { "(total", "error" },
        { "", "error" },
        { "argc", "<optimized out: it needs a frame>" },
    };

    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        struct tbd_elf_file *file = open_made(kind);
        struct asked asked;

        start_asking(&asked, file, symbol(file, "main")->start + 4);
        asked.is_compared = true;
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
            const char *found = ask(&asked, wanted[i][0]);

            if (strcmp(wanted[i][0], "argc") == 0)
                assert_non_null(strstr(found, "<optimized out: "));
            else
                assert_string_equal(found, wanted[i][1]);
        }
        assert_true(asked.compared > 16);
        tbd_elf_close(file);
    }
}

/* Also elements of arrays there, whose addresses nobody knows; the reason is given once. */
static void what_an_unknown_pointer_leads_to_says_so(void **state)
{
    static const char *const led_to[] = {
        "*argv",
        "argv[0]",
        "argv[0][1]",
        "*(argv + 2)",
        "*((struct node *)argv)",
        "((struct node *)argv)->next->key",
        "((struct node *)argv)->name[1]",
        "*((struct node *)argv)->name + 1",
    };
    struct tbd_elf_file *file = open_made(0);
    struct asked asked;
    char wanted[2 * sizeof(asked.text)];
    const char *why = "<optimized out: ";

    (void)state;
    start_asking(&asked, file, symbol(file, "main")->start + 4);
    assert_memory_equal(ask(&asked, "argv"), why, strlen(why));
    snprintf(wanted, sizeof(wanted), "%sits pointer is not known: %s", why,
             asked.text + strlen(why));
    for (size_t i = 0; i < sizeof(led_to) / sizeof(led_to[0]); i++)
        assert_string_equal(ask(&asked, led_to[i]), wanted);
    assert_string_equal(ask(&asked, "sizeof(((struct node *)argv)->name)"), "8");
    tbd_elf_close(file);
}

/* ---- locations with numbers of base types, as compilers write them rarely ---- */

#define TYPE(name)     ".uleb128 .L" name "-.Lcu\n"
#define TO(name)       ".byte 0xa8\n" TYPE(name)
#define AS(name)       ".byte 0xa9\n" TYPE(name)
#define DOUBLE(value)  ".byte 0xa4\n" TYPE("double") ".byte 8\n.double " value "\n"
#define HALF           ".byte 3\n.quad half\n"
#define DEREF(n, name) ".byte 0xa6," n "\n" TYPE(name)
#define OP(bytes)      ".byte " bytes "\n"
#define ABS            OP("0x19")
#define AND            OP("0x1a")
#define DIV            OP("0x1b")
#define MINUS          OP("0x1c")
#define MUL            OP("0x1e")
#define NEG            OP("0x1f")
#define PLUS           OP("0x22")
#define LT             OP("0x2d")
#define DUP            OP("0x12")
#define SWAP           OP("0x16")
#define LESS_ONE       OP("0x09,0xff")

static const char *const typed[][3] = {
    { "double", HALF DEREF("8", "double"), "0.5" },
    { "int", HALF DEREF("8", "double") DOUBLE("7") MUL TO("int") OP("0xa8,0"), "3" },
    { "float", HALF DEREF("8", "double") TO("float"), "0.5" },
    { "double", HALF DEREF("8", "double") TO("float") DOUBLE("1") PLUS, NULL },
    { "double", HALF DEREF("4", "double"), NULL },
    { "int", DOUBLE("-2.75") TO("int"), "-2" },
    { "int", DOUBLE("1e30") TO("int"), NULL },
    { "int", DOUBLE("2.5") DOUBLE("2") LT, "0" },
    { "int", DOUBLE("-2.5") DOUBLE("2") LT, "1" },
    { "double", LESS_ONE TO("int") TO("double"), "-1" },
    { "double", LESS_ONE TO("unsigned") TO("double"), "4294967295" },
    { "float", LESS_ONE TO("unsigned") TO("float"), "4.2949673e+09" },
    { "double", DOUBLE("8") DOUBLE("2") SWAP DIV, "0.25" },
    { "double", DOUBLE("1.5") DUP PLUS, "3" },
    { "double", DOUBLE("1.5") DOUBLE("4") MINUS, "-2.5" },
    { "double", DOUBLE("1.5") DOUBLE("4") MINUS NEG, "2.5" },
    { "double", DOUBLE("1.5") DOUBLE("4") MINUS ABS, "2.5" },
    { "double", DOUBLE("1.5") DOUBLE("4") AND, NULL },
    { "int", OP("0x0c,0,0,0,0x3f") AS("float") TO("double") DOUBLE("4") MUL TO("int"), "2" },
};
#define TYPED (sizeof(typed) / sizeof(typed[0]))

static void make_typed(void)
{
    FILE *out = fopen("typed.s", "w");

    assert_non_null(out);
    fputs(
        ".data\nhalf: .double 0.5\n.text\n.globl main\n.type main,@function\n"
        ".file 1 \"a.c\"\n.file 2 \"b.c\"\nmain: .loc 1 5 0 is_stmt 1\nnop\n"
        ".loc 2 90 0 is_stmt 1\n.loc 1 26 0 is_stmt 0\nnop\n"
        ".loc 1 26 0 is_stmt 0 discriminator 4\nnop\n"
        ".loc 1 26 0 is_stmt 0 discriminator 5\nret\n.Lend: .size main,.-main\n.section .debug_abbrev\n"
        ".byte 1,0x11,1, 0x11,1, 0x12,7, 0x10,0x17, 3,8, 0,0\n"
        ".byte 2,0x24,0, 3,8, 0xb,0xb, 0x3e,0xb, 0,0\n"
        ".byte 3,0x34,0, 3,8, 0x49,0x13, 2,0x18, 0,0, 0\n"
        ".section .debug_info\n.Lcu: .long .Lcu_end-.Lcu-4\n.value 5\n.byte 1,8\n.long 0\n"
        ".byte 1\n.quad main\n.quad .Lend-main\n.long .Lrows\n.string \"typed.c\"\n"
        ".Lint: .byte 2\n.string \"int\"\n.byte 4,5\n"
        ".Lunsigned: .byte 2\n.string \"unsigned\"\n.byte 4,7\n"
        ".Lfloat: .byte 2\n.string \"float\"\n.byte 4,4\n"
        ".Ldouble: .byte 2\n.string \"double\"\n.byte 8,4\n",
        out);
    for (size_t i = 0; i < TYPED; i++)
        fprintf(out,
                ".byte 3\n.string \"v%zu\"\n.long .L%s-.Lcu\n.uleb128 .Le%zu-.Lb%zu\n.Lb%zu:\n%s"
                ".byte 0x9f\n.Le%zu:\n",
                i, typed[i][0], i, i, i, typed[i][1], i);
    fputs(".byte 0\n.Lcu_end:\n.section .debug_line\n.Lrows:\n", out);
    fclose(out);
    assert_int_equal(system("cc -no-pie -o typed typed.s 2>/dev/null"), 0);
}

static void locations_compute_with_base_types(void **state)
{
    struct tbd_elf_file *file;
    struct asked asked;
    char name[32];

    (void)state;
    make_typed();
    assert_int_equal(tbd_elf_open("typed", &file), TBD_OK);
    start_asking(&asked, file, symbol(file, "main")->start);
    for (size_t i = 0; i < TYPED; i++) {
        snprintf(name, sizeof(name), "v%zu", i);
        ask(&asked, name);
        if (typed[i][2] == NULL ? strncmp(asked.text, "<optimized out: it", 18) != 0
                                : strcmp(asked.text, typed[i][2]) != 0)
            fail_msg("%s: %s, not %s", name, asked.text, typed[i][2]);
    }
    tbd_elf_close(file);
}

/* A row without a statement, where one of another file has one, is as if it were not there. */
static void the_line_after_a_row_that_is_left_out_starts(void **state)
{
    static const struct {
        uint32_t line;
        bool starts;
    } wanted[] = { { 5, true }, { 90, true }, { 26, true }, { 26, false } };
    struct tbd_elf_file *file;
    struct tbd_source_line line;

    (void)state;
    make_typed();
    assert_int_equal(tbd_elf_open("typed", &file), TBD_OK);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_true(tbd_dwarf_line_at(tbd_dwarf_of(file), symbol(file, "main")->start + i, &line));
        if (line.line != wanted[i].line || line.starts != wanted[i].starts)
            fail_msg("main+%zu: line %u, %d", i, line.line, line.starts);
    }
    tbd_elf_close(file);
}

static void a_condition_on_a_line_has_a_value_where_the_line_is_known(void **state)
{
    struct tbd_elf_file *file = open_made(0);
    struct asked asked;
    uint64_t value;

    (void)state;
    start_asking(&asked, file, symbol(file, "main")->start);
    assert_false(condition_value_in_line(&asked.scope, 0, "line == 7", &value));
    for (uint32_t line = 6; line <= 8; line++) {
        assert_true(condition_value_in_line(&asked.scope, line, "line == 7", &value));
        assert_int_equal(value, line == 7);
        assert_true(condition_value_in_line(&asked.scope, line, "line - total > 10", &value));
        assert_int_equal(value, line + 3 > 10);
    }
    tbd_elf_close(file);
}

static void errors_point_at_the_word(void **state)
{
    struct tbd_elf_file *file = open_made(3);
    struct asked asked;

    (void)state;
    start_asking(&asked, file, symbol(file, "main")->start);
    ask(&asked, "total + nobody * 2");
    assert_int_equal(asked.error.status, TBD_NAME);
    assert_int_equal(asked.error.at, 8);
    assert_int_equal(asked.error.length, 6);
    assert_string_equal(asked.error.message, "there is no variable 'nobody' here");
    ask(&asked, "first->wrong");
    assert_true(asked.error.status == TBD_TYPE && asked.error.at == 5);
    tbd_elf_close(file);
}

/* Any text gets an answer or an error. */
static void random_text_does_no_harm(void **state)
{
    static const char *const words[] = { "total", "first", "grid",   "(",      ")",    "*",    "&",
                                         "->",    ".",     "[",      "]",      "next", "1",    "0x",
                                         "'a",    "-",     "sizeof", "struct", "node", "$rax", "/",
                                         "<<",    "&&",    "~",      " ",      "at",   "half", "?",
                                         ":",     "\"o",   "==",     "second" };
    struct tbd_elf_file *file = open_made(0);
    struct asked asked;
    uint64_t random = 88172645463325252;

    (void)state;
    start_asking(&asked, file, symbol(file, "main")->start);
    for (int round = 0; round < 3000; round++) {
        char expression[256] = "";

        for (uint64_t i = random % 12; i-- > 0;) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            strcat(expression, words[random % (sizeof(words) / sizeof(words[0]))]);
        }
        random += 1;
        ask(&asked, expression);
        if (strcmp(asked.text, "error") == 0)
            assert_true(asked.error.status != TBD_OK && asked.error.message[0] != '\0');
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        static char deep[4096];

        deep[0] = '\0';
        while (strlen(deep) + 16 < sizeof(deep))
            strcat(deep, words[i]);
        ask(&asked, deep);
    }
    tbd_elf_close(file);
}

static void ask_values(struct tbd_elf_file *file, uint64_t address)
{
    static const char *const expressions[] = { "total",          "first",       "*first.next",
                                               "grid[1][2]",     "second.name", "a + b",
                                               "(struct node)0", "&argc" };
    struct tbd_frame frame = {
        .pc = address, .call_pc = address, .cfa = file->low, .known = 0xffff
    };
    struct asked asked;

    start_asking(&asked, file, address);
    asked.place.frame = &frame;
    asked.place.caller = &asked.place;
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++)
        ask(&asked, expressions[i]);
}

static void ask_everything(struct tbd_elf_file *file)
{
    struct tbd_dwarf *dwarf = tbd_dwarf_of(file);
    struct tbd_dwarf_scopes scopes;
    struct tbd_dwarf_function functions[4];
    struct tbd_source_line line;

    if (dwarf == NULL)
        return;
    for (uint64_t at = file->low; at < file->high && at < file->low + 0x2000; at += 0x11) {
        (void)tbd_dwarf_line_at(dwarf, at, &line);
        if (tbd_dwarf_scopes(dwarf, at, &scopes)) {
            assert_true(tbd_dwarf_functions(&scopes, functions, 4) <= 4);
            ask_values(file, at);
        }
    }
    (void)tbd_dwarf_line_ranges(dwarf, "made.c", 0, NULL, 0);
}

/* Every byte of the debug information is changed once, some at a time. */
static void damaged_files_do_no_harm(void **state)
{
    static uint8_t bytes[64 << 10];
    FILE *in;
    size_t count;
    uint64_t random = 88172645463325252;

    (void)state;
    in = fopen("made3", "r");
    assert_non_null(in);
    count = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    for (int round = 0; round < 400; round++) {
        struct tbd_elf_file *file;
        uint8_t saved[8];
        size_t at[8];

        for (int i = 0; i < 8; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            at[i] = 0x3000 + random % (count - 0x3000);
            saved[i] = bytes[at[i]];
            bytes[at[i]] = (uint8_t)(random >> 32);
        }
        if (tbd_elf_open_image("damaged", bytes, count, &file) == TBD_OK) {
            ask_everything(file);
            tbd_elf_close(file);
        }
        for (int i = 8; i-- > 0;)
            bytes[at[i]] = saved[i];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_their_lines),
        cmocka_unit_test(lines_have_their_addresses),
        cmocka_unit_test(inlined_functions_are_around_an_address),
        cmocka_unit_test(expressions_have_their_values),
        cmocka_unit_test(what_an_unknown_pointer_leads_to_says_so),
        cmocka_unit_test(locations_compute_with_base_types),
        cmocka_unit_test(the_line_after_a_row_that_is_left_out_starts),
        cmocka_unit_test(a_condition_on_a_line_has_a_value_where_the_line_is_known),
        cmocka_unit_test(errors_point_at_the_word),
        cmocka_unit_test(random_text_does_no_harm),
        cmocka_unit_test(damaged_files_do_no_harm),
    };

    if (system("cc --version >/dev/null 2>&1") != 0)
        return 77;
    return cmocka_run_group_tests(tests, compile, remove_all);
}
